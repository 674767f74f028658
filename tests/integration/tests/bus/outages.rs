//! What an outage of the bus does, and what it does not.

use bus::{Args, Bus, PublishError, RequestError};
use integration::{NatsServer, Release, eventually};
use model::order::Answer;
use tokio::{task::JoinSet, time::Instant};

use crate::words::{
    LONG, SHORT, accept_all, connect, connected, disconnected, node, order_until_answered,
    presence, stop,
};

crate::for_each_release! {
    subscriptions_outlive_the_server
    nothing_said_during_an_outage_is_sent_after_it
    a_server_that_comes_later_is_found
    a_server_that_hangs_ends_a_request_by_its_deadline
}

async fn subscriptions_outlive_the_server(release: Release) {
    let mut server = NatsServer::start(release).await.unwrap();
    let (scheduler, executor) = (
        connect(&server, "crr-scheduler").await,
        connect(&server, "node-executor").await,
    );
    let mut node_part = JoinSet::new();
    node_part.spawn(accept_all(executor.serve_orders(&node()).await.unwrap()));
    for id in ["1", "2", "3"] {
        let answer = order_until_answered(&scheduler, &stop(id)).await;
        assert_eq!(answer, Answer::Accepted);
        server.kill().await.unwrap();
        disconnected(&scheduler).await;
        disconnected(&executor).await;
        server.start_again().await.unwrap();
        connected(&scheduler).await;
        connected(&executor).await;
    }
    let answer = order_until_answered(&scheduler, &stop("4")).await;
    assert_eq!(answer, Answer::Accepted);
}

async fn nothing_said_during_an_outage_is_sent_after_it(release: Release) {
    let mut server = NatsServer::start(release).await.unwrap();
    let (scheduler, executor) = (
        connect(&server, "crr-scheduler").await,
        connect(&server, "node-executor").await,
    );
    let mut orders = executor.serve_orders(&node()).await.unwrap();
    let mut presences = scheduler.watch_presence().await.unwrap();
    server.kill().await.unwrap();
    disconnected(&scheduler).await;
    disconnected(&executor).await;

    let before = Instant::now();
    let answer = scheduler
        .send_order(&node(), &stop("old"), None, LONG)
        .await;
    assert!(
        matches!(answer, Err(RequestError::Disconnected)),
        "{answer:?}"
    );
    let published = executor.publish_presence(&presence()).await;
    assert!(
        matches!(published, Err(PublishError::Disconnected)),
        "{published:?}"
    );
    assert!(before.elapsed() < LONG / 2);

    server.start_again().await.unwrap();
    connected(&scheduler).await;
    connected(&executor).await;
    // What comes first is what is said now.
    let delivery = eventually("the new order comes", async || {
        let sent = stop("new");
        let target = node();
        tokio::select! {
            _ = scheduler.send_order(&target, &sent, None, SHORT) => None,
            delivery = orders.next() => delivery,
        }
    })
    .await;
    assert_eq!(delivery.message, stop("new"));
    let mut now = presence();
    now.orders_held = 99;
    let heard = eventually("the new presence comes", async || {
        executor.publish_presence(&now).await.unwrap();
        let heard = tokio::time::timeout(SHORT, presences.next()).await;
        heard.ok().flatten()
    })
    .await;
    assert_eq!(heard.message, now);
}

async fn a_server_that_comes_later_is_found(release: Release) {
    let mut server = NatsServer::start(release).await.unwrap();
    server.kill().await.unwrap();
    let bus = Bus::connect(&Args::at(server.url()), "node-executor")
        .await
        .unwrap();
    assert!(!bus.is_connected());
    let orders = bus.serve_orders(&node()).await.unwrap();
    let answer = bus.send_order(&node(), &stop("1"), None, LONG).await;
    assert!(
        matches!(answer, Err(RequestError::Disconnected)),
        "{answer:?}"
    );
    server.start_again().await.unwrap();
    connected(&bus).await;
    let mut node_part = JoinSet::new();
    node_part.spawn(accept_all(orders));
    let answer = order_until_answered(&bus, &stop("2")).await;
    assert_eq!(answer, Answer::Accepted);
}

async fn a_server_that_hangs_ends_a_request_by_its_deadline(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let bus = connect(&server, "crr-scheduler").await;
    let mut node_part = JoinSet::new();
    node_part.spawn(accept_all(bus.serve_orders(&node()).await.unwrap()));
    server.pause().unwrap();
    let answer = bus.send_order(&node(), &stop("1"), None, SHORT).await;
    assert!(
        matches!(answer, Err(RequestError::Timeout { .. })),
        "{answer:?}"
    );
    server.resume().unwrap();
    let answer = order_until_answered(&bus, &stop("2")).await;
    assert_eq!(answer, Answer::Accepted);
}
