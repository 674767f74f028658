//! `--max-unavailable`: a number of pods, or a share of them.

use std::str::FromStr;

/// How many pods may be not ready at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaxUnavailable {
    Pods(usize),
    Percent(usize),
}

/// Why a text is none; says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a number of pods of at least 1, or a share from 1% to 100%")]
pub(crate) struct InvalidMaxUnavailable;

// === impl MaxUnavailable ===

impl MaxUnavailable {
    /// The pods that this is of `pods`: rounded down as a Deployment does, and never none, or nothing would move.
    pub(crate) fn of(self, pods: usize) -> usize {
        match self {
            Self::Pods(count) => count,
            Self::Percent(percent) => (pods * percent / 100).max(1),
        }
    }
}

impl FromStr for MaxUnavailable {
    type Err = InvalidMaxUnavailable;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_suffix('%').unwrap_or(text);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidMaxUnavailable); // Rust would take a sign.
        }
        let count: usize = digits.parse().map_err(|_| InvalidMaxUnavailable)?;
        match (count, text.ends_with('%')) {
            (1.., false) => Ok(Self::Pods(count)),
            (1..=100, true) => Ok(Self::Percent(count)),
            (_, _) => Err(InvalidMaxUnavailable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_pods() {
        for (text, pods, expected) in [
            ("1", 3, 1),
            ("5", 3, 5),
            ("50%", 3, 1),
            ("50%", 4, 2),
            ("1%", 3, 1),
            ("99%", 3, 2),
            ("100%", 3, 3),
        ] {
            let amount: MaxUnavailable = text.parse().expect(text);
            assert_eq!(amount.of(pods), expected, "{text} of {pods}");
        }
    }

    #[test]
    fn refuses_all_else() {
        for text in [
            "", "0", "0%", "101%", "-1", "+1", "+1%", "%", "1.5", "a", "10%%", "1 %",
        ] {
            assert!(text.parse::<MaxUnavailable>().is_err(), "{text}");
        }
    }
}
