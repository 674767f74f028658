//! When to take, renew or give up a lease: the part without IO.
//!
//! Clocks of two machines are never compared: a foreign lease has expired when *we* have seen it unchanged
//! for its whole duration.

use std::time::Duration;

use tokio::time::Instant;

/// How long a lease lasts, and when it is renewed.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A lease that nobody renews for this long is free.
    pub duration: Duration,
    /// The holder renews this often.
    pub renew_every: Duration,
    /// A holder that could not renew for this long stops leading, whatever request is under way. It counts from before
    /// its last renewal left, others count from after they saw it: shorter than `duration`, so that two never lead at
    /// once.
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

/// What to do about the lease now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write ourselves into it.
    Take,
    /// We hold it: write it again.
    Renew,
    /// We held it and could not renew in time: stop leading.
    GiveUp,
    /// Nothing before that moment, or before the lease changes.
    WaitUntil(Instant),
}

/// What is known of the lease, and since when.
#[derive(Clone, Debug)]
pub struct Claim {
    identity: String,
    timing: Timing,
    observed: Observed,
}

#[derive(Clone, Debug)]
enum Observed {
    /// Not looked at yet.
    Nothing,
    /// It does not exist, or its holder has released it.
    Free,
    /// Another holds it; the record was new to us at that moment.
    Foreign {
        version: String,
        duration: Duration,
        seen_at: Instant,
    },
    /// We hold it, renewed last at that moment (the moment the request left).
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

    /// Takes the lease as read: its holder, its version and how long it lasts.
    pub fn observe(
        &mut self,
        holder: Option<&str>,
        version: &str,
        duration: Option<Duration>,
        now: Instant,
    ) {
        let duration = duration.unwrap_or(self.timing.duration);
        self.observed = match (holder, &self.observed) {
            // any => Free
            (None | Some(""), _) => Observed::Free,
            // Our own earlier write is read back: it says nothing new.
            (Some(holder), Observed::Ours { renewed_at }) if holder == self.identity => {
                Observed::Ours {
                    renewed_at: *renewed_at,
                }
            }
            // A lease under our name that we do not remember taking: an earlier life of ours. Free.
            (Some(holder), _) if holder == self.identity => Observed::Free,
            // Foreign => Foreign, the clock goes on while the record is the same
            (
                Some(_),
                Observed::Foreign {
                    version: before,
                    seen_at,
                    ..
                },
            ) if before == version => Observed::Foreign {
                version: version.to_owned(),
                duration,
                seen_at: *seen_at,
            },
            // any => Foreign
            (Some(_), _) => Observed::Foreign {
                version: version.to_owned(),
                duration,
                seen_at: now,
            },
        };
    }

    /// Our write was taken; `sent_at` is when it left.
    pub fn written(&mut self, sent_at: Instant) {
        // Free | Foreign (expired) | Ours => Ours
        self.observed = Observed::Ours {
            renewed_at: sent_at,
        };
    }

    /// The lease does not exist.
    pub fn observe_absence(&mut self) {
        // any => Free
        self.observed = Observed::Free;
    }

    pub fn is_ours(&self) -> bool {
        matches!(self.observed, Observed::Ours { .. })
    }

    /// When we stop leading unless we renew before; `None` when we do not lead.
    pub fn gives_up_at(&self) -> Option<Instant> {
        match &self.observed {
            Observed::Ours { renewed_at } => Some(*renewed_at + self.timing.give_up_after),
            Observed::Nothing | Observed::Free | Observed::Foreign { .. } => None,
        }
    }

    /// We stop leading: the lease is looked at as another's that is new to us.
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
