//! What was recognised at one place is gone at the others.

use crate::knowing_nothing;

const KEY: &str = "q7Rw2mZx9Lp4Tk8vBn3c";

#[test]
fn a_value_recognised_once_is_gone_everywhere_in_a_text() {
    let text = format!(
        "before {KEY} here\nOPENAI_API_KEY_PROD={KEY}\nafter ({KEY}), twice {KEY}{KEY} and in x{KEY}y\n"
    );
    let left = knowing_nothing().redact(&text).into_inner();
    assert!(!left.contains(KEY), "{left}");
    assert_eq!(
        left,
        "before [redacted] here\nOPENAI_API_KEY_PROD=[redacted]\nafter ([redacted]), twice \
         [redacted] and in x[redacted]y\n"
    );
}

#[test]
fn a_stream_forgets_nothing_it_recognised_however_it_is_cut() {
    let text = format!("api_key: {KEY}\nlater {KEY} and {KEY}.\n");
    for size in 1..text.len() {
        let mut stream = knowing_nothing().stream();
        let mut left = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            left.extend(stream.push(chunk).into_inner());
        }
        left.extend(stream.finish().into_inner());
        assert_eq!(
            String::from_utf8_lossy(&left),
            "api_key: [redacted]\nlater [redacted] and [redacted].\n",
            "in pieces of {size}"
        );
    }
}

#[test]
fn a_word_is_not_learned() {
    let text = "password: swordfish\nthe swordfish swims; PASSWORD=letmein, let letmein be\n";
    let left = knowing_nothing().redact(text).into_inner();
    assert!(left.contains("the swordfish swims"), "{left}");
}

#[test]
fn two_texts_do_not_share_what_they_learned() {
    let redactor = knowing_nothing();
    redactor.redact(format!("token={KEY}"));
    let other = format!("an id: {KEY}");
    assert_eq!(redactor.redact(&other).as_str(), other);
}
