//! Any bytes through redaction: no known value comes out, whole or in pieces, and time stays bounded.

#![no_main]

use std::sync::LazyLock;

use hermetic_fuzz::{holds, in_pieces};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::Secret;
use libfuzzer_sys::fuzz_target;

const KNOWN: [&str; 3] = [
    "hunter2hunter2",
    "Zx9-correct-horse",
    "line-one-of-it\nline-two-of-it",
];

/// Enough that work which grows with the square of the length meets libFuzzer's own deadline.
const LONG: usize = 1 << 17;

static REDACTOR: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(KNOWN.map(Secret::new), RedactorSettings::default()));

fuzz_target!(|bytes: &[u8]| {
    let (text, pieces) = in_pieces(bytes);
    let whole = REDACTOR.redact_bytes(text).into_inner();
    let mut stream = REDACTOR.stream();
    let mut cut = Vec::new();
    for piece in &pieces {
        cut.extend(stream.push(piece).into_inner());
    }
    cut.extend(stream.finish().into_inner());
    let mut stream = REDACTOR.stream();
    let mut at_once = stream.push(text).into_inner();
    at_once.extend(stream.finish().into_inner());
    assert_eq!(cut, at_once, "the result depends on how the stream was cut");
    for known in KNOWN {
        assert!(!holds(&whole, known.as_bytes()) && !holds(&cut, known.as_bytes()));
    }
    // One in 64, because it takes as long as hundreds of others.
    if bytes.first().is_some_and(|size| size % 64 == 7) && !text.is_empty() {
        let long: Vec<u8> = text.iter().copied().cycle().take(LONG).collect();
        REDACTOR.redact_bytes(&long);
    }
});
