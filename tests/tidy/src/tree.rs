//! The repository as a whole: orphans, lints, decisions, recipes.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use walkdir::WalkDir;

/// Every Rust file below `root` as (path relative to it, text).
///
/// # Errors
/// A file cannot be read.
pub fn sources(root: &Path) -> Result<Vec<(String, String)>> {
    let mut sources = Vec::new();
    for part in ["libs", "services", "tests", "cli"] {
        for entry in WalkDir::new(root.join(part)).into_iter().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path)
                    .with_context(|| format!("failed to read {}", path.display()))?;
                sources.push((relative(root, path), text));
            }
        }
    }
    Ok(sources)
}

/// Files that no `mod` line, binary or test target takes in.
pub fn check_orphans(sources: &[(String, String)]) -> Vec<String> {
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    for (path, text) in sources {
        let path = Path::new(path);
        let stem = path.file_stem().unwrap_or_default();
        let parent = path.parent().unwrap_or(Path::new(""));
        let is_root = ["lib", "main"].iter().any(|name| stem == *name)
            || parent.ends_with("tests")
            || parent.ends_with("src/bin")
            || stem == "build";
        let below = if is_root {
            parent.to_path_buf()
        } else {
            parent.join(stem)
        };
        for module in modules(text) {
            known.insert(below.join(format!("{module}.rs")));
            if is_root {
                // A test or binary target keeps its modules in a folder of its own name as well.
                known.insert(parent.join(stem).join(format!("{module}.rs")));
            }
        }
        if is_root {
            known.insert(path.to_path_buf());
        }
    }
    let orphans = sources
        .iter()
        .filter(|(path, _)| !known.contains(Path::new(path)));
    orphans
        .map(|(path, _)| format!("{path}: no `mod` line takes it in"))
        .collect()
}

/// The names of `mod name;` lines, public or not.
fn modules(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line
            .strip_prefix("pub ")
            .or(line.strip_prefix("pub(crate) "))
            .unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    })
}

/// Crates that do not inherit the workspace's lints.
///
/// # Errors
/// A manifest cannot be read.
pub fn check_lints(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for part in ["libs", "services", "tests", "cli"] {
        for entry in WalkDir::new(root.join(part))
            .max_depth(2)
            .into_iter()
            .flatten()
        {
            if entry.file_name() == "Cargo.toml" {
                let text = fs::read_to_string(entry.path())?;
                if !text.contains("[lints]\nworkspace = true") {
                    faults.push(format!(
                        "{}: does not inherit the workspace's lints",
                        relative(root, entry.path())
                    ));
                }
            }
        }
    }
    Ok(faults)
}

/// Decisions that are not numbered one after the other.
pub fn check_decisions(names: &[String]) -> Vec<String> {
    let mut names: Vec<_> = names.iter().filter(|name| name.ends_with(".md")).collect();
    names.sort();
    let mut faults = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let expected = format!("{:04}-", index + 1);
        if !name.starts_with(&expected) {
            faults.push(format!("docs/adr/{name}: its number should be {expected}"));
        }
    }
    faults
}

/// Recipes of a Justfile without a comment above.
pub fn check_recipes(justfile: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut before = "";
    for line in justfile.lines() {
        let is_recipe = line.starts_with(|first: char| first.is_ascii_lowercase())
            && line.contains(':')
            && !line.contains(":=")
            && !line.starts_with("set ");
        if is_recipe && !before.starts_with('#') {
            let name = line.split([' ', ':']).next().unwrap_or(line);
            faults.push(format!("Justfile: recipe {name} has no comment"));
        }
        before = line;
    }
    faults
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}
