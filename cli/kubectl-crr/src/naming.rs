//! Names of the requests that we make.

/// What Kubernetes allows.
const LONGEST: usize = 253;

/// The name of the request for that pod: the pod's, cut where it must be, and the restart's word.
pub(crate) fn crr_name(pod: &str, word: &str) -> String {
    let room = LONGEST.saturating_sub(word.len() + 1);
    let cut = pod.len().min(room); // A pod's name is ASCII.
    let pod = pod.get(..cut).unwrap_or(pod);
    format!("{}-{word}", pod.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_pods_and_never_too_long() {
        assert_eq!(crr_name("web-0", "abc123"), "web-0-abc123");
        let name = crr_name(&"a".repeat(253), "abc123");
        assert_eq!((name.len(), name.ends_with("a-abc123")), (253, true));
        let dotted = format!("{}.{}", "a".repeat(245), "b".repeat(7));
        assert_eq!(
            crr_name(&dotted, "abc123"),
            format!("{}-abc123", "a".repeat(245))
        );
    }
}
