//! What the API server would refuse, and what is tried again; time is virtual.

use std::cell::Cell;

use kube::core::Status;
use tokio::time::Instant;

use super::*;

#[test]
fn a_message_that_fits_is_told_as_it_is() {
    let longest = "x".repeat(LONGEST_MESSAGE);
    assert_eq!(shortened(&longest), longest);
    assert_eq!(shortened(""), "");
}

#[test]
fn a_longer_message_is_cut_between_characters() {
    for shift in 0..4 {
        let message = "x".repeat(shift) + &"\u{1f980}".repeat(300);
        let told = shortened(&message);
        assert!(told.len() <= LONGEST_MESSAGE, "{}", told.len());
        assert!(told.len() > LONGEST_MESSAGE - 4, "{}", told.len());
        let begin = told.strip_suffix(CUT).unwrap();
        assert!(message.starts_with(begin));
    }
}

/// How often a telling that always meets this is tried, and how long that takes.
async fn tries_at(code: u16) -> (u32, Duration) {
    let tries = Cell::new(0);
    let start = Instant::now();
    let told = insist(async || {
        tries.set(tries.get() + 1);
        let status = Status::failure("no", "Because").with_code(code);
        Err(kube::Error::Api(status.boxed()).into())
    });
    assert!(told.await.is_err());
    (tries.get(), start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_told_once() {
    for code in [400, 403, 404, 413, 422] {
        assert_eq!(tries_at(code).await, (1, Duration::ZERO), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_told_again_a_few_times() {
    for code in [401, 429, 500, 503] {
        let pauses = AGAIN_AFTER * (1 + 2 + 4);
        assert_eq!(tries_at(code).await, (TRIES, pauses), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_told_is_not_told_again() {
    let tries = Cell::new(0);
    let told = insist(async || {
        tries.set(tries.get() + 1);
        if tries.get() < 2 {
            let status = Status::failure("busy", "Because").with_code(429);
            return Err(kube::Error::Api(status.boxed()).into());
        }
        Ok(())
    });
    assert!(told.await.is_ok());
    assert_eq!(tries.get(), 2);
}
