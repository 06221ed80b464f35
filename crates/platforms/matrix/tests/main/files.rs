//! Files both ways.

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{Chat, DownloadError, OutgoingFile};
use hermetic_types::{AttachmentId, AttachmentKind};
use serde_json::json;

use crate::lab::{Lab, next_message, outgoing};

#[tokio::test]
async fn files_come_with_a_token_and_leave_with_a_caption() {
    let Some(lab) = Lab::new("files_come_with_a_token").await else {
        return;
    };
    let mut inbox = lab.listen().await;
    let url = lab.alice.uploads(b"some notes", "text/plain").await;
    let content = json!({ "msgtype": "m.file", "body": "read this", "filename": "notes.txt",
        "url": url, "info": { "mimetype": "text/plain", "size": 10 } });
    lab.alice.sends(&lab.room, content).await;
    let heard = next_message(&mut inbox).await;
    assert_eq!(heard.text, "read this");
    let file = &heard.attachments[0];
    assert_eq!(
        (file.kind, file.name.as_deref()),
        (AttachmentKind::Document, Some("notes.txt"))
    );
    let bytes = lab.matrix.download(file, 1000).await.unwrap();
    let bytes: Vec<Bytes> = bytes.try_collect().await.unwrap();
    assert_eq!(bytes.concat(), b"some notes");
    // What is claimed does not count.
    let mut larger = file.clone();
    larger.bytes = None;
    let too_large = async {
        let bytes = lab.matrix.download(&larger, 4).await?;
        bytes.try_collect::<Vec<_>>().await
    };
    assert!(matches!(
        too_large.await,
        Err(DownloadError::TooLarge { limit: 4 })
    ));
    let mut gone = file.clone();
    let server = lab.bot.user().split_once(':').unwrap().1;
    gone.id = AttachmentId::new(format!("mxc://{server}/nothing")).unwrap();
    let refused = lab.matrix.download(&gone, 1000).await.err().unwrap();
    assert!(
        matches!(refused, DownloadError::Refused { .. }),
        "{refused:?}"
    );

    let picture = OutgoingFile {
        name: "../chart.png".to_owned(),
        bytes: Bytes::from_static(b"\x89PNG"),
        caption: Some(outgoing("**the** chart")),
    };
    let sent = lab
        .matrix
        .send_file(&lab.private(), &picture)
        .await
        .unwrap();
    let shown = lab.alice.shown(&lab.room, lab.bot.user()).await;
    let content = &shown[0].content;
    assert_eq!(shown[0].event, sent.as_str());
    assert_eq!(
        (&content["msgtype"], &content["filename"]),
        (&json!("m.image"), &json!("chart.png"))
    );
    assert_eq!(content["body"], "**the** chart");
    assert_eq!(
        content["info"],
        json!({ "mimetype": "image/png", "size": 4 })
    );
}
