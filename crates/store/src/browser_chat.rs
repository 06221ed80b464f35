//! What was said in the chat in the browser, where the platform is ourselves.
//!
//! Every question names the person, and what is another's is not there. The number of a conversation is never
//! given again: a sandbox hangs on it.

use hermetic_types::{RunId, Timestamp};

use crate::database::WithoutRoom::{Fail, Wait};
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseError, DatabaseRow, SqlStatement, StatementResult};
use crate::{RowOwner, StoreError};

#[derive(Clone, Debug)]
pub struct BrowserChatRows {
    database: Database,
}

/// One conversation of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserConversation {
    pub id: i64,
    /// How it began; empty before anything was said.
    pub title: String,
    pub opened_at: Timestamp,
    pub said_at: Timestamp,
}

/// One message, of the person or of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserMessage {
    pub id: i64,
    pub state: BrowserMessageState,
    pub text: String,
    /// As whoever sent it wrote them down; empty for none.
    pub buttons: String,
    /// What came of a press.
    pub notice: Option<String>,
    pub said_at: Timestamp,
    pub files: Vec<BrowserFile>,
}

/// How far a message got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrowserMessageState {
    /// The person said it, and the gateway has not taken it yet.
    Waiting,
    /// The person said it, and the gateway has it.
    Taken,
    /// The person said it, and may not.
    TurnedAway,
    /// We said it.
    Shown,
}

/// A file without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserFile {
    pub id: i64,
    pub name: String,
    pub mime: Option<String>,
    pub size: u64,
}

/// Something that is to be said.
#[derive(Clone, Debug)]
pub struct NewBrowserMessage {
    pub conversation: i64,
    pub text: String,
    /// Two messages with the same one are one.
    pub key: Option<String>,
    pub files: Vec<NewBrowserFile>,
}

/// A file with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBrowserFile {
    pub name: String,
    pub mime: Option<String>,
    pub bytes: Vec<u8>,
}

/// What came of writing down what a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum SaidOutcome {
    Written(i64),
    /// It was there already.
    Before(i64),
    /// Something else was said under the same key.
    Another(i64),
    /// That person has no such conversation.
    NoConversation,
    /// It holds as many messages as one may.
    Full,
}

/// A message that the gateway has not taken yet, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    pub person: String,
    pub conversation: i64,
    /// Under which it was said.
    pub key: Option<String>,
    pub message: BrowserMessage,
}

/// Messages in one conversation. What we say has no bound: it answers what is bounded.
const MOST_MESSAGES: i64 = 4000;

impl BrowserChatRows {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }

    /// Opens a conversation, unless this person has `most` of them.
    pub async fn open(
        &self,
        person: &str,
        most: i64,
        now: Timestamp,
    ) -> Result<Option<i64>, StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO browser_conversations (person, opened_at, said_at)
             SELECT ?, ?, ?
             WHERE (SELECT count(*) FROM browser_conversations WHERE person = ?) < ? RETURNING id",
        )
        .bind(person)
        .bind(now.millis())
        .bind(now.millis())
        .bind(person)
        .bind(most);
        let doing = "open a conversation";
        let id = |row: &DatabaseRow| row.get(0);
        self.database
            .returning(doing, (OnDisk, Fail), insert, id)
            .await
    }

    /// A person's conversations, the latest first.
    pub async fn conversations(
        &self,
        person: &str,
        most: u32,
    ) -> Result<Vec<BrowserConversation>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id, title, opened_at, said_at FROM browser_conversations
             WHERE person = ? ORDER BY said_at DESC, id DESC LIMIT ?",
        )
        .bind(person)
        .bind(most);
        let doing = "read conversations";
        self.database.read(doing, query, conversation_of).await
    }

    /// One of a person's conversations.
    pub async fn conversation(
        &self,
        person: &str,
        id: i64,
    ) -> Result<Option<BrowserConversation>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id, title, opened_at, said_at FROM browser_conversations
             WHERE person = ? AND id = ?",
        )
        .bind(person)
        .bind(id);
        let doing = "read a conversation";
        self.database
            .read_first(doing, query, conversation_of)
            .await
    }

    /// Writes down what a person said, with its files, on the disk: they are told next that we have it.
    pub async fn say(
        &self,
        person: &str,
        said: &NewBrowserMessage,
        now: Timestamp,
    ) -> Result<SaidOutcome, StoreError> {
        let doing = "write down what was said";
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
        .bind(MOST_MESSAGES);
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

    /// What was said and not taken yet, in its order.
    pub async fn waiting(&self, owner: RowOwner) -> Result<Vec<WaitingMessage>, StoreError> {
        let query = SqlStatement::new(
            "SELECT m.*, c.person FROM browser_messages m
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE m.state = 'waiting' AND m.owner = coalesce(?, m.owner) ORDER BY m.id",
        )
        .bind(owner.filter(&self.database));
        let mut found = self
            .database
            .read("read what was said", query, waiting_of)
            .await?;
        for waiting in &mut found {
            waiting.message.files = self.files((waiting.message.id, waiting.message.id)).await?;
        }
        Ok(found)
    }

    /// One message that was not taken yet.
    pub async fn waiting_message(&self, id: i64) -> Result<Option<WaitingMessage>, StoreError> {
        let query = SqlStatement::new(
            "SELECT m.*, c.person FROM browser_messages m
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE m.state = 'waiting' AND m.id = ?",
        )
        .bind(id);
        let doing = "read what was said";
        let found = self.database.read_first(doing, query, waiting_of).await?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        found.message.files = self.files((id, id)).await?;
        Ok(Some(found))
    }

    /// The latest messages of a conversation, or the latest before one, in their order.
    pub async fn messages(
        &self,
        person: &str,
        conversation: i64,
        before: Option<i64>,
        most: u32,
    ) -> Result<Vec<BrowserMessage>, StoreError> {
        let query = SqlStatement::new(
            "SELECT m.* FROM browser_messages m
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE c.person = ? AND m.conversation = ? AND m.id < coalesce(?, m.id + 1)
             ORDER BY m.id DESC LIMIT ?",
        )
        .bind(person)
        .bind(conversation)
        .bind(before)
        .bind(most);
        let doing = "read a conversation";
        let mut messages = self.database.read(doing, query, message_of).await?;
        messages.reverse();
        for message in &mut messages {
            message.files = self.files((message.id, message.id)).await?;
        }
        Ok(messages)
    }

    /// The bytes of one of a person's files.
    pub async fn file(
        &self,
        person: &str,
        id: i64,
    ) -> Result<Option<(BrowserFile, Vec<u8>)>, StoreError> {
        let query = SqlStatement::new(
            "SELECT f.id, f.name, f.mime, f.size, f.bytes FROM browser_files f
             JOIN browser_messages m ON m.id = f.message
             JOIN browser_conversations c ON c.id = m.conversation
             WHERE f.id = ? AND c.person = ?",
        )
        .bind(id)
        .bind(person);
        let file = |row: &DatabaseRow| Ok((file_of(row)?, row.get("bytes")?));
        self.database.read_first("read a file", query, file).await
    }

    /// How many bytes of files are kept: of this person's, and of everybody's.
    pub async fn kept_bytes(&self, person: &str) -> Result<(u64, u64), StoreError> {
        let query = SqlStatement::new(
            "SELECT coalesce(sum(CASE WHEN c.person = ? THEN f.size END), 0) AS own,
                    coalesce(sum(f.size), 0) AS everything
             FROM browser_files f JOIN browser_messages m ON m.id = f.message
             JOIN browser_conversations c ON c.id = m.conversation",
        )
        .bind(person);
        let sums = |row: &DatabaseRow| {
            let (own, everything): (i64, i64) = (row.get("own")?, row.get("everything")?);
            Ok((own.unsigned_abs(), everything.unsigned_abs()))
        };
        self.database.read_only("count files", query, sums).await
    }

    /// Forgets one of a person's conversations with all that is in it. `false` if there is none.
    pub async fn forget(&self, person: &str, id: i64) -> Result<bool, StoreError> {
        let files = SqlStatement::new(
            "DELETE FROM browser_files WHERE message IN
                 (SELECT m.id FROM browser_messages m
                  JOIN browser_conversations c ON c.id = m.conversation
                  WHERE c.id = ? AND c.person = ?)",
        );
        let messages = SqlStatement::new(
            "DELETE FROM browser_messages WHERE conversation IN
                 (SELECT id FROM browser_conversations WHERE id = ? AND person = ?)",
        );
        let itself =
            SqlStatement::new("DELETE FROM browser_conversations WHERE id = ? AND person = ?");
        let all = [files, messages, itself].map(|one| one.bind(id).bind(person));
        let doing = "forget a conversation";
        let written = self
            .database
            .write(doing, (OnDisk, Fail), all.to_vec())
            .await?;
        Ok(written.last().is_some_and(|itself| itself.affected() > 0))
    }

    /// Forgets conversations in which nothing was said since `before`.
    pub async fn prune(&self, before: Timestamp) -> Result<(), StoreError> {
        let files = SqlStatement::new(
            "DELETE FROM browser_files WHERE message IN
                 (SELECT m.id FROM browser_messages m
                  JOIN browser_conversations c ON c.id = m.conversation WHERE c.said_at < ?)",
        );
        let messages = SqlStatement::new(
            "DELETE FROM browser_messages WHERE conversation IN
                 (SELECT id FROM browser_conversations WHERE said_at < ?)",
        );
        let itself = SqlStatement::new("DELETE FROM browser_conversations WHERE said_at < ?");
        let all = [files, messages, itself].map(|one| one.bind(before.millis()));
        let doing = "forget old conversations";
        self.database
            .write(doing, (Soon, Fail), all.to_vec())
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

    async fn files(&self, (first, last): (i64, i64)) -> Result<Vec<BrowserFile>, StoreError> {
        let query = SqlStatement::new(
            "SELECT id, name, mime, size FROM browser_files
             WHERE message BETWEEN ? AND ? ORDER BY message, part",
        )
        .bind(first)
        .bind(last);
        self.database.read("list files", query, file_of).await
    }
}

impl BrowserMessageState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Taken => "taken",
            Self::TurnedAway => "turned_away",
            Self::Shown => "shown",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Waiting, Self::Taken, Self::TurnedAway, Self::Shown]
            .into_iter()
            .find(|state| state.name() == text)
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

fn first_id(written: &[StatementResult]) -> Result<Option<i64>, DatabaseError> {
    let row = written.first().and_then(StatementResult::first_row);
    row.map(|row| row.get(0)).transpose()
}

fn conversation_of(row: &DatabaseRow) -> Result<BrowserConversation, DatabaseError> {
    Ok(BrowserConversation {
        id: row.get("id")?,
        title: row.get("title")?,
        opened_at: row.moment("opened_at")?,
        said_at: row.moment("said_at")?,
    })
}

fn message_of(row: &DatabaseRow) -> Result<BrowserMessage, DatabaseError> {
    Ok(BrowserMessage {
        id: row.get("id")?,
        state: row.parsed("state", BrowserMessageState::parse)?,
        text: row.get("text")?,
        buttons: row.get("buttons")?,
        notice: row.get("notice")?,
        said_at: row.moment("said_at")?,
        files: Vec::new(),
    })
}

fn waiting_of(row: &DatabaseRow) -> Result<WaitingMessage, DatabaseError> {
    Ok(WaitingMessage {
        person: row.get("person")?,
        conversation: row.get("conversation")?,
        key: row.get("send_key")?,
        message: message_of(row)?,
    })
}

fn file_of(row: &DatabaseRow) -> Result<BrowserFile, DatabaseError> {
    let size: i64 = row.get("size")?;
    Ok(BrowserFile {
        id: row.get("id")?,
        name: row.get("name")?,
        mime: row.get("mime")?,
        size: size.unsigned_abs(),
    })
}

#[cfg(test)]
mod tests {
    use hermetic_types::{GatewayId, SystemClock};

    use super::*;
    use crate::Store;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn words(conversation: i64, text: &str, key: &str) -> NewBrowserMessage {
        NewBrowserMessage {
            conversation,
            text: text.to_owned(),
            key: Some(key.to_owned()),
            files: Vec::new(),
        }
    }

    #[tokio::test]
    async fn what_is_said_is_kept_once_and_is_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let rows = store.browser_chat();
        let adas = rows.open("ada", 2, at(1)).await.unwrap().unwrap();
        let mut said = words(adas, "look at this", "form-1");
        said.files.push(NewBrowserFile {
            name: "a.txt".to_owned(),
            mime: None,
            bytes: b"bytes\0of a file".to_vec(),
        });
        let outcome = rows.say("ada", &said, at(2)).await.unwrap();
        let SaidOutcome::Written(id) = outcome else {
            panic!("{outcome:?}");
        };
        let again = rows.say("ada", &said, at(3)).await.unwrap();
        assert_eq!(again, SaidOutcome::Before(id));
        let mut with_more = said.clone();
        with_more.files.push(NewBrowserFile {
            name: "b.txt".to_owned(),
            mime: None,
            bytes: b"forged".to_vec(),
        });
        // Neither its own person nor another puts anything to what was said.
        let another = rows.say("ada", &with_more, at(3)).await.unwrap();
        assert_eq!(another, SaidOutcome::Another(id));
        let another = words(adas, "something else", "form-1");
        let another = rows.say("ada", &another, at(3)).await.unwrap();
        assert_eq!(another, SaidOutcome::Another(id));
        let forged = rows.say("eve", &with_more, at(3)).await.unwrap();
        assert_eq!(forged, SaidOutcome::NoConversation);
        let shown = rows.show("eve", &with_more, "", at(3)).await.unwrap();
        assert_eq!(shown, None);
        let kept = rows.messages("ada", adas, None, 9).await.unwrap();
        assert_eq!((kept.len(), &kept[0].notice), (1, &None));
        let forged = rows.say("eve", &words(adas, "hi", "form-2"), at(3)).await;
        assert_eq!(forged.unwrap(), SaidOutcome::NoConversation);

        // As another process finds it.
        let rows = Store::open(&path, SystemClock::shared())
            .await
            .unwrap()
            .browser_chat();
        let messages = rows.messages("ada", adas, None, 9).await.unwrap();
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].files.len(), 1, "{messages:?}");
        let file = messages[0].files[0].id;
        let (_, bytes) = rows.file("ada", file).await.unwrap().unwrap();
        assert_eq!(bytes, b"bytes\0of a file");
        assert_eq!(rows.kept_bytes("ada").await.unwrap(), (15, 15));
        assert_eq!(rows.kept_bytes("eve").await.unwrap(), (0, 15));
        assert_eq!(rows.file("eve", file).await.unwrap(), None);
        assert_eq!(rows.messages("eve", adas, None, 9).await.unwrap(), []);
        assert_eq!(rows.conversations("eve", 9).await.unwrap(), []);
        assert!(!rows.forget("eve", adas).await.unwrap());
        assert!(!rows.change(("eve", adas), id, "x", "").await.unwrap());
        assert!(
            !rows.change(("ada", adas), id, "x", "").await.unwrap(),
            "nobody changes what a person said"
        );
        let title = rows.conversation("ada", adas).await.unwrap().unwrap().title;
        assert_eq!(title, "look at this");

        assert!(rows.forget("ada", adas).await.unwrap());
        assert_eq!(rows.file("ada", file).await.unwrap(), None);
        assert_eq!(rows.kept_bytes("ada").await.unwrap(), (0, 0));
        let next = rows.open("ada", 2, at(9)).await.unwrap().unwrap();
        assert!(next > adas, "a number is not given again");
        assert!(rows.open("ada", 2, at(9)).await.unwrap().is_some());
        assert_eq!(rows.open("ada", 2, at(9)).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_waits_is_handed_to_its_own_gateway_until_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        let rows = store.browser_chat();
        let id = rows.open("ada", 9, at(1)).await.unwrap().unwrap();
        for key in ["1", "2"] {
            let said = rows.say("ada", &words(id, "hi", key), at(2)).await.unwrap();
            assert!(matches!(said, SaidOutcome::Written(_)));
        }
        let waiting = rows.waiting(RowOwner::ThisGateway).await.unwrap();
        assert_eq!(waiting.len(), 2);
        assert_eq!(waiting[0].person, "ada");
        let other: GatewayId = "other".parse().unwrap();
        let other = Store::open_as(&path, other, SystemClock::shared())
            .await
            .unwrap();
        let theirs = other.browser_chat().waiting(RowOwner::ThisGateway).await;
        assert_eq!(theirs.unwrap(), []);
        let first = waiting[0].message.id;
        rows.settle(first, BrowserMessageState::Taken)
            .await
            .unwrap();
        assert_eq!(rows.waiting_message(first).await.unwrap(), None);
        assert_eq!(rows.waiting(RowOwner::AnyGateway).await.unwrap().len(), 1);

        let shown = rows
            .show("ada", &words(id, "yes?", "d-0"), "b", at(3))
            .await;
        let shown = shown.unwrap().unwrap();
        let again = rows
            .show("ada", &words(id, "yes?", "d-0"), "b", at(3))
            .await;
        assert_eq!(again.unwrap(), Some(shown));
        let nowhere = rows.show("ada", &words(99, "yes?", "d-1"), "", at(3)).await;
        assert_eq!(nowhere.unwrap(), None);
        assert!(rows.change(("ada", id), shown, "done", "").await.unwrap());
        rows.note_press("ada", shown, "Allowed.").await.unwrap();
        rows.note_press("eve", shown, "forged").await.unwrap();
        let last = rows.messages("ada", id, None, 1).await.unwrap().remove(0);
        assert_eq!(
            (
                last.text.as_str(),
                last.buttons.as_str(),
                last.notice.as_deref()
            ),
            ("done", "", Some("Allowed."))
        );
        let earlier = rows.messages("ada", id, Some(last.id), 9).await.unwrap();
        assert_eq!(earlier.len(), 2);
        rows.prune(at(3)).await.unwrap();
        assert_eq!(rows.messages("ada", id, None, 9).await.unwrap().len(), 3);
        rows.prune(at(4)).await.unwrap();
        assert_eq!(rows.messages("ada", id, None, 9).await.unwrap(), []);
    }
}
