//! The rules, held against this repository.

use std::path::{Path, PathBuf};

use tidy::{containers, files, imports, krew, tree, words};

fn root() -> PathBuf {
    // Asked for when it runs: a cached build of another checkout would name that one.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo tells its tests");
    let here = Path::new(&here);
    here.ancestors()
        .nth(2)
        .expect("tests/tidy lies two folders deep")
        .to_path_buf()
}

fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn crates_import_only_what_the_table_allows() {
    let metadata = imports::read(&root()).unwrap();
    none(imports::check_edges(
        &imports::own_edges(&metadata),
        &imports::table(),
    ));
    none(imports::check_sole_users(&metadata));
}

#[test]
fn rules_crates_are_pure() {
    let metadata = imports::read(&root()).unwrap();
    let closures = imports::closures(&metadata);
    assert!(closures["bus"].contains("tokio"), "the closure is computed");
    none(imports::check_purity(&closures));
}

#[test]
fn source_files_are_in_shape() {
    let sources = tree::sources(&root()).unwrap();
    assert!(sources.len() > 50, "the sources were found");
    none(
        sources
            .iter()
            .flat_map(|(path, text)| files::check(path, text))
            .collect(),
    );
}

#[test]
fn no_source_file_is_an_orphan() {
    none(tree::check_orphans(&tree::sources(&root()).unwrap()));
}

#[test]
fn every_crate_inherits_the_lints() {
    none(tree::check_lints(&root()).unwrap());
}

#[test]
fn decisions_are_numbered() {
    let entries = std::fs::read_dir(root().join("docs/adr")).unwrap();
    let names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.is_empty());
    none(tree::check_decisions(&names));
}

#[test]
fn every_recipe_says_what_it_does() {
    none(tree::check_recipes(
        &std::fs::read_to_string(root().join("Justfile")).unwrap(),
    ));
}

#[test]
fn every_service_has_an_image_and_a_place_in_compose() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let folders = std::fs::read_dir(root().join("services")).unwrap();
    let mut services: Vec<_> = folders
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    services.sort();
    assert!(services.len() >= 3, "the services were found");
    none(containers::check(
        &services,
        &containers::Files {
            dockerfile: &read("Dockerfile"),
            compose: &read("compose/compose.yaml"),
            base_images: &read("compose/base-images"),
            rust_toolchain: &read("rust-toolchain.toml"),
            nats: &read("k8s/base/nats.yaml"),
            jaeger: &read("k8s/overlays/test-cluster/jaeger.yaml"),
        },
    ));
}

#[test]
fn every_word_of_a_request_is_in_the_page_about_requests() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let page = read("docs/crr.md");
    let rules = [
        "back_off",
        "conditions",
        "container",
        "kubernetes_events",
        "messages",
        "unready",
    ];
    let rules = rules.map(|name| format!("libs/crr-rules/src/{name}.rs"));
    let warnings = "libs/admission-rules/src/warnings.rs".to_owned();
    for path in rules.iter().chain([&warnings]) {
        none(words::check(path, &read(path), &page));
    }
}

#[test]
fn the_krew_manifest_has_what_the_recipe_fills_in_and_nothing_made_up() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (manifest, pack) = (
        read("cli/kubectl-crr/krew.yaml"),
        read("cli/kubectl-crr/pack"),
    );
    none(krew::check(&manifest, &pack));
}
