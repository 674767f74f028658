//! The journal on a real disk.

use jiff::Timestamp;
use model::order::Verb;
use node_rules::{Stage, StopOrder};
use serde_json::Value;

use super::*;

fn record(container: &str) -> Record {
    let order = testkit::stop(container, "abc");
    let Verb::Stop(stop) = order.verb else {
        panic!("not a stop");
    };
    Record {
        order: StopOrder {
            id: order.id,
            attempt: 1,
            instance: order.instance,
            reason: order.reason,
            stop,
        },
        traceparent: Some("00-trace".to_owned()),
        accepted_at: Timestamp::from_second(5).unwrap(),
        stage: Stage::Queued,
    }
}

#[tokio::test]
async fn keeps_records_over_a_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("made/for/us");
    let journal = Journal::open(&below).await.unwrap();
    let both = [record("one"), record("two")];
    journal.write(&both, &[]).await.unwrap();
    let mut newer = record("two");
    newer.stage = Stage::Begun {
        grace_ends: Timestamp::from_second(35).unwrap(),
    };
    journal.write(&[newer.clone()], &[]).await.unwrap();
    drop(journal);
    let journal = Journal::open(&below).await.unwrap();
    assert_eq!(journal.load().await.unwrap(), [record("one"), newer]);
    let forgotten = ["one", "never there"].map(testkit::stop_id);
    journal.write(&[], &forgotten).await.unwrap();
    assert_eq!(journal.load().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_of_an_older_version_is_loaded() {
    // Written by version 0.1, one record per stage.
    const RECORDED: &str = include_str!("../../../../../libs/node-rules/src/record/recorded.jsonl");
    for line in RECORDED.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let directory = tempfile::tempdir().unwrap();
        drop(Journal::open(directory.path()).await.unwrap());
        {
            let database = Database::create(directory.path().join(FILE)).unwrap();
            let transaction = database.begin_write().unwrap();
            let mut orders = transaction.open_table(ORDERS).unwrap();
            let id = recorded["order"]["id"].as_str().unwrap();
            orders.insert(id, line.as_bytes()).unwrap();
            drop(orders);
            transaction.commit().unwrap();
        }
        let journal = Journal::open(directory.path()).await.unwrap();
        let records = journal.load().await.unwrap();
        let [record] = records.as_slice() else {
            panic!("not one record: {records:?}");
        };
        assert_eq!(serde_json::to_value(record).unwrap(), recorded);
        // The order's next record replaces this one.
        journal.write(&records, &[]).await.unwrap();
        assert_eq!(journal.load().await.unwrap(), records);
    }
}

#[tokio::test]
async fn only_this_user_can_read_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let below = directory.path().join("data");
    drop(Journal::open(&below).await.unwrap());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&below), mode(&below.join(FILE))), (0o700, 0o600));
}

#[tokio::test]
async fn a_file_copied_from_under_a_running_process_has_every_commit() {
    // What a crash leaves behind: the file as it is on disk, never closed.
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(&directory.path().join("live")).await.unwrap();
    for index in 0..20 {
        let one = record(&format!("container-{index}"));
        journal.write(&[one], &[]).await.unwrap();
    }
    let after_crash = directory.path().join("crashed");
    std::fs::create_dir(&after_crash).unwrap();
    std::fs::copy(
        directory.path().join("live").join(FILE),
        after_crash.join(FILE),
    )
    .unwrap();
    let reopened = Journal::open(&after_crash).await.unwrap();
    assert_eq!(reopened.load().await.unwrap().len(), 20);
}

#[tokio::test]
async fn a_newer_schema_is_refused_with_both_versions() {
    let directory = tempfile::tempdir().unwrap();
    drop(Journal::open(directory.path()).await.unwrap());
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
    let Err(error) = Journal::open(directory.path()).await else {
        panic!("opened a newer file");
    };
    let text = error.to_string();
    assert!(
        text.contains("has schema 7") && text.contains("up to 1"),
        "{text}"
    );
}

#[tokio::test]
async fn a_second_process_fails_to_open_it() {
    let directory = tempfile::tempdir().unwrap();
    let _first = Journal::open(directory.path()).await.unwrap();
    let Err(error) = Journal::open(directory.path()).await else {
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
        Journal::open(directory.path()).await,
        Err(JournalError::Open(..))
    ));
}
