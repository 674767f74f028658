//! An elector and an API server that accepts, rejects, ignores or delays writes; time is virtual.

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex, MutexGuard},
};

use http::{Method, Request, Response};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::time::sleep;
use tower::service_fn;

use super::*;

const NAME: &str = "leader";

/// Behaviour of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Well,
    /// Rejects writes with this status.
    Refuse(u16),
    /// Ignores requests.
    Silent,
    /// Accepts writes and answers them after this time.
    Late(Duration),
}

struct State {
    mode: Mode,
    lease: Option<Value>,
    version: u64,
    /// Arrival times of writes.
    writes: Vec<Instant>,
    /// Arrival times of accepted writes.
    taken: Vec<Instant>,
    /// Identity of the elector whose requests are lost.
    cut_off: Option<&'static str>,
}

/// The API server, with one Lease at most. Its watches give no events.
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

// === impl Server ===

impl Server {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            mode: Mode::Well,
            lease: None,
            version: 1,
            writes: Vec::new(),
            taken: Vec::new(),
            cut_off: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn becomes(&self, mode: Mode) {
        self.state().mode = mode;
    }

    fn holder(&self) -> Option<String> {
        let state = self.state();
        let holder = state.lease.as_ref()?["spec"]["holderIdentity"].as_str();
        holder.map(str::to_owned)
    }

    /// A foreign write that keeps the holder.
    fn touch(&self) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version.to_string();
        if let Some(lease) = &mut state.lease {
            lease["metadata"]["resourceVersion"] = json!(version);
        }
    }

    fn elector(&self, identity: &'static str) -> Elector {
        let server = self.clone();
        let service = service_fn(move |request| {
            let server = server.clone();
            async move {
                if server.state().cut_off == Some(identity) {
                    return pending().await;
                }
                Ok::<_, Infallible>(server.answer(request).await)
            }
        });
        let leases = Api::default_namespaced(Client::new(service, "podwright"));
        let now = || Timestamp::UNIX_EPOCH;
        Elector::new(leases, NAME, identity, Timing::default(), now)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let query = request.uri().query().unwrap_or_default();
        let mode = self.state().mode;
        if query.contains("watch=true") || mode == Mode::Silent {
            if request.method() != Method::GET {
                self.state().writes.push(Instant::now());
            }
            return pending().await;
        }
        if request.method() == Method::GET {
            return self.read(request.uri().path());
        }
        let body = request.into_body().collect_bytes().await.unwrap();
        let answer = self.write(serde_json::from_slice(&body).unwrap());
        if let Mode::Late(by) = mode {
            sleep(by).await;
        }
        answer
    }

    fn read(&self, path: &str) -> Response<Body> {
        let state = self.state();
        match &state.lease {
            Some(lease) if path.ends_with(NAME) => respond(200, lease),
            None if path.ends_with(NAME) => refuse(404),
            lease => respond(
                200,
                &json!({
                    "metadata": { "resourceVersion": state.version.to_string() },
                    "items": Vec::from_iter(lease),
                }),
            ),
        }
    }

    fn write(&self, mut lease: Value) -> Response<Body> {
        let mut state = self.state();
        state.writes.push(Instant::now());
        if let Mode::Refuse(status) = state.mode {
            return refuse(status);
        }
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        if state.lease.as_ref().map_or(Value::Null, version) != version(&lease) {
            return refuse(409);
        }
        state.taken.push(Instant::now());
        state.version += 1;
        lease["metadata"]["resourceVersion"] = json!(state.version.to_string());
        state.lease = Some(lease.clone());
        respond(200, &lease)
    }
}

fn refuse(status: u16) -> Response<Body> {
    let body = json!({ "kind": "Status", "status": "Failure", "message": "no", "reason": "Because", "code": status });
    respond(status, &body)
}

fn respond(status: u16, body: &Value) -> Response<Body> {
    let body = Body::from(body.to_string().into_bytes());
    Response::builder().status(status).body(body).unwrap()
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_hands_over_when_it_ends() {
    let server = Server::new();
    for identity in ["a", "b"] {
        let start = Instant::now();
        let elector = server.elector(identity);
        let mut leadership = elector.leadership();
        let mut observer = elector.leadership();
        let script = async {
            leadership.wait_held().await;
            assert_eq!(start.elapsed(), Duration::ZERO);
            sleep(seconds(59)).await;
            assert!(leadership.is_held());
            assert_eq!(server.holder().as_deref(), Some(identity));
        };
        elector.run(script).await;
        observer.wait_lost().await;
        assert_eq!(server.holder().as_deref(), Some(""));
    }
    let writes = server.state().writes.len();
    assert_eq!(writes, 2 * (1 + 19 + 1), "taken, renewed, released");
}

/// The server rejects every write, from the beginning or once there is a leader.
#[tokio::test(start_paused = true)]
async fn refused_writes_are_not_hammered() {
    for status in [403, 409, 500, 503] {
        for comes_first in [true, false] {
            let server = Server::new();
            let elector = server.elector("a");
            let mut leadership = elector.leadership();
            let script = async {
                if !comes_first {
                    leadership.wait_held().await;
                }
                server.becomes(Mode::Refuse(status));
                sleep(seconds(120)).await;
                assert!(!leadership.is_held());
            };
            if comes_first {
                server.becomes(Mode::Refuse(status));
            }
            elector.run(script).await;
            let writes = server.state().writes.len();
            assert!((5..=30).contains(&writes), "{status}: {writes} writes");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn leads_again_when_writes_are_taken_again() {
    let server = Server::new();
    let elector = server.elector("a");
    let mut leadership = elector.leadership();
    let script = async {
        leadership.wait_held().await;
        server.becomes(Mode::Refuse(500));
        leadership.wait_lost().await;
        server.becomes(Mode::Well);
        leadership.wait_held().await;
    };
    elector.run(script).await;
}

/// At any moment, with any request under way: other replicas may take the Lease from the tenth second on.
#[tokio::test(start_paused = true)]
async fn stops_leading_in_time_when_nothing_is_answered() {
    for mode in [Mode::Silent, Mode::Late(seconds(60)), Mode::Refuse(500)] {
        for tenth in 0..40 {
            let server = Server::new();
            let elector = server.elector("a");
            let mut leadership = elector.leadership();
            let script = async {
                leadership.wait_held().await;
                sleep(Duration::from_millis(100 * tenth + 1)).await;
                let last = *server.state().taken.last().unwrap();
                server.becomes(mode);
                leadership.wait_lost().await;
                let held_for = last.elapsed();
                let limit = Timing::default().give_up_after;
                // Timers are rounded up to a millisecond.
                assert!(
                    held_for <= limit + Duration::from_millis(1),
                    "{mode:?}: {held_for:?}"
                );
            };
            elector.run(script).await;
        }
    }
}

/// A leader without network has stopped when another begins, at any moment.
#[tokio::test(start_paused = true)]
async fn two_never_lead_at_once() {
    for tenth in 0..100 {
        let server = Server::new();
        let (first, second) = (server.elector("a"), server.elector("b"));
        let (first_leads, mut second_leads) = (first.leadership(), second.leadership());
        let standby = async {
            first_leads.clone().wait_held().await;
            let script = async {
                sleep(Duration::from_millis(100 * tenth)).await;
                server.state().cut_off = Some("a");
                second_leads.wait_held().await;
                assert!(!first_leads.is_held(), "{tenth}");
            };
            second.run(script).await;
        };
        select! {
            () = first.run(pending()) => {}
            () = standby => {}
        }
        assert_eq!(server.holder().as_deref(), Some(""), "{tenth}");
    }
}

/// The first write or a renewal, answered before or after the deadline of the shutdown.
#[tokio::test(start_paused = true)]
async fn a_write_under_way_at_the_end_is_released_too() {
    for (late_from, end_at) in [(0, 1), (1000, 3500)] {
        for late in [1, 60] {
            let server = Server::new();
            let elector = server.elector("a");
            let script = async {
                if late_from > 0 {
                    sleep(Duration::from_millis(late_from)).await;
                }
                server.becomes(Mode::Late(seconds(late)));
                sleep(Duration::from_millis(end_at - late_from)).await;
                assert_eq!(server.holder().as_deref(), Some("a"));
                server.becomes(Mode::Well);
            };
            elector.run(script).await;
            assert_eq!(server.holder().as_deref(), Some(""), "{end_at} {late}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_with_a_foreign_write_is_released_too() {
    let server = Server::new();
    let elector = server.elector("a");
    let mut leadership = elector.leadership();
    let script = async {
        leadership.wait_held().await;
        server.touch();
    };
    elector.run(script).await;
    assert_eq!(server.holder().as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_another_is_not_released() {
    let server = Server::new();
    server.state().lease = Some(json!({
        "metadata": { "name": NAME, "resourceVersion": "1" },
        "spec": { "holderIdentity": "b", "leaseDurationSeconds": 10 },
    }));
    let elector = server.elector("a");
    elector.run(sleep(seconds(5))).await;
    assert_eq!(server.holder().as_deref(), Some("b"));
    assert_eq!(server.state().writes, []);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_does_not_delay_the_shutdown() {
    let server = Server::new();
    let elector = server.elector("a");
    let mut leadership = elector.leadership();
    let script = async {
        leadership.wait_held().await;
        server.becomes(Mode::Silent);
        sleep(seconds(4)).await;
    };
    let start = Instant::now();
    elector.run(script).await;
    assert!(start.elapsed() <= seconds(4) + REQUEST_TIMEOUT + RELEASE_WITHIN);
}
