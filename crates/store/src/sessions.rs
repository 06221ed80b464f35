//! What was said in a conversation before it started afresh.
//!
//! A session belongs to its conversation: every query names both, so that a name somebody guessed finds
//! nothing of another conversation.

use hermetic_types::{ConversationKey, Timestamp};

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{Database, DatabaseRow, SqlStatement, StatementResult};

#[derive(Clone, Debug)]
pub struct SessionRows {
    database: Database,
}

/// One session that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    pub name: String,
    pub title: String,
    pub begun_at: Timestamp,
    pub ended_at: Timestamp,
    /// How many lines it has.
    pub lines: u64,
}

/// Sessions of one conversation that are kept; the oldest give way.
const MOST_SESSIONS: u32 = 50;

impl SessionRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Starts a conversation afresh, and keeps what was said as a session of this name. Nothing is kept
    /// where nothing was said.
    pub async fn begin_anew(
        &self,
        conversation: &ConversationKey,
        name: &str,
        title: &str,
    ) -> Result<(), StoreError> {
        let mut statements = put_away(conversation, name, title, None);
        // Behind the new session, which counts among those that are kept.
        statements.extend(forget_oldest(conversation));
        self.database
            .write("start a conversation afresh", (OnDisk, Fail), statements)
            .await
            .map(drop)
    }

    /// Goes on with the session `wanted` of this conversation, and keeps what was said meanwhile under
    /// another name. `false`, and nothing changes, where the conversation has no such session.
    ///
    /// Its newest line counts as said now: somebody who takes a session up again is not silent, see
    /// [`HistoryRows::last_at`](crate::HistoryRows::last_at).
    pub async fn resume(
        &self,
        conversation: &ConversationKey,
        wanted: &str,
        (name, title): (&str, &str),
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let key = conversation.as_str();
        let said_now = SqlStatement::new(
            "UPDATE history SET at = CASE WHEN at > ?1 THEN at ELSE ?1 END
             WHERE id = (SELECT max(history.id) FROM history JOIN sessions ON sessions.id = history.session
                         WHERE sessions.conversation = ?2 AND sessions.name = ?3)",
        )
        .bind(now.millis())
        .bind(key)
        .bind(wanted);
        let taken_up = [
            "UPDATE history SET session = NULL
             WHERE session = (SELECT id FROM sessions WHERE conversation = ? AND name = ?)",
            "UPDATE compactions SET session = NULL
             WHERE session = (SELECT id FROM sessions WHERE conversation = ? AND name = ?)",
            "DELETE FROM sessions WHERE conversation = ? AND name = ?",
        ]
        .map(|sql| SqlStatement::new(sql).bind(key).bind(wanted));
        // What is at hand is put away before the other is taken up: both at hand would be one
        // conversation, and could not be told apart again.
        let mut statements = put_away(conversation, name, title, Some(wanted));
        statements.push(said_now);
        statements.extend(taken_up);
        let doing = "resume a session";
        let written = self.database.write(doing, (OnDisk, Fail), statements);
        let written = written.await?;
        Ok(written.last().map_or(0, StatementResult::affected) > 0)
    }

    /// The sessions of this conversation, the latest first.
    pub async fn of(&self, conversation: &ConversationKey) -> Result<Vec<SessionRow>, StoreError> {
        let query = SqlStatement::new(
            "SELECT name, title, begun_at, ended_at,
                    (SELECT count(*) FROM history WHERE history.session = sessions.id) AS lines
             FROM sessions WHERE conversation = ? ORDER BY ended_at DESC, id DESC",
        )
        .bind(conversation.as_str());
        let session = |row: &DatabaseRow| {
            let lines: i64 = row.get("lines")?;
            Ok(SessionRow {
                name: row.get("name")?,
                title: row.get("title")?,
                begun_at: row.moment("begun_at")?,
                ended_at: row.moment("ended_at")?,
                lines: lines.unsigned_abs(),
            })
        };
        let doing = "read the sessions of a conversation";
        self.database.read(doing, query, session).await
    }
}

/// What is at hand becomes a session; where `for_session` is named, only if there is one of that name.
fn put_away(
    conversation: &ConversationKey,
    name: &str,
    title: &str,
    for_session: Option<&str>,
) -> Vec<SqlStatement> {
    let key = conversation.as_str();
    let named = SqlStatement::new(
        "INSERT INTO sessions (name, conversation, title, begun_at, ended_at)
         SELECT ?, ?, ?, min(at), max(at) FROM history
         WHERE conversation = ? AND session IS NULL
           AND (? IS NULL OR EXISTS (SELECT 1 FROM sessions WHERE conversation = ? AND name = ?))
         HAVING count(*) > 0",
    )
    .bind(name)
    .bind(key)
    .bind(title)
    .bind(key)
    .bind(for_session)
    .bind(key)
    .bind(for_session);
    // Where none was made, the session of these stays what it is: none.
    let moved = [
        "UPDATE history SET session = (SELECT id FROM sessions WHERE conversation = ? AND name = ?)
         WHERE conversation = ? AND session IS NULL",
        "UPDATE compactions SET session = (SELECT id FROM sessions WHERE conversation = ? AND name = ?)
         WHERE conversation = ? AND session IS NULL",
    ]
    .map(|sql| SqlStatement::new(sql).bind(key).bind(name).bind(key));
    let mut statements = vec![named];
    statements.extend(moved);
    statements.push(
        SqlStatement::new(
            "DELETE FROM todo_lists WHERE conversation = ?
             AND (? IS NULL OR EXISTS (SELECT 1 FROM sessions WHERE conversation = ? AND name = ?))",
        )
        .bind(key)
        .bind(for_session)
        .bind(key)
        .bind(for_session),
    );
    statements
}

fn forget_oldest(conversation: &ConversationKey) -> [SqlStatement; 3] {
    let key = conversation.as_str();
    [
        "DELETE FROM history WHERE session IN
         (SELECT id FROM sessions WHERE conversation = ? ORDER BY ended_at DESC, id DESC LIMIT 9223372036854775807 OFFSET ?)",
        "DELETE FROM compactions WHERE session IN
         (SELECT id FROM sessions WHERE conversation = ? ORDER BY ended_at DESC, id DESC LIMIT 9223372036854775807 OFFSET ?)",
        "DELETE FROM sessions WHERE id IN
         (SELECT id FROM sessions WHERE conversation = ? ORDER BY ended_at DESC, id DESC LIMIT 9223372036854775807 OFFSET ?)",
    ]
    .map(|sql| SqlStatement::new(sql).bind(key).bind(MOST_SESSIONS))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;
    use crate::{Store, ViewBounds};

    struct Scene {
        _database: TestDatabase,
        store: Store,
        key: ConversationKey,
    }

    impl Scene {
        async fn new(database: TestDatabase) -> Self {
            Self {
                store: database.open().await.unwrap(),
                _database: database,
                key: ConversationKey::new("k"),
            }
        }

        async fn says(&self, text: &str, at: i64) -> i64 {
            let now = Timestamp::from_millis(at);
            let history = self.store.history();
            history.append(&self.key, text, now).await.unwrap()
        }

        async fn said(&self) -> (Option<String>, Vec<String>) {
            let history = self.store.history();
            let view = history.view(&self.key, ViewBounds::default()).await;
            let view = view.unwrap();
            let lines = view.lines.into_iter().map(|line| line.text);
            (view.summary, lines.collect())
        }

        async fn names(&self) -> Vec<String> {
            let sessions = self.store.sessions().of(&self.key).await.unwrap();
            sessions.into_iter().map(|session| session.name).collect()
        }
    }

    #[tokio::test]
    async fn a_session_is_put_away_with_its_summary_and_comes_back_with_it() {
        for database in TestDatabase::each().await {
            let scene = Scene::new(database).await;
            let (history, sessions) = (scene.store.history(), scene.store.sessions());
            let first = scene.says("one", 1).await;
            scene.says("two", 2).await;
            let now = Timestamp::from_millis(3);
            history.compact(&scene.key, first, "S", now).await.unwrap();
            sessions.begin_anew(&scene.key, "a", "A").await.unwrap();
            assert_eq!(scene.said().await, (None, vec![]));
            scene.says("three", 4).await;
            let now = Timestamp::from_millis(77);
            let resumed = sessions.resume(&scene.key, "a", ("b", "B"), now);
            assert!(resumed.await.unwrap());
            let last = scene.store.history().last_at(&scene.key).await.unwrap();
            assert_eq!(last, Some(now), "taken up again is not silent");
            let expected = (Some("S".to_owned()), vec!["two".to_owned()]);
            assert_eq!(scene.said().await, expected);
            assert_eq!(scene.names().await, ["b"]);
            let kept = &sessions.of(&scene.key).await.unwrap()[0];
            assert_eq!((kept.title.as_str(), kept.lines), ("B", 1));
        }
    }

    #[tokio::test]
    async fn a_name_of_another_conversation_finds_nothing_and_changes_nothing() {
        for database in TestDatabase::each().await {
            let scene = Scene::new(database).await;
            let sessions = scene.store.sessions();
            scene.says("mine", 1).await;
            sessions.begin_anew(&scene.key, "a", "A").await.unwrap();
            scene.says("now", 2).await;
            let other = ConversationKey::new("other");
            let now = Timestamp::from_millis(2);
            let theirs = scene.store.history().append(&other, "theirs", now).await;
            theirs.unwrap();
            let (kept, later) = (("x", "X"), Timestamp::from_millis(9));
            assert!(!sessions.resume(&other, "a", kept, later).await.unwrap());
            let unknown = sessions.resume(&scene.key, "?", kept, later);
            assert!(!unknown.await.unwrap());
            assert_eq!(sessions.of(&other).await.unwrap(), []);
            assert_eq!(scene.said().await, (None, vec!["now".to_owned()]));
            assert_eq!(scene.names().await, ["a"]);
            let theirs = scene.store.history().recent(&other, 9).await.unwrap();
            assert_eq!(theirs, ["theirs"]);
        }
    }

    #[tokio::test]
    async fn the_oldest_give_way_silent_ones_are_forgotten_and_all_go_at_once() {
        for database in TestDatabase::each().await {
            let scene = Scene::new(database).await;
            let sessions = scene.store.sessions();
            sessions.begin_anew(&scene.key, "empty", "").await.unwrap();
            assert_eq!(scene.names().await, [""; 0], "nothing was said");
            for at in 0..i64::from(MOST_SESSIONS) + 5 {
                scene.says("x", at).await;
                let name = format!("s{at}");
                sessions.begin_anew(&scene.key, &name, "").await.unwrap();
            }
            let names = scene.names().await;
            assert_eq!(names.len(), MOST_SESSIONS as usize);
            assert_eq!(names.last().map(String::as_str), Some("s5"));
            let history = scene.store.history();
            let forgotten = history.forget_silent(Timestamp::from_millis(10)).await;
            assert_eq!(forgotten.unwrap(), 5);
            scene.says("now", 99).await;
            history.clear(&scene.key).await.unwrap();
            assert_eq!(scene.names().await, [""; 0]);
            assert_eq!(scene.said().await, (None, vec![]));
        }
    }
}
