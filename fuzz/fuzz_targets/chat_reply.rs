//! Any text a model writes, on its way to a chat: every part fits, in whatever unit the platform counts.

#![no_main]

use hermetic_chat::TextLimit;
use hermetic_telegram::to_markdown_v2;
use libfuzzer_sys::fuzz_target;

const LIMITS: [TextLimit; 3] = [
    TextLimit::utf16(128),
    TextLimit::characters(128),
    TextLimit::bytes(128),
];

fuzz_target!(|text: &str| {
    for limit in LIMITS {
        let parts = limit.split(text);
        for part in &parts {
            assert!(limit.fits(part), "{limit:?}: {part:?}");
            to_markdown_v2(part);
        }
        assert_eq!(parts.is_empty(), text.trim().is_empty());
    }
});
