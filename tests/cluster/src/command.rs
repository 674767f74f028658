//! Runs outside programs to their end, and says what they said when they fail.

use std::{ffi::OsStr, process::Stdio};

use anyhow::{Context, Result, bail};
use tokio::{io::AsyncWriteExt, process::Command};

/// Where Debian keeps the programs that the cluster's parts call (iptables, runc, ip).
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Proxies and certificate stores of the machine, which must not come between us and the cluster.
pub const FOREIGN_VARIABLES: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
];

/// A command with nothing of our environment but the path.
pub(crate) fn bare(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", SYSTEM_PATH)
        .env("HOME", "/root")
        .kill_on_drop(true);
    command
}

/// Runs to the end and gives what was printed.
pub(crate) async fn output(command: &mut Command) -> Result<String> {
    output_of(command, "").await
}

/// As `output`, with something to read.
pub(crate) async fn output_of(command: &mut Command, input: &str) -> Result<String> {
    let shown = show(command);
    let mut child = command
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("failed to start `{shown}`"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early says why on stderr, which is worth more than our broken pipe.
        drop(stdin.write_all(input.as_bytes()).await);
    }
    let output = child
        .wait_with_output()
        .await
        .with_context(|| format!("failed to run `{shown}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}): {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn show(command: &Command) -> String {
    let command = command.as_std();
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(OsStr::to_string_lossy));
    words.join(" ")
}

/// Takes out of a cargo's environment what the cargo that runs us says of our own crate: build scripts that
/// look at it (`ring`'s) would run anew each time, and everything above them would be built again.
pub fn as_if_called_by_hand(cargo: &mut Command) {
    const OF_OUR_CRATE: [&str; 4] = [
        "CARGO_MANIFEST_",
        "CARGO_PKG_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
    ];
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_OUR_CRATE.iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
}
