//! Orders, reports and presences to say, and connections to say them over.

use std::time::Duration;

use bus::{Args, Bus, Deliveries};
use integration::{NatsServer, eventually};
use model::{
    ids::{NodeName, PodKey},
    launch::Started,
    order::{Answer, Instance, Order, Outcome, Report, Sending, Stop, Verb},
    order_id::{OrderId, Owner, Task},
    presence::{LastSeen, Presence, PresenceAnswer, PresenceQuestion, Runtime},
};
use wire::ReportAck;

/// Long enough on a busy machine for what is expected to come.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// For what is expected not to come.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

pub(crate) fn node() -> NodeName {
    NodeName::new("node-1.zone.example")
}

/// A stop for the CRR of that uid.
pub(crate) fn stop(uid: &str) -> Sending {
    let stop = Stop {
        grace: Duration::from_secs(30),
        pre_stop: None,
        begin_within: None,
    };
    sending(Owner::Crr(uid.into()), Verb::Stop(stop))
}

pub(crate) fn sending(owner: Owner, verb: Verb) -> Sending {
    let reason = "ContainerRecreateRequest default/a".to_owned();
    Sending {
        order: Order::new(owner, instance(), reason, verb),
        attempt: 1,
    }
}

/// The report of a stop for the CRR of that uid.
pub(crate) fn report(uid: &str) -> Report {
    report_of(Owner::Crr(uid.into()))
}

pub(crate) fn report_of(owner: Owner) -> Report {
    let instance = instance();
    Report {
        order: OrderId::new(owner, Task::Stop, instance.container.clone()),
        attempt: 1,
        sequence: 1,
        instance,
        outcome: Outcome::Stopped { hook_error: None },
    }
}

pub(crate) fn presence() -> Presence {
    Presence {
        node: node(),
        boot_id: "boot".into(),
        version: "0.1.0".to_owned(),
        runtime: Some(Runtime {
            name: "containerd".to_owned(),
            version: "2.1".to_owned(),
        }),
        orders_held: 2,
    }
}

pub(crate) fn started() -> Started {
    let instance = instance();
    Started {
        pod: PodKey {
            namespace: instance.namespace,
            name: instance.pod,
        },
        pod_uid: instance.pod_uid,
        container: instance.container,
        container_id: instance.container_id,
    }
}

fn instance() -> Instance {
    Instance {
        namespace: "default".into(),
        pod: "web".into(),
        pod_uid: "0e1".into(),
        container: "app".into(),
        container_id: "abc".into(),
        restart_count: 1,
    }
}

/// A connection that is up.
pub(crate) async fn connect(server: &NatsServer, name: &str) -> Bus {
    let bus = Bus::connect(&Args::at(server.url()), name).await.unwrap();
    connected(&bus).await;
    bus
}

pub(crate) async fn connected(bus: &Bus) {
    eventually("the bus is connected", async || {
        bus.is_connected().then_some(())
    })
    .await;
}

pub(crate) async fn disconnected(bus: &Bus) {
    eventually("the bus is disconnected", async || {
        (!bus.is_connected()).then_some(())
    })
    .await;
}

/// Sends an order until the node's subscription has reached the server.
pub(crate) async fn order_until_answered(bus: &Bus, order: &Sending) -> Answer {
    eventually("the order is answered", async || {
        bus.send_order(&node(), order, None, LONG).await.ok()
    })
    .await
}

/// A node that accepts every order; it never ends.
pub(crate) async fn accept_all(mut orders: Deliveries<Sending, Answer>) {
    while let Some(order) = orders.next().await {
        order.reply.send(Answer::Accepted).await.unwrap();
    }
}

/// A leader that takes every report; it never ends.
pub(crate) async fn acknowledge_all(mut reports: Deliveries<Report, ReportAck>) {
    while let Some(report) = reports.next().await {
        report.reply.send(ReportAck).await.unwrap();
    }
}

/// A leader that has just seen every node asked for; it never ends.
pub(crate) async fn see_all(mut questions: Deliveries<PresenceQuestion, PresenceAnswer>) {
    while let Some(question) = questions.next().await {
        let last_seen = if question.message.node == node() {
            LastSeen::Ago(Duration::from_millis(7))
        } else {
            LastSeen::NotFor(Duration::from_secs(60))
        };
        let answer = PresenceAnswer {
            last_seen,
            active_crrs: Vec::new(),
        };
        question.reply.send(answer).await.unwrap();
    }
}
