//! Files of earlier versions, opened by this one.

use std::path::Path;

use hermetic_types::{ConversationKey, SystemClock};
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::migrations::migrator;
use crate::{RowOwner, Store};

/// The version before a message had parts.
const BEFORE_PARTS: i64 = 22;

/// Lines of a history as they were, and as they are. The gateway reads the second in a test of its own.
const OLD_LINES: &str = include_str!("../../fixtures/history_before_parts.jsonl");
const NEW_LINES: &str = include_str!("../../fixtures/history_with_parts.jsonl");

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
    let history = Store::open(&path, SystemClock::shared())
        .await
        .unwrap()
        .history();
    let found = history.recent(&ConversationKey::new("c"), 100).await;
    let expected: Vec<_> = NEW_LINES.lines().chain(FOREIGN_LINES).collect();
    assert_eq!(found.unwrap(), expected);
    assert!(!Store::is_of_earlier_version(&path).await);
    // As it was before.
    let kept = folder.path().join("state.db.22.bak");
    let mut kept = SqliteConnectOptions::new()
        .filename(kept)
        .connect()
        .await
        .unwrap();
    let lines: Vec<String> = sqlx::query_scalar("SELECT message FROM history ORDER BY rowid")
        .fetch_all(&mut kept)
        .await
        .unwrap();
    let before: Vec<_> = OLD_LINES.lines().chain(FOREIGN_LINES).collect();
    assert_eq!(lines, before);
    // What is up to date is left alone.
    let again = Store::open(&path, SystemClock::shared())
        .await
        .unwrap()
        .history();
    let found = again.recent(&ConversationKey::new("c"), 100).await;
    assert_eq!(found.unwrap(), expected);
}

async fn write_old_history(path: &Path, lines: impl Iterator<Item = &str>) {
    let mut old = old_file(path, BEFORE_PARTS).await;
    for line in lines {
        sqlx::query("INSERT INTO history (conversation, message, at) VALUES ('c', ?, 1)")
            .bind(line)
            .execute(&mut old)
            .await
            .unwrap();
    }
    old.close().await.unwrap();
}

#[tokio::test]
async fn a_file_from_before_there_were_accounts_keeps_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let mut old = old_file(&path, BEFORE_PARTS).await;
    for row in [
        "INSERT INTO inbox (platform, update_id, conversation, payload, state, received_at)
         VALUES ('telegram', '7', 'agent:main:telegram:dm:42', '{}', 'accepted', 1)",
        "INSERT INTO deliveries (message, platform, address, text, state, queued_at)
         VALUES (1, 'telegram', '{}', 'hi', 'pending', 1)",
    ] {
        sqlx::query(row).execute(&mut old).await.unwrap();
    }
    old.close().await.unwrap();

    let store = Store::open(&path, SystemClock::shared()).await.unwrap();
    let open = store.inbox().open(RowOwner::ThisGateway).await.unwrap();
    assert_eq!(open[0].account, "telegram");
    assert_eq!(
        store.deliveries().due(RowOwner::ThisGateway).await.unwrap()[0].account,
        "telegram"
    );
    // The update of the platform's own account is known; another bot's of the same number is not.
    let key = open[0].conversation.clone();
    let now = hermetic_types::Timestamp::from_millis(2);
    for (account, is_new) in [("telegram", false), ("telegram/work", true)] {
        let accepted = store.inbox().accept(account, "7", &key, "{}", now).await;
        assert_eq!(accepted.unwrap().is_some(), is_new, "{account}");
    }
}

async fn old_file(path: &Path, version: i64) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    let mut old = options.connect().await.unwrap();
    let all = migrator();
    let until = all.iter().filter(|one| one.version <= version);
    let until = Migrator::with_migrations(until.cloned().collect());
    until.run_direct(None, &mut old, false).await.unwrap();
    old
}

#[tokio::test]
async fn an_upgrade_without_a_copy_is_no_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    old_file(&path, BEFORE_PARTS).await.close().await.unwrap();
    // Nothing can be moved to its place.
    let in_the_way = folder.path().join("state.db.22.bak");
    std::fs::create_dir(&in_the_way).unwrap();
    Store::open(&path, SystemClock::shared()).await.unwrap_err();
    assert!(Store::is_of_earlier_version(&path).await, "it is as it was");
    std::fs::remove_dir(&in_the_way).unwrap();
    Store::open(&path, SystemClock::shared()).await.unwrap();
    assert!(in_the_way.is_file());
}
