//! How much memory the services hold, as the kernel counts it.

use std::{collections::BTreeMap, fs, path::Path};

/// Resident kilobytes of each process of each service that runs in a pod on this machine.
pub(crate) fn resident() -> BTreeMap<&'static str, Vec<u64>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some((service, kilobytes)) = service(&process.path()) {
            found.entry(service).or_default().push(kilobytes);
        }
    }
    found
}

fn service(process: &Path) -> Option<(&'static str, u64)> {
    let read = |file: &str| fs::read_to_string(process.join(file)).ok();
    let name = read("comm")?;
    let service = e2e::SERVICES
        .into_iter()
        .find(|service| *service == name.trim())?;
    // The same program may run outside of any pod.
    read("cgroup")?.contains("pod").then_some(())?;
    let status = read("status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes = line.split_whitespace().next()?.parse().ok()?;
    Some((service, kilobytes))
}
