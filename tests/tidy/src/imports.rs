//! Who may import whom (ARCHITECTURE.md), read from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// What a rules crate can never lean on, however indirectly.
const IMPURE: [&str; 8] = [
    "tokio",
    "kube",
    "kube-client",
    "tonic",
    "async-nats",
    "redb",
    "opentelemetry",
    "rand",
];

/// The only crate of ours that may name an outside crate.
const SOLE_USERS: [(&str, &str); 5] = [
    ("async-nats", "bus"),
    ("nkeys", "bus"),
    ("redb", "node-executor"),
    ("k8s-cri", "cri"),
    ("opentelemetry-otlp", "service-kit"),
];

/// A normal dependency of one crate on another.
pub type Edges = BTreeMap<String, BTreeSet<String>>;

/// What each of our crates may import of ours; crates under `tests/` see all.
const TABLE: &str = "
    model:
    admission-rules: model
    barrier-rules: model
    order-rules: model
    crr-rules: model order-rules
    node-rules: model
    wire: model
    k8s-api: model
    bus: model wire
    api-client: model
    cri: model
    service-kit: model
    leader: api-client model service-kit
    testkit: model
    trace-tree:
    admission: admission-rules api-client bus k8s-api model service-kit wire
    crr-scheduler: api-client bus crr-rules k8s-api leader model order-rules service-kit wire
    barrier-manager: api-client barrier-rules bus k8s-api leader model service-kit
    node-executor: bus cri model node-rules service-kit wire
    kubectl-crr: api-client barrier-rules k8s-api model trace-tree
";

/// The table of imports.
pub fn table() -> Edges {
    let rows = TABLE.lines().filter_map(|line| line.split_once(':'));
    rows.map(|(name, allowed)| {
        let allowed = allowed.split_whitespace().map(str::to_owned).collect();
        (name.trim().to_owned(), allowed)
    })
    .collect()
}

/// The workspace at `root` as cargo sees it.
///
/// # Errors
/// Cargo cannot read it.
pub fn read(root: &std::path::Path) -> Result<Metadata, cargo_metadata::Error> {
    MetadataCommand::new()
        .current_dir(root)
        .other_options(["--locked".to_owned()])
        .exec()
}

/// The normal dependencies between our own crates, without those under `tests/`.
pub fn own_edges(metadata: &Metadata) -> Edges {
    let own: BTreeSet<_> = metadata
        .workspace_packages()
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let edges = products(metadata).into_iter().map(|package| {
        let normal = package.dependencies.iter().filter(|dependency| {
            dependency.kind == DependencyKind::Normal && own.contains(&dependency.name)
        });
        let names = normal.map(|dependency| dependency.name.clone()).collect();
        (package.name.to_string(), names)
    });
    edges.collect()
}

/// Our crates without those under `tests/`.
fn products(metadata: &Metadata) -> Vec<&Package> {
    let mut packages = metadata.workspace_packages();
    packages.retain(|package| !package.manifest_path.as_str().contains("/tests/"));
    packages
}

/// Edges that the table does not have, and crates that it does not know.
pub fn check_edges(edges: &Edges, table: &Edges) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, imports) in edges {
        let Some(allowed) = table.get(name) else {
            faults.push(format!("{name}: not in the import table"));
            continue;
        };
        for import in imports.difference(allowed) {
            faults.push(format!("{name}: may not import {import}"));
        }
    }
    faults
}

/// Outside crates named by others than their sole user. Tests may use them, as strangers do.
pub fn check_sole_users(metadata: &Metadata) -> Vec<String> {
    let mut faults = Vec::new();
    for package in products(metadata) {
        for dependency in &package.dependencies {
            let rule = SOLE_USERS
                .iter()
                .find(|(outside, _)| *outside == dependency.name);
            if let Some((outside, user)) = rule
                && package.name != *user
            {
                faults.push(format!("{}: only {user} may use {outside}", package.name));
            }
        }
    }
    faults
}

/// Everything that each crate leans on in the end, by name.
pub fn closures(metadata: &Metadata) -> Edges {
    let Some(resolve) = &metadata.resolve else {
        return Edges::new();
    };
    let names: BTreeMap<&PackageId, String> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.to_string()))
        .collect();
    let mut normal: BTreeMap<&PackageId, Vec<&PackageId>> = BTreeMap::new();
    for node in &resolve.nodes {
        let deps = node.deps.iter().filter(|dep| {
            dep.dep_kinds
                .iter()
                .any(|kind| kind.kind == DependencyKind::Normal)
        });
        normal.insert(&node.id, deps.map(|dep| &dep.pkg).collect());
    }
    let closure_of = |start: &PackageId| {
        let mut seen = BTreeSet::new();
        let mut queue = VecDeque::from([start]);
        while let Some(id) = queue.pop_front() {
            for next in normal.get(id).into_iter().flatten() {
                if seen.insert(*next) {
                    queue.push_back(next);
                }
            }
        }
        seen.into_iter()
            .filter_map(|id| names.get(id).cloned())
            .collect()
    };
    let packages = metadata.workspace_packages();
    packages
        .iter()
        .map(|package| (package.name.to_string(), closure_of(&package.id)))
        .collect()
}

/// Rules crates, and the model below them, that lean on something impure.
pub fn check_purity(closures: &Edges) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, closure) in closures {
        if !(name.ends_with("-rules") || name == "model") {
            continue;
        }
        for impure in IMPURE.iter().filter(|impure| closure.contains(**impure)) {
            faults.push(format!("{name}: a pure crate leans on {impure}"));
        }
    }
    faults
}
