//! The length of messages, and retries; time is virtual.

use std::cell::Cell;

use kube::core::Status;
use tokio::time::Instant;

use super::*;

#[test]
fn a_message_that_fits_is_not_changed() {
    let longest = "x".repeat(LONGEST_MESSAGE);
    assert_eq!(shortened(&longest), longest);
    assert_eq!(shortened(""), "");
}

#[test]
fn a_longer_message_is_cut_between_characters() {
    for shift in 0..4 {
        let message = "x".repeat(shift) + &"\u{1f980}".repeat(300);
        let short = shortened(&message);
        assert!(short.len() <= LONGEST_MESSAGE, "{}", short.len());
        assert!(short.len() > LONGEST_MESSAGE - 4, "{}", short.len());
        let begin = short.strip_suffix(CUT).unwrap();
        assert!(message.starts_with(begin));
    }
}

/// The number of calls of a publication that always fails with `code`, and their time.
async fn tries_at(code: u16) -> (u32, Duration) {
    let tries = Cell::new(0);
    let start = Instant::now();
    let result = publish_with_retry(async || {
        tries.set(tries.get() + 1);
        let status = Status::failure("no", "Because").with_code(code);
        Err(kube::Error::Api(status.boxed()).into())
    });
    assert!(result.await.is_err());
    (tries.get(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_is_not_retried() {
    for code in [400, 403, 404, 413, 422] {
        assert_eq!(tries_at(code).await, (1, Duration::ZERO), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_transient_error_is_retried_a_few_times() {
    for code in [401, 429, 500, 503] {
        let pauses = PAUSES.first * (1 + 2 + 4);
        assert_eq!(tries_at(code).await, (RETRIES + 1, pauses), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_published_event_is_not_published_again() {
    let tries = Cell::new(0);
    let result = publish_with_retry(async || {
        tries.set(tries.get() + 1);
        if tries.get() < 2 {
            let status = Status::failure("busy", "Because").with_code(429);
            return Err(kube::Error::Api(status.boxed()).into());
        }
        Ok(())
    });
    assert!(result.await.is_ok());
    assert_eq!(tries.get(), 2);
}
