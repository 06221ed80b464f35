//! Replies: formatted, split, throttled, and honest about what arrived.

use std::time::Duration;

use hermetic_chat::{Chat, ReplyButton, SendFailure, SendKey};
use hermetic_testkit::discord::{CREATE_MESSAGE, EDIT_MESSAGE, Failure};
use hermetic_types::{MessageId, UserId};

use crate::lab::{ALICE, Lab, outgoing, reply};

fn too_many(retry_after: f64, global: bool) -> Failure {
    Failure::TooMany {
        retry_after,
        global,
    }
}

#[tokio::test]
async fn a_reply_calls_nobody_and_shows_no_preview() {
    let lab = Lab::new().await;
    let place = lab.private();
    let mut answer = reply("__done__, @everyone: https://a.b/?leak=1");
    answer.reply_to = Some(MessageId::from(3));
    lab.discord.send(&place, &answer).await.unwrap();
    let body = &lab.server.calls(CREATE_MESSAGE)[0].body;
    assert_eq!(body["content"], "**done**, @everyone: https://a.b/?leak=1");
    assert_eq!(
        body["allowed_mentions"]["parse"].as_array().map(Vec::len),
        Some(0)
    );
    assert_eq!(body["allowed_mentions"]["replied_user"], false);
    assert_eq!(body["flags"], 4);
    assert_eq!(body["message_reference"]["fail_if_not_exists"], false);
}

#[tokio::test]
async fn a_long_reply_becomes_several_messages_with_whole_fences() {
    let lab = Lab::new().await;
    let code = format!("```py\n{}```\n", "print(1)\n".repeat(500));
    let mut long = reply(format!("Look:\n{code}"));
    long.buttons = vec![
        (0..7)
            .map(|n| ReplyButton::new(format!("Yes {n}"), format!("y:{n}")).unwrap())
            .collect(),
    ];
    long.key = Some(SendKey::new(1, 0));
    let sent = lab.discord.send(&lab.private(), &long).await.unwrap();
    let calls = lab.server.calls(CREATE_MESSAGE);
    assert_eq!(sent.len(), calls.len());
    assert!(sent.len() > 2);
    let mut nonces = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let content = call.body["content"].as_str().unwrap();
        assert!(content.matches("```").count() % 2 == 0, "{content}");
        let rows = call.body["components"].as_array().map_or(0, Vec::len);
        assert_eq!(rows, if index + 1 == calls.len() { 2 } else { 0 });
        nonces.push(call.body["nonce"].as_str().unwrap().to_owned());
    }
    nonces.dedup();
    assert_eq!(nonces.len(), sent.len(), "each part has a nonce of its own");
}

#[tokio::test]
async fn formatting_that_does_not_fit_is_left_out() {
    let lab = Lab::new().await;
    let stars = "*".repeat(1999);
    lab.discord
        .send(&lab.private(), &reply(&stars))
        .await
        .unwrap();
    assert_eq!(lab.server.shown(lab.server.private_channel(ALICE)), [stars]);
}

#[tokio::test]
async fn a_second_send_with_the_same_key_makes_no_second_message() {
    let lab = Lab::new().await;
    let place = lab.private();
    let mut answer = reply("once");
    answer.key = Some(SendKey::new(7, 0));
    lab.server.fail_next(CREATE_MESSAGE, Failure::DropAfter);
    let error = lab.discord.send(&place, &answer).await.unwrap_err();
    assert!(
        matches!(error.failure, SendFailure::Uncertain(_)),
        "{error:?}"
    );
    let lab = lab.restarted(|_| {});
    let sent = lab.discord.send(&place, &answer).await.unwrap();
    assert_eq!(
        lab.server.shown(lab.server.private_channel(ALICE)),
        ["once"]
    );
    answer.key = Some(SendKey::new(8, 0));
    assert_ne!(lab.discord.send(&place, &answer).await.unwrap(), sent);

    // A store that was begun anew counts from one again; its messages are not taken for sent.
    let fresh = Lab::at(lab.server, |_| {});
    answer.key = Some(SendKey::new(7, 0));
    assert_ne!(fresh.discord.send(&place, &answer).await.unwrap(), sent);
}

#[tokio::test]
async fn throttling_is_waited_out_or_told() {
    let lab = Lab::new().await;
    let place = lab.private();
    lab.server.fail_next(CREATE_MESSAGE, too_many(0.05, false));
    lab.discord.send(&place, &reply("patience")).await.unwrap();

    lab.server.fail_next(CREATE_MESSAGE, too_many(900.0, false));
    for _ in 0..2 {
        let error = lab.discord.send(&place, &reply("later")).await.unwrap_err();
        let told = matches!(error.failure, SendFailure::Throttled { retry_after } if retry_after > Duration::from_secs(800));
        assert!(told, "{error:?}");
    }
    assert_eq!(
        lab.server.tries(CREATE_MESSAGE),
        3,
        "who is told to wait is not asked"
    );
    // Another place is not held up by it, until everybody is.
    let bob = lab.discord.private_place(&UserId::from(8)).await.unwrap();
    lab.discord.send(&bob, &reply("another")).await.unwrap();
    lab.server.fail_next(CREATE_MESSAGE, too_many(900.0, true));
    lab.discord.send(&bob, &reply("all")).await.unwrap_err();
    let carol = lab.private();
    lab.discord.typing(&carol).await.unwrap_err();
    assert_eq!(lab.server.tries("POST /channels/{}/typing"), 0);
}

#[tokio::test]
async fn a_bucket_is_never_asked_for_more_than_it_holds() {
    let lab = Lab::new().await;
    let place = lab.private();
    lab.server
        .limit(CREATE_MESSAGE, 3, Duration::from_millis(300));
    for number in 0..8 {
        let said = reply(format!("message {number}"));
        lab.discord.send(&place, &said).await.unwrap();
    }
    // A request without a place would have been refused and counted.
    assert_eq!(lab.server.tries(CREATE_MESSAGE), 8);
    assert_eq!(lab.server.calls(CREATE_MESSAGE).len(), 8);
}

#[tokio::test]
async fn failures_are_told_apart() {
    let lab = Lab::new().await;
    let place = lab.private();
    for (failure, is_certain) in [
        (Failure::BadGateway, false),
        (Failure::Drop, false),
        (
            Failure::Refuse {
                status: 403,
                code: 50007,
                message: "Cannot send messages to this user",
            },
            true,
        ),
    ] {
        lab.server.fail_next(CREATE_MESSAGE, failure);
        let error = lab.discord.send(&place, &reply("hello")).await.unwrap_err();
        match error.failure {
            SendFailure::Uncertain(_) => assert!(!is_certain),
            SendFailure::Refused { description } => {
                assert!(is_certain && description.contains("50007"), "{description}");
            }
            other => panic!("{other:?}"),
        }
    }
    let lab = lab.restarted(|config| config.base_url = "http://127.0.0.1:9/api/v10".to_owned());
    let error = lab.discord.send(&place, &reply("hello")).await.unwrap_err();
    assert!(
        matches!(error.failure, SendFailure::NotSent(_)),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_answer_grows_by_edits_that_wait_for_nothing() {
    let lab = Lab::new().await;
    let place = lab.private();
    let sent = lab.discord.send(&place, &reply("a")).await.unwrap();
    let grown = outgoing("a **b");
    lab.discord.refresh(&place, &sent[0], &grown).await.unwrap();
    lab.server.fail_next(EDIT_MESSAGE, too_many(60.0, false));
    for _ in 0..2 {
        let error = lab
            .discord
            .refresh(&place, &sent[0], &grown)
            .await
            .unwrap_err();
        assert!(
            matches!(error.failure, SendFailure::Throttled { .. }),
            "{error:?}"
        );
    }
    assert_eq!(lab.server.tries(EDIT_MESSAGE), 2);
    assert_eq!(
        lab.server.shown(lab.server.private_channel(ALICE)),
        ["a **b"]
    );
}

#[tokio::test]
async fn what_is_no_place_of_discord_is_refused() {
    let lab = Lab::new().await;
    let mut place = lab.private();
    place.chat = "../users/@me".to_owned().try_into().unwrap();
    let error = lab.discord.send(&place, &reply("hello")).await.unwrap_err();
    assert!(
        matches!(error.failure, SendFailure::Refused { .. }),
        "{error:?}"
    );
    let nobody = UserId::new("@everyone").unwrap();
    assert!(lab.discord.private_place(&nobody).await.is_err());
    assert!(!format!("{:?}", lab.discord).contains("token-of-the-bot"));
}
