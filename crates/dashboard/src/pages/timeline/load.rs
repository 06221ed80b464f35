//! What happened, gathered from the rows of a conversation.

use hermetic_egress::EgressDecision;
use hermetic_store::{
    ApprovalRequest, CallActivity, DeliveryActivity, LedgerEntry, MessageActivity, MessageRow,
    SandboxEventRow,
};
use hermetic_types::{ConversationKey, Timestamp};
use serde::Deserialize;

use super::{SandboxLife, TimelineEntry, TimelineEvent, TimelinePage, TimelineQuery};
use crate::egress_feed::NumberedEntry;
use crate::failure::PageFailure;
use crate::pages::conversations::MessageWords;
use crate::pages::running_output::OutputTail;
use crate::state::DashboardState;
use crate::words;

const EACH_PAGE: u32 = 40;
const MOST_CONNECTIONS: usize = 200;
const MOST_SANDBOX_EVENTS: u32 = 200;

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
    let span = (first.row, last.row);
    let (calls, replies, questions, lives) = tokio::join!(
        activity.calls(&key, span),
        activity.deliveries(&key, span),
        activity.questions(Some(&key), 200),
        state
            .ledger
            .events(&key, first.received_at, MOST_SANDBOX_EVENTS),
    );
    let shown = ShownSpan {
        since: first.received_at,
        until: before.map(|_| last.ended_at.unwrap_or(last.received_at)),
    };
    let mut entries: Vec<_> = messages.iter().rev().map(|one| said(state, one)).collect();
    let mut running = OutputTail::of(state, &key);
    entries.extend(calls?.iter().map(|one| called(state, one, &mut running)));
    entries.extend(replies?.into_iter().map(|one| replied(state, one)));
    let asked_then = questions?
        .into_iter()
        .filter(|one| shown.holds(one.asked_at));
    entries.extend(asked_then.map(|one| asked(state, one)));
    let reached = state.egress.latest(Some(&key), MOST_CONNECTIONS);
    let reached = reached.into_iter().filter(|one| shown.holds(one.noted.at));
    entries.extend(reached.filter_map(|one| connected(state, &one)));
    let lives = lives?.into_iter().filter(|one| shown.holds(one.at));
    entries.extend(lives.map(|one| lived(state, &one)));
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
        is_busy: messages.iter().any(|one| one.ended_at.is_none()),
    })
}

/// The time that a page is about, by its messages.
#[derive(Clone, Copy)]
struct ShownSpan {
    since: Timestamp,
    /// Absent on the latest page, which goes on.
    until: Option<Timestamp>,
}

impl ShownSpan {
    fn holds(self, at: Timestamp) -> bool {
        at >= self.since && self.until.is_none_or(|until| at <= until)
    }
}

fn said(state: &DashboardState, message: &MessageActivity) -> TimelineEntry {
    let said = MessageWords::of(state, &message.payload);
    TimelineEntry {
        entry: format!("message-{}", message.row.0),
        at: message.received_at,
        event: TimelineEvent::Message {
            who: said.who,
            text: said.text,
            files: said.files,
            state: message.state.clone(),
            note: message.note.as_deref().map(|note| state.shown(note)),
            took_ms: took(message.received_at, message.ended_at),
        },
    }
}

/// A tool call. The first one that is open takes what is written at this moment.
fn called(
    state: &DashboardState,
    call: &CallActivity,
    running: &mut Option<OutputTail>,
) -> TimelineEntry {
    let read = call.result.as_deref();
    let read_chars = read.map_or(0, |text| text.chars().count());
    TimelineEntry {
        // Its name is the model's, which may use one twice, but not for one message.
        entry: words::visible(&format!("call-{}-{}", call.message.0, call.call)),
        at: call.begun_at,
        event: TimelineEvent::Tool {
            tool: state.shown(&call.tool),
            arguments: state.shown(&words::arguments(&call.arguments)),
            more_chars: call.result_chars - i64::try_from(read_chars).unwrap_or(i64::MAX),
            // One call runs at a time. One that a crash left open has no output here.
            output: match call.ended_at {
                None => running.take(),
                Some(_) => None,
            },
            result: read.map(|text| state.shown(text)),
            took_ms: took(call.begun_at, call.ended_at),
        },
    }
}

fn replied(state: &DashboardState, reply: DeliveryActivity) -> TimelineEntry {
    TimelineEntry {
        entry: format!("reply-{}", reply.row.0),
        at: reply.sent_at.unwrap_or(reply.queued_at),
        event: TimelineEvent::Reply {
            account: reply.account,
            text: state.shown(&reply.text),
            files: file_names(state, &reply.address),
            state: reply.state,
            note: reply.note.as_deref().map(|note| state.shown(note)),
        },
    }
}

/// The names of a reply's files, from what the gateway wrote down. Where they lie is the sandbox's matter.
fn file_names(state: &DashboardState, address: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct WithFiles {
        #[serde(default)]
        files: Vec<String>,
    }
    let written = serde_json::from_str::<WithFiles>(address);
    let files = written.map(|written| written.files).unwrap_or_default();
    let names = files
        .iter()
        .map(|path| path.rsplit('/').next().unwrap_or(path));
    names.map(|name| state.shown(name)).collect()
}

fn asked(state: &DashboardState, question: ApprovalRequest) -> TimelineEntry {
    TimelineEntry {
        entry: format!("question-{}", question.id),
        at: question.asked_at,
        event: TimelineEvent::Question {
            id: question.id.to_string(),
            subject: question.subject.name().to_owned(),
            what: state.shown(&question.what),
            asker: state.shown(&question.asker),
            state: question.state.name().to_owned(),
            scope: question.scope.map(|scope| scope.name().to_owned()),
            by: question.answered_by.map(|by| state.shown(&by)),
            via: question.via,
        },
    }
}

/// A connection that ended or was refused. An opened one is told of when it is closed.
fn connected(state: &DashboardState, found: &NumberedEntry) -> Option<TimelineEntry> {
    let entry = &found.noted.entry;
    let (verdict, why) = match &entry.verdict {
        EgressDecision::Opened => return None,
        EgressDecision::Closed { fault } => ("closed", fault.as_deref()),
        EgressDecision::Refused { reason } => ("refused", Some(reason.as_str())),
    };
    Some(TimelineEntry {
        entry: format!("connection-{}", found.row_key()),
        at: found.noted.at,
        event: TimelineEvent::Connection {
            // A sandbox chooses the names that it asks for, and may put anything into them.
            host: state.shown(&entry.host),
            port: entry.port,
            verdict: verdict.to_owned(),
            why: why.map(|why| state.shown(why)),
            rule: state.shown(&entry.rule),
            bytes_up: entry.bytes_up,
            bytes_down: entry.bytes_down,
        },
    })
}

fn lived(state: &DashboardState, happened: &SandboxEventRow) -> TimelineEntry {
    TimelineEntry {
        entry: format!("sandbox-{}", happened.id),
        at: happened.at,
        event: TimelineEvent::Sandbox {
            sandbox: happened.sandbox.to_string(),
            backend: happened.backend.to_string(),
            what: happened.what.name().to_owned(),
            note: happened.note.as_deref().map(|why| state.shown(why)),
        },
    }
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
