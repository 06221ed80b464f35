//! What was said while nobody was connected, read from the histories.
//!
//! A channel is read from its position on, its threads too: those in which we were named, those that
//! begin in what is read, and older ones with newer replies on the last page before. A channel of which
//! nothing is known yet is read from the moment when somebody was last connected.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hermetic_chat::{Backoff, Position};
use hermetic_types::{ChatId, ChatKind};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::account::SlackAccount;
use crate::acknowledgement::Acknowledgement;
use crate::history::{History, Page};
use crate::last_connected;
use crate::listening::Listening;
use crate::reading::kind;
use crate::ts::Ts;
use crate::wire::CallError;

/// Pages that are read of one channel, and of one thread. Who missed more has missed some.
const MOST_PAGES: usize = 20;
/// Channels of which nothing is known.
const MOST_NEW_CHANNELS: usize = 200;
/// Attempts at one page, before the whole sweep is put off.
const ATTEMPTS: usize = 5;

/// Sweeps after each gap, for as long as it is polled.
pub(crate) async fn sweep_gaps(slack: &SlackAccount, listening: &Listening) -> Infallible {
    loop {
        tokio::select! {
            // First: the sweep reads the time of the last connection, which the other one overwrites.
            biased;
            () = listening.sweep_wanted.notified() => {}
            never = last_connected::keep_noting(slack) => match never {},
        }
        let mut backoff = slack.backoff();
        while !sweep(slack, listening).await {
            sleep(backoff.next_wait()).await;
        }
    }
}

/// Whether everything was read that can be.
async fn sweep(slack: &SlackAccount, listening: &Listening) -> bool {
    // Positions do not move before the end, so this is where they stood when the gap began.
    let gap = listening.gaps.load(Ordering::SeqCst);
    let mut channels = listening.inbox.positions().begin_sweep();
    let is_known: BTreeSet<_> = channels
        .iter()
        .map(|(channel, _)| channel.clone())
        .collect();
    let reader = History { slack };
    if let Some(since) = last_connected::load(slack).await {
        match patiently(slack, || reader.channels(MOST_NEW_CHANNELS)).await {
            Ok(joined) => {
                let new = joined
                    .into_iter()
                    .filter(|channel| !is_known.contains(channel));
                channels.extend(new.map(|channel| (channel, since)));
            }
            Err(error) if may_pass(&error) => return false,
            Err(error) => {
                warn!(account = %slack.account, %error, "what was said in new channels meanwhile is not known");
            }
        }
    }
    // Private chats first: there somebody surely waits.
    channels.sort_by_key(|(channel, _)| (kind(channel) != ChatKind::Dm, channel.clone()));
    let oldest = window_start(slack.timing.sweep_window);
    let mut found = 0;
    for (channel, position) in channels {
        match read_channel(&reader, listening, &channel, position.max(oldest)).await {
            Ok(messages) => {
                found += messages.len();
                for message in messages.values() {
                    let nobody = Acknowledgement::Nobody;
                    listening
                        .hear_message(slack, message, &channel, nobody)
                        .await;
                }
            }
            Err(error) if may_pass(&error) => return false,
            Err(error) => {
                warn!(account = %slack.account, %channel, %error, "a channel's history cannot be read; what was said meanwhile is lost");
            }
        }
    }
    if found > 0 {
        info!(account = %slack.account, found, "read what was said meanwhile");
    }
    // A gap that began during the sweep has one of its own.
    if listening.gaps.load(Ordering::SeqCst) == gap
        && let Err(error) = listening.inbox.positions().end_sweep().await
    {
        warn!(account = %slack.account, %error, "positions could not be saved");
    }
    true
}

/// The messages after `position`, in order.
async fn read_channel(
    reader: &History<'_>,
    listening: &Listening,
    channel: &ChatId,
    position: Position,
) -> Result<BTreeMap<Ts, Value>, CallError> {
    let since = Ts::at(position);
    let mut messages = BTreeMap::new();
    let mut threads: BTreeSet<Ts> = listening.threads.of(channel).into_iter().collect();
    let slack = reader.slack;
    let before = patiently(slack, || reader.before(channel, since)).await?;
    threads.extend(
        before
            .iter()
            .filter_map(|parent| thread_with_news(parent, since)),
    );
    let read = |cursor: Option<String>| async move { reader.after(channel, since, cursor).await };
    for message in all_pages(slack, channel, read).await? {
        threads.extend(thread_with_news(&message, since));
        note(&mut messages, message, since);
    }
    for thread in threads {
        let read = |cursor: Option<String>| async move {
            reader.replies(channel, thread, since, cursor).await
        };
        match all_pages(slack, channel, read).await {
            Ok(replies) => {
                for reply in replies {
                    note(&mut messages, reply, since);
                }
            }
            // It was deleted, with all that was said in it.
            Err(error) if error.is_refusal_with("thread_not_found") => {}
            Err(error) => return Err(error),
        }
    }
    Ok(messages)
}

/// The thread that this message begins, if something newer was said in it.
fn thread_with_news(parent: &Value, since: Ts) -> Option<Ts> {
    let latest = parent["latest_reply"].as_str().and_then(Ts::parse)?;
    let thread = parent["ts"].as_str().and_then(Ts::parse)?;
    (latest > since).then_some(thread)
}

/// A reply that was also sent to the channel is in both, and a thread begins with its parent.
fn note(messages: &mut BTreeMap<Ts, Value>, message: Value, since: Ts) {
    let ts = message["ts"].as_str().and_then(Ts::parse);
    if let Some(ts) = ts.filter(|ts| *ts > since) {
        messages.insert(ts, message);
    }
}

async fn all_pages<F>(
    slack: &SlackAccount,
    channel: &ChatId,
    read: impl Fn(Option<String>) -> F,
) -> Result<Vec<Value>, CallError>
where
    F: Future<Output = Result<Page, CallError>>,
{
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = patiently(slack, || read(cursor.clone())).await?;
        all.extend(page.messages);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(all);
        }
    }
    warn!(account = %slack.account, %channel, "more was said meanwhile than is read");
    Ok(all)
}

/// Tries again what may pass, and waits where Slack asks for it: histories have a tier of their own.
async fn patiently<T, F>(slack: &SlackAccount, mut call: impl FnMut() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut backoff: Backoff = slack.backoff();
    for _ in 1..ATTEMPTS {
        match call().await {
            Err(CallError::Throttled { retry_after }) => {
                sleep(retry_after.max(backoff.next_wait())).await;
            }
            Err(error) if may_pass(&error) => sleep(backoff.next_wait()).await,
            done => return done,
        }
    }
    call().await
}

fn may_pass(error: &CallError) -> bool {
    let refused = matches!(error, CallError::Refused { .. });
    !refused
        || ["internal_error", "fatal_error", "service_unavailable"]
            .iter()
            .any(|code| error.is_refusal_with(code))
}

fn window_start(window: Duration) -> Position {
    let now = Position::try_from(Timestamp::now().as_microsecond()).unwrap_or_default();
    let window = Position::try_from(window.as_micros()).unwrap_or(Position::MAX);
    now.saturating_sub(window)
}
