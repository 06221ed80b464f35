//! The chat in the browser: a person's conversations, one of them open.
//!
//! Everything here is asked for in the name of whoever signed in, and the store gives out nothing of anybody
//! else's. Only operators write; who may only look sees what they wrote when they still could.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, FromRequest as _, Query, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use hermetic_store::{BrowserConversation, BrowserMessage, BrowserMessageState};
use hermetic_types::{RunId, Timestamp, UserId};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::layout::{Page, csrf_field, empty, mark, time};
use crate::access::Viewer;
use crate::acts::{Act, ActRefused};
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::upload::{UploadRefused, UploadedForm};
use crate::{BrowserChat, ChatPress, ChatRefused, ChatWords, assets, markdown, words};

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

/// For a place to send files by.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

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

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<ChatQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &viewer, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let bounds = chat(&state)?.bounds();
    let body = html! {
        div.chat {
            (list(&viewer, &page))
            @match &page.open {
                None => section.panel aria-label="Conversation" {
                    (empty("You have no conversation here yet.", &html! {
                        @if viewer.may_act() { "Open one, and write as on any other platform: it has a sandbox of its own." }
                        @else { "You may look here, and not write. An operator can." }
                    }))
                },
                Some(open) => section.talk aria-label="Conversation" {
                    (conversation(&viewer, &page, open, &query))
                    @if viewer.may_act() { (composer(&viewer, open.id, bounds.files)) }
                    @else { p.note { "You may look here, and not write. An operator can." } }
                }
            }
        }
        script src=(assets::url("chat.js")) defer {}
    };
    Ok(Page {
        title: "Chat",
        path: "/chat",
        viewer: &viewer,
        topics: "chat",
        waiting,
        body,
    }
    .into_response())
}

fn list(viewer: &Viewer, page: &ChatPage) -> Markup {
    let open = page.open.as_ref().map(|open| open.id);
    html! {
        nav.talks aria-label="Conversations" {
            @if viewer.may_act() {
                form method="post" action="/chat/open" {
                    (csrf_field(viewer))
                    button type="submit" { "New conversation" }
                }
            }
            ul #talks data-live {
                @for one in &page.conversations {
                    li data-key={ "c" (one.id) } {
                        a href={ "/chat?c=" (one.id) } aria-current=[(open == Some(one.id)).then_some("page")] {
                            span.title { (one.title) }
                            span.dim { (time(page.now, one.said_at)) }
                        }
                    }
                }
            }
        }
    }
}

fn conversation(
    viewer: &Viewer,
    page: &ChatPage,
    open: &OpenConversation,
    query: &ChatQuery,
) -> Markup {
    html! {
        div.head {
            @if !open.key.is_empty() {
                a href={ "/conversation?" (words::query(&[("key", &open.key)])) } { "Timeline, stop, sandbox" }
            }
            @if viewer.may_act() {
                details.act {
                    summary { span.button { "Delete…" } }
                    form method="post" action="/chat/delete" {
                        (csrf_field(viewer))
                        input type="hidden" name="c" value=(open.id);
                        p { "Deletes what was said here with its files, and destroys the sandbox with everything in it." }
                        p.dim { "What the gateway took in, ran and answered stays in its timeline for 30 days after it ended. The audit record stays." }
                        button.danger type="submit" name="sure" value="yes" { "Delete this conversation" }
                    }
                }
            }
        }
        @if let Some(before) = open.before {
            p { a href={ "/chat?c=" (open.id) "&before=" (before) } { "Earlier messages" } }
        }
        @if query.before.is_some() { p { a href={ "/chat?c=" (open.id) } { "Latest messages" } } }
        // Read aloud as it comes; a message that grows is read when it is asked for.
        div.messages #messages data-live role="log" aria-label="Messages" tabindex="0" {
            ol {
                @for one in &open.messages { (shown(viewer, page.now, open.id, one)) }
                @if open.is_writing {
                    li.theirs data-key="writing" { p.dim { "An answer is being written…" } }
                }
            }
        }
        span #latest {}
        // The script takes it away, where there is one that runs. Without a fragment: to one on the same page
        // a browser goes without asking again.
        p #again { a href={ "/chat?c=" (open.id) } { "Load again" } " to see what was answered." }
    }
}

fn shown(viewer: &Viewer, now: Timestamp, conversation: i64, one: &MessageEntry) -> Markup {
    let is_theirs = one.state == BrowserMessageState::Shown.name();
    html! {
        li class=(if is_theirs { "theirs" } else { "mine" }) data-key={ "m" (one.id) } {
            p.from {
                strong { @if is_theirs { "Hermetic" } @else { "You" } } " "
                span.dim { (time(now, one.said_at)) }
                @match one.state {
                    "waiting" => { " " (mark("busy", "waits to be taken")) }
                    "turned_away" => { " " (mark("bad", "not admitted")) }
                    _ => {}
                }
            }
            div.text {
                @if is_theirs { (markdown::shown(&one.text)) }
                @else if !one.text.is_empty() { p.words { (one.text) } }
            }
            @if !one.files.is_empty() {
                ul.files {
                    @for file in &one.files {
                        li { a href={ "/chat/file?id=" (file.id) } download { (file.name) } " " span.dim { (words::bytes(file.bytes)) } }
                    }
                }
            }
            @if viewer.may_act() {
                @for row in &one.buttons {
                    form.buttons method="post" action="/chat/press" {
                        (csrf_field(viewer))
                        input type="hidden" name="c" value=(conversation);
                        input type="hidden" name="message" value=(one.id);
                        @for button in row {
                            button type="submit" name="data" value=(button.data) { (words::visible(&button.label)) }
                        }
                    }
                }
            }
            @if let Some(notice) = &one.notice { p.note { (notice) } }
        }
    }
}

fn composer(viewer: &Viewer, conversation: i64, files: usize) -> Markup {
    html! {
        form.composer #composer method="post" action="/chat/say" enctype="multipart/form-data" {
            (csrf_field(viewer))
            input type="hidden" name="c" value=(conversation);
            input type="hidden" name="once" value=(RunId::random());
            label.unseen for="text" { "Message" }
            textarea #text name="text" rows="3" placeholder="Write a message, or / for commands" autocomplete="off" {}
            div.acts {
                label.unseen for="files" { "Files, at most " (files) }
                input #files type="file" name="files" multiple;
                button.main type="submit" { "Send" }
            }
            p.note.bad #refused role="alert" hidden {}
        }
    }
}

pub(crate) async fn open(
    State(state): State<SharedState>,
    act: Act<NoFields>,
) -> Result<Response, PageFailure> {
    let person = person(&act.viewer)?;
    act.record(&state, "chat_opened", "")?;
    let id = chat(&state)?.open(&person).await?;
    Ok(match act.for_program {
        true => axum::Json(serde_json::json!({ "c": id })).into_response(),
        false => done(&act, &format!("/chat?c={id}")),
    })
}

/// A form that says nothing.
#[derive(Debug, Deserialize)]
pub(crate) struct NoFields {}

#[derive(Debug, Deserialize)]
struct SayFields {
    c: i64,
    #[serde(default)]
    text: String,
    once: Option<String>,
}

/// Says something, with files or without. The gateway writes down who said it, as of every platform.
pub(crate) async fn say(
    State(state): State<SharedState>,
    request: Request,
) -> Result<Response, SayFailure> {
    let bounds = chat(&state)?.bounds();
    let (act, files) = match UploadedForm::is_one(&request) {
        false => (
            Act::<SayFields>::from_request(request, &state).await?,
            Vec::new(),
        ),
        true => {
            let viewer = Act::<SayFields>::viewer_of(&request)?;
            // Each of them holds as much as a message may. What has no files waits for nobody's.
            let _place = match UploadedForm::is_small(&request, bounds) {
                true => None,
                false => {
                    let place = timeout(LONGEST_WAIT, state.uploads.acquire()).await;
                    Some(place.map_err(|_| {
                        PageFailure::Busy(
                            "Others are sending files at this moment. It was not sent: send it again in a while.",
                        )
                    })?)
                }
            };
            let for_program = request.uri().path().starts_with("/api/");
            let form = UploadedForm::read(request, bounds).await;
            let mut form = form.map_err(|refused| match refused {
                UploadRefused::TooLarge => PageFailure::Invalid(format!(
                    "That is too much: at most {} files of {} each go with one message.",
                    bounds.files,
                    words::bytes(bounds.file_bytes)
                )),
                UploadRefused::Incomplete => {
                    PageFailure::Invalid("That form is not complete.".to_owned())
                }
            })?;
            let files = std::mem::take(&mut form.files);
            let given = form.field("csrf").unwrap_or_default();
            Act::<SayFields>::check_token(&viewer, given, for_program)?;
            let c = form.field("c").and_then(|c| c.parse().ok());
            let c = c.ok_or(PageFailure::Invalid(
                "That form is not complete.".to_owned(),
            ))?;
            let fields = SayFields {
                c,
                text: form.field("text").unwrap_or_default().to_owned(),
                once: form.field("once").map(str::to_owned),
            };
            let act = Act {
                form: fields,
                viewer,
                for_program,
            };
            (act, files)
        }
    };
    let said = ChatWords {
        person: person(&act.viewer)?,
        conversation: act.form.c,
        // As forms write ends of lines.
        text: act.form.text.replace("\r\n", "\n"),
        once: once(act.form.once.as_deref()),
        files,
    };
    chat(&state)?.say(said).await.map_err(PageFailure::from)?;
    Ok(done(&act, &format!("/chat?c={}#latest", act.form.c)))
}

/// What makes a form that is sent twice one message; one of our own where there is none that can be used.
fn once(given: Option<&str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let given = given.filter(|it| (8..=64).contains(&it.len()) && it.chars().all(is_plain));
    given.map_or_else(|| RunId::random().to_string(), str::to_owned)
}

#[derive(Debug, Deserialize)]
pub(crate) struct PressForm {
    c: i64,
    message: i64,
    data: String,
}

pub(crate) async fn press(
    State(state): State<SharedState>,
    act: Act<PressForm>,
) -> Result<Response, PageFailure> {
    let press = ChatPress {
        person: person(&act.viewer)?,
        conversation: act.form.c,
        message: act.form.message,
        data: act.form.data.clone(),
    };
    chat(&state)?.press(press).await?;
    Ok(done(&act, &format!("/chat?c={}#latest", act.form.c)))
}

#[derive(Debug, Deserialize)]
pub(crate) struct DeleteForm {
    c: i64,
    sure: Option<String>,
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    act: Act<DeleteForm>,
) -> Result<Response, PageFailure> {
    if act.form.sure.as_deref() != Some("yes") {
        return Err(PageFailure::Invalid("Say that you are sure.".to_owned()));
    }
    let (person, rows) = (person(&act.viewer)?, state.store.browser_chat());
    let found = rows.conversation(person.as_str(), act.form.c).await?;
    let key = chat(&state)?.key(&person, act.form.c);
    let (Some(_), Some(key)) = (found, key) else {
        return Err(PageFailure::NotFound(
            "There is no such conversation of yours.",
        ));
    };
    act.record(&state, "chat_deleted", key.as_str())?;
    // The sandbox first: while it stands, its conversation can be found.
    state.gateway.destroy(&key).await?;
    rows.forget(person.as_str(), act.form.c).await?;
    Ok(done(&act, "/chat"))
}

#[derive(Debug, Deserialize)]
pub(crate) struct FileQuery {
    id: i64,
}

/// A file, to be kept and not to be looked at: whatever is in it, no page is made of it.
pub(crate) async fn file(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<FileQuery>,
) -> Result<Response, PageFailure> {
    let person = person(&viewer)?;
    let rows = state.store.browser_chat();
    let found = rows.file(person.as_str(), query.id).await?;
    let (file, bytes) = found.ok_or(PageFailure::NotFound("There is no such file of yours."))?;
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, kind);
    let name = HeaderValue::from_str(&disposition(&file.name));
    let unnamed = HeaderValue::from_static("attachment");
    headers.insert(CONTENT_DISPOSITION, name.unwrap_or(unnamed));
    Ok(response)
}

fn disposition(name: &str) -> String {
    let mut text = "attachment; filename*=UTF-8''".to_owned();
    // Also what turns the direction of writing, so that a name ends as it seems to.
    for byte in words::visible(name).bytes() {
        match byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            true => text.push(char::from(byte)),
            false => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// Why something was not said.
#[derive(Debug)]
pub(crate) enum SayFailure {
    Act(ActRefused),
    Page(PageFailure),
}

impl From<ActRefused> for SayFailure {
    fn from(refused: ActRefused) -> Self {
        Self::Act(refused)
    }
}

impl From<PageFailure> for SayFailure {
    fn from(failure: PageFailure) -> Self {
        Self::Page(failure)
    }
}

impl IntoResponse for SayFailure {
    fn into_response(self) -> Response {
        match self {
            Self::Act(refused) => refused.into_response(),
            Self::Page(failure) => failure.into_response(),
        }
    }
}

impl From<ChatRefused> for PageFailure {
    fn from(refused: ChatRefused) -> Self {
        match (refused.is_passing, refused.is_other) {
            (true, _) => Self::Act(crate::ActFailed(refused.why)),
            (false, true) => Self::Conflict(refused.why),
            (false, false) => Self::Invalid(refused.why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_plain_letters_in_its_header() {
        assert_eq!(
            disposition("a \"b\"\r\nX: y\u{202e}.txt"),
            "attachment; filename*=UTF-8''a%20%22b%22%E2%90%8D%0AX%3A%20y%E2%9F%A6202E%E2%9F%A7.txt"
        );
    }

    #[test]
    fn a_form_without_a_usable_token_is_one_of_its_own() {
        assert_eq!(once(Some("abcdef-12345")), "abcdef-12345");
        for bad in [
            None,
            Some(""),
            Some("short"),
            Some("with a space"),
            Some("x\ny12345678"),
        ] {
            assert_ne!(once(bad), once(bad));
        }
    }
}
