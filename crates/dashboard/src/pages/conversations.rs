//! Every conversation, the latest first.

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_types::{ConversationKey, IncomingMessage, Timestamp};
use maud::html;
use serde::{Deserialize, Serialize};

use super::layout::{Page, code, conversation_link, empty, state_mark, time};
use super::usage::first_day;
use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::{DashboardState, SharedState};
use crate::words;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListQuery {
    #[serde(default)]
    pub(crate) q: String,
    #[serde(default)]
    pub(crate) skip: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct ConversationsPage {
    pub(crate) now: Timestamp,
    pub(crate) conversations: Vec<ConversationRow>,
    /// Where the next page begins.
    pub(crate) more: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ConversationRow {
    pub(crate) conversation: ConversationKey,
    pub(crate) account: String,
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) state: String,
    pub(crate) last_at: Timestamp,
    pub(crate) messages: i64,
    pub(crate) open: i64,
    /// In the last thirty days.
    pub(crate) tokens: i64,
    pub(crate) nanodollars: i64,
}

/// What somebody said, as it may be shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageWords {
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) files: Vec<String>,
}

impl MessageWords {
    /// From what the platform's crate wrote down.
    pub(crate) fn of(state: &DashboardState, payload: &str) -> Self {
        let Ok(said) = serde_json::from_str::<IncomingMessage>(payload) else {
            return Self {
                text: "(what was said cannot be read)".to_owned(),
                ..Self::default()
            };
        };
        let who = match said.sender.display.trim() {
            "" => said.sender.id.to_string(),
            display => display.to_owned(),
        };
        let files = said.attachments.iter().map(|file| {
            let name = file.name.as_deref().unwrap_or("a file without a name");
            state.shown(name)
        });
        Self {
            who: words::beginning(&state.shown(&who), 60),
            files: files.collect(),
            text: state.shown(&said.text),
        }
    }
}

const EACH_PAGE: u32 = 100;
const LONGEST_SEARCH: usize = 200;

pub(crate) async fn load(
    state: &DashboardState,
    query: &ListQuery,
) -> Result<ConversationsPage, PageFailure> {
    let now = state.now();
    let search: String = query.q.trim().chars().take(LONGEST_SEARCH).collect();
    let from = first_day(now, 30);
    let rows = (EACH_PAGE + 1, query.skip);
    let mut listed = state.activity.conversations(&search, &from, rows).await?;
    let has_more = listed.len() > EACH_PAGE as usize;
    listed.truncate(EACH_PAGE as usize);
    let rows = listed.into_iter().map(|one| {
        let said = MessageWords::of(state, &one.payload);
        ConversationRow {
            who: said.who,
            text: words::beginning(&said.text, 140),
            conversation: one.conversation,
            account: one.account,
            state: one.state,
            last_at: one.last_at,
            messages: one.messages,
            open: one.open,
            tokens: one.tokens,
            nanodollars: one.nanodollars,
        }
    });
    Ok(ConversationsPage {
        now,
        conversations: rows.collect(),
        more: has_more.then_some(query.skip.saturating_add(EACH_PAGE)),
    })
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<ListQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        form.search method="get" action="/conversations" role="search" {
            label.unseen for="q" { "Search by key, person or words" }
            input #q type="search" name="q" value=(query.q) placeholder="Key, person or words";
            button type="submit" { "Search" }
        }
        section #list data-live {
            @if page.conversations.is_empty() && query.q.is_empty() {
                (empty("Nobody has written yet.", &html! {
                    "Write to the bot. If it does not answer, " (code("hermetic doctor --chats"))
                    " says what is missing; strangers wait on " a href="/people" { "People" } "."
                }))
            } @else if page.conversations.is_empty() {
                (empty("No conversation holds these words.", &html! {
                    a href="/conversations" { "Show all" }
                }))
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Conversations" {
                    table {
                        thead {
                            tr {
                                th { "Conversation" } th { "Who" } th { "Last message" } th { "State" }
                                th.number { "Messages" } th.number { "Tokens, 30 d" }
                                th.number { "Cost, 30 d" } th.number { "Last" }
                            }
                        }
                        tbody {
                            @for row in &page.conversations {
                                tr data-key=(row.conversation) {
                                    th scope="row" { (conversation_link(&row.conversation)) }
                                    td { (row.who) }
                                    td.text { (row.text) }
                                    td { (state_mark(&row.state)) }
                                    td.number { (words::count(row.messages)) }
                                    td.number { (words::count(row.tokens)) }
                                    td.number { (words::money(row.nanodollars)) }
                                    td.number { (time(page.now, row.last_at)) }
                                }
                            }
                        }
                    }
                }
                @if let Some(more) = page.more {
                    p {
                        a href={ "/conversations?" (words::query(&[("q", &query.q), ("skip", &more.to_string())])) } {
                            "Earlier conversations"
                        }
                    }
                }
            }
        }
    };
    Ok(Page {
        title: "Conversations",
        path: "/conversations",
        viewer: &viewer,
        topics: "activity",
        waiting,
        body,
    }
    .into_response())
}
