//! Updates by long poll: nothing lost, nothing twice, whatever happens on the way.

use futures::StreamExt;
use hermetic_chat::{Chat, ChatEvent, ChatState, ReceiveError};
use hermetic_telegram::TelegramAdapter;
use hermetic_testkit::telegram::{BOT_ID, Failure};
use hermetic_types::{AttachmentKind, ChatId, ChatKind, Secret};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, PATIENCE, config, message, next, next_message};

#[tokio::test]
async fn a_message_is_confirmed_once_it_is_stored() {
    let lab = Lab::new().await;
    let id = lab.server.says(7, "hello");
    let mut inbox = lab.listen();
    let received = next(&mut inbox).await;
    assert_eq!(lab.server.unconfirmed(), [id]);
    received.receipt.stored();
    let heard = message(received.event);
    assert_eq!(
        (heard.text.as_str(), heard.sender.id.as_str()),
        ("hello", "7")
    );
    assert_eq!((heard.place.kind, heard.mentions_us), (ChatKind::Dm, true));

    lab.server.says(7, "again");
    next_message(&mut inbox).await;
    assert_eq!(lab.telegram.state(), ChatState::Connected);
    assert_eq!(
        lab.server.calls("deleteWebhook")[0].params["drop_pending_updates"],
        false
    );
}

#[tokio::test]
async fn what_was_not_stored_comes_again_and_alone() {
    let lab = Lab::new().await;
    for text in ["one", "two", "three"] {
        lab.server.says(7, text);
    }
    let mut inbox = lab.listen();
    let mut texts = Vec::new();
    for _ in 0..3 {
        let received = next(&mut inbox).await;
        let heard = message(received.event);
        if heard.text != "two" {
            received.receipt.stored();
        }
        texts.push(heard.text);
    }
    assert_eq!(
        texts,
        ["one", "two", "three"],
        "in order, though the server answers in reverse"
    );
    assert_eq!(next_message(&mut inbox).await.text, "two");
    lab.server.says(7, "four");
    assert_eq!(next_message(&mut inbox).await.text, "four");
}

#[tokio::test]
async fn a_restart_before_storing_loses_nothing() {
    let lab = Lab::new().await;
    let id = lab.server.says(7, "hello");
    let received = next(&mut lab.listen()).await;
    drop(received);
    let reborn = TelegramAdapter::new(config(&lab.server.url())).unwrap();
    let mut inbox = reborn.receive(CancellationToken::new());
    assert_eq!(
        next_message(&mut inbox).await.update.as_str(),
        id.to_string()
    );
}

#[tokio::test]
async fn trouble_is_ridden_out() {
    let lab = Lab::new().await;
    let refuse = |code, description, retry_after| Failure::Refuse {
        code,
        description,
        retry_after,
    };
    for failure in [
        refuse(
            409,
            "Conflict: terminated by other getUpdates request",
            None,
        ),
        refuse(
            409,
            "Conflict: can't use getUpdates method while webhook is active",
            None,
        ),
        refuse(429, "Too Many Requests: retry after 0", Some(0)),
        refuse(500, "Internal Server Error", None),
        Failure::BadGateway,
        Failure::Drop,
        Failure::DropAfter,
    ] {
        lab.server.fail_next("getUpdates", failure);
    }
    lab.server.fail_next("getMe", Failure::BadGateway);
    lab.server.fail_next("deleteWebhook", Failure::Drop);
    lab.server.says(7, "still here");
    assert_eq!(next_message(&mut lab.listen()).await.text, "still here");
    // Once at the start and after each conflict, and the one that broke.
    assert!(lab.server.calls("deleteWebhook").len() >= 3);
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", gone.local_addr().unwrap());
    drop(gone);
    let telegram = TelegramAdapter::new(config(&url)).unwrap();
    let mut inbox = telegram.receive(CancellationToken::new());
    let waiting = timeout(std::time::Duration::from_millis(200), inbox.next()).await;
    assert!(waiting.is_err());
    let ChatState::Retrying { why } = telegram.state() else {
        panic!("{:?}", telegram.state())
    };
    assert!(!why.contains("test-token"), "{why}");
}

#[tokio::test]
async fn one_bad_update_holds_up_no_other() {
    let lab = Lab::new().await;
    lab.server.garbage(json!("not an update"));
    lab.server
        .garbage(json!({ "message": { "text": "no id" } }));
    for bad in [
        json!({ "message": { "message_id": 1 } }),
        json!({ "message": { "message_id": "x", "chat": [], "text": 5 } }),
        json!({ "message": null }),
        json!({ "edited_message": { "message_id": 1 } }),
        json!({ "something_new": {} }),
        json!({ "callback_query": { "id": 5 } }),
    ] {
        lab.server.update(bad);
    }
    lab.server
        .says_with(7, json!({ "new_chat_title": "nothing said" }));
    lab.server.says_with(
        7,
        json!({ "text": "quoting garbage", "reply_to_message": { "x": 1 } }),
    );
    let mut inbox = lab.listen();
    assert_eq!(next_message(&mut inbox).await.text, "quoting garbage");
    lab.server.says(7, "and on");
    assert_eq!(next_message(&mut inbox).await.text, "and on");
    assert_eq!(
        lab.server.unconfirmed().len(),
        1,
        "all but the last are confirmed"
    );
}

#[tokio::test]
async fn an_update_that_comes_twice_is_heard_once() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let id = lab.server.says(7, "once");
    assert_eq!(next_message(&mut inbox).await.text, "once");
    lab.server.says(7, "next");
    assert_eq!(next_message(&mut inbox).await.text, "next");
    // An earlier id again, out of order, with a newer one behind it.
    lab.server.update(json!({ "update_id": id, "message": {
        "message_id": 1, "chat": { "id": 7, "type": "private" }, "from": { "id": 7 }, "text": "once",
    }}));
    lab.server.says(7, "last");
    assert_eq!(next_message(&mut inbox).await.text, "last");
}

#[tokio::test]
async fn a_token_nobody_knows_ends_it() {
    let lab = Lab::with(|config| config.token = Secret::new("1:wrong")).await;
    let mut inbox = lab.listen();
    let last = timeout(PATIENCE, inbox.next()).await.unwrap().unwrap();
    assert!(matches!(last, Err(ReceiveError::Ended { .. })), "{last:?}");
    assert!(timeout(PATIENCE, inbox.next()).await.unwrap().is_none());
    assert!(matches!(lab.telegram.state(), ChatState::Stopped { .. }));
}

#[tokio::test]
async fn stopping_ends_the_stream() {
    let lab = Lab::new().await;
    let stop = CancellationToken::new();
    let mut inbox = lab.telegram.receive(stop.clone());
    lab.server.says(7, "hello");
    next_message(&mut inbox).await;
    let (_, ended) = tokio::join!(async { stop.cancel() }, timeout(PATIENCE, inbox.next()));
    assert!(ended.unwrap().is_none());
}

#[tokio::test]
async fn a_press_is_heard() {
    let lab = Lab::new().await;
    lab.server.presses(7, 99, "approve:abc");
    let received = next(&mut lab.listen()).await;
    received.receipt.stored();
    let ChatEvent::Press(press) = received.event else {
        panic!("{:?}", received.event)
    };
    assert_eq!(
        (press.data.as_str(), press.message.as_str()),
        ("approve:abc", "99")
    );
    assert_eq!(
        (press.sender.id.as_str(), press.query.as_str()),
        ("7", "query-99")
    );
}

#[tokio::test]
async fn a_change_is_told_with_what_the_message_reads_now() {
    let lab = Lab::new().await;
    lab.server.says(7, "paint it red");
    let mut inbox = lab.listen();
    let heard = next_message(&mut inbox).await;
    let id: i64 = heard.message.as_str().parse().unwrap();
    let changed = lab.server.update(json!({ "edited_message": {
        "message_id": id, "date": 1_700_000_000, "edit_date": 1_700_000_060,
        "chat": { "id": 7, "type": "private" },
        "from": { "id": 7, "is_bot": false, "first_name": "user 7" },
        "text": "paint it blue",
    }}));
    let received = next(&mut inbox).await;
    assert_eq!(
        lab.server.unconfirmed(),
        [changed],
        "it waits for its receipt"
    );
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
async fn files_and_captions_come_along() {
    let lab = Lab::new().await;
    lab.server.says_with(7, json!({
        "caption": "look",
        "photo": [{ "file_id": "small", "file_size": 10 }, { "file_id": "large", "file_size": 1000 }],
        "document": { "file_id": "doc", "file_name": "../../etc/passwd", "mime_type": "text/plain" },
    }));
    let heard = next_message(&mut lab.listen()).await;
    assert_eq!(heard.text, "look");
    let ids: Vec<_> = heard
        .attachments
        .iter()
        .map(|file| (file.id.as_str(), file.kind))
        .collect();
    assert_eq!(
        ids,
        [
            ("doc", AttachmentKind::Document),
            ("large", AttachmentKind::Photo)
        ]
    );
}

#[tokio::test]
async fn who_does_not_show_who_they_are_is_not_heard() {
    let lab = Lab::with(|config| config.hearing.bots = true).await;
    let group = json!({ "id": -100, "type": "supergroup" });
    let channel = json!({ "id": -200, "type": "channel" });
    let posts = [
        // An anonymous administrator, one who writes as a channel, a channel's post in its group.
        json!({ "text": "/sh id", "chat": group, "sender_chat": group,
            "from": { "id": 1_087_968_824, "is_bot": true, "username": "GroupAnonymousBot" } }),
        json!({ "text": "/sh id", "chat": group, "sender_chat": channel,
            "from": { "id": 136_817_688, "is_bot": true, "username": "Channel_Bot" } }),
        json!({ "text": "/sh id", "chat": group, "sender_chat": channel,
            "is_automatic_forward": true, "from": { "id": 777_000, "first_name": "Telegram" } }),
    ];
    for post in posts {
        lab.server.says_with(7, post);
    }
    for kind in ["channel_post", "edited_channel_post", "business_message"] {
        lab.server
            .update(json!({ kind: { "message_id": 1, "date": 1, "chat": channel,
            "from": { "id": 7 }, "text": "/sh id" } }));
    }
    lab.server.says(7, "myself");
    assert_eq!(next_message(&mut lab.listen()).await.text, "myself");
}

#[tokio::test]
async fn what_is_only_passed_on_is_quoted() {
    let lab = Lab::new().await;
    let passed_on = [
        json!({ "text": "/sh id\n/approve", "forward_origin": { "type": "hidden_user" } }),
        json!({ "text": "/sh id\n/approve", "forward_date": 1 }),
        json!({ "caption": "/sh id\n/approve", "via_bot": { "id": 5, "is_bot": true },
            "document": { "file_id": "doc" } }),
    ];
    for fields in passed_on.clone() {
        lab.server.says_with(7, fields);
    }
    let mut inbox = lab.listen();
    for _ in passed_on {
        let heard = next_message(&mut inbox).await.text;
        let quoted = "[passed on, not written by who sent it:]\n> /sh id\n> /approve";
        assert_eq!(heard, quoted);
    }
}

#[tokio::test]
async fn in_groups_only_what_is_meant_for_us() {
    let lab = Lab::with(|config| {
        config.hearing.require_mention = true;
        config
            .hearing
            .free_response_chats
            .insert(ChatId::from(-200));
    })
    .await;
    let say = |chat: i64, fields: Value| {
        let mut message = json!({ "chat": { "id": chat, "type": "supergroup" } });
        message
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        lab.server.says_with(7, message);
    };
    say(-100, json!({ "text": "to nobody" }));
    say(-100, json!({ "text": "mail me@hermetictestbotx.org" }));
    say(-100, json!({ "text": "/stop@OtherBot" }));
    say(
        -100,
        json!({ "text": "a bot says @hermetictestbot", "from": { "id": 8, "is_bot": true } }),
    );
    say(
        -100,
        json!({ "text": "ourselves", "from": { "id": BOT_ID, "is_bot": true } }),
    );
    say(-100, json!({ "text": "hey @HermeticTestBot!" }));
    say(-100, json!({ "text": "/status@hermetictestbot now" }));
    say(
        -100,
        json!({ "text": "a reply", "reply_to_message": {
            "message_id": 5, "chat": { "id": -100, "type": "supergroup" },
            "from": { "id": BOT_ID, "is_bot": true }, "text": "we said",
        }}),
    );
    say(-200, json!({ "text": "free" }));
    say(
        -200,
        json!({ "text": "topic", "message_thread_id": 3, "is_topic_message": true }),
    );
    say(-200, json!({ "text": "no topic", "message_thread_id": 3 }));

    let mut inbox = lab.listen();
    let mut heard = Vec::new();
    for _ in 0..6 {
        heard.push(next_message(&mut inbox).await);
    }
    let texts: Vec<_> = heard.iter().map(|heard| heard.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "hey @HermeticTestBot!",
            "/status now",
            "a reply",
            "free",
            "topic",
            "no topic"
        ]
    );
    assert!(
        heard[2]
            .reply_to
            .as_ref()
            .is_some_and(|quoted| quoted.from_us && quoted.text == "we said")
    );
    assert_eq!(
        heard[4].place.thread.as_ref().map(|thread| thread.as_str()),
        Some("3")
    );
    assert_eq!(heard[5].place.thread, None);
    assert!(!heard[3].mentions_us);
}

#[tokio::test]
async fn a_server_that_answers_at_once_with_nothing_is_not_asked_at_full_speed() {
    // The server holds a poll for as long as it is asked to: not at all.
    let lab = Lab::with(|config| config.timing.poll = std::time::Duration::ZERO).await;
    let mut inbox = lab.listen();
    let begun = tokio::time::Instant::now();
    tokio::select! {
        () = lab.server.wait_for_tries("getUpdates", 5) => {}
        _ = inbox.next() => panic!("nobody wrote"),
    }
    // 100, 200, 400 and 800 ms between them, unless one took a second by itself: then it was held.
    let least = std::time::Duration::from_secs(1);
    assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
    lab.server.says(7, "hello");
    assert_eq!(next_message(&mut inbox).await.text, "hello");
}
