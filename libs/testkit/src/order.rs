//! Orders of request `1` for the containers of pod `shop/web`.

use std::time::Duration;

use model::{
    ids::ContainerName,
    order::{Instance, Order, Outcome, Report, Stop, Verb},
    order_id::{OrderId, Owner, Task},
};

/// An instance of a container of pod `shop/web`.
pub fn instance(container: &str, container_id: &str) -> Instance {
    Instance {
        namespace: "shop".into(),
        pod: "web".into(),
        pod_uid: "pod-uid".into(),
        container: container.into(),
        container_id: container_id.into(),
        restart_count: 0,
    }
}

/// A stop without a hook, with 30 s of grace.
pub fn stop(container: &str, container_id: &str) -> Order {
    let stop = Stop {
        grace: Duration::from_secs(30),
        pre_stop: None,
        begin_within: None,
    };
    order(container, container_id, Verb::Stop(stop))
}

/// A removal of dead instances, of which the named one is the newest.
pub fn removal(container: &str, container_id: &str) -> Order {
    order(container, container_id, Verb::RemoveDeadInstances)
}

pub fn stop_id(container: &str) -> OrderId {
    id(container, Task::Stop)
}

pub fn removal_id(container: &str) -> OrderId {
    id(container, Task::RemoveDeadInstances)
}

/// The report of a stop.
pub fn report(container: &str, container_id: &str, sequence: u32, outcome: Outcome) -> Report {
    Report {
        order: stop_id(container),
        attempt: 1,
        sequence,
        instance: instance(container, container_id),
        outcome,
    }
}

fn order(container: &str, container_id: &str, verb: Verb) -> Order {
    let instance = instance(container, container_id);
    Order::new(owner(), instance, "a test".to_owned(), verb)
}

fn id(container: &str, task: Task) -> OrderId {
    OrderId::new(owner(), task, ContainerName::new(container))
}

fn owner() -> Owner {
    Owner::Crr("1".into())
}
