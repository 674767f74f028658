//! The Docker story: Dockerfile, compose.yaml and manifests name the same services and the same versions.
//!
//! Reads them as text, as little as the question takes; whether they work is seen with a real engine.

/// The files that have to agree.
pub struct Files<'a> {
    pub dockerfile: &'a str,
    pub compose: &'a str,
    pub base_images: &'a str,
    pub rust_toolchain: &'a str,
    /// `k8s/base/nats.yaml`
    pub nats: &'a str,
    /// The test cluster's `jaeger.yaml`
    pub jaeger: &'a str,
}

/// Services without an image or a place in compose, and versions that differ.
pub fn check(services: &[String], files: &Files<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for service in services {
        let stage = format!("FROM ${{RUNTIME_IMAGE}} AS {service}");
        if !files.dockerfile.lines().any(|line| line == stage) {
            faults.push(format!("Dockerfile: no target {service}"));
        }
        if !has_word(files.dockerfile, &format!("-p {service}")) {
            faults.push(format!("Dockerfile: does not build {service}"));
        }
        if !files.compose.contains(&format!("\n  {service}:\n"))
            || !has_word(files.compose, &format!("target: {service}"))
        {
            faults.push(format!("compose.yaml: no service {service}"));
        }
    }
    for base in ["RUST_IMAGE", "RUNTIME_IMAGE"] {
        let asked = after(files.dockerfile, &format!("ARG {base}="));
        if asked.is_none() || asked != after(files.compose, &format!("${{{base}:-")) {
            faults.push(format!("compose.yaml: {base} is not the Dockerfile's"));
        }
    }
    let rust = after(files.rust_toolchain, "channel = \"");
    for (name, found) in [
        ("Dockerfile", after(files.dockerfile, "RUSTUP_TOOLCHAIN=")),
        ("compose/base-images", after(files.base_images, " RUST=")),
        (
            "the Dockerfile's RUST_IMAGE",
            after(files.dockerfile, "library/rust:").and_then(|tag| tag.split('-').next()),
        ),
    ] {
        if found.is_none() || found != rust {
            faults.push(format!("{name}: Rust is not that of rust-toolchain.toml"));
        }
    }
    for (variable, manifest) in [("NATS_IMAGE", files.nats), ("JAEGER_IMAGE", files.jaeger)] {
        let in_compose = after(files.compose, &format!("${{{variable}:-")).and_then(tag);
        if in_compose.is_none() || in_compose != after(manifest, "image: ").and_then(tag) {
            faults.push(format!(
                "compose.yaml: {variable} has not the tag of the manifests"
            ));
        }
    }
    faults
}

/// What follows `start` at its first place, up to a space, a quote or a brace.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let rest = text.split_once(start)?.1;
    rest.split([' ', '\n', '"', '}']).next()
}

fn tag(image: &str) -> Option<&str> {
    Some(image.rsplit_once(':')?.1)
}

/// Whether the words are there, and not as the beginning of longer ones.
fn has_word(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let next = text[at + words.len()..].chars().next();
        next.is_none_or(|next| !next.is_ascii_alphanumeric() && next != '-')
    })
}
