//! What goes over a bus that is up.

use bus::RequestError;
use integration::{NatsServer, Release, eventually};
use model::{
    ids::NodeName,
    order::{DropAnswer, DropOrder, NodeOrder, OrderAnswer, Refusal, StopOutcome},
    presence::{Answer, LastSeen, Question},
};
use tokio::{join, select, task::JoinSet};

use crate::words::{
    LONG, SHORT, TRACE, accept_all, connect, node, order, order_until_answered, presence, report,
    see_all, started,
};

crate::for_each_release! {
    an_order_reaches_its_node_and_the_answer_comes_back
    a_drop_goes_the_same_way_as_a_stop
    a_node_that_is_not_there_is_known_at_once
    a_node_that_does_not_answer_ends_by_the_deadline
    a_report_is_acknowledged_by_a_leader_only
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
    let sent = order("1");
    let done = OrderAnswer::Done {
        container_id: "1".into(),
        outcome: StopOutcome::Gone,
    };
    let node_part = async {
        let delivery = orders.next().await.unwrap();
        assert_eq!(delivery.message, NodeOrder::Stop(sent.clone()));
        assert_eq!(delivery.node, node());
        assert_eq!(delivery.traceparent.as_deref(), Some(TRACE));
        delivery.reply.send(done.clone().into()).await.unwrap();
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

async fn a_drop_goes_the_same_way_as_a_stop(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut orders = bus.serve_orders(&node()).await.unwrap();
    let sent = DropOrder {
        id: "drop/1/app".into(),
        attempt: 1,
        instance: order("1").instance,
        reason: "test".to_owned(),
    };
    let target = node();
    let (answer, ()) = join!(bus.send_drop_order(&target, &sent, None, LONG), async {
        let delivery = orders.next().await.unwrap();
        assert_eq!(delivery.message, NodeOrder::Drop(sent.clone()));
        let dropped = DropAnswer::Dropped { count: 2 };
        delivery.reply.send(dropped.into()).await.unwrap();
    });
    assert_eq!(answer.unwrap(), DropAnswer::Dropped { count: 2 });
}

async fn a_node_that_is_not_there_is_known_at_once(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let answer = bus.send_order(&node(), &order("1"), None, LONG).await;
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
    let answer = bus.send_order(&node(), &order("1"), None, SHORT).await;
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
    let mut reports = bus.serve_reports().await.unwrap();
    let target = node();
    let said = report("1");
    let (acknowledged, ()) = join!(bus.send_report(&target, &said, Some(TRACE), LONG), async {
        let delivery = reports.next().await.unwrap();
        assert_eq!((&delivery.message, &delivery.node), (&said, &target));
        assert_eq!(delivery.traceparent.as_deref(), Some(TRACE));
        delivery.reply.send(()).await.unwrap();
    });
    acknowledged.unwrap();
}

async fn presence_is_heard_and_asked_for(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut presences = bus.watch_presence().await.unwrap();
    bus.publish_presence(&presence()).await.unwrap();
    let heard = presences.next().await.unwrap();
    assert_eq!((heard.message, heard.node), (presence(), node()));

    let mut leader = JoinSet::new();
    leader.spawn(see_all(bus.serve_questions().await.unwrap()));
    let ask = async |node: NodeName| -> Answer {
        let question = Question { node, pod: None };
        bus.ask_leader(&question, LONG).await.unwrap()
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
    let mut nameless = order("1");
    nameless.instance.container_id = "".into();
    let answer = order_until_answered(&scheduler, &nameless).await;
    let OrderAnswer::Refused(Refusal::Invalid { message }) = answer else {
        panic!("{answer:?}");
    };
    assert!(message.contains("instance.container_id"), "{message}");

    let stranger = async_nats::connect(server.url()).await.unwrap();
    let noise = stranger.request(bus::subjects::order(&node()), "\u{7f}noise".into());
    assert!(!noise.await.unwrap().payload.is_empty());

    let answer = order_until_answered(&scheduler, &order("2")).await;
    assert_eq!(answer, OrderAnswer::Accepted);
}

async fn an_unreadable_report_is_passed_over(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut reports = bus.serve_reports().await.unwrap();
    let mut nameless = report("1");
    nameless.order = "".into();
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
        delivery.reply.send(()).await.unwrap();
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
    let sent = order("1");
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
