//! What people say, and what of it is for us.

use hermetic_chat::{Chat, ChatEvent, ChatReply};
use hermetic_testkit::matrix::MatrixPerson;
use hermetic_types::ChatKind;
use serde_json::json;

use crate::lab::{Lab, next_event, next_message, outgoing, place};

#[tokio::test]
async fn in_a_room_a_mention_a_reply_or_our_thread_is_heard() {
    let Some(lab) = Lab::new("in_a_room_a_mention_is_heard").await else {
        return;
    };
    let bob = MatrixPerson::register(lab.synapse.url(), "bob")
        .await
        .unwrap();
    let room = lab.alice.opens_room(&[&lab.bot, &bob]).await;
    lab.bot.joins(&room).await;
    bob.joins(&room).await;
    let mut inbox = lab.listen().await;

    lab.alice.says(&room, "good morning").await;
    let asked = lab.alice.sends(
        &room,
        json!({ "msgtype": "m.text", "body": "robbie: what is it?",
        "m.mentions": { "user_ids": [lab.bot.user()] } }),
    );
    let asked = asked.await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "robbie: what is it?");
    assert!(heard.mentions_us);
    // It is answered in a thread of its own.
    let thread = place(&room, ChatKind::Thread, Some(&asked));
    assert_eq!(heard.place, thread);
    assert_eq!(heard.sender.id.as_str(), lab.alice.user());

    let reply = ChatReply {
        reply_to: Some(heard.message),
        ..ChatReply::text(outgoing("this"))
    };
    let sent = lab.matrix.send(&thread, &reply).await.unwrap();
    let shown = bob.shown(&room, lab.bot.user()).await;
    let relation = &shown[0].content["m.relates_to"];
    assert_eq!(
        (&relation["rel_type"], &relation["event_id"]),
        (&json!("m.thread"), &json!(asked))
    );

    bob.says(&room, "who is that?").await;
    bob.says_in_thread(&room, &asked, "and why?").await;
    let heard = next_message(&mut inbox).await;
    assert_eq!((heard.text.as_str(), &heard.place), ("and why?", &thread));

    let content = json!({ "msgtype": "m.text", "body": "> <@x:y> this\n\nsure?",
        "m.mentions": {}, "m.relates_to": { "m.in_reply_to": { "event_id": sent[0].as_str() } } });
    bob.sends(&room, content).await;
    let heard = next_message(&mut inbox).await;
    let quoted = heard.reply_to.unwrap();
    assert_eq!(heard.text, "sure?");
    assert!(quoted.from_us && heard.mentions_us);
    assert_eq!(quoted.text, "this");

    // Another process knows the thread by asking.
    lab.settle(&mut inbox).await;
    drop(inbox);
    let again = lab.restarted();
    let mut inbox = crate::lab::listen(&again, &lab.proxy).await;
    let aside = lab.alice.says(&room, "among ourselves").await;
    bob.says_in_thread(&room, &aside, "a thread without us")
        .await;
    bob.says_in_thread(&room, &asked, "still there?").await;
    assert_eq!(next_message(&mut inbox).await.text, "still there?");
}

fn edit(of: &str, body: &str) -> serde_json::Value {
    json!({ "msgtype": "m.text", "body": format!("* {body}"), "m.mentions": {},
        "m.new_content": { "msgtype": "m.text", "body": body, "m.mentions": {} },
        "m.relates_to": { "rel_type": "m.replace", "event_id": of } })
}

#[tokio::test]
async fn a_change_is_told_with_what_the_message_reads_now_and_so_is_a_deletion() {
    let Some(lab) = Lab::new("a_change_is_told").await else {
        return;
    };
    let bob = MatrixPerson::register(lab.synapse.url(), "bob")
        .await
        .unwrap();
    let room = lab.alice.opens_room(&[&lab.bot, &bob]).await;
    lab.bot.joins(&room).await;
    bob.joins(&room).await;
    let mut inbox = lab.listen().await;
    let said = lab.alice.sends(
        &room,
        json!({ "msgtype": "m.text", "body": "paint it red",
        "m.mentions": { "user_ids": [lab.bot.user()] } }),
    );
    let said = said.await;
    let heard = next_message(&mut inbox).await;
    // Nobody changes another one's words, whatever the homeserver lets pass.
    bob.sends(&room, edit(&said, "paint it black")).await;
    let change = lab.alice.sends(&room, edit(&said, "paint it blue")).await;
    let ChatEvent::Edited(edited) = next_event(&mut inbox).await else {
        panic!("expected a change");
    };
    assert_eq!(edited.text, "paint it blue");
    assert_eq!(
        (&edited.message, &edited.place, &edited.sender.id),
        (&heard.message, &heard.place, &heard.sender.id)
    );
    assert_eq!(edited.update.as_str(), change);
    // In a thread, too, and of what was written while we were away.
    let follows = lab.alice.says_in_thread(&room, &said, "and shin it").await;
    let heard = next_message(&mut inbox).await;
    lab.settle(&mut inbox).await;
    drop(inbox);
    lab.alice.sends(&room, edit(&follows, "and shine it")).await;
    let again = lab.restarted();
    let mut inbox = again.receive(tokio_util::sync::CancellationToken::new());
    let ChatEvent::Edited(edited) = next_event(&mut inbox).await else {
        panic!("expected a change");
    };
    assert_eq!(
        (edited.text.as_str(), &edited.message, &edited.place),
        ("and shine it", &heard.message, &heard.place)
    );
    lab.alice.redacts(&room, &follows).await;
    match next_event(&mut inbox).await {
        ChatEvent::Deleted(deleted) => {
            assert_eq!(deleted.message.as_str(), follows);
            assert_eq!(deleted.chat.as_str(), room);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn names_are_shown_and_compared_with_nothing() {
    let Some(lab) = Lab::new("names_are_shown").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    let name = "\u{202e}nimda\u{200b}\u{2066}";
    let path = [
        "rooms",
        &lab.room,
        "state",
        "m.room.member",
        lab.alice.user(),
    ];
    let member = json!({ "membership": "join", "displayname": name });
    lab.alice.put(&path, member).await;
    lab.alice.says(&lab.room, "\u{202e}olleh\u{200b}").await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.sender.display, name);
    assert_eq!(heard.sender.id.as_str(), lab.alice.user());
    assert_eq!(heard.text, "\u{202e}olleh\u{200b}");
}

#[tokio::test]
async fn two_in_a_room_are_alone_and_a_third_makes_it_a_group() {
    let Some(lab) = Lab::new("two_in_a_room_are_alone").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    lab.alice.says(&lab.room, "alone").await;
    assert_eq!(next_message(&mut inbox).await.place, lab.private());
    let bob = MatrixPerson::register(lab.synapse.url(), "bob")
        .await
        .unwrap();
    lab.alice
        .post(
            &["rooms", &lab.room, "invite"],
            json!({ "user_id": bob.user() }),
        )
        .await;
    // Somebody who is only invited may read it tomorrow.
    lab.alice.says(&lab.room, "not for us any more").await;
    let local = lab.bot.user().split(':').next().unwrap().to_owned();
    lab.alice
        .says(&lab.room, &format!("{local} are you there?"))
        .await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "are you there?");
    assert_eq!(heard.place.kind, ChatKind::Thread);
}
