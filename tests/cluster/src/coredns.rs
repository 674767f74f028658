//! The name server, deployed as in any cluster.

use anyhow::{Context, Result};

use crate::{folders::Folders, images, kubectl, plan::NAME_SERVER, programs::Programs};

const MANIFEST: &str = include_str!("../manifests/coredns.yaml");

pub(crate) async fn deploy(folders: &Folders, programs: &Programs) -> Result<()> {
    let manifest = MANIFEST
        .replace("IMAGE", &images::coredns_name())
        .replace("ADDRESS", &NAME_SERVER.to_string());
    kubectl::apply(folders, programs, &manifest)
        .await
        .context("failed to deploy CoreDNS")
}
