//! Any text a model writes, on its way to a chat: every part fits, and nothing is lost of a plain one.

#![no_main]

use hermetic_chat::split;
use hermetic_telegram::to_markdown_v2;
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 128;

fuzz_target!(|text: &str| {
    let parts = split(text, LIMIT);
    for part in &parts {
        assert!(part.encode_utf16().count() <= LIMIT, "{part:?}");
        to_markdown_v2(part);
    }
    assert_eq!(parts.is_empty(), text.trim().is_empty());
});
