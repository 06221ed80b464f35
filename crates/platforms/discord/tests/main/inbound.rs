//! What is heard, and what is left to others.

use hermetic_chat::{Chat, ChatEvent};
use hermetic_testkit::discord::{BOT_ID, CHANNEL};
use hermetic_types::{ChatId, ChatKind, IncomingMessage};
use serde_json::json;

use crate::lab::{ALICE, Lab, listening_until, next, next_message, place, reply, thread};

#[tokio::test]
async fn in_a_channel_only_a_mention_or_a_reply_to_us_is_heard() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says_in(CHANNEL, ALICE, "to nobody");
    lab.server.says_in(CHANNEL, ALICE, "<@7> to somebody else");
    let mention = lab.server.says_in(CHANNEL, ALICE, "<@42> what time is it?");
    let replied = json!({
        "type": 19, "content": "and now?",
        "message_reference": { "type": 0, "message_id": "9" },
        "referenced_message": {
            "id": "9", "channel_id": CHANNEL.to_string(), "content": "it is late",
            "author": { "id": BOT_ID.to_string(), "bot": true },
        },
    });
    lab.server.says_with(CHANNEL, ALICE, replied);

    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "what time is it?");
    assert!(heard.mentions_us);
    assert_eq!(
        heard.place,
        thread(mention),
        "it will be answered in a thread of its own"
    );
    assert_eq!(heard.sender.id.as_str(), "7");
    assert_eq!(heard.sender.display, "User 7");

    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "and now?");
    assert_eq!(
        heard.place,
        place(CHANNEL, ChatKind::Group, None),
        "and a reply where it is"
    );
    let quoted = heard.reply_to.unwrap();
    assert!(quoted.from_us);
    assert_eq!(quoted.text, "it is late");
}

#[tokio::test]
async fn lists_of_channels_are_kept() {
    let other =
        |id: u64| json!({ "id": id.to_string(), "type": 0, "guild_id": "50", "name": "another" });
    let lab = Lab::with(|config| {
        let list = |ids: &[u64]| {
            ids.iter()
                .map(|id| ChatId::new(id.to_string()).unwrap())
                .collect()
        };
        config.hearing.free_response_channels = list(&[60]);
        config.hearing.ignored_channels = list(&[61]);
        config.hearing.no_thread_channels = list(&[62]);
        config.hearing.allowed_channels = list(&[60, 61, 62]);
    })
    .await;
    (60..64).for_each(|id| lab.server.add_channel(other(id)));
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says_in(60, ALICE, "no mention needed");
    lab.server.says_in(61, ALICE, "<@42> not heard");
    lab.server.says_in(63, ALICE, "<@42> not listed");
    lab.server.says_in(62, ALICE, "<@42> no thread");
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "no mention needed");
    assert!(!heard.mentions_us);
    assert_eq!(heard.place, place(60, ChatKind::Group, None));
    assert_eq!(
        next_message(&mut inbox).await.place,
        place(62, ChatKind::Group, None)
    );
}

#[tokio::test]
async fn bots_webhooks_and_discord_itself_are_not_heard() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let private = lab.server.private_channel(ALICE);
    for fields in [
        json!({ "content": "ours", "author": { "id": BOT_ID.to_string(), "bot": true } }),
        json!({ "content": "a bot", "author": { "id": "9", "bot": true } }),
        json!({ "content": "a webhook", "webhook_id": "9" }),
        json!({ "content": "Alice pinned a message", "type": 6 }),
        json!({ "content": "nobody", "author": null }),
        json!({ "content": "  " }),
    ] {
        lab.server.says_with(private, ALICE, fields);
    }
    lab.server.says(ALICE, "a person");
    assert_eq!(next_message(&mut inbox).await.text, "a person");
}

#[tokio::test]
async fn what_was_passed_on_is_quoted() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let passed_on = json!({
        "message_reference": { "type": 1, "message_id": "9" },
        "message_snapshots": [{ "message": { "content": "/sh rm -rf .\n@us", "attachments": [{
            "id": "3", "filename": "a.txt", "size": 5, "content_type": "text/plain",
        }]}}, "no snapshot"],
    });
    lab.server
        .says_with(lab.server.private_channel(ALICE), ALICE, passed_on);
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        heard.text,
        "[passed on, not written by who sent it:]\n> /sh rm -rf .\n> @us"
    );
    assert_eq!(heard.attachments[0].name.as_deref(), Some("a.txt"));
}

#[tokio::test]
async fn a_thread_is_a_conversation_and_needs_no_mention_once_we_take_part() {
    let lab = Lab::new().await;
    lab.server.add_channel(json!({
        "id": "70", "type": 11, "guild_id": "50", "parent_id": CHANNEL.to_string(), "owner_id": "7",
        "name": "a thread",
    }));
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says_in(70, ALICE, "among ourselves");
    lab.server.says_in(70, ALICE, "<@42> join us");
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), &heard.place),
        ("join us", &thread(70))
    );
    lab.discord
        .send(&heard.place, &reply("here"))
        .await
        .unwrap();
    assert_eq!(lab.server.shown(70), ["here"]);
    assert_eq!(
        lab.server
            .calls("PUT /channels/{}/thread-members/@me")
            .len(),
        1
    );
    lab.server.says_in(70, ALICE, "without your name");
    assert_eq!(next_message(&mut inbox).await.text, "without your name");
    lab.leave(inbox).await;

    // Also after a restart, when nobody describes the thread.
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    lab.server.says_in(70, ALICE, "still no name");
    assert_eq!(next_message(&mut inbox).await.text, "still no name");
}

#[tokio::test]
async fn a_channel_that_nobody_described_is_asked_for() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.add_channel(json!({
        "id": "71", "type": 12, "guild_id": "50", "parent_id": CHANNEL.to_string(), "owner_id": "42",
    }));
    lab.server.says_in(71, ALICE, "in a thread of ours");
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.place, thread(71));
    lab.server.says_in(72, ALICE, "<@42> nowhere");
    lab.server.says(ALICE, "go on");
    assert_eq!(next_message(&mut inbox).await.text, "go on");
    assert_eq!(lab.server.tries("GET /channels/{}"), 2);
}

#[tokio::test]
async fn our_name_is_taken_off_and_a_bare_one_stays() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    for (said, heard) in [
        ("<@42> /status", "/status"),
        ("<@!42>   /status now <@42>", "/status now"),
        ("tell <@42> about it", "tell <@42> about it"),
        ("<@42>", "<@42>"),
    ] {
        lab.server.says(ALICE, said);
        assert_eq!(next_message(&mut inbox).await.text, heard);
    }
}

#[tokio::test]
async fn a_deleted_message_is_told() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let said = lab.server.says_in(CHANNEL, ALICE, "<@42> never mind");
    let heard = next_message(&mut inbox).await;
    lab.server.deletes(CHANNEL, said);
    let received = next(&mut inbox).await;
    received.receipt.stored();
    let ChatEvent::Deleted(deleted) = received.event else {
        panic!("expected a deletion, got {:?}", received.event);
    };
    assert_eq!(
        (deleted.chat, deleted.message),
        (heard.place.chat, heard.message)
    );
}

#[tokio::test]
async fn a_change_is_told_with_what_the_message_reads_now() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let said = lab.server.says_in(CHANNEL, ALICE, "<@42> paint it red");
    let heard = next_message(&mut inbox).await;
    // A link got its preview: nobody changed a word.
    lab.server.dispatch(
        "MESSAGE_UPDATE",
        json!({ "id": said.to_string(), "channel_id": CHANNEL.to_string(), "edited_timestamp": null }),
    );
    lab.server.edits(CHANNEL, said, "<@42> paint it blue");
    let received = next(&mut inbox).await;
    received.receipt.stored();
    let ChatEvent::Edited(edited) = received.event else {
        panic!("expected a change, got {:?}", received.event);
    };
    assert_eq!(edited.text, "paint it blue");
    assert_eq!(
        (&edited.message, &edited.place),
        (&heard.message, &heard.place)
    );
    assert_ne!(edited.update, heard.update);
}

#[tokio::test]
async fn roles_come_with_what_is_said_live_and_are_asked_for_where_it_was_missed() {
    let lab = Lab::with(|config| config.needs_roles = true).await;
    lab.server.give_roles(ALICE, &[900, 901]);
    let roles = |heard: &IncomingMessage| -> Vec<String> {
        let roles = heard.sender.roles.iter();
        roles.map(ToString::to_string).collect()
    };
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says_in(CHANNEL, ALICE, "<@42> hello");
    assert_eq!(roles(&next_message(&mut inbox).await), ["900", "901"]);
    // Nobody has a role in private.
    lab.server.says(ALICE, "hello");
    assert_eq!(roles(&next_message(&mut inbox).await), [""; 0]);
    let channel = lab.server.private_channel(ALICE);
    lab.server.commands(ALICE, CHANNEL, "status", None);
    assert_eq!(roles(&next_message(&mut inbox).await), ["900", "901"]);
    assert_ne!(channel, CHANNEL);
    lab.leave(inbox).await;

    lab.server.forget_session();
    lab.server.says_in(CHANNEL, ALICE, "<@42> are you there?");
    let lab = lab.restarted(|config| config.needs_roles = true);
    let mut inbox = lab.listen();
    let missed = next_message(&mut inbox).await;
    assert_eq!(missed.text, "are you there?");
    assert_eq!(roles(&missed), ["900", "901"]);
}
