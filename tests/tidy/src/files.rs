//! The shape of one source file.

/// Lines that a file may have, its tests at the end not counted.
const LONGEST: usize = 400;

/// Lines that a `main.rs` may have.
const LONGEST_MAIN: usize = 20;

/// Parts of std that a rules crate cannot touch.
const IMPURE_STD: [&str; 5] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::thread",
    "std::process",
];

/// Faults of a Rust file; `path` is relative to the repository's root.
pub fn check(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |problem: String| faults.push(format!("{path}: {problem}"));
    if !text.starts_with("//! ") {
        fault("begins without a `//!` header".to_owned());
    }
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let lines = code.lines().count();
    let is_test =
        path.ends_with("/tests.rs") || path.split('/').skip(2).any(|part| part == "tests");
    if lines > LONGEST && !is_test && !text.contains("// tidy: long because ") {
        fault(format!(
            "has {lines} lines; at most {LONGEST}, or say `// tidy: long because …`"
        ));
    }
    if path.ends_with("src/main.rs") && text.lines().count() > LONGEST_MAIN {
        fault(format!(
            "has more than {LONGEST_MAIN} lines: main starts, run.rs does"
        ));
    }
    if path.ends_with("/mod.rs") {
        fault("is a mod.rs; name it after its module".to_owned());
    }
    if is_of_a_rules_crate(path) {
        for part in IMPURE_STD.iter().filter(|part| code.contains(**part)) {
            fault(format!("uses {part} in a rules crate"));
        }
    }
    for stub in ["todo!(", "unimplemented!(", "#[ignore"] {
        if !path.starts_with("tests/tidy/") && text.contains(stub) {
            fault(format!("holds {stub}"));
        }
    }
    faults
}

fn is_of_a_rules_crate(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("libs") && parts.next().is_some_and(|name| name.ends_with("-rules"))
}
