//! The chat in the browser: a person's conversations, one of them open.
//!
//! Everything here is asked for in the name of whoever signed in, and the store gives out nothing of anybody
//! else's. Only operators write; who may only look sees what they wrote when they still could.

mod acts;
mod view;

use std::sync::Arc;

use hermetic_store::{BrowserConversation, BrowserMessage};
use hermetic_types::{Timestamp, UserId};
use serde::{Deserialize, Serialize};

use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::DashboardState;
use crate::{BrowserChat, words};

pub(crate) use acts::{delete, file, open, press, say};
pub(crate) use view::page;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ChatQuery {
    /// The conversation; the latest where none is named.
    pub(crate) c: Option<i64>,
    /// Only what was said before this message.
    pub(crate) before: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ChatPage {
    pub(crate) now: Timestamp,
    pub(crate) conversations: Vec<ConversationEntry>,
    pub(crate) open: Option<OpenConversation>,
}

/// One conversation in the list.
#[derive(Debug, Serialize)]
pub(crate) struct ConversationEntry {
    pub(crate) id: i64,
    pub(crate) title: String,
    pub(crate) said_at: Timestamp,
}

/// The conversation that is looked at.
#[derive(Debug, Serialize)]
pub(crate) struct OpenConversation {
    pub(crate) id: i64,
    /// Under which the rest of the pages know it.
    pub(crate) key: String,
    pub(crate) messages: Vec<MessageEntry>,
    /// The message before which there is more.
    pub(crate) before: Option<i64>,
    /// An answer is being written.
    pub(crate) is_writing: bool,
}

/// One message.
#[derive(Debug, Serialize)]
pub(crate) struct MessageEntry {
    pub(crate) id: i64,
    /// `waiting`, `taken` or `turned_away` for what the person said, `shown` for what was answered.
    pub(crate) state: &'static str,
    pub(crate) text: String,
    pub(crate) buttons: Vec<Vec<ButtonEntry>>,
    pub(crate) notice: Option<String>,
    pub(crate) said_at: Timestamp,
    pub(crate) files: Vec<FileEntry>,
}

/// A button, as the platform's crate kept it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ButtonEntry {
    pub(crate) label: String,
    pub(crate) data: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct FileEntry {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

const EACH_PAGE: u32 = 60;
const MOST_LISTED: u32 = 200;

/// A name that stands with a file's number in an id of at most 256 bytes.
const LONGEST_PERSON: usize = 200;

/// Who speaks: whoever signed in, by the name that the audit record has too.
fn person(viewer: &Viewer) -> Result<UserId, PageFailure> {
    let name = UserId::new(viewer.who.as_str()).ok();
    name.filter(|name| name.as_str().len() <= LONGEST_PERSON)
        .ok_or(PageFailure::Forbidden(
            "Your name is too long to chat under.",
        ))
}

fn chat(state: &DashboardState) -> Result<&Arc<dyn BrowserChat>, PageFailure> {
    let chat = state.chat.as_ref();
    chat.ok_or(PageFailure::NotFound(
        "This gateway has no chat in the browser.",
    ))
}

pub(crate) async fn load(
    state: &DashboardState,
    viewer: &Viewer,
    query: &ChatQuery,
) -> Result<ChatPage, PageFailure> {
    let (chat, person) = (chat(state)?, person(viewer)?);
    let rows = state.store.browser_chat();
    let listed = rows.conversations(person.as_str(), MOST_LISTED).await?;
    let id = query.c.or(listed.first().map(|latest| latest.id));
    let open = match id {
        None => None,
        Some(id) => {
            let found = rows.conversation(person.as_str(), id).await?;
            found.ok_or(PageFailure::NotFound(
                "There is no such conversation of yours.",
            ))?;
            let messages = rows
                .messages(person.as_str(), id, query.before, EACH_PAGE)
                .await?;
            let first = messages.first().map(|first| first.id);
            let key = chat.key(&person, id);
            Some(OpenConversation {
                id,
                key: key.map(|key| key.as_str().to_owned()).unwrap_or_default(),
                before: first.filter(|_| messages.len() >= EACH_PAGE as usize),
                is_writing: query.before.is_none() && chat.is_writing(id),
                messages: messages.iter().map(|one| message(state, one)).collect(),
            })
        }
    };
    Ok(ChatPage {
        now: state.now(),
        conversations: listed.iter().map(|one| entry(state, one)).collect(),
        open,
    })
}

fn entry(state: &DashboardState, conversation: &BrowserConversation) -> ConversationEntry {
    let title = words::beginning(&state.shown(&conversation.title), 60);
    ConversationEntry {
        id: conversation.id,
        title: match title.is_empty() {
            true => "New conversation".to_owned(),
            false => title,
        },
        said_at: conversation.said_at,
    }
}

fn message(state: &DashboardState, message: &BrowserMessage) -> MessageEntry {
    let buttons: Vec<Vec<ButtonEntry>> = serde_json::from_str(&message.buttons).unwrap_or_default();
    let files = message.files.iter().map(|file| FileEntry {
        id: file.id,
        name: state.shown(&file.name),
        bytes: file.size,
    });
    MessageEntry {
        id: message.id,
        state: message.state.name(),
        text: state.shown(&message.text),
        buttons,
        notice: message.notice.as_deref().map(|notice| state.shown(notice)),
        said_at: message.said_at,
        files: files.collect(),
    }
}
