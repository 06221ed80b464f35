//! Files both ways.

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{Chat, DownloadError, OutgoingFile, SendFailure};
use hermetic_testkit::whatsapp::Failure;
use hermetic_types::{Attachment, AttachmentId, AttachmentKind};

use crate::lab::{ALICE, Lab, outgoing, private};

fn attachment(id: &str, bytes: Option<u64>) -> Attachment {
    Attachment {
        id: AttachmentId::new(id).unwrap(),
        kind: AttachmentKind::Document,
        name: None,
        mime: None,
        bytes,
    }
}

async fn fetch(lab: &Lab, attachment: &Attachment, limit: u64) -> Result<Bytes, DownloadError> {
    let chunks: Vec<Bytes> = lab
        .cloud
        .download(attachment, limit)
        .await?
        .try_collect()
        .await?;
    Ok(Bytes::from(chunks.concat()))
}

#[tokio::test]
async fn a_file_is_fetched_in_two_steps_and_within_bounds() {
    let lab = Lab::new().await;
    lab.server.put_file("77001", "a note");
    assert_eq!(
        fetch(&lab, &attachment("77001", None), 6).await.unwrap(),
        "a note"
    );
    let too_large = |fetched| matches!(fetched, Err(DownloadError::TooLarge { .. }));
    assert!(too_large(fetch(&lab, &attachment("77001", None), 5).await));
    assert!(too_large(
        fetch(&lab, &attachment("77001", Some(9)), 6).await
    ));
    for id in ["77002", "../me", "77001?x=1", "me/accounts"] {
        let refused = fetch(&lab, &attachment(id, None), 6).await;
        assert!(
            matches!(refused, Err(DownloadError::Refused { .. })),
            "{id}"
        );
    }
    lab.server.fail_next("file", Failure::DropAfter);
    let broken = fetch(&lab, &attachment("77001", None), 6).await;
    assert!(matches!(broken, Err(DownloadError::Failed(_))));
}

#[tokio::test]
async fn a_file_of_ours_is_uploaded_and_sent_by_its_id() {
    let lab = Lab::new().await;
    let mut file = OutgoingFile {
        name: "../out/plot.png".to_owned(),
        bytes: Bytes::from_static(b"\x89PNG"),
        caption: Some(outgoing("**A plot**")),
    };
    lab.cloud.send_file(&private(ALICE), &file).await.unwrap();
    file.name = "notes.md".to_owned();
    file.bytes = Bytes::from_static(b"# Notes");
    file.caption = None;
    lab.cloud.send_file(&private(ALICE), &file).await.unwrap();
    let sent = lab.server.sent();
    let image = &sent[0].body["image"];
    assert_eq!(image["caption"], "*A plot*");
    let uploaded = lab.server.uploaded(image["id"].as_str().unwrap());
    assert_eq!(uploaded.unwrap(), &b"\x89PNG"[..]);
    assert_eq!(sent[1].body["document"]["filename"], "notes.md");

    file.caption = Some(outgoing("x".repeat(1025)));
    let failure = lab
        .cloud
        .send_file(&private(ALICE), &file)
        .await
        .unwrap_err()
        .failure;
    assert!(matches!(failure, SendFailure::TooLong { .. }));
    file.caption = None;
    lab.server.fail_next("media", Failure::BadGateway);
    let failure = lab
        .cloud
        .send_file(&private(ALICE), &file)
        .await
        .unwrap_err()
        .failure;
    assert!(
        failure.is_safe_to_repeat(),
        "an upload alone shows nobody anything: {failure:?}"
    );
    // A kind of file that Meta does not take.
    file.name = "core.bin".to_owned();
    file.bytes = Bytes::from_static(b"\xff\xfe");
    let failure = lab
        .cloud
        .send_file(&private(ALICE), &file)
        .await
        .unwrap_err()
        .failure;
    assert!(
        matches!(failure, SendFailure::Refused { .. }),
        "{failure:?}"
    );
}
