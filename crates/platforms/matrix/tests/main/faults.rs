//! Events that nobody honest sends.

use hermetic_chat::{Chat, ChatEvent, ChatReply, ReplyButton};
use hermetic_testkit::matrix::{MatrixPerson, ProxyFault};
use serde_json::json;

use crate::lab::{Lab, next_event, next_message, outgoing};

#[tokio::test]
async fn forged_events_hold_up_nothing_and_order_nothing() {
    let Some(lab) = Lab::new("forged_events").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    let event = |id: &str, sender: &str, content: serde_json::Value| {
        json!({ "type": "m.room.message", "event_id": id, "sender": sender, "content": content,
            "origin_server_ts": 0 })
    };
    let says = json!({ "msgtype": "m.text", "body": "rm -r /" });
    let alice = lab.alice.user();
    let events = vec![
        event("no event", alice, says.clone()),
        event(&format!("${}", "x".repeat(5000)), alice, says.clone()),
        event("$a", "nobody", says.clone()),
        event("$b", lab.bot.user(), says.clone()),
        event(
            "$c",
            alice,
            json!({ "msgtype": ["m.text"], "body": { "a": 1 } }),
        ),
        event(
            "$d",
            alice,
            json!({ "msgtype": "m.file", "body": "x", "url": "http://127.0.0.1/x" }),
        ),
        json!({ "type": "m.room.message", "event_id": "$e", "sender": alice, "state_key": "",
            "content": says }),
        json!({ "type": "m.reaction", "event_id": "$f", "sender": alice,
            "content": { "m.relates_to": { "rel_type": "m.annotation", "event_id": "$x", "key": "👍" } } }),
    ];
    lab.proxy.spoil(ProxyFault::Forge {
        room: lab.room.clone(),
        events,
    });
    lab.alice.says(&lab.room, "honest").await;
    assert_eq!(next_message(&mut inbox).await.text, "honest");
}

#[tokio::test]
async fn a_reaction_answers_the_question_it_is_under_and_no_other() {
    let Some(lab) = Lab::new("a_reaction_answers").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    let mut question = ChatReply::text(outgoing("May I?"));
    let button = |label: &str, data: &str| ReplyButton::new(label, data).unwrap();
    question.buttons = vec![vec![button("Yes", "q:yes"), button("No", "q:no")]];
    let asked = lab.matrix.send(&lab.private(), &question).await.unwrap();
    let plain = ChatReply::text(outgoing("No question."));
    let other = lab.matrix.send(&lab.private(), &plain).await.unwrap();
    // In another room the same question means nothing, whoever forges the reference.
    let bob = MatrixPerson::register(lab.synapse.url(), "bob")
        .await
        .unwrap();
    let room = bob.opens_room(&[&lab.bot]).await;
    lab.bot.joins(&room).await;
    bob.says(&room, "alone with it").await;
    assert_eq!(next_message(&mut inbox).await.text, "alone with it");
    lab.proxy.spoil(ProxyFault::Forge {
        room: room.clone(),
        events: vec![json!({ "type": "m.reaction", "event_id": "$f", "sender": bob.user(),
            "content": { "m.relates_to": { "rel_type": "m.annotation", "event_id": asked[0].as_str(),
                "key": "👍" } } })],
    });
    bob.says(&room, "and that was all").await;
    assert_eq!(next_message(&mut inbox).await.text, "and that was all");
    lab.alice.reacts(&lab.room, other[0].as_str(), "👍").await;
    lab.alice.reacts(&lab.room, asked[0].as_str(), "🎉").await;
    let taken_back = lab.alice.reacts(&lab.room, asked[0].as_str(), "👎").await;
    let ChatEvent::Press(press) = next_event(&mut inbox).await else {
        panic!("expected a press");
    };
    assert_eq!((press.data.as_str(), &press.message), ("q:no", &asked[0]));
    // The reactions are offered below the question, so that one touch is enough.
    let events = lab.alice.events(&lab.room).await;
    let offered = events
        .iter()
        .filter(|event| event["type"] == "m.reaction" && event["sender"] == lab.bot.user());
    assert_eq!(offered.count(), 2);
    lab.alice.redacts(&lab.room, &taken_back).await;
    lab.matrix
        .answer_press(&press, &outgoing("Refused."))
        .await
        .unwrap();
}
