//! Any bytes as the events of a model's answer: however they are cut, they say the same.

#![no_main]

use std::sync::LazyLock;

use hermetic_agent::openai::{Settings, read_events};
use hermetic_fuzz::in_pieces;
use libfuzzer_sys::fuzz_target;

static SETTINGS: LazyLock<Settings> =
    LazyLock::new(|| Settings::new("http://localhost/v1", None, "m"));

fuzz_target!(|bytes: &[u8]| {
    let (whole, pieces) = in_pieces(bytes);
    let cut = read_events(&SETTINGS, &pieces).map_err(|error| error.to_string());
    let at_once = read_events(&SETTINGS, &[whole]).map_err(|error| error.to_string());
    assert_eq!(cut, at_once);
});
