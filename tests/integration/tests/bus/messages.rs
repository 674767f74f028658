//! What goes over a bus that is up.

use bus::RequestError;
use integration::{NatsServer, Release, eventually};
use model::{
    ids::NodeName,
    order::{Answer, Outcome, Refusal, Verb},
    order_id::{Orderer, Owner},
    presence::{LastSeen, PresenceAnswer, PresenceQuestion},
};
use tokio::{join, select, task::JoinSet};
use wire::ReportAck;

use crate::words::{
    LONG, SHORT, TRACE, accept_all, connect, node, order_until_answered, presence, report,
    report_of, see_all, sending, started, stop,
};

crate::for_each_release! {
    an_order_reaches_its_node_and_the_answer_comes_back
    a_removal_goes_the_same_way_as_a_stop
    a_node_that_is_not_there_is_known_at_once
    a_node_that_does_not_answer_ends_by_the_deadline
    a_report_is_acknowledged_by_a_leader_only
    a_report_reaches_the_controller_that_ordered
    a_report_of_an_old_node_reaches_the_crr_scheduler
    presence_is_heard_and_asked_for
    a_start_is_heard_with_its_node
    an_unreadable_order_is_refused_and_the_next_one_served
    an_unreadable_report_is_passed_over
    an_unreadable_answer_is_an_error
}

async fn an_order_reaches_its_node_and_the_answer_comes_back(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let (scheduler, executor) = (
        connect(&server, "crr-scheduler").await,
        connect(&server, "node-executor/node-1.zone.example").await,
    );
    let mut orders = executor.serve_orders(&node()).await.unwrap();
    let sent = stop("1");
    let done = Answer::Done {
        container_id: Some("1".into()),
        outcome: Outcome::Gone,
    };
    let node_part = async {
        let delivery = orders.next().await.unwrap();
        assert_eq!(delivery.message, sent);
        assert_eq!(delivery.node, node());
        assert_eq!(delivery.traceparent.as_deref(), Some(TRACE));
        delivery.reply.send(done.clone()).await.unwrap();
    };
    let target = node();
    let scheduler_part = eventually("the order is answered", async || {
        let answer = scheduler
            .send_order(&target, &sent, Some(TRACE), LONG)
            .await;
        answer.ok()
    });
    let (answer, ()) = join!(scheduler_part, node_part);
    assert_eq!(answer, done);
}

async fn a_removal_goes_the_same_way_as_a_stop(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut orders = bus.serve_orders(&node()).await.unwrap();
    let sent = sending(Owner::Crr("1".into()), Verb::RemoveDeadInstances);
    let removed = Answer::Done {
        container_id: None,
        outcome: Outcome::Removed { count: 2 },
    };
    let target = node();
    let (answer, ()) = join!(bus.send_order(&target, &sent, None, LONG), async {
        let delivery = orders.next().await.unwrap();
        assert_eq!(delivery.message, sent);
        delivery.reply.send(removed.clone()).await.unwrap();
    });
    assert_eq!(answer.unwrap(), removed);
}

async fn a_node_that_is_not_there_is_known_at_once(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let answer = bus.send_order(&node(), &stop("1"), None, LONG).await;
    assert!(
        matches!(&answer, Err(RequestError::NoResponders { subject })
            if subject == "podwright.v1.node.node-1_zone_example.order"),
        "{answer:?}"
    );
}

async fn a_node_that_does_not_answer_ends_by_the_deadline(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let orders = bus.serve_orders(&node()).await.unwrap();
    // Of one connection: the server learns of the subscription before it sees the order.
    let answer = bus.send_order(&node(), &stop("1"), None, SHORT).await;
    assert!(
        matches!(answer, Err(RequestError::Timeout { .. })),
        "{answer:?}"
    );
    drop(orders);
}

async fn a_report_is_acknowledged_by_a_leader_only(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "node-executor").await;
    let nobody = bus.send_report(&node(), &report("1"), None, LONG).await;
    assert!(
        matches!(nobody, Err(RequestError::NoResponders { .. })),
        "{nobody:?}"
    );
    let mut reports = bus.serve_reports(Orderer::Crr).await.unwrap();
    let target = node();
    let said = report("1");
    let (acknowledged, ()) = join!(bus.send_report(&target, &said, Some(TRACE), LONG), async {
        let delivery = reports.next().await.unwrap();
        assert_eq!((&delivery.message, &delivery.node), (&said, &target));
        assert_eq!(delivery.traceparent.as_deref(), Some(TRACE));
        delivery.reply.send(ReportAck).await.unwrap();
    });
    acknowledged.unwrap();
}

async fn a_report_reaches_the_controller_that_ordered(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "node-executor").await;
    let mut crr_reports = bus.serve_reports(Orderer::Crr).await.unwrap();
    let sidecar = report_of(Owner::Sidecars("0e1".into()));
    let target = node();
    let unheard = bus.send_report(&target, &sidecar, None, LONG).await;
    assert!(
        matches!(unheard, Err(RequestError::NoResponders { .. })),
        "{unheard:?}"
    );
    let mut sidecar_reports = bus.serve_reports(Orderer::Sidecar).await.unwrap();
    let (acknowledged, ()) = join!(bus.send_report(&target, &sidecar, None, LONG), async {
        let delivery = select! {
            delivery = sidecar_reports.next() => delivery.unwrap(),
            other = crr_reports.next() => panic!("{:?}", other.map(|report| report.message)),
        };
        assert_eq!((&delivery.message, &delivery.node), (&sidecar, &target));
        delivery.reply.send(ReportAck).await.unwrap();
    });
    acknowledged.unwrap();
}

/// Nodes of versions without orderers report on a subject without one.
async fn a_report_of_an_old_node_reaches_the_crr_scheduler(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut reports = bus.serve_reports(Orderer::Crr).await.unwrap();
    let mut sidecar_reports = bus.serve_reports(Orderer::Sidecar).await.unwrap();
    let old_node = async_nats::connect(server.url()).await.unwrap();
    let subject = "podwright.v1.report.node-1_zone_example";
    let sent = report("1");
    let (acknowledgement, ()) = join!(
        old_node.request(subject, wire::Message::encode(&sent).into()),
        async {
            let delivery = select! {
                delivery = reports.next() => delivery.unwrap(),
                other = sidecar_reports.next() => panic!("{:?}", other.map(|report| report.message)),
            };
            assert_eq!((delivery.message, delivery.node), (sent.clone(), node()));
            delivery.reply.send(ReportAck).await.unwrap();
        }
    );
    assert!(acknowledgement.unwrap().payload.is_empty());
}

async fn presence_is_heard_and_asked_for(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut presences = bus.watch_presence().await.unwrap();
    bus.publish_presence(&presence()).await.unwrap();
    let heard = presences.next().await.unwrap();
    assert_eq!((heard.message, heard.node), (presence(), node()));

    let mut leader = JoinSet::new();
    leader.spawn(see_all(bus.serve_presence_questions().await.unwrap()));
    let ask = async |node: NodeName| -> PresenceAnswer {
        let question = PresenceQuestion { node, pod: None };
        bus.ask_presence(&question, LONG).await.unwrap()
    };
    let seen = ask(node()).await;
    assert!(matches!(seen.last_seen, LastSeen::Ago(_)), "{seen:?}");
    let unseen = ask("other".into()).await;
    assert!(
        matches!(unseen.last_seen, LastSeen::NotFor(_)),
        "{unseen:?}"
    );
}

async fn a_start_is_heard_with_its_node(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "barrier-manager").await;
    let mut starts = bus.watch_started().await.unwrap();
    bus.publish_started(&node(), &started()).await.unwrap();
    let heard = starts.next().await.unwrap();
    assert_eq!((heard.message, heard.node), (started(), node()));
}

async fn an_unreadable_order_is_refused_and_the_next_one_served(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let (scheduler, executor) = (
        connect(&server, "crr-scheduler").await,
        connect(&server, "node-executor").await,
    );
    let mut node_part = JoinSet::new();
    node_part.spawn(accept_all(executor.serve_orders(&node()).await.unwrap()));
    let mut nameless = stop("1");
    nameless.order.instance.container_id = "".into();
    let answer = order_until_answered(&scheduler, &nameless).await;
    let Answer::Refused(Refusal::Invalid { message }) = answer else {
        panic!("{answer:?}");
    };
    assert!(message.contains("instance.container_id"), "{message}");

    let stranger = async_nats::connect(server.url()).await.unwrap();
    let noise = stranger.request(bus::subjects::order(&node()), "\u{7f}noise".into());
    assert!(!noise.await.unwrap().payload.is_empty());

    let answer = order_until_answered(&scheduler, &stop("2")).await;
    assert_eq!(answer, Answer::Accepted);
}

async fn an_unreadable_report_is_passed_over(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut reports = bus.serve_reports(Orderer::Crr).await.unwrap();
    let mut nameless = report("1");
    nameless.instance.container_id = "".into();
    let target = node();
    // The report itself is not acknowledged, so its node keeps it for a leader that can read it.
    let answer = select! {
        answer = bus.send_report(&target, &nameless, None, SHORT) => answer,
        read = reports.next() => panic!("{:?}", read.map(|report| report.message)),
    };
    assert!(
        matches!(answer, Err(RequestError::Timeout { .. })),
        "{answer:?}"
    );
    let good = report("2");
    let (acknowledged, ()) = join!(bus.send_report(&target, &good, None, LONG), async {
        let delivery = reports.next().await.unwrap();
        assert_eq!(delivery.message, good);
        delivery.reply.send(ReportAck).await.unwrap();
    });
    acknowledged.unwrap();
}

async fn an_unreadable_answer_is_an_error(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let stranger = async_nats::connect(server.url()).await.unwrap();
    let mut orders = stranger
        .subscribe(bus::subjects::order(&node()))
        .await
        .unwrap();
    stranger.flush().await.unwrap();
    let target = node();
    let sent = stop("1");
    let (answer, ()) = join!(bus.send_order(&target, &sent, None, LONG), async {
        let message = futures::StreamExt::next(&mut orders).await.unwrap();
        let reply = message.reply.unwrap();
        assert!(reply.starts_with("_INBOX_crr-scheduler."), "{reply}");
        stranger.publish(reply, "\u{7f}noise".into()).await.unwrap();
    });
    assert!(
        matches!(answer, Err(RequestError::Malformed { .. })),
        "{answer:?}"
    );
}
