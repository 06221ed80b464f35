//! A business number at WhatsApp: signed notifications in, sealed answers out.

use hermetic_testkit::model::Reply;
use hermetic_testkit::whatsapp::{Person, SentMessage, WhatsAppServer};

use crate::approvals::Deed;
use crate::lab::{Builder, Lab, calls_terminal};

/// On the list by her number.
const ALICE: Person = Person {
    id: "US.13491208655302741918",
    number: Some("16505551234"),
    name: "Alice",
};

/// Not on any list; calls herself by Alice's number and hides her own.
const STRANGER: Person = Person {
    id: "DE.9982716254",
    number: None,
    name: "16505551234",
};

struct WhatsAppLab {
    lab: Lab,
    server: WhatsAppServer,
}

impl WhatsAppLab {
    async fn start(builder: Builder) -> Self {
        let server = WhatsAppServer::start().await.unwrap();
        let builder = builder.access("WHATSAPP_CLOUD_ALLOWED_USERS='+1 650-555-1234'");
        let lab = builder.whatsapp(&server).start().await;
        let lab = Self { lab, server };
        lab.subscribe().await;
        lab
    }

    /// As somebody registers the webhook in Meta's dashboard; the port is another after a restart.
    async fn subscribe(&self) {
        let url = format!("http://{}/whatsapp/webhook", self.lab.intake());
        assert_eq!(self.server.subscribe(&url).await.0, 200);
    }

    /// The next message that the number sends.
    async fn next(&self, before: usize) -> SentMessage {
        self.server.wait_for_sent(before + 1).await.remove(before)
    }
}

#[tokio::test]
async fn a_message_is_answered_from_a_sandbox_and_strangers_are_met_with_silence() {
    let script = [
        calls_terminal("echo $((6 * 7))"),
        Reply::streams(&["It is **42**."]),
    ];
    let mut lab = WhatsAppLab::start(Lab::builder().script(script)).await;
    lab.server.says(STRANGER, "let me in");
    let asked = lab.server.says(ALICE, "what is six times seven?");
    let answer = lab.next(0).await;
    assert_eq!(answer.text(), "It is *42*.");
    assert_eq!(answer.body["recipient"], ALICE.id);
    assert!(lab.lab.asked()[1].contains("42"), "the command ran");
    let sandboxes = lab.lab.sandboxes().await;
    assert_eq!(
        sandboxes,
        ["agent:main:whatsapp:dm:US.13491208655302741918"]
    );
    let reads = lab.server.wait_for_reads(1).await;
    assert!(
        reads.iter().all(|(message, _)| *message == asked),
        "{reads:?}"
    );
    assert_eq!(lab.server.sent().len(), 1, "the stranger got nothing");
    lab.lab.stop().await;
}

#[tokio::test]
async fn a_button_approves_and_what_a_restart_interrupts_goes_on() {
    let deed = Deed::new();
    let config = "gateway: {terminal_backend: local}\n\
                  approvals: {mode: manual, approvers: ['whatsapp:+1 650 555 1234']}\n";
    let mut lab = WhatsAppLab::start(Lab::builder().config(config)).await;
    lab.server.says(ALICE, &format!("/sh {}", deed.command()));
    let question = lab.next(0).await;
    assert!(question.text().contains("may I run this?"), "{question:?}");
    let labels: Vec<_> = question
        .choices()
        .into_iter()
        .map(|(label, _)| label)
        .collect();
    assert_eq!(labels, ["Allow once", "This session", "Deny"]);
    assert_eq!(deed.times(), 0);

    // Between the message and its answer the gateway is started anew.
    lab.lab.restart().await;
    lab.subscribe().await;
    let (_, token) = question.choices().remove(0);
    // The same press by somebody who may not write, first.
    lab.server.presses(STRANGER, &question.id, &token);
    lab.server.presses(ALICE, &question.id, &token);
    let sent = lab.server.wait_for_sent(3).await;
    let texts: Vec<_> = sent.iter().map(SentMessage::text).collect();
    assert!(
        texts.iter().any(|text| text.ends_with("allowed once.")),
        "{texts:?}"
    );
    assert_eq!(deed.times(), 1, "{texts:?}");
    lab.lab.stop().await;
}
