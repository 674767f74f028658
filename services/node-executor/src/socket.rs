//! Where the container runtime's socket is.
//!
//! Owns the list of usual places and the choice among them, made anew at each connection: a runtime that
//! comes later, or comes back, is found without a restart.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use tokio::net::UnixStream;

/// The sockets of containerd, k3s, CRI-O and cri-dockerd, most common first.
const USUAL_PLACES: [&str; 6] = [
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/cri-dockerd.sock",
    "/var/run/cri-dockerd.sock",
    "/run/k0s/containerd.sock",
];

/// The places to try, in order.
#[derive(Clone, Debug)]
pub(crate) struct Places(Vec<PathBuf>);

/// No place has a socket that takes a connection.
#[derive(Debug, thiserror::Error)]
pub(crate) struct NoSocket(Vec<(PathBuf, io::Error)>);

// === impl Places ===

impl Places {
    /// The place that was asked for, or the usual ones.
    pub(crate) fn new(wanted: Option<&Path>) -> Self {
        match wanted {
            Some(path) => Self(vec![without_scheme(path)]),
            None => Self(USUAL_PLACES.map(PathBuf::from).to_vec()),
        }
    }

    /// Connects to the first place that takes a connection.
    ///
    /// # Errors
    /// None does; the error says where was looked.
    pub(crate) async fn connect(&self) -> Result<UnixStream, NoSocket> {
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
        f.write_str("no container runtime takes a connection; looked at ")?;
        for (index, (path, error)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let why = match error.kind() {
                io::ErrorKind::NotFound => "does not exist".to_owned(),
                io::ErrorKind::ConnectionRefused => "nobody listens".to_owned(),
                io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                _ => error.to_string(),
            };
            write!(f, "{separator}{} ({why})", path.display())?;
        }
        f.write_str("; set --cri-socket if it is elsewhere")
    }
}

/// The kubelet's and crictl's flags spell the socket as `unix:///path`; people paste that.
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
    async fn says_where_it_looked_and_what_it_found_there() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("none.sock");
        let error = Places::new(Some(&missing)).connect().await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("none.sock (does not exist)") && text.contains("--cri-socket"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn takes_the_first_place_that_answers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("there.sock");
        let _listener = tokio::net::UnixListener::bind(&path).unwrap();
        let places = Places(vec![directory.path().join("none.sock"), path]);
        places.connect().await.unwrap();
    }

    #[test]
    fn a_pasted_scheme_does_no_harm() {
        for text in ["unix:///run/x.sock", "/run/x.sock"] {
            assert_eq!(without_scheme(Path::new(text)), Path::new("/run/x.sock"));
        }
    }

    #[tokio::test]
    async fn names_every_usual_place() {
        let failures = USUAL_PLACES.map(|path| {
            (
                PathBuf::from(path),
                io::Error::from(io::ErrorKind::NotFound),
            )
        });
        let text = NoSocket(failures.into()).to_string();
        assert!(
            USUAL_PLACES.iter().all(|path| text.contains(path)),
            "{text}"
        );
    }
}
