//! When to take, renew or give up a Lease: the part without IO.
//!
//! Clocks of two machines are never compared: a foreign Lease has expired once this replica has seen it unchanged for
//! its whole duration.

use std::time::Duration;

use tokio::time::Instant;

/// Duration and renewal of a Lease.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A Lease without renewal for this long is free.
    pub duration: Duration,
    /// The holder renews this often.
    pub renew_every: Duration,
    /// A holder without renewal for this long stops leading, whatever request is under way. Shorter than `duration`, so
    /// that two never lead at once: the holder counts from before it sent the last renewal, others from after they saw
    /// it.
    pub give_up_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(10),
            renew_every: Duration::from_secs(3),
            give_up_after: Duration::from_secs(7),
        }
    }
}

/// The next step of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write our identity into the Lease.
    Take,
    /// We hold the Lease: write it again.
    Renew,
    /// We held the Lease and did not renew it in time: stop leading.
    GiveUp,
    /// Do nothing before this moment, or before the Lease changes.
    WaitUntil(Instant),
}

/// The known state of the Lease, and since when.
#[derive(Clone, Debug)]
pub struct Claim {
    identity: String,
    timing: Timing,
    observed: Observed,
}

#[derive(Clone, Debug)]
enum Observed {
    /// Not read yet.
    Nothing,
    /// It does not exist, or its holder has released it.
    Free,
    /// Another replica holds it; we saw this version first at `seen_at`.
    Foreign {
        version: String,
        duration: Duration,
        seen_at: Instant,
    },
    /// We hold it; the last renewal was sent at `renewed_at`.
    Ours { renewed_at: Instant },
}

// === impl Claim ===

impl Claim {
    pub fn new(identity: impl Into<String>, timing: Timing) -> Self {
        Self {
            identity: identity.into(),
            timing,
            observed: Observed::Nothing,
        }
    }

    /// Records the Lease as read.
    pub fn observe(
        &mut self,
        holder: Option<&str>,
        version: &str,
        duration: Option<Duration>,
        now: Instant,
    ) {
        let seen_at = match &self.observed {
            // The clock goes on while the record is the same.
            Observed::Foreign {
                version: known,
                seen_at,
                ..
            } if known == version => *seen_at,
            Observed::Nothing
            | Observed::Free
            | Observed::Foreign { .. }
            | Observed::Ours { .. } => now,
        };
        self.observed = match holder {
            // any => Free
            None | Some("") => Observed::Free,
            // Our own earlier write is read back: nothing new.
            Some(holder) if holder == self.identity && self.is_ours() => return,
            // Our identity, but not taken by this process: left by an earlier process of ours. Free.
            Some(holder) if holder == self.identity => Observed::Free,
            // any => Foreign
            Some(_) => Observed::Foreign {
                version: version.to_owned(),
                duration: duration.unwrap_or(self.timing.duration),
                seen_at,
            },
        };
    }

    /// Records an accepted write, which was sent at `sent_at`.
    pub fn written(&mut self, sent_at: Instant) {
        // Free | Foreign (expired) | Ours => Ours
        self.observed = Observed::Ours {
            renewed_at: sent_at,
        };
    }

    /// Records that the Lease does not exist.
    pub fn observe_absence(&mut self) {
        // any => Free
        self.observed = Observed::Free;
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.observed, Observed::Ours { .. })
    }

    /// The end of our leadership without another renewal; `None` if we do not lead.
    pub fn gives_up_at(&self) -> Option<Instant> {
        match &self.observed {
            Observed::Ours { renewed_at } => Some(*renewed_at + self.timing.give_up_after),
            Observed::Nothing | Observed::Free | Observed::Foreign { .. } => None,
        }
    }

    /// Stops leading: the Lease counts as a foreign one, seen first at `now`.
    pub fn give_up(&mut self, now: Instant) {
        // Ours => Foreign
        self.observed = Observed::Foreign {
            version: String::new(),
            duration: self.timing.duration,
            seen_at: now,
        };
    }

    pub fn next_step(&self, now: Instant) -> Step {
        match &self.observed {
            Observed::Nothing => Step::WaitUntil(now + self.timing.renew_every),
            Observed::Free => Step::Take,
            Observed::Foreign {
                duration, seen_at, ..
            } => {
                let expires_at = *seen_at + *duration;
                if now >= expires_at {
                    Step::Take
                } else {
                    Step::WaitUntil(expires_at)
                }
            }
            Observed::Ours { renewed_at } => {
                if now >= *renewed_at + self.timing.give_up_after {
                    Step::GiveUp
                } else if now >= *renewed_at + self.timing.renew_every {
                    Step::Renew
                } else {
                    Step::WaitUntil(*renewed_at + self.timing.renew_every)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> (Claim, Instant) {
        (Claim::new("me", Timing::default()), Instant::now())
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    #[tokio::test]
    async fn takes_a_free_lease_at_once() {
        let (mut claim, start) = claim();
        claim.observe_absence();
        assert_eq!(claim.next_step(start), Step::Take);
        claim.observe(Some(""), "1", None, start);
        assert_eq!(claim.next_step(start), Step::Take);
    }

    #[tokio::test]
    async fn takes_a_foreign_lease_only_after_seeing_it_unchanged_for_its_duration() {
        let (mut claim, start) = claim();
        claim.observe(Some("other"), "1", Some(Duration::from_secs(15)), start);
        claim.observe(
            Some("other"),
            "1",
            Some(Duration::from_secs(15)),
            after(start, 14),
        );
        assert_eq!(
            claim.next_step(after(start, 14)),
            Step::WaitUntil(after(start, 15))
        );
        assert_eq!(claim.next_step(after(start, 15)), Step::Take);
        claim.observe(
            Some("other"),
            "2",
            Some(Duration::from_secs(15)),
            after(start, 15),
        );
        assert_eq!(
            claim.next_step(after(start, 15)),
            Step::WaitUntil(after(start, 30))
        );
    }

    #[tokio::test]
    async fn renews_in_time_and_stops_leading_before_anyone_else_may_take_it() {
        let (mut claim, start) = claim();
        claim.observe_absence();
        claim.written(start);
        assert_eq!(
            claim.next_step(after(start, 1)),
            Step::WaitUntil(after(start, 3))
        );
        assert_eq!(claim.next_step(after(start, 3)), Step::Renew);
        assert_eq!(claim.next_step(after(start, 7)), Step::GiveUp);
        assert!(Timing::default().give_up_after < Timing::default().duration);
    }

    #[tokio::test]
    async fn loses_a_lease_that_another_took() {
        let (mut claim, start) = claim();
        claim.written(start);
        claim.observe(Some("me"), "1", None, start);
        assert!(claim.is_ours());
        claim.observe(Some("other"), "2", None, start);
        assert!(!claim.is_ours());
    }
}
