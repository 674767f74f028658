//! The checks themselves: each finds what it is for.

use std::collections::{BTreeMap, BTreeSet};

use tidy::{
    containers, files,
    imports::{self, Edges},
    krew, tree, words,
};

fn edges(rows: &[(&str, &[&str])]) -> Edges {
    let owned = |names: &[&str]| {
        names
            .iter()
            .map(ToString::to_string)
            .collect::<BTreeSet<_>>()
    };
    rows.iter()
        .map(|(name, imports)| ((*name).to_owned(), owned(imports)))
        .collect::<BTreeMap<_, _>>()
}

#[test]
fn a_rules_crate_that_gains_tokio_is_found() {
    let closures = edges(&[("crr-rules", &["model", "tokio"]), ("bus", &["tokio"])]);
    assert_eq!(
        imports::check_purity(&closures),
        ["crr-rules: a pure crate leans on tokio"]
    );
}

#[test]
fn an_edge_beside_the_table_is_found() {
    let found = edges(&[("wire", &["model", "bus"]), ("stranger", &[])]);
    assert_eq!(
        imports::check_edges(&found, &imports::table()),
        [
            "stranger: not in the import table",
            "wire: may not import bus"
        ]
    );
}

#[test]
fn a_real_workspace_is_read_with_its_indirect_dependencies() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"libs/*\"]\n",
    );
    let manifest = |name: &str, dependencies: &str| {
        format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\n{dependencies}\n"
        )
    };
    write("libs/tokio/Cargo.toml", &manifest("tokio", ""));
    write("libs/tokio/src/lib.rs", "");
    write(
        "libs/middle/Cargo.toml",
        &manifest("middle", "tokio = { path = \"../tokio\" }"),
    );
    write("libs/middle/src/lib.rs", "");
    write(
        "libs/x-rules/Cargo.toml",
        &manifest("x-rules", "middle = { path = \"../middle\" }"),
    );
    write("libs/x-rules/src/lib.rs", "");
    let metadata = cargo_metadata::MetadataCommand::new()
        .current_dir(root.path())
        .exec()
        .unwrap();
    let faults = imports::check_purity(&imports::closures(&metadata));
    assert_eq!(faults, ["x-rules: a pure crate leans on tokio"]);
}

#[test]
fn files_out_of_shape_are_found() {
    let long = format!("//! Long.\n{}", "// line\n".repeat(400));
    let cases = [
        (
            "libs/a/src/lib.rs",
            "fn a() {}",
            "begins without a `//!` header",
        ),
        (
            "libs/a/src/mod.rs",
            "//! X.",
            "is a mod.rs; name it after its module",
        ),
        (
            "libs/x-rules/src/lib.rs",
            "//! X.\nuse std::fs;",
            "uses std::fs in a rules crate",
        ),
        ("libs/a/src/b.rs", "//! X.\n#[ignore]", "holds #[ignore"),
    ];
    for (path, text, problem) in cases {
        assert_eq!(files::check(path, text), [format!("{path}: {problem}")]);
    }
    assert_eq!(files::check("libs/a/src/b.rs", &long).len(), 1);
    let excused = format!("{long}// tidy: long because of a reason\n");
    assert!(files::check("libs/a/src/b.rs", &excused).is_empty());
}

#[test]
fn orphans_are_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let sources = [
        file("libs/a/src/lib.rs", "mod b;\npub mod c;"),
        file("libs/a/src/b.rs", "mod tests;"),
        file("libs/a/src/b/tests.rs", ""),
        file("libs/a/src/c.rs", ""),
        file("libs/a/src/lost.rs", ""),
        file("libs/a/tests/it.rs", ""),
    ];
    assert_eq!(
        tree::check_orphans(&sources),
        ["libs/a/src/lost.rs: no `mod` line takes it in"]
    );
}

#[test]
fn a_gap_in_the_decisions_and_a_silent_recipe_are_found() {
    let names = ["0001-a.md".to_owned(), "0003-b.md".to_owned()];
    assert_eq!(
        tree::check_decisions(&names),
        ["docs/adr/0003-b.md: its number should be 0002-"]
    );
    assert_eq!(
        tree::check_recipes("# Says\na:\n\nb x:\n"),
        ["Justfile: recipe b has no comment"]
    );
}

#[test]
fn a_service_without_an_image_and_versions_that_differ_are_found() {
    let files = containers::Files {
        dockerfile: "ARG RUST_IMAGE=library/rust:1.2.3-x\nARG RUNTIME_IMAGE=r\nENV RUSTUP_TOOLCHAIN=1.2.3 A=b\n\
            RUN cargo build -p a -p b-c\nFROM ${RUNTIME_IMAGE} AS a\n",
        compose: "x: {A: \"${RUST_IMAGE:-library/rust:1.2.3-x}\", B: \"${RUNTIME_IMAGE:-r}\"}\n\
            services:\n  a:\n    build: {target: a}\n    image: ${NATS_IMAGE:-n:2}\n    image: ${JAEGER_IMAGE:-j:1}\n",
        base_images: "S=x RUST=1.2.3\n",
        rust_toolchain: "channel = \"1.2.3\"\n",
        nats: "image: nats:2\n",
        jaeger: "image: localhost/jaeger:1\n",
    };
    assert!(containers::check(&["a".to_owned()], &files).is_empty());
    assert_eq!(
        containers::check(&["b".to_owned()], &files),
        [
            "Dockerfile: no target b",
            "Dockerfile: does not build b",
            "compose.yaml: no service b"
        ]
    );
    let older = containers::Files {
        dockerfile: "ARG RUST_IMAGE=library/rust:1.2.2-x\nARG RUNTIME_IMAGE=s\nENV RUSTUP_TOOLCHAIN=1.2.3\n",
        base_images: "",
        nats: "image: nats:3\n",
        ..files
    };
    assert_eq!(
        containers::check(&[], &older),
        [
            "compose.yaml: RUST_IMAGE is not the Dockerfile's",
            "compose.yaml: RUNTIME_IMAGE is not the Dockerfile's",
            "compose/base-images: Rust is not that of rust-toolchain.toml",
            "the Dockerfile's RUST_IMAGE: Rust is not that of rust-toolchain.toml",
            "compose.yaml: NATS_IMAGE has not the tag of the manifests"
        ]
    );
}

#[test]
fn a_message_that_the_page_lacks_is_found() {
    let source = r#"
        // "a comment says this"
        const REASON: &str = "PodGone";
        fn message() { format!("node {node} has \
            gone {}{}", "a", ", "); let key = "spec.name"; }
        #[cfg(test)]
        mod tests { const ONLY: &str = "in a test only"; }
    "#;
    let page = "`PodGone`: `node … has gone …`";
    assert_eq!(words::check("end.rs", source, page), [""; 0]);
    assert_eq!(
        words::check("end.rs", source, ""),
        [
            r#"end.rs: "PodGone" is not in the page"#,
            r#"end.rs: "node … has gone …" is not in the page"#,
        ]
    );
}

#[test]
fn a_krew_manifest_that_differs_from_the_recipe_is_found() {
    let pack = "PLATFORMS=\"linux-amd64=x86_64-unknown-linux-musl\n  darwin-arm64=aarch64-apple-darwin\"\n";
    let head = "apiVersion: krew.googlecontainertools.github.com/v1alpha2\nkind: Plugin\nmetadata: {name: crr}\n\
        spec:\n  version: \"@VERSION@\"\n  shortDescription: x\n  platforms:\n";
    let platform = |os: &str, arch: &str, sha256: &str| {
        format!(
            "  - selector: {{matchLabels: {{os: {os}, arch: {arch}}}}}\n    uri: \"@URI {os}-{arch}@\"\n    \
            sha256: \"{sha256}\"\n    bin: kubectl-crr\n"
        )
    };
    let linux = platform("linux", "amd64", "@SHA256 linux-amd64@");
    let darwin = platform("darwin", "arm64", "@SHA256 darwin-arm64@");
    assert!(krew::check(&format!("{head}{linux}{darwin}"), pack).is_empty());
    let made_up = platform("darwin", "arm64", "e3b0c442");
    let other = platform("windows", "amd64", "@SHA256 windows-amd64@");
    assert_eq!(
        krew::check(&format!("{head}{made_up}{other}"), pack),
        [
            "krew.yaml: darwin-arm64: sha256 is not \"@SHA256 darwin-arm64@\"",
            "krew.yaml: windows-amd64 is not built by pack",
            "krew.yaml: linux-amd64, which pack builds, is missing",
        ]
    );
    assert_eq!(krew::check("a: [", pack), ["krew.yaml: is not YAML"]);
    let no_plugin = format!("{}{linux}{darwin}", head.replace("Plugin", "Pod"));
    assert_eq!(
        krew::check(&no_plugin, pack),
        ["krew.yaml: kind is not \"Plugin\""]
    );
}
