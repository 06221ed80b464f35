//! What was said while nobody was connected, read from the histories.
//!
//! A channel is read from its position on, its threads too: those that begin in what is read, and older
//! ones with newer replies. A page of a history says of each thread when somebody last replied, so that
//! only threads with news are asked for. Those in which we were named and that are older than the pages
//! are asked for one by one, the youngest first and not all of them: histories may be read fifty times a
//! minute. A channel of which nothing is known yet is read from the moment when somebody was last
//! connected. What is said live meanwhile waits for its channel, so that nothing overtakes what was said
//! before it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::Ordering;

use hermetic_chat::{Backoff, Position};
use hermetic_types::{ChatId, ChatKind};
use serde_json::Value;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::account::SlackAccount;
use crate::acknowledgement::EventAcknowledgement;
use crate::held_events::LONGEST_HOLD;
use crate::history::{ChannelHistory, HistoryPage};
use crate::last_connected;
use crate::listening::ListeningState;
use crate::reading::kind;
use crate::ts::SlackTimestamp;
use crate::wire::SlackCallError;

/// Pages that are read of one channel, and of one thread. Who missed more has missed some.
const MOST_SWEPT_PAGES: usize = 20;
/// Pages before the gap that are read for the threads that begin there.
const MOST_PARENT_PAGES: usize = 5;
/// Threads older than those pages that are asked for: as many as a minute and a half allows.
const MOST_OLD_THREADS: usize = 60;
/// Pages of the list of channels, two hundred on each.
const MOST_LISTED_PAGES: usize = 20;
/// Channels of which nothing is known.
const MOST_NEW_CHANNELS: usize = 200;
/// Attempts at one page, before the whole sweep is put off.
const PAGE_ATTEMPTS: usize = 5;

/// Sweeps after each gap, for as long as it is polled.
pub(crate) async fn sweep_gaps(slack: &SlackAccount, listening: &ListeningState) -> Infallible {
    loop {
        tokio::select! {
            // First: the sweep reads the time of the last connection, which the other one overwrites.
            biased;
            () = listening.sweep_wanted.notified() => {}
            never = last_connected::keep_noting(slack) => match never {},
        }
        let mut backoff = slack.backoff();
        while !sweep_in_order(slack, listening).await {
            sleep(backoff.next_wait()).await;
        }
    }
}

async fn sweep_in_order(slack: &SlackAccount, listening: &ListeningState) -> bool {
    listening.inbox.begin_sweep();
    let sweeping = sweep(slack, listening);
    tokio::pin!(sweeping);
    let swept = loop {
        tokio::select! {
            swept = &mut sweeping => break swept,
            () = sleep(LONGEST_HOLD / 4) => listening.inbox.release_overdue().await,
        }
    };
    // A sweep that is put off may be so for long: nobody waits for that.
    listening.inbox.end_sweep().await;
    swept
}

/// Whether everything was read that can be.
async fn sweep(slack: &SlackAccount, listening: &ListeningState) -> bool {
    // Positions do not move before the end, so this is where they stood when the gap began.
    let gap = listening.gaps.load(Ordering::SeqCst);
    let mut channels = listening.inbox.positions().begin_sweep();
    let is_known: BTreeSet<_> = channels
        .iter()
        .map(|(channel, _)| channel.clone())
        .collect();
    let reader = ChannelHistory { slack };
    if let Some(since) = last_connected::load(slack).await {
        match new_channels(&reader, &is_known).await {
            Ok(new) => channels.extend(new.into_iter().map(|channel| (channel, since))),
            Err(error) if may_pass(&error) => return false,
            Err(error) => {
                warn!(account = %slack.account, %error, "what was said in new channels meanwhile is not known");
            }
        }
    }
    // Private chats first: there somebody surely waits.
    channels.sort_by_key(|(channel, _)| (kind(channel) != ChatKind::Dm, channel.clone()));
    let oldest = slack.position_before(slack.timing.sweep_window);
    let mut found = 0;
    while let Some((channel, position)) = next_channel(&mut channels, listening) {
        let since = slack.look_back(position).max(oldest);
        match read_channel(&reader, listening, &channel, since).await {
            Ok(messages) => {
                found += messages.len();
                for message in messages.values() {
                    let nobody = EventAcknowledgement::Nobody;
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
        listening.inbox.release(&channel).await;
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

/// The channels and private chats in which the bot is and of which nothing is known, private ones first.
async fn new_channels(
    reader: &ChannelHistory<'_>,
    known: &BTreeSet<ChatId>,
) -> Result<Vec<ChatId>, SlackCallError> {
    let slack = reader.slack;
    let mut new = Vec::new();
    for kinds in ["im,mpim", "public_channel,private_channel"] {
        let mut cursor = None;
        for _ in 0..MOST_LISTED_PAGES {
            let page = || reader.channels(kinds, cursor.clone());
            let (listed, next) = patiently(slack, page).await?;
            new.extend(listed.into_iter().filter(|one| !known.contains(one)));
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
    }
    let too_many = new.len().saturating_sub(MOST_NEW_CHANNELS);
    if too_many > 0 {
        warn!(account = %slack.account, too_many, "channels in which nobody spoke to us yet are not looked into for what was said meanwhile");
        new.truncate(MOST_NEW_CHANNELS);
    }
    Ok(new)
}

/// One in which somebody waits, if there is one.
fn next_channel(
    channels: &mut Vec<(ChatId, Position)>,
    listening: &ListeningState,
) -> Option<(ChatId, Position)> {
    if channels.is_empty() {
        return None;
    }
    let waits = |(channel, _): &(ChatId, Position)| listening.inbox.holds(channel);
    let next = channels.iter().position(waits).unwrap_or_default();
    Some(channels.remove(next))
}

/// The messages after `position`, in order.
async fn read_channel(
    reader: &ChannelHistory<'_>,
    listening: &ListeningState,
    channel: &ChatId,
    position: Position,
) -> Result<BTreeMap<SlackTimestamp, Value>, SlackCallError> {
    let since = SlackTimestamp::at(position);
    let mut messages = BTreeMap::new();
    let slack = reader.slack;
    let mut threads = threads_before(reader, listening, channel, since).await?;
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

/// The threads with news that began before the gap.
async fn threads_before(
    reader: &ChannelHistory<'_>,
    listening: &ListeningState,
    channel: &ChatId,
    since: SlackTimestamp,
) -> Result<BTreeSet<SlackTimestamp>, SlackCallError> {
    let slack = reader.slack;
    let ours = listening.threads.of(channel).into_iter();
    // Of those that begin in the gap, the pages of the gap tell.
    let mut unsure: BTreeSet<_> = ours.filter(|thread| *thread <= since).collect();
    let (mut threads, mut cursor) = (BTreeSet::new(), None);
    for page in 0..MOST_PARENT_PAGES {
        // One page in any case: somebody may have named us in a thread that was not ours.
        if page > 0 && (unsure.is_empty() || cursor.is_none()) {
            break;
        }
        let read = patiently(slack, || reader.before(channel, since, cursor.clone())).await?;
        for parent in &read.messages {
            threads.extend(thread_with_news(parent, since));
            if let Some(ts) = parent["ts"].as_str().and_then(SlackTimestamp::parse) {
                unsure.remove(&ts);
            }
        }
        cursor = read.next;
    }
    let too_many = unsure.len().saturating_sub(MOST_OLD_THREADS);
    if too_many > 0 {
        warn!(account = %slack.account, %channel, too_many, "old threads are not looked into for what was said meanwhile; whoever waits there has to name us again");
    }
    threads.extend(unsure.into_iter().rev().take(MOST_OLD_THREADS));
    Ok(threads)
}

/// The thread that this message begins, if something newer was said in it.
fn thread_with_news(parent: &Value, since: SlackTimestamp) -> Option<SlackTimestamp> {
    let latest = parent["latest_reply"]
        .as_str()
        .and_then(SlackTimestamp::parse)?;
    let thread = parent["ts"].as_str().and_then(SlackTimestamp::parse)?;
    (latest > since).then_some(thread)
}

/// A reply that was also sent to the channel is in both, and a thread begins with its parent.
fn note(messages: &mut BTreeMap<SlackTimestamp, Value>, message: Value, since: SlackTimestamp) {
    let ts = message["ts"].as_str().and_then(SlackTimestamp::parse);
    if let Some(ts) = ts.filter(|ts| *ts > since) {
        messages.insert(ts, message);
    }
}

async fn all_pages<F>(
    slack: &SlackAccount,
    channel: &ChatId,
    read: impl Fn(Option<String>) -> F,
) -> Result<Vec<Value>, SlackCallError>
where
    F: Future<Output = Result<HistoryPage, SlackCallError>>,
{
    let (mut all, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_SWEPT_PAGES {
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
async fn patiently<T, F>(
    slack: &SlackAccount,
    mut call: impl FnMut() -> F,
) -> Result<T, SlackCallError>
where
    F: Future<Output = Result<T, SlackCallError>>,
{
    let mut backoff: Backoff = slack.backoff();
    for _ in 1..PAGE_ATTEMPTS {
        match call().await {
            Err(SlackCallError::Throttled { retry_after }) => {
                sleep(retry_after.max(backoff.next_wait())).await;
            }
            Err(error) if may_pass(&error) => sleep(backoff.next_wait()).await,
            done => return done,
        }
    }
    call().await
}

fn may_pass(error: &SlackCallError) -> bool {
    let refused = matches!(error, SlackCallError::Refused { .. });
    !refused
        || ["internal_error", "fatal_error", "service_unavailable"]
            .iter()
            .any(|code| error.is_refusal_with(code))
}
