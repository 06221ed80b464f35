//! Every sandbox: where it is, how old, how idle, what it may use and what it uses.

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use hermetic_sandbox::SandboxSpec;
use hermetic_store::{LedgerEntry, LedgerState, RowOwner};
use hermetic_types::{ConversationKey, SandboxLimits, Timestamp};
use maud::html;
use serde::Serialize;

use super::layout::{Page, conversation_link, csrf_field, empty, state_mark, time};
use super::sandbox_use::{UseKind, use_cell};
use super::timeline::ConversationForm;
use crate::access::Viewer;
use crate::acts::Act;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::use_sampler::UsePoint;
use crate::words;

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
    pub(crate) uses: CurrentUse,
    pub(crate) failures: u32,
    pub(crate) last_failure: Option<String>,
    /// Kept for its files; another one is in use.
    pub(crate) is_set_aside: bool,
    /// Whether an operator gets a shell in it.
    pub(crate) has_terminal: bool,
    /// The last minutes; left out of the list that programs get.
    #[serde(skip)]
    pub(crate) points: Vec<UsePoint>,
}

/// What a sandbox uses now; each absent where its backend does not tell.
#[derive(Debug, Default, Serialize)]
pub(crate) struct CurrentUse {
    /// Thousandths of a processor.
    pub(crate) cpu_millis: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) pids: Option<u64>,
    pub(crate) disk_bytes: Option<u64>,
    /// Whether there is anything but disk that its backend tells.
    pub(crate) is_told: bool,
}

pub(crate) async fn load(state: &SharedState) -> Result<SandboxesPage, PageFailure> {
    let entries = state.ledger.entries(RowOwner::AnyGateway).await?;
    if !entries.is_empty() {
        state.uses.want(state).await;
    }
    let now = state.now();
    let rows = entries
        .into_iter()
        .rev()
        .map(|entry| row(state, entry, now));
    Ok(SandboxesPage {
        now,
        sandboxes: rows.collect(),
    })
}

pub(crate) fn row(state: &DashboardState, entry: LedgerEntry, now: Timestamp) -> SandboxRow {
    let figures = state.uses.of(&entry.id, now);
    let latest = figures.now;
    let is_at_work = entry.state == LedgerState::Running && entry.set_aside_at.is_none();
    let opener = state.terminals.as_ref();
    let is_a_boundary = opener.is_some_and(|opener| opener.opens_on(entry.backend));
    SandboxRow {
        limits: serde_json::from_str::<SandboxSpec>(&entry.spec)
            .ok()
            .map(|spec| spec.limits),
        uses: CurrentUse {
            cpu_millis: latest.and_then(|point| point.cpu_millis),
            memory_bytes: latest.and_then(|point| point.memory_bytes),
            pids: latest.and_then(|point| point.pids),
            disk_bytes: figures.disk_bytes,
            is_told: latest.is_some(),
        },
        points: figures.points,
        id: entry.id.to_string(),
        conversation: entry.conversation,
        backend: entry.backend.to_string(),
        state: entry.state.name().to_owned(),
        created_at: entry.named_at,
        used_at: entry.touched_at,
        failures: entry.failures,
        last_failure: entry.last_failure.as_deref().map(|why| state.shown(why)),
        is_set_aside: entry.set_aside_at.is_some(),
        has_terminal: is_at_work && is_a_boundary,
    }
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
                    table.steady.cards {
                        thead {
                            tr {
                                th { "Conversation" } th { "State" }
                                th.number { "Age" } th.number { "Idle" } th.number { "CPU" }
                                th.number { "Memory" } th.number { "Processes" } th.number { "Disk" }
                                @if viewer.may_act() { th { span.unseen { "Acts" } } }
                            }
                        }
                        tbody {
                            @for row in &page.sandboxes { (table_row(&viewer, row, page.now)) }
                        }
                    }
                }
                p.dim {
                    "Each line is the last four minutes of one sandbox, drawn against its own peak; the bar \
                     below is what it uses of its limit. It is measured while somebody looks. Disk is counted \
                     twice a minute, where the backend counts it."
                }
            }
        }
    };
    Ok(Page {
        title: "Sandboxes",
        path: "/sandboxes",
        viewer: &viewer,
        topics: "activity use",
        waiting,
        body,
    }
    .into_response())
}

fn table_row(viewer: &Viewer, row: &SandboxRow, now: Timestamp) -> maud::Markup {
    html! {
        tr data-key=(row.id) {
            th scope="row" {
                (conversation_link(&row.conversation))
                div.dim {
                    a href={ "/sandbox?" (words::query(&[("id", &row.id)])) } { (row.id) }
                    @if viewer.may_act() && row.has_terminal {
                        " " a href={ "/terminal?" (words::query(&[("key", row.conversation.as_str())])) } { "Terminal" }
                    }
                }
                @if let Some(why) = &row.last_failure {
                    div.note.bad { (row.failures) " failures, the last: " (why) }
                }
            }
            td {
                (state_mark(&row.state))
                div.dim { "on " (row.backend) }
                @if row.is_set_aside { div.dim { "set aside" } }
            }
            td.number data-label="Age" { (time(now, row.created_at)) }
            td.number data-label="Idle" { (time(now, row.used_at)) }
            @for kind in UseKind::ALL { td.number.use data-label=(kind.name()) { (use_cell(row, kind, now)) } }
            @if viewer.may_act() { td.acts { (acts(viewer, row)) } }
        }
    }
}

/// What an operator does to a sandbox.
pub(crate) fn acts(viewer: &Viewer, row: &SandboxRow) -> maud::Markup {
    html! {
        (stop_form(viewer, row))
        // Asked about on its own page: a row of a table that moves is no place for a question.
        a.button href={ "/sandbox?" (words::query(&[("id", &row.id)])) "#destroy-act" } { "Destroy…" }
    }
}

pub(crate) fn stop_form(viewer: &Viewer, row: &SandboxRow) -> maud::Markup {
    html! {
        @if row.state == "running" && !row.is_set_aside {
            form method="post" action="/sandbox/stop" {
                (csrf_field(viewer))
                input type="hidden" name="key" value=(row.conversation);
                button type="submit" { "Stop" }
            }
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
