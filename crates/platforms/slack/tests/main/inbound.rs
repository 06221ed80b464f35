//! What is heard, from whom, where, and once.

use hermetic_chat::{Chat, ChatEvent, CheckError};
use hermetic_slack::{HeardBots, SlackConfig};
use hermetic_testkit::slack::{BOT_USER, CHANNEL, Failure, TEAM};
use hermetic_types::{AttachmentKind, ChatId, ChatKind};
use serde_json::json;

use crate::lab::{ALICE, ALICES_CHANNEL, Lab, message, next, next_message, next_texts, thread};

const BOB: &str = "U0BOB";

#[tokio::test]
async fn a_private_message_says_who_wrote_and_where() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let ts = lab.server.says(ALICE, "is 1 &lt; 2 &amp; so on?");
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "is 1 < 2 & so on?");
    assert_eq!(heard.sender.id.as_str(), ALICE);
    assert_eq!(
        (heard.place.chat.as_str(), heard.place.kind),
        (ALICES_CHANNEL, ChatKind::Dm)
    );
    assert_eq!(heard.place.thread, None);
    assert_eq!(
        heard.update.as_str(),
        format!("{TEAM}:{ALICES_CHANNEL}:{ts}")
    );
    assert_eq!(heard.message.as_str(), ts.replace('.', ""));
    assert!(heard.mentions_us);
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn a_mention_is_one_event_and_begins_a_thread() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let ts = lab.server.mentions(CHANNEL, ALICE, "look at this");
    lab.server.mentions(CHANNEL, BOB, "and this");
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), heard.mentions_us),
        ("look at this", true)
    );
    assert_eq!(heard.place, thread(CHANNEL, &ts));
    // Slack told of the first one twice.
    assert_eq!(next_message(&mut inbox).await.text, "and this");
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn in_a_channel_only_what_names_us_is_heard_and_then_its_thread() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server
        .says_in(CHANNEL, BOB, json!({ "text": "not for you" }));
    let other = lab
        .server
        .says_in(CHANNEL, BOB, json!({ "text": "a thread of others" }));
    lab.server.says_in(
        CHANNEL,
        ALICE,
        json!({ "text": "in it", "thread_ts": other }),
    );
    let begun = lab.server.mentions(CHANNEL, ALICE, "hello");
    lab.server.says_in(
        CHANNEL,
        BOB,
        json!({ "text": "me too", "thread_ts": begun }),
    );
    assert_eq!(next_texts(&mut inbox, 1).await, ["hello"]);
    let in_thread = next_message(&mut inbox).await;
    assert_eq!(
        (in_thread.text.as_str(), in_thread.mentions_us),
        ("me too", false)
    );
    assert_eq!(in_thread.place, thread(CHANNEL, &begun));
    // A mention in the middle of a thread of others is a conversation of that thread.
    let text = format!("<@{BOT_USER}> what do you think?");
    lab.server
        .says_in(CHANNEL, BOB, json!({ "text": text, "thread_ts": other }));
    assert_eq!(
        next_message(&mut inbox).await.place,
        thread(CHANNEL, &other)
    );
}

#[tokio::test]
async fn mentions_are_needed_as_configured() {
    let free = ChatId::new("C0FREE").unwrap();
    let strict = |config: &mut SlackConfig| {
        config.hearing.strict_mention = true;
        config.hearing.free_response_channels = [free.clone()].into();
        config.hearing.allowed_channels = [free.clone(), ChatId::new(CHANNEL).unwrap()].into();
    };
    let lab = Lab::with(strict).await;
    let mut inbox = lab.listen();
    let begun = lab.server.mentions(CHANNEL, ALICE, "hello");
    lab.server.says_in(
        CHANNEL,
        ALICE,
        json!({ "text": "unnamed", "thread_ts": begun }),
    );
    lab.server.mentions("C0OTHER", ALICE, "not listened to");
    lab.server.commands(ALICE, "C0OTHER", "/status", "");
    lab.server
        .says_in("C0FREE", ALICE, json!({ "text": "free" }));
    lab.server.says(ALICE, "alone");
    assert_eq!(next_texts(&mut inbox, 3).await, ["hello", "free", "alone"]);
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn bots_are_heard_as_configured_and_we_never_hear_ourselves() {
    for (bots, heard) in [
        (HeardBots::Ignore, vec!["a person"]),
        (HeardBots::HearMentions, vec!["named", "a person"]),
        (HeardBots::Hear, vec!["unnamed", "named", "a person"]),
    ] {
        let lab = Lab::with(|config| config.hearing.bots = bots).await;
        let mut inbox = lab.listen();
        let bot =
            |text: &str| json!({ "text": text, "bot_id": "B0OTHER", "subtype": "bot_message" });
        let named = format!("<@{BOT_USER}> named");
        lab.server
            .says_in(ALICES_CHANNEL, "U0OTHERBOT", bot("unnamed"));
        lab.server
            .says_in(ALICES_CHANNEL, "U0OTHERBOT", bot(&named));
        lab.server
            .says_in(ALICES_CHANNEL, BOT_USER, json!({ "text": "ourselves" }));
        let by_id = json!({ "text": "ourselves", "bot_id": "B0BOT", "user": null });
        lab.server.says_in(ALICES_CHANNEL, ALICE, by_id);
        lab.server.says(ALICE, "a person");
        assert_eq!(next_texts(&mut inbox, heard.len()).await, heard);
        lab.server.wait_until_acknowledged().await;
    }
}

#[tokio::test]
async fn what_was_passed_on_is_nobodys_order() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let shared =
        json!([{ "is_share": true, "text": "/sh rm -rf ~\n!stop", "author_name": "Mallory" }]);
    lab.server.says_in(
        ALICES_CHANNEL,
        ALICE,
        json!({ "text": "", "attachments": shared }),
    );
    lab.server.says_in(
        ALICES_CHANNEL,
        ALICE,
        json!({ "text": "what is this?", "attachments": shared }),
    );
    let quoted = "[passed on, not written by who sent it:]\n> /sh rm -rf ~\n> !stop";
    assert_eq!(
        next_texts(&mut inbox, 2).await,
        [quoted.to_owned(), format!("what is this?\n\n{quoted}")]
    );
}

#[tokio::test]
async fn commands_are_heard_by_slash_and_typed() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.commands(ALICE, CHANNEL, "/sh", "ls -l");
    lab.server
        .commands(ALICE, ALICES_CHANNEL, "/hermetic", "how are you?");
    lab.server.says(ALICE, "!stop");
    let slash = next_message(&mut inbox).await;
    assert_eq!(
        (slash.text.as_str(), slash.sender.id.as_str()),
        ("/sh ls -l", ALICE)
    );
    assert_eq!(
        (slash.place.chat.as_str(), &slash.place.thread),
        (CHANNEL, &None)
    );
    assert_eq!(next_texts(&mut inbox, 2).await, ["how are you?", "/stop"]);
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn another_workspace_is_not_heard_and_its_people_have_names_of_their_own() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let event = json!({
        "type": "message", "channel": ALICES_CHANNEL, "user": ALICE, "text": "elsewhere",
        "ts": "1700000000.000100",
    });
    let mut foreign = lab.server.callback(&event);
    foreign["team_id"] = json!("T0OTHER");
    foreign["authorizations"] = json!([{ "team_id": "T0OTHER" }]);
    lab.server.envelope("events_api", foreign);
    let shared = json!({ "text": "from a partner", "team": "T0PARTNER", "user_team": "T0PARTNER" });
    lab.server.says_in(ALICES_CHANNEL, ALICE, shared);
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "from a partner");
    assert_eq!(heard.sender.id.as_str(), format!("T0PARTNER/{ALICE}"));
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn files_come_with_a_message() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let files = json!([
        { "id": "F1", "name": "a.png", "mimetype": "image/png", "size": 7 },
        { "id": "F2", "name": "v.mp4", "mimetype": "audio/mp4", "subtype": "slack_audio" },
        { "id": 3 },
    ]);
    lab.server.says_in(
        ALICES_CHANNEL,
        ALICE,
        json!({ "text": "", "subtype": "file_share", "files": files }),
    );
    let heard = next_message(&mut inbox).await;
    let kinds: Vec<_> = heard
        .attachments
        .iter()
        .map(|file| (file.id.as_str(), file.kind))
        .collect();
    assert_eq!(
        kinds,
        [("F1", AttachmentKind::Photo), ("F2", AttachmentKind::Voice)]
    );
    assert_eq!(heard.attachments[0].bytes, Some(7));
}

#[tokio::test]
async fn an_event_is_acknowledged_when_it_is_stored_and_not_before() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "one");
    let first = next(&mut inbox).await;
    assert_eq!(lab.server.unacknowledged(), 1);
    // The store fails: nothing is acknowledged, and the event comes again without Slack's help.
    drop(first.receipt);
    let again = next(&mut inbox).await;
    assert_eq!(lab.server.unacknowledged(), 1);
    again.receipt.stored();
    assert_eq!(message(again.event).text, "one");
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn a_deletion_is_told_by_the_name_of_its_message() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let said = [lab.server.says(ALICE, "one"), lab.server.says(ALICE, "two")];
    let heard = [
        next_message(&mut inbox).await,
        next_message(&mut inbox).await,
    ];
    lab.server.deletes(ALICES_CHANNEL, &said[0]);
    // A message that had replies leaves a stone behind.
    lab.server.event(json!({
        "type": "message", "subtype": "message_changed", "channel": ALICES_CHANNEL, "hidden": true,
        "ts": "1700000000.000300", "message": { "subtype": "tombstone", "ts": said[1] },
    }));
    for message in heard {
        let ChatEvent::Deleted(deleted) = next(&mut inbox).await.event else {
            panic!("expected a deletion");
        };
        assert_eq!(
            (deleted.chat, deleted.message),
            (message.place.chat, message.message)
        );
    }
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn a_change_is_told_with_what_the_message_reads_now() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let said = lab.server.says(ALICE, "paint it red");
    let heard = next_message(&mut inbox).await;
    // A link got its preview: nobody changed a word.
    lab.server.event(json!({
        "type": "message", "subtype": "message_changed", "channel": ALICES_CHANNEL, "hidden": true,
        "ts": "1700000000.000300", "message": { "user": ALICE, "text": "paint it red", "ts": said },
    }));
    // Somebody else did.
    lab.server.event(json!({
        "type": "message", "subtype": "message_changed", "channel": ALICES_CHANNEL, "hidden": true,
        "ts": "1700000000.000301", "message": {
            "user": ALICE, "text": "paint it black", "ts": said,
            "edited": { "user": "U0OTHER", "ts": "1700000000.000301" },
        },
    }));
    lab.server.edits(ALICES_CHANNEL, &said, "paint it blue");
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
    lab.server.wait_until_acknowledged().await;
}

#[tokio::test]
async fn a_check_names_the_workspace_and_the_scope_that_is_missing() {
    let lab = Lab::new().await;
    let checked = lab.slack.check().await.unwrap();
    assert_eq!(checked.name.as_deref(), Some("Home"));
    assert_eq!(checked.shortcomings, []);
    lab.server.revoke_scope("files:read");
    lab.server
        .fail_next("apps.connections.open", Failure::Refuse("missing_scope"));
    let shortcomings = lab.slack.check().await.unwrap().shortcomings;
    assert!(
        shortcomings[0].remedy.contains("files:read"),
        "{shortcomings:?}"
    );
    assert!(
        shortcomings[1].remedy.contains("connections:write"),
        "{shortcomings:?}"
    );
    assert_eq!(lab.server.open_sockets(), 0);
    lab.server
        .fail_next("auth.test", Failure::Refuse("invalid_auth"));
    let refused = lab.slack.check().await;
    assert!(
        matches!(refused, Err(CheckError::Unauthorized { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn people_are_shown_by_their_names_which_are_asked_for_once() {
    let lab = Lab::new().await;
    lab.server.call_person(ALICE, "Alice \u{202e}of Home");
    let mut inbox = lab.listen();
    for _ in 0..2 {
        lab.server.says(ALICE, "hello");
        let heard = next_message(&mut inbox).await;
        assert_eq!(heard.sender.display, "Alice \u{202e}of Home");
        assert_eq!(heard.sender.id.as_str(), ALICE);
    }
    assert_eq!(lab.server.tries("users.info"), 1);
    // Somebody whose name Slack does not tell is heard all the same.
    lab.server
        .fail_next("users.info", Failure::Refuse("missing_scope"));
    lab.server.says("U0BOB", "hello");
    assert_eq!(next_message(&mut inbox).await.sender.display, "U0BOB");
    lab.server.says("U0CAROL", "hello");
    next_message(&mut inbox).await;
    assert_eq!(
        lab.server.tries("users.info"),
        2,
        "it was told that it may not"
    );
}

#[tokio::test]
async fn a_slack_that_tells_no_names_holds_nobody_up_twice() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    lab.server.fail_next("users.info", Failure::Throttle(60));
    for stranger in ["U0BOB", "U0CAROL", "U0DAVE"] {
        lab.server.says(stranger, "hello");
        assert_eq!(next_message(&mut inbox).await.sender.display, stranger);
    }
    assert_eq!(
        lab.server.tries("users.info"),
        1,
        "not for each of them while it lasts"
    );
}
