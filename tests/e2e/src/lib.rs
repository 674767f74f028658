//! What the end-to-end tests, the demo and the benchmark share: a namespace of one's own on a cluster where
//! Podwright is deployed, pods and requests in it, and what can be asked of the services.
//!
//! The tests are in `tests/`, the demo in `demo`. Nothing here starts a cluster but the demo.

pub mod demo;
mod installation;
mod kubectl;
mod launch;
pub mod page;
mod pod;
mod program;
mod request;
mod space;
mod stage;
pub mod suite;
mod test_cluster;
mod trace;
mod wait;

pub use self::{
    installation::{Installation, NAMESPACE, SERVICES},
    kubectl::kubectl,
    launch::{Ordered, started_at},
    pod::{Instance, PodPlan, SHARED},
    program::{End, crr, end, start_crr},
    request::{Refused, is_completed, phase_of, spec, state_of},
    space::{Space, connect, in_space},
    stage::{enter_if_asked, run_on_stage},
    test_cluster::our_cluster,
    trace::wait_for_trace,
    wait::{Look, PATIENCE, wait_for},
};
