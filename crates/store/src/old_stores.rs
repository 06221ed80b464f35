//! Files of earlier versions, opened by this one.

use std::path::Path;

use hermetic_types::ConversationKey;
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::Store;
use crate::open::migrator;

/// The version before a message had parts.
const BEFORE_PARTS: i64 = 22;

/// Lines of a history as they were, and as they are. The gateway reads the second in a test of its own.
const OLD_LINES: &str = include_str!("../fixtures/history_before_parts.jsonl");
const NEW_LINES: &str = include_str!("../fixtures/history_with_parts.jsonl");

/// No messages, whoever wrote them.
const FOREIGN_LINES: [&str; 4] = ["x", "{\"row\":", "17", "{\"row\":1}"];

#[tokio::test]
async fn an_old_conversation_is_there_word_for_word() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let lines = OLD_LINES.lines().chain(FOREIGN_LINES);
    assert!(!Store::is_of_earlier_version(&path).await, "there is none");
    write_old_history(&path, lines).await;
    assert!(Store::is_of_earlier_version(&path).await);
    let history = Store::open(&path).await.unwrap().history();
    let found = history.recent(&ConversationKey::new("c"), 100).await;
    let expected: Vec<_> = NEW_LINES.lines().chain(FOREIGN_LINES).collect();
    assert_eq!(found.unwrap(), expected);
    assert!(!Store::is_of_earlier_version(&path).await);
    // What is up to date is left alone.
    let again = Store::open(&path).await.unwrap().history();
    let found = again.recent(&ConversationKey::new("c"), 100).await;
    assert_eq!(found.unwrap(), expected);
}

async fn write_old_history(path: &Path, lines: impl Iterator<Item = &str>) {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let mut old = options.connect().await.unwrap();
    let all = migrator();
    let before = all.iter().filter(|one| one.version <= BEFORE_PARTS);
    let before = Migrator::with_migrations(before.cloned().collect());
    before.run_direct(None, &mut old, false).await.unwrap();
    for line in lines {
        sqlx::query("INSERT INTO history (conversation, message, at) VALUES ('c', ?, 1)")
            .bind(line)
            .execute(&mut old)
            .await
            .unwrap();
    }
    old.close().await.unwrap();
}
