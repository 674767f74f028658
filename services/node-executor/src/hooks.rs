//! Runs preStop hooks as the kubelet does.
//!
//! Owns the four kinds of hook and their limit. Whether a hook runs at all, and for how long, is decided in
//! `node-rules`. Where the kubelet's ways are named, they are those of its `lifecycle` package.

mod http_get;

use std::time::Duration;

use model::{
    error_chain::ErrorChain,
    order::{Instance, PreStop},
};
use node_rules::HookResult;
use tokio::{net::TcpStream, time};
use tracing::{Instrument, info_span};

use self::http_get::{HttpGet, HttpGetError};
use crate::cri::{Cri, CriError};

/// As much of a failed command's output as an event can bear.
const MAX_OUTPUT: usize = 200;

#[derive(Debug, thiserror::Error)]
enum HookError {
    #[error("failed to run the command")]
    Exec(#[source] CriError),
    #[error("the command ended with exit code {exit_code}: {output}")]
    ExitCode { exit_code: i32, output: String },
    #[error("failed to ask for the pod's address")]
    Address(#[source] CriError),
    #[error("the pod has no address of its own and the hook names no host")]
    NoAddress,
    #[error("failed to call the URL")]
    HttpGet(#[source] HttpGetError),
    #[error("failed to connect to {host}:{port}")]
    TcpSocket {
        host: String,
        port: u16,
        #[source]
        source: std::io::Error,
    },
}

/// Runs a hook to its end, or cuts it off at the limit.
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
    let work = try_hook(cri, instance, hook, limit).instrument(span);
    match time::timeout(limit, work).await {
        Ok(Ok(())) => HookResult::Succeeded,
        Ok(Err(error)) => HookResult::Failed {
            message: ErrorChain(&error).to_string(),
        },
        Err(_) => HookResult::CutOff,
    }
}

async fn try_hook(
    cri: &Cri,
    instance: &Instance,
    hook: &PreStop,
    limit: Duration,
) -> Result<(), HookError> {
    match hook {
        PreStop::Exec { command } => exec(cri, instance, command, limit).await,
        PreStop::HttpGet {
            scheme,
            host,
            port,
            path,
            headers,
        } => {
            let host = host_or_pod(cri, instance, host.as_deref()).await?;
            let call = HttpGet {
                host: &host,
                port: *port,
                path,
                headers,
            };
            call.call(*scheme).await.map_err(HookError::HttpGet)
        }
        PreStop::TcpSocket { host, port } => {
            let host = host_or_pod(cri, instance, host.as_deref()).await?;
            match TcpStream::connect((host.as_str(), *port)).await {
                Ok(_connected) => Ok(()),
                Err(source) => Err(HookError::TcpSocket {
                    host,
                    port: *port,
                    source,
                }),
            }
        }
        PreStop::Sleep { duration } => {
            time::sleep(*duration).await;
            Ok(())
        }
    }
}

async fn exec(
    cri: &Cri,
    instance: &Instance,
    command: &[String],
    limit: Duration,
) -> Result<(), HookError> {
    let ended = cri
        .exec(&instance.container_id, command, limit)
        .await
        .map_err(HookError::Exec)?;
    if ended.exit_code == 0 {
        return Ok(());
    }
    let output = if ended.stderr.is_empty() {
        &ended.stdout
    } else {
        &ended.stderr
    };
    Err(HookError::ExitCode {
        exit_code: ended.exit_code,
        output: excerpt(output),
    })
}

/// The kubelet's rule: no host means the pod's own address.
async fn host_or_pod(
    cri: &Cri,
    instance: &Instance,
    host: Option<&str>,
) -> Result<String, HookError> {
    if let Some(host) = host.filter(|host| !host.is_empty()) {
        return Ok(host.to_owned());
    }
    cri.pod_address(&instance.pod_uid)
        .await
        .map_err(HookError::Address)?
        .ok_or(HookError::NoAddress)
}

fn excerpt(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.trim().chars().take(MAX_OUTPUT).collect()
}

#[cfg(test)]
mod tests;
