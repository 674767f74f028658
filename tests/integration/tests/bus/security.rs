//! Who may connect, and how.

use std::path::Path;

use bus::{Args, Bus, ConnectError, RequestError, SecretError};
use integration::{NatsServer, Release, eventually};
use model::{ids::NodeName, order::Answer, order_id::Orderer};

use tokio::{select, task::JoinSet};

use crate::words::{
    LONG, SHORT, accept_all, acknowledge_all, connected, disconnected, node, order_until_answered,
    presence, report, started, stop,
};

crate::for_each_release! {
    a_user_is_let_in_by_the_password_in_a_file
    an_nkey_is_let_in_by_the_seed_in_a_file
    a_server_is_trusted_by_the_authority_in_a_file
    a_missing_file_is_told_at_once
    a_wrong_password_keeps_out
    a_renewed_secret_needs_no_restart
    a_foreign_authority_is_not_trusted
    a_client_without_the_authority_is_refused
    an_authority_that_comes_later_is_taken
    a_server_without_tls_is_not_talked_to
    a_new_certificate_is_trusted_by_a_bundle_of_both_authorities
    a_node_needs_no_more_than_its_own_subjects
    a_barrier_manager_hears_what_a_node_started_and_says_nothing
    a_node_can_neither_read_nor_speak_for_another
}

async fn a_user_is_let_in_by_the_password_in_a_file(release: Release) {
    let server = NatsServer::start_with(release, |_| {
        "authorization: { user: node, password: secret-of-the-node }".to_owned()
    });
    let server = server.await.unwrap();
    let mut args = Args::at(server.url());
    args.nats_user = Some("node".to_owned());
    args.nats_password_file = Some(written(&server, "password", "secret-of-the-node\n"));
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    connected(&bus).await;
}

async fn an_nkey_is_let_in_by_the_seed_in_a_file(release: Release) {
    // The pair of the NATS documentation: of no use anywhere.
    let server = NatsServer::start_with(release, |_| {
        "authorization: { users: [ { nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4 } ] }"
            .to_owned()
    });
    let server = server.await.unwrap();
    let mut args = Args::at(server.url());
    let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n";
    args.nats_nkey_file = Some(written(&server, "seed", seed));
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    connected(&bus).await;
}

async fn a_server_is_trusted_by_the_authority_in_a_file(release: Release) {
    let server = NatsServer::start_with(release, tls_settings).await.unwrap();
    let mut args = Args::at(server.url().replace("nats://", "tls://"));
    args.nats_ca = Some(server.folder().join("server.pem"));
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    connected(&bus).await;
}

async fn a_missing_file_is_told_at_once(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let mut args = Args::at(server.url());
    args.nats_nkey_file = Some(server.folder().join("nothing"));
    let error = Bus::connect(&args, "node-executor").await.unwrap_err();
    assert!(
        matches!(&error, ConnectError::Credentials(SecretError::Read { path, .. }) if path.ends_with("nothing")),
        "{error}"
    );
}

async fn a_wrong_password_keeps_out(release: Release) {
    let server = NatsServer::start_with(release, |_| {
        "authorization: { user: node, password: secret-of-the-node }".to_owned()
    });
    let server = server.await.unwrap();
    let mut args = Args::at(server.url());
    args.nats_user = Some("node".to_owned());
    args.nats_password_file = Some(written(&server, "password", "guessed"));
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    server.has_logged("authentication error").await;
    assert!(!bus.is_connected());
}

async fn a_renewed_secret_needs_no_restart(release: Release) {
    let user = |folder: &Path, user: &str| {
        std::fs::write(folder.join("user.conf"), user).unwrap();
    };
    let server = NatsServer::start_with(release, |folder| {
        user(folder, "user: node, password: old-secret-of-the-node");
        "authorization: { include ./user.conf }".to_owned()
    });
    let mut server = server.await.unwrap();
    let mut by_password = Args::at(server.url());
    by_password.nats_user = Some("node".to_owned());
    let secret = written(&server, "password", "old-secret-of-the-node");
    by_password.nats_password_file = Some(secret);
    let bus = Bus::connect(&by_password, "node-executor").await.unwrap();
    connected(&bus).await;

    server.kill().await.unwrap();
    disconnected(&bus).await;
    user(
        server.folder(),
        "user: node, password: new-secret-of-the-node",
    );
    server.start_again().await.unwrap();
    server.has_logged("authentication error").await;
    assert!(!bus.is_connected());
    written(&server, "password", "new-secret-of-the-node");
    connected(&bus).await;
}

async fn a_foreign_authority_is_not_trusted(release: Release) {
    let server = NatsServer::start_with(release, tls_settings).await.unwrap();
    let foreign = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let mut args = Args::at(server.url());
    args.nats_ca = Some(written(&server, "foreign.pem", &foreign.cert.pem()));
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    has_trouble(&bus, "invalid peer certificate").await;
    assert!(!bus.is_connected());
}

async fn a_client_without_the_authority_is_refused(release: Release) {
    let server = NatsServer::start_with(release, tls_settings).await.unwrap();
    let args = Args::at(server.url());
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    has_trouble(&bus, "UnknownIssuer").await;
    assert!(!bus.is_connected());
}

async fn an_authority_that_comes_later_is_taken(release: Release) {
    let server = NatsServer::start_with(release, tls_settings).await.unwrap();
    let mut args = Args::at(server.url());
    let ca = server.folder().join("later.pem");
    args.nats_ca = Some(ca.clone());
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    has_trouble(&bus, &format!("failed to read {}", ca.display())).await;
    written(&server, "later.pem", "nothing yet");
    has_trouble(&bus, "later.pem holds no certificate").await;
    std::fs::copy(server.folder().join("server.pem"), ca).unwrap();
    connected(&bus).await;
}

async fn a_server_without_tls_is_not_talked_to(release: Release) {
    let server = NatsServer::start(release).await.unwrap();
    let foreign = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let mut args = Args::at(server.url());
    args.nats_ca = Some(written(&server, "ca.pem", &foreign.cert.pem()));
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    eventually("an attempt fails", async || bus.trouble()).await;
    assert!(!bus.is_connected());
}

/// As the keeper renews: first the clients' bundle, then the server's certificate.
async fn a_new_certificate_is_trusted_by_a_bundle_of_both_authorities(release: Release) {
    let server = NatsServer::start_with(release, tls_settings);
    let mut server = server.await.unwrap();
    let old = std::fs::read_to_string(server.folder().join("server.pem")).unwrap();
    let mut args = Args::at(server.url());
    args.nats_ca = Some(written(&server, "ca.pem", &old));
    let bus = Bus::connect(&args, "node-executor").await.unwrap();
    connected(&bus).await;

    tls_settings(server.folder());
    let new = std::fs::read_to_string(server.folder().join("server.pem")).unwrap();
    server.kill().await.unwrap();
    disconnected(&bus).await;
    server.start_again().await.unwrap();
    has_trouble(&bus, "invalid peer certificate").await;
    assert!(!bus.is_connected());
    written(&server, "ca.pem", &format!("{new}{old}"));
    connected(&bus).await;
}

async fn has_trouble(bus: &Bus, words: &str) {
    eventually(words, async || bus.trouble()?.contains(words).then_some(())).await;
}

/// The permissions that docs/protocol.md asks for, of one node, of a barrier-manager and of a scheduler.
const PERMISSIONS: &str = r#"
authorization: { users: [
  { user: node-1, password: node, permissions: {
      publish: ["podwright.v1.report.*.node-1_zone_example", "podwright.v1.report.node-1_zone_example", "podwright.v1.presence.node-1_zone_example", "podwright.v1.started.node-1_zone_example", "_INBOX_crr-scheduler.>"]
      subscribe: ["podwright.v1.node.node-1_zone_example.order", "_INBOX_node-executor.node-1_zone_example.>"] } }
  { user: barriers, password: barriers, permissions: {
      publish: { deny: [">"] }
      subscribe: ["podwright.v1.started.*", "_INBOX_barrier-manager.>"] } }
  { user: scheduler, password: scheduler, permissions: {
      publish: ["podwright.v1.node.*.order", "_INBOX_node-executor.>", "_INBOX_admission.>"]
      subscribe: ["podwright.v1.report.crr.*", "podwright.v1.report.*", "podwright.v1.presence.*", "podwright.v1.ask.presence", "_INBOX_crr-scheduler.>"] } }
] }
"#;

async fn connect_as(server: &NatsServer, user: &str, password: &str, client: &str) -> Bus {
    let mut args = Args::at(server.url());
    args.nats_user = Some(user.to_owned());
    args.nats_password_file = Some(written(server, user, password));
    let bus = Bus::connect(&args, client).await.unwrap();
    connected(&bus).await;
    bus
}

async fn a_node_needs_no_more_than_its_own_subjects(release: Release) {
    let server = NatsServer::start_with(release, |_| PERMISSIONS.to_owned());
    let server = server.await.unwrap();
    let name = format!("node-executor/{}", node());
    let executor = connect_as(&server, "node-1", "node", &name).await;
    let scheduler = connect_as(&server, "scheduler", "scheduler", "crr-scheduler").await;

    let mut tasks = JoinSet::new();
    tasks.spawn(accept_all(executor.serve_orders(&node()).await.unwrap()));
    let answer = order_until_answered(&scheduler, &stop("1")).await;
    assert_eq!(answer, Answer::Accepted);

    tasks.spawn(acknowledge_all(
        scheduler.serve_reports(Orderer::Crr).await.unwrap(),
    ));
    eventually("the report is acknowledged", async || {
        executor
            .send_report(&node(), &report("1"), None, LONG)
            .await
            .ok()
    })
    .await;

    let mut presences = scheduler.watch_presence().await.unwrap();
    let heard = eventually("the presence is heard", async || {
        executor.publish_presence(&presence()).await.unwrap();
        let heard = tokio::time::timeout(SHORT, presences.next()).await;
        heard.ok().flatten()
    })
    .await;
    assert_eq!(heard.node, node());
}

async fn a_barrier_manager_hears_what_a_node_started_and_says_nothing(release: Release) {
    let server = NatsServer::start_with(release, |_| PERMISSIONS.to_owned());
    let server = server.await.unwrap();
    let name = format!("node-executor/{}", node());
    let executor = connect_as(&server, "node-1", "node", &name).await;
    let barriers = connect_as(&server, "barriers", "barriers", "barrier-manager").await;
    let mut starts = barriers.watch_started().await.unwrap();
    let other = NodeName::new("node-2.zone.example");

    let heard = eventually("the start is heard", async || {
        // Forged ones go first: of one connection, they would come first.
        executor.publish_started(&other, &started()).await.unwrap();
        executor.publish_started(&node(), &started()).await.unwrap();
        let heard = tokio::time::timeout(SHORT, starts.next()).await;
        heard.ok().flatten()
    })
    .await;
    assert_eq!((heard.message, heard.node), (started(), node()));

    barriers.publish_started(&node(), &started()).await.unwrap();
    // The node may publish there, so the violation is the manager's.
    server
        .has_logged("Subject \"podwright.v1.started.node-1_zone_example\"")
        .await;
}

async fn a_node_can_neither_read_nor_speak_for_another(release: Release) {
    let server = NatsServer::start_with(release, |_| PERMISSIONS.to_owned());
    let server = server.await.unwrap();
    let executor = connect_as(
        &server,
        "node-1",
        "node",
        "node-executor/node-1.zone.example",
    )
    .await;
    let scheduler = connect_as(&server, "scheduler", "scheduler", "crr-scheduler").await;
    let mut reports = scheduler.serve_reports(Orderer::Crr).await.unwrap();
    let mut presences = scheduler.watch_presence().await.unwrap();
    let other = NodeName::new("node-2.zone.example");

    let mut tasks = JoinSet::new();
    tasks.spawn(accept_all(executor.serve_orders(&other).await.unwrap()));
    server.has_logged("Subscription Violation").await;
    let order_sent = scheduler.send_order(&other, &stop("1"), None, LONG).await;
    assert!(
        matches!(order_sent, Err(RequestError::NoResponders { .. })),
        "{order_sent:?}"
    );

    let forged = executor
        .send_report(&other, &report("1"), None, SHORT)
        .await;
    assert!(
        matches!(forged, Err(RequestError::Timeout { .. })),
        "{forged:?}"
    );
    let mut forged = presence();
    forged.node = other.clone();
    executor.publish_presence(&forged).await.unwrap();
    executor.publish_presence(&presence()).await.unwrap();
    // Of one connection, so in order: what comes first is the node's own.
    assert_eq!(presences.next().await.unwrap().node, node());
    let first_report = select! {
        report = reports.next() => report.unwrap(),
        never = async { loop { drop(executor.send_report(&node(), &report("2"), None, SHORT).await); } } => never,
    };
    assert_eq!(first_report.node, node());
    let stolen = executor.send_order(&other, &stop("1"), None, SHORT).await;
    assert!(
        matches!(stolen, Err(RequestError::Timeout { .. })),
        "{stolen:?}"
    );
}

/// Makes a certificate that is its own authority.
fn tls_settings(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    format!("tls: {{ cert_file: {certificate:?}, key_file: {key:?} }}")
}

fn written(server: &NatsServer, name: &str, content: &str) -> std::path::PathBuf {
    let path = server.folder().join(name);
    std::fs::write(&path, content).unwrap();
    path
}
