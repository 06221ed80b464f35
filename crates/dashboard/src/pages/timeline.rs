//! One conversation, from message to reply: what was said, run, asked, reached and sent, each with its time.

use axum::extract::{Extension, Query, State};
use axum::response::{IntoResponse, Response};
use hermetic_egress::EgressDecision;
use hermetic_store::{LedgerEntry, MessageRow};
use hermetic_types::{ConversationKey, Timestamp};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::conversations::MessageWords;
use super::layout::{Page, csrf_field, empty, short_key, state_mark, time};
use super::running_output::{OutputTail, tail};
use crate::access::Viewer;
use crate::acts::Act;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::words;

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
        what: String,
    },
}

const EACH_PAGE: u32 = 40;
const MOST_CONNECTIONS: usize = 200;

pub(crate) async fn load(
    state: &DashboardState,
    query: &TimelineQuery,
) -> Result<TimelinePage, PageFailure> {
    let key = ConversationKey::new(query.key.as_str());
    let activity = &state.activity;
    let before = query.before.map(MessageRow);
    let messages = activity.messages(&key, before, EACH_PAGE).await?;
    let (sandbox, spent) = tokio::join!(state.ledger.of(&key), activity.spent_in(&key));
    let (sandbox, spent) = (sandbox?, spent?);
    let Some((first, last)) = messages.last().zip(messages.first()) else {
        return match (&sandbox, before) {
            (None, None) => Err(PageFailure::NotFound("There is no such conversation.")),
            _ => Ok(empty_page(state, key, sandbox.as_ref())),
        };
    };
    let (span, since) = ((first.row, last.row), first.received_at);
    let (calls, replies, questions) = tokio::join!(
        activity.calls(&key, span),
        activity.deliveries(&key, span),
        activity.questions(Some(&key), 200),
    );
    let until = before.map(|_| last.ended_at.unwrap_or(last.received_at));
    let within = |at: Timestamp| at >= since && until.is_none_or(|until| at <= until);
    let mut entries = Vec::new();
    let is_busy = messages.iter().any(|one| one.ended_at.is_none());
    for message in messages.iter().rev() {
        let said = MessageWords::of(state, &message.payload);
        entries.push(TimelineEntry {
            at: message.received_at,
            event: TimelineEvent::Message {
                who: said.who,
                text: said.text,
                files: said.files,
                state: message.state.clone(),
                note: message.note.as_deref().map(|note| state.shown(note)),
                took_ms: took(message.received_at, message.ended_at),
            },
        });
    }
    let mut running = OutputTail::of(state, &key);
    for call in calls? {
        let result = call.result.as_deref().map(|text| state.shown(text));
        let shown = call
            .result
            .as_deref()
            .map_or(0, |text| text.chars().count());
        entries.push(TimelineEntry {
            at: call.begun_at,
            event: TimelineEvent::Tool {
                tool: state.shown(&call.tool),
                arguments: state.shown(&words::arguments(&call.arguments)),
                more_chars: call.result_chars - i64::try_from(shown).unwrap_or(i64::MAX),
                // One call runs at a time. One that a crash left open has no output here.
                output: match call.ended_at {
                    None => running.take(),
                    Some(_) => None,
                },
                result,
                took_ms: took(call.begun_at, call.ended_at),
            },
        });
    }
    for reply in replies? {
        entries.push(TimelineEntry {
            at: reply.sent_at.unwrap_or(reply.queued_at),
            event: TimelineEvent::Reply {
                account: reply.account,
                text: state.shown(&reply.text),
                state: reply.state,
                note: reply.note.as_deref().map(|note| state.shown(note)),
            },
        });
    }
    for question in questions?.into_iter().filter(|one| within(one.asked_at)) {
        entries.push(TimelineEntry {
            at: question.asked_at,
            event: TimelineEvent::Question {
                id: question.id.to_string(),
                subject: question.subject.name().to_owned(),
                what: words::visible(&question.what),
                asker: words::visible(&question.asker),
                state: question.state.name().to_owned(),
                scope: question.scope.map(|scope| scope.name().to_owned()),
                by: question.answered_by,
                via: question.via,
            },
        });
    }
    for found in state.egress.latest(Some(&key), MOST_CONNECTIONS) {
        if !within(found.at) || found.entry.verdict == EgressDecision::Opened {
            continue;
        }
        let (verdict, why) = match found.entry.verdict {
            EgressDecision::Opened => ("opened", None),
            EgressDecision::Closed { fault } => ("closed", fault),
            EgressDecision::Refused { reason } => ("refused", Some(reason)),
        };
        entries.push(TimelineEntry {
            at: found.at,
            event: TimelineEvent::Connection {
                host: words::visible(&found.entry.host),
                port: found.entry.port,
                verdict: verdict.to_owned(),
                why: why.map(|why| state.shown(&why)),
                rule: words::visible(&found.entry.rule),
                bytes_up: found.entry.bytes_up,
                bytes_down: found.entry.bytes_down,
            },
        });
    }
    if let Some(sandbox) = sandbox.as_ref().filter(|sandbox| within(sandbox.named_at)) {
        entries.push(TimelineEntry {
            at: sandbox.named_at,
            event: TimelineEvent::Sandbox {
                what: format!("sandbox {} on {}", sandbox.id, sandbox.backend),
            },
        });
    }
    // Stable: what happened in one moment stays in the order message, tool, reply.
    entries.sort_by_key(|entry| entry.at);
    Ok(TimelinePage {
        now: state.now(),
        sandbox: sandbox.as_ref().map(|entry| life(state, entry)),
        tokens: spent.tokens,
        nanodollars: spent.nanodollars,
        entries,
        before: (messages.len() >= EACH_PAGE as usize).then_some(first.row.0),
        conversation: key,
        is_busy,
    })
}

fn empty_page(
    state: &DashboardState,
    conversation: ConversationKey,
    sandbox: Option<&LedgerEntry>,
) -> TimelinePage {
    TimelinePage {
        now: state.now(),
        sandbox: sandbox.map(|entry| life(state, entry)),
        conversation,
        tokens: 0,
        nanodollars: 0,
        entries: Vec::new(),
        before: None,
        is_busy: false,
    }
}

fn life(state: &DashboardState, entry: &LedgerEntry) -> SandboxLife {
    SandboxLife {
        id: entry.id.to_string(),
        backend: entry.backend.to_string(),
        state: entry.state.name().to_owned(),
        named_at: entry.named_at,
        touched_at: entry.touched_at,
        last_failure: entry.last_failure.as_deref().map(|why| state.shown(why)),
    }
}

fn took(from: Timestamp, to: Option<Timestamp>) -> Option<u64> {
    let took = to?.since(from).as_millis();
    Some(u64::try_from(took).unwrap_or(u64::MAX))
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
        section.panel #facts data-live {
            dl.facts {
                div { dt { "Key" } dd.key { (words::visible(key)) } }
                div { dt { "Tokens" } dd.number { (words::count(page.tokens)) } }
                div { dt { "Cost" } dd.number { (words::money(page.nanodollars)) } }
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
            @if viewer.may_act() { (controls(&viewer, key, page.is_busy)) }
        }
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

fn shown(now: Timestamp, is_busy: bool, entry: &TimelineEntry) -> Markup {
    let (kind, body) = match &entry.event {
        TimelineEvent::Message {
            who,
            text,
            files,
            state,
            note,
            took_ms,
        } => (
            "message",
            html! {
                p.head { strong { (who) } " " (state_mark(state)) (lasted(*took_ms)) }
                div.words { (text) }
                @for file in files { p.dim { "file: " (file) } }
                @if let Some(note) = note { p.note.fair { (note) } }
            },
        ),
        TimelineEvent::Tool {
            tool,
            arguments,
            result,
            more_chars,
            took_ms,
            output,
        } => (
            "tool",
            html! {
                p.head {
                    strong { (tool) } " "
                    @if result.is_none() { (state_mark("working")) }
                    (lasted(*took_ms))
                }
                pre.scroll tabindex="0" { (arguments) }
                @if result.is_none() && is_busy { (tail(output.as_ref(), "long")) }
                @if let Some(result) = result {
                    details {
                        summary { "What came back" }
                        pre.scroll tabindex="0" { (result) }
                        @if *more_chars > 0 { p.dim { (words::count(*more_chars)) " more characters" } }
                    }
                }
            },
        ),
        TimelineEvent::Question {
            id,
            subject,
            what,
            asker,
            state,
            scope,
            by,
            via,
        } => (
            "question",
            html! {
                p.head {
                    "Question " a href={ "/approvals#" (id) } { (id) } " about a " (subject) " "
                    (state_mark(state))
                    @if let Some(scope) = scope { " " (scope) }
                }
                pre.scroll tabindex="0" { (what) }
                p.dim {
                    "for " (asker)
                    @if let Some(by) = by { ", answered by " (words::visible(by)) }
                    @if let Some(via) = via { " (" (via) ")" }
                }
            },
        ),
        TimelineEvent::Reply {
            account,
            text,
            state,
            note,
        } => (
            "reply",
            html! {
                p.head { "Reply on " (account) " " (state_mark(state)) }
                div.words { (text) }
                @if let Some(note) = note { p.note.fair { (note) } }
            },
        ),
        TimelineEvent::Connection {
            host,
            port,
            verdict,
            why,
            rule,
            bytes_up,
            bytes_down,
        } => (
            "connection",
            html! {
                p.head {
                    code { (host) ":" (port) } " " (state_mark(verdict))
                    @if *bytes_up + *bytes_down > 0 {
                        span.dim { " ↑ " (words::bytes(*bytes_up)) " ↓ " (words::bytes(*bytes_down)) }
                    }
                }
                p.dim { @if let Some(why) = why { (why) " · " } (rule) }
            },
        ),
        TimelineEvent::Sandbox { what } => ("sandbox", html! { p.head { (what) } }),
    };
    html! {
        li class={ "entry " (kind) } {
            div.when { (time(now, entry.at)) span.clock { (words::clock_time(entry.at)) } }
            div.what { (body) }
        }
    }
}

fn lasted(took_ms: Option<u64>) -> Markup {
    html! {
        @if let Some(took) = took_ms {
            span.dim { " " (words::span(std::time::Duration::from_millis(took))) }
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct ConversationForm {
    key: String,
    /// `yes` for what cannot be taken back.
    sure: Option<String>,
}

impl ConversationForm {
    pub(crate) fn conversation(&self) -> ConversationKey {
        ConversationKey::new(self.key.as_str())
    }

    fn confirmed(&self) -> Result<(), PageFailure> {
        match self.sure.as_deref() {
            Some("yes") => Ok(()),
            _ => Err(PageFailure::Invalid(
                "This cannot be taken back, so it has to be confirmed: send sure=yes along."
                    .to_owned(),
            )),
        }
    }

    fn page(&self) -> String {
        format!("/conversation?{}", words::query(&[("key", &self.key)]))
    }
}

/// Makes sure that an act has something to act on.
async fn known(state: &DashboardState, key: &ConversationKey) -> Result<(), PageFailure> {
    let said = state.activity.messages(key, None, 1).await?;
    if said.is_empty() && state.ledger.of(key).await?.is_none() {
        return Err(PageFailure::NotFound("There is no such conversation."));
    }
    Ok(())
}

pub(crate) async fn stop(
    State(state): State<SharedState>,
    act: Act<ConversationForm>,
) -> Result<Response, PageFailure> {
    let key = act.form.conversation();
    known(&state, &key).await?;
    act.record(&state, "stop", key.as_str())?;
    state.gateway.stop(&key).await?;
    Ok(done(&act, &act.form.page()))
}

pub(crate) async fn reset(
    State(state): State<SharedState>,
    act: Act<ConversationForm>,
) -> Result<Response, PageFailure> {
    act.form.confirmed()?;
    let key = act.form.conversation();
    known(&state, &key).await?;
    act.record(&state, "reset", key.as_str())?;
    state.gateway.reset(&key).await?;
    Ok(done(&act, &act.form.page()))
}

pub(crate) async fn destroy(
    State(state): State<SharedState>,
    act: Act<ConversationForm>,
) -> Result<Response, PageFailure> {
    act.form.confirmed()?;
    let key = act.form.conversation();
    known(&state, &key).await?;
    act.record(&state, "destroy", key.as_str())?;
    state.gateway.destroy(&key).await?;
    Ok(done(&act, &act.form.page()))
}
