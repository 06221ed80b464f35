//! Every conversation, the latest first.

use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_store::ConversationSummary;
use hermetic_types::{ConversationKey, IncomingMessage, Timestamp};
use maud::html;
use serde::{Deserialize, Serialize};

use super::audit::joined;
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
    /// How many were searched, where there are more of them.
    pub(crate) searched_only: Option<u32>,
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

/// Conversations that a search looks at, the latest ones: each of them is redacted for it.
const MOST_SEARCHED: u32 = 5000;
const EACH_BATCH: u32 = 500;

pub(crate) async fn load(
    state: &SharedState,
    query: &ListQuery,
) -> Result<ConversationsPage, PageFailure> {
    let now = state.now();
    let search: String = query.q.trim().chars().take(LONGEST_SEARCH).collect();
    let from = first_day(now, 30);
    let (mut listed, is_cut) = match search.is_empty() {
        true => {
            let span = (EACH_PAGE + 1, query.skip);
            let listed = state.activity.conversations(&from, span).await?;
            let rows = listed
                .into_iter()
                .map(|one| ReadConversation::of(state, one).row());
            (rows.collect(), false)
        }
        false => found(state, &search.to_lowercase(), &from, query.skip).await?,
    };
    let has_more = listed.len() > EACH_PAGE as usize;
    listed.truncate(EACH_PAGE as usize);
    Ok(ConversationsPage {
        now,
        conversations: listed,
        more: has_more.then_some(query.skip.saturating_add(EACH_PAGE)),
        searched_only: is_cut.then_some(MOST_SEARCHED),
    })
}

/// Those in which a search finds its words, and whether some were not looked at.
///
/// Only what may be shown is searched. If what is taken out could be found, whoever may look would read it letter
/// by letter; if it only cost another query, they would read it by the time that takes.
async fn found(
    state: &SharedState,
    search: &str,
    from_day: &str,
    skip: u32,
) -> Result<(Vec<ConversationRow>, bool), PageFailure> {
    let _turn = state.searches.acquire().await.map_err(|_| CLOSED)?;
    let wanted = skip.saturating_add(EACH_PAGE + 1) as usize;
    let (mut found, mut looked_at) = (Vec::new(), 0);
    while found.len() < wanted {
        if looked_at >= MOST_SEARCHED {
            return Ok((page_of(found, skip), true));
        }
        let batch = (EACH_BATCH, looked_at);
        let listed = state.activity.conversations(from_day, batch).await?;
        looked_at += EACH_BATCH;
        let is_last = listed.len() < EACH_BATCH as usize;
        let (reading, search) = (Arc::clone(state), search.to_owned());
        // Aside: taking secrets out of hundreds of messages is no work for a thread that others wait for.
        let fitting = tokio::task::spawn_blocking(move || {
            let read = listed
                .into_iter()
                .map(|one| ReadConversation::of(&reading, one));
            let fitting = read.filter(|one| one.holds(&search));
            fitting.map(ReadConversation::row).collect::<Vec<_>>()
        });
        found.extend(joined(fitting.await)?);
        if is_last {
            break;
        }
    }
    Ok((page_of(found, skip), false))
}

const CLOSED: PageFailure = PageFailure::Busy("Nothing can be searched at this moment.");

fn page_of(found: Vec<ConversationRow>, skip: u32) -> Vec<ConversationRow> {
    let rows = found.into_iter().skip(skip as usize);
    rows.take(EACH_PAGE as usize + 1).collect()
}

/// A conversation with its last message, as it may be shown.
struct ReadConversation {
    summary: ConversationSummary,
    said: MessageWords,
}

impl ReadConversation {
    fn of(state: &DashboardState, summary: ConversationSummary) -> Self {
        let said = MessageWords::of(state, &summary.payload);
        Self { summary, said }
    }

    /// Whether the key or what is shown of the last message holds these words, which are in lower case.
    fn holds(&self, search: &str) -> bool {
        let texts = [
            self.summary.conversation.as_str(),
            &self.said.who,
            &self.said.text,
        ];
        let files = self.said.files.iter().map(String::as_str);
        let mut texts = texts.into_iter().chain(files);
        texts.any(|text| text.to_lowercase().contains(search))
    }

    fn row(self) -> ConversationRow {
        let Self { summary, said } = self;
        ConversationRow {
            who: said.who,
            text: words::beginning(&said.text, 140),
            conversation: summary.conversation,
            account: summary.account,
            state: summary.state,
            last_at: summary.last_at,
            messages: summary.messages,
            open: summary.open,
            tokens: summary.tokens,
            nanodollars: summary.nanodollars,
        }
    }
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
            label.unseen for="q" { "Search by key, person or words of the last message" }
            input #q type="search" name="q" value=(query.q) placeholder="Key, person or last words";
            button type="submit" { "Search" }
        }
        section #list data-live {
            @if page.conversations.is_empty() && query.q.is_empty() {
                (empty("Nobody has written yet.", &html! {
                    "Write to the bot. If it does not answer, " (code("hermetic doctor --chats"))
                    " says what is missing; strangers wait on " a href="/people" { "People" } "."
                }))
            } @else if page.conversations.is_empty() {
                (empty("No conversation has this in its key, its person or its last message.", &html! {
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
            @if let Some(searched) = page.searched_only {
                p.dim { "The latest " (words::count(searched.into())) " conversations were searched." }
            }
        }
    };
    Ok(Page {
        title: "Conversations",
        path: "/conversations",
        viewer: &viewer,
        // A search reads thousands of messages, and would do so with everything that happens.
        topics: if query.q.trim().is_empty() {
            "activity"
        } else {
            ""
        },
        waiting,
        body,
    }
    .into_response())
}
