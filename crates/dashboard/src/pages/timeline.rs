//! One conversation, from message to reply: what was said, run, asked, reached and sent, each with its time.

mod acts;
mod entry_view;
mod load;

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_types::{ConversationKey, Timestamp};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, csrf_field, empty, short_key, state_mark, time};
use super::running_output::OutputTail;
use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::SharedState;
use crate::words;

use self::entry_view::shown;

pub(crate) use self::acts::{ConversationForm, confirmed, destroy, reset, stop};
pub(crate) use self::load::load;

#[derive(Debug, Deserialize)]
pub(crate) struct TimelineQuery {
    pub(crate) key: String,
    /// Only what came before this message.
    pub(crate) before: Option<i64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TimelinePage {
    pub(crate) now: Timestamp,
    pub(crate) conversation: ConversationKey,
    pub(crate) sandbox: Option<SandboxLife>,
    pub(crate) tokens: i64,
    pub(crate) nanodollars: i64,
    /// In the order in which it happened.
    pub(crate) entries: Vec<TimelineEntry>,
    /// The message before which there is more.
    pub(crate) before: Option<i64>,
    pub(crate) is_busy: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct SandboxLife {
    pub(crate) id: String,
    pub(crate) backend: String,
    pub(crate) state: String,
    pub(crate) named_at: Timestamp,
    pub(crate) touched_at: Timestamp,
    pub(crate) last_failure: Option<String>,
}

/// One thing that happened.
#[derive(Debug, Serialize)]
pub(crate) struct TimelineEntry {
    /// Stays the same while the entry grows, and is no other entry's.
    pub(crate) entry: String,
    pub(crate) at: Timestamp,
    #[serde(flatten)]
    pub(crate) event: TimelineEvent,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum TimelineEvent {
    Message {
        who: String,
        text: String,
        files: Vec<String>,
        state: String,
        note: Option<String>,
        took_ms: Option<u64>,
    },
    Tool {
        tool: String,
        arguments: String,
        result: Option<String>,
        /// Characters of the result that are not shown.
        more_chars: i64,
        took_ms: Option<u64>,
        /// The end of what it has written so far, while it runs.
        output: Option<OutputTail>,
    },
    Question {
        id: String,
        subject: String,
        what: String,
        asker: String,
        state: String,
        scope: Option<String>,
        by: Option<String>,
        via: Option<String>,
    },
    Reply {
        account: String,
        text: String,
        /// The names of the files that go with it.
        files: Vec<String>,
        state: String,
        note: Option<String>,
    },
    Connection {
        host: String,
        port: u16,
        verdict: String,
        why: Option<String>,
        rule: String,
        bytes_up: u64,
        bytes_down: u64,
    },
    Sandbox {
        sandbox: String,
        backend: String,
        /// `named`, `ready`, `stopped`, `resumed`, `given`, `set_aside`, `taken_back`, `failed` or `gone`.
        what: String,
        note: Option<String>,
    },
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<TimelineQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let title = words::visible(&short_key(&page.conversation));
    let key = page.conversation.as_str();
    let body = html! {
        (facts(&viewer, &page))
        section #timeline data-live aria-label="What happened" {
            @if let Some(before) = page.before {
                p {
                    a href={ "/conversation?" (words::query(&[("key", key), ("before", &before.to_string())])) } {
                        "Earlier messages"
                    }
                }
            }
            @if page.entries.is_empty() {
                (empty("Nothing is remembered of what was said.", &html! { "The next message appears here." }))
            }
            ol.timeline {
                @for entry in &page.entries { (shown(page.now, page.is_busy, entry)) }
            }
        }
    };
    Ok(Page {
        title: &title,
        path: "/conversations",
        viewer: &viewer,
        topics: "activity egress output",
        waiting,
        body,
    }
    .into_response())
}

/// What the conversation took, its sandbox, and what can be done to it.
fn facts(viewer: &Viewer, page: &TimelinePage) -> Markup {
    let key = page.conversation.as_str();
    html! {
        section.panel #facts data-live {
            dl.facts {
                div { dt { "Key" } dd.key { (words::visible(key)) } }
                div { dt { "Tokens" } dd.number { (words::count(page.tokens)) } }
                div { dt { "Cost" } dd.number { (words::money(page.nanodollars)) } }
                div {
                    dt { "Network" }
                    dd { a href={ "/egress?" (words::query(&[("key", key)])) } { "its connections" } }
                }
                @match &page.sandbox {
                    Some(sandbox) => {
                        div {
                            dt { "Sandbox" }
                            dd {
                                (state_mark(&sandbox.state)) " " (sandbox.backend) " "
                                a href={ "/sandbox?" (words::query(&[("id", &sandbox.id)])) } { "live use" }
                            }
                        }
                        div { dt { "Used" } dd { (time(page.now, sandbox.touched_at)) } }
                        @if let Some(why) = &sandbox.last_failure {
                            div { dt { "Trouble" } dd { (why) } }
                        }
                    }
                    None => { div { dt { "Sandbox" } dd { "none" } } }
                }
            }
            @if viewer.may_act() { (controls(viewer, key, page.is_busy)) }
        }
    }
}

fn controls(viewer: &Viewer, key: &str, is_busy: bool) -> Markup {
    let form = |path: &str, inside: Markup| {
        html! {
            form method="post" action=(path) {
                (csrf_field(viewer))
                input type="hidden" name="key" value=(key);
                (inside)
            }
        }
    };
    html! {
        div.acts {
            (form("/conversation/stop", html! {
                button type="submit" disabled[!is_busy] { "Stop what runs" }
            }))
            details.act #reset-act {
                summary.button { "Start afresh…" }
                (form("/conversation/reset", html! {
                    p { "What was said in this conversation is kept as a session that people there can resume, \
                         and what was allowed is forgotten. Files in its sandbox stay." }
                    button.danger type="submit" name="sure" value="yes" { "Start afresh" }
                }))
            }
            details.act #destroy-act {
                summary.button { "Destroy…" }
                (form("/conversation/destroy", html! {
                    p { "The sandbox of this conversation goes with all files in it, and what was said is \
                         forgotten. Nothing of it comes back." }
                    button.danger type="submit" name="sure" value="yes" { "Destroy sandbox and files" }
                }))
            }
        }
    }
}
