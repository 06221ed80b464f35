//! What only a bridge has: messages that come once, files by path, groups by address.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{
    AdapterState, Chat, ChatReply, ChatState, DownloadError, InMemoryState, OutgoingFile,
    SendFailure,
};
use hermetic_types::{Attachment, AttachmentId, AttachmentKind, ChatId, ChatKind, ChatPlace};
use hermetic_whatsapp::{WhatsAppBridge, WhatsAppHearing};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::config;
use super::server::BridgeServer;
use crate::lab::{next, next_message, outgoing};

fn group() -> ChatPlace {
    ChatPlace {
        chat: ChatId::new("120363@g.us").unwrap(),
        kind: ChatKind::Group,
        thread: None,
    }
}

#[tokio::test]
async fn what_the_bridge_handed_over_survives_a_crash_before_it_is_stored() {
    let server = BridgeServer::start().await;
    let state = Arc::new(InMemoryState::default());
    let bridge = || {
        let mut config = config(&server);
        config.state = Arc::clone(&state) as Arc<dyn AdapterState>;
        WhatsAppBridge::new(config).unwrap()
    };
    let first = bridge();
    server.says(json!({ "messageId": "A", "body": "one" }));
    {
        let mut inbox = first.receive(CancellationToken::new());
        let received = next(&mut inbox).await;
        drop(inbox);
        drop(received);
    }
    let second = bridge();
    let mut inbox = second.receive(CancellationToken::new());
    assert_eq!(next_message(&mut inbox).await.text, "one");
    // Once it is seen that it was stored, it is forgotten: by the time of the next one at the latest.
    server.says(json!({ "messageId": "B", "body": "two" }));
    assert_eq!(next_message(&mut inbox).await.text, "two");
    server.says(json!({ "messageId": "C", "body": "three" }));
    assert_eq!(next_message(&mut inbox).await.text, "three");
    let kept = state.load_all("polled:").await.unwrap();
    assert!(kept.iter().all(|(key, _)| key != "polled:A"), "{kept:?}");
}

#[tokio::test]
async fn in_a_group_only_what_names_us_is_heard_where_that_is_wanted() {
    let server = BridgeServer::start().await;
    let mut config = config(&server);
    config.hearing = WhatsAppHearing {
        require_mention: true,
        ..WhatsAppHearing::default()
    };
    let bridge = WhatsAppBridge::new(config).unwrap();
    let mut inbox = bridge.receive(CancellationToken::new());
    let says = |id: &str, fields: serde_json::Value| {
        let mut message = json!({
            "messageId": id, "chatId": "120363@g.us", "isGroup": true,
            "senderId": "777666555@lid", "body": id,
        });
        message
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        server.says(message);
    };
    says("among ourselves", json!({}));
    // The same digits, hidden: somebody else.
    says("another", json!({ "mentionedIds": ["15550783881@lid"] }));
    says(
        "named",
        json!({ "mentionedIds": ["15550783881@s.whatsapp.net"] }),
    );
    says("hidden", json!({ "mentionedIds": ["998877665544@lid"] }));
    says(
        "replied",
        json!({
            "quotedMessageId": "BAE5", "quotedParticipant": "15550783881:7@s.whatsapp.net", "quotedText": "/sh rm",
        }),
    );
    for expected in ["named", "hidden", "replied"] {
        let heard = next_message(&mut inbox).await;
        assert_eq!((heard.text.as_str(), &heard.place), (expected, &group()));
        assert_eq!(heard.sender.id.as_str(), "777666555@lid");
        assert_eq!(
            heard.reply_to.is_some_and(|quoted| quoted.from_us),
            expected == "replied"
        );
    }
}

#[tokio::test]
async fn files_come_from_the_bridges_folders_and_from_nowhere_else() {
    let server = BridgeServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (media, other) = (folder.path().join("media"), folder.path().join("other"));
    for folder in [&media, &other] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("a.txt"), "a note").unwrap();
    }
    symlink(other.join("a.txt"), media.join("link.txt")).unwrap();
    let mut config = config(&server);
    config.media_folders = vec![media.clone()];
    config.outgoing_folder = folder.path().join("outgoing");
    let bridge = WhatsAppBridge::new(config).unwrap();
    let fetch = async |path: &std::path::Path, limit| {
        let attachment = Attachment {
            id: AttachmentId::new(path.to_str().unwrap()).unwrap(),
            kind: AttachmentKind::Document,
            name: None,
            mime: None,
            bytes: None,
        };
        let chunks: Vec<Bytes> = bridge
            .download(&attachment, limit)
            .await?
            .try_collect()
            .await?;
        Ok::<_, DownloadError>(chunks.concat())
    };
    assert_eq!(fetch(&media.join("a.txt"), 6).await.unwrap(), b"a note");
    assert!(matches!(
        fetch(&media.join("a.txt"), 5).await,
        Err(DownloadError::TooLarge { .. })
    ));
    for path in [
        other.join("a.txt"),
        media.join("link.txt"),
        media.join("../other/a.txt"),
        media,
    ] {
        let refused = fetch(&path, 6).await;
        assert!(
            matches!(refused, Err(DownloadError::Refused { .. })),
            "{path:?}"
        );
    }

    let file = OutgoingFile {
        name: "../x/plot.PNG".to_owned(),
        bytes: Bytes::from_static(b"\x89PNG"),
        caption: Some(outgoing("**A plot**")),
    };
    bridge.send_file(&group(), &file).await.unwrap();
    let (_, sent) = server.world().sent[0].clone();
    assert_eq!(
        (sent["fileName"].as_str(), sent["caption"].as_str()),
        (Some("plot.PNG"), Some("*A plot*"))
    );
    assert!(sent["filePath"].as_str().unwrap().ends_with(".png"));
    assert_eq!(server.world().files, [b"\x89PNG".to_vec()]);
    let left = fs::read_dir(folder.path().join("outgoing")).unwrap();
    assert_eq!(left.count(), 0, "it is gone when it was sent");
}

#[tokio::test]
async fn a_bridge_that_is_away_is_shown_and_waited_for() {
    let server = BridgeServer::start().await;
    server.world().is_away = true;
    let bridge = WhatsAppBridge::new(config(&server)).unwrap();
    let check = bridge.check().await.unwrap();
    assert!(check.shortcomings[0].problem.contains("disconnected"));
    server.world().failures.push_back(503);
    let sent = bridge
        .send(&group(), &ChatReply::text(outgoing("hello")))
        .await;
    let failure = sent.unwrap_err().failure;
    assert!(matches!(failure, SendFailure::NotSent(_)), "{failure:?}");

    let mut inbox = bridge.receive(CancellationToken::new());
    server.says(json!({ "messageId": "A" }));
    next_message(&mut inbox).await;
    assert!(matches!(bridge.state(), ChatState::Retrying { .. }));
    server.world().is_away = false;
    loop {
        let id = format!("B{}", server.world().typing);
        server.says(json!({ "messageId": id }));
        next_message(&mut inbox).await;
        if bridge.state() == ChatState::Connected {
            break;
        }
        bridge.typing(&group()).await.unwrap();
    }
}
