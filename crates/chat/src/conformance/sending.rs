//! What goes out: whole, within limits, and with certainty about what arrived.

use bytes::Bytes;

use super::candidate::{ChatCandidate, SendFate, outgoing};
use crate::{ChatReply, OutgoingFile, SendError, SendFailure};

/// A platform that takes more than this in one message is not filled up by a test.
const MOST_FILLED: usize = 100_000;

pub async fn a_long_text_leaves_in_parts_that_fit(candidate: ChatCandidate) {
    let limit = candidate.chat.capabilities().text;
    let wanted = (limit.length * 5 / 2).min(MOST_FILLED);
    let mut text = String::new();
    for number in 0.. {
        text.push_str(&format!("Word {number} of a *long* text, 😀 a.b_c!\n"));
        if limit.unit.count(&text) >= wanted {
            break;
        }
    }
    let parts = candidate.chat.capabilities().parts(&outgoing(&text));
    for part in &parts {
        assert!(limit.fits(part.as_str()), "{} is too long", part.as_str());
        let sent = candidate.try_to_send(&ChatReply::text(part.clone())).await;
        assert_eq!(sent.expect("a part can be sent").len(), 1);
    }
    let shown = candidate.stand_in.shown();
    assert_eq!(shown.len(), parts.len());
    let together = shown.concat();
    for number in [0, text.lines().count() / 2, text.lines().count() - 1] {
        assert!(
            together.contains(&format!("Word {number} of a")),
            "{number}"
        );
    }
}

pub async fn an_empty_text_is_not_sent(candidate: ChatCandidate) {
    let reply = ChatReply::text(outgoing(" \n "));
    let sent = candidate.try_to_send(&reply);
    assert!(matches!(
        sent.await,
        Err(SendError {
            failure: SendFailure::Empty,
            ..
        })
    ));
    assert_eq!(candidate.stand_in.shown(), [""; 0]);
}

pub async fn a_message_is_changed_or_that_is_refused(candidate: ChatCandidate) {
    let (chat, place) = (&candidate.chat, candidate.stand_in.place());
    let sent = candidate.send("before").await;
    let after = outgoing("after");
    let changed = chat.edit(&place, &sent[0], &after, &[]).await;
    if !chat.capabilities().edits {
        refused(changed);
        return;
    }
    changed.expect("a message can be changed");
    let same = chat.edit(&place, &sent[0], &after, &[]).await;
    same.expect("an edit that changes nothing is fine");
    assert_eq!(candidate.stand_in.shown(), ["after"]);
}

pub async fn a_refused_send_did_not_arrive(candidate: ChatCandidate) {
    candidate.stand_in.decide_next_send(SendFate::Refused);
    let reply = ChatReply::text(outgoing("hello"));
    let sent = candidate.try_to_send(&reply);
    refused(sent.await);
    assert_eq!(candidate.stand_in.shown(), [""; 0]);
    candidate.send("again").await;
    assert_eq!(candidate.stand_in.shown(), ["again"]);
}

pub async fn what_may_have_arrived_is_uncertain(candidate: ChatCandidate) {
    let fate = SendFate::ArrivesUnconfirmed;
    candidate.stand_in.decide_next_send(fate);
    let reply = ChatReply::text(outgoing("hello"));
    let sent = candidate.try_to_send(&reply);
    let failure = sent.await.expect_err("nobody confirmed it").failure;
    assert!(matches!(failure, SendFailure::Uncertain(_)), "{failure:?}");
    assert!(!failure.is_safe_to_repeat());
    // Only the caller knows whether a second one may be shown.
    assert_eq!(candidate.stand_in.shown(), ["hello"]);
}

pub async fn a_file_leaves_or_is_refused(candidate: ChatCandidate) {
    let (chat, place) = (&candidate.chat, candidate.stand_in.place());
    let mut file = OutgoingFile {
        name: "notes.txt".to_owned(),
        bytes: Bytes::from_static(b"a note"),
        caption: None,
    };
    let sent = chat.send_file(&place, &file).await;
    let Some(most) = chat.capabilities().files_out else {
        refused(sent);
        return;
    };
    sent.expect("a file can be sent");
    let too_much = usize::try_from(most).expect("a size of this machine") + 1;
    file.bytes = Bytes::from(vec![0; too_much]);
    let failure = chat.send_file(&place, &file).await;
    let failure = failure.expect_err("it is too large").failure;
    assert!(
        matches!(failure, SendFailure::TooLong { .. }),
        "{failure:?}"
    );
}

pub async fn a_person_is_reached_alone_or_that_is_refused(candidate: ChatCandidate) {
    let person = candidate.stand_in.person();
    match candidate.chat.private_place(&person).await {
        Ok(place) => {
            assert_eq!(place, candidate.stand_in.place());
            let reply = ChatReply::text(outgoing("a word alone"));
            let sent = candidate.chat.send(&place, &reply).await;
            sent.expect("a message can be sent there");
            assert_eq!(candidate.stand_in.shown(), ["a word alone"]);
        }
        Err(error) => refused(Err::<(), _>(error)),
    }
}

/// It certainly did not happen, and trying again would end the same.
fn refused<T>(done: Result<T, SendError>) {
    let failure = done.err().expect("it is refused").failure;
    assert!(
        matches!(failure, SendFailure::Refused { .. }),
        "{failure:?}"
    );
}
