//! Any bytes as lines and as events of signal-cli's daemon.

#![no_main]

use hermetic_fuzz::in_pieces;
use libfuzzer_sys::fuzz_target;

const NUMBER: &str = "+4915100000001";

fuzz_target!(|bytes: &[u8]| {
    let (whole, pieces) = in_pieces(bytes);
    let lines = hermetic_signal::parser::read_lines(&pieces);
    assert_eq!(
        lines,
        hermetic_signal::parser::read_lines(&[whole]),
        "the cut makes a difference"
    );
    let Ok(event) = serde_json::from_slice(bytes) else {
        return;
    };
    if let Some(words) = hermetic_signal::parser::read_event(&event, NUMBER) {
        assert!(!words.text.trim().is_empty() || words.attachments > 0);
    }
});
