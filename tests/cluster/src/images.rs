//! Container images made here, as archives that `ctr images import` and `docker load` read.
//!
//! There is no registry: base images come from the machine's own files, the others from programs
//! we built. An archive is named by a hash of what it is made from and kept in the cache.

mod archive;
mod base;
mod libraries;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::archive::{Archive, Tree};
use crate::{
    folders,
    folders::Folders,
    programs::{
        Programs,
        catalogue::{COREDNS_VERSION, JAEGER_VERSION, NATS_VERSION},
    },
};

/// The image of every pod's sandbox.
pub const PAUSE: &str = "localhost/pause:1";
pub const BUSYBOX: &str = "docker.io/library/busybox:latest";

pub(crate) fn coredns_name() -> String {
    format!("localhost/coredns:{COREDNS_VERSION}")
}

/// An archive, and the name that its image gets.
#[derive(Clone, Debug)]
pub struct Image {
    pub name: String,
    pub archive: PathBuf,
}

impl Image {
    /// The image in an archive that `docker save`, or this crate, wrote.
    pub fn from_archive(archive: impl Into<PathBuf>) -> Result<Self> {
        let archive = std::path::absolute(archive.into())?;
        Ok(Self {
            name: archive::name_in(&archive)?,
            archive,
        })
    }
}

/// Makes whatever is not in the cache yet of the images that every node has.
pub(crate) async fn build_all(folders: &Folders, programs: &Programs) -> Result<Vec<Image>> {
    let image = |program, name: &str| from_program(folders, programs, program, name);
    Ok(vec![
        base::pause(folders).await?,
        base::busybox(folders).await?,
        image("coredns", &coredns_name())?,
        image("nats-server", &format!("localhost/nats:{NATS_VERSION}"))?,
        image("jaeger", &format!("localhost/jaeger:{JAEGER_VERSION}"))?,
    ])
}

/// Packs one program as an image: beside it the libraries it is linked to, an otherwise empty
/// `/etc` with the users root and nonroot (65532), `/tmp`, and a folder for certificates.
///
/// The program lies in `/usr/local/bin`; without `entrypoint` it is what the image runs.
pub async fn from_binary(
    folders: &Folders,
    name: &str,
    binary: &Path,
    entrypoint: &[&str],
) -> Result<Image> {
    let content =
        std::fs::read(binary).with_context(|| format!("failed to read {}", binary.display()))?;
    let inside = Path::new("usr/local/bin").join(binary.file_name().context("no program's path")?);
    let mut tree = Tree::with_users();
    for library in libraries::of(binary).await? {
        tree.copy(&library, &library)?;
    }
    tree.program(&inside, content);
    let entrypoint = if entrypoint.is_empty() {
        vec![format!("/{}", inside.display())]
    } else {
        entrypoint.iter().map(|&word| word.to_owned()).collect()
    };
    let key = tree.key(&entrypoint);
    keep(folders, name, &key, || Ok((tree, entrypoint)))
}

/// As `from_binary`, for a program of ours: its cache folder's name already is a hash, so that a
/// warm start need not read it.
fn from_program(
    folders: &Folders,
    programs: &Programs,
    program: &str,
    name: &str,
) -> Result<Image> {
    let path = programs.path(program)?;
    let parent = path
        .parent()
        .and_then(Path::file_name)
        .context("a program lies in a folder")?;
    let key = parent.to_string_lossy().into_owned();
    keep(folders, name, &key, || {
        let mut tree = Tree::with_users();
        let inside = Path::new("usr/local/bin").join(program);
        tree.program(&inside, std::fs::read(&path)?);
        Ok((tree, vec![format!("/{}", inside.display())]))
    })
}

/// The archive of that key, written if it is missing; it appears complete or not at all.
fn keep(
    folders: &Folders,
    name: &str,
    key: &str,
    make: impl FnOnce() -> Result<(Tree, Vec<String>)>,
) -> Result<Image> {
    let archive = folders
        .images()
        .join(format!("{}-{key}.tar", file_name(name)));
    if !archive.is_file() {
        let (tree, entrypoint) = make()?;
        folders::create(&folders.images())?;
        let mut file = tempfile::NamedTempFile::new_in(folders.images())?;
        Archive {
            name,
            tree: &tree,
            entrypoint: &entrypoint,
        }
        .write(file.as_file_mut())
        .with_context(|| format!("failed to make the image {name}"))?;
        file.persist(&archive)
            .with_context(|| format!("failed to keep {}", archive.display()))?;
    }
    Ok(Image {
        name: name.to_owned(),
        archive,
    })
}

/// An image's name as part of a file's.
fn file_name(image: &str) -> String {
    image.replace(
        |letter: char| !letter.is_ascii_alphanumeric() && letter != '.',
        "-",
    )
}
