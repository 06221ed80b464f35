use super::*;

use futures::StreamExt;
use hermetic_chat::{Chat, ChatEvent, ChatReply, OutgoingText, ReceivedEvent, SendFailure};
use hermetic_types::{ChatKind, ChatPlace, SystemClock};
use tokio_util::sync::CancellationToken;

fn chat() -> FakeChat {
    FakeChat::new(Platform::Telegram, SystemClock::shared())
}

fn place() -> ChatPlace {
    ChatPlace {
        chat: ChatId::from(7),
        kind: ChatKind::Dm,
        thread: None,
    }
}

fn words(received: &ReceivedEvent) -> &str {
    match &received.event {
        ChatEvent::Message(said) | ChatEvent::Edited(said) => &said.text,
        ChatEvent::Press(press) => &press.data,
        ChatEvent::Deleted(deleted) => deleted.message.as_str(),
        ChatEvent::Undelivered(lost) => lost.key.as_str(),
    }
}

#[tokio::test]
async fn what_was_not_signed_for_comes_again_and_what_was_does_not() {
    let chat = chat();
    let (one, two) = (chat.says(7, "one"), chat.says(7, "two"));
    let mut heard = chat.receive(CancellationToken::new());
    drop(heard.next().await.unwrap().unwrap());
    let second = heard.next().await.unwrap().unwrap();
    assert_eq!(words(&second), "two");
    second.receipt.stored();
    let again = heard.next().await.unwrap().unwrap();
    assert_eq!(words(&again), "one");
    drop(heard);
    // A listener that goes away with a receipt in its hand: the next one is handed the event.
    let mut heard = chat.receive(CancellationToken::new());
    let again = heard.next().await.unwrap().unwrap();
    assert_eq!(words(&again), "one");
    again.receipt.stored();
    chat.all_signed().await;
    assert!(chat.is_signed(one) && chat.is_signed(two));
}

#[tokio::test]
async fn sends_fail_as_ordered_and_the_record_tells_what_arrived() {
    let chat = chat();
    for fault in [
        Fault::NotSent,
        Fault::UncertainAndLost,
        Fault::UncertainAndArrived,
    ] {
        chat.fail_next(Operation::Send, fault);
    }
    let reply = ChatReply::text(OutgoingText::constant("**hello**"));
    let (here, mut failures) = (place(), Vec::new());
    for _ in 0..3 {
        failures.push(chat.send(&here, &reply).await.unwrap_err().failure);
    }
    assert!(failures[0].is_safe_to_repeat());
    assert!(matches!(failures[1], SendFailure::Uncertain(_)));
    let sent = chat.messages(7, 1).await;
    assert_eq!((sent.len(), sent[0].text().as_str()), (1, "hello"));
    assert!(chat.send(&here, &reply).await.is_ok());
}

#[tokio::test]
async fn a_send_that_hangs_goes_on_when_it_is_released() {
    let chat = chat();
    chat.fail_next(Operation::Send, Fault::Hang);
    let reply = ChatReply::text(OutgoingText::constant("late"));
    let here = place();
    let release = async {
        chat.tried(Operation::Send, 1).await;
        assert_eq!(chat.record().messages.len(), 0);
        chat.release();
    };
    let (sent, ()) = tokio::join!(chat.send(&here, &reply), release);
    assert_eq!(sent.unwrap().len(), 1);
}
