//! The two images with no program of ours in them: `pause` for sandboxes, and Debian's busybox.

use std::path::Path;

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{BUSYBOX, Image, PAUSE, archive::Tree, keep};
use crate::{command, folders, folders::Folders};

const PAUSE_SOURCE: &str = include_str!("../../programs/pause/pause.c");
const BUSYBOX_PROGRAM: &str = "/bin/busybox";

pub(super) async fn pause(folders: &Folders) -> Result<Image> {
    let mut source = Tree::default();
    source.program(Path::new("pause.c"), PAUSE_SOURCE.into());
    let key = source.key(&[]);
    let work = tempfile::tempdir()?;
    let (code, program) = (work.path().join("pause.c"), work.path().join("pause"));
    if !folders
        .images()
        .join(format!("{}-{key}.tar", super::file_name(PAUSE)))
        .is_file()
    {
        folders::write(&code, PAUSE_SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler
            .args(["-static", "-Os", "-s", "-o"])
            .arg(&program)
            .arg(&code);
        command::output(&mut compiler)
            .await
            .context("failed to compile pause")?;
    }
    keep(folders, PAUSE, &key, || {
        let mut tree = Tree::default();
        tree.copy(&program, Path::new("pause"))?;
        Ok((tree, vec!["/pause".to_owned()]))
    })
}

/// Busybox with a link for each of its applets, and a shell to start with.
pub(super) async fn busybox(folders: &Folders) -> Result<Image> {
    let mut tree = Tree::with_users();
    tree.copy(Path::new(BUSYBOX_PROGRAM), Path::new("bin/busybox"))?;
    let applets = command::output(command::bare(BUSYBOX_PROGRAM).arg("--list")).await?;
    for applet in applets
        .split_whitespace()
        .filter(|applet| *applet != "busybox")
    {
        tree.link(&Path::new("bin").join(applet), Path::new("busybox"));
    }
    // Scripts and probes name these by their usual full path.
    for (path, to) in [("usr/bin/env", "/bin/env"), ("usr/bin/nc", "/bin/nc")] {
        tree.link(Path::new(path), Path::new(to));
    }
    let key = tree.key(&["sh".to_owned()]);
    keep(folders, BUSYBOX, &key, || Ok((tree, Vec::new())))
}
