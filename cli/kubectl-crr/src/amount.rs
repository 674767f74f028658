//! Durations as people write them: `90`, `1m30s`.

use std::time::Duration;

/// A text that is no amount; says what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidAmount {
    #[error("must be a duration such as 90s, 5m, 1h or 1m30s, in whole seconds")]
    Duration,
}

/// Whole seconds: a bare number, or numbers with units from the largest to the smallest.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, InvalidAmount> {
    let seconds = seconds_of(text).ok_or(InvalidAmount::Duration)?;
    // Every duration of a request is an int32 or int64 of seconds.
    let fits = i32::try_from(seconds).is_ok();
    fits.then(|| Duration::from_secs(seconds))
        .ok_or(InvalidAmount::Duration)
}

fn seconds_of(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    for (unit, seconds) in [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)] {
        if let Some((number, after)) = rest.split_once(unit) {
            let part = number.parse::<u64>().ok()?.checked_mul(seconds)?;
            total = total.checked_add(part)?;
            rest = after;
        }
    }
    (rest.is_empty() && !text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_seconds() {
        let cases = [
            ("0", Some(0)),
            ("90", Some(90)),
            ("3s", Some(3)),
            ("1m30s", Some(90)),
            ("2h", Some(7_200)),
            ("1d1s", Some(86_401)),
            ("", None),
            ("s", None),
            ("1.5s", None),
            ("500ms", None),
            ("30s1m", None),
            ("-3s", None),
            ("soon", None),
            ("99999999999", None),
            ("18446744073709551615m", None),
        ];
        for (text, seconds) in cases {
            let parsed = parse_duration(text).ok().map(|parsed| parsed.as_secs());
            assert_eq!(parsed, seconds, "{text:?}");
        }
    }
}
