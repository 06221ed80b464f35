//! Every sandbox: where it is, how old, how idle, what it may use and what it uses.

use std::time::Duration;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use hermetic_sandbox::SandboxSpec;
use hermetic_store::RowOwner;
use hermetic_types::{ConversationKey, SandboxLimits, Timestamp};
use maud::html;
use serde::Serialize;

use super::chart::share;
use super::layout::{Page, conversation_link, csrf_field, empty, state_mark, time};
use super::timeline::ConversationForm;
use crate::access::Viewer;
use crate::acts::Act;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::{SandboxUse, words};

#[derive(Debug, Serialize)]
pub(crate) struct SandboxesPage {
    pub(crate) now: Timestamp,
    pub(crate) sandboxes: Vec<SandboxRow>,
}

#[derive(Debug, Serialize)]
pub(crate) struct SandboxRow {
    pub(crate) id: String,
    pub(crate) conversation: ConversationKey,
    pub(crate) backend: String,
    pub(crate) state: String,
    pub(crate) created_at: Timestamp,
    pub(crate) used_at: Timestamp,
    pub(crate) limits: Option<SandboxLimits>,
    pub(crate) uses: SandboxUse,
    pub(crate) failures: u32,
    pub(crate) last_failure: Option<String>,
    /// Kept for its files; another one is in use.
    pub(crate) is_set_aside: bool,
}

/// A page does not wait longer for what backends count.
const USE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) async fn load(state: &DashboardState) -> Result<SandboxesPage, PageFailure> {
    let entries = state.ledger.entries(RowOwner::AnyGateway).await?;
    let asked = entries
        .iter()
        .map(|entry| (entry.backend, entry.id.clone()));
    let uses = state.gateway.sandbox_use(asked.collect());
    let uses = tokio::time::timeout(USE_TIMEOUT, uses)
        .await
        .unwrap_or_default();
    let rows = entries.into_iter().rev().map(|entry| SandboxRow {
        limits: serde_json::from_str::<SandboxSpec>(&entry.spec)
            .ok()
            .map(|spec| spec.limits),
        uses: uses.get(&entry.id).copied().unwrap_or_default(),
        id: entry.id.to_string(),
        conversation: entry.conversation,
        backend: entry.backend.to_string(),
        state: entry.state.name().to_owned(),
        created_at: entry.named_at,
        used_at: entry.touched_at,
        failures: entry.failures,
        last_failure: entry.last_failure.as_deref().map(|why| state.shown(why)),
        is_set_aside: entry.set_aside_at.is_some(),
    });
    Ok(SandboxesPage {
        now: state.now(),
        sandboxes: rows.collect(),
    })
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
) -> Result<Response, PageFailure> {
    let page = load(&state).await?;
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        section #sandboxes data-live {
            @if page.sandboxes.is_empty() {
                (empty("There is no sandbox.", &html! {
                    "One is made when a conversation runs its first command, and goes when nobody used it \
                     for a while."
                }))
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Sandboxes" {
                    table {
                        thead {
                            tr {
                                th { "Conversation" } th { "Backend" } th { "State" }
                                th.number { "Age" } th.number { "Idle" } th.number { "CPU" }
                                th.number { "Memory" } th.number { "Processes" } th.number { "Disk" }
                                @if viewer.may_act() { th { span.unseen { "Acts" } } }
                            }
                        }
                        tbody {
                            @for row in &page.sandboxes {
                                tr data-key=(row.id) {
                                    th scope="row" {
                                        (conversation_link(&row.conversation))
                                        div.dim {
                                            (row.id)
                                            @if viewer.may_act() && row.state == "running" && !row.is_set_aside {
                                                " " a href={ "/terminal?" (words::query(&[("key", row.conversation.as_str())])) } { "Terminal" }
                                            }
                                        }
                                        @if let Some(why) = &row.last_failure {
                                            div.note.bad { (row.failures) " failures, the last: " (why) }
                                        }
                                    }
                                    td { (row.backend) }
                                    td {
                                        (state_mark(&row.state))
                                        @if row.is_set_aside { div.dim { "set aside" } }
                                    }
                                    td.number { (time(page.now, row.created_at)) }
                                    td.number { (time(page.now, row.used_at)) }
                                    @match &row.limits {
                                        Some(limits) => {
                                            td.number { (limits.cpu) }
                                            td.number { (words::bytes(limits.memory_bytes)) }
                                            td.number { (limits.pids) }
                                            td.number { (disk(row, limits)) }
                                        }
                                        None => { td.number { "–" } td.number { "–" } td.number { "–" } td.number { "–" } }
                                    }
                                    @if viewer.may_act() {
                                        td.acts {
                                            @if row.state == "running" && !row.is_set_aside {
                                                form method="post" action="/sandbox/stop" {
                                                    (csrf_field(&viewer))
                                                    input type="hidden" name="key" value=(row.conversation);
                                                    button type="submit" { "Stop" }
                                                }
                                            }
                                            a.button href={ "/conversation?" (words::query(&[("key", row.conversation.as_str())])) "#destroy-act" } { "Destroy…" }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
                p.dim {
                    "CPU, memory and processes are limits; of disk the use is shown where the backend counts \
                     it. Live use of the others is not measured yet."
                }
            }
        }
    };
    Ok(Page {
        title: "Sandboxes",
        path: "/sandboxes",
        viewer: &viewer,
        topics: "activity",
        waiting,
        body,
    }
    .into_response())
}

fn disk(row: &SandboxRow, limits: &SandboxLimits) -> maud::Markup {
    let most = words::bytes(limits.disk_bytes);
    html! {
        @match row.uses.disk_bytes {
            Some(used) => {
                (words::bytes(used)) " of " (most)
                (share(used, limits.disk_bytes, &format!("{} of {most} used", words::bytes(used))))
            }
            None => { "at most " (most) }
        }
    }
}

pub(crate) async fn stop(
    State(state): State<SharedState>,
    act: Act<ConversationForm>,
) -> Result<Response, PageFailure> {
    let key = act.form.conversation();
    if state.ledger.of(&key).await?.is_none() {
        return Err(PageFailure::NotFound("This conversation has no sandbox."));
    }
    act.record(&state, "stop_sandbox", key.as_str())?;
    state.gateway.stop_sandbox(&key).await?;
    Ok(done(&act, "/sandboxes"))
}
