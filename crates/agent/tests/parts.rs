//! What goes to the model besides plain text, and what does not.

use hermetic_agent::{AssistantPart, CallFragment, Message, OpaquePart, ReplyDelta};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_testkit::model::Line;
use hermetic_types::Secret;
use serde_json::json;

use crate::lab::{Lab, results};

fn thought(name: &str) -> OpaquePart {
    OpaquePart::new("anthropic", json!({"type": "thinking", "signature": name}))
}

fn calls_echo(index: usize) -> ReplyDelta {
    ReplyDelta::ToolCall(CallFragment {
        index,
        id: Some(format!("call_{index}")),
        name: Some("echo".to_owned()),
        arguments: r#"{"text":"a"}"#.to_owned(),
    })
}

#[tokio::test]
async fn what_a_provider_wants_back_stands_where_it_stood() {
    let thinks = Line::deltas([
        ReplyDelta::Opaque(thought("first")),
        ReplyDelta::Text("I will ".to_owned()),
        ReplyDelta::Text("look.".to_owned()),
        calls_echo(0),
        ReplyDelta::Opaque(thought("second")),
        calls_echo(1),
    ]);
    let lab = Lab::new([thinks, Line::says("done")]);
    lab.says("go").await.expect("an answer");
    let asked = lab.model.asked();
    let Message::Assistant { parts } = &asked[1][2] else {
        panic!("{:?}", asked[1]);
    };
    let kinds: Vec<_> = parts
        .iter()
        .map(|part| match part {
            AssistantPart::Text { text } => text.clone(),
            AssistantPart::ToolCall(call) => call.id.to_string(),
            AssistantPart::Image(_) => "image".to_owned(),
            AssistantPart::Opaque(part) => {
                assert_eq!(part.for_provider("openai"), None);
                let data = part.for_provider("anthropic").expect("its own");
                data["signature"].as_str().expect("a text").to_owned()
            }
        })
        .collect();
    assert_eq!(
        kinds,
        ["first", "I will look.", "call_0", "second", "call_1"]
    );
}

#[tokio::test]
async fn a_value_of_the_configuration_reaches_no_model_whoever_says_it() {
    let mut lab = Lab::new([
        Line::calls(&[("echo", r#"{"text":"it is sesame-street"}"#)]),
        Line::says("done"),
    ]);
    lab.redactor = Redactor::new([Secret::new("sesame-street")], RedactorSettings::default());
    lab.steer.say("sesame-street, really");
    let password = "PASSWORD=hunter2-hunter2 opens it, not sesame-street";
    lab.says(password).await.expect("an answer");
    let asked = &lab.model.asked()[1];
    assert_eq!(
        asked[1].text(),
        "PASSWORD=hunter2-hunter2 opens it, not [redacted]"
    );
    assert!(results(asked)[0].contains("it is [redacted]"), "{asked:?}");
    let steered = asked.last().expect("a message");
    assert_eq!(steered, &Message::user("[redacted], really"));
}

#[tokio::test]
async fn a_call_that_went_wrong_is_marked_as_that() {
    let lab = Lab::new([
        Line::calls(&[("echo", "{"), ("echo", r#"{"text":"a"}"#)]),
        Line::says("done"),
    ]);
    let answer = lab.says("go").await.expect("an answer");
    let failed: Vec<_> = answer
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { failed, .. } => Some(*failed),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [true, false]);
}
