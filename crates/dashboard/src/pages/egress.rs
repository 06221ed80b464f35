//! Connections as they are decided, and the rules that decide them.

use std::collections::BTreeMap;

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_audit::{AuditEvent, RuleChange};
use hermetic_egress::{ConversationScope, EgressDecision, RuleEffect, WrittenRule};
use hermetic_store::{ApprovalRequest, StoredSubject};
use hermetic_types::{ConversationKey, Timestamp};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::layout::{Page, conversation_link, csrf_field, empty, state_mark, time};
use crate::access::Viewer;
use crate::acts::Act;
use crate::egress_feed::NumberedEntry;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::words;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct EgressQuery {
    /// Only of this conversation.
    pub(crate) key: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct EgressPage {
    pub(crate) now: Timestamp,
    pub(crate) mode: String,
    pub(crate) reach: String,
    pub(crate) hosts: Vec<HostRow>,
    /// Questions about hosts that a person has not answered; their connections wait.
    pub(crate) asked: Vec<ApprovalRequest>,
    /// The latest first.
    pub(crate) connections: Vec<NumberedEntry>,
    /// As they stand in the file.
    pub(crate) rules: Vec<String>,
    /// Why the file cannot be understood; then nothing leaves.
    pub(crate) broken: Option<String>,
}

/// What happened with one host.
#[derive(Debug, Serialize)]
pub(crate) struct HostRow {
    pub(crate) host: String,
    pub(crate) opened: u64,
    pub(crate) refused: u64,
    pub(crate) bytes_up: u64,
    pub(crate) bytes_down: u64,
    pub(crate) last_at: Timestamp,
}

const MOST_SHOWN: usize = 200;
const MOST_HOSTS: usize = 50;

pub(crate) async fn load(
    state: &SharedState,
    query: &EgressQuery,
) -> Result<EgressPage, PageFailure> {
    let key = query.key.as_deref().map(ConversationKey::new);
    let mut connections = state.egress.latest(key.as_ref(), usize::MAX);
    let mut hosts = by_host(&connections);
    for host in &mut hosts {
        host.host = state.shown(&host.host);
    }
    connections.retain(|one| one.noted.entry.verdict != EgressDecision::Opened);
    connections.truncate(MOST_SHOWN);
    for one in &mut connections {
        show(state, one);
    }
    let seal = state.seal().await;
    let mut asked = state.approvals.pending().await?;
    asked.retain(|one| {
        let is_meant = key.as_ref().is_none_or(|key| one.conversation == *key);
        one.subject == StoredSubject::Host && is_meant
    });
    let (rules, broken) = match state.rules.read() {
        Ok(rules) => (rules.iter().map(ToString::to_string).collect(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Ok(EgressPage {
        now: state.now(),
        mode: seal.egress_mode,
        reach: seal.egress,
        hosts,
        asked,
        connections,
        rules,
        broken,
    })
}

/// Makes of a connection what may be shown. A sandbox chooses the names that it asks for, and a name holds whatever
/// it puts there.
fn show(state: &DashboardState, connection: &mut NumberedEntry) {
    let entry = &mut connection.noted.entry;
    entry.host = state.shown(&entry.host);
    entry.rule = state.shown(&entry.rule);
    match &mut entry.verdict {
        EgressDecision::Opened => {}
        EgressDecision::Closed { fault } => *fault = fault.as_deref().map(|why| state.shown(why)),
        EgressDecision::Refused { reason } => *reason = state.shown(reason),
    }
}

fn by_host(connections: &[NumberedEntry]) -> Vec<HostRow> {
    let mut hosts: BTreeMap<String, HostRow> = BTreeMap::new();
    for one in connections.iter().map(|one| &one.noted) {
        let name = format!("{}:{}", one.entry.host, one.entry.port);
        let row = hosts.entry(name.clone()).or_insert(HostRow {
            host: name,
            opened: 0,
            refused: 0,
            bytes_up: 0,
            bytes_down: 0,
            last_at: one.at,
        });
        match one.entry.verdict {
            EgressDecision::Opened => row.opened += 1,
            EgressDecision::Refused { .. } => row.refused += 1,
            EgressDecision::Closed { .. } => {
                row.bytes_up = row.bytes_up.saturating_add(one.entry.bytes_up);
                row.bytes_down = row.bytes_down.saturating_add(one.entry.bytes_down);
            }
        }
    }
    let mut hosts: Vec<_> = hosts.into_values().collect();
    hosts.sort_by_key(|host| std::cmp::Reverse(host.last_at));
    hosts.truncate(MOST_HOSTS);
    hosts
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<EgressQuery>,
) -> Result<Response, PageFailure> {
    let page = load(&state, &query).await?;
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        section.panel #reach data-live {
            dl.facts {
                div { dt { "Mode" } dd { (page.mode) } }
                div { dt { "Reach" } dd { (page.reach) } }
            }
            @if let Some(why) = &page.broken {
                p.note.bad role="alert" { "The rules cannot be read, so nothing leaves: " (why) }
            }
        }
        section #asked data-live aria-label="Connections that wait for an answer" {
            @if !page.asked.is_empty() {
                h2 { "Waits for an answer" }
                ul.rows {
                    @for question in &page.asked {
                        li data-key=(question.id) {
                            code.grow { (words::visible(&question.what)) }
                            (conversation_link(&question.conversation))
                            a.button href={ "/approvals#" (question.id) } { "Answer…" }
                        }
                    }
                }
            }
        }
        section #hosts data-live aria-labelledby="hosts-title" {
            h2 #hosts-title { "By host" }
            @if page.hosts.is_empty() {
                (empty("No connection was asked for.", &html! {
                    "When a command in a sandbox reaches for the network, it is seen here, allowed or refused."
                }))
            } @else {
                div.scroll tabindex="0" role="region" aria-labelledby="hosts-title" {
                    table {
                        thead {
                            tr {
                                th { "Host" } th.number { "Opened" } th.number { "Refused" }
                                th.number { "Sent" } th.number { "Received" } th.number { "Last" }
                                @if viewer.may_act() { th { span.unseen { "Acts" } } }
                            }
                        }
                        tbody {
                            @for host in &page.hosts {
                                tr data-key=(host.host) {
                                    th scope="row" { code { (host.host) } }
                                    td.number { (host.opened) }
                                    td.number { (host.refused) }
                                    td.number { (words::bytes(host.bytes_up)) }
                                    td.number { (words::bytes(host.bytes_down)) }
                                    td.number { (time(page.now, host.last_at)) }
                                    @if viewer.may_act() {
                                        td.acts {
                                            a.button href={ "/egress/rule?" (words::query(&[("host", &host.host)])) } { "Rule…" }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        section #tap data-live aria-labelledby="tap-title" {
            h2 #tap-title {
                "As it happens"
                @if query.key.is_some() { " " a.dim href="/egress" { "show all conversations" } }
            }
            @if page.connections.is_empty() { p.dim { "Nothing yet." } }
            @else { (tap(&page, &viewer)) }
        }
        section #rules data-live aria-labelledby="rules-title" {
            h2 #rules-title { "Rules that were added" }
            @if page.rules.is_empty() {
                p.dim { "None, beyond what the configuration says." }
            } @else {
                ul.rows {
                    @for rule in &page.rules {
                        li data-key=(rule) {
                            code.grow { (words::visible(rule)) }
                            @if viewer.may_act() {
                                form method="post" action="/egress/rule/remove" {
                                    (csrf_field(&viewer))
                                    input type="hidden" name="rule" value=(rule);
                                    button type="submit" { "Remove" }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok(Page {
        title: "Egress",
        path: "/egress",
        viewer: &viewer,
        topics: "egress activity",
        waiting,
        body,
    }
    .into_response())
}

fn tap(page: &EgressPage, viewer: &Viewer) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby="tap-title" {
            table {
                thead {
                    tr {
                        th.number { "When" } th { "Host" } th { "Verdict" } th { "Rule" }
                        th { "Conversation" } th.number { "Sent" } th.number { "Received" }
                        @if viewer.may_act() { th { span.unseen { "Acts" } } }
                    }
                }
                tbody {
                    @for (row, one) in page.connections.iter().map(|one| (one.row_key(), &one.noted)) {
                        @let host = format!("{}:{}", one.entry.host, one.entry.port);
                        tr data-key=(row) {
                            td.number { (time(page.now, one.at)) }
                            td { code { (host) } }
                            td.text {
                                @match &one.entry.verdict {
                                    EgressDecision::Opened => { (state_mark("opened")) }
                                    EgressDecision::Closed { fault } => {
                                        (state_mark("closed"))
                                        @if let Some(fault) = fault { div.dim { (fault) } }
                                    }
                                    EgressDecision::Refused { reason } => {
                                        (state_mark("refused")) div.dim { (reason) }
                                    }
                                }
                            }
                            td.text { (one.entry.rule) }
                            td { (conversation_link(&one.entry.conversation)) }
                            td.number { (words::bytes(one.entry.bytes_up)) }
                            td.number { (words::bytes(one.entry.bytes_down)) }
                            @if viewer.may_act() {
                                td.acts {
                                    a.button href={ "/egress/rule?" (words::query(&[("host", &host), ("key", one.entry.conversation.as_str())])) } { "Rule…" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct RuleQuery {
    host: String,
    key: Option<String>,
}

/// Shows what would be written, each line with the button that writes it.
pub(crate) async fn preview(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<RuleQuery>,
) -> Result<Response, PageFailure> {
    if !viewer.may_act() {
        return Err(PageFailure::Forbidden(
            "You may look here, and not write rules.",
        ));
    }
    let key = query.key.as_deref().map(ConversationKey::new);
    let mut lines = Vec::new();
    for effect in [RuleEffect::Allow, RuleEffect::Deny] {
        for scope in [key.as_ref(), None] {
            let line = written(effect, &query.host, scope)?;
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    let waiting = state.approvals.pending().await?.len();
    let body = html! {
        section.panel {
            p {
                "A rule is one line in " code { (state.rules.path().display()) }
                ". The gateway reads it at once; it can be removed on the page before this one."
            }
            ul.rows {
                @for line in &lines {
                    li {
                        code.grow { (words::visible(&line.to_string())) }
                        form method="post" action="/egress/rule" {
                            (csrf_field(&viewer))
                            input type="hidden" name="rule" value=(line);
                            button class=[(line.list == RuleEffect::Deny).then_some("danger")] type="submit" {
                                "Write " @if line.list == RuleEffect::Allow { "allow" } @else { "deny" }
                                @if line.scope.is_some() { " for this conversation" } @else { " for everybody" }
                            }
                        }
                    }
                }
            }
            p { a href="/egress" { "Write none" } }
        }
    };
    Ok(Page {
        title: "A rule for this host",
        path: "/egress",
        viewer: &viewer,
        topics: "",
        waiting,
        body,
    }
    .into_response())
}

fn written(
    effect: RuleEffect,
    host: &str,
    conversation: Option<&ConversationKey>,
) -> Result<WrittenRule, PageFailure> {
    let scope = conversation.map(ConversationScope::of);
    WrittenRule::new(effect, host, scope).map_err(|error| PageFailure::Invalid(error.to_string()))
}

#[derive(Debug, Deserialize)]
pub(crate) struct RuleForm {
    /// A line as it stands in the file.
    rule: String,
}

impl RuleForm {
    fn rule(&self) -> Result<WrittenRule, PageFailure> {
        let invalid = |why: String| PageFailure::Invalid(why);
        // One line, and nothing behind it.
        if self.rule.contains(['\n', '\r', '#']) {
            return Err(invalid("A rule is one line.".to_owned()));
        }
        let parsed =
            WrittenRule::parse_line(&self.rule).map_err(|error| invalid(error.to_string()))?;
        parsed.ok_or_else(|| invalid("That is no rule.".to_owned()))
    }
}

pub(crate) async fn write_rule(
    State(state): State<SharedState>,
    act: Act<RuleForm>,
) -> Result<Response, PageFailure> {
    let rule = act.form.rule()?;
    // In the record first: a rule of which nothing is known there is not written.
    note(&state, &act, RuleChange::Added, &rule)?;
    state.rules.add(&rule)?;
    Ok(done(&act, "/egress"))
}

pub(crate) async fn remove_rule(
    State(state): State<SharedState>,
    act: Act<RuleForm>,
) -> Result<Response, PageFailure> {
    let rule = act.form.rule()?;
    note(&state, &act, RuleChange::Removed, &rule)?;
    if !state.rules.forget(&rule.rule, rule.scope.as_ref())? {
        return Err(PageFailure::NotFound("There is no such rule any more."));
    }
    Ok(done(&act, "/egress"))
}

/// Rules have a kind of record of their own, which names who changed them.
fn note(
    state: &DashboardState,
    act: &Act<RuleForm>,
    change: RuleChange,
    rule: &WrittenRule,
) -> Result<(), PageFailure> {
    state.approvals.append(&AuditEvent::Rule {
        act: change,
        rule: state.approvals.words(&format!("egress: {rule}")),
        by: state.approvals.words(&act.viewer.who),
    })?;
    Ok(())
}
