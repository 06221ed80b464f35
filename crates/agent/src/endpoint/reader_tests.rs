//! Every dialect's reader meets bytes that nobody meant.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn endpoints() -> impl Iterator<Item = EndpointSettings> {
    let speaking = |dialect| EndpointSettings::speaking(dialect, "http://127.0.0.1:1", None, "m");
    ApiDialect::ALL.into_iter().map(speaking)
}

/// Words of all dialects, where each may expect them and where none does.
fn value() -> impl Strategy<Value = Value> {
    let words = [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "tool_use",
        "thinking",
        "text_delta",
        "input_json_delta",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.done",
        "function_call",
        "reasoning",
        "STOP",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        proptest::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        let names = [
            "type",
            "index",
            "delta",
            "content_block",
            "item",
            "output_index",
            "response",
            "output",
            "usage",
            "input",
            "choices",
            "message",
            "content",
            "tool_calls",
            "function",
            "arguments",
            "reasoning_details",
            "candidates",
            "parts",
            "functionCall",
            "args",
            "thoughtSignature",
            "text",
            "finishReason",
            "error",
            "details",
            "stop_reason",
            "id",
            "name",
            "encrypted_content",
            "incomplete_details",
        ];
        let name = proptest::sample::select(names.to_vec());
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(name, inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn no_event_makes_a_reader_panic_and_nothing_follows_the_end(events in proptest::collection::vec(value(), 1..8)) {
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        for settings in endpoints() {
            if let Ok(deltas) = read_events(&settings, &[text.as_bytes()]) {
                let ends = deltas.iter().filter(|delta| matches!(delta, ReplyDelta::Finish(_))).count();
                prop_assert_eq!(ends, 1);
                prop_assert!(matches!(deltas.last(), Some(ReplyDelta::Finish(_))));
            }
            for event in &events {
                let _ = settings.dialect.reader(&settings).whole(event.to_string().as_bytes());
            }
        }
    }

    #[test]
    fn however_events_are_cut_they_say_the_same(events in proptest::collection::vec(value(), 1..5), cut in 1_usize..40) {
        let text: String = events.iter().map(|event| format!("event: x\r\ndata: {event}\r\n\r\n")).collect();
        let pieces: Vec<_> = text.as_bytes().chunks(cut).collect();
        for settings in endpoints() {
            prop_assert_eq!(read_events(&settings, &pieces), read_events(&settings, &[text.as_bytes()]));
        }
    }
}

#[test]
fn an_answer_of_too_many_values_is_not_parsed() {
    let many = format!("{{\"choices\":[{}0]}}", "0,".repeat(300_000));
    for settings in endpoints() {
        let streamed = read_events(&settings, &[format!("data: {many}\n\n").as_bytes()]);
        let whole = settings.dialect.reader(&settings).whole(many.as_bytes());
        for answer in [streamed, whole] {
            let error = answer.unwrap_err();
            assert!(error.to_string().contains("too many values"), "{error}");
        }
    }
}

#[test]
fn one_event_is_smaller_than_a_whole_answer() {
    for settings in endpoints() {
        assert!(settings.max_event_bytes() < settings.max_response_bytes);
        let mut events = EventParser::new(settings.max_event_bytes());
        let long = vec![b'x'; settings.max_event_bytes() + 1];
        assert_eq!(events.push(&long), Err(EventTooLarge));
    }
}
