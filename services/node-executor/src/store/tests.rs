//! The journal on a real disk.

use jiff::Timestamp;
use model::order::{Instance, StopOrder};
use node_rules::Stage;

use super::*;

fn record(id: &str) -> Record {
    Record {
        order: StopOrder {
            id: OrderId::new(id),
            attempt: 1,
            instance: Instance {
                namespace: "shop".into(),
                pod: "web-0".into(),
                pod_uid: "uid".into(),
                container: "main".into(),
                container_id: "abc".into(),
                restart_count: 0,
            },
            grace: std::time::Duration::from_millis(1500),
            pre_stop: None,
            begin_within: None,
            reason: "a test".to_owned(),
        },
        trace_parent: Some("00-trace".to_owned()),
        accepted_at: Timestamp::from_second(5).unwrap(),
        stage: Stage::Queued,
    }
}

#[tokio::test]
async fn keeps_records_over_a_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("made/for/us");
    let store = Store::open(&below).await.unwrap();
    store.put(&record("one")).await.unwrap();
    store.put(&record("two")).await.unwrap();
    let mut newer = record("two");
    newer.stage = Stage::Begun {
        grace_ends: Timestamp::from_second(35).unwrap(),
    };
    store.put(&newer).await.unwrap();
    drop(store);
    let store = Store::open(&below).await.unwrap();
    assert_eq!(store.load().await.unwrap(), [record("one"), newer]);
    store.remove(&OrderId::new("one")).await.unwrap();
    store.remove(&OrderId::new("never there")).await.unwrap();
    assert_eq!(store.load().await.unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_else_may_read_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("data");
    drop(Store::open(&below).await.unwrap());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&below), mode(&below.join(FILE))), (0o700, 0o600));
}

#[tokio::test]
async fn a_file_copied_from_under_a_running_process_has_every_commit() {
    // What a crash leaves behind: the file as it is on disk, never closed.
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("live")).await.unwrap();
    for index in 0..20 {
        store.put(&record(&format!("order-{index}"))).await.unwrap();
    }
    let after_crash = directory.path().join("crashed");
    std::fs::create_dir(&after_crash).unwrap();
    std::fs::copy(
        directory.path().join("live").join(FILE),
        after_crash.join(FILE),
    )
    .unwrap();
    let reopened = Store::open(&after_crash).await.unwrap();
    assert_eq!(reopened.load().await.unwrap().len(), 20);
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let directory = tempfile::tempdir().unwrap();
    drop(Store::open(directory.path()).await.unwrap());
    {
        let database = Database::create(directory.path().join(FILE)).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction
            .open_table(META)
            .unwrap()
            .insert(SCHEMA_KEY, 7)
            .unwrap();
        transaction.commit().unwrap();
    }
    let Err(error) = Store::open(directory.path()).await else {
        panic!("opened a newer file");
    };
    let text = error.to_string();
    assert!(
        text.contains("has schema 7") && text.contains("knows 1"),
        "{text}"
    );
}

#[tokio::test]
async fn a_second_process_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let _first = Store::open(directory.path()).await.unwrap();
    let Err(error) = Store::open(directory.path()).await else {
        panic!("opened twice");
    };
    let text = model::error_chain::ErrorChain(&error).to_string();
    assert!(text.contains("already open"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_no_journal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(FILE), vec![7; 10_000]).unwrap();
    assert!(matches!(
        Store::open(directory.path()).await,
        Err(StoreError::Open { .. })
    ));
}
