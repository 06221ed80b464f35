//! A press is acknowledged in time, whatever the store does.

use std::time::Duration;

use futures::future::{Either, select};
use hermetic_chat::Chat;
use hermetic_types::ButtonPress;
use tokio::pin;
use tokio::time::sleep;

/// Platforms take a press back after three seconds. Before this one has passed nothing is said, because
/// some show the words of the first answer only.
const LATE: Duration = Duration::from_secs(1);

/// Does the work. If it takes its time, the press is acknowledged meanwhile; the second value tells.
pub(super) async fn acknowledge_if_late<T>(
    chat: &dyn Chat,
    press: &ButtonPress,
    work: impl Future<Output = T>,
) -> (T, bool) {
    let acknowledge = async {
        sleep(LATE).await;
        if let Err(error) = chat.acknowledge_press(press).await {
            tracing::debug!(%error, "a press could not be acknowledged");
        }
    };
    pin!(work, acknowledge);
    match select(work, acknowledge).await {
        Either::Left((done, _)) => (done, false),
        // The same work goes on, it is not begun again: it may have written the answer already.
        Either::Right(((), work)) => (work.await, true),
    }
}

#[cfg(test)]
mod tests {
    use hermetic_chat::OutgoingText;
    use hermetic_types::{MessageId, Platform, Sender, UpdateId, UserId};
    use tokio::time::Instant;

    use super::*;
    use crate::test_chat::NotingChat;
    use crate::test_lab::TestLab;

    fn press() -> ButtonPress {
        ButtonPress {
            account: Platform::Discord.into(),
            update: UpdateId::from(1),
            query: "q1".to_owned(),
            place: TestLab::place(7),
            message: MessageId::from(2),
            sender: Sender {
                id: UserId::from(7),
                display: String::new(),
                is_bot: false,
                roles: Vec::new(),
            },
            data: "q:1".to_owned(),
            received_at: hermetic_types::Timestamp::UNIX_EPOCH,
        }
    }

    /// What the chat was asked to do, and how long it took.
    async fn after(work: Duration) -> (Vec<String>, Duration) {
        let (chat, begun) = (NotingChat::new("discord"), Instant::now());
        acknowledge_if_late(&chat, &press(), sleep(work)).await;
        let notice = OutgoingText::constant("Allowed once.");
        chat.answer_press(&press(), &notice).await.unwrap();
        (chat.noted(), begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_press_that_is_looked_up_quickly_is_answered_in_one_step() {
        let (noted, _) = after(Duration::from_millis(900)).await;
        assert_eq!(noted, ["answer q1: Allowed once."]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_takes_its_time_does_not_cost_the_press() {
        let minute = Duration::from_secs(60);
        let (noted, took) = after(minute).await;
        assert_eq!(noted, ["acknowledge q1", "answer q1: Allowed once."]);
        assert_eq!(took, minute);

        let (chat, press) = (NotingChat::new("discord"), press());
        let never = acknowledge_if_late(&chat, &press, std::future::pending::<()>());
        let within = tokio::time::timeout(Duration::from_secs(3), never).await;
        assert!(within.is_err());
        assert_eq!(chat.noted(), ["acknowledge q1"]);
    }
}
