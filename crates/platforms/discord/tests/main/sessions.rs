//! Connections that end, sessions that go on.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::{Chat, ChatState, CheckError, ReceiveError};
use hermetic_testkit::chat_state::wait_until_retrying;
use hermetic_testkit::discord::{CHANNEL, DiscordServer, Failure, HISTORY};
use tokio::time::timeout;

use crate::lab::{ALICE, Lab, PATIENCE, listening_until, message, next, next_message};

#[tokio::test]
async fn a_session_is_resumed_from_the_last_stored_event() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(ALICE, "one");
    assert_eq!(next_message(&mut inbox).await.text, "one");
    let stored = lab.server.sequence();
    lab.server.says(ALICE, "two");
    lab.server.says(ALICE, "three");
    let two = next(&mut inbox).await;
    let three = next_message(&mut inbox).await;
    lab.server.cut();
    drop(two.receipt);

    let again = next_message(&mut inbox).await;
    assert_eq!(
        (again.text.as_str(), &again.update),
        ("two", &message(two.event).update)
    );
    assert_eq!(
        lab.server.resumes()[0],
        stored,
        "three was seen, two was not stored"
    );
    lab.server.says(ALICE, "four");
    let mut last = next_message(&mut inbox).await;
    if last.update == three.update {
        // What was stored before the connection ended may come again, under its own name.
        last = next_message(&mut inbox).await;
    }
    assert_eq!(last.text, "four");
    assert_eq!(lab.server.identifies(), 1, "no session was begun for that");
}

#[tokio::test]
async fn each_way_to_end_a_connection_has_its_consequence() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let mut expected = (1, 0);
    for (name, end, begins) in [
        ("cut", (|server| server.cut()) as fn(&DiscordServer), false),
        ("4000", |server| server.close(4000), false),
        ("4008", |server| server.close(4008), false),
        ("1001", |server| server.close(1001), false),
        ("reconnect", |server| server.order_reconnect(), false),
        (
            "invalid, resumable",
            |server| server.invalidate_session(true),
            false,
        ),
        ("4007", |server| server.close(4007), true),
        ("4009", |server| server.close(4009), true),
        ("invalid", |server| server.invalidate_session(false), true),
    ] {
        end(&lab.server);
        match begins {
            true => expected.0 += 1,
            false => expected.1 += 1,
        }
        let connected = lab.server.wait_until(name, || {
            let counted = (lab.server.identifies(), lab.server.resumes().len());
            (counted == expected).then_some(())
        });
        listening_until(&mut inbox, connected).await;
        lab.server.says(ALICE, name);
        assert_eq!(next_message(&mut inbox).await.text, name);
    }
    assert!(
        lab.server.closes().iter().all(|code| *code >= 4000),
        "a code below would end the session: {:?}",
        lab.server.closes()
    );
}

#[tokio::test]
async fn a_gateway_that_does_not_answer_beats_is_left_and_the_session_kept() {
    let server = DiscordServer::beating(Duration::from_millis(50))
        .await
        .unwrap();
    let lab = Lab::at(server, |_| {});
    let mut inbox = lab.listen();
    let beating = lab
        .server
        .wait_until("some beats", || (lab.server.beats() > 5).then_some(()));
    listening_until(&mut inbox, beating).await;
    assert_eq!(lab.server.resumes(), [0; 0], "it is well while it answers");
    lab.server.answer_beats(false);
    let resumed = lab.server.wait_until("a resume", || {
        (!lab.server.resumes().is_empty()).then_some(())
    });
    listening_until(&mut inbox, resumed).await;
    lab.server.answer_beats(true);
    assert_eq!(lab.server.closes()[0], 4000);
    lab.server.says(ALICE, "still there?");
    assert_eq!(next_message(&mut inbox).await.text, "still there?");
    assert_eq!(lab.server.identifies(), 1);
}

#[tokio::test]
async fn a_beat_that_is_asked_for_is_given() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let before = lab.server.beats();
    lab.server.ask_for_beat();
    let beat = lab
        .server
        .wait_until("a beat", || (lab.server.beats() > before).then_some(()));
    listening_until(&mut inbox, beat).await;
}

#[tokio::test]
async fn a_token_that_is_not_known_ends_it() {
    let lab = Lab::with(|config| config.token = hermetic_types::Secret::new("wrong")).await;
    let mut inbox = lab.listen();
    let last = timeout(PATIENCE, inbox.next()).await.unwrap().unwrap();
    let ReceiveError::Ended { description, .. } = last.unwrap_err();
    assert!(description.contains("token"), "{description}");
    assert!(timeout(PATIENCE, inbox.next()).await.unwrap().is_none());
    assert!(matches!(lab.discord.state(), ChatState::Stopped { .. }));
    assert_eq!(lab.server.identifies(), 0);
}

#[tokio::test]
async fn a_missing_content_intent_is_said_with_its_remedy() {
    let lab = Lab::new().await;
    lab.server.withhold_content();
    let mut inbox = lab.listen();
    let last = timeout(PATIENCE, inbox.next()).await.unwrap().unwrap();
    let last = last.unwrap_err();
    // The token is good.
    assert!(!last.to_string().contains("credentials"), "{last}");
    let ReceiveError::Ended { description, .. } = last;
    assert!(description.contains("developer portal"), "{description}");
    assert!(
        description.contains("message_content: false"),
        "{description}"
    );
    assert_eq!(lab.server.identifies(), 1, "it is not tried again");
}

#[tokio::test]
async fn without_the_content_intent_mentions_and_private_messages_are_heard() {
    let lab = Lab::with(|config| {
        config.message_content = false;
        config.hearing.require_mention = false;
    })
    .await;
    lab.server.withhold_content();
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says_in(CHANNEL, ALICE, "to nobody");
    lab.server.says_in(CHANNEL, ALICE, "<@42> hello");
    assert_eq!(next_message(&mut inbox).await.text, "hello");
    lab.server.says(ALICE, "in private");
    assert_eq!(next_message(&mut inbox).await.text, "in private");
}

#[tokio::test]
async fn no_session_is_begun_when_few_are_left() {
    let lab = Lab::new().await;
    lab.server.leave_starts(5);
    let mut inbox = lab.listen();
    let asked = lab.server.wait_for("GET /gateway/bot", 1);
    listening_until(&mut inbox, asked).await;
    let why = tokio::select! {
        why = wait_until_retrying(&*lab.discord) => why,
        _ = inbox.next() => panic!("nobody was to be heard"),
    };
    assert!(why.contains("14400"), "{why}");
    assert_eq!(lab.server.identifies(), 0);
}

#[tokio::test]
async fn a_restart_goes_on_with_the_session() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(ALICE, "before");
    assert_eq!(next_message(&mut inbox).await.text, "before");
    lab.leave(inbox).await;
    // The first word of somebody who never wrote is in no history that is swept.
    lab.server.says(8, "meanwhile");
    let lab = lab.restarted(|_| {});
    let mut inbox = lab.listen();
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), heard.sender.id.as_str()),
        ("meanwhile", "8")
    );
    assert_eq!(
        (lab.server.identifies(), lab.server.resumes().len()),
        (1, 1)
    );
    assert_eq!(lab.server.tries(HISTORY), 0, "nothing was missed");
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_tried_again() {
    let lab = Lab::new().await;
    for _ in 0..3 {
        lab.server
            .fail_next("GET /gateway/bot", Failure::BadGateway);
    }
    lab.server.fail_next("GET /users/@me", Failure::Drop);
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    lab.server.says(ALICE, "at last");
    assert_eq!(next_message(&mut inbox).await.text, "at last");
    assert_eq!(lab.server.tries("GET /gateway/bot"), 4);
    assert_eq!(lab.discord.state(), ChatState::Connected);
}

#[tokio::test]
async fn a_check_names_the_bot_and_what_it_lacks() {
    let lab = Lab::new().await;
    let check = lab.discord.check().await.unwrap();
    assert_eq!(
        (check.name.as_deref(), check.shortcomings.len()),
        (Some("hermetic"), 0)
    );
    lab.server.withhold_content();
    lab.server.leave_starts(20);
    let check = lab.discord.check().await.unwrap();
    assert!(
        check.shortcomings[0]
            .remedy
            .contains("message_content: false")
    );
    assert!(check.shortcomings[1].problem.contains("20"));
    // May see channels and write there, and nothing else.
    lab.server.permit_only(1 << 10 | 1 << 11);
    let check = lab.discord.check().await.unwrap();
    let problem = &check.shortcomings[2].problem;
    assert!(
        problem.contains("Read Message History") && problem.contains("Create Public Threads"),
        "{problem}"
    );
    assert!(!problem.contains("View Channels"), "{problem}");
    assert_eq!(lab.server.identifies(), 0);
    let stranger = Lab::with(|config| config.token = hermetic_types::Secret::new("wrong")).await;
    let error = stranger.discord.check().await.unwrap_err();
    assert!(
        matches!(error, CheckError::Unauthorized { .. }),
        "{error:?}"
    );
}
