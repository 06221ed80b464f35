//! End-to-end encrypted rooms, with somebody at the other end who has keys and an app of their own.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{AdapterState, Chat, ChatEvent, ChatReply, OutgoingFile, SendFailure};
use hermetic_matrix::{DeviceTrust, EncryptionMode, MatrixAdapter, MatrixConfig, kept_device};
use hermetic_testkit::matrix::{MatrixPerson, SealedPerson};
use hermetic_types::{ChatKind, UserId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, config, listen, next, next_event, next_message, outgoing, place, private};

/// An account that speaks encrypted rooms, and Alice in one with it.
struct SealedLab {
    lab: Lab,
    alice: SealedPerson,
    room: String,
}

impl SealedLab {
    async fn new(test: &str) -> Option<Self> {
        Self::with(test, |_| {}).await
    }

    async fn with(test: &str, change: impl FnOnce(&mut MatrixConfig)) -> Option<Self> {
        let lab = Lab::with(test, |config| {
            config.encryption = EncryptionMode::Optional;
            change(config);
        });
        let lab = lab.await?;
        let alice = SealedPerson::new(lab.alice.clone()).await;
        let room = alice.opens_private(&lab.bot).await;
        lab.bot.joins(&room).await;
        Some(Self { lab, alice, room })
    }

    /// Another process of the same account, with what the first one kept.
    fn restarted(&self) -> MatrixAdapter {
        let lab = &self.lab;
        let mut config = config(lab.proxy.url(), &lab.bot, Arc::clone(&lab.state));
        config.invites.from = [UserId::new(lab.alice.user()).unwrap()].into();
        config.encryption = EncryptionMode::Optional;
        MatrixAdapter::new(config).unwrap()
    }
}

fn bodies(shown: &[Value]) -> Vec<&str> {
    shown
        .iter()
        .filter_map(|one| one["body"].as_str())
        .collect()
}

/// Nothing that was said stands in the open, in no event of a room.
async fn assert_sealed(person: &MatrixPerson, room: &str, words: &[&str]) {
    let all = json!(person.events(room).await).to_string();
    for word in words {
        assert!(!all.contains(word), "{word} stands in the open");
    }
}

#[tokio::test]
async fn what_is_said_in_an_encrypted_room_is_heard_and_answered_sealed() {
    let Some(mut sealed) = SealedLab::new("what_is_said_in_an_encrypted_room").await else {
        return;
    };
    let (bot, room) = (sealed.lab.bot.user().to_owned(), sealed.room.clone());
    let matrix = Arc::clone(&sealed.lab.matrix);
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    let asked = sealed.alice.says(&room, "what is the plan?").await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "what is the plan?");
    assert_eq!(
        (heard.message.as_str(), &heard.place),
        (asked.as_str(), &private(&room))
    );

    let reply = ChatReply {
        reply_to: Some(heard.message.clone()),
        ..ChatReply::text(outgoing("lunch, **then** a walk"))
    };
    let sent = matrix.send(&private(&room), &reply).await.unwrap();
    let shown = sealed
        .alice
        .waits_for(&room, &bot, |shown| !shown.is_empty())
        .await;
    assert_eq!(bodies(&shown), ["lunch, **then** a walk"]);
    assert_eq!(
        shown[0]["m.relates_to"]["m.in_reply_to"]["event_id"],
        json!(asked)
    );
    // It grows, as in any room.
    let (here, dinner) = (private(&room), outgoing("dinner"));
    let edit = matrix.edit(&here, &sent[0], &dinner, &[]).await;
    edit.unwrap();
    let is_changed = |shown: &[Value]| bodies(shown) == ["dinner"];
    sealed.alice.waits_for(&room, &bot, is_changed).await;

    // She mends a word, and takes it back.
    let edit = json!({ "msgtype": "m.text", "body": "* and then?", "m.new_content":
        { "msgtype": "m.text", "body": "and then?" },
        "m.relates_to": { "rel_type": "m.replace", "event_id": asked } });
    sealed.alice.sends(&room, edit).await;
    let ChatEvent::Edited(edited) = next_event(&mut inbox).await else {
        panic!("expected a change");
    };
    assert_eq!(
        (edited.text.as_str(), edited.message.as_str()),
        ("and then?", asked.as_str())
    );
    sealed.alice.person.redacts(&room, &asked).await;
    assert!(matches!(
        next_event(&mut inbox).await,
        ChatEvent::Deleted(_)
    ));
    assert_sealed(
        &sealed.alice.person,
        &room,
        &["plan", "lunch", "dinner", "then?"],
    )
    .await;
}

#[tokio::test]
async fn a_restart_keeps_the_device_and_a_crash_before_the_store_loses_nothing() {
    let Some(mut sealed) = SealedLab::new("a_restart_keeps_the_device").await else {
        return;
    };
    let (bot, room) = (sealed.lab.bot.user().to_owned(), sealed.room.clone());
    let matrix = Arc::clone(&sealed.lab.matrix);
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    let state: Arc<dyn AdapterState> = Arc::clone(&sealed.lab.state);
    let device = kept_device(&state).await.unwrap().unwrap();
    assert_eq!(device.device, sealed.lab.bot.device());
    sealed.alice.says(&room, "before").await;
    // Handed out with its key, and the process ends before anybody stored it.
    let unlucky = next(&mut inbox).await;
    drop(inbox);
    drop(unlucky);
    let again = sealed.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    assert_eq!(next_message(&mut inbox).await.text, "before");
    sealed.alice.says(&room, "after").await;
    assert_eq!(next_message(&mut inbox).await.text, "after");
    assert_eq!(kept_device(&state).await.unwrap().unwrap(), device);
    let reply = ChatReply::text(outgoing("still me"));
    again.send(&private(&room), &reply).await.unwrap();
    let said = |shown: &[Value]| bodies(shown) == ["still me"];
    sealed.alice.waits_for(&room, &bot, said).await;
    drop(inbox);
    // A third process goes on where the ratchet of the second stood.
    let third = sealed.restarted();
    let reply = ChatReply::text(outgoing("and I"));
    third.send(&private(&room), &reply).await.unwrap();
    let said = |shown: &[Value]| bodies(shown) == ["still me", "and I"];
    sealed.alice.waits_for(&room, &bot, said).await;
}

#[tokio::test]
async fn every_device_reads_it_and_who_left_reads_nothing_more() {
    let Some(mut sealed) = SealedLab::new("every_device_reads_it").await else {
        return;
    };
    let bot = sealed.lab.bot.user().to_owned();
    let matrix = Arc::clone(&sealed.lab.matrix);
    let bob = MatrixPerson::register(sealed.lab.synapse.url(), "bob")
        .await
        .unwrap();
    let mut bob = SealedPerson::new(bob).await;
    let mut phone = SealedPerson::new(sealed.lab.alice.logs_in().await).await;
    let room = sealed
        .alice
        .opens_room(&[&sealed.lab.bot, &bob.person])
        .await;
    bob.person.joins(&room).await;
    sealed.lab.bot.joins(&room).await;
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    let here = place(&room, ChatKind::Group, None);
    let say = async |text: &str| {
        matrix
            .send(&here, &ChatReply::text(outgoing(text)))
            .await
            .unwrap();
    };
    say("to all of you").await;
    let said = |shown: &[Value]| bodies(shown).contains(&"to all of you");
    sealed.alice.waits_for(&room, &bot, said).await;
    phone.waits_for(&room, &bot, said).await;
    bob.waits_for(&room, &bot, said).await;
    let first = bob.last_key(&room, &bot).await;
    say("the same key").await;
    assert_eq!(bob.last_key(&room, &bot).await, first);

    // From the phone, too.
    let content = json!({ "msgtype": "m.text", "body": "robbie?",
        "m.mentions": { "user_ids": [bot] } });
    phone.sends(&room, content).await;
    assert_eq!(next_message(&mut inbox).await.text, "robbie?");

    bob.person.leaves(&room).await;
    // Until it is known here: what comes next comes after it.
    sealed
        .alice
        .sends(
            &room,
            json!({ "msgtype": "m.text", "body": "he is gone",
        "m.mentions": { "user_ids": [bot] } }),
        )
        .await;
    assert_eq!(next_message(&mut inbox).await.text, "he is gone");
    say("a secret").await;
    let said = |shown: &[Value]| bodies(shown).contains(&"a secret");
    sealed.alice.waits_for(&room, &bot, said).await;
    assert_ne!(sealed.alice.last_key(&room, &bot).await, first);
    bob.sync().await;
    let read = bob.reads(&room, &bot).await;
    assert!(!bodies(&read).contains(&"a secret"), "{read:?}");
}

#[tokio::test]
async fn words_before_their_key_are_heard_when_it_comes_and_else_that_is_said() {
    let Some(mut sealed) = SealedLab::new("words_before_their_key").await else {
        return;
    };
    let (bot, room) = (sealed.lab.bot.user().to_owned(), sealed.room.clone());
    let matrix = Arc::clone(&sealed.lab.matrix);
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    // Sealed for nobody: no key comes.
    let words = sealed.alice.seals_without_sharing(&room, "lost").await;
    sealed
        .alice
        .person
        .sends_event(&room, "m.room.encrypted", words)
        .await;
    sealed.lab.settle(&mut inbox).await;
    drop(inbox);
    // Not even a restart makes it silent.
    let again = sealed.restarted();
    let mut inbox = again.receive(CancellationToken::new());
    let is_told = |shown: &[Value]| bodies(shown).iter().any(|text| text.contains("decrypt"));
    let told = async {
        tokio::select! {
            received = futures::StreamExt::next(&mut inbox) => panic!("{received:?}"),
            shown = sealed.alice.waits_for(&room, &bot, is_told) => shown,
        }
    };
    assert_eq!(told.await.len(), 1);
    // The next words have a key again, and it is not said twice.
    sealed.alice.says(&room, "found").await;
    assert_eq!(next_message(&mut inbox).await.text, "found");
    let shown = sealed.alice.reads(&room, &bot).await;
    assert_eq!(shown.len(), 1, "{shown:?}");
}

#[tokio::test]
async fn what_is_said_in_plain_where_it_is_encrypted_is_nobodys_order() {
    let Some(mut sealed) = SealedLab::new("what_is_said_in_plain").await else {
        return;
    };
    let room = sealed.room.clone();
    let matrix = Arc::clone(&sealed.lab.matrix);
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    // As a homeserver could say it in her name.
    sealed.lab.alice.says(&room, "deploy it").await;
    sealed.alice.says(&room, "good morning").await;
    assert_eq!(next_message(&mut inbox).await.text, "good morning");
    // In rooms without encryption everything is as ever.
    sealed.lab.alice.says(&sealed.lab.room, "in plain").await;
    assert_eq!(next_message(&mut inbox).await.text, "in plain");
}

#[tokio::test]
async fn files_are_sealed_both_ways_and_a_changed_one_is_not_read() {
    let Some(mut sealed) = SealedLab::new("files_are_sealed_both_ways").await else {
        return;
    };
    let (bot, room) = (sealed.lab.bot.user().to_owned(), sealed.room.clone());
    let matrix = Arc::clone(&sealed.lab.matrix);
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    let mut content = sealed.alice.uploads("notes.txt", b"some notes").await;
    sealed.alice.sends(&room, content.clone()).await;
    let heard = next_message(&mut inbox).await;
    let file = &heard.attachments[0];
    assert_eq!(file.name.as_deref(), Some("notes.txt"));
    let bytes = matrix.download(file, 1000).await.unwrap();
    let bytes: Vec<Bytes> = bytes.try_collect().await.unwrap();
    assert_eq!(bytes.concat(), b"some notes");
    // Other bytes at the homeserver, under the same key.
    let kind = "application/octet-stream";
    content["file"]["url"] = json!(sealed.lab.alice.uploads(b"other bits", kind).await);
    sealed.alice.sends(&room, content).await;
    let heard = next_message(&mut inbox).await;
    assert!(matrix.download(&heard.attachments[0], 1000).await.is_err());

    let picture = OutgoingFile {
        name: "chart.png".to_owned(),
        bytes: Bytes::from_static(b"\x89PNG of the plan"),
        caption: Some(outgoing("the chart")),
    };
    matrix.send_file(&private(&room), &picture).await.unwrap();
    let is_there = |shown: &[Value]| shown.iter().any(|one| one["msgtype"] == "m.image");
    let shown = sealed.alice.waits_for(&room, &bot, is_there).await;
    assert_eq!(
        sealed.alice.opens_file(&shown[0]).await,
        b"\x89PNG of the plan"
    );
    let url = shown[0]["file"]["url"].as_str().unwrap();
    let raw = sealed.lab.alice.downloads(url).await;
    assert!(!raw.windows(4).any(|window| window == b"plan"));
    assert_sealed(&sealed.alice.person, &room, &["notes.txt", "chart"]).await;
}

#[tokio::test]
async fn invitations_are_accepted_and_required_means_encrypted_or_nothing() {
    let Some(mut sealed) = SealedLab::with("invitations_are_accepted", |config| {
        config.encryption = EncryptionMode::Required;
    })
    .await
    else {
        return;
    };
    let matrix = Arc::clone(&sealed.lab.matrix);
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    let bot = sealed.lab.bot.clone();
    let new = sealed.alice.opens_private(&bot).await;
    let plain = sealed.lab.alice.opens_private(&bot).await;
    let waiting = async {
        let is = sealed
            .lab
            .alice
            .waits_until_member(&new, bot.user(), "join")
            .await;
        assert_eq!(is, None);
        sealed
            .lab
            .alice
            .waits_until_member(&plain, bot.user(), "leave")
            .await
    };
    let reason = tokio::select! {
        received = futures::StreamExt::next(&mut inbox) => panic!("{received:?}"),
        reason = waiting => reason,
    };
    assert!(
        reason
            .unwrap()
            .contains("only in end-to-end encrypted rooms")
    );
    let refused = matrix
        .send(&sealed.lab.private(), &ChatReply::text(outgoing("hello")))
        .await;
    assert!(matches!(
        refused.unwrap_err().failure,
        SendFailure::Refused { .. }
    ));
    sealed.lab.alice.says(&sealed.lab.room, "in plain").await;
    sealed.alice.says(&new, "sealed").await;
    assert_eq!(next_message(&mut inbox).await.text, "sealed");
}

#[tokio::test]
async fn a_device_that_its_owner_did_not_sign_is_not_heard_where_that_is_asked_for() {
    let Some(mut sealed) = SealedLab::with("a_device_that_its_owner_did_not_sign", |config| {
        config.trust = DeviceTrust::CrossSigned;
    })
    .await
    else {
        return;
    };
    let matrix = Arc::clone(&sealed.lab.matrix);
    let mut inbox = listen(&matrix, &sealed.lab.proxy).await;
    let room = sealed.room.clone();
    sealed.alice.says(&room, "trust me").await;
    sealed.lab.alice.says(&sealed.lab.room, "in plain").await;
    assert_eq!(next_message(&mut inbox).await.text, "in plain");
}
