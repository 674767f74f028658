//! Carrying out drops of dead instances: beside the driver, for nothing of them is journaled.
//!
//! Owns the calls and the log files. What may be removed is `node-rules`' to say.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{
    error_chain::ErrorChain,
    ids::ContainerId,
    order::{DropAnswer, DropOrder, Instance, Refusal},
};
use node_rules::{UnfinishedStop, judge_drop, logs_to_remove};
use service_kit::trace;
use tokio::{
    fs,
    sync::{Semaphore, watch},
};
use tracing::{Instrument, debug, info, info_span, warn};

use crate::{
    cri::{Cri, CriError},
    metrics::Metrics,
    unfinished::UnfinishedStops,
};

/// So many drops at once: each is a few calls to the runtime.
const AT_ONCE: usize = 4;

/// Carries out drops; clones share the limit.
#[derive(Clone)]
pub(crate) struct Dropper {
    cri: Cri,
    metrics: Metrics,
    permits: Arc<Semaphore>,
    unfinished: watch::Receiver<UnfinishedStops>,
}

// === impl Dropper ===

impl Dropper {
    pub(crate) fn new(
        cri: Cri,
        metrics: Metrics,
        unfinished: watch::Receiver<UnfinishedStops>,
    ) -> Self {
        Self {
            cri,
            metrics,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            unfinished,
        }
    }

    /// Removes the dead instances that an order names the newest of.
    pub(crate) async fn drop_dead(
        &self,
        order: &DropOrder,
        trace_parent: Option<&str>,
    ) -> DropAnswer {
        let instance = &order.instance;
        let span = info_span!(
            "drop",
            order = %order.id,
            ns = %instance.namespace,
            pod = %instance.pod,
            uid = %instance.pod_uid,
            container = %instance.container,
        );
        if let Some(trace_parent) = trace_parent {
            trace::set_parent(&span, trace_parent);
        }
        async {
            // The semaphore is never closed; without a permit there would only be more at once.
            let _permit = self.permits.acquire().await;
            let answer = match self.try_drop(instance).await {
                Ok(count) => DropAnswer::Dropped { count },
                Err(refusal) => DropAnswer::Refused(refusal),
            };
            info!(?answer, "Dead instances dropped");
            self.metrics.count_drop(&answer);
            answer
        }
        .instrument(span)
        .await
    }

    async fn try_drop(&self, instance: &Instance) -> Result<u32, Refusal> {
        let away = |error: CriError| Refusal::RuntimeUnavailable {
            message: ErrorChain(&error).to_string(),
        };
        let listed = self.cri.list_instances(instance).await.map_err(away)?;
        let dead = judge_drop(instance, &self.unfinished_stops().await?, listed)?;
        let logs = match dead.last() {
            Some(newest) => self.log_folder(instance, newest).await,
            None => None,
        };
        let mut count = 0;
        for container_id in &dead {
            self.cri.remove(container_id).await.map_err(away)?;
            count += 1;
        }
        if let Some(folder) = logs
            && let Err(error) = remove_old_logs(&folder).await
        {
            // They are nobody's, and go with the pod at the latest.
            warn!(folder = %folder.display(), error = %ErrorChain(&error), "Old logs were not removed");
        }
        Ok(count)
    }

    /// The stops that have not ended; the journal is waited for.
    async fn unfinished_stops(&self) -> Result<Vec<UnfinishedStop>, Refusal> {
        let mut unfinished = self.unfinished.clone();
        let known = unfinished.wait_for(Option::is_some).await;
        let known = known.ok().and_then(|known| known.clone());
        known.ok_or_else(|| Refusal::RuntimeUnavailable {
            message: "the journal could not be read".to_owned(),
        })
    }

    /// The folder of a container's logs, if it is one that holds nothing else.
    async fn log_folder(&self, instance: &Instance, newest: &ContainerId) -> Option<PathBuf> {
        let path = match self.cri.log_path(newest).await {
            Ok(path) => path?,
            Err(error) => {
                debug!(error = %ErrorChain(&error), "Log path is not known");
                return None;
            }
        };
        let folder = path.parent()?;
        is_log_folder(folder, instance).then(|| folder.to_owned())
    }
}

/// Whether a folder is `<namespace>_<pod>_<uid>/<container>`, as the kubelet makes them.
fn is_log_folder(folder: &Path, instance: &Instance) -> bool {
    let Instance {
        namespace,
        pod,
        pod_uid,
        container,
        ..
    } = instance;
    folder.ends_with(Path::new(&format!("{namespace}_{pod}_{pod_uid}")).join(container.as_str()))
}

async fn remove_old_logs(folder: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    let mut entries = fs::read_dir(folder).await?;
    while let Some(entry) = entries.next_entry().await? {
        // A name that is no text is no log.
        names.extend(entry.file_name().into_string());
    }
    for name in logs_to_remove(&names) {
        match fs::remove_file(folder.join(name)).await {
            Ok(()) => {}
            // The kubelet rotates logs too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance() -> Instance {
        Instance {
            namespace: "shop".into(),
            pod: "web".into(),
            pod_uid: "uid".into(),
            container: "app".into(),
            container_id: "1".into(),
            restart_count: 0,
        }
    }

    #[test]
    fn only_the_containers_own_folder_is_swept() {
        let is = |folder: &str| is_log_folder(Path::new(folder), &instance());
        assert!(is("/var/log/pods/shop_web_uid/app"));
        assert!(!is("/var/log/pods/shop_web_other/app"));
        assert!(!is("/var/log/pods/shop_web_uid/application"));
        assert!(!is("/var/log"));
    }

    #[tokio::test]
    async fn old_logs_go_and_what_is_no_log_stays() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["0.log", "1.log", "2.log", "3.log", "notes"] {
            fs::write(folder.path().join(name), name).await.unwrap();
        }
        remove_old_logs(folder.path()).await.unwrap();
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["2.log", "3.log", "notes"]);
    }
}
