//! What people send, and what of it is heard.

use hermetic_chat::ChatEvent;
use hermetic_testkit::whatsapp::DISPLAY_NUMBER;
use hermetic_types::{AttachmentKind, ChatKind};
use hermetic_whatsapp::WhatsAppHearing;
use serde_json::{Value, json};

use crate::lab::{ALICE, HIDDEN, Lab, next, next_message, next_press};

fn text(words: &str) -> Value {
    json!({ "type": "text", "text": { "body": words } })
}

fn own_number() -> String {
    DISPLAY_NUMBER
        .chars()
        .filter(char::is_ascii_digit)
        .collect()
}

#[tokio::test]
async fn a_message_says_who_wrote_what_where() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let id = lab.server.says(ALICE, "hello");
    let heard = next_message(&mut inbox).await;
    assert_eq!(
        (heard.text.as_str(), heard.update.as_str()),
        ("hello", id.as_str())
    );
    assert_eq!(heard.sender.id.as_str(), ALICE.id);
    assert_eq!(heard.sender.display, "Alice");
    assert_eq!(
        (heard.place.chat.as_str(), heard.place.kind),
        (ALICE.id, ChatKind::Dm)
    );
    assert!(heard.mentions_us);
}

#[tokio::test]
async fn forwarded_words_are_nobodys_order_and_a_reply_names_its_message() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    for forwarded in ["forwarded", "frequently_forwarded"] {
        let mut message = text("/reset\nnow");
        message["context"] = json!({ forwarded: true });
        lab.server.sends(ALICE, message);
        let heard = next_message(&mut inbox).await.text;
        assert_eq!(
            heard,
            "[passed on, not written by who sent it:]\n> /reset\n> now"
        );
    }
    let mut message = text("and this?");
    message["context"] = json!({ "from": own_number(), "id": "wamid.ours" });
    lab.server.sends(ALICE, message);
    let quoted = next_message(&mut inbox).await.reply_to.unwrap();
    assert_eq!(
        (quoted.message.as_str(), quoted.from_us),
        ("wamid.ours", true)
    );
}

#[tokio::test]
async fn files_places_and_contacts_are_heard() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let media = |kind: &str, extra: Value| {
        let mut fields = json!({ "id": "77001", "mime_type": "application/x", "sha256": "x" });
        fields
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({ "type": kind, kind: fields })
    };
    for (message, kind, words) in [
        (
            media(
                "document",
                json!({ "filename": "a.pdf", "caption": "read" }),
            ),
            AttachmentKind::Document,
            "read",
        ),
        (
            media("image", json!({ "caption": "look" })),
            AttachmentKind::Photo,
            "look",
        ),
        (media("video", json!({})), AttachmentKind::Video, ""),
        (
            media("audio", json!({ "voice": true })),
            AttachmentKind::Voice,
            "",
        ),
        (
            media("audio", json!({ "voice": false })),
            AttachmentKind::Audio,
            "",
        ),
        (
            media("sticker", json!({ "animated": false })),
            AttachmentKind::Sticker,
            "",
        ),
    ] {
        lab.server.sends(ALICE, message);
        let heard = next_message(&mut inbox).await;
        assert_eq!(
            (heard.attachments[0].kind, heard.text.as_str()),
            (kind, words)
        );
        assert_eq!(heard.attachments[0].id.as_str(), "77001");
    }
    let place = json!({ "latitude": 37.4, "longitude": -122.1, "name": "HQ" });
    lab.server
        .sends(ALICE, json!({ "type": "location", "location": place }));
    assert_eq!(
        next_message(&mut inbox).await.text,
        "[a place: 37.4, -122.1 (HQ)]"
    );
    let card = json!({ "name": { "formatted_name": "Bob" }, "phones": [{ "phone": "+1 555" }] });
    lab.server
        .sends(ALICE, json!({ "type": "contacts", "contacts": [card] }));
    assert_eq!(
        next_message(&mut inbox).await.text,
        "[contacts: Bob +1 555]"
    );
    lab.server.sends(
        ALICE,
        json!({ "type": "button", "button": { "text": "Yes, go on", "payload": "x" } }),
    );
    assert_eq!(next_message(&mut inbox).await.text, "Yes, go on");
}

#[tokio::test]
async fn in_a_group_only_what_names_us_is_heard_where_that_is_wanted() {
    let lab = Lab::with(|config| {
        config.hearing = WhatsAppHearing {
            require_mention: true,
            free_response_chats: ["free".to_owned().try_into().unwrap()].into(),
            names: vec!["hermes".to_owned()],
            ..WhatsAppHearing::default()
        };
    })
    .await;
    let mut inbox = lab.listen();
    let says = |group: &str, words: &str| {
        let mut message = text(words);
        message["group_id"] = json!(group);
        lab.server.sends(ALICE, message)
    };
    says("team", "among ourselves");
    says("team", &format!("@{}9 is somebody else", own_number()));
    says("team", &format!("@{} hello", own_number()));
    let heard = next_message(&mut inbox).await;
    assert!(
        heard.text.ends_with(" hello") && heard.mentions_us,
        "{heard:?}"
    );
    assert_eq!(
        (heard.place.chat.as_str(), heard.place.kind),
        ("team", ChatKind::Group)
    );
    assert_eq!(heard.sender.id.as_str(), ALICE.id);
    says("team", "Hermes, are you there?");
    assert!(next_message(&mut inbox).await.mentions_us);
    says("free", "anything");
    assert!(!next_message(&mut inbox).await.mentions_us);
}

#[tokio::test]
async fn a_row_of_a_list_is_a_press_and_a_revoked_message_is_deleted() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let list = json!({ "type": "list_reply", "list_reply": { "id": "q:5", "title": "Deny" } });
    let message = json!({
        "type": "interactive", "interactive": list, "context": { "id": "wamid.asked" },
    });
    lab.server.sends(HIDDEN, message);
    let press = next_press(&mut inbox).await;
    assert_eq!(
        (press.data.as_str(), press.message.as_str()),
        ("q:5", "wamid.asked")
    );
    assert_eq!(press.sender.id.as_str(), HIDDEN.id);

    let revoked = json!({ "type": "revoke", "revoke": { "original_message_id": "wamid.7" } });
    lab.server.sends(ALICE, revoked);
    let received = next(&mut inbox).await;
    received.receipt.stored();
    let ChatEvent::Deleted(deleted) = received.event else {
        panic!("expected a deletion, got {:?}", received.event);
    };
    assert_eq!(
        (deleted.chat.as_str(), deleted.message.as_str()),
        (ALICE.id, "wamid.7")
    );
}

#[tokio::test]
async fn a_change_is_told_with_what_the_message_reads_now() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let said = lab.server.says(ALICE, "paint it red");
    let heard = next_message(&mut inbox).await;
    let nested = json!({ "type": "text", "text": { "body": "paint it blue" } });
    let edit =
        json!({ "type": "edit", "edit": { "original_message_id": said, "message": nested } });
    lab.server.sends(ALICE, edit);
    let received = next(&mut inbox).await;
    received.receipt.stored();
    let ChatEvent::Edited(edited) = received.event else {
        panic!("expected a change, got {:?}", received.event);
    };
    assert_eq!(edited.text, "paint it blue");
    assert_eq!(
        (&edited.message, &edited.place),
        (&heard.message, &heard.place)
    );
    assert_ne!(edited.update, heard.update);
}

#[tokio::test]
async fn hostile_content_neither_panics_nor_holds_up_the_next() {
    let lab = Lab::new().await;
    let mut inbox = lab.listen();
    let megabyte = "x".repeat(1 << 20);
    lab.server.says(ALICE, &megabyte);
    assert_eq!(next_message(&mut inbox).await.text.len(), 1 << 20);
    for fields in [
        json!({ "type": "text" }),
        json!({ "type": "text", "text": { "body": 7 } }),
        json!({ "type": "image", "image": { "id": "" } }),
        json!({ "type": "image", "image": [] }),
        json!({ "type": "interactive", "interactive": {} }),
        json!({ "type": "interactive", "interactive": { "button_reply": { "id": "q:1" } } }),
        json!({ "type": "location", "location": { "latitude": "north" } }),
        json!({ "type": "contacts", "contacts": "nobody" }),
        json!({ "type": "reaction", "reaction": { "message_id": "wamid.1", "emoji": "\u{1f44d}" } }),
        json!({ "type": "unsupported", "errors": [{ "code": 131_051 }] }),
        json!({ "type": "text", "text": { "body": "x" }, "id": "" }),
        json!({ "type": "text", "text": { "body": "x" }, "id": "wamid.\u{7}" }),
        json!({ "type": "text", "text": { "body": "x" }, "from": null, "from_user_id": null }),
        json!({ "type": "text", "text": { "body": "x" }, "context": { "id": 7 } }),
        json!({ "type": "text", "text": { "body": "x" }, "group_id": "" }),
        json!({ "type": "edit", "edit": { "original_message_id": "wamid.1", "message": 7 } }),
        json!({ "type": "edit", "edit": { "original_message_id": "wamid.1", "message": {
            "edit": { "original_message_id": "wamid.1", "message": {} },
        } } }),
    ] {
        lab.server.sends(HIDDEN, fields);
    }
    for body in [
        json!(null),
        json!([]),
        json!({ "entry": 7 }),
        json!({ "entry": [{ "changes": [{ "value": null }, 7] }] }),
    ] {
        lab.server.posts(&body);
    }
    let name = "\u{202e}ecilA\u{200b}\u{200d}";
    lab.server.sends(ALICE, text(name));
    let heard = loop {
        let heard = next_message(&mut inbox).await;
        if heard.sender.id.as_str() == ALICE.id {
            break heard;
        }
    };
    assert_eq!(heard.text, name);
}
