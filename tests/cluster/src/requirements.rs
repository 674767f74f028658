//! What the machine must have: checked first, so that a person is told what to install.

use std::{env, path::Path};

use anyhow::{Result, bail};

/// Programs of the machine, and the Debian packages that have them.
const PROGRAMS: &[(&str, &str)] = &[
    ("runc", "runc"),
    ("busybox", "busybox-static"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("setsid", "util-linux"),
];

const NETWORK_PLUGIN: (&str, &str) = ("/usr/lib/cni/bridge", "containernetworking-plugins");

/// Fails when the cluster cannot run here.
pub(crate) fn check() -> Result<()> {
    if !nix::unistd::geteuid().is_root() {
        bail!("the test cluster makes namespaces and mounts: run this as root");
    }
    let mut missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !on_path(program, crate::command::SYSTEM_PATH))
        .map(|(_, package)| *package)
        .collect();
    if !Path::new(NETWORK_PLUGIN.0).exists() {
        missing.push(NETWORK_PLUGIN.1);
    }
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    bail!("Debian packages are missing; install them by `apt-get install {missing}`")
}

/// Fails when programs and images cannot be built here.
pub(crate) fn check_build() -> Result<()> {
    let path = env::var("PATH").unwrap_or_default();
    for (program, package) in [("go", "Go 1.26 or later"), ("cc", "the Debian package gcc")] {
        if !on_path(program, &path) {
            bail!("`{program}` is not on the path: install {package}");
        }
    }
    Ok(())
}

fn on_path(program: &str, path: &str) -> bool {
    env::split_paths(path).any(|folder| folder.join(program).is_file())
}
