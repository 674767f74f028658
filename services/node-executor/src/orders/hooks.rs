//! Runs preStop hooks as the kubelet does.
//!
//! Owns the four kinds of hook and their limit. `node-rules` decides if a hook runs, and for how long. "The kubelet"
//! means its `lifecycle` package.

mod http_get;

use std::time::Duration;

use cri::{Cri, CriError};
use model::{
    error_chain::ErrorChain,
    order::{Instance, PreStop},
};
use node_rules::HookResult;
use tokio::{net::TcpStream, time};
use tracing::{Instrument, info_span};

use self::http_get::{HttpGet, HttpGetError};

/// Characters of a failed command's output that an event shows.
const MAX_OUTPUT: usize = 200;

#[derive(Debug, thiserror::Error)]
enum HookError {
    #[error("failed to run the command")]
    Exec(#[source] CriError),
    #[error("the command ended with exit code {exit_code}: {output}")]
    ExitCode { exit_code: i32, output: String },
    #[error("failed to read the pod's address")]
    Address(#[source] CriError),
    #[error("the pod has no address of its own and the hook names no host")]
    NoAddress,
    #[error("failed to call the URL")]
    HttpGet(#[source] HttpGetError),
    #[error("failed to connect to {0}:{1}")]
    TcpSocket(String, u16, #[source] std::io::Error),
}

/// Runs a hook to its end or to the limit.
pub(crate) async fn run_hook(
    cri: &Cri,
    instance: &Instance,
    hook: &PreStop,
    limit: Duration,
) -> HookResult {
    let kind = match hook {
        PreStop::Exec { .. } => "exec",
        PreStop::HttpGet { .. } => "httpGet",
        PreStop::TcpSocket { .. } => "tcpSocket",
        PreStop::Sleep { .. } => "sleep",
    };
    let span = info_span!("hook", otel.name = format!("hook {kind}"), kind);
    let runner = Runner {
        cri,
        instance,
        limit,
    };
    match time::timeout(limit, runner.run(hook).instrument(span)).await {
        Ok(Ok(())) => HookResult::Succeeded,
        Ok(Err(error)) => HookResult::Failed {
            message: ErrorChain(&error).to_string(),
        },
        Err(_) => HookResult::CutOff,
    }
}

struct Runner<'a> {
    cri: &'a Cri,
    instance: &'a Instance,
    limit: Duration,
}

// === impl Runner ===

impl Runner<'_> {
    async fn run(&self, hook: &PreStop) -> Result<(), HookError> {
        match hook {
            PreStop::Exec { command } => self.exec(command).await,
            PreStop::HttpGet {
                scheme,
                host,
                port,
                path,
                headers,
            } => {
                let call = HttpGet {
                    host: &self.host_or_pod(host.as_deref()).await?,
                    port: *port,
                    path,
                    headers,
                };
                call.call(*scheme).await.map_err(HookError::HttpGet)
            }
            PreStop::TcpSocket { host, port } => {
                let (host, port) = (self.host_or_pod(host.as_deref()).await?, *port);
                let connected = TcpStream::connect((host.as_str(), port)).await.map(drop);
                connected.map_err(|source| HookError::TcpSocket(host, port, source))
            }
            PreStop::Sleep { duration } => {
                time::sleep(*duration).await;
                Ok(())
            }
        }
    }

    async fn exec(&self, command: &[String]) -> Result<(), HookError> {
        let container_id = &self.instance.container_id;
        let ended = self.cri.exec(container_id, command, self.limit).await;
        let ended = ended.map_err(HookError::Exec)?;
        if ended.exit_code == 0 {
            return Ok(());
        }
        let outputs = [&ended.stderr, &ended.stdout];
        let output = outputs.into_iter().find(|output| !output.is_empty());
        Err(HookError::ExitCode {
            exit_code: ended.exit_code,
            output: output.map(|output| excerpt(output)).unwrap_or_default(),
        })
    }

    /// As in the kubelet, an empty host is the pod's address.
    async fn host_or_pod(&self, host: Option<&str>) -> Result<String, HookError> {
        if let Some(host) = host.filter(|host| !host.is_empty()) {
            return Ok(host.to_owned());
        }
        let address = self.cri.pod_address(&self.instance.pod_uid).await;
        let address = address.map_err(HookError::Address)?;
        address.ok_or(HookError::NoAddress)
    }
}

fn excerpt(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.trim().chars().take(MAX_OUTPUT).collect()
}

#[cfg(test)]
mod tests;
