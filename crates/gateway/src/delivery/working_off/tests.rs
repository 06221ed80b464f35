use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use hermetic_chat::{
    Capabilities, Chat, ChatReply, ChatState, OutgoingFile, ReceiveError, ReceivedEvent, SendError,
};
use hermetic_redact::{Redacted, Redactor};
use hermetic_store::{MessageEnd, RowOwner};
use hermetic_types::{AccountId, ChatPlace, ConversationKey, MessageId, Platform, SystemClock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::delivery::outbox::DeliveryAddress;
use crate::delivery::{FetchError, FileSource, OutboxParts};
use crate::test_chat::NotingChat;
use crate::test_lab::TestLab;

/// How a send goes wrong, beyond what a platform can answer.
#[derive(Clone, Copy, Debug)]
enum Breakdown {
    Panics,
    NeverEnds,
}

#[derive(Debug)]
struct BreakingChat {
    works: NotingChat,
    breakdowns: Mutex<VecDeque<Breakdown>>,
    sent: Notify,
}

impl Chat for BreakingChat {
    fn account(&self) -> &AccountId {
        self.works.account()
    }

    fn capabilities(&self) -> &Capabilities {
        self.works.capabilities()
    }

    fn state(&self) -> ChatState {
        ChatState::Connected
    }

    fn receive(
        &self,
        stop: CancellationToken,
    ) -> BoxStream<'_, Result<ReceivedEvent, ReceiveError>> {
        self.works.receive(stop)
    }

    fn send<'a>(
        &'a self,
        place: &'a ChatPlace,
        reply: &'a ChatReply,
    ) -> BoxFuture<'a, Result<Vec<MessageId>, SendError>> {
        let breakdown = self.breakdowns.lock().unwrap().pop_front();
        Box::pin(async move {
            match breakdown {
                Some(Breakdown::Panics) => panic!("a bug in an adapter"),
                Some(Breakdown::NeverEnds) => std::future::pending().await,
                None => {}
            }
            let sent = self.works.send(place, reply).await;
            self.sent.notify_one();
            sent
        })
    }
}

struct BreakingLab {
    lab: TestLab,
    chat: Arc<BreakingChat>,
    outbox: Arc<Outbox>,
    stop: CancellationToken,
}

impl BreakingLab {
    async fn new(breakdowns: impl IntoIterator<Item = Breakdown>) -> Self {
        let lab = TestLab::new().await;
        let chat = Arc::new(BreakingChat {
            works: NotingChat::new("telegram"),
            breakdowns: Mutex::new(breakdowns.into_iter().collect()),
            sent: Notify::new(),
        });
        let mut outbox = Outbox::new(OutboxParts {
            chats: &[Arc::clone(&chat) as Arc<dyn Chat>],
            store: &lab.store,
            files: Arc::new(NoFiles),
            redactor: Redactor::new([], hermetic_redact::RedactorSettings::default()),
            clock: SystemClock::shared(),
            tasks: TaskTracker::new(),
            cut: CancellationToken::new(),
            metrics: crate::GatewayMetrics::default(),
            traces: crate::MessageTraces::default(),
        });
        outbox.ledger_pause = Duration::from_millis(50);
        let (outbox, stop) = (Arc::new(outbox), CancellationToken::new());
        let (resending, until) = (Arc::clone(&outbox), stop.clone());
        tokio::spawn(async move { resending.resend(until).await });
        Self {
            lab,
            chat,
            outbox,
            stop,
        }
    }

    async fn deliver(&self, text: &'static str) {
        let message = self.lab.says(7, "hi").await;
        let text = Redacted::constant(text);
        let delivered = self.outbox.deliver(&message, &text, MessageEnd::Answered);
        let _ = delivered.await.unwrap();
    }

    /// What was sent, once it is so much.
    async fn sent(&self, count: usize) -> Vec<String> {
        loop {
            let seen = self.chat.works.noted();
            if seen.len() >= count {
                return seen;
            }
            self.chat.sent.notified().await;
        }
    }

    async fn until_nothing_is_due(&self) {
        let deliveries = self.lab.store.deliveries();
        while !deliveries
            .due(RowOwner::ThisGateway)
            .await
            .unwrap()
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for BreakingLab {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[tokio::test]
async fn a_panic_while_sending_does_not_close_the_line() {
    let lab = BreakingLab::new([Breakdown::Panics]).await;
    lab.deliver("first").await;
    lab.deliver("second").await;
    let sent = lab.sent(2).await;
    // The first may have left before it broke down.
    assert!(sent[0].contains("Possible duplicate"), "{sent:?}");
    assert!(sent[1].contains("second"), "{sent:?}");
    lab.until_nothing_is_due().await;
}

#[tokio::test]
async fn whoever_stops_waiting_while_it_is_sent_does_not_close_the_line() {
    let lab = BreakingLab::new([Breakdown::NeverEnds]).await;
    let began = {
        let delivering = lab.deliver("first");
        tokio::pin!(delivering);
        let begun = async {
            while !lab.chat.breakdowns.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = &mut delivering => false,
            () = begun => true,
        }
    };
    assert!(began, "it was sent");
    lab.deliver("second").await;
    let sent = lab.sent(2).await;
    assert!(sent[0].contains("Possible duplicate"), "{sent:?}");
    assert!(sent[1].contains("second"), "{sent:?}");
    lab.until_nothing_is_due().await;
}

#[tokio::test]
async fn a_ledger_that_fails_for_a_while_costs_no_reply_and_doubles_none() {
    for (state, what) in [
        ("sending", "before it is sent"),
        ("sent", "after it was sent"),
    ] {
        let lab = BreakingLab::new([]).await;
        lab.lab.spoil(&format!(
            "CREATE TRIGGER broken BEFORE UPDATE ON deliveries WHEN NEW.state = '{state}'
             BEGIN SELECT RAISE(ABORT, 'broken'); END"
        ));
        lab.deliver("first").await;
        lab.lab.spoil("DROP TRIGGER broken");
        lab.deliver("second").await;
        let sent = lab.sent(2).await;
        lab.until_nothing_is_due().await;
        assert_eq!(lab.sent(2).await.len(), 2, "{what}: {sent:?}");
        assert!(
            sent[0].contains(": first") && sent[1].contains(": second"),
            "{what}: {sent:?}"
        );
    }
}

#[tokio::test]
async fn what_was_left_is_taken_over_whole_or_not_at_all() {
    let lab = BreakingLab::new([]).await;
    let deliveries = lab.lab.store.deliveries();
    let address = DeliveryAddress {
        place: TestLab::place(7),
        reply_to: None,
        draft: None,
        files: Vec::new(),
        conversation: None,
        late: false,
    };
    let address = serde_json::to_string(&address).unwrap();
    let now = lab.outbox.now();
    for (address, text) in [(address.as_str(), "left"), ("unreadable", "lost")] {
        let queued = deliveries.queue(("telegram", address, text), now);
        queued.await.unwrap();
    }
    lab.lab.spoil(
        "CREATE TRIGGER broken BEFORE UPDATE ON deliveries WHEN NEW.state = 'failed'
         BEGIN SELECT RAISE(ABORT, 'broken'); END",
    );
    assert!(lab.outbox.take_over().await.is_err());
    lab.lab.spoil("DROP TRIGGER broken");
    // Again as a whole, as a start does that waits for room.
    assert_eq!(lab.outbox.take_over().await.unwrap(), 2);
    // Behind it in its line, so a second one would come before.
    lab.deliver("last").await;
    lab.until_nothing_is_due().await;
    assert_eq!(lab.sent(2).await.len(), 2, "sent twice");
}

#[derive(Debug)]
struct NoFiles;

impl FileSource for NoFiles {
    fn fetch<'a>(
        &'a self,
        _: Platform,
        _: &'a ConversationKey,
        _: &'a str,
    ) -> BoxFuture<'a, Result<OutgoingFile, FetchError>> {
        unreachable!("no reply here has a file")
    }

    fn folder(&self, _: Platform) -> &str {
        "/workspace"
    }
}
