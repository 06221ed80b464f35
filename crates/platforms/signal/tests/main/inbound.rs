//! What is heard, from whom, and what is not.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::{Chat, ChatEvent, ChatReply, ChatState, CheckError};
use hermetic_signal::{HeardGroups, SignalAdapter};
use hermetic_testkit::chat_state::wait_until_retrying;
use hermetic_testkit::signal_server::{
    ALICE, BOB, Failure, NUMBER, OWNER, ReceiveMode, SignalServer, UUID, in_group,
};
use hermetic_types::{AttachmentKind, ChatId, UserId};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::lab::{GROUP, Lab, config, group, message, next, next_message, outgoing, private};

#[tokio::test]
async fn a_private_message_names_who_wrote_it() {
    let lab = Lab::new().await;
    let at = lab.server.says(ALICE, "hello");
    let heard = next_message(&mut lab.listen()).await;
    assert_eq!(
        (heard.text.as_str(), heard.sender.display.as_str()),
        ("hello", "Alice")
    );
    assert_eq!(heard.sender.id.as_str(), ALICE.uuid);
    assert_eq!(heard.place, private(ALICE));
    assert_eq!(heard.message.as_str(), format!("{at}/{}", ALICE.uuid));
    assert!(heard.mentions_us);
}

#[tokio::test]
async fn a_listed_number_is_a_name_even_if_it_is_hidden() {
    let number = UserId::new("+4915100000003").unwrap();
    let listed = number.clone();
    let lab = Lab::with(|config| config.listed = vec![listed]).await;
    lab.server.register("+4915100000003", BOB.uuid);
    lab.server.says(BOB, "it is me");
    assert_eq!(next_message(&mut lab.listen()).await.sender.id, number);
    let place = lab.signal.private_place(&number).await.unwrap();
    assert_eq!(place, private(BOB));
}

#[tokio::test]
async fn the_owner_is_heard_in_their_notes_and_in_groups_and_nowhere_else() {
    let lab = Lab::new().await;
    let reply = ChatReply::text(outgoing("ours"));
    let ours = lab.signal.send(&private(OWNER), &reply).await.unwrap();
    assert_eq!(lab.server.calls("send")[0].params["recipient"][0], UUID);
    lab.server.owner_writes(json!({ "message": "to a friend",
        "destinationNumber": ALICE.number, "destinationUuid": ALICE.uuid }));
    let timestamp: u64 = ours[0].as_str().parse().unwrap();
    lab.server
        .owner_writes(json!({ "message": "ours", "timestamp": timestamp }));
    lab.server.owner_writes(json!({ "message": "a note" }));
    let mut to_group = in_group(GROUP, "to the group");
    to_group["destinationNumber"] = json!(null);
    to_group["destinationUuid"] = json!(null);
    lab.server.owner_writes(to_group);
    let mut inbox = lab.listen();
    let note = next_message(&mut inbox).await;
    assert_eq!(
        (note.text.as_str(), &note.place),
        ("a note", &private(OWNER))
    );
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), &heard.place),
        ("to the group", &group())
    );
    assert_eq!(heard.sender.id.as_str(), UUID);
    // An answer goes into the notes again.
    let reply = ChatReply::text(outgoing("noted"));
    lab.signal.send(&note.place, &reply).await.unwrap();
    assert_eq!(lab.server.calls("send")[1].params["noteToSelf"], true);
}

#[tokio::test]
async fn in_groups_only_what_is_meant_for_us() {
    let lab = Lab::with(|config| {
        config.hearing.require_mention = true;
        config.hearing.groups = HeardGroups::Listed([ChatId::new(GROUP).unwrap()].into());
    })
    .await;
    let mention = |number: &str, start: usize| json!([{ "name": number, "number": number, "uuid": null, "start": start, "length": 1 }]);
    let say = |group: &str, text: &str, fields: serde_json::Value| {
        let mut message = in_group(group, text);
        message
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        lab.server.says_with(ALICE, message);
    };
    say(GROUP, "to nobody", json!({}));
    say(
        "b3RoZXI=",
        "\u{fffc} elsewhere",
        json!({ "mentions": mention(NUMBER, 0) }),
    );
    say(
        GROUP,
        "\u{fffc} not us",
        json!({ "mentions": mention("+4915100000009", 0) }),
    );
    say(
        GROUP,
        "😀 \u{fffc}, look",
        json!({ "mentions": mention(NUMBER, 3) }),
    );
    say(
        GROUP,
        "\u{fffc} /status now",
        json!({ "mentions": mention(NUMBER, 0) }),
    );
    say(
        GROUP,
        "a reply",
        json!({ "quote": { "id": 5, "author": NUMBER, "authorNumber": NUMBER,
        "authorUuid": UUID, "text": "we said", "attachments": [] } }),
    );
    let mut inbox = lab.listen();
    let mut heard = Vec::new();
    for _ in 0..3 {
        heard.push(next_message(&mut inbox).await);
    }
    let texts: Vec<_> = heard.iter().map(|heard| heard.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            format!("😀 @{NUMBER}, look").as_str(),
            "/status now",
            "a reply"
        ]
    );
    assert!(
        heard
            .iter()
            .all(|heard| heard.mentions_us && heard.place == group())
    );
    let quoted = heard[2].reply_to.as_ref().unwrap();
    assert_eq!(
        (
            quoted.from_us,
            quoted.text.as_str(),
            quoted.message.as_str()
        ),
        (true, "we said", "5")
    );
}

#[tokio::test]
async fn groups_are_not_listened_to_unless_they_are_named() {
    let lab = Lab::with(|config| config.hearing.groups = HeardGroups::None).await;
    lab.server.says_with(ALICE, in_group(GROUP, "hello group"));
    lab.server.says(ALICE, "hello");
    assert_eq!(next_message(&mut lab.listen()).await.text, "hello");
}

#[tokio::test]
async fn quotes_of_others_and_files_come_along() {
    let lab = Lab::new().await;
    lab.server.says_with(ALICE, json!({
        "message": "look",
        "quote": { "id": 7, "author": BOB.uuid, "authorUuid": BOB.uuid, "text": "/sh rm -r /" },
        "attachments": [
            { "contentType": "image/jpeg", "filename": "../../x.jpg", "id": "abc.jpg", "size": 10 },
            { "contentType": "application/pdf", "filename": null, "id": "d.pdf" },
            { "contentType": "image/png" },
        ],
    }));
    let heard = next_message(&mut lab.listen()).await;
    assert_eq!(heard.text, "look", "what was quoted is nobody's order");
    let quoted = heard.reply_to.unwrap();
    assert_eq!(
        (quoted.from_us, quoted.text.as_str()),
        (false, "/sh rm -r /")
    );
    assert_eq!(quoted.message.as_str(), format!("7/{}", BOB.uuid));
    let files: Vec<_> = heard
        .attachments
        .iter()
        .map(|file| (file.id.as_str(), file.kind))
        .collect();
    assert_eq!(
        files,
        [
            ("abc.jpg", AttachmentKind::Photo),
            ("d.pdf", AttachmentKind::Document)
        ]
    );
}

#[tokio::test]
async fn a_deleted_message_is_named_by_who_wrote_it() {
    let lab = Lab::new().await;
    lab.server
        .says_with(BOB, json!({ "remoteDelete": { "timestamp": 17 } }));
    let received = next(&mut lab.listen()).await;
    received.receipt.stored();
    let ChatEvent::Deleted(deleted) = received.event else {
        panic!("{:?}", received.event)
    };
    assert_eq!(deleted.chat, private(BOB).chat);
    assert_eq!(deleted.message.as_str(), format!("17/{}", BOB.uuid));
}

#[tokio::test]
async fn changes_are_told_by_the_name_of_the_first_wording() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let said = lab.server.says(ALICE, "paint it red");
    let heard = next_message(&mut inbox).await;
    let first = lab.server.edits(ALICE, said, "paint it blue");
    // An app may name the change before it instead.
    lab.server.edits(ALICE, first, "paint it green");
    let mut updates = vec![heard.update];
    for text in ["paint it blue", "paint it green"] {
        let received = next(&mut inbox).await;
        received.receipt.stored();
        let ChatEvent::Edited(edited) = received.event else {
            panic!("expected a change, got {:?}", received.event);
        };
        assert_eq!(edited.text, text);
        assert_eq!(
            (&edited.message, &edited.place),
            (&heard.message, &heard.place)
        );
        assert!(!updates.contains(&edited.update), "{updates:?}");
        updates.push(edited.update);
    }
}

#[tokio::test]
async fn what_was_not_stored_is_handed_out_again() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "hello");
    let first = next(&mut inbox).await;
    drop(first.receipt);
    let again = next_message(&mut inbox).await;
    assert_eq!(message(first.event).update, again.update);
    assert_eq!(again.text, "hello");
}

#[tokio::test]
async fn what_came_while_we_were_away_waits_for_us() {
    let lab = Lab::new().await;
    let stop = CancellationToken::new();
    let mut inbox = lab.signal.receive(stop.clone());
    lab.server.says(ALICE, "one");
    assert_eq!(next_message(&mut inbox).await.text, "one");
    drop(inbox);
    lab.server.wait_for_listeners(0).await;
    lab.server.says(ALICE, "two");
    // As after a restart.
    let reborn = SignalAdapter::new(config(&lab.server.url())).unwrap();
    let mut inbox = reborn.receive(CancellationToken::new());
    assert_eq!(next_message(&mut inbox).await.text, "two");
}

#[tokio::test]
async fn a_daemon_that_receives_for_nobody_is_named_by_a_check() {
    for (mode, lost) in [
        (ReceiveMode::OnStart, 1),
        (ReceiveMode::OnConnection, 0),
        (ReceiveMode::Manual, 0),
    ] {
        let server = SignalServer::start(mode).await.unwrap();
        let signal = SignalAdapter::new(config(&server.url())).unwrap();
        let check = signal.check().await.unwrap();
        assert_eq!(check.name.as_deref(), Some(NUMBER));
        assert_eq!(
            check.shortcomings.len(),
            lost,
            "{mode:?}: {:?}",
            check.shortcomings
        );
        assert_eq!(signal.state(), ChatState::Starting);
        assert_eq!(server.listeners(), 0, "a check takes no message");
    }
}

#[tokio::test]
async fn an_unlinked_account_is_said_and_tried_again() {
    let lab = Lab::with(|config| config.timing.ping = Duration::from_millis(10)).await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "before");
    assert_eq!(next_message(&mut inbox).await.text, "before");
    // The stream stays open, and nothing comes over it any more.
    lab.server.unlink();
    tokio::select! {
        why = wait_until_retrying(&*lab.signal) => assert!(why.contains("link it again"), "{why}"),
        _ = inbox.next() => panic!("nobody wrote"),
    }
    assert!(lab.signal.check().await.is_err());
    lab.server.link();
    lab.server.says(ALICE, "after");
    assert_eq!(next_message(&mut inbox).await.text, "after");
}

#[tokio::test]
async fn a_daemon_that_answers_although_it_was_unlinked_is_found_out() {
    let quick = Duration::from_millis(10);
    let lab = Lab::with(|config| {
        config.timing.ping = quick;
        config.timing.prove = quick;
    })
    .await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "before");
    let heard = next_message(&mut inbox).await;
    lab.server.orphan();
    tokio::select! {
        why = wait_until_retrying(&*lab.signal) => assert!(why.contains("link it again"), "{why}"),
        _ = inbox.next() => panic!("nobody wrote"),
    }
    let checked = lab.signal.check().await.unwrap_err();
    assert!(
        matches!(checked, CheckError::Unauthorized { .. }),
        "{checked}"
    );
    let reply = ChatReply::text(outgoing("too late"));
    let sent = lab.signal.send(&heard.place, &reply).await.unwrap_err();
    assert!(sent.failure.is_safe_to_repeat(), "{sent:?}");
    lab.server.link();
    lab.server.says(ALICE, "after");
    assert_eq!(next_message(&mut inbox).await.text, "after");
}

#[tokio::test]
async fn a_recording_is_told_from_a_file_of_sound() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    for (fields, expected) in [
        (
            json!({ "isVoiceNote": true, "filename": "note.aac" }),
            AttachmentKind::Voice,
        ),
        (json!({ "isVoiceNote": false }), AttachmentKind::Audio),
        // An older daemon does not say.
        (json!({ "filename": null }), AttachmentKind::Voice),
        (json!({ "filename": "song.mp3" }), AttachmentKind::Audio),
    ] {
        let mut file = json!({ "id": "a.aac", "contentType": "audio/aac", "size": 4 });
        file.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        lab.server
            .says_with(ALICE, json!({ "message": null, "attachments": [file] }));
        let heard = next_message(&mut inbox).await;
        assert_eq!(heard.attachments[0].kind, expected, "{fields}");
    }
}

#[tokio::test]
async fn trouble_is_ridden_out() {
    let lab = Lab::new().await;
    for failure in [
        Failure::Status(500),
        Failure::Status(404),
        Failure::Status(421),
        Failure::Drop,
    ] {
        lab.server.fail_next("events", failure);
    }
    lab.server.fail_next("version", Failure::Drop);
    lab.server.fail_next("getUserStatus", Failure::Status(500));
    lab.server.says(ALICE, "still here");
    let mut inbox = lab.listen();
    assert_eq!(next_message(&mut inbox).await.text, "still here");
    lab.server.hang_up();
    lab.server.says(ALICE, "again");
    assert_eq!(next_message(&mut inbox).await.text, "again");
}
