//! What the runtime's answers mean.

use std::path::Path;

use k8s_cri::v1::ContainerMetadata;

use super::*;

fn instance() -> Instance {
    Instance {
        namespace: "shop".into(),
        pod: "web-0".into(),
        pod_uid: "uid".into(),
        container: "main".into(),
        container_id: "m1".into(),
        restart_count: 1,
    }
}

fn container(id: &str, name: &str, attempt: u32, state: ContainerState) -> Container {
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
        container("m0", "main", 0, ContainerState::ContainerExited),
        container("m2", "main", 2, ContainerState::ContainerRunning),
        container("m1", "main", 1, ContainerState::ContainerExited),
        container("s9", "sidecar", 9, ContainerState::ContainerRunning),
    ];
    let expected = Observed::Newest {
        container_id: "m2".into(),
        restart_count: 2,
        state: InstanceState::Alive,
    };
    assert_eq!(
        newest(own_instances(containers, &instance())),
        Some(expected)
    );
}

#[test]
fn only_an_exited_instance_is_not_alive() {
    for (state, expected) in [
        (ContainerState::ContainerCreated, InstanceState::Alive),
        (ContainerState::ContainerRunning, InstanceState::Alive),
        (ContainerState::ContainerUnknown, InstanceState::Alive),
        (ContainerState::ContainerExited, InstanceState::Exited),
    ] {
        let containers = vec![container("m1", "main", 1, state)];
        let Some(Observed::Newest { state, .. }) = newest(own_instances(containers, &instance()))
        else {
            panic!("none");
        };
        assert_eq!(state, expected);
    }
}

#[test]
fn no_instance_of_the_name_is_none() {
    let containers = vec![container(
        "s",
        "sidecar",
        0,
        ContainerState::ContainerRunning,
    )];
    assert_eq!(newest(own_instances(containers, &instance())), None);
}

#[test]
fn a_part_of_a_second_is_given_in_full() {
    for (millis, seconds) in [(0, 0), (1, 1), (2000, 2), (29_001, 30)] {
        assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
    }
}

#[tokio::test]
async fn a_missing_socket_makes_the_runtime_unavailable_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.sock");
    let cri = Cri::new(Places::new(Some(&path)));
    let Observed::Unavailable { message } = cri.observe(&instance()).await else {
        panic!("observed something");
    };
    assert!(message.contains("none.sock (does not exist)"), "{message}");
    let result = cri.stop(&"m1".into(), Duration::from_secs(1)).await;
    assert!(
        matches!(result, StopResult::Unavailable { .. }),
        "{result:?}"
    );
}

#[tokio::test]
async fn a_socket_of_something_else_makes_the_runtime_unavailable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let cri = Cri::new(Places::new(Some(Path::new(&path))));
    let result = cri.stop(&"m1".into(), Duration::from_secs(1)).await;
    assert!(
        matches!(result, StopResult::Unavailable { .. }),
        "{result:?}"
    );
}

#[test]
fn a_runtime_that_shuts_down_is_away_and_one_that_refuses_is_not() {
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
