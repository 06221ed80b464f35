//! Tokens and passwords, and a homeserver that falls silent or goes away.

use std::time::Duration;

use futures::StreamExt;
use hermetic_chat::{Chat, ChatReply, ChatState, ReceiveError, SendKey};
use hermetic_matrix::HomeserverCredentials;
use hermetic_testkit::chat_state::wait_until_retrying;
use hermetic_testkit::matrix::ProxyFault;
use hermetic_testkit::pypi::{Synapse, SynapseLimits};
use hermetic_types::Secret;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, PATIENCE, next_message, outgoing};

#[tokio::test]
async fn a_password_makes_one_session_and_a_new_one_keeps_its_device() {
    let Some(lab) = Lab::new("a_password_makes_one_session").await else {
        return;
    };
    let with_password = || {
        let state = std::sync::Arc::clone(&lab.state);
        let mut config = crate::lab::config(lab.proxy.url(), &lab.bot, state);
        config.credentials = HomeserverCredentials::Password {
            user: lab.bot.user().to_owned(),
            password: Secret::new(lab.bot.password()),
        };
        config.device = Some("HERMETICTEST".to_owned());
        hermetic_matrix::MatrixAdapter::new(config).unwrap()
    };
    let logins = || {
        let all = lab.proxy.requests();
        all.iter()
            .filter(|request| request.ends_with("/login"))
            .count()
    };
    let first = with_password();
    let mut inbox = crate::lab::listen(&first, &lab.proxy).await;
    lab.alice.says(&lab.room, "one").await;
    assert_eq!(next_message(&mut inbox).await.text, "one");
    lab.settle(&mut inbox).await;
    drop(inbox);
    let second = with_password();
    let mut inbox = second.receive(CancellationToken::new());
    lab.alice.says(&lab.room, "two").await;
    assert_eq!(next_message(&mut inbox).await.text, "two");
    assert_eq!(logins(), 1, "the session was kept");
    // The homeserver ends it softly: we log in again, as the same device.
    lab.proxy.spoil(ProxyFault::LogOut);
    // The sync under way brings one more; the next one is refused.
    for text in ["three", "four"] {
        lab.alice.says(&lab.room, text).await;
        assert_eq!(next_message(&mut inbox).await.text, text);
    }
    assert_eq!(logins(), 2);
    let devices = lab.bot.get(&["devices"]).await;
    let ours = devices["devices"].as_array().unwrap().iter();
    let ours = ours.filter(|device| device["device_id"] == "HERMETICTEST");
    assert_eq!(ours.count(), 1, "{devices}");
    // A look at the account leaves no session behind.
    let before = devices["devices"].as_array().unwrap().len();
    assert_eq!(
        second.check().await.unwrap().name.as_deref(),
        Some(lab.bot.user())
    );
    let devices = lab.bot.get(&["devices"]).await;
    assert_eq!(devices["devices"].as_array().unwrap().len(), before);
}

#[tokio::test]
async fn a_token_that_is_good_no_more_is_said_with_its_remedy() {
    let Some(lab) = Lab::new("a_token_that_is_good_no_more").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    lab.bot.post(&["logout"], serde_json::json!({})).await;
    let last = tokio::time::timeout(PATIENCE, inbox.next())
        .await
        .unwrap()
        .unwrap();
    let ReceiveError::Ended { description, .. } = last.unwrap_err();
    assert!(description.contains("MATRIX_ACCESS_TOKEN"), "{description}");
    assert!(inbox.next().await.is_none());
    assert!(matches!(lab.matrix.state(), ChatState::Stopped { .. }));
    let checked = lab.matrix.check().await.unwrap_err().to_string();
    assert!(checked.contains("M_UNKNOWN_TOKEN"), "{checked}");
    // What was to be said waits for a token that is good.
    let reply = ChatReply::text(outgoing("later"));
    let failure = lab
        .matrix
        .send(&lab.private(), &reply)
        .await
        .unwrap_err()
        .failure;
    assert!(failure.is_safe_to_repeat(), "{failure:?}");
}

#[tokio::test]
async fn somebody_elses_token_is_not_used() {
    let Some(lab) = Lab::with("somebody_elses_token", |config| {
        if let HomeserverCredentials::Token { user, .. } = &mut config.credentials {
            *user = Some("@somebody:else".to_owned());
        }
    })
    .await
    else {
        return;
    };
    let mut inbox = lab.matrix.receive(CancellationToken::new());
    let last = inbox.next().await.unwrap().unwrap_err().to_string();
    assert!(
        last.contains("@somebody:else") && last.contains(lab.bot.user()),
        "{last}"
    );
}

#[tokio::test]
async fn a_homeserver_that_falls_silent_or_breaks_off_is_noticed_and_shown() {
    let Some(lab) = Lab::with("a_homeserver_that_falls_silent", |config| {
        config.timing.poll = Duration::from_millis(200);
        config.timing.slack = Duration::from_millis(800);
        config.timing.retry = (Duration::from_millis(100), Duration::from_millis(200));
    })
    .await
    else {
        return;
    };
    let mut inbox = lab.listen().await;
    lab.proxy.spoil(ProxyFault::Deaf);
    let why = tokio::select! {
        _ = inbox.next() => panic!("nothing was said"),
        why = wait_until_retrying(&*lab.matrix) => why,
    };
    assert_eq!(why, "the homeserver fell silent");
    lab.proxy.mend();
    lab.alice.says(&lab.room, "are you deaf?").await;
    assert_eq!(next_message(&mut inbox).await.text, "are you deaf?");
    assert_eq!(lab.matrix.state(), ChatState::Connected);
    for fault in [ProxyFault::BreakSyncs(3), ProxyFault::Away(3)] {
        lab.proxy.spoil(fault);
        lab.alice.says(&lab.room, "and now?").await;
        assert_eq!(next_message(&mut inbox).await.text, "and now?");
    }
}

#[tokio::test]
async fn a_homeserver_that_restarts_in_mid_traffic_loses_and_doubles_nothing() {
    let synapse = match Synapse::start(SynapseLimits::None).await {
        Ok(synapse) => synapse,
        Err(why) => {
            eprintln!("SKIP: a_homeserver_that_restarts: no Synapse: {why}");
            return;
        }
    };
    let mut lab = Lab::on(synapse, |config| {
        config.timing.retry = (Duration::from_millis(500), Duration::from_secs(5));
    })
    .await;
    let matrix = std::sync::Arc::clone(&lab.matrix);
    let mut inbox = crate::lab::listen(&matrix, &lab.proxy).await;
    lab.alice.says(&lab.room, "before").await;
    assert_eq!(next_message(&mut inbox).await.text, "before");
    let place = lab.private();
    let reply = ChatReply {
        key: Some(SendKey::new(1, 0)),
        ..ChatReply::text(outgoing("an answer"))
    };
    lab.synapse.stop().await;
    // Both are under way while it is gone: it is heard and spoken to when it is back.
    let sending = async {
        loop {
            match matrix.send(&place, &reply).await {
                Ok(sent) => return sent,
                Err(error) => assert!(
                    !matches!(error.failure, hermetic_chat::SendFailure::Refused { .. }),
                    "{error:?}"
                ),
            }
        }
    };
    let restarting = async {
        lab.synapse.go_on().await.unwrap();
        lab.alice.says(&lab.room, "after").await;
    };
    let hearing = next_message(&mut inbox);
    let (sent, (), heard) = tokio::join!(sending, restarting, hearing);
    assert_eq!((sent.len(), heard.text.as_str()), (1, "after"));
    let shown = lab.alice.shown(&lab.room, lab.bot.user()).await;
    assert_eq!(shown.len(), 1, "{shown:?}");
}
