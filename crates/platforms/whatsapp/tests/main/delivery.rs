//! Taken is not delivered: what is told later, and to whom it is said.

use std::sync::Arc;

use hermetic_chat::{
    AdapterState, Chat, ChatEvent, ChatReply, InMemoryState, SendFailure, SendKey,
};
use hermetic_whatsapp::{CloudConfig, MessageTemplate};
use serde_json::json;

use crate::lab::{ALICE, Lab, next, next_message, outgoing, private};

fn with_template(config: &mut CloudConfig) {
    config.template = Some(MessageTemplate {
        name: "an_answer_waits".to_owned(),
        language: "en_US".to_owned(),
    });
}

#[tokio::test]
async fn a_message_that_meta_does_not_deliver_is_a_failed_delivery() {
    let lab = Lab::new().await;
    lab.server.fail_later(131_047);
    let error = lab.tell(ALICE, "the answer").await.unwrap_err();
    let SendFailure::Refused { description } = error.failure else {
        panic!("expected a refusal, got {:?}", error.failure);
    };
    assert!(
        description.contains("wrote nothing for 24 hours"),
        "{description}"
    );
    // It is said as soon as they can hear it, before anything else, and once.
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "hello?");
    next_message(&mut inbox).await;
    lab.tell(ALICE, "Yes?").await.unwrap();
    lab.tell(ALICE, "I am here.").await.unwrap();
    let texts: Vec<_> = lab.server.sent().iter().map(|sent| sent.text()).collect();
    assert!(
        texts[1].starts_with("A message of mine did not reach you"),
        "{texts:?}"
    );
    assert_eq!(texts[2..], ["Yes?", "I am here."]);
}

#[tokio::test]
async fn a_closed_window_sends_the_template_once() {
    let lab = Lab::with(with_template).await;
    for _ in 0..2 {
        lab.server.fail_next(
            "messages",
            hermetic_testkit::whatsapp::Failure::Refuse {
                status: 400,
                code: 131_047,
                retry_after: None,
            },
        );
        lab.tell(ALICE, "the answer").await.unwrap_err();
    }
    let sent = lab.server.sent();
    assert_eq!(sent.len(), 1, "each template costs money");
    assert_eq!(sent[0].body["template"]["name"], "an_answer_waits");
    assert_eq!(sent[0].body["template"]["language"]["code"], "en_US");
    assert_eq!(sent[0].body["recipient"], ALICE.id);
}

#[tokio::test]
async fn a_failure_that_is_told_late_is_said_also_after_a_restart() {
    let state = Arc::new(InMemoryState::default());
    let lost = {
        let lab = Lab::with(|config| {
            config.state = Arc::clone(&state) as Arc<dyn AdapterState>;
            config.timing.status = std::time::Duration::ZERO;
        })
        .await;
        lab.server.tell_statuses(false);
        lab.tell(ALICE, "the answer").await.unwrap();
        lab.server.sent().remove(0)
    };
    let lab = Lab::with(|config| config.state = state).await;
    let status = |mark: &serde_json::Value| {
        let status = json!({
            "id": lost.id, "status": "failed", "recipient_id": ALICE.number,
            "biz_opaque_callback_data": mark, "errors": [{ "code": 131_026 }],
        });
        let metadata = json!({ "phone_number_id": hermetic_testkit::whatsapp::PHONE_NUMBER_ID });
        let value = json!({ "metadata": metadata, "statuses": [status, { "status": 7 }] });
        json!({ "entry": [{ "changes": [{ "value": value, "field": "messages" }] }] })
    };
    lab.server.posts(&status(&json!("another program's")));
    lab.server
        .posts(&status(&lost.body["biz_opaque_callback_data"]));
    let mut inbox = lab.listen();
    lab.server.says(ALICE, "hello?");
    next_message(&mut inbox).await;
    lab.tell(ALICE, "Yes?").await.unwrap();
    let texts: Vec<_> = lab.server.sent().iter().map(|sent| sent.text()).collect();
    assert!(texts[0].contains("did not deliver it"), "{texts:?}");
    assert_eq!(texts[1], "Yes?");
}

#[tokio::test]
async fn a_failure_that_is_told_late_names_the_delivery() {
    let lab = Lab::with(|config| config.timing.status = std::time::Duration::ZERO).await;
    lab.server.tell_statuses(false);
    let mut reply = ChatReply::text(outgoing("the answer"));
    reply.key = Some(SendKey::new(42, 1));
    lab.cloud.send(&private(ALICE), &reply).await.unwrap();
    let lost = lab.server.sent().remove(0);
    let status = json!({
        "id": lost.id, "status": "failed", "recipient_id": ALICE.number,
        "biz_opaque_callback_data": lost.body["biz_opaque_callback_data"],
        "errors": [{ "code": 131_026 }],
    });
    let metadata = json!({ "phone_number_id": hermetic_testkit::whatsapp::PHONE_NUMBER_ID });
    let value = json!({ "metadata": metadata, "statuses": [status] });
    let body = json!({ "entry": [{ "changes": [{ "value": value, "field": "messages" }] }] });
    lab.server.posts(&body);
    let mut inbox = lab.listen();
    // Meta is told that we know when the ledger does.
    let received = next(&mut inbox).await;
    let ChatEvent::Undelivered(undelivered) = received.event else {
        panic!("expected a lost reply, got {:?}", received.event);
    };
    assert_eq!(lab.server.taken(), 0);
    assert_eq!(undelivered.key.delivery(), Some(42));
    drop(received.receipt);
    let again = next(&mut inbox).await;
    assert_eq!(again.event, ChatEvent::Undelivered(undelivered));
    again.receipt.stored();
}

#[tokio::test]
async fn a_failure_that_passes_is_tried_again() {
    let lab = Lab::new().await;
    lab.server.fail_later(131_016);
    let failure = lab.tell(ALICE, "hello").await.unwrap_err().failure;
    assert!(failure.is_safe_to_repeat(), "{failure:?}");
    lab.server.fail_later(131_048);
    let failure = lab.tell(ALICE, "hello").await.unwrap_err().failure;
    assert!(
        matches!(failure, SendFailure::Throttled { .. }),
        "{failure:?}"
    );
}
