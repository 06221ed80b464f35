//! Recordings to text, text to speech and words to pictures.

use hermetic_services::{
    ImageService, ImageSettings, ImageShape, ServiceError, SpeechService, SpeechSettings,
    TranscriptionService, TranscriptionSettings,
};
use hermetic_types::Secret;

use crate::origin::Origin;

fn transcription(base_url: &str) -> TranscriptionService {
    TranscriptionService::new(TranscriptionSettings {
        base_url: base_url.to_owned(),
        model: "whisper-1".to_owned(),
        key: Some(Secret::new("key-of-the-operator")),
        key_setting: "VOICE_TOOLS_OPENAI_KEY",
        language: Some("de".to_owned()),
        proxy: None,
    })
    .unwrap()
}

fn images(base_url: &str) -> ImageService {
    ImageService::new(ImageSettings {
        base_url: base_url.to_owned(),
        model: "gpt-image-1".to_owned(),
        key: Some(Secret::new("key-of-the-operator")),
        key_setting: "OPENAI_API_KEY",
        proxy: None,
    })
    .unwrap()
}

#[tokio::test]
async fn a_recording_becomes_text() {
    let origin = Origin::answering(200, r#"{"text":" Guten Tag. "}"#).await;
    let base = format!("{}/v1/", origin.address);
    let said = transcription(&base)
        .transcribe(b"OggS-of-somebody".to_vec(), "voice.ogg")
        .await
        .unwrap();
    assert_eq!(said, "Guten Tag.");
    let (head, body) = origin.last();
    assert_eq!(head.uri.path(), "/v1/audio/transcriptions");
    assert_eq!(head.headers["authorization"], "Bearer key-of-the-operator");
    let body = String::from_utf8(body.to_vec()).unwrap();
    for part in [
        "whisper-1",
        "OggS-of-somebody",
        r#"filename="voice.ogg""#,
        "language",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_transcript_is_none() {
    for body in ["", "text", r#"{"error":"no"}"#, r#"{"text":["a"]}"#] {
        let origin = Origin::answering(200, body).await;
        let failed = transcription(&origin.address)
            .transcribe(vec![1], "voice.ogg")
            .await
            .unwrap_err();
        assert!(
            matches!(failed, ServiceError::Unreadable { .. }),
            "{body}: {failed}"
        );
    }
}

#[tokio::test]
async fn words_become_a_picture() {
    let origin = Origin::answering(200, r#"{"created":1,"data":[{"b64_json":"iVBORw=="}]}"#).await;
    let picture = images(&origin.address)
        .generate("a cat", ImageShape::Portrait)
        .await
        .unwrap();
    assert_eq!(picture.bytes, b"\x89PNG");
    let (head, body) = origin.last();
    assert_eq!(head.uri.path(), "/images/generations");
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(
        body.contains("1024x1536") && body.contains("a cat"),
        "{body}"
    );
}

#[tokio::test]
async fn a_picture_that_is_somewhere_else_is_not_fetched() {
    let elsewhere = Origin::answering(200, "never").await;
    let body = format!(r#"{{"data":[{{"url":"{}/x.png"}}]}}"#, elsewhere.address);
    let origin = Origin::answering(200, body).await;
    let failed = images(&origin.address)
        .generate("a cat", ImageShape::Square)
        .await
        .unwrap_err();
    assert!(
        matches!(failed, ServiceError::Unreadable { .. }),
        "{failed}"
    );
    assert_eq!(elsewhere.requests(), 0);
}

fn speech(base_url: &str) -> SpeechService {
    SpeechService::new(SpeechSettings {
        base_url: base_url.to_owned(),
        model: "gpt-4o-mini-tts".to_owned(),
        voice: "alloy".to_owned(),
        key: Some(Secret::new("key-of-the-operator")),
        key_setting: "VOICE_TOOLS_OPENAI_KEY",
        proxy: None,
    })
    .unwrap()
}

#[tokio::test]
async fn a_text_is_spoken() {
    let origin = Origin::answering(200, "ID3 and so on").await;
    let base = format!("{}/v1", origin.address);
    let spoken = speech(&base).speak("Good morning").await.unwrap();
    assert_eq!(spoken, b"ID3 and so on");
    let (head, body) = origin.last();
    assert_eq!(head.uri.path(), "/v1/audio/speech");
    assert_eq!(head.headers["authorization"], "Bearer key-of-the-operator");
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        body,
        serde_json::json!({"model": "gpt-4o-mini-tts", "voice": "alloy", "input": "Good morning",
            "response_format": "mp3"})
    );
}

#[tokio::test]
async fn what_is_no_recording_is_none_and_may_have_cost() {
    for (status, body, may_cost) in [
        (200, r#"{"error":"no"}"#, true),
        (200, "", true),
        (400, "bad", false),
        (401, "bad", false),
    ] {
        let origin = Origin::answering(status, body).await;
        let failed = speech(&origin.address).speak("hi").await.unwrap_err();
        assert_eq!(failed.may_cost(), may_cost, "{status} {body}: {failed}");
    }
}
