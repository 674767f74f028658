//! The krew manifest of kubectl-crr: a template that the recipe can fill in, for the platforms that the recipe builds.

use serde_yaml_ng::Value;

/// What krew asks for, by the path to it.
const FIXED: [(&[&str], &str); 4] = [
    (
        &["apiVersion"],
        "krew.googlecontainertools.github.com/v1alpha2",
    ),
    (&["kind"], "Plugin"),
    (&["metadata", "name"], "crr"),
    (&["spec", "version"], "@VERSION@"),
];

/// Platforms that the manifest and `pack` do not share, and fields that are not as krew or `pack` wants them.
pub fn check(manifest: &str, pack: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |problem: String| faults.push(format!("krew.yaml: {problem}"));
    let Ok(manifest) = serde_yaml_ng::from_str::<Value>(manifest) else {
        fault("is not YAML".to_owned());
        return faults;
    };
    for (path, wanted) in FIXED {
        if path.iter().fold(&manifest, |value, key| &value[*key]) != wanted {
            fault(format!("{} is not {wanted:?}", path.join(".")));
        }
    }
    let built = built(pack);
    let mut named = Vec::new();
    let platforms = manifest["spec"]["platforms"].as_sequence();
    for platform in platforms.into_iter().flatten() {
        let labels = &platform["selector"]["matchLabels"];
        let word = |key: &str| labels[key].as_str().unwrap_or_default();
        let name = format!("{}-{}", word("os"), word("arch"));
        for (field, wanted) in [
            ("uri", format!("@URI {name}@")),
            ("sha256", format!("@SHA256 {name}@")),
            ("bin", "kubectl-crr".to_owned()),
        ] {
            if platform[field] != *wanted {
                fault(format!("{name}: {field} is not {wanted:?}"));
            }
        }
        if !built.contains(&name.as_str()) {
            fault(format!("{name} is not built by pack"));
        }
        named.push(name);
    }
    for name in built {
        if !named.iter().any(|it| it == name) {
            fault(format!("{name}, which pack builds, is missing"));
        }
    }
    faults
}

/// The platforms of `PLATFORMS="platform=target …"`.
fn built(pack: &str) -> Vec<&str> {
    let list = pack
        .split_once("\nPLATFORMS=\"")
        .or(pack.split_once("PLATFORMS=\""));
    let list = list.and_then(|(_, rest)| rest.split('"').next());
    let pairs = list.unwrap_or_default().split_whitespace();
    pairs
        .filter_map(|pair| Some(pair.split_once('=')?.0))
        .collect()
}
