//! Files both ways, within bounds.

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{Chat, DownloadError, OutgoingFile};
use hermetic_testkit::discord::CREATE_MESSAGE;
use hermetic_types::{Attachment, AttachmentKind};
use serde_json::json;

use crate::lab::{ALICE, Lab, listening_until, next_message, outgoing};

async fn attached(lab: &Lab, size: u64, url: &str) -> Attachment {
    let mut inbox = lab.listen();
    listening_until(&mut inbox, lab.server.wait_for_bot()).await;
    let file = json!({
        "id": "3", "filename": "a.png", "size": size, "content_type": "image/png", "url": url,
    });
    let fields = json!({ "attachments": [file] });
    lab.server
        .says_with(lab.server.private_channel(ALICE), ALICE, fields);
    next_message(&mut inbox).await.attachments.remove(0)
}

async fn bytes_of(lab: &Lab, attachment: &Attachment, limit: u64) -> Result<usize, DownloadError> {
    let chunks = lab.discord.download(attachment, limit).await?;
    chunks
        .try_fold(0, async |sum, chunk| Ok(sum + chunk.len()))
        .await
}

#[tokio::test]
async fn a_file_is_fetched_by_an_address_that_is_asked_for_anew() {
    let lab = Lab::new().await;
    let url = lab.server.put_file("a.png", vec![1; 1000]);
    let attachment = attached(&lab, 1000, &url).await;
    assert_eq!(
        (attachment.kind, attachment.bytes),
        (AttachmentKind::Photo, Some(1000))
    );
    assert!(
        !attachment.id.as_str().contains("http"),
        "addresses do not last"
    );
    assert_eq!(bytes_of(&lab, &attachment, 1000).await.unwrap(), 1000);
    assert_eq!(lab.server.tries("GET /channels/{}/messages/{}"), 1);
    assert!(matches!(
        bytes_of(&lab, &attachment, 999).await,
        Err(DownloadError::TooLarge { limit: 999 })
    ));
}

#[tokio::test]
async fn a_file_that_is_larger_than_it_says_is_cut_off() {
    let lab = Lab::with(|config| config.max_attachment_bytes = 500).await;
    let url = lab.server.put_file("a.png", vec![1; 1000]);
    let attachment = attached(&lab, 10, &url).await;
    assert!(matches!(
        bytes_of(&lab, &attachment, u64::MAX).await,
        Err(DownloadError::TooLarge { limit: 500 })
    ));
    assert_eq!(lab.discord.capabilities().files_in, Some(500));
}

#[tokio::test]
async fn nothing_is_fetched_from_elsewhere() {
    for url in [
        "http://127.0.0.1:9/a.png",
        "file:///etc/passwd",
        "https://example.com/x",
        "",
    ] {
        let lab = Lab::new().await;
        let attachment = attached(&lab, 10, url).await;
        let fetched = bytes_of(&lab, &attachment, 1000).await;
        assert!(
            matches!(fetched, Err(DownloadError::Refused { .. })),
            "{url}: {fetched:?}"
        );
    }
}

#[tokio::test]
async fn a_file_leaves_with_its_caption_and_without_its_path() {
    let lab = Lab::new().await;
    let file = OutgoingFile {
        name: "../../etc/notes.txt".to_owned(),
        bytes: Bytes::from_static(b"a note"),
        caption: Some(outgoing("@here it is")),
    };
    lab.discord.send_file(&lab.private(), &file).await.unwrap();
    let call = &lab.server.calls(CREATE_MESSAGE)[0];
    assert_eq!(call.file.as_deref(), Some(&b"a note"[..]));
    assert_eq!(call.body["content"], "@here it is");
    assert_eq!(call.body["attachments"][0]["filename"], "notes.txt");
    assert_eq!(
        call.body["allowed_mentions"]["parse"]
            .as_array()
            .map(Vec::len),
        Some(0)
    );
}
