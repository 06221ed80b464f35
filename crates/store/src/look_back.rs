//! What was said before, for whoever may look back at it.
//!
//! There is one query, and it takes a [`SearchScope`]: the conversation in which it is asked, and, where that
//! is private, those of the same person. It reads the lines themselves and no index of words, so that what
//! is forgotten is found nowhere.

use hermetic_types::{ConversationKey, Timestamp};

use crate::database::WithoutRoom::Wait;
use crate::database::WriteDurability::Soon;
use crate::database::{Database, DatabaseRow, SqlStatement};
use crate::{StoreError, ViewBounds};

#[derive(Clone, Debug)]
pub struct LookBackRows {
    database: Database,
}

/// Whose lines are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchScope {
    pub conversation: ConversationKey,
    /// Whose private conversations are looked at as well; nobody's in a group.
    pub people: Vec<String>,
}

/// A session that is over, or what is at hand in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PastSession {
    Over {
        id: i64,
        title: String,
    },
    AtHand {
        conversation: i64,
    },
    /// What is at hand in the conversation that asks.
    Here,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastLine {
    pub number: i64,
    pub conversation: ConversationKey,
    pub session: PastSession,
    pub at: Timestamp,
    /// As the history keeps it.
    pub text: String,
}

/// The newest lines, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastLines {
    pub lines: Vec<PastLine>,
    /// Whether older ones were not read.
    pub left_out: bool,
}

/// Everything within a scope. How a list of people becomes rows is all that the databases do differently.
macro_rules! lines_by {
    ($people:literal) => {
        concat!(
            "WITH own (conversation, id) AS (
                 SELECT ?, NULL
                 UNION ALL
                 SELECT conversation, id FROM conversation_people
                 WHERE person IN (",
            $people,
            ") AND conversation <> ?),
             said AS (
                 SELECT history.id, history.conversation, history.at, history.message,
                        NULL AS session, NULL AS title, own.id AS place
                 FROM own JOIN history ON history.conversation = own.conversation
                      AND history.session IS NULL
                 UNION ALL
                 SELECT history.id, history.conversation, history.at, history.message,
                        sessions.id, sessions.title, own.id
                 FROM own JOIN sessions ON sessions.conversation = own.conversation
                      JOIN history ON history.session = sessions.id),
             newest AS (
                 SELECT *, sum(length(message)) OVER (ORDER BY id DESC) AS so_far
                 FROM said ORDER BY id DESC LIMIT ?)
             SELECT id, conversation, at, session, title, place, so_far,
                    CASE WHEN so_far <= ? THEN message END AS message
             FROM newest ORDER BY id DESC",
        )
    };
}

impl LookBackRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Remembers whose a private conversation is.
    pub async fn note(
        &self,
        conversation: &ConversationKey,
        person: &str,
    ) -> Result<(), StoreError> {
        let noted = SqlStatement::new(
            "INSERT INTO conversation_people (conversation, person) VALUES (?, ?)
             ON CONFLICT (conversation) DO UPDATE SET person = excluded.person
             WHERE conversation_people.person <> excluded.person",
        )
        .bind(conversation.as_str())
        .bind(person);
        let doing = "note whose a conversation is";
        let noted = self.database.change(doing, (Soon, Wait), noted);
        noted.await.map(drop)
    }

    /// Everything within this scope, as far as the bounds reach.
    pub async fn lines(
        &self,
        scope: &SearchScope,
        bounds: ViewBounds,
    ) -> Result<PastLines, StoreError> {
        let here = scope.conversation.as_str();
        let people = serde_json::to_string(&scope.people).unwrap_or_else(|_| "[]".to_owned());
        let query = SqlStatement::for_each(
            lines_by!("SELECT value FROM json_each(?)"),
            lines_by!("SELECT json_array_elements_text(CAST(? AS json))"),
        )
        .bind(here)
        .bind(people.as_str())
        .bind(here)
        // One more than is wanted, to know whether there is more.
        .bind(bounds.lines.saturating_add(1))
        .bind(i64::from(bounds.characters));
        let doing = "look back at what was said";
        let found = self.database.read(doing, query, line).await?;
        let all = found.len();
        let most = usize::try_from(bounds.lines).unwrap_or(usize::MAX);
        let lines: Vec<_> = found
            .into_iter()
            .take(most)
            // Ends at the first that is beyond the bound and does not skip it: a shorter one behind
            // it would look as if nothing had been said in between.
            .map_while(|line| line)
            .collect();
        Ok(PastLines {
            left_out: lines.len() < all,
            lines,
        })
    }
}

/// `None` for a line beyond the characters that are read.
fn line(row: &DatabaseRow) -> Result<Option<PastLine>, crate::DatabaseError> {
    let text: Option<String> = row.get("message")?;
    let Some(text) = text else {
        return Ok(None);
    };
    let title: Option<String> = row.get("title")?;
    let (session, place): (Option<i64>, Option<i64>) = (row.get("session")?, row.get("place")?);
    let conversation: String = row.get("conversation")?;
    Ok(Some(PastLine {
        number: row.get("id")?,
        conversation: ConversationKey::new(conversation),
        session: match (session, place) {
            (Some(id), _) => PastSession::Over {
                id,
                title: title.unwrap_or_default(),
            },
            (None, Some(conversation)) => PastSession::AtHand { conversation },
            (None, None) => PastSession::Here,
        },
        at: row.moment("at")?,
        text,
    }))
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn a_person_sees_their_own_conversations_and_a_group_its_own() {
        for database in TestDatabase::each().await {
            let opened = database.open().await;
            let store = opened.unwrap();
            let (history, rows) = (store.history(), store.look_back());
            let key = |name: &str| ConversationKey::new(name);
            for (name, person) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
                rows.note(&key(name), person).await.unwrap();
            }
            let now = Timestamp::from_millis(1);
            for name in ["a1", "a2", "b1", "group"] {
                history
                    .append(&key(name), &format!("old {name}"), now)
                    .await
                    .unwrap();
                let sessions = store.sessions();
                sessions.begin_anew(&key(name), "s", "S").await.unwrap();
                history
                    .append(&key(name), &format!("new {name}"), now)
                    .await
                    .unwrap();
            }
            let found = async |name: &str, people: &[&str], bounds| {
                let scope = SearchScope {
                    conversation: key(name),
                    people: people.iter().map(|&person| person.to_owned()).collect(),
                };
                let found = rows.lines(&scope, bounds).await.unwrap();
                let texts: Vec<_> = found.lines.into_iter().map(|line| line.text).collect();
                (texts, found.left_out)
            };
            let all = ViewBounds::default();
            let of_a = ["new a2", "old a2", "new a1", "old a1"].map(str::to_owned);
            assert_eq!(found("a1", &["a"], all).await, (of_a.to_vec(), false));
            assert_eq!(found("a1", &[], all).await.0, ["new a1", "old a1"]);
            assert_eq!(found("group", &[], all).await.0, ["new group", "old group"]);
            let few = ViewBounds { lines: 1, ..all };
            assert_eq!(found("a1", &["a"], few).await, (of_a[..1].to_vec(), true));
            let short = ViewBounds {
                characters: 12,
                ..all
            };
            assert_eq!(found("a1", &["a"], short).await, (of_a[..2].to_vec(), true));
            history.clear(&key("a2")).await.unwrap();
            assert_eq!(found("a1", &["a"], all).await.0, ["new a1", "old a1"]);
        }
    }
}
