//! What comes in: nothing lost, nothing twice under two names.

use futures::StreamExt;
use futures::future::join;
use tokio_util::sync::CancellationToken;

use super::candidate::{ChatCandidate, in_time, message, next, next_message, outgoing};
use crate::{ChatEvent, ChatReply, ChatState, Redelivery, ReplyButton};

pub async fn an_event_comes_again_until_it_is_stored(candidate: ChatCandidate) {
    if candidate.chat.capabilities().redelivery == Redelivery::Never {
        return;
    }
    let mut inbox = candidate.listen();
    let (first, again) = {
        candidate.stand_in.says("hello");
        let received = next(&mut inbox).await;
        drop(received.receipt);
        (message(received.event), next_message(&mut inbox).await)
    };
    assert_eq!(first.update, again.update, "one event has one name");
    assert_eq!(
        (first.text.as_str(), again.text.as_str()),
        ("hello", "hello")
    );
    assert_eq!(first.sender.id, candidate.stand_in.person());
    assert_eq!(first.place, candidate.stand_in.place());
    assert_eq!(candidate.chat.state(), ChatState::Connected);
}

pub async fn a_stored_event_does_not_come_again(candidate: ChatCandidate) {
    let mut inbox = candidate.listen();
    candidate.stand_in.says("one");
    let one = next_message(&mut inbox).await;
    candidate.stand_in.repeats();
    candidate.stand_in.says("two");
    // It may be handed over once more, under its own name: the ledger knows that.
    let two = loop {
        let heard = next_message(&mut inbox).await;
        if heard.update != one.update {
            break heard;
        }
    };
    assert_eq!(two.text, "two");
}

pub async fn what_is_no_event_holds_up_nothing(candidate: ChatCandidate) {
    let mut inbox = candidate.listen();
    candidate.stand_in.says("before");
    assert_eq!(next_message(&mut inbox).await.text, "before");
    candidate.stand_in.sends_garbage();
    candidate.stand_in.says("after");
    assert_eq!(next_message(&mut inbox).await.text, "after");
}

pub async fn a_press_comes_back_with_its_data(candidate: ChatCandidate) {
    let Some(limits) = candidate.chat.capabilities().buttons else {
        return;
    };
    let data = "x".repeat(limits.data_bytes.min(ReplyButton::DATA_BYTES));
    let mut reply = ChatReply::text(outgoing("May I?"));
    reply.buttons = vec![vec![ReplyButton::new("Yes", &data).expect("it fits")]];
    let sent = candidate.try_to_send(&reply);
    let sent = sent.await.expect("buttons can be sent");
    let asked = sent.last().expect("a message was made");

    let mut inbox = candidate.listen();
    // Something is said first, because a platform may want to be asked before it tells of presses.
    candidate.stand_in.says("hello");
    next_message(&mut inbox).await;
    candidate.stand_in.presses(asked, &data);
    let received = next(&mut inbox).await;
    received.receipt.stored();
    let ChatEvent::Press(press) = received.event else {
        panic!("expected a press, got {:?}", received.event);
    };
    assert_eq!(
        (press.data.as_str(), &press.message),
        (data.as_str(), asked)
    );
    assert_eq!(press.sender.id, candidate.stand_in.person());
    assert_eq!(press.account, *candidate.chat.account());
    // At once, and only then in words.
    let chat = &candidate.chat;
    chat.acknowledge_press(&press).await.expect("it is known");
    let notice = outgoing("Allowed once.");
    chat.answer_press(&press, &notice)
        .await
        .expect("it is said");
}

pub async fn a_changed_and_a_deleted_message_are_told(candidate: ChatCandidate) {
    let told = candidate.chat.capabilities().reports_changes;
    let mut inbox = candidate.listen();
    candidate.stand_in.says("paint it red");
    let said = next_message(&mut inbox).await;
    if told.edits {
        candidate.stand_in.edits(&said.message, "paint it blue");
        let received = next(&mut inbox).await;
        received.receipt.stored();
        let ChatEvent::Edited(edited) = received.event else {
            panic!("expected a change, got {:?}", received.event);
        };
        assert_eq!(edited.text, "paint it blue");
        assert_eq!(
            (&edited.message, &edited.place, &edited.sender.id),
            (&said.message, &said.place, &said.sender.id)
        );
        assert_ne!(
            edited.update, said.update,
            "a change is an event of its own"
        );
    }
    if told.deletions {
        candidate.stand_in.deletes(&said.message);
        let received = next(&mut inbox).await;
        received.receipt.stored();
        let ChatEvent::Deleted(deleted) = received.event else {
            panic!("expected a deletion, got {:?}", received.event);
        };
        assert_eq!(
            (&deleted.message, &deleted.chat, &deleted.account),
            (&said.message, &said.place.chat, candidate.chat.account())
        );
    }
}

pub async fn a_lost_connection_comes_back(candidate: ChatCandidate) {
    let mut inbox = candidate.listen();
    candidate.stand_in.says("before");
    let before = next_message(&mut inbox).await;
    assert_eq!(before.text, "before");
    if !candidate.stand_in.cuts() {
        return;
    }
    candidate.stand_in.says("after");
    let after = loop {
        let heard = next_message(&mut inbox).await;
        if heard.update != before.update {
            break heard;
        }
    };
    assert_eq!(after.text, "after");
    assert_eq!(candidate.chat.state(), ChatState::Connected);
}

pub async fn listening_ends_when_it_is_asked_to(candidate: ChatCandidate) {
    let stop = CancellationToken::new();
    let mut inbox = candidate.chat.receive(stop.clone());
    candidate.stand_in.says("hello");
    next_message(&mut inbox).await;
    stop.cancel();
    assert!(in_time("the end", inbox.next()).await.is_none());
    assert!(matches!(candidate.chat.state(), ChatState::Stopped { .. }));
}

pub async fn two_accounts_are_told_apart(one: ChatCandidate, two: ChatCandidate) {
    assert_ne!(one.chat.account(), two.chat.account());
    // Both at once, and neither hears what is said to the other.
    let (mut first, mut second) = (one.listen(), two.listen());
    for round in ["hello", "and again"] {
        one.stand_in.says(&format!("{round}, one"));
        two.stand_in.says(&format!("{round}, two"));
        let (to_one, to_two) = join(next_message(&mut first), next_message(&mut second)).await;
        for (heard, candidate, name) in [(to_one, &one, "one"), (to_two, &two, "two")] {
            assert_eq!(heard.account, *candidate.chat.account());
            assert_eq!(heard.text, format!("{round}, {name}"));
        }
    }
}
