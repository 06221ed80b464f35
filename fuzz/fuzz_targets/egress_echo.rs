//! Any bytes around a credential that an origin echoes: it does not come back, nor sixteen letters of it,
//! and lengths stay, however the answer was cut.

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

/// What the search passes over between two letters.
const LONGEST_GAP: usize = 16;

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
    for passed_on in [&cut, &without_credential(&CREDENTIAL, &[noise])] {
        assert_eq!(passed_on.len(), noise.len());
        assert!(!holds_a_part(passed_on), "{passed_on:?}");
    }
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

/// Sixteen of its letters and digits in a row, with at most [`LONGEST_GAP`] other bytes between two. Fewer may pass:
/// the first seven are not held back, so that no event waits for what almost any text begins with.
fn holds_a_part(text: &[u8]) -> bool {
    let counts = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'*';
    let secret: Vec<u8> = SECRET.bytes().filter(|byte| counts(*byte)).collect();
    let (mut letters, mut gap) = (Vec::new(), 0);
    for byte in text {
        if counts(*byte) {
            letters.push(*byte);
            gap = 0;
            continue;
        }
        gap += 1;
        if gap == LONGEST_GAP + 1 {
            // No byte of the secret: whoever spreads it wider is not looked for.
            letters.push(0);
        }
    }
    secret.windows(16).any(|part| holds(&letters, part))
}

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
