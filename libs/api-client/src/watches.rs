//! What all watches have in common.
//!
//! Owns how a watch begins and which of two objects is newer. What is watched is not known here.

use kube::runtime::watcher;

/// A watch of everything, to be narrowed. Streamed lists cost the API server less memory than pages; older servers
/// have none.
pub fn watch_config(streaming_lists: bool) -> watcher::Config {
    let config = watcher::Config::default();
    if streaming_lists {
        config.streaming_lists()
    } else {
        config
    }
}

/// Resource versions of one resource can be compared as numbers (KEP-5504); what is none counts as newest.
pub fn parse_version(version: &str) -> u64 {
    version.parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_and_what_is_none_is_newest() {
        assert!(parse_version("9") < parse_version("10"));
        assert!(parse_version("10") < parse_version(""));
    }
}
