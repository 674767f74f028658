//! Removes dead instances and their old logs.
//!
//! Owns the calls and the log files. `node-rules` decides what is removed.

use std::{
    io,
    path::{Path, PathBuf},
};

use cri::{Cri, CriError};
use model::{error_chain::ErrorChain, ids::ContainerId, order::Instance};
use node_rules::logs_to_remove;
use tokio::fs;
use tracing::{debug, warn};

/// Removes instances in this order, then the container's old logs. Returns the number of instances.
pub(super) async fn remove_instances(
    cri: &Cri,
    instance: &Instance,
    container_ids: &[ContainerId],
) -> Result<u32, CriError> {
    let logs = match container_ids.last() {
        Some(newest) => log_folder(cri, instance, newest).await,
        None => None,
    };
    let mut count = 0;
    for container_id in container_ids {
        cri.remove(container_id).await?;
        count += 1;
    }
    if let Some(folder) = logs
        && let Err(error) = remove_old_logs(&folder).await
    {
        // No container needs them, and the kubelet removes them with the pod.
        warn!(folder = %folder.display(), %error, "Failed to remove old logs; they stay until the pod is removed");
    }
    Ok(count)
}

/// Returns the folder of a container's logs; `None` if it may hold other files.
async fn log_folder(cri: &Cri, instance: &Instance, newest: &ContainerId) -> Option<PathBuf> {
    let path = match cri.log_path(newest).await {
        Ok(path) => path?,
        Err(error) => {
            debug!(error = %ErrorChain(&error), "Failed to read the log path; old logs stay");
            return None;
        }
    };
    let folder = path.parent()?;
    is_log_folder(folder, instance).then(|| folder.to_owned())
}

/// True if a folder is `<namespace>_<pod>_<uid>/<container>`, as the kubelet names them.
fn is_log_folder(folder: &Path, instance: &Instance) -> bool {
    let Instance { namespace, pod, .. } = instance;
    let pod_folder = format!("{namespace}_{pod}_{}", instance.pod_uid);
    folder.ends_with(Path::new(&pod_folder).join(instance.container.as_str()))
}

async fn remove_old_logs(folder: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    let mut entries = fs::read_dir(folder).await?;
    while let Some(entry) = entries.next_entry().await? {
        // A name that is not UTF-8 is not a log.
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

    #[test]
    fn only_the_containers_own_log_folder_is_accepted() {
        let is = |folder: &str| is_log_folder(Path::new(folder), &testkit::instance("app", "1"));
        assert!(is("/var/log/pods/shop_web_pod-uid/app"));
        assert!(!is("/var/log/pods/shop_web_other/app"));
        assert!(!is("/var/log/pods/shop_web_pod-uid/application"));
        assert!(!is("/var/log"));
    }

    #[tokio::test]
    async fn removes_old_logs_and_keeps_other_files() {
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
