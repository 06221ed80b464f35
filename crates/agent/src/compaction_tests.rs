use super::*;
use crate::{AssistantPart, CallId, ToolCall};

fn calling(id: usize) -> Message {
    let call = ToolCall {
        id: CallId::new(format!("c{id}")),
        name: "terminal".to_owned(),
        arguments: "{}".to_owned(),
    };
    Message::Assistant {
        parts: vec![AssistantPart::ToolCall(call)],
    }
}

fn result(id: usize, bytes: usize) -> Message {
    let text = ModelText::assembled("x".repeat(bytes));
    Message::tool(CallId::new(format!("c{id}")), text)
}

/// A question, so many calls with results of this size, and an answer.
fn turn(calls: usize, bytes: usize) -> Vec<Message> {
    let mut messages = vec![Message::user("go")];
    for id in 0..calls {
        messages.extend([calling(id), result(id, bytes)]);
    }
    messages.push(Message::assistant("done"));
    messages
}

/// A window of 1,000 tokens: a summary is due from 1,500 bytes on, and 300 of them stay.
const WINDOW: usize = 1000;

fn settings(protect_last: usize) -> CompactionSettings {
    CompactionSettings {
        protect_last,
        ..CompactionSettings::default()
    }
}

#[test]
fn a_call_stays_with_its_result_wherever_the_cut_falls() {
    for bytes in [1, 10, 50, 149, 150, 151, 400, 2000] {
        for protect_last in [0, 1, 2, 3, 7, 20] {
            let messages = turn(40, bytes);
            let last = messages.len() - 1;
            let cut = cut(&messages, last, WINDOW, &settings(protect_last));
            let Some(cut) = cut else { continue };
            assert!(!matches!(messages[cut], Message::Tool { .. }), "{cut}");
            let folded = &messages[..cut];
            let calls = folded.iter().flat_map(Message::tool_calls).count();
            let results = folded
                .iter()
                .filter(|message| matches!(message, Message::Tool { .. }));
            assert_eq!(calls, results.count());
        }
    }
}

#[test]
fn small_messages_at_the_end_are_protected_and_large_ones_are_not() {
    let messages = turn(40, 30);
    let last = messages.len() - 1;
    let cut_with = |protect_last| cut(&messages, last, WINDOW, &settings(protect_last));
    let (few, many) = (cut_with(2).unwrap(), cut_with(30).unwrap());
    assert!(messages.len() - many >= 30, "{many}");
    assert!(many < few, "{many} {few}");
    let large = turn(10, 2000);
    let cut = cut(&large, large.len() - 1, WINDOW, &settings(20)).unwrap();
    assert_eq!(cut, large.len() - 1, "not even two of them fit");
}

#[test]
fn what_the_model_is_at_work_on_stays() {
    let mut messages = turn(10, 2000);
    messages.pop();
    let at_work = messages.len() - 2;
    let cut = cut(&messages, at_work, WINDOW, &settings(0)).unwrap();
    assert_eq!(cut, at_work, "the call and its result");
    assert_eq!(super::cut(&messages[..3], 0, WINDOW, &settings(0)), None);
}

#[test]
fn a_little_is_not_worth_a_summary() {
    assert_eq!(cut(&turn(1, 30), 3, WINDOW, &settings(0)), None);
    assert_eq!(cut(&[], 0, WINDOW, &settings(0)), None);
}

#[test]
fn the_newest_words_are_kept_and_the_last_nearly_whole() {
    let words = |text: String| ModelText::assembled(text);
    let long: Vec<_> = (0..30)
        .map(|n| words(format!("{n} {}", "y".repeat(3000))))
        .collect();
    let (kept, left_out) = bounded(long, MOST_WORDS);
    assert_eq!(kept.len() + left_out, 30);
    assert!(kept.last().unwrap().as_str().starts_with("29 "));
    assert!(
        kept.last().unwrap().len() > 3000,
        "what the turn may be about"
    );
    let size: usize = kept.iter().map(ModelText::len).sum();
    assert!(size <= MOST_WORDS, "{size}");
    let one = bounded(vec![words("z".repeat(9_000_000))], MOST_WORDS).0;
    assert!(one[0].len() < MOST_WORDS, "{}", one[0].len());
}

#[test]
fn providers_tell_their_window() {
    for (detail, window) in [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
            Some(8192),
        ),
        (
            "prompt is too long: 210,345 tokens > 200,000 maximum",
            Some(200_000),
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            Some(1_048_576),
        ),
        (
            "Trying to keep the first 5000 tokens when context length of only 4096 tokens is loaded",
            Some(4096),
        ),
        (
            "request (9000 tokens) exceeds the available context size (8192 tokens)",
            Some(8192),
        ),
        (
            "9000 tokens are more than the context window has, which is 8192",
            Some(8192),
        ),
        ("request 20240101 is too long: 9000 tokens", None),
        ("input is too long", None),
        ("status 400: too long", None),
        ("99999999999999999999999 tokens", None),
    ] {
        assert_eq!(window_told(detail), window, "{detail}");
    }
}
