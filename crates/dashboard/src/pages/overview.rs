//! Is it sealed, what is it doing, does it want something from me.

mod seal_view;

use std::time::Duration;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use hermetic_egress::EgressDecision;
use hermetic_store::{
    ApprovalRequest, DeliveryActivity, HourActivity, LedgerState, RowOwner, SERVING,
};
use hermetic_types::{ConversationKey, Timestamp};
use maud::{Markup, html};
use serde::Serialize;

use super::chart::bars;
use super::conversations::MessageWords;
use super::layout::{Page, code, conversation_link, empty, state_mark, time};
use super::running_output::{OutputTail, tail};
use crate::access::Viewer;
use crate::failure::PageFailure;
use crate::state::{DashboardState, SharedState};
use crate::{ConditionReport, EgressFeed, SealReport, words};

use self::seal_view::seal;

#[derive(Debug, Serialize)]
pub(crate) struct OverviewPage {
    pub(crate) now: Timestamp,
    pub(crate) seal: SealReport,
    pub(crate) condition: ConditionReport,
    /// Everybody who shares the store, where that may be several.
    pub(crate) gateways: Vec<GatewayRow>,
    pub(crate) running: Vec<RunningRow>,
    pub(crate) waiting: Vec<ApprovalRequest>,
    pub(crate) failures: Vec<FailureRow>,
    pub(crate) unsent: Vec<UnsentRow>,
    /// Replies that nobody tries to send any more.
    pub(crate) given_up: Vec<UnsentRow>,
    pub(crate) conversations: i64,
    pub(crate) sandboxes: SandboxCounts,
    /// The last day, hour by hour, the latest last.
    pub(crate) hours: Vec<HourActivity>,
    pub(crate) egress: EgressCounts,
}

/// One of the gateways of this installation.
#[derive(Debug, Serialize)]
pub(crate) struct GatewayRow {
    pub(crate) name: String,
    pub(crate) condition: &'static str,
    pub(crate) version: String,
    pub(crate) silent_seconds: u64,
}

/// A message that is worked on.
#[derive(Debug, Serialize)]
pub(crate) struct RunningRow {
    /// The number of the message.
    pub(crate) message: i64,
    pub(crate) conversation: ConversationKey,
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) state: String,
    pub(crate) since: Timestamp,
    /// The tool call that runs for it.
    pub(crate) tool: Option<String>,
    pub(crate) arguments: Option<String>,
    pub(crate) tool_since: Option<Timestamp>,
    /// The end of what it has written so far.
    pub(crate) output: Option<OutputTail>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FailureRow {
    /// The number of the message.
    pub(crate) message: i64,
    pub(crate) conversation: ConversationKey,
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) why: String,
    pub(crate) at: Timestamp,
}

/// A reply that has not left.
#[derive(Debug, Serialize)]
pub(crate) struct UnsentRow {
    pub(crate) reply: i64,
    /// Where it belongs to a message.
    pub(crate) conversation: Option<ConversationKey>,
    pub(crate) account: String,
    pub(crate) text: String,
    pub(crate) why: String,
    pub(crate) attempts: u32,
    pub(crate) since: Timestamp,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct SandboxCounts {
    pub(crate) running: i64,
    pub(crate) stopped: i64,
    pub(crate) other: i64,
    /// The most that ran at once in each hour of the last day, the latest last, as far as they were counted.
    pub(crate) running_by_hour: Vec<i64>,
}

/// Of the last day, as far as connections are remembered.
#[derive(Debug, Default, Serialize)]
pub(crate) struct EgressCounts {
    pub(crate) opened: usize,
    pub(crate) refused: usize,
    /// Refused connections of the last day, hour by hour, the latest last.
    pub(crate) refused_by_hour: Vec<i64>,
}

const MOST_RUNNING: u32 = 50;
const MOST_FAILURES: u32 = 5;
/// Lines of a running call's output; its conversation shows more.
const OVERVIEW_LINES: usize = 4;
const HOURS: i64 = 24;

pub(crate) async fn load(state: &SharedState) -> Result<OverviewPage, PageFailure> {
    let now = state.now();
    let since = now.minus(Duration::from_secs(3600 * HOURS.unsigned_abs()));
    let activity = &state.activity;
    let (seal, running, waiting, failures) = tokio::join!(
        state.seal(),
        activity.running(RowOwner::ThisGateway, MOST_RUNNING),
        state.approvals.pending(),
        activity.failures(MOST_FAILURES),
    );
    let (unsent, given_up, conversations, counts, hours) = tokio::join!(
        activity.unsent(MOST_FAILURES),
        activity.given_up(MOST_FAILURES),
        activity.count(),
        state.ledger.counts(RowOwner::AnyGateway),
        activity.hours(since),
    );
    let running = running?.into_iter().map(|turn| {
        let said = MessageWords::of(state, &turn.message.payload);
        let call = turn.call;
        let output = call
            .as_ref()
            .and_then(|_| OutputTail::of(state, &turn.message.conversation));
        RunningRow {
            message: turn.message.row.0,
            output: output.map(|tail| tail.last_lines(OVERVIEW_LINES)),
            conversation: turn.message.conversation,
            who: said.who,
            text: words::beginning(&said.text, 120),
            state: turn.message.state,
            since: turn.message.received_at,
            tool_since: call.as_ref().map(|call| call.begun_at),
            tool: call.as_ref().map(|call| state.shown(&call.tool)),
            arguments: call.map(|call| {
                words::beginning(&state.shown(&words::arguments(&call.arguments)), 200)
            }),
        }
    });
    let failures = failures?.into_iter().map(|failed| {
        let said = MessageWords::of(state, &failed.payload);
        FailureRow {
            message: failed.row.0,
            conversation: failed.conversation,
            who: said.who,
            text: words::beginning(&said.text, 80),
            why: state.shown(failed.note.as_deref().unwrap_or("no reason was noted")),
            at: failed.ended_at.unwrap_or(failed.received_at),
        }
    });
    let gateways = gateways(state).await?;
    let mut sandboxes = SandboxCounts::default();
    for (state, many) in counts? {
        match state {
            LedgerState::Running => sandboxes.running += many,
            LedgerState::Stopped => sandboxes.stopped += many,
            _ => sandboxes.other += many,
        }
    }
    // What is seen now counts, too: the chart must not say less than the number below it.
    state.history.note(now, sandboxes.running);
    sandboxes.running_by_hour = state.history.hours(now);
    Ok(OverviewPage {
        now,
        seal,
        condition: state.gateway.condition(),
        gateways,
        running: running.collect(),
        waiting: waiting?,
        failures: failures.collect(),
        unsent: unsent_rows(state, unsent?),
        given_up: unsent_rows(state, given_up?),
        conversations: conversations?,
        sandboxes,
        hours: every_hour(&hours?, now),
        egress: egress_counts(&state.egress, now),
    })
}

fn unsent_rows(state: &DashboardState, replies: Vec<DeliveryActivity>) -> Vec<UnsentRow> {
    let rows = replies.into_iter().map(|reply| UnsentRow {
        reply: reply.row.0,
        conversation: reply.conversation,
        account: reply.account,
        text: words::beginning(&state.shown(&reply.text), 80),
        why: state.shown(reply.note.as_deref().unwrap_or("no reason was noted")),
        attempts: reply.attempts,
        since: reply.queued_at,
    });
    rows.collect()
}

async fn gateways(state: &DashboardState) -> Result<Vec<GatewayRow>, PageFailure> {
    let Some(leases) = &state.leases else {
        return Ok(Vec::new());
    };
    let seen = leases.gateways(SERVING).await?.into_iter();
    let rows = seen.map(|gateway| GatewayRow {
        name: gateway.shown_name().to_owned(),
        condition: gateway.condition(),
        silent_seconds: gateway.silent_for.as_secs(),
        version: gateway.version,
    });
    Ok(rows.collect())
}

/// Also the hours in which nothing came.
fn every_hour(found: &[HourActivity], now: Timestamp) -> Vec<HourActivity> {
    let last = now.millis() / 3_600_000;
    let hours = (last - HOURS + 1)..=last;
    hours
        .map(|hour| {
            let there = found.iter().find(|one| one.hour == hour);
            there.copied().unwrap_or(HourActivity {
                hour,
                messages: 0,
                failed: 0,
                mean_ms: 0,
            })
        })
        .collect()
}

fn egress_counts(feed: &EgressFeed, now: Timestamp) -> EgressCounts {
    let last = now.millis() / 3_600_000;
    let mut counts = EgressCounts {
        refused_by_hour: vec![0; usize::try_from(HOURS).unwrap_or_default()],
        ..EgressCounts::default()
    };
    feed.each(|entry| {
        let ago = last - entry.at.millis() / 3_600_000;
        // What is older is remembered too, and is not of this day.
        let hour = usize::try_from(HOURS - 1 - ago).ok();
        let Some(hour) = hour.and_then(|at| counts.refused_by_hour.get_mut(at)) else {
            return;
        };
        match entry.entry.verdict {
            EgressDecision::Opened => counts.opened += 1,
            EgressDecision::Refused { .. } => {
                counts.refused += 1;
                *hour += 1;
            }
            EgressDecision::Closed { .. } => {}
        }
    });
    counts
}

pub(crate) async fn page(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
) -> Result<Response, PageFailure> {
    let page = load(&state).await?;
    let body = html! {
        (seal(&page))
        (waiting(&page))
        (running(&page))
        div.pair {
            (platforms(&page))
            (charts(&page))
        }
        (failures(&page))
    };
    Ok(Page {
        title: "Overview",
        path: "/",
        viewer: &viewer,
        topics: "activity egress condition output",
        waiting: page.waiting.len(),
        body,
    }
    .into_response())
}

fn waiting(page: &OverviewPage) -> Markup {
    html! {
        section.panel #waiting data-live aria-labelledby="waiting-title" {
            h2 #waiting-title { "Waits for a person" }
            @if page.waiting.is_empty() {
                p.dim { "Nothing. Questions about commands and hosts appear here and in the chats." }
            } @else {
                ul.rows {
                    @for request in &page.waiting {
                        li data-key=(request.id) {
                            span.grow {
                                strong { (request.subject.name()) } " "
                                code { (words::beginning(&words::visible(&request.what), 140)) }
                                div.dim {
                                    (conversation_link(&request.conversation)) " · ends "
                                    (time(page.now, request.expires_at))
                                }
                            }
                            a.button href={ "/approvals#" (request.id) } { "Answer" }
                        }
                    }
                }
            }
        }
    }
}

fn running(page: &OverviewPage) -> Markup {
    html! {
        section.panel #running data-live aria-labelledby="running-title" {
            h2 #running-title { "At work now" }
            @if page.running.is_empty() {
                p.dim { "Nothing runs. A message in any chat starts a turn, and it is seen here as it goes." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Turns at work" {
                    table.steady.cards {
                        thead {
                            tr {
                                th { "Who" } th { "Conversation" } th { "Asked" } th { "Doing" }
                                th.number { "Since" }
                            }
                        }
                        tbody {
                            @for turn in &page.running {
                                tr data-key=(turn.message) {
                                    td { (turn.who) }
                                    td { (conversation_link(&turn.conversation)) }
                                    td.text.wide { (turn.text) }
                                    td.text.wide {
                                        @match (&turn.tool, &turn.arguments) {
                                            (Some(tool), Some(arguments)) => {
                                                strong { (tool) } " " code { (arguments) }
                                                (tail(turn.output.as_ref(), "short"))
                                            }
                                            _ => {
                                                @if turn.state == "working" { "asks the model" }
                                                @else { "waits for its turn" }
                                            }
                                        }
                                    }
                                    td.number data-label="Since" { (time(page.now, turn.since)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn platforms(page: &OverviewPage) -> Markup {
    html! {
        section.panel #platforms data-live aria-labelledby="platforms-title" {
            h2 #platforms-title { "Platforms" }
            @if page.condition.platforms.is_empty() {
                (empty("No chat platform is set up.", &html! {
                    (code("hermetic gateway setup")) " asks for what one needs."
                }))
            } @else {
                ul.rows {
                    @for platform in &page.condition.platforms {
                        li data-key=(platform.account) {
                            span.grow {
                                strong { (platform.account) }
                                @if let Some(why) = &platform.why {
                                    div.dim { (words::visible(why)) }
                                }
                            }
                            span.dim { "on " (platform.backend) }
                            (state_mark(&platform.state))
                        }
                    }
                }
            }
        }
    }
}

fn charts(page: &OverviewPage) -> Markup {
    let of =
        |value: fn(&HourActivity) -> i64| -> Vec<i64> { page.hours.iter().map(value).collect() };
    let messages = of(|hour| hour.messages);
    let failed: i64 = page.hours.iter().map(|hour| hour.failed).sum();
    let all: i64 = messages.iter().sum();
    let ended: Vec<i64> = of(|hour| hour.mean_ms);
    let slowest = ended.iter().copied().max().unwrap_or_default();
    let slowest = words::span(Duration::from_millis(slowest.unsigned_abs()));
    let by_hour = page.sandboxes.running_by_hour.iter().copied();
    let most_sandboxes = by_hour.max().unwrap_or_default();
    html! {
        section.panel #charts data-live aria-labelledby="charts-title" {
            h2 #charts-title { "The last 24 hours" }
            div.charts {
                figure {
                    figcaption { "Messages" strong { (words::count(all)) } }
                    (bars(&messages, "plain", &format!("{all} messages in 24 hours, by the hour")))
                }
                figure {
                    figcaption { "Slowest hour, mean" strong { (slowest) } }
                    (bars(&ended, "plain", &format!("time from message to end, mean of each hour; at most {slowest}")))
                }
                figure {
                    figcaption { "Failed" strong { (words::count(failed)) } }
                    (bars(&of(|hour| hour.failed), "bad", &format!("{failed} messages failed, by the hour")))
                }
                figure {
                    figcaption { "Sandboxes at once" strong { (words::count(most_sandboxes)) } }
                    (bars(&page.sandboxes.running_by_hour, "plain", &format!("the most sandboxes that ran at once in each hour; at most {most_sandboxes}")))
                }
                figure {
                    figcaption { "Connections refused" strong { (page.egress.refused) } }
                    (bars(&page.egress.refused_by_hour, "fair", &format!("{} connections were refused, by the hour", page.egress.refused)))
                }
            }
            dl.facts {
                div { dt { "Conversations" } dd.number { (words::count(page.conversations)) } }
                div { dt { "Sandboxes running" } dd.number { (page.sandboxes.running) } }
                div { dt { "Sandboxes stopped" } dd.number { (page.sandboxes.stopped) } }
                div { dt { "Connections opened" } dd.number { (page.egress.opened) } }
            }
        }
    }
}

fn failures(page: &OverviewPage) -> Markup {
    let is_calm = page.failures.is_empty() && page.unsent.is_empty() && page.given_up.is_empty();
    html! {
        section.panel #failures data-live aria-labelledby="failures-title" {
            h2 #failures-title { "Last failures" }
            @if is_calm { p.dim { "None are remembered." } }
            @if !page.failures.is_empty() {
                ul.rows data-key="failed" {
                    @for failure in &page.failures {
                        li data-key=(failure.message) {
                            span.grow {
                                (conversation_link(&failure.conversation)) " " span.dim { (failure.who) }
                                div { (failure.why) }
                                div.dim { (failure.text) }
                            }
                            (time(page.now, failure.at))
                        }
                    }
                }
            }
            (unsent(page, "Replies that have not left", &page.unsent))
            (unsent(page, "Replies that were given up", &page.given_up))
        }
    }
}

fn unsent(page: &OverviewPage, title: &str, replies: &[UnsentRow]) -> Markup {
    html! {
        @if !replies.is_empty() {
            h3 data-key=(title) { (title) }
            ul.rows data-key={ (title) " list" } {
                @for reply in replies {
                    li data-key=(reply.reply) {
                        span.grow {
                            strong { (reply.account) } " " (reply.text)
                            @if let Some(conversation) = &reply.conversation {
                                " " (conversation_link(conversation))
                            }
                            div.dim { (reply.why) " · tried " (reply.attempts) " times" }
                        }
                        (time(page.now, reply.since))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hermetic_egress::{EgressEntry, EgressJournal, EgressMethod, EgressRecorder as _};
    use hermetic_testkit::clock::ManualClock;
    use hermetic_types::Clock as _;

    use super::*;

    #[test]
    fn only_connections_of_the_last_day_are_counted_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(Timestamp::from_seconds(1_000_000));
        let journal = EgressJournal::at(folder.path().join("egress.jsonl"), clock.shared());
        let feed = EgressFeed::after(&journal, clock.shared());
        let write = |verdict: EgressDecision| {
            feed.write(&EgressEntry {
                conversation: ConversationKey::new("a"),
                host: "pypi.org".to_owned(),
                port: 443,
                address: None,
                how: EgressMethod::Connect,
                rule: String::new(),
                verdict,
                bytes_up: 0,
                bytes_down: 0,
                duration: Duration::ZERO,
            });
        };
        let refused = || EgressDecision::Refused {
            reason: "no rule".to_owned(),
        };
        write(EgressDecision::Opened);
        write(refused());
        clock.advance(Duration::from_secs(30 * 3600));
        write(EgressDecision::Opened);
        write(refused());
        let counts = egress_counts(&feed, clock.now());
        assert_eq!((counts.opened, counts.refused), (1, 1));
        assert_eq!(counts.refused_by_hour.iter().sum::<i64>(), 1);
    }
}
