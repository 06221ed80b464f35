//! Any bytes around a credential that an origin echoes: it does not come back, lengths stay, and how the
//! answer was cut changes nothing.

#![no_main]

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermetic_egress::Credential;
use hermetic_egress::parsers::{frames_without_credential, without_credential};
use hermetic_fuzz::{holds, in_pieces};
use hermetic_types::Secret;
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "ghp_s3cr3t/with+\"odd\"/Letters=";

static CREDENTIAL: LazyLock<Credential> = LazyLock::new(|| {
    Credential::new(
        "api.test",
        "x-api-key",
        "",
        Secret::new(SECRET),
        "placeholder",
    )
    .expect("one that is valid")
});

fuzz_target!(|bytes: &[u8]| {
    let (noise, pieces) = in_pieces(bytes);
    let cut = without_credential(&CREDENTIAL, &pieces);
    assert_eq!(cut, without_credential(&CREDENTIAL, &[noise]));
    assert_eq!(cut.len(), noise.len());
    assert!(!holds(&cut, SECRET.as_bytes()));
    if let Some(frames) = frames_without_credential(&CREDENTIAL, &pieces) {
        assert_eq!(frames.len(), noise.len());
        assert!(!holds(&frames, SECRET.as_bytes()));
    }
    let Some((choice, noise)) = noise.split_first() else {
        return;
    };
    let echo = spelt(*choice);
    let (before, after) = noise.split_at(noise.len() / 2);
    let answer = [before, echo.as_bytes(), after].concat();
    let pieces: Vec<&[u8]> = answer.chunks(usize::from(*choice).max(1)).collect();
    assert!(
        !holds(&without_credential(&CREDENTIAL, &pieces), echo.as_bytes()),
        "{echo}"
    );
});

fn spelt(choice: u8) -> String {
    let escaped = |escape: &dyn Fn(u8) -> String| SECRET.bytes().map(escape).collect::<String>();
    match choice % 8 {
        0 => SECRET.to_owned(),
        1 => escaped(&|byte| format!("%{byte:02x}")),
        2 => escaped(&|byte| format!("\\u{byte:04X}")),
        3 => escaped(&|byte| format!("&#{byte};")),
        4 => escaped(&|byte| format!("={byte:02X}")),
        5 => STANDARD.encode(SECRET),
        6 => escaped(&|byte| format!("{byte:02x}")),
        _ => SECRET.to_uppercase(),
    }
}
