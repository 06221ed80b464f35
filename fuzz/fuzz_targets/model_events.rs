//! Any bytes as the events of a model's answer, in every dialect: however they are cut, they say the same.

#![no_main]

use std::sync::LazyLock;

use hermetic_agent::endpoint::{ApiDialect, EndpointSettings, read_events};
use hermetic_fuzz::in_pieces;
use libfuzzer_sys::fuzz_target;

static SETTINGS: LazyLock<Vec<EndpointSettings>> = LazyLock::new(|| {
    let endpoint = |dialect| EndpointSettings::speaking(dialect, "http://localhost/v1", None, "m");
    ApiDialect::ALL.map(endpoint).into()
});

fuzz_target!(|bytes: &[u8]| {
    let (whole, pieces) = in_pieces(bytes);
    for settings in SETTINGS.iter() {
        let cut = read_events(settings, &pieces).map_err(|error| error.to_string());
        let at_once = read_events(settings, &[whole]).map_err(|error| error.to_string());
        assert_eq!(cut, at_once);
    }
});
