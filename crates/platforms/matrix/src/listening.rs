//! From a room's events to those that are for us.

use hermetic_chat::{ChatEvent, SaveDurability};
use hermetic_types::{
    ButtonPress, ChatId, ChatKind, ChatPlace, DeletedMessage, IncomingMessage, MessageId, Sender,
    ThreadId, Timestamp, UpdateId, UserId,
};
use tracing::{debug, warn};

use crate::config::EncryptionMode;
use crate::hearing::{HeardMatrixEvent, MatrixListener, MatrixWords, edited, hear};
use crate::names::localpart;
use crate::receive::{MatrixTrouble, SyncArrival};
use crate::rooms::RoomFacts;
use crate::sync::{JoinedRoom, RoomEvent};
use crate::{MatrixAdapter, UNSPOKEN};

/// What an event is called whose words only those read who hold its key.
pub(crate) const ENCRYPTED: &str = "m.room.encrypted";

impl MatrixAdapter {
    /// Everything that was said to us in a room, oldest first. Without a position nothing was.
    pub(crate) async fn hear_room(
        &self,
        mut room: JoinedRoom,
        since: Option<&str>,
    ) -> Result<Vec<SyncArrival>, MatrixTrouble> {
        let us = self.me.get().cloned().unwrap_or_default();
        let known = self.rooms.facts(&room.id);
        let is_new = known.is_none();
        let mut facts = known.unwrap_or_default();
        facts.learn(&room, &us);
        self.encrypted_rooms.note_sync(&room);
        self.rooms
            .note_names(&room.id, room.state.iter().chain(&room.timeline));
        if is_new && since.is_some() {
            // Only for a room that is new in a sync with a position: what was said before we came
            // was not said to us.
            facts.since_event = arrival(&room, &us);
        }
        if facts.joined == 0 {
            facts.joined = self.count_members(&room.id).await?;
        }
        let was_encrypted = self
            .rooms
            .facts(&room.id)
            .is_some_and(|facts| facts.is_encrypted);
        // Before anything is handed out, or a crash would make us hear what was said before our time.
        let saving = if is_new {
            SaveDurability::OnDisk
        } else {
            SaveDurability::Soon
        };
        self.rooms.note(&room.id, facts.clone(), saving).await?;
        if facts.is_encrypted && !was_encrypted && self.encryption == EncryptionMode::Off {
            warn!(account = %self.account, room = room.id, why = UNSPOKEN, "this room is end-to-end encrypted: nothing is heard or said there");
        }
        let Some(since) = since else {
            return Ok(Vec::new());
        };
        let mut events = std::mem::take(&mut room.timeline);
        if !drop_earlier(&mut events, facts.since_event.as_deref())
            // Nothing is asked for where our arrival is in the timeline: all before it is before
            // our time.
            && let Some(gap) = &room.gap
        {
            let mut missed = self
                .missed(&room.id, gap, since, facts.since_event.as_deref())
                .await?;
            missed.append(&mut events);
            events = missed;
        }
        self.hear_events(&room.id, facts, &events).await
    }

    pub(crate) async fn hear_events(
        &self,
        room: &str,
        mut facts: RoomFacts,
        events: &[RoomEvent],
    ) -> Result<Vec<SyncArrival>, MatrixTrouble> {
        let us = self.me.get().cloned().unwrap_or_default();
        let display = self.rooms.name(room, &us);
        let listener = MatrixListener {
            us: &us,
            display: display.as_deref(),
            hearing: &self.hearing,
        };
        let sealed_from = events.iter().position(RoomEvent::is_encryption);
        let mut arrivals = Vec::new();
        for (index, event) in events.iter().enumerate() {
            let Ok(update) = UpdateId::new(event.id.clone()) else {
                continue;
            };
            // Before it is decrypted and before anything is asked of the homeserver: after a
            // restart a whole batch comes again.
            if self.has_seen(&update) {
                debug!(%update, "an event came again; skipped");
                continue;
            }
            let is_sealed = event.kind == ENCRYPTED;
            let decrypted = match is_sealed {
                true => self.readable(room, event).await?,
                false => None,
            };
            let event = decrypted.as_ref().unwrap_or(event);
            // By the place in this batch: encryption that is switched on here holds for what
            // follows it, not for what was said before.
            let is_earlier = sealed_from.is_some_and(|from| index < from);
            let may_be_plain = is_sealed || self.hears_in_plain(&facts, is_earlier);
            if !may_be_plain && is_said(event) {
                warn!(account = %self.account, room, event = event.id, sender = event.sender, "something was said in plain where only sealed words are heard");
                continue;
            }
            let heard = self.hear_event(room, &mut facts, event, listener).await?;
            // Under the name of the event as it came, also where it was decrypted: it comes again
            // under that one.
            arrivals.extend(heard.map(|event| SyncArrival { update, event }));
        }
        Ok(arrivals)
    }

    async fn hear_event(
        &self,
        room: &str,
        facts: &mut RoomFacts,
        event: &RoomEvent,
        listener: MatrixListener<'_>,
    ) -> Result<Option<ChatEvent>, MatrixTrouble> {
        Ok(match hear(event, listener) {
            HeardMatrixEvent::Words(words) => {
                // Whom a private room is with is learnt from the first who speaks there.
                if facts.is_private() && facts.with.is_none() {
                    facts.with = Some(event.sender.clone());
                    let noted = self.rooms.note(room, facts.clone(), SaveDurability::Soon);
                    noted.await?;
                }
                self.hear_words(room, facts, event, *words).await?
            }
            HeardMatrixEvent::Reaction { emoji, target } => {
                self.hear_reaction(room, facts, event, &emoji, &target)
                    .await?
            }
            HeardMatrixEvent::Deletion { target } => deleted(self, room, &target),
            HeardMatrixEvent::Edit { target } => {
                let edit = self.hear_edit(room, facts, event, &target, listener);
                edit.await?
            }
            HeardMatrixEvent::Encrypted => {
                debug!(event = event.id, "an event is encrypted");
                None
            }
            HeardMatrixEvent::Nothing(why) => {
                debug!(event = event.id, why, "an event is not for us");
                None
            }
        })
    }

    /// Whether something may be said without a seal. In a room that is encrypted nobody does so but a
    /// homeserver that has no key; what was said before it was encrypted is another thing.
    fn hears_in_plain(&self, facts: &RoomFacts, is_earlier: bool) -> bool {
        match self.encryption {
            EncryptionMode::Off | EncryptionMode::Optional => !facts.is_encrypted || is_earlier,
            EncryptionMode::Required => false,
        }
    }

    async fn hear_words(
        &self,
        room: &str,
        facts: &RoomFacts,
        event: &RoomEvent,
        words: MatrixWords,
    ) -> Result<Option<ChatEvent>, MatrixTrouble> {
        let message = self.read_message(room, facts, event, words, None).await?;
        if let Some(message) = &message {
            self.presence.note_heard(room, message.message.as_str());
        }
        Ok(message.map(ChatEvent::Message))
    }

    /// Other words for a message of theirs. Where that stands is asked of the homeserver, because an edit
    /// does not say it.
    async fn hear_edit(
        &self,
        room: &str,
        facts: &RoomFacts,
        edit: &RoomEvent,
        target: &str,
        listener: MatrixListener<'_>,
    ) -> Result<Option<ChatEvent>, MatrixTrouble> {
        // Whether its sender wrote the message is asked of the homeserver and not believed of the
        // edit, which anybody in the room can send.
        let original = self.look_up(room, target).await?;
        let Some(event) = original.and_then(|original| edited(&original, edit)) else {
            debug!(room, "an edit of something that its sender did not write");
            return Ok(None);
        };
        let HeardMatrixEvent::Words(words) = hear(&event, listener) else {
            debug!(room, "an edit that leaves nothing to be heard");
            return Ok(None);
        };
        let message = self.read_message(room, facts, &event, *words, Some(&edit.id));
        Ok(message.await?.map(ChatEvent::Edited))
    }

    /// A message as the gateway knows it, if it is for us. An edit is as much for us as the message was,
    /// which the gateway knows: who mends a word does not call us again.
    async fn read_message(
        &self,
        room: &str,
        facts: &RoomFacts,
        event: &RoomEvent,
        words: MatrixWords,
        edit: Option<&str>,
    ) -> Result<Option<IncomingMessage>, MatrixTrouble> {
        let Some(EventNames {
            chat,
            sender,
            update,
            message,
        }) = EventNames::of(room, event)
        else {
            return Ok(None);
        };
        let is_private = facts.is_private();
        // First of all: rooms that we do not listen to cost no request.
        let is_allowed =
            self.hearing.allowed_rooms.is_empty() || lists(&self.hearing.allowed_rooms, &chat);
        if !is_private && !is_allowed {
            debug!(room, "a room we do not listen to");
            return Ok(None);
        }
        let reply_to = match &words.reply_to {
            Some(quoted) => self.quoted(room, quoted).await?,
            None => None,
        };
        let replies_to_us = reply_to.as_ref().is_some_and(|quoted| quoted.from_us);
        let mentions_us = is_private || words.names_us || replies_to_us;
        let is_free = lists(&self.hearing.free_response_rooms, &chat);
        let needs_mention =
            !(is_private || is_free) && self.needs_mention(room, words.thread.as_deref()).await?;
        if needs_mention && !mentions_us && edit.is_none() {
            debug!(room, "it does not mention us");
            return Ok(None);
        }
        let makes_thread = match is_private {
            true => self.hearing.dm_auto_thread,
            // Where it is answered without a mention, people talk in the room itself; and a reply to us
            // goes on with what is said there.
            false => self.hearing.auto_thread && !is_free && !replies_to_us,
        };
        let root = words.thread.or(makes_thread.then(|| event.id.clone()));
        if let (Some(root), None) = (&root, edit) {
            // Noted when we begin it, not when we have answered: what is said there meanwhile is
            // meant for us as well.
            self.rooms.note_thread(root, true);
        }
        self.note_author(&event.id, &event.sender);
        let update = match edit.map(UpdateId::new) {
            Some(Ok(edit)) => edit,
            Some(Err(_)) => return Ok(None),
            None => update,
        };
        Ok(Some(IncomingMessage {
            account: self.account.clone(),
            update,
            message,
            place: place(chat, is_private, root.as_deref()),
            sender: self.sender(room, sender, words.is_notice),
            text: words.text,
            reply_to,
            mentions_us,
            attachments: words.attachments,
            received_at: self.now(),
        }))
    }

    /// Whether what is said in a room is for us only where it names us. In a thread of ours people talk to us.
    async fn needs_mention(&self, room: &str, thread: Option<&str>) -> Result<bool, MatrixTrouble> {
        Ok(match thread {
            Some(root) if self.takes_part(room, root).await? => self.hearing.thread_require_mention,
            _ => self.hearing.require_mention,
        })
    }

    async fn hear_reaction(
        &self,
        room: &str,
        facts: &RoomFacts,
        event: &RoomEvent,
        emoji: &str,
        target: &str,
    ) -> Result<Option<ChatEvent>, MatrixTrouble> {
        let Some(question) = self.choices.find(target).await? else {
            return Ok(None);
        };
        let (Some(data), true) = (question.choices.data(emoji), question.room == room) else {
            return Ok(None);
        };
        let (Some(names), Ok(message)) = (EventNames::of(room, event), MessageId::new(target))
        else {
            return Ok(None);
        };
        let EventNames {
            chat,
            sender,
            update,
            ..
        } = names;
        Ok(Some(ChatEvent::Press(ButtonPress {
            account: self.account.clone(),
            update,
            query: event.id.clone(),
            place: place(chat, facts.is_private(), question.thread.as_deref()),
            message,
            sender: self.sender(room, sender, false),
            data: data.to_owned(),
            received_at: self.now(),
        })))
    }

    fn sender(&self, room: &str, id: UserId, is_bot: bool) -> Sender {
        let display = self.rooms.name(room, id.as_str());
        Sender {
            display: display.unwrap_or_else(|| localpart(id.as_str()).to_owned()),
            id,
            is_bot,
            roles: Vec::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// What an event is called by everybody else here.
struct EventNames {
    chat: ChatId,
    sender: UserId,
    update: UpdateId,
    message: MessageId,
}

impl EventNames {
    fn of(room: &str, event: &RoomEvent) -> Option<Self> {
        Some(Self {
            chat: ChatId::new(room).ok()?,
            sender: UserId::new(event.sender.clone()).ok()?,
            update: UpdateId::new(event.id.clone()).ok()?,
            message: MessageId::new(event.id.clone()).ok()?,
        })
    }
}

/// Whether an event has words that somebody could take for an order.
fn is_said(event: &RoomEvent) -> bool {
    matches!(event.kind.as_str(), "m.room.message" | "m.sticker")
}

fn deleted(matrix: &MatrixAdapter, room: &str, target: &str) -> Option<ChatEvent> {
    Some(ChatEvent::Deleted(DeletedMessage {
        account: matrix.account.clone(),
        chat: ChatId::new(room).ok()?,
        message: MessageId::new(target).ok()?,
    }))
}

/// The event that brought us into a room: that somebody invited us, or that we came.
fn arrival(room: &JoinedRoom, us: &str) -> Option<String> {
    let last = |events: &[RoomEvent], wanted: &str| {
        let mut ours = events.iter().rev();
        let found = ours.find(|event| event.membership() == Some((us, wanted)));
        found.map(|event| event.id.clone())
    };
    // Whoever invites us and writes at once means us.
    last(&room.timeline, "invite")
        .or_else(|| last(&room.timeline, "join"))
        .or_else(|| last(&room.state, "join"))
}

/// Drops that event and everything before it; whether it was there.
pub(crate) fn drop_earlier(events: &mut Vec<RoomEvent>, event: Option<&str>) -> bool {
    let found = event.and_then(|event| events.iter().position(|one| one.id == event));
    if let Some(at) = found {
        events.drain(..=at);
    }
    found.is_some()
}

pub(crate) fn place(chat: ChatId, is_private: bool, thread: Option<&str>) -> ChatPlace {
    let thread = thread.and_then(|root| ThreadId::new(root).ok());
    ChatPlace {
        chat,
        kind: match (is_private, &thread) {
            (true, _) => ChatKind::Dm,
            (false, Some(_)) => ChatKind::Thread,
            (false, None) => ChatKind::Group,
        },
        thread,
    }
}

fn lists(list: &std::collections::BTreeSet<ChatId>, room: &ChatId) -> bool {
    list.contains(room) || list.iter().any(|listed| listed.as_str() == "*")
}
