//! What an event does not say itself and the homeserver is asked for: the message that it quotes, whose a
//! thread is, how many people a room has.

use hermetic_types::{MessageId, QuotedMessage};
use tracing::{debug, warn};

use crate::MatrixAdapter;
use crate::hearing::{HeardMatrixEvent, MatrixListener, hear};
use crate::listening::ENCRYPTED;
use crate::receive::MatrixTrouble;
use crate::session::SessionError;
use crate::sync::RoomEvent;
use crate::wire::MatrixRoute;

impl MatrixAdapter {
    /// The message that was replied to. One that cannot be had is none.
    pub(crate) async fn quoted(
        &self,
        room: &str,
        id: &str,
    ) -> Result<Option<QuotedMessage>, MatrixTrouble> {
        let Some(event) = self.look_up(room, id).await? else {
            return Ok(None);
        };
        let hearing = crate::MatrixHearing {
            notices: true,
            ..crate::MatrixHearing::default()
        };
        // Read as somebody else would, so that our own words are words.
        let listener = MatrixListener {
            us: "",
            display: None,
            hearing: &hearing,
        };
        let text = match hear(&event, listener) {
            HeardMatrixEvent::Words(words) => words.text,
            _ => String::new(),
        };
        let Ok(message) = MessageId::new(id) else {
            return Ok(None);
        };
        Ok(Some(QuotedMessage {
            message,
            from_us: self.me.get() == Some(&event.sender),
            text,
        }))
    }

    /// Whether we have written in a thread. The homeserver keeps count of that.
    pub(crate) async fn takes_part(&self, room: &str, root: &str) -> Result<bool, MatrixTrouble> {
        if let Some(known) = self.rooms.is_our_thread(root) {
            return Ok(known);
        }
        let event = match self.find_event(room, root).await? {
            EventLookup::Found(event) => Some(*event),
            EventLookup::Absent => None,
            // Asked again with the next words there.
            EventLookup::Unanswered => return Ok(false),
        };
        let is_ours =
            event.is_some_and(|event| event.has_our_thread || self.me.get() == Some(&event.sender));
        self.rooms.note_thread(root, is_ours);
        Ok(is_ours)
    }

    pub(crate) async fn look_up(
        &self,
        room: &str,
        id: &str,
    ) -> Result<Option<RoomEvent>, MatrixTrouble> {
        Ok(match self.find_event(room, id).await? {
            EventLookup::Found(event) => Some(*event),
            EventLookup::Absent | EventLookup::Unanswered => None,
        })
    }

    async fn find_event(&self, room: &str, id: &str) -> Result<EventLookup, MatrixTrouble> {
        let route = MatrixRoute::get(&["rooms", room, "event", id]);
        match self.patiently::<serde_json::Value>(&route, |r| r).await {
            Ok(event) => {
                let Some(event) = RoomEvent::read(&event) else {
                    return Ok(EventLookup::Absent);
                };
                let cipher = match event.kind == ENCRYPTED {
                    true => self.cipher().await?,
                    false => None,
                };
                let Some(cipher) = cipher else {
                    return Ok(EventLookup::Found(Box::new(event)));
                };
                let decrypted = cipher.decrypt(room, &event).await;
                Ok(EventLookup::Found(Box::new(decrypted.unwrap_or(event))))
            }
            Err(error) if is_answer(&error) => {
                debug!(%error, "an earlier message could not be read");
                Ok(EventLookup::Absent)
            }
            // One event that cannot be had must not hold up all that is said.
            Err(error) if is_unanswered(&error) => {
                warn!(account = %self.account, room, %error, "an earlier message could not be read");
                Ok(EventLookup::Unanswered)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// For homeservers that do not count for us.
    pub(crate) async fn count_members(&self, room: &str) -> Result<u64, MatrixTrouble> {
        let route = MatrixRoute::get(&["rooms", room, "joined_members"]);
        match self.patiently::<serde_json::Value>(&route, |r| r).await {
            Ok(answer) => {
                let joined = answer.get("joined").and_then(|joined| joined.as_object());
                Ok(joined.map_or(0, |joined| joined.len() as u64))
            }
            // Many, for all we know: what is said there is not taken for private.
            Err(error) if is_answer(&error) => Ok(u64::from(u32::MAX)),
            Err(error) => Err(error.into()),
        }
    }
}

/// What came of asking for one event.
enum EventLookup {
    Found(Box<RoomEvent>),
    /// There is none that we may read.
    Absent,
    /// Nobody knows.
    Unanswered,
}

/// Whether the homeserver answered, so that asking again would end the same. One that is in trouble itself,
/// or whose proxy answers for it, has not.
pub(crate) fn is_answer(error: &SessionError) -> bool {
    use crate::wire::MatrixCallError::{Garbled, Refused};
    let is_logged_out = error.call().is_some_and(|error| error.is_logged_out());
    let (Some(Refused { status, .. }) | Some(Garbled { status })) = error.call() else {
        return false;
    };
    !is_logged_out && *status < 500
}

/// Whether one request went wrong for good after all its attempts, while the homeserver may be well.
fn is_unanswered(error: &SessionError) -> bool {
    use crate::wire::MatrixCallError::{Broken, Garbled, Refused, Silent};
    matches!(
        error.call(),
        Some(Silent(_) | Broken(_) | Refused { status: 500.., .. } | Garbled { status: 500.. })
    )
}
