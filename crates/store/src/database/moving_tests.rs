use hermetic_types::{ConversationKey, GatewayId, SystemClock, Timestamp};

use super::*;
use crate::test_databases::TestDatabase;
use crate::{MessageEnd, NewBrowserMessage, Store};

async fn fill(store: &Store) {
    let (key, now) = (ConversationKey::new("k"), Timestamp::from_millis(7));
    for update in ["1", "2", "3"] {
        let taken = store
            .inbox()
            .accept("telegram", update, &key, "{}", now)
            .await;
        let message = taken.unwrap().unwrap();
        let calls = store.tool_calls();
        calls
            .begin(message, "c", "terminal", "{}", now)
            .await
            .unwrap();
        let reply = ("telegram", "{}", "hé\u{1f512}");
        let deliveries = store.deliveries();
        let queued = deliveries.queue_and_end(message, MessageEnd::Answered, reply, now);
        queued.await.unwrap();
        store
            .history()
            .append(&key, "{\"a\":\"\\u0000\"}", now)
            .await
            .unwrap();
    }
    store
        .sessions()
        .begin_anew(&key, "s", "title")
        .await
        .unwrap();
    store.documents().put("d", "body").await.unwrap();
    let chat = store.browser_chat();
    let id = chat.open("ada", 9, now).await.unwrap().unwrap();
    let said = NewBrowserMessage {
        conversation: id,
        text: "hi".to_owned(),
        key: None,
        files: vec![crate::NewBrowserFile {
            name: "f".to_owned(),
            mime: None,
            bytes: vec![0, 1, 255],
        }],
    };
    let said = chat.say("ada", &said, now).await.unwrap();
    assert!(matches!(said, crate::SaidOutcome::Written(_)));
}

/// Every row of every table, as text.
async fn everything(path: &Path) -> Vec<String> {
    let mut file = SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    let names = "SELECT name FROM sqlite_master WHERE type = 'table'
                 AND name <> '_sqlx_migrations' ORDER BY name";
    let names: Vec<String> = sqlx::query_scalar(names)
        .fetch_all(&mut file)
        .await
        .unwrap();
    let mut all = Vec::new();
    for name in names {
        let columns = sqlx::query_scalar::<_, String>("SELECT name FROM pragma_table_info(?)");
        let columns = columns
            .bind(name.clone())
            .fetch_all(&mut file)
            .await
            .unwrap();
        let quoted: Vec<_> = columns
            .iter()
            .map(|name| format!("quote({name})"))
            .collect();
        let order = if name == "sqlite_sequence" {
            "1"
        } else {
            "rowid"
        };
        let rows = format!(
            "SELECT {} FROM {name} ORDER BY {order}",
            quoted.join(" || ',' || ")
        );
        let rows = sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(rows));
        let rows = rows.fetch_all(&mut file).await.unwrap();
        all.extend(rows.into_iter().map(|row| format!("{name}: {row}")));
    }
    all
}

/// Each looks before it writes; of two that do so at once one moves the rows, and the other says why not.
#[tokio::test]
async fn of_two_that_move_at_once_one_does() {
    let Some(TestDatabase::Postgres(address)) = TestDatabase::postgres().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let clock = SystemClock::shared;
    let store = Store::open(&file, clock()).await.unwrap();
    fill(&store).await;
    let there = Store::open_postgres(&address, GatewayId::sole(), clock());
    let there = there.await.unwrap();
    let moving = || move_rows(&file, &address, MoveDirection::ToPostgres);
    let both = tokio::join!(moving(), moving());
    let refused = match both {
        (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused,
        both => panic!("{both:?}"),
    };
    assert!(matches!(refused, MoveError::NotEmpty { .. }), "{refused:?}");
    let open = there.documents().load("d").await.unwrap();
    assert!(open.is_some());
}

#[tokio::test]
async fn there_and_back_every_row_is_the_same() {
    let Some(TestDatabase::Postgres(address)) = TestDatabase::postgres().await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["a.db", "b.db"].map(|name| folder.path().join(name));
    let clock = SystemClock::shared;
    let store = Store::open(&first, clock()).await.unwrap();
    fill(&store).await;
    let there = Store::open_postgres(&address, GatewayId::sole(), clock())
        .await
        .unwrap();
    let moved = move_rows(&first, &address, MoveDirection::ToPostgres)
        .await
        .unwrap();
    let rows: u64 = moved.iter().map(|table| table.rows).sum();
    assert!(rows > 15, "{moved:?}");
    // Numbers go on where they were.
    let key = ConversationKey::new("k");
    let now = Timestamp::from_millis(8);
    let again = move_rows(&first, &address, MoveDirection::ToPostgres).await;
    assert!(
        matches!(again, Err(MoveError::NotEmpty { .. })),
        "{again:?}"
    );
    drop(Store::open(&second, clock()).await.unwrap());
    // Not while somebody serves from it, in either direction.
    let process = crate::GatewayProcess {
        id: "one".parse().unwrap(),
        installation: "home".parse().unwrap(),
        host: "there".to_owned(),
        name: "the one over there".to_owned(),
        version: "1.2.3".to_owned(),
    };
    let held = there.leases().claim("serving", &process).await;
    let held = held.unwrap().unwrap();
    for direction in [MoveDirection::ToSqlite, MoveDirection::ToPostgres] {
        let refused = move_rows(&second, &address, direction).await.unwrap_err();
        assert!(refused.to_string().contains("over there"), "{refused}");
    }
    there.leases().release(&held).await.unwrap();
    let gone = SqlStatement::new("DELETE FROM leases");
    let gone = there.database.write_unfenced("forget", vec![gone]).await;
    gone.unwrap();
    move_rows(&second, &address, MoveDirection::ToSqlite)
        .await
        .unwrap();
    assert_eq!(everything(&second).await, everything(&first).await);
    let taken = there.inbox().accept("telegram", "4", &key, "{}", now).await;
    assert_eq!(taken.unwrap(), Some(crate::MessageRow(4)));
}
