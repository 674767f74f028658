//! A subscriber that keeps up, one that falls behind, and one that has ended.

use std::collections::BTreeMap;

use cri::ContainerState;
use model::ids::PodKey;

use super::*;

fn running(container_id: &str) -> Observation {
    Observation {
        pod: PodKey {
            namespace: "shop".into(),
            name: "web".into(),
        },
        pod_uid: "u".into(),
        container: "main".into(),
        container_id: container_id.into(),
        state: ContainerState::Running,
        sandbox_labels: BTreeMap::new(),
    }
}

#[tokio::test]
async fn a_subscriber_gets_each_list_and_each_change() {
    let (sender, mut updates) = Updates::new();
    sender.send_list(vec![running("a"), running("b")]).await;
    assert!(sender.send_change(running("c")));
    drop(sender);
    let list = vec![running("a"), running("b")];
    assert_eq!(updates.recv().await, Some(list));
    assert_eq!(updates.recv().await, Some(vec![running("c")]));
    assert_eq!(updates.recv().await, None, "the sender has ended");
}

#[tokio::test]
async fn a_subscriber_that_falls_behind_asks_for_a_list_and_gets_it() {
    let (sender, mut updates) = Updates::new();
    for _ in 0..CAPACITY {
        assert!(sender.send_change(running("a")));
    }
    assert!(!sender.send_change(running("b")));
    let (last, ()) = tokio::join!(
        async {
            let mut last = None;
            for _ in 0..=CAPACITY {
                last = updates.recv().await;
            }
            last
        },
        sender.send_list(vec![running("c")])
    );
    assert_eq!(last, Some(vec![running("c")]));
}

#[tokio::test]
async fn a_subscriber_that_has_ended_is_not_behind() {
    let (sender, updates) = Updates::new();
    drop(updates);
    sender.send_list(vec![running("a")]).await;
    assert!(sender.send_change(running("b")));
}
