//! One sandbox: what it uses, with its course, and what runs in it.

use std::time::Duration;

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_store::LedgerEntry;
use hermetic_types::{SandboxId, Timestamp};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, conversation_link, csrf_field, state_mark, time};
use super::sandbox_use::{UseKind, use_cell, why_not};
use super::sandboxes::{self, SandboxRow};
use super::timeline::confirmed;
use crate::access::Viewer;
use crate::acts::Act;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::use_sampler::UsePoint;
use crate::words;

#[derive(Debug, Deserialize)]
pub(crate) struct SandboxQuery {
    pub(crate) id: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct SandboxPage {
    pub(crate) now: Timestamp,
    pub(crate) sandbox: SandboxRow,
    /// The last four minutes, the latest last.
    pub(crate) points: Vec<UsePoint>,
    /// Absent where the backend cannot tell.
    pub(crate) processes: Option<Vec<ProcessRow>>,
}

/// One process inside.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessRow {
    pub(crate) pid: u64,
    /// Chosen by the process.
    pub(crate) name: String,
    pub(crate) cpu_ms: u64,
    pub(crate) memory_bytes: u64,
}

/// Of the processes those that used the most time are shown.
const MOST_PROCESSES: usize = 50;

async fn find(state: &DashboardState, id: &str) -> Result<LedgerEntry, PageFailure> {
    let found = match id.parse::<SandboxId>() {
        Ok(id) => state.ledger.find(&id).await?,
        Err(_) => None,
    };
    found.ok_or(PageFailure::NotFound("There is no such sandbox."))
}

pub(crate) async fn load(
    state: &SharedState,
    query: &SandboxQuery,
) -> Result<SandboxPage, PageFailure> {
    let entry = find(state, &query.id).await?;
    let (id, backend) = (entry.id.clone(), entry.backend);
    let processes = state.gateway.processes(backend, id, MOST_PROCESSES);
    let (processes, ()) = tokio::join!(processes, state.uses.want(state));
    let rows = processes.map(|processes| {
        let rows = processes.into_iter().map(|process| ProcessRow {
            pid: process.pid,
            name: state.shown(&words::beginning(&process.name, 60)),
            cpu_ms: u64::try_from(process.cpu_time.as_millis()).unwrap_or(u64::MAX),
            memory_bytes: process.memory_bytes,
        });
        rows.collect()
    });
    let now = state.now();
    let sandbox = sandboxes::row(state, entry, now);
    Ok(SandboxPage {
        now,
        points: sandbox.points.clone(),
        sandbox,
        processes: rows,
    })
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<SandboxQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let row = &page.sandbox;
    let body = html! {
        section.panel #facts data-live {
            dl.facts {
                div { dt { "Conversation" } dd { (conversation_link(&row.conversation)) } }
                div { dt { "Backend" } dd { (row.backend) } }
                div { dt { "State" } dd { (state_mark(&row.state)) } }
                div { dt { "Made" } dd { (time(page.now, row.created_at)) } }
                div { dt { "Used" } dd { (time(page.now, row.used_at)) } }
                div { dt { "Id" } dd.key { (row.id) } }
            }
            @if let Some(why) = &row.last_failure {
                p.note.bad { (row.failures) " failures, the last: " (why) }
            }
            @if viewer.may_act() { (acts(&viewer, row)) }
        }
        (uses(&page))
        (processes(&page))
    };
    Ok(Page {
        title: "Sandbox",
        path: "/sandboxes",
        viewer: &viewer,
        topics: "activity use",
        waiting,
        body,
    }
    .into_response())
}

fn acts(viewer: &Viewer, row: &SandboxRow) -> Markup {
    html! {
        div.acts {
            @if row.has_terminal {
                a.button href={ "/terminal?" (words::query(&[("key", row.conversation.as_str())])) } {
                    "Terminal"
                }
            }
            (sandboxes::stop_form(viewer, row))
            details.act #destroy-act {
                summary.button { "Destroy…" }
                form method="post" action="/sandbox/destroy" {
                    (csrf_field(viewer))
                    input type="hidden" name="id" value=(row.id);
                    @if row.is_set_aside {
                        p { "This sandbox was set aside for the files in it. They go with it and do not come \
                             back; the one that its conversation uses now stays." }
                    } @else if row.backend == "local" {
                        p { "Whatever runs there ends. Its files lie on this machine itself, and stay." }
                    } @else {
                        p { "Whatever runs in this sandbox ends, and all files in it go; they do not come back. \
                             What was said in its conversation stays, and the next command there is given a \
                             new sandbox." }
                    }
                    button.danger type="submit" name="sure" value="yes" { "Destroy sandbox and files" }
                }
            }
        }
    }
}

fn uses(page: &SandboxPage) -> Markup {
    let row = &page.sandbox;
    html! {
        section.panel #use data-live aria-labelledby="use-title" {
            h2 #use-title { "The last four minutes" }
            div.charts {
                @for kind in UseKind::ALL {
                    figure.use {
                        figcaption { (kind.name()) }
                        (use_cell(row, kind, page.now))
                    }
                }
            }
            @if row.state == "running" && !row.uses.is_told {
                p.dim { "Not measured: " (why_not(row, UseKind::Memory)) "." }
            }
        }
    }
}

fn processes(page: &SandboxPage) -> Markup {
    html! {
        section.panel #processes data-live aria-labelledby="processes-title" {
            h2 #processes-title { "Processes inside" }
            @match &page.processes {
                None if page.sandbox.state != "running" => p.dim { "Nothing runs in it." },
                None => p.dim {
                    "The " (page.sandbox.backend) " backend does not tell which processes run inside."
                },
                Some(rows) => {
                    div.scroll tabindex="0" role="region" aria-label="Processes" {
                        table.steady {
                            thead {
                                tr {
                                    th.number { "Number" } th { "Name" } th.number { "CPU time" }
                                    th.number { "Memory" }
                                }
                            }
                            tbody {
                                @for process in rows {
                                    tr data-key={ "p" (process.pid) } {
                                        td.number { (process.pid) }
                                        th.key scope="row" { (process.name) }
                                        td.number { (words::span(Duration::from_millis(process.cpu_ms))) }
                                        td.number { (words::bytes(process.memory_bytes)) }
                                    }
                                }
                            }
                        }
                    }
                    p.dim {
                        "A process chooses its name. Command lines are not read: they may hold secrets. "
                        "The first is Hermetic's own, through which commands are started."
                    }
                }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct DestroyForm {
    id: String,
    /// `yes`: it cannot be taken back.
    sure: Option<String>,
}

pub(crate) async fn destroy(
    State(state): State<SharedState>,
    act: Act<DestroyForm>,
) -> Result<Response, PageFailure> {
    confirmed(act.form.sure.as_deref())?;
    let entry = find(&state, &act.form.id).await?;
    let what = format!("{} of {}", entry.id, entry.conversation);
    act.record(&state, "destroy_sandbox", &what)?;
    state.gateway.destroy_sandbox(&entry).await?;
    Ok(done(&act, "/sandboxes"))
}
