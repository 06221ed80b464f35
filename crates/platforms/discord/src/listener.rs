//! Events, from connection to connection.
//!
//! What is handed out stays open until its receipt is signed. If one is dropped, the connection is made
//! anew and resumed from the last number before it. Where Discord does not resume, the histories of all
//! known channels are read from the last stored message on, before anything that is new, and those of
//! other channels with news once their server is described.

use std::collections::VecDeque;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt};
use hermetic_chat::{
    Backoff, ChatEvent, ChatState, Receipt, ReceiveError, ReceivedEvent, RecentKeys, SaveDurability,
};
use hermetic_types::UpdateId;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::DiscordAdapter;
use crate::close_code::ConnectionEnd;
use crate::connection::{GatewayConnection, NumberedEvent};
use crate::dispatch::{DiscordMessage, DispatchEvent, RawChannel, RawReady};
use crate::heard_until::HeardUntil;
use crate::hearing::HeardEvent;
use crate::session::{EventSequence, GatewaySession};
use crate::settlement::{EventOrigin, SettledEvent, deletion, settle};
use crate::snowflake::Snowflake;
use crate::sweep::{HistorySweep, SweptChannel};
use crate::trouble::ReceiveTrouble;

/// More than a resumed session hands over again.
const KNOWN_EVENTS: usize = 1000;

/// A connection that held so long was a good one: waits begin anew.
const GOOD: Duration = Duration::from_secs(60);
/// A session whose address does not answer so often is given up.
const MOST_RESUMES: u32 = 5;

pub(crate) fn stream(
    discord: &DiscordAdapter,
    stop: CancellationToken,
) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
    let listener = DiscordListener::new(discord);
    stream::unfold((listener, stop), |(mut listener, stop)| async move {
        let next = stop.run_until_cancelled(listener.next()).await.flatten();
        if next.is_none() && stop.is_cancelled() {
            listener.leave().await;
        }
        next.map(|next| (next, (listener, stop)))
    })
    .boxed()
}

struct DiscordListener<'a> {
    discord: &'a DiscordAdapter,
    loaded: bool,
    connection: Option<(GatewayConnection, Instant)>,
    session: Option<GatewaySession>,
    /// Attempts to resume in a row that did not get through.
    failed_resumes: u32,
    sequence: EventSequence,
    /// Tells settlements of this connection from those of earlier ones.
    round: u64,
    settling: FuturesUnordered<BoxFuture<'a, SettledEvent>>,
    ready: VecDeque<ReceivedEvent>,
    /// What was stored lately: a session that is resumed repeats itself.
    stored: RecentKeys<UpdateId, ()>,
    sweep: Option<HistorySweep>,
    /// Messages of this gap that may still be answered.
    answers_left: usize,
    /// Messages out of histories that were handed out and are not settled yet.
    open_history: usize,
    /// The numbers of events that described servers whose channels are being read.
    servers: Vec<u64>,
    heard_until: HeardUntil,
    backoff: Backoff,
    identifying: Backoff,
    /// No new session before this.
    identify_at: Option<Instant>,
    dead: bool,
}

impl<'a> DiscordListener<'a> {
    fn new(discord: &'a DiscordAdapter) -> Self {
        let timing = &discord.timing;
        Self {
            discord,
            loaded: false,
            connection: None,
            session: None,
            failed_resumes: 0,
            sequence: EventSequence::default(),
            round: 0,
            settling: FuturesUnordered::new(),
            ready: VecDeque::new(),
            stored: RecentKeys::new(KNOWN_EVENTS),
            sweep: None,
            answers_left: 0,
            open_history: 0,
            servers: Vec::new(),
            heard_until: HeardUntil::default(),
            backoff: Backoff::new(timing.retry.0, timing.retry.1),
            identifying: Backoff::new(timing.identify.0, timing.identify.1),
            identify_at: None,
            dead: false,
        }
    }

    async fn next(&mut self) -> Option<Result<ReceivedEvent, ReceiveError>> {
        loop {
            if let Some(received) = self.ready.pop_front() {
                return Some(Ok(received));
            }
            if self.dead {
                return None;
            }
            // One step at a time, and whatever goes wrong in any of them is ridden out in one
            // place: nothing but a rejected token ends the stream.
            if let Err(trouble) = self.step().await
                && let Some(last) = self.ride_out(trouble).await
            {
                self.dead = true;
                return Some(Err(last));
            }
        }
    }

    async fn step(&mut self) -> Result<(), ReceiveTrouble> {
        if !self.loaded {
            self.load().await?;
        }
        // Connected before the histories are read: what is said meanwhile waits in the connection,
        // and nothing falls between the two.
        if self.connection.is_none() {
            return self.connect().await;
        }
        if let Some(sweep) = &mut self.sweep {
            // Before anything new, which waits in the connection meanwhile.
            let left = &mut self.answers_left;
            let swept = sweep.next_channel(self.discord, left).await?;
            let is_over = sweep.is_over();
            if let Some(swept) = swept {
                self.hand_out_missed(swept).await?;
            }
            if is_over {
                self.end_sweep().await?;
            }
            return Ok(());
        }
        let Some((connection, _)) = &mut self.connection else {
            return Ok(());
        };
        tokio::select! {
            Some(settled) = self.settling.next(), if !self.settling.is_empty() => {
                self.settle(settled).await
            }
            event = connection.next() => match event {
                Some(event) => self.take(event).await,
                None => Err(self.ended().await),
            },
        }
    }

    async fn load(&mut self) -> Result<(), ReceiveTrouble> {
        self.discord.learn_own_name().await?;
        self.discord.channels.load().await?;
        self.discord.positions().await?;
        self.session = GatewaySession::load(&*self.discord.store).await?;
        self.heard_until = HeardUntil::load(&*self.discord.store).await?;
        self.loaded = true;
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), ReceiveTrouble> {
        let discord = self.discord;
        let connection = match &self.session {
            Some(session) => {
                // Counted before the try. An address that never answers would otherwise be tried
                // for ever, while everything that is said is lost.
                self.failed_resumes += 1;
                if self.failed_resumes > MOST_RESUMES {
                    return Err(ReceiveTrouble::Ended(ConnectionEnd::SessionLost {
                        why: "the session cannot be reached any more".to_owned(),
                    }));
                }
                discord.resume(session).await?
            }
            None => {
                let identify_at = self.identify_at.unwrap_or_else(Instant::now);
                tokio::time::sleep_until(identify_at).await;
                // Discord takes one in five seconds, however often they fail.
                let pause = self.identifying.next_wait().max(discord.timing.identify.0);
                self.identify_at = Some(Instant::now() + pause);
                discord.identify().await?
            }
        };
        let stored = self.session.as_ref().map(|session| session.sequence);
        self.sequence = EventSequence::from(stored.unwrap_or_default());
        // Settlements of the connection before say nothing about this one's numbers: those events
        // come again.
        self.round += 1;
        // What described them comes again if they were not read to the end.
        self.servers.clear();
        self.heard_until.connected();
        self.connection = Some((connection, Instant::now()));
        Ok(())
    }

    async fn take(
        &mut self,
        NumberedEvent { number, event }: NumberedEvent,
    ) -> Result<(), ReceiveTrouble> {
        let origin = EventOrigin::Live { number };
        self.failed_resumes = 0;
        // What a session hands over again comes before the word that it was resumed.
        self.discord.set_state(ChatState::Connected);
        match event {
            DispatchEvent::Ready(ready) => self.begin(ready, number).await?,
            DispatchEvent::Resumed => self.resumed().await?,
            DispatchEvent::Server(channels) => return self.look_into(&channels, number).await,
            DispatchEvent::Channels(channels) => self.discord.note_channels(&channels),
            DispatchEvent::Message(message) => return self.take_message(*message, origin).await,
            DispatchEvent::Edited(message) => {
                if let Some(channel) = self.discord.locate(&message).await? {
                    let heard = self.discord.hear_edit(*message, &channel)?;
                    return self.hand_out(heard, channel.id, origin).await;
                }
            }
            DispatchEvent::Interaction(interaction) => {
                let id = interaction.id;
                if let Some((heard, channel)) = self.discord.hear_interaction(*interaction)? {
                    return self.hand_out(heard, channel, origin).await;
                }
                self.discord.interactions.stored(id);
            }
            DispatchEvent::Deleted(deleted) => {
                for message in deleted.messages() {
                    let gone = self.discord.hear_deletion(message, &deleted);
                    self.hand_out(gone, deleted.channel_id, origin).await?;
                }
                return Ok(());
            }
            DispatchEvent::Malformed(why) => {
                warn!(account = %self.discord.account, number, why, "discord sent a malformed event; skipped");
            }
            DispatchEvent::Other => {}
        }
        self.sequence.note(number, false);
        Ok(())
    }

    async fn take_message(
        &mut self,
        message: DiscordMessage,
        origin: EventOrigin,
    ) -> Result<(), ReceiveTrouble> {
        let id = message.id;
        let Some(channel) = self.discord.locate(&message).await? else {
            self.note(origin, false);
            return Ok(());
        };
        let heard = self.discord.hear(message, &channel)?;
        let is_for_us = matches!(heard, HeardEvent::Event(_));
        self.hand_out(heard, channel.id, origin).await?;
        if !is_for_us {
            self.discord.pass_over(channel.id, id).await;
        }
        if self.session.as_ref().is_some_and(|session| session.swept) {
            let noted = self.heard_until.note(id, &*self.discord.store).await;
            noted.unwrap_or_else(
                |error| warn!(%error, "until when everything was heard could not be noted"),
            );
        }
        Ok(())
    }

    /// A server is described. Where something was said in it since we last heard anything, and nothing else
    /// is known, the history is read; what is new waits for that.
    async fn look_into(
        &mut self,
        channels: &[RawChannel],
        number: u64,
    ) -> Result<(), ReceiveTrouble> {
        self.discord.note_channels(channels);
        let news = match self.heard_until.at() {
            Some(since) if self.discord.backfill.enabled => {
                let news = self.discord.channels_with_news(channels, since).await?;
                Some((since, news)).filter(|(_, news)| !news.is_empty())
            }
            _ => None,
        };
        let Some((since, news)) = news else {
            self.sequence.note(number, false);
            return Ok(());
        };
        self.note_unswept().await?;
        // Open until that is done: a restart in its midst is told of the server again.
        self.sequence.note(number, true);
        self.servers.push(number);
        let bounds = self.discord.backfill;
        self.sweep = Some(HistorySweep::since(since, news, bounds));
        Ok(())
    }

    /// A new session: whatever happened since the last one is in the histories.
    async fn begin(&mut self, ready: RawReady, number: u64) -> Result<(), ReceiveTrouble> {
        let session = GatewaySession {
            id: ready.session_id,
            url: ready.resume_gateway_url,
            sequence: number,
            swept: false,
        };
        // Known before it is kept: where the disk is full it is resumed, and nothing said in it is lost.
        let session = self.session.insert(session);
        session
            .save(&*self.discord.store, SaveDurability::OnDisk)
            .await?;
        let now = self.discord.now();
        self.heard_until.begin(now, &*self.discord.store).await?;
        info!(account = %self.discord.account, "connected to discord");
        self.begin_sweep().await?;
        self.discord.announce_commands().await;
        Ok(())
    }

    /// All that was missed by this session came again before this.
    async fn resumed(&mut self) -> Result<(), ReceiveTrouble> {
        info!(account = %self.discord.account, "resumed the session with discord");
        self.failed_resumes = 0;
        self.identifying.reset();
        // What was said before the session began may still be missing.
        if self.session.as_ref().is_some_and(|session| session.swept) {
            self.discord.positions().await?.end_sweep().await?;
        } else {
            self.begin_sweep().await?;
        }
        self.discord.announce_commands().await;
        Ok(())
    }

    async fn begin_sweep(&mut self) -> Result<(), ReceiveTrouble> {
        let positions = self.discord.positions().await?;
        let bounds = self.discord.backfill;
        let mut sweep = HistorySweep::new(positions.begin_sweep(), bounds);
        if let Some(cut_short) = self.sweep.take() {
            sweep.take_over(cut_short);
        }
        self.sweep = Some(sweep);
        self.answers_left = bounds.max_dispatches;
        self.note_unswept().await
    }

    /// Everything that the histories held is handed out.
    async fn end_sweep(&mut self) -> Result<(), ReceiveTrouble> {
        self.sweep = None;
        self.discord.positions().await?.end_sweep().await?;
        self.note_swept().await
    }

    async fn note_unswept(&mut self) -> Result<(), ReceiveTrouble> {
        match self.session.as_mut().filter(|session| session.swept) {
            Some(session) => {
                session.swept = false;
                let store = &*self.discord.store;
                Ok(session.save(store, SaveDurability::Soon).await?)
            }
            None => Ok(()),
        }
    }

    /// Notes that the histories were read, once all that they held is stored as well: a process that ends
    /// before that leaves them to be read again.
    async fn note_swept(&mut self) -> Result<(), ReceiveTrouble> {
        if self.sweep.is_some() || self.open_history > 0 {
            return Ok(());
        }
        for number in self.servers.drain(..) {
            self.sequence.note_stored(number);
        }
        if let Some(session) = self.session.as_mut().filter(|session| !session.swept) {
            session.swept = true;
            session
                .save(&*self.discord.store, SaveDurability::Soon)
                .await?;
        }
        Ok(())
    }

    async fn hand_out_missed(&mut self, swept: SweptChannel) -> Result<(), ReceiveTrouble> {
        for heard in swept.found {
            self.hand_out(heard, swept.id, EventOrigin::History).await?;
        }
        if let Some(last) = swept.read_to {
            self.discord.pass_over(swept.id, last).await;
        }
        Ok(())
    }

    async fn hand_out(
        &mut self,
        heard: HeardEvent,
        channel: Snowflake,
        origin: EventOrigin,
    ) -> Result<(), ReceiveTrouble> {
        let event = match heard {
            HeardEvent::Event(event) => *event,
            HeardEvent::Nothing(why) => {
                debug!(why, "an event is not for us");
                self.note(origin, false);
                return Ok(());
            }
        };
        let (update, message) = match &event {
            ChatEvent::Message(message) => (message.update.clone(), true),
            ChatEvent::Press(press) => (press.update.clone(), false),
            ChatEvent::Edited(edited) => (edited.update.clone(), false),
            ChatEvent::Deleted(deleted) => (deletion(&deleted.message), false),
            // Discord tells at once what it does not deliver.
            ChatEvent::Undelivered(_) => return Ok(()),
        };
        // Before it gets a place and a receipt: a resumed session repeats what the store knows
        // anyway.
        if self.stored.contains(&update) {
            debug!(%update, "an event came again; skipped");
            self.note(origin, false);
            return Ok(());
        }
        let id = Snowflake::parse(update.as_str());
        let interaction = id.filter(|id| self.discord.interactions.knows(*id));
        let at = id.filter(|_| message && interaction.is_none());
        if let Some(at) = at {
            // What is in a history gets a place in it, before it is handed out.
            let positions = self.discord.positions().await?;
            positions.hand_out(&channel.into(), at.position()).await?;
        }
        // Open from here on: the number that a restart resumes from stands before it until the
        // receipt is signed.
        self.note(origin, true);
        let (receipt, counterfoil) = Receipt::pair();
        self.ready.push_back(ReceivedEvent { event, receipt });
        let settled = SettledEvent {
            origin,
            round: self.round,
            update,
            interaction,
            stored: false,
        };
        let settling = settle(self.discord, settled, channel, at, counterfoil);
        self.open_history += usize::from(matches!(origin, EventOrigin::History));
        self.settling.push(Box::pin(settling));
        Ok(())
    }

    fn note(&mut self, origin: EventOrigin, handed_out: bool) {
        if let EventOrigin::Live { number } = origin {
            self.sequence.note(number, handed_out);
        }
    }

    async fn settle(&mut self, settled: SettledEvent) -> Result<(), ReceiveTrouble> {
        let is_current = settled.round == self.round;
        self.close_history(&settled);
        if !settled.stored {
            let SettledEvent { update, origin, .. } = settled;
            return match origin {
                // It has come again by a later connection.
                EventOrigin::Live { .. } if !is_current => Ok(()),
                origin => Err(ReceiveTrouble::NotStored { update, origin }),
            };
        }
        self.backoff.reset();
        self.stored.note(settled.update, ());
        if let Some(interaction) = settled.interaction {
            self.discord.interactions.stored(interaction);
        }
        if let EventOrigin::Live { number } = settled.origin
            && is_current
        {
            self.sequence.note_stored(number);
            self.save_sequence(SaveDurability::Soon).await?;
        }
        if matches!(settled.origin, EventOrigin::History) {
            self.note_swept().await?;
        }
        Ok(())
    }

    fn close_history(&mut self, settled: &SettledEvent) {
        let was_missed = matches!(settled.origin, EventOrigin::History);
        self.open_history -= usize::from(was_missed);
    }

    async fn save_sequence(&mut self, saving: SaveDurability) -> Result<(), ReceiveTrouble> {
        let stored = self.sequence.stored();
        if let Some(session) = &mut self.session
            && session.sequence < stored
        {
            // In memory too when it cannot be kept: a connection that breaks now resumes from
            // there.
            session.sequence = stored;
            session.save(&*self.discord.store, saving).await?;
        }
        Ok(())
    }

    async fn ended(&mut self) -> ReceiveTrouble {
        let Some((connection, begun)) = self.connection.take() else {
            return ReceiveTrouble::Ended(ConnectionEnd::by_code(1006));
        };
        if begun.elapsed() >= GOOD {
            self.backoff.reset();
            self.identifying.reset();
        }
        ReceiveTrouble::Ended(connection.ended().await)
    }

    /// Waits out what may pass. What may not is returned.
    async fn ride_out(&mut self, trouble: ReceiveTrouble) -> Option<ReceiveError> {
        if let Some(why) = trouble.is_final() {
            self.end_connection().await;
            self.discord
                .set_state(ChatState::Stopped { why: why.clone() });
            return Some(ReceiveError::Ended {
                account: self.discord.account.clone(),
                description: why,
            });
        }
        if trouble.needs_connection() {
            self.end_connection().await;
        }
        if trouble.ends_session() {
            // Forgotten on the disk as well, or each start would first try to resume what is over.
            self.session = None;
            if let Err(error) = GatewaySession::forget(&*self.discord.store).await {
                warn!(%error, "a session that is over could not be forgotten");
            }
        }
        if let ReceiveTrouble::NotStored {
            origin: EventOrigin::History,
            ..
        } = &trouble
            && let Err(error) = self.begin_sweep().await
        {
            warn!(%error, "a sweep could not be begun again");
        }
        let wait = trouble
            .wait()
            .unwrap_or_default()
            .max(self.backoff.next_wait());
        let wait_ms = wait.as_millis();
        warn!(account = %self.discord.account, %trouble, wait_ms, "listening to discord is interrupted");
        if self.connection.is_none() {
            let why = trouble.to_string();
            self.discord.set_state(ChatState::Retrying { why });
        }
        sleep(wait).await;
        None
    }

    /// The session goes on from the last event that is stored.
    async fn end_connection(&mut self) {
        // What is stored by now does not have to come again.
        while let Some(Some(settled)) = self.settling.next().now_or_never() {
            if !settled.stored {
                self.close_history(&settled);
            } else if self.settle(settled).await.is_err() {
                break;
            }
        }
        if let Err(error) = self.save_sequence(SaveDurability::Soon).await {
            debug!(%error, "how far a session is stored was not kept");
        }
        if let Some((connection, _)) = self.connection.take() {
            connection.end().await;
        }
        self.sweep = None;
        // Handed to nobody yet. Their receipts are dropped with them, and they come again by the
        // next connection.
        self.ready.clear();
    }

    /// The end that we were asked for. The session stays, so that a restart goes on with it.
    async fn leave(&mut self) {
        self.end_connection().await;
        self.discord.set_state(ChatState::Stopped {
            why: "asked to".to_owned(),
        });
    }
}
