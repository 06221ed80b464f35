//! What was said in a conversation, as the agent keeps it.

use hermetic_types::{ConversationKey, Timestamp};

use crate::StoreError;
use crate::database::WithoutRoom::{Fail, Wait};
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};

#[derive(Clone, Debug)]
pub struct HistoryRows {
    pub(crate) database: Database,
}

/// A conversation as it stands: what a summary stands for is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryView {
    pub summary: Option<String>,
    /// Oldest first.
    pub lines: Vec<NumberedLine>,
    /// How many older lines were not read, because there are too many.
    pub left_out: usize,
}

/// A line of the history. Later lines have larger numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedLine {
    pub number: i64,
    pub text: String,
}

/// How much is read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewBounds {
    pub lines: u32,
    pub characters: u32,
}

impl Default for ViewBounds {
    /// More than any model is shown: a conversation is summarised long before.
    fn default() -> Self {
        Self {
            lines: 4000,
            characters: 32 << 20,
        }
    }
}

impl HistoryRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Appends a message, which is one line; the number of the line.
    pub async fn append(
        &self,
        conversation: &ConversationKey,
        message: &str,
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        let doing = "append to a conversation";
        // Lines come back joined by line ends, as one row. One that had an end in it would come
        // back as two that nobody can read.
        one_line(doing, message)?;
        let insert = inserted(conversation, message, now);
        let number = |row: &DatabaseRow| row.get(0);
        let number = self
            .database
            // Not on the disk: a power cut loses the end of a turn that is then taken up again, and
            // what a tool does outside waits for its own row.
            .returning(doing, (Soon, Wait), insert, number)
            .await?;
        number.ok_or_else(|| StoreError::while_doing(doing)(DatabaseError::no_row()))
    }

    /// The last `most` messages, oldest first, whatever summary stands for them.
    pub async fn recent(
        &self,
        conversation: &ConversationKey,
        most: u32,
    ) -> Result<Vec<String>, StoreError> {
        // As one row: each crosses from SQLite's thread to ours.
        let query = SqlStatement::new(
            "SELECT string_agg(message, '\n' ORDER BY id) FROM
                 (SELECT id, message FROM history WHERE conversation = ? AND session IS NULL
                  ORDER BY id DESC LIMIT ?) AS newest",
        )
        .bind(conversation.as_str())
        .bind(most);
        let lines = |row: &DatabaseRow| row.get::<Option<String>>(0);
        let lines = self.database.read_only("read a conversation", query, lines);
        let lines = lines.await?;
        let lines = lines.iter().flat_map(|lines| lines.split('\n'));
        Ok(lines.map(str::to_owned).collect())
    }

    /// The last lines, oldest first, whatever summary stands for them.
    pub async fn lines(
        &self,
        conversation: &ConversationKey,
        bounds: ViewBounds,
    ) -> Result<Vec<NumberedLine>, StoreError> {
        let query = SqlStatement::new(
            "SELECT string_agg(id || ' ' || message, '\n' ORDER BY id) FROM
                 (SELECT id, message, sum(length(message)) OVER (ORDER BY id DESC) AS so_far
                  FROM history WHERE conversation = ? AND session IS NULL ORDER BY id DESC LIMIT ?)
                 AS newest
             WHERE so_far <= ?",
        )
        .bind(conversation.as_str())
        .bind(bounds.lines)
        .bind(i64::from(bounds.characters));
        let lines = |row: &DatabaseRow| row.get::<Option<String>>(0);
        let doing = "read the lines of a conversation";
        let lines = self.database.read_only(doing, query, lines).await?;
        let lines = lines.iter().flat_map(|lines| lines.split('\n'));
        Ok(lines.filter_map(numbered).collect())
    }

    /// The latest summary of the conversation and what was said since, at most so much of it.
    pub async fn view(
        &self,
        conversation: &ConversationKey,
        bounds: ViewBounds,
    ) -> Result<HistoryView, StoreError> {
        let key = conversation.as_str();
        let query = SqlStatement::new(
            "WITH folded AS
                 (SELECT up_to, summary FROM compactions WHERE conversation = ? AND session IS NULL
                  ORDER BY up_to DESC, id DESC LIMIT 1),
             said AS
                 (SELECT id, message FROM history
                  WHERE conversation = ? AND session IS NULL
                    AND id > coalesce((SELECT up_to FROM folded), 0)),
             shown AS
                 (SELECT id, message FROM
                      (SELECT id, message, sum(length(message)) OVER (ORDER BY id DESC) AS so_far
                       FROM said ORDER BY id DESC LIMIT ?) AS newest
                  WHERE so_far <= ?)
             SELECT (SELECT summary FROM folded),
                    (SELECT string_agg(id || ' ' || message, '\n' ORDER BY id) FROM shown),
                    (SELECT count(*) FROM said)",
        )
        .bind(key)
        .bind(key)
        .bind(bounds.lines)
        .bind(i64::from(bounds.characters));
        let view = |row: &DatabaseRow| {
            let lines: Option<String> = row.get(1)?;
            let lines = lines.iter().flat_map(|lines| lines.split('\n'));
            let lines: Vec<_> = lines.filter_map(numbered).collect();
            let said: i64 = row.get(2)?;
            Ok(HistoryView {
                summary: row.get(0)?,
                left_out: usize::try_from(said)
                    .unwrap_or(0)
                    .saturating_sub(lines.len()),
                lines,
            })
        };
        let doing = "read a conversation and its summary";
        self.database.read_only(doing, query, view).await
    }

    /// Has a summary stand for every line up to this one, from now on and all at once. The lines stay.
    pub async fn compact(
        &self,
        conversation: &ConversationKey,
        up_to: i64,
        summary: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO compactions (conversation, up_to, summary, at) VALUES (?, ?, ?, ?)",
        )
        .bind(conversation.as_str())
        .bind(up_to)
        .bind(summary)
        .bind(now.millis());
        self.database
            .change("write a summary down", (OnDisk, Fail), insert)
            .await
            .map(drop)
    }

    /// Takes back the line with this number and all after it, and summaries that stand for any of them. In
    /// their place comes `instead`, a message, where there is one. Else what is then the newest line counts as
    /// said now: somebody who takes something back is not silent, see [`Self::last_at`].
    pub async fn take_back(
        &self,
        conversation: &ConversationKey,
        from: i64,
        instead: Option<&str>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let doing = "take back what was said";
        let mut statements = vec![
            SqlStatement::new(
                "DELETE FROM compactions WHERE conversation = ? AND session IS NULL AND up_to >= ?",
            )
            .bind(conversation.as_str())
            .bind(from),
            SqlStatement::new(
                "DELETE FROM history WHERE conversation = ? AND session IS NULL AND id >= ?",
            )
            .bind(conversation.as_str())
            .bind(from),
        ];
        if let Some(message) = instead {
            one_line(doing, message)?;
            statements.push(inserted(conversation, message, now));
        } else {
            let said_now = SqlStatement::new(
                "UPDATE history SET at = CASE WHEN at > ?1 THEN at ELSE ?1 END WHERE id =
                 (SELECT max(id) FROM history WHERE conversation = ?2 AND session IS NULL)",
            );
            statements.push(said_now.bind(now.millis()).bind(conversation.as_str()));
        }
        self.database
            .write(doing, (OnDisk, Fail), statements)
            .await
            .map(drop)
    }

    /// When something was last said.
    pub async fn last_at(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Option<Timestamp>, StoreError> {
        let query = SqlStatement::new(
            "SELECT at FROM history WHERE conversation = ? AND session IS NULL
             ORDER BY id DESC LIMIT 1",
        )
        .bind(conversation.as_str());
        let doing = "look when something was said";
        let at = |row: &DatabaseRow| row.moment("at");
        self.database.read_first(doing, query, at).await
    }

    /// Forgets sessions and conversations in which nothing was said since `before`, and of those that go on the
    /// lines from before it for which a summary of before it stands: who never falls silent would fill the store
    /// alone. How many lines those were.
    pub async fn forget_silent(&self, before: Timestamp) -> Result<u64, StoreError> {
        let before = before.millis();
        // What points to others goes before what it points to: the lines of a session are found by
        // its row, so that is deleted later.
        let forgotten = [
            SqlStatement::new(
                "DELETE FROM history WHERE session IN (SELECT id FROM sessions WHERE ended_at < ?)",
            )
            .bind(before),
            SqlStatement::new(
                "DELETE FROM history WHERE session IS NULL AND conversation IN
                 (SELECT conversation FROM history WHERE session IS NULL
                  GROUP BY conversation HAVING MAX(at) < ?)",
            )
            .bind(before),
            // A summary that is as old is not taken back any more, so nothing asks for these lines again.
            SqlStatement::new(
                "DELETE FROM history WHERE session IS NULL AND at < ? AND id <=
                 (SELECT MAX(up_to) FROM compactions WHERE compactions.session IS NULL AND compactions.at < ?
                  AND compactions.conversation = history.conversation)",
            )
            .bind(before)
            .bind(before),
            SqlStatement::new(
                "DELETE FROM compactions WHERE session IS NULL AND EXISTS
                 (SELECT 1 FROM compactions AS later WHERE later.session IS NULL AND later.at < ?
                  AND later.conversation = compactions.conversation AND later.up_to > compactions.up_to)",
            )
            .bind(before),
            SqlStatement::new("DELETE FROM sessions WHERE ended_at < ?").bind(before),
            SqlStatement::new(
                "DELETE FROM compactions WHERE CASE
                     WHEN session IS NULL THEN NOT EXISTS
                         (SELECT 1 FROM history WHERE history.conversation = compactions.conversation
                          AND history.session IS NULL)
                     ELSE session NOT IN (SELECT id FROM sessions) END",
            ),
            SqlStatement::new(
                "DELETE FROM todo_lists WHERE NOT EXISTS
                 (SELECT 1 FROM history WHERE history.conversation = todo_lists.conversation
                  AND history.session IS NULL)",
            ),
        ];
        let doing = "forget silent conversations";
        let written = self.database.write(doing, (Soon, Fail), forgotten.into());
        let lines = written.await?;
        Ok(lines.iter().take(3).map(StatementResult::affected).sum())
    }

    /// Forgets all that was ever said in a conversation.
    pub async fn clear(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        let cleared = [
            "DELETE FROM history WHERE conversation = ? AND session IS NULL",
            "DELETE FROM history WHERE session IN (SELECT id FROM sessions WHERE conversation = ?)",
            "DELETE FROM sessions WHERE conversation = ?",
            "DELETE FROM compactions WHERE conversation = ?",
            "DELETE FROM conversation_models WHERE conversation = ?",
            "DELETE FROM todo_lists WHERE conversation = ?",
            "DELETE FROM conversation_agents WHERE conversation = ?",
            "DELETE FROM agent_sessions WHERE conversation = ?",
            "DELETE FROM agent_settings WHERE conversation = ?",
            "DELETE FROM conversation_people WHERE conversation = ?",
        ]
        .map(|sql| SqlStatement::new(sql).bind(conversation.as_str()));
        self.database
            .write("clear a conversation", (Soon, Fail), cleared.into())
            .await
            .map(drop)
    }
}

pub(crate) fn inserted(
    conversation: &ConversationKey,
    message: &str,
    now: Timestamp,
) -> SqlStatement {
    SqlStatement::new(
        "INSERT INTO history (conversation, message, at) VALUES (?, ?, ?) RETURNING id",
    )
    .bind(conversation.as_str())
    .bind(message)
    .bind(now.millis())
}

pub(crate) fn one_line(doing: &'static str, message: &str) -> Result<(), StoreError> {
    if message.contains('\n') {
        let several = DatabaseError::unfit("it is several lines");
        return Err(StoreError::while_doing(doing)(several));
    }
    Ok(())
}

fn numbered(line: &str) -> Option<NumberedLine> {
    let (number, text) = line.split_once(' ')?;
    Some(NumberedLine {
        number: number.parse().ok()?,
        text: text.to_owned(),
    })
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
