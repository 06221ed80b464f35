//! Any bytes as an answer to a sync of Matrix, and as a text that becomes its HTML.

#![no_main]

use libfuzzer_sys::fuzz_target;

const US: &str = "@bot:example.org";

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let html = hermetic_matrix::parser::write_html(text).unwrap_or_default();
        assert!(!html.contains("<script") && !html.contains("<img"));
    }
    let Ok(answer) = serde_json::from_slice(bytes) else {
        return;
    };
    for text in hermetic_matrix::parser::read_answer(&answer, US) {
        assert!(text.len() <= bytes.len() + 2, "words out of nothing");
    }
});
