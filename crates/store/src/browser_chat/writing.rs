//! Writes down what is said, by the person and by us.

use hermetic_types::{RunId, Timestamp};

use super::rows::{BrowserMessageState, NewBrowserMessage, SaidOutcome};
use super::{BrowserChatRows, first_id};
use crate::StoreError;
use crate::database::WithoutRoom::{Fail, Wait};
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{DatabaseRow, SqlStatement};

/// Messages in one conversation. What we say has no bound: it answers what is bounded.
const MOST_MESSAGES: i64 = 4000;

impl BrowserChatRows {
    /// Writes down what a person said, with its files, on the disk: they are told next that we have it.
    pub async fn say(
        &self,
        person: &str,
        said: &NewBrowserMessage,
        now: Timestamp,
    ) -> Result<SaidOutcome, StoreError> {
        let doing = "write down what was said";
        // A statement cannot use the number that the one before it was given, so the row carries a
        // mark by which its files find it.
        let mark = mark();
        let insert = SqlStatement::new(
            "INSERT INTO browser_messages
                 (conversation, state, text, notice, send_key, said_at, owner)
             SELECT id, 'waiting', ?, ?, ?, ?, ? FROM browser_conversations
             WHERE id = ? AND person = ?
               AND (SELECT count(*) FROM browser_messages
                    WHERE conversation = browser_conversations.id AND state <> 'shown') < ?
             ON CONFLICT (conversation, send_key) DO NOTHING RETURNING id",
        )
        .bind(&said.text)
        .bind(&mark)
        .bind(said.key.as_ref())
        .bind(now.millis())
        .bind(self.database.gateway())
        .bind(said.conversation)
        .bind(person)
        .bind(MOST_MESSAGES)
        .alone_in("browser_messages");
        let mut statements = vec![insert];
        statements.extend(files_of(said, &mark));
        let title: String = said.text.chars().take(80).collect();
        let touch = SqlStatement::new(
            "UPDATE browser_conversations
             SET said_at = ?, title = CASE title WHEN '' THEN ? ELSE title END
             WHERE id = ? AND person = ?",
        )
        .bind(now.millis())
        .bind(&title)
        .bind(said.conversation)
        .bind(person);
        statements.push(touch);
        let written = self.database.write(doing, (OnDisk, Fail), statements);
        // Nothing was inserted for one of three reasons, which are told apart only now: the usual
        // case costs one write and no look.
        if let Some(id) = first_id(&written.await?).map_err(StoreError::while_doing(doing))? {
            return Ok(SaidOutcome::Written(id));
        }
        let own = self.conversation(person, said.conversation).await?;
        if own.is_none() {
            return Ok(SaidOutcome::NoConversation);
        }
        let before = self.by_key(said.conversation, said.key.as_deref()).await?;
        Ok(match before {
            Some(id) if self.is_same(person, id, said).await? => SaidOutcome::Before(id),
            Some(id) => SaidOutcome::Another(id),
            None => SaidOutcome::Full,
        })
    }

    /// Whether this message of the person's says the same, with the same files.
    async fn is_same(
        &self,
        person: &str,
        id: i64,
        said: &NewBrowserMessage,
    ) -> Result<bool, StoreError> {
        let before = self
            .messages(person, said.conversation, Some(id + 1), 1)
            .await?;
        let before = before.into_iter().find(|before| before.id == id);
        let Some(before) = before.filter(|before| before.text == said.text) else {
            return Ok(false);
        };
        if before.files.len() != said.files.len() {
            return Ok(false);
        }
        for (old, new) in before.files.iter().zip(&said.files) {
            let bytes = self.file(person, old.id).await?.map(|(_, bytes)| bytes);
            if old.name != new.name || bytes.as_ref() != Some(&new.bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Shows something of ours; nothing if there is no such conversation. What was shown under the same
    /// key before is not shown again. It is on the disk before it can be noted that it was sent.
    pub async fn show(
        &self,
        person: &str,
        shown: &NewBrowserMessage,
        buttons: &str,
        now: Timestamp,
    ) -> Result<Option<i64>, StoreError> {
        let doing = "show a reply";
        let mark = mark();
        let insert = SqlStatement::new(
            "INSERT INTO browser_messages
                 (conversation, state, text, buttons, notice, send_key, said_at, owner)
             SELECT id, 'shown', ?, ?, ?, ?, ?, ? FROM browser_conversations
             WHERE id = ? AND person = ?
             ON CONFLICT (conversation, send_key) DO NOTHING RETURNING id",
        )
        .bind(&shown.text)
        .bind(buttons)
        .bind(&mark)
        .bind(shown.key.as_ref())
        .bind(now.millis())
        .bind(self.database.gateway())
        .bind(shown.conversation)
        .bind(person);
        let mut statements = vec![insert];
        statements.extend(files_of(shown, &mark));
        let touch = SqlStatement::new(
            "UPDATE browser_conversations SET said_at = ? WHERE id = ? AND person = ?",
        )
        .bind(now.millis())
        .bind(shown.conversation)
        .bind(person);
        statements.push(touch);
        let written = self.database.write(doing, (Soon, Fail), statements).await?;
        if let Some(id) = first_id(&written).map_err(StoreError::while_doing(doing))? {
            return Ok(Some(id));
        }
        match self.conversation(person, shown.conversation).await? {
            Some(_) => self.by_key(shown.conversation, shown.key.as_deref()).await,
            None => Ok(None),
        }
    }

    /// Changes something of ours. `false` if it is not there.
    pub async fn change(
        &self,
        (person, conversation): (&str, i64),
        message: i64,
        text: &str,
        buttons: &str,
    ) -> Result<bool, StoreError> {
        let update = SqlStatement::new(
            "UPDATE browser_messages SET text = ?, buttons = ?
             WHERE id = ? AND conversation = ? AND state = 'shown' AND conversation IN
                 (SELECT id FROM browser_conversations WHERE person = ?)",
        )
        .bind(text)
        .bind(buttons)
        .bind(message)
        .bind(conversation)
        .bind(person);
        let doing = "change a reply";
        let changed = self.database.change(doing, (Soon, Fail), update).await?;
        Ok(changed > 0)
    }

    /// Writes under one of our messages what came of a press.
    pub async fn note_press(
        &self,
        person: &str,
        message: i64,
        notice: &str,
    ) -> Result<(), StoreError> {
        let update = SqlStatement::new(
            "UPDATE browser_messages SET notice = ?
             WHERE id = ? AND state = 'shown' AND conversation IN
                 (SELECT id FROM browser_conversations WHERE person = ?)",
        )
        .bind(notice)
        .bind(message)
        .bind(person);
        let doing = "note a press";
        self.database
            .change(doing, (Soon, Fail), update)
            .await
            .map(drop)
    }

    /// Notes that the gateway has it, or that whoever said it may not.
    pub async fn settle(&self, message: i64, state: BrowserMessageState) -> Result<(), StoreError> {
        let update = SqlStatement::new(
            "UPDATE browser_messages SET state = ? WHERE id = ? AND state = 'waiting'",
        )
        .bind(state.name())
        .bind(message);
        let doing = "note that a message was taken";
        self.database
            .change(doing, (Soon, Wait), update)
            .await
            .map(drop)
    }

    async fn by_key(
        &self,
        conversation: i64,
        key: Option<&str>,
    ) -> Result<Option<i64>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id FROM browser_messages WHERE conversation = ? AND send_key = ?",
        )
        .bind(conversation)
        .bind(key);
        let id = |row: &DatabaseRow| row.get("id");
        self.database.read_first("find a message", query, id).await
    }
}

/// What a row is marked with until its files are there, so that nobody else's row gets them. It is seen by none:
/// all of it is one transaction.
fn mark() -> String {
    format!("new:{}", RunId::random())
}

/// Puts the files to the row that was made just now; nowhere if none was.
fn files_of(message: &NewBrowserMessage, mark: &str) -> Vec<SqlStatement> {
    let numbered = (0_i64..).zip(&message.files);
    let files = numbered.map(|(part, file)| {
        SqlStatement::new(
            "INSERT INTO browser_files (message, part, name, mime, size, bytes)
             SELECT id, ?, ?, ?, ?, ? FROM browser_messages
             WHERE conversation = ? AND notice = ?",
        )
        .bind(part)
        .bind(&file.name)
        .bind(file.mime.as_ref())
        .bind(i64::try_from(file.bytes.len()).unwrap_or(i64::MAX))
        .bind(file.bytes.as_slice())
        .bind(message.conversation)
        .bind(mark)
    });
    let unmark = SqlStatement::new(
        "UPDATE browser_messages SET notice = NULL WHERE conversation = ? AND notice = ?",
    )
    .bind(message.conversation)
    .bind(mark);
    files.chain([unmark]).collect()
}
