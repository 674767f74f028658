//! The container runtime's socket.
//!
//! Owns the list of default paths and the choice among them. Each connection tries them again, so that a runtime that
//! starts later, or restarts, is found without a restart of this process.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use tokio::net::UnixStream;

/// The sockets of containerd, k3s, CRI-O, cri-dockerd and k0s.
const DEFAULT_PATHS: [&str; 6] = [
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/var/run/cri-dockerd.sock",
    "/run/k0s/containerd.sock",
];

/// The socket paths to try, in order.
#[derive(Clone, Debug)]
pub struct SocketCandidates(Vec<PathBuf>);

#[derive(Debug, thiserror::Error)]
pub struct NoSocket(Vec<(PathBuf, io::Error)>);

// === impl SocketCandidates ===

impl SocketCandidates {
    /// The configured path, or else the default ones.
    pub fn new(configured: Option<&Path>) -> Self {
        match configured {
            Some(path) => Self(vec![without_scheme(path)]),
            None => Self(DEFAULT_PATHS.map(PathBuf::from).to_vec()),
        }
    }

    /// Connects to the first candidate that accepts a connection.
    ///
    /// # Errors
    /// If none does; the error lists each path and why it failed.
    pub async fn connect(&self) -> Result<UnixStream, NoSocket> {
        let mut failures = Vec::new();
        for path in &self.0 {
            match UnixStream::connect(path).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failures.push((path.clone(), error)),
            }
        }
        Err(NoSocket(failures))
    }
}

// === impl NoSocket ===

impl fmt::Display for NoSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no container runtime accepted a connection; tried ")?;
        for (index, (path, error)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let why = match error.kind() {
                io::ErrorKind::NotFound => "does not exist".to_owned(),
                io::ErrorKind::ConnectionRefused => "no listener".to_owned(),
                io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                _ => error.to_string(),
            };
            write!(f, "{separator}{} ({why})", path.display())?;
        }
        f.write_str("; set --cri-socket to use another path")
    }
}

/// The flags of the kubelet and crictl spell the socket as `unix:///path`; users paste that form.
fn without_scheme(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    match text.strip_prefix("unix://") {
        Some(rest) => PathBuf::from(rest),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lists_each_path_with_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("none.sock");
        let error = SocketCandidates::new(Some(&missing))
            .connect()
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("none.sock (does not exist)") && text.contains("--cri-socket"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn connects_to_the_first_socket_that_accepts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("there.sock");
        let _listener = tokio::net::UnixListener::bind(&path).unwrap();
        let candidates = SocketCandidates(vec![directory.path().join("none.sock"), path]);
        candidates.connect().await.unwrap();
    }

    #[test]
    fn ignores_the_unix_scheme() {
        for text in ["unix:///run/x.sock", "/run/x.sock"] {
            assert_eq!(without_scheme(Path::new(text)), Path::new("/run/x.sock"));
        }
    }

    #[tokio::test]
    async fn lists_every_default_path() {
        let failures = DEFAULT_PATHS.map(|path| {
            (
                PathBuf::from(path),
                io::Error::from(io::ErrorKind::NotFound),
            )
        });
        let text = NoSocket(failures.into()).to_string();
        assert!(
            DEFAULT_PATHS.iter().all(|path| text.contains(path)),
            "{text}"
        );
    }
}
