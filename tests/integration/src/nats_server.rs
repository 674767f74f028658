//! A NATS server of one test.
//!
//! Owns its process, its folder and its port: chosen by the system at the first start, the same at each later
//! one. It is killed by its process id when the test lets go of it.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result};
use cluster::{Folders, Programs};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::eventually;

/// Where Debian's package puts it.
const DEBIAN_PROGRAM: &str = "/usr/sbin/nats-server";

/// Which server to test against: the one we ship with, or the oldest we support.
#[derive(Clone, Copy, Debug)]
pub enum Release {
    /// The one that the test cluster builds.
    Current,
    /// 2.9 of the Debian package; taken from `PODWRIGHT_OLD_NATS_SERVER` when that is set.
    Oldest,
}

/// A running server, or one that was stopped and can be started again.
pub struct NatsServer {
    program: PathBuf,
    folder: TempDir,
    /// More configuration, in NATS' own format.
    settings: String,
    /// 0 until the system has chosen.
    port: u16,
    process: Option<Child>,
}

// === impl NatsServer ===

impl NatsServer {
    /// Starts a server without authentication and waits until it listens.
    pub async fn start(release: Release) -> Result<Self> {
        Self::start_with(release, |_| String::new()).await
    }

    /// Starts a server with settings of its own; files they name may be written to the folder given.
    pub async fn start_with(
        release: Release,
        settings: impl FnOnce(&Path) -> String,
    ) -> Result<Self> {
        let program = match release {
            Release::Current => {
                Programs::build_one(&Folders::from_environment()?, "nats-server").await?
            }
            Release::Oldest => std::env::var_os("PODWRIGHT_OLD_NATS_SERVER")
                .map_or_else(|| PathBuf::from(DEBIAN_PROGRAM), PathBuf::from),
        };
        let folder = tempfile::tempdir().context("failed to make the server's folder")?;
        let settings = settings(folder.path());
        let mut server = Self {
            program,
            folder,
            settings,
            port: 0,
            process: None,
        };
        server.start_again().await?;
        Ok(server)
    }

    /// Starts the server on its port and waits until it listens.
    pub async fn start_again(&mut self) -> Result<()> {
        let port = match self.port {
            0 => -1, // NATS' word for any port
            port => i32::from(port),
        };
        let configuration = self.folder.path().join("server.conf");
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\nports_file_dir: {:?}\n{}\n",
            self.folder.path(),
            self.settings
        );
        tokio::fs::write(&configuration, text).await?;
        let log = std::fs::File::create(self.log())?;
        let child = Command::new(&self.program)
            .arg("-c")
            .arg(&configuration)
            .stdin(Stdio::null())
            .stderr(Stdio::from(log.try_clone()?))
            .stdout(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start {}", self.program.display()))?;
        let ports = self.ports_file(child.id().context("the server ended at once")?);
        self.process = Some(child);
        self.port = eventually("the server listens", async || {
            let text = tokio::fs::read_to_string(&ports).await.ok()?;
            port_in(&text)
        })
        .await;
        Ok(())
    }

    /// Kills the server and waits for its end: connections break at once, with no word to the clients.
    pub async fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.process.take() else {
            return Ok(());
        };
        let ports = child.id().map(|id| self.ports_file(id));
        child.kill().await.context("failed to kill the server")?;
        if let Some(ports) = ports {
            // The next server may get the same process id.
            drop(tokio::fs::remove_file(ports).await);
        }
        Ok(())
    }

    /// Stops the process in its tracks: connections stay open, nothing is answered.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::SIGSTOP)
    }

    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::SIGCONT)
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The server's folder, which is removed with it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until the server has written this since its last start.
    pub async fn has_logged(&self, words: &str) {
        eventually(words, async || {
            let log = tokio::fs::read_to_string(self.log()).await.ok()?;
            log.contains(words).then_some(())
        })
        .await;
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.process.as_ref().and_then(Child::id);
        let id = i32::try_from(id.context("the server is not running")?)?;
        kill(Pid::from_raw(id), signal).with_context(|| format!("failed to send {signal}"))
    }

    /// The server writes `<program>_<process id>.ports`.
    fn ports_file(&self, process: u32) -> PathBuf {
        self.folder
            .path()
            .join(format!("nats-server_{process}.ports"))
    }
}

/// The client port in a ports file; `None` while it is half written.
fn port_in(text: &str) -> Option<u16> {
    let ports: serde_json::Value = serde_json::from_str(text).ok()?;
    let url = ports.get("nats")?.get(0)?.as_str()?;
    url.rsplit(':').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_ports_file_has_no_port() {
        assert_eq!(port_in(r#"{"nats":["nats://127.0.0.1:4711"]}"#), Some(4711));
        assert_eq!(port_in(r#"{"nats":["nats://127"#), None);
        assert_eq!(port_in(""), None);
    }
}
