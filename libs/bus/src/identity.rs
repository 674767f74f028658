//! Who we are at NATS.
//!
//! Owns the secret's files: each is read again for each connection, so that a Secret may be renewed and needs no restart.
//! No secret is kept.

use std::path::{Path, PathBuf};

use async_nats::{Auth, AuthError};
use nkeys::KeyPair;

use crate::Args;

/// An identity and the file with its secret.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// The password is in the file's first line.
    User { name: String, password: PathBuf },
    /// The seed is in the file's first line.
    Nkey { seed: PathBuf },
    /// A JWT and the seed of its nkey, as NATS' tools write them.
    Credentials { file: PathBuf },
}

/// Why a secret is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("failed to read {path}")]
    Read {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} does not hold {allowed}")]
    Content { path: String, allowed: &'static str },
}

// === impl Identity ===

impl Identity {
    /// `None`: the server asks for nothing.
    pub(crate) fn of(args: &Args) -> Option<Self> {
        if let (Some(name), Some(password)) = (&args.nats_user, &args.nats_password_file) {
            let (name, password) = (name.clone(), password.clone());
            return Some(Self::User { name, password });
        }
        if let Some(seed) = &args.nats_nkey_file {
            return Some(Self::Nkey { seed: seed.clone() });
        }
        let file = args.nats_credentials.clone()?;
        Some(Self::Credentials { file })
    }

    /// What proves it to a server that asks with this nonce.
    pub(crate) async fn prove(&self, nonce: &[u8]) -> Result<Auth, SecretError> {
        let mut auth = Auth::new();
        match self {
            Self::User { name, password } => {
                let text = read(password).await?;
                auth.username = Some(name.clone());
                auth.password = Some(first_line(&text).to_owned());
            }
            Self::Nkey { seed } => {
                let text = read(seed).await?;
                let allowed = "an nkey seed (SU…) in its first line";
                let key = KeyPair::from_seed(first_line(&text)).ok();
                let key = key.ok_or_else(|| unusable(seed, allowed))?;
                auth.signature = key.sign(nonce).ok();
                auth.nkey = Some(key.public_key());
            }
            Self::Credentials { file } => {
                let text = read(file).await?;
                let allowed = "a JWT and an nkey seed (SU…), each between dashed lines";
                let mut blocks = blocks(&text);
                let both = blocks.next().zip(blocks.next());
                let both = both.and_then(|(jwt, seed)| Some((jwt, KeyPair::from_seed(seed).ok()?)));
                let (jwt, key) = both.ok_or_else(|| unusable(file, allowed))?;
                auth.signature = key.sign(nonce).ok();
                auth.jwt = Some(jwt.to_owned());
            }
        }
        Ok(auth)
    }

    /// The same, in the library's words; it hands on only text.
    pub(crate) async fn answer(self, nonce: Vec<u8>) -> Result<Auth, AuthError> {
        self.prove(&nonce).await.map_err(|error| match &error {
            SecretError::Read { source, .. } => AuthError::new(format!("{error}: {source}")),
            SecretError::Content { .. } => AuthError::new(&error),
        })
    }
}

async fn read(path: &Path) -> Result<String, SecretError> {
    let text = tokio::fs::read_to_string(path).await;
    text.map_err(|source| SecretError::Read {
        path: path.display().to_string(),
        source,
    })
}

fn unusable(path: &Path, allowed: &'static str) -> SecretError {
    let path = path.display().to_string();
    SecretError::Content { path, allowed }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

/// The lines that stand alone between two dashed ones.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let is_dashed = |line: &str| line.starts_with("---");
    let lines = || text.lines().map(str::trim);
    let triples = lines().zip(lines().skip(1)).zip(lines().skip(2));
    triples.filter_map(move |((above, line), below)| {
        let is_content = !line.is_empty() && !is_dashed(line);
        (is_dashed(above) && is_content && is_dashed(below)).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        (folder, path)
    }

    fn new_seed() -> String {
        KeyPair::new_user().seed().unwrap()
    }

    fn credentials(jwt: &str, seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             ************************* IMPORTANT *************************\n\
             NKEY Seed printed below can be used to sign and prove identity.\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }

    #[tokio::test]
    async fn a_renewed_secret_counts_at_once() {
        let (_folder, path) = file("secret");
        let mut args = Args::at("nats://127.0.0.1:1");
        args.nats_user = Some("node".to_owned());
        args.nats_password_file = Some(path.clone());
        let user = Identity::of(&args).unwrap();
        for password in ["old", "new"] {
            std::fs::write(&path, format!("{password}\n")).unwrap();
            let auth = user.prove(b"nonce").await.unwrap();
            assert_eq!(auth.username.as_deref(), Some("node"));
            assert_eq!(auth.password.as_deref(), Some(password));
        }
        let mut args = Args::at("nats://127.0.0.1:1");
        args.nats_credentials = Some(path.clone());
        let identity = Identity::of(&args).unwrap();
        for (jwt, line_end) in [("old.jwt-1", "\n"), ("new.jwt-2", "\r\n")] {
            let text = credentials(jwt, &new_seed()).replace('\n', line_end);
            std::fs::write(&path, text).unwrap();
            let auth = identity.prove(b"nonce").await.unwrap();
            assert_eq!(auth.jwt.as_deref(), Some(jwt));
            assert!(auth.signature.is_some() && auth.nkey.is_none());
        }
    }

    #[tokio::test]
    async fn an_nkey_signs_what_the_server_asks() {
        let (_folder, path) = file("seed");
        let pair = KeyPair::new_user();
        std::fs::write(&path, format!("{}\n", pair.seed().unwrap())).unwrap();
        let mut args = Args::at("nats://127.0.0.1:1");
        args.nats_nkey_file = Some(path);
        let auth = Identity::of(&args).unwrap().prove(b"nonce").await.unwrap();
        assert_eq!(auth.nkey, Some(pair.public_key()));
        pair.verify(b"nonce", &auth.signature.unwrap()).unwrap();
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_secret_is_told_with_its_file() {
        let (_folder, path) = file("secret");
        let identities = || {
            let (seed, file) = (path.clone(), path.clone());
            [Identity::Nkey { seed }, Identity::Credentials { file }]
        };
        for identity in identities() {
            let error = identity.answer(Vec::new()).await.err().unwrap();
            assert!(error.to_string().contains("failed to read /"), "{error}");
            assert!(error.to_string().contains("No such file"), "{error}");
        }
        for content in [
            "",
            "-----\nx\n-----\n",
            &KeyPair::new_user().public_key(),
            &credentials("a", "x"),
        ] {
            std::fs::write(&path, content).unwrap();
            for identity in identities() {
                let error = identity.prove(b"").await.err().unwrap();
                assert!(error.to_string().contains("does not hold a"), "{error}");
            }
        }
        assert!(Identity::of(&Args::at("nats://127.0.0.1:1")).is_none());
    }
}
