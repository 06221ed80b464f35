//! Files both ways.

use bytes::Bytes;
use futures::TryStreamExt;
use hermetic_chat::{Chat, DownloadError, OutgoingFile, SendFailure};
use hermetic_testkit::slack::{CHANNEL, Failure};
use hermetic_types::{Attachment, AttachmentId, AttachmentKind};

use crate::lab::{Lab, outgoing, private, thread};

fn attachment(id: &str) -> Attachment {
    Attachment {
        id: AttachmentId::new(id).unwrap(),
        kind: AttachmentKind::Document,
        name: None,
        mime: None,
        bytes: None,
    }
}

async fn fetched(lab: &Lab, id: &str, limit: u64) -> Result<Vec<u8>, DownloadError> {
    let stream = lab.slack.download(&attachment(id), limit).await?;
    let chunks: Vec<Bytes> = stream.try_collect().await?;
    Ok(chunks.concat())
}

#[tokio::test]
async fn a_file_is_shown_by_the_last_of_three_steps() {
    let lab = Lab::new().await;
    let file = OutgoingFile {
        name: "../../notes.txt".to_owned(),
        bytes: Bytes::from_static(b"a note"),
        caption: Some(outgoing("**look**")),
    };
    let place = thread(CHANNEL, "1700000000.000100");
    let id = lab.slack.send_file(&place, &file).await.unwrap();
    assert_eq!(lab.server.file(id.as_str()).unwrap(), "a note");
    let asked = lab.server.calls("files.getUploadURLExternal").remove(0);
    assert_eq!(
        (&asked["filename"], &asked["length"]),
        (&"notes.txt".into(), &"6".into())
    );
    let shown = lab.server.calls("files.completeUploadExternal").remove(0);
    assert_eq!(shown["thread_ts"], "1700000000.000100");
    assert_eq!(shown["initial_comment"], "*look*");

    // Before the last step nobody has seen anything; after it, who knows.
    for (step, failure) in [
        ("files.getUploadURLExternal", Failure::DropAfter),
        ("upload", Failure::DropAfter),
        ("upload", Failure::BadGateway),
    ] {
        lab.server.fail_next(step, failure);
        let failure = lab
            .slack
            .send_file(&private(), &file)
            .await
            .unwrap_err()
            .failure;
        assert!(
            matches!(failure, SendFailure::NotSent(_)),
            "{step}: {failure:?}"
        );
    }
    lab.server
        .fail_next("files.completeUploadExternal", Failure::DropAfter);
    let failure = lab
        .slack
        .send_file(&private(), &file)
        .await
        .unwrap_err()
        .failure;
    assert!(matches!(failure, SendFailure::Uncertain(_)), "{failure:?}");
    lab.server.fail_next(
        "files.completeUploadExternal",
        Failure::Refuse("missing_scope"),
    );
    let failure = lab
        .slack
        .send_file(&private(), &file)
        .await
        .unwrap_err()
        .failure;
    assert!(
        matches!(failure, SendFailure::Refused { .. }),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_file_is_fetched_within_its_bounds() {
    let lab = Lab::new().await;
    lab.server.put_file("F1", "text/plain", "twelve bytes");
    assert_eq!(fetched(&lab, "F1", 12).await.unwrap(), b"twelve bytes");
    let too_large = fetched(&lab, "F1", 11).await;
    assert!(
        matches!(too_large, Err(DownloadError::TooLarge { limit: 11 })),
        "{too_large:?}"
    );
    let gone = fetched(&lab, "F2", 11).await;
    assert!(
        matches!(gone, Err(DownloadError::Refused { .. })),
        "{gone:?}"
    );
    lab.server.fail_next("download", Failure::Drop);
    assert!(fetched(&lab, "F1", 12).await.is_err());
}

#[tokio::test]
async fn a_login_page_is_not_the_file() {
    let lab = Lab::new().await;
    lab.server.put_file("F1", "text/plain", "a note");
    lab.server
        .put_file("F2", "text/html", "<p>a page of somebody's</p>");
    assert!(fetched(&lab, "F2", 1000).await.unwrap().starts_with(b"<p>"));
    for id in ["F1", "F2"] {
        lab.server.hide_file(id);
        let Err(DownloadError::Refused { description }) = fetched(&lab, id, 1000).await else {
            panic!("the login page was taken for {id}");
        };
        assert!(description.contains("files:read"), "{description}");
    }
}
