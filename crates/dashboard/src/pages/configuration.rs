//! Every value with where it came from. Secrets are never here to begin with.

use std::sync::Arc;

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, code};
use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::{DashboardState, SharedState};
use crate::{SettingRow, SettingsReport, words};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct SettingsQuery {
    #[serde(default)]
    q: String,
    /// Also what nobody wrote.
    all: Option<String>,
}

/// Aside, because files are read again for it.
pub(crate) async fn load(state: &DashboardState) -> SettingsReport {
    let gateway = Arc::clone(&state.gateway);
    let read = tokio::task::spawn_blocking(move || gateway.settings());
    read.await.unwrap_or_default()
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<SettingsQuery>,
) -> Result<Response, PageFailure> {
    let report = load(&state).await;
    let waiting = state.approvals.pending().await?.len();
    let search = query.q.trim().to_lowercase();
    let shows_all = query.all.is_some() || !search.is_empty();
    let is_wanted = |setting: &&SettingRow| {
        let found = setting.key.to_lowercase().contains(&search)
            || setting.about.to_lowercase().contains(&search);
        found && (shows_all || setting.is_written || setting.changed_to.is_some())
    };
    let shown: Vec<_> = report.settings.iter().filter(is_wanted).collect();
    let changed = report
        .settings
        .iter()
        .filter(|one| one.changed_to.is_some());
    let changed = changed.count();
    let body = html! {
        form.search method="get" action="/configuration" role="search" {
            label.unseen for="q" { "Search keys" }
            input #q type="search" name="q" value=(query.q) placeholder="Key or what it is about";
            button type="submit" { "Search" }
            @if shows_all { a.button href="/configuration" { "Only what is written" } }
            @else { a.button href="/configuration?all=1" { "Also the defaults" } }
        }
        @if let Some(why) = &report.unreadable {
            p.note.bad role="alert" { "The files cannot be read as they are now, and the next start would refuse them: " (why) }
        } @else if changed > 0 {
            p.note.fair { (changed) " values were changed since the start and count from the next one: " (code("hermetic gateway restart")) "." }
        }
        div.scroll tabindex="0" role="region" aria-label="Settings" {
            table {
                thead { tr { th { "Key" } th { "Value" } th { "From" } th { "About" } } }
                tbody {
                    @for setting in shown { (row(setting)) }
                }
            }
        }
    };
    Ok(Page {
        title: "Configuration",
        path: "/configuration",
        viewer: &viewer,
        topics: "",
        waiting,
        body,
    }
    .into_response())
}

fn row(setting: &SettingRow) -> Markup {
    html! {
        tr {
            th scope="row" { code { (setting.key) } }
            td.text {
                @match &setting.value {
                    Some(value) if !value.is_empty() => { code { (words::visible(value)) } }
                    _ => { span.dim { "not set" } }
                }
                @if let Some(next) = &setting.changed_to {
                    div.note.fair { "in the file now: " code { (words::visible(next)) } }
                }
                @if let Some(why) = &setting.no_effect { div.note.fair { "no effect: " (why) } }
            }
            td { span class=[(!setting.is_written).then_some("dim")] { (setting.origin) } }
            td.text.dim { (setting.about) }
        }
    }
}
