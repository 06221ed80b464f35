//! Whose invitations are accepted, what a room tells of itself, and rooms that are not spoken in.

use hermetic_chat::{Chat, ChatReply, SendFailure};
use hermetic_testkit::matrix::{MatrixPerson, ProxyFault};
use hermetic_types::{ChatKind, UserId};
use serde_json::json;

use crate::lab::{Lab, next_message, outgoing, place, private};

#[tokio::test]
async fn a_room_of_ten_thousand_is_a_room_and_nobody_in_it_is_mistaken() {
    let Some(lab) = Lab::new("a_room_of_ten_thousand").await else {
        return;
    };
    let bob = MatrixPerson::register(lab.synapse.url(), "bob")
        .await
        .unwrap();
    let room = lab.alice.opens_room(&[&lab.bot, &bob]).await;
    lab.bot.joins(&room).await;
    let mut inbox = lab.listen().await;
    lab.proxy.spoil(ProxyFault::Crowd {
        room: room.clone(),
        members: 10_000,
    });
    let mention = json!({ "msgtype": "m.text", "body": "is it full?",
        "m.mentions": { "user_ids": [lab.bot.user()] } });
    lab.alice.says(&room, "to nobody in particular").await;
    lab.alice.sends(&room, mention).await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "is it full?");
    assert_eq!(heard.place.kind, ChatKind::Thread);
    assert_eq!(heard.sender.id.as_str(), lab.alice.user());
    // What follows is as quick as ever: nobody is asked for who is there.
    lab.settle(&mut inbox).await;
    let asked = lab.proxy.requests();
    let lists = asked
        .iter()
        .filter(|path| path.contains("/members") || path.contains("joined_members"));
    assert_eq!(lists.count(), 0, "{asked:?}");
    let reply = ChatReply::text(outgoing("it is"));
    lab.matrix.send(&heard.place, &reply).await.unwrap();
    assert_eq!(said_there(&lab, &room).await, ["it is"]);
}

async fn said_there(lab: &Lab, room: &str) -> Vec<String> {
    let shown = lab.alice.shown(room, lab.bot.user()).await;
    shown.into_iter().map(|one| one.text).collect()
}

#[tokio::test]
async fn who_may_write_may_invite_and_is_heard_from_the_invitation_on() {
    let Some(lab) = Lab::new("who_may_write_may_invite").await else {
        return;
    };
    let bob = MatrixPerson::register(lab.synapse.url(), "bob")
        .await
        .unwrap();
    let mut inbox = lab.listen().await;
    let strangers = bob.opens_private(&lab.bot).await;
    let room = lab.alice.opens(json!({ "preset": "private_chat" })).await;
    lab.alice.says(&room, "before you came").await;
    lab.alice
        .post(
            &["rooms", &room, "invite"],
            json!({ "user_id": lab.bot.user() }),
        )
        .await;
    lab.alice.says(&room, "and now?").await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), &heard.place),
        ("and now?", &private(&room))
    );
    let members = bob.members(&strangers).await;
    let ours = members
        .iter()
        .find(|(user, _, _)| user == lab.bot.user())
        .unwrap();
    assert_eq!((ours.1.as_str(), &ours.2), ("invite", &None));
    // Thrown out, nothing can be said there, and that is told.
    lab.alice.kicks(&room, lab.bot.user()).await;
    let reply = ChatReply::text(outgoing("still here"));
    let refused = lab.matrix.send(&private(&room), &reply).await.unwrap_err();
    assert!(
        matches!(refused.failure, SendFailure::Refused { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn strangers_may_ask_to_be_let_in_where_they_get_a_code() {
    let Some(lab) = Lab::with("strangers_may_ask", |config| config.invites.pairing = true).await
    else {
        return;
    };
    let bob = MatrixPerson::register(lab.synapse.url(), "bob")
        .await
        .unwrap();
    let mut inbox = lab.listen().await;
    let group = bob.opens_room(&[&lab.bot]).await;
    let room = bob.opens_private(&lab.bot).await;
    bob.says(&room, "may I?").await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.sender.id.as_str(), bob.user());
    let members = bob.members(&group).await;
    let ours = members
        .iter()
        .find(|(user, _, _)| user == lab.bot.user())
        .unwrap();
    assert_eq!(ours.1, "invite", "not into rooms");
}

#[tokio::test]
async fn an_encrypted_room_is_declined_with_a_reason_and_never_written_to() {
    let Some(lab) = Lab::new("an_encrypted_room_is_declined").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    let encryption = json!({ "algorithm": "m.megolm.v1.aes-sha2" });
    let room = lab.alice.opens(json!({
        "preset": "trusted_private_chat", "is_direct": true, "invite": [lab.bot.user()],
        "initial_state": [{ "type": "m.room.encryption", "state_key": "", "content": encryption }],
    }));
    let room = room.await;
    // The stream is what answers invitations.
    let reason = tokio::select! {
        reason = lab.alice.waits_until_member(&room, lab.bot.user(), "leave") => reason,
        heard = next_message(&mut inbox) => panic!("{heard:?}"),
    };
    let reason = reason.unwrap();
    assert!(reason.contains("room without encryption"), "{reason}");

    // One that becomes encrypted while we are in it.
    let before = ChatReply::text(outgoing("in plain"));
    lab.matrix.send(&lab.private(), &before).await.unwrap();
    lab.alice
        .sets_state(&lab.room, "m.room.encryption", encryption)
        .await;
    lab.alice
        .sends_event(&lab.room, "m.room.encrypted", json!({ "ciphertext": "x" }))
        .await;
    let asked = lab.proxy.sync_count();
    tokio::select! {
        heard = next_message(&mut inbox) => panic!("{heard:?}"),
        () = lab.proxy.syncs(asked + 2) => {}
    }
    let secret = ChatReply::text(outgoing("a secret"));
    for matrix in [&*lab.matrix, &lab.restarted()] {
        let refused = matrix.send(&lab.private(), &secret).await.unwrap_err();
        let SendFailure::Refused { description } = &refused.failure else {
            panic!("{refused:?}");
        };
        assert!(
            description.contains("end-to-end encrypted"),
            "{description}"
        );
    }
    // Whoever has to be reached alone is reached in a room that can be read.
    let alice = UserId::new(lab.alice.user()).unwrap();
    let open = lab.matrix.private_place(&alice).await.unwrap();
    assert_ne!(open, lab.private());
    assert_eq!(
        lab.matrix.private_place(&alice).await.unwrap(),
        open,
        "one is opened, not two"
    );
    let shown = lab.alice.shown(&lab.room, lab.bot.user()).await;
    assert_eq!(shown.len(), 1, "{shown:?}");
    let check = lab.matrix.check().await.unwrap();
    assert_eq!(check.name.as_deref(), Some(lab.bot.user()));
    assert!(
        check.shortcomings[0].problem.contains("1 of its rooms"),
        "{check:?}"
    );
}

#[tokio::test]
async fn a_room_of_many_is_a_group_and_costs_no_list_of_them() {
    let Some(lab) = Lab::new("a_room_of_many").await else {
        return;
    };
    let room = lab
        .alice
        .opens(json!({ "preset": "public_chat", "invite": [lab.bot.user()] }))
        .await;
    for number in 0..12 {
        let name = format!("member{number}");
        let member = MatrixPerson::register(lab.synapse.url(), &name)
            .await
            .unwrap();
        member.joins(&room).await;
    }
    let mut inbox = lab.listen().await;
    lab.alice
        .waits_until_member(&room, lab.alice.user(), "join")
        .await;
    lab.alice.says(&room, "to everybody").await;
    let hello = json!({ "msgtype": "m.text", "body": "hello",
        "m.mentions": { "user_ids": [lab.bot.user()] } });
    let asked = lab.alice.sends(&room, hello).await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.place, place(&room, ChatKind::Thread, Some(&asked)));
    let lists = lab.proxy.requests();
    assert!(
        !lists
            .iter()
            .any(|request| request.contains("/joined_members") || request.contains("/members")),
        "{lists:?}"
    );
}
