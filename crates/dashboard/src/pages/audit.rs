//! The record of what was decided and run: searched, verified, taken along.

use std::io::Read as _;

use axum::body::Body;
use axum::extract::{Extension, Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use hermetic_audit::{AuditRecord, ProofStrength, RecordPage, page_before, walk_at};
use hermetic_types::Timestamp;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::layout::{Page, empty, time};
use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::{DashboardState, SharedState};
use crate::words;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct AuditQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    kind: String,
    /// Where the records end that are looked at.
    before: Option<u64>,
}

impl AuditQuery {
    /// What makes the page old. Pages of the past do not change, and a search reads megabytes, which it would do
    /// with everything that happens.
    fn topics(&self) -> &'static str {
        let is_search = !self.q.trim().is_empty() || !self.kind.is_empty();
        match is_search || self.before.is_some() {
            true => "",
            false => "activity egress",
        }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct AuditPage {
    pub(crate) now: Timestamp,
    pub(crate) records: Vec<RecordRow>,
    /// Lines that are no records; `verify` says whether a crash explains them.
    pub(crate) unreadable: usize,
    pub(crate) before: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct RecordRow {
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
    pub(crate) event: Map<String, Value>,
}

/// What a walk through the whole record found.
#[derive(Debug, Serialize)]
pub(crate) struct VerifyReport {
    pub(crate) holds: bool,
    pub(crate) records: u64,
    pub(crate) head: Option<String>,
    pub(crate) proof: Option<ProofStrength>,
    /// The first place where it does not hold.
    pub(crate) flaw: Option<String>,
}

const EACH_PAGE: usize = 100;

/// How much of the record is read for one page: some ten thousand records.
const MOST_BYTES: u64 = 8 << 20;

/// Pieces in which the record is handed out.
const PIECE: usize = 64 << 10;

const KINDS: [&str; 12] = [
    "access",
    "pairing",
    "command",
    "asked",
    "answered",
    "rule",
    "dashboard",
    "egress",
    "witnessed",
    "sealed",
    "resumed",
    "mended",
];

pub(crate) async fn load(
    state: &DashboardState,
    query: &AuditQuery,
) -> Result<AuditPage, PageFailure> {
    let path = state.audit.record().to_owned();
    let (kind, before) = (query.kind.clone(), query.before);
    let search = query
        .q
        .trim()
        .chars()
        .take(200)
        .collect::<String>()
        .to_lowercase();
    let _turn = state
        .searches
        .acquire()
        .await
        .map_err(|_| PageFailure::Busy("The record cannot be read at this moment."))?;
    let read = tokio::task::spawn_blocking(move || {
        page_before(&path, before, EACH_PAGE, MOST_BYTES, |record| {
            is_wanted(record, &kind, &search)
        })
    });
    let page: RecordPage = joined(read.await)??;
    let records = page.records.into_iter().map(|record| RecordRow {
        seq: record.seq,
        at: record.at,
        event: record.event,
    });
    Ok(AuditPage {
        now: state.now(),
        records: records.collect(),
        unreadable: page.unreadable,
        before: page.before,
    })
}

fn is_wanted(record: &AuditRecord, kind: &str, search: &str) -> bool {
    let is_kind = kind.is_empty() || record.event.get("kind").and_then(Value::as_str) == Some(kind);
    let holds = |value: &Value| match value {
        Value::String(text) => text.to_lowercase().contains(search),
        other => other.to_string().to_lowercase().contains(search),
    };
    is_kind && (search.is_empty() || record.event.values().any(holds))
}

pub(crate) async fn verified(state: &DashboardState) -> Result<VerifyReport, PageFailure> {
    let Ok(_place) = state.walks.try_acquire() else {
        return Err(PageFailure::Busy(
            "The record is being verified for somebody else. Try again in a moment.",
        ));
    };
    let places = state.audit.clone();
    let walked = tokio::task::spawn_blocking(move || {
        let mut walk = walk_at(&places)?;
        let mut seen = 0;
        for record in walk.by_ref() {
            match record {
                Ok(record) => seen = record.seq,
                Err(error) => return Ok((seen, Err(error))),
            }
        }
        Ok((seen, Ok(walk.report().clone())))
    });
    let walked: Result<_, hermetic_audit::WalkError> = joined(walked.await)?;
    let failed = |records, flaw: String| VerifyReport {
        holds: false,
        records,
        head: None,
        proof: None,
        flaw: Some(flaw),
    };
    Ok(match walked {
        Err(error) => failed(0, error.to_string()),
        Ok((seen, Err(error))) => failed(seen, error.to_string()),
        Ok((_, Ok(report))) => VerifyReport {
            holds: true,
            records: report.records,
            head: report.head.map(|head| format!("{head}")),
            proof: Some(report.proof),
            flaw: None,
        },
    })
}

/// A task of ours that panicked is a mistake in this program; the page says that it failed.
pub(super) fn joined<T>(task: Result<T, tokio::task::JoinError>) -> Result<T, PageFailure> {
    task.map_err(|error| PageFailure::Read(std::io::Error::other(error)))
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        form.search method="get" action="/audit" role="search" {
            label.unseen for="q" { "Search the record" }
            input #q type="search" name="q" value=(query.q) placeholder="Person, command, host, question";
            label.unseen for="kind" { "Kind" }
            select #kind name="kind" {
                option value="" { "Every kind" }
                @for kind in KINDS { option value=(kind) selected[kind == query.kind] { (kind) } }
            }
            button type="submit" { "Search" }
            span.grow {}
            a.button href="/audit/verify" { "Verify the chain" }
            a.button href="/audit/export" { "Export" }
        }
        @if page.unreadable > 0 {
            p.note.fair { (page.unreadable) " lines here are no records. Verifying says whether a crash explains them." }
        }
        section #records data-live {
            @if page.records.is_empty() {
                (empty("No record fits.", &html! {
                    @if page.before.is_some() { "Older ones may." } @else { a href="/audit" { "Show all" } }
                }))
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Records" {
                    table {
                        thead { tr { th.number { "No." } th.number { "When" } th { "Kind" } th { "What" } } }
                        tbody {
                            @for record in &page.records {
                                tr data-key=(record.seq) {
                                    td.number { (record.seq) }
                                    td.number { (time(page.now, record.at)) }
                                    td { (record.event.get("kind").and_then(Value::as_str).unwrap_or("?")) }
                                    td.text { (fields(&record.event)) }
                                }
                            }
                        }
                    }
                }
            }
            @if let Some(before) = page.before {
                p {
                    a href={ "/audit?" (words::query(&[("q", &query.q), ("kind", &query.kind), ("before", &before.to_string())])) } {
                        "Older records"
                    }
                }
            }
        }
    };
    Ok(Page {
        title: "Audit",
        path: "/audit",
        viewer: &viewer,
        topics: query.topics(),
        waiting,
        body,
    }
    .into_response())
}

fn fields(event: &Map<String, Value>) -> Markup {
    let told = event
        .iter()
        .filter(|(name, value)| *name != "kind" && !value.is_null() && value.as_str() != Some(""));
    html! {
        dl.inline {
            @for (name, value) in told {
                div {
                    dt { (name) }
                    dd {
                        @match value {
                            Value::String(text) => { (words::visible(text)) }
                            other => { (other) }
                        }
                    }
                }
            }
        }
    }
}

pub(crate) async fn verify_page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
) -> Result<Response, PageFailure> {
    let report = verified(&state).await?;
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        section class={ "panel seal " @if report.holds { "good" } @else { "bad" } } {
            @if report.holds {
                h2 { "The chain holds" }
                p { (words::count(i64::try_from(report.records).unwrap_or(i64::MAX))) " records, each with the hash of the one before." }
                p { (proven(report.proof)) }
                @if let Some(head) = &report.head { p.dim { "It ends at " code { (head) } } }
            } @else {
                h2 { "The chain does not hold" }
                p.note.bad role="alert" { (report.flaw.as_deref().unwrap_or_default()) }
                p { "Up to there " (report.records) " records hold. " code { "hermetic audit verify" } " says more." }
            }
            p { a href="/audit" { "To the records" } }
        }
    };
    Ok(Page {
        title: "Verified",
        path: "/audit",
        viewer: &viewer,
        topics: "",
        waiting,
        body,
    }
    .into_response())
}

fn proven(proof: Option<ProofStrength>) -> &'static str {
    match proof {
        Some(ProofStrength::Whole) => {
            "Every record is sealed by the key, and none was cut off at the end."
        }
        Some(ProofStrength::OldBeginning) => {
            "The first records are older than the key that seals the others."
        }
        Some(ProofStrength::Unsealed) => "No record carries a seal.",
        Some(ProofStrength::NoKey) | None => {
            "The key is not here, so a record that was written anew as a whole would look the same."
        }
        Some(ProofStrength::NoNote) => {
            "Nothing notes where the chain stood, so its end may have been cut off."
        }
    }
}

/// The whole record, as it is at this moment.
pub(crate) async fn export(State(state): State<SharedState>) -> Result<Response, PageFailure> {
    let path = state.audit.record().to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        // As long as it was when it was asked for: it may grow for as long as it is read.
        Ok::<_, std::io::Error>(file.take(length))
    });
    let file = joined(opened.await)??;
    let pieces = stream::try_unfold(file, |mut file| async move {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let count = file.read(&mut piece)?;
            piece.truncate(count);
            Ok::<_, std::io::Error>((Bytes::from(piece), file))
        });
        let (piece, file) = read.await.map_err(std::io::Error::other)??;
        Ok::<_, std::io::Error>((!piece.is_empty()).then_some((piece, file)))
    });
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CONTENT_DISPOSITION, "attachment; filename=\"audit.jsonl\""),
    ];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_not_repeated_with_everything_that_happens() {
        let query = |q: &str, kind: &str, before| AuditQuery {
            q: q.to_owned(),
            kind: kind.to_owned(),
            before,
        };
        assert_eq!(query(" ", "", None).topics(), "activity egress");
        assert_eq!(query("rm", "", None).topics(), "");
        assert_eq!(query("", "rule", None).topics(), "");
        assert_eq!(query("", "", Some(7)).topics(), "");
    }
}
