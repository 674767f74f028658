//! The shared libraries a program needs beside it, as the system's loader lists them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command;

/// Paths on this machine; empty for a static program.
pub(super) async fn of(binary: &Path) -> Result<Vec<PathBuf>> {
    let output = command::bare("ldd")
        .arg(binary)
        .output()
        .await
        .with_context(|| format!("failed to list the libraries of {}", binary.display()))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    // ldd fails on a static program, and says this.
    if said.contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    parse(&listed)
}

/// Reads lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`.
fn parse(listed: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for line in listed.lines().map(str::trim) {
        if line.ends_with("=> not found") {
            bail!("a library is missing on this machine: {line}");
        }
        let path = line.split_once("=> ").map_or(line, |(_, path)| path);
        if path.starts_with('/') {
            found.extend(path.split_whitespace().next().map(PathBuf::from));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_and_the_kernels_own_library_is_not() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                      \tlibgcc_s.so.1 => /lib/x86_64-linux-gnu/libgcc_s.so.1 (0x00007f)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libgcc_s.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(parse(listed).unwrap(), expected.map(PathBuf::from));
        assert_eq!(
            parse("\tstatically linked\n").unwrap(),
            Vec::<PathBuf>::new()
        );
        assert!(parse("\tlibx.so => not found\n").is_err());
    }
}
