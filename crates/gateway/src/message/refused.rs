//! Messages that are not worked on: turned away with a reason, or dropped before their turn came.

use std::sync::Arc;

use hermetic_chat::ReplyRule;
use hermetic_redact::Redacted;
use hermetic_store::MessageEnd;

use super::AcceptedMessage;
use crate::conversation::Notified;
use crate::{Gateway, wording};

impl Gateway {
    /// Tells the sender why a message is not heard, once for many.
    pub(crate) fn not_heard(
        self: &Arc<Self>,
        message: AcceptedMessage,
        why: &'static str,
        notified: Notified,
    ) {
        match notified {
            Notified::Now => self.turn_away(message, why),
            Notified::Already => self.drop_unheard(message),
        }
    }

    pub(crate) fn turn_away(self: &Arc<Self>, message: AcceptedMessage, why: &'static str) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            let reply = Redacted::constant(why);
            let delivered = gateway
                .outbox
                .deliver(&message, &reply, MessageEnd::Refused);
            if let Err(error) = delivered.await {
                tracing::error!(%error, "a message stays open");
            }
        });
    }

    /// Ends messages whose turn had not come, without holding anybody up.
    pub(crate) fn drop_later(self: &Arc<Self>, dropped: Vec<AcceptedMessage>, note: &'static str) {
        if dropped.is_empty() {
            return;
        }
        let gateway = Arc::clone(self);
        self.turns
            .spawn(async move { gateway.drop_waiting(dropped, note).await });
    }

    /// Ends messages whose turn had not come. Whoever waits for an answer of their own is told.
    pub(crate) async fn drop_waiting(&self, dropped: Vec<AcceptedMessage>, note: &'static str) {
        for message in dropped {
            let ended = if self.outbox.replies(&message.said().account) == ReplyRule::OneForEach {
                let reply = Redacted::constant(wording::DROPPED);
                let told = self
                    .outbox
                    .deliver(&message, &reply, MessageEnd::Refused)
                    .await;
                told.map(drop)
            } else {
                let row = message.row();
                self.inbox
                    .end(row, MessageEnd::Refused, Some(note), self.now())
                    .await
            };
            if let Err(error) = ended {
                tracing::error!(%error, "a dropped message stays open");
            }
        }
    }

    /// One reply for each message of a flood would be a flood of our own.
    fn drop_unheard(self: &Arc<Self>, message: AcceptedMessage) {
        let gateway = Arc::clone(self);
        self.turns.spawn(async move {
            let note = Some("too many waited");
            let now = gateway.now();
            let ended = gateway
                .inbox
                .end(message.row(), MessageEnd::Refused, note, now);
            if let Err(error) = ended.await {
                tracing::error!(%error, "a message stays open");
            }
        });
    }
}
