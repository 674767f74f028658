//! All that was measured, and what can be said of it.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use crate::{args::Phase, audit::Kind, many::Many};

pub(crate) struct Measured {
    pub(crate) began_at: Timestamp,
    pub(crate) until_completed: Vec<Duration>,
    pub(crate) from_ready_to_completed: Vec<Duration>,
    pub(crate) until_stop: Vec<Duration>,
    /// From a bare stop until the new container was ready.
    pub(crate) bare: Vec<Duration>,
    /// Of the requests in a row, each one's time and its container's own stop time.
    pub(crate) row: Vec<(Duration, Duration)>,
    pub(crate) together: Option<Many>,
    /// As many bare stops at once: until the last container was ready.
    pub(crate) bare_together: Option<Duration>,
    pub(crate) burst: Option<Many>,
    pub(crate) api: Vec<Api>,
    /// Resident kilobytes; empty where the services run elsewhere.
    pub(crate) memory: BTreeMap<&'static str, Vec<u64>>,
}

/// What one phase asked of the API server.
pub(crate) struct Api {
    pub(crate) phase: Phase,
    pub(crate) requests: usize,
    pub(crate) counts: BTreeMap<Kind, usize>,
}

// === impl Measured ===

impl Measured {
    pub(crate) fn begin(began_at: Timestamp) -> Self {
        Self {
            began_at,
            until_completed: Vec::new(),
            from_ready_to_completed: Vec::new(),
            until_stop: Vec::new(),
            bare: Vec::new(),
            row: Vec::new(),
            together: None,
            bare_together: None,
            burst: None,
            api: Vec::new(),
            memory: BTreeMap::new(),
        }
    }

    pub(crate) fn api_each(&self, phase: Phase) -> Option<f64> {
        let api = self.api.iter().find(|api| api.phase == phase)?;
        let counts = api.counts.iter();
        let of_requests = counts.filter(|(kind, _)| is_of_a_request(kind));
        Some(api.each(of_requests.map(|(_, count)| count).sum()))
    }
}

// === impl Api ===

impl Api {
    #[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
    pub(crate) fn each(&self, count: usize) -> f64 {
        count as f64 / self.requests.max(1) as f64
    }
}

/// What a request costs after its create: admission's reads are part of the create itself; leases are renewed and
/// watches begun anew as time goes by, with or without requests.
pub(crate) fn is_of_a_request((service, verb, resource): &Kind) -> bool {
    service != "admission" && verb != "watch" && resource != "leases"
}
