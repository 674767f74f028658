//! Network namespaces: one for the control plane, one per node, joined by a bridge.
//!
//! Nothing leaves them, and the machine's own network is not touched. Pods have namespaces of their
//! own, inside their node's mount namespace, which die with it.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::{
    command::{bare, output, output_of},
    plan::{API_SERVER, CONTROL_PLANE, NodeNumber, PREFIX, SERVICE_RANGE},
};

const NAMESPACES: &str = "/run/netns";
const BRIDGE: &str = "nodes";

/// The argument by which `nsenter` enters a namespace. (`ip netns exec` would mount a fresh /sys,
/// in which the kubelet finds no control groups.)
pub(crate) fn entrance(namespace: &str) -> String {
    format!("--net={NAMESPACES}/{namespace}")
}

pub(crate) fn path(namespace: &str) -> PathBuf {
    PathBuf::from(NAMESPACES).join(namespace)
}

/// The names of all namespaces of ours, also of a run that was killed.
pub(crate) fn ours() -> Vec<String> {
    let entries = fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(PREFIX)).collect()
}

/// The processes in a namespace. (`ip netns pids` would name itself when we are inside.)
pub(crate) fn processes(namespace: &str) -> Vec<i32> {
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let Some(wanted) = identity(&path(namespace)) else {
        return Vec::new();
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let inside = |pid: &i32| identity(Path::new(&format!("/proc/{pid}/ns/net"))) == Some(wanted);
    numbers.filter(inside).collect()
}

/// Creates the control plane's namespace: the bridge and the ways to all pods.
pub(crate) async fn create_control_plane(nodes: &[NodeNumber]) -> Result<()> {
    let mut steps = vec![
        format!("link add {BRIDGE} type bridge"),
        format!("address add {API_SERVER}/24 dev {BRIDGE}"),
        format!("link set {BRIDGE} up"),
        // The proxy's rules send these elsewhere, but a way there must be known before they are asked.
        format!("route add {SERVICE_RANGE} dev {BRIDGE}"),
    ];
    steps.extend(nodes.iter().map(|node| way_to(*node)));
    create(CONTROL_PLANE, &steps).await
}

/// Creates a node's namespace and its cable to the bridge.
pub(crate) async fn create_node(node: NodeNumber, nodes: &[NodeNumber]) -> Result<()> {
    let namespace = node.namespace();
    let mut steps = vec![
        format!(
            "link add eth0 type veth peer name {} netns {CONTROL_PLANE}",
            node.cable()
        ),
        format!("address add {}/24 dev eth0", node.address()),
        "link set eth0 up".to_owned(),
        format!("route add default via {API_SERVER}"),
    ];
    steps.extend(
        nodes
            .iter()
            .filter(|other| **other != node)
            .map(|other| way_to(*other)),
    );
    create(&namespace, &steps).await?;
    batch(
        CONTROL_PLANE,
        &[format!("link set {} master {BRIDGE} up", node.cable())],
    )
    .await
}

/// Plugs a node's cable in, or pulls it out.
pub(crate) async fn plug(node: NodeNumber, plugged: bool) -> Result<()> {
    let direction = if plugged { "up" } else { "down" };
    batch(
        CONTROL_PLANE,
        &[format!("link set {} {direction}", node.cable())],
    )
    .await
}

/// Removes a node's namespace and its cable, so that both can be made again at once. (With the
/// namespace alone the system would take the cable away too, but later.)
pub(crate) async fn delete_node(node: NodeNumber) -> Result<()> {
    // A run that was killed halfway may have left either without the other.
    drop(batch(CONTROL_PLANE, &[format!("link delete {}", node.cable())]).await);
    if path(&node.namespace()).exists() {
        delete(&node.namespace()).await
    } else {
        Ok(())
    }
}

pub(crate) async fn delete(namespace: &str) -> Result<()> {
    output(bare("ip").args(["netns", "delete", namespace])).await?;
    Ok(())
}

fn way_to(node: NodeNumber) -> String {
    format!("route add {} via {}", node.pod_range(), node.address())
}

async fn create(namespace: &str, steps: &[String]) -> Result<()> {
    output(bare("ip").args(["netns", "add", namespace])).await?;
    let steps: Vec<_> = [&["link set lo up".to_owned()], steps].concat();
    batch(namespace, &steps).await?;
    let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    output(bare("nsenter").args([&entrance(namespace), "sh", "-c", forward])).await?;
    Ok(())
}

async fn batch(namespace: &str, steps: &[String]) -> Result<()> {
    let mut ip = bare("ip");
    ip.args(["-n", namespace, "-batch", "-"]);
    output_of(&mut ip, &steps.join("\n"))
        .await
        .with_context(|| format!("failed to set up the network of {namespace}"))?;
    Ok(())
}
