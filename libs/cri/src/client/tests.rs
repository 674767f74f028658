//! The meaning of the runtime's answers.

use k8s_cri::v1::ContainerMetadata;

use super::*;

fn named() -> Instance {
    testkit::instance("main", "m1")
}

fn container(id: &str, name: &str, attempt: u32, state: CriState) -> Container {
    Container {
        id: id.to_owned(),
        metadata: Some(ContainerMetadata {
            name: name.to_owned(),
            attempt,
        }),
        state: state as i32,
        labels: HashMap::from([(CONTAINER_NAME.to_owned(), name.to_owned())]),
        annotations: HashMap::from([(RESTART_COUNT.to_owned(), attempt.to_string())]),
        ..Container::default()
    }
}

#[test]
fn the_newest_instance_has_the_highest_attempt_and_the_right_name() {
    let containers = vec![
        container("m0", "main", 0, CriState::ContainerExited),
        container("m2", "main", 2, CriState::ContainerRunning),
        container("m1", "main", 1, CriState::ContainerExited),
        container("s9", "sidecar", 9, CriState::ContainerRunning),
    ];
    let newest = newest(own_instances(containers, &named())).unwrap();
    assert_eq!(newest.container_id, "m2".into());
    assert_eq!(newest.restart_count, 2);
    assert_eq!(newest.state, InstanceState::Alive);
}

#[test]
fn only_an_exited_instance_is_not_alive() {
    for (state, expected) in [
        (CriState::ContainerCreated, InstanceState::Alive),
        (CriState::ContainerRunning, InstanceState::Alive),
        (CriState::ContainerUnknown, InstanceState::Alive),
        (CriState::ContainerExited, InstanceState::Exited),
    ] {
        let containers = vec![container("m1", "main", 1, state)];
        let instances = own_instances(containers, &named());
        assert_eq!(instances[0].state, expected);
    }
}

#[test]
fn no_instance_of_the_name_has_no_newest() {
    let containers = vec![container("s", "sidecar", 0, CriState::ContainerRunning)];
    assert_eq!(newest(own_instances(containers, &named())), None);
}

#[test]
fn a_fraction_of_a_second_is_rounded_up() {
    for (millis, seconds) in [(0, 0), (1, 1), (2000, 2), (29_001, 30)] {
        assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
    }
}

#[tokio::test]
async fn a_missing_socket_makes_the_runtime_unavailable_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.sock");
    let cri = Cri::new(SocketCandidates::new(Some(&path)));
    let error = cri.newest_instance(&named()).await.unwrap_err();
    let message = error.to_string();
    assert!(error.is_runtime_away(), "{message}");
    assert!(message.contains("none.sock (does not exist)"), "{message}");
}

#[tokio::test]
async fn a_socket_of_another_program_makes_the_runtime_unavailable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let cri = Cri::new(SocketCandidates::new(Some(&path)));
    let stopped = cri.stop(&"m1".into(), Duration::from_secs(1)).await;
    assert!(stopped.unwrap_err().is_runtime_away());
}

#[test]
fn only_a_runtime_that_shuts_down_is_away() {
    for (status, is_away) in [
        (Status::unavailable("server is not initialized yet"), true),
        (Status::cancelled("context canceled"), true),
        (Status::unknown("no such task"), false),
        (Status::deadline_exceeded("took too long"), false),
    ] {
        assert_eq!(
            CriError::answered("StopContainer", status).is_runtime_away(),
            is_away
        );
    }
}
