use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use proptest::prelude::*;

use super::*;

const SECRET: &str = "ghp_s3cr3t/with+\"odd\"/Letters=";

/// Too few letters to pass over what stands between them.
const SHORT: &str = "pa+ss/w0rd";

fn through(secret: &str, text: &[u8], pieces: usize) -> Vec<u8> {
    let mut redactor = CredentialRedactor::new([Arc::new(SecretSpellings::of(&[secret]))]);
    let mut out = Vec::new();
    for piece in text.chunks(pieces) {
        out.extend(redactor.push(piece));
    }
    out.extend(redactor.finish());
    out
}

fn escaped(secret: &str, escape: impl Fn(u8) -> String) -> String {
    secret.bytes().map(escape).collect()
}

/// Escapes what is no letter and no digit.
fn some(secret: &str, escape: impl Fn(u8) -> String) -> String {
    escaped(secret, |byte| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            escape(byte)
        }
    })
}

fn folded(text: &str, width: usize, line_break: &str) -> String {
    let lines: Vec<_> = text
        .as_bytes()
        .chunks(width)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    lines.join(line_break)
}

/// Every way in which an origin was seen to write what it was sent.
fn spellings(secret: &str) -> Vec<String> {
    let encoded = STANDARD.encode(format!("x-access-token:{secret}"));
    let php = secret.replace('"', "\\\"").replace('/', "\\/");
    vec![
        secret.to_owned(),
        serde_json::Value::from(format!("x{secret}y")).to_string(),
        php.clone(),
        serde_json::Value::from(php).to_string(),
        some(secret, |byte| format!("\\u{byte:04X}")),
        some(secret, |byte| format!("\\u{byte:04x}")),
        some(secret, |byte| format!("\\\\u{byte:04x}")),
        escaped(secret, |byte| format!("\\u{byte:04x}")),
        escaped(secret, |byte| format!("\\x{byte:02x}")),
        escaped(secret, |byte| format!("\\{byte:03o}")),
        some(secret, |byte| format!("%{byte:02X}")),
        some(secret, |byte| format!("%{byte:02x}")),
        some(secret, |byte| format!("%25{byte:02X}")),
        escaped(secret, |byte| format!("%{byte:02x}")),
        some(secret, |byte| format!("&#{byte};")),
        some(secret, |byte| format!("&#x{byte:X};")),
        some(secret, |byte| format!("&amp;#{byte};")),
        escaped(secret, |byte| format!("&#{byte};")),
        some(secret, |byte| format!("={byte:02X}")),
        // Lines end between two characters, never within an escape.
        escaped(secret, |byte| match byte {
            b'w' => "=\r\nw".to_owned(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("={byte:02X}"),
        }),
        encoded.clone(),
        STANDARD.encode(format!("ab{secret}cd")),
        // The login of a registry in a secret of a cluster.
        STANDARD.encode(format!(
            "{{\"auths\":{{\"r\":{{\"auth\":\"{encoded}\"}}}}}}"
        )),
        folded(&STANDARD.encode(format!("auth: {encoded}\n")), 76, "\n"),
        URL_SAFE.encode(format!("a{secret}")),
        folded(&encoded, 8, "\n"),
        folded(&encoded, 12, "\r\n"),
        escaped(secret, |byte| format!("{byte:02x}")),
        escaped(secret, |byte| format!("{byte:02X}")),
        secret.to_uppercase(),
        secret.to_lowercase(),
        secret.chars().rev().collect(),
        // Braces, eight digits, and what JavaScript's `escape` writes.
        escaped(secret, |byte| format!("\\u{{{byte:x}}}")),
        escaped(secret, |byte| format!("\\x{{{byte:02X}}}")),
        escaped(secret, |byte| format!("\\U{byte:08x}")),
        escaped(secret, |byte| format!("%u{byte:04X}")),
        // Browsers read these without a semicolon.
        escaped(secret, |byte| format!("&#{byte}")),
        escaped(secret, |byte| format!("&#x{byte:x}")),
        // One escape within another, in any order.
        escaped(secret, |byte| format!("%5Cu{byte:04x}")),
        escaped(secret, |byte| format!("\\u0025{byte:02x}")),
        escaped(secret, |byte| format!("\\u0026#{byte};")),
        escaped(secret, |byte| format!("&#37;{byte:02X}")),
        escaped(secret, |byte| format!("&#92;x{byte:02x}")),
        escaped(secret, |byte| format!("%26%23{byte}%3B")),
        // Every second character.
        secret
            .bytes()
            .enumerate()
            .map(|(at, byte)| match at % 2 {
                0 => format!("%{byte:02x}"),
                _ => char::from(byte).to_string(),
            })
            .collect(),
        // Base64 that was escaped as well.
        encoded.replace('=', "%3D").replace('+', "\\u002b"),
        escaped(&encoded, |byte| format!("\\u{byte:04x}")),
        base32(format!("x{secret}").as_bytes()),
        base32(format!("user:{secret}").as_bytes()).to_lowercase(),
    ]
}

fn base32(bytes: &[u8]) -> String {
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
        .collect();
    let symbol = |five: &[u8]| {
        let value = (0..5).fold(0, |value, at| value << 1 | five.get(at).unwrap_or(&0));
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(value)])
    };
    bits.chunks(5).map(symbol).collect()
}

/// Only for a secret with letters enough.
fn loose_spellings(secret: &str) -> Vec<String> {
    let wide: Vec<u8> = secret.bytes().flat_map(|byte| [byte, 0]).collect();
    vec![
        escaped(secret, |byte| format!("{byte:02x} ")),
        escaped(secret, |byte| format!("{byte:02X}:")),
        escaped(secret, |byte| format!("0x{byte:02x}, ")),
        escaped(secret, |byte| format!("{byte},")),
        escaped(secret, |byte| {
            format!("\"{}\", ", char::from(byte).escape_default())
        }),
        folded(&STANDARD.encode(secret), 20, "\r\n      "),
        folded(secret, 5, "\n"),
        String::from_utf8_lossy(&wide).into_owned(),
        STANDARD.encode(&wide),
        wide.iter().map(|byte| format!("{byte:02x}")).collect(),
        escaped(secret, |byte| format!("00{byte:02X}")),
        escaped(secret, |byte| format!("\0\0\0{}", char::from(byte))),
    ]
}

#[test]
fn every_spelling_is_found_at_every_cut() {
    for secret in [SECRET, SHORT] {
        let mut texts = spellings(secret);
        if secret == SECRET {
            texts.extend(loose_spellings(secret));
        }
        for text in texts {
            let text = format!("before {text} after");
            for pieces in (1..12).chain([31, text.len()]) {
                let out = through(secret, text.as_bytes(), pieces);
                assert_eq!(out.len(), text.len());
                let seen = String::from_utf8_lossy(&out);
                let stars = seen.matches('*').count();
                assert!(stars >= 7, "{text} in pieces of {pieces} became {seen}");
            }
            // In one piece nothing of it is left but what stood around it.
            let whole = String::from_utf8(through(secret, text.as_bytes(), text.len())).unwrap();
            assert!(
                whole.starts_with("before ") && whole.ends_with(" after"),
                "{whole}"
            );
        }
    }
}

#[test]
fn a_part_of_sixteen_letters_does_not_come_back_either() {
    let secret = "Zm9vYmFyQmF6UXV4Q29ycmVjdEhvcnNl";
    for from in 0..=secret.len() - 16 {
        let out = through(
            secret,
            format!("<{}>", &secret[from..from + 16]).as_bytes(),
            3,
        );
        let seen = String::from_utf8(out).unwrap();
        // The first seven characters may have left before they were known to be the first.
        assert!(seen.matches('*').count() >= 9, "{from}: {seen}");
    }
}

/// What undoes escapes reads these for ever and sees nothing: neither a letter nor the end of a match.
#[test]
fn what_never_decodes_is_not_held_without_end() {
    for (begin, again) in [
        ("", "\\"),
        ("&", "amp;"),
        ("%", "25"),
        ("", "=\n"),
        ("", "=\r\n"),
        ("\\", "u005c"),
        ("", "&#38;#38;"),
    ] {
        for secret in [SECRET, SHORT] {
            let mut redactor = CredentialRedactor::new([Arc::new(SecretSpellings::of(&[secret]))]);
            let mut out = redactor.push(format!("data: {}{begin}", &secret[..9]).as_bytes());
            let piece = again.repeat(8 << 10);
            let mut sent = 6 + 9 + begin.len();
            for _ in 0..24 {
                out.extend(redactor.push(piece.as_bytes()));
                sent += piece.len();
                assert!(redactor.held.len() <= (128 << 10), "{again:?}");
            }
            out.extend(redactor.finish());
            assert_eq!(out.len(), sent);
        }
    }
}

/// A guess at one more letter must not be answered by stars where no part of sixteen stands.
#[test]
fn the_end_of_an_answer_tells_no_guess() {
    let secret = "Zm9vYmFyQmF6UXV4Q29ycmVjdEhvcnNl";
    for length in 1..16 {
        let guess = format!("<{}", &secret[..length]);
        let out = through(secret, guess.as_bytes(), guess.len());
        assert_eq!(out, guess.as_bytes());
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let out = through(secret, &hex.as_bytes()[..length], length);
        assert_eq!(out, &hex.as_bytes()[..length]);
    }
    for length in 1..SHORT.len() {
        let guess = &SHORT.as_bytes()[..length];
        assert_eq!(through(SHORT, guess, length), guess);
    }
}

#[test]
fn a_part_of_sixteen_of_a_long_secret_does_not_come_back_either() {
    let secret: String = (0..3000_u32)
        .map(|at| {
            char::from(
                b"abcdefghijklmnopqrstuvwxyz0123456789"
                    [(at.wrapping_mul(at * 7 + 3) / 11 % 36) as usize],
            )
        })
        .collect();
    let spellings = Arc::new(SecretSpellings::of(&[&secret]));
    for from in (0..300).chain(2900..=secret.len() - 16) {
        let mut redactor = CredentialRedactor::new([Arc::clone(&spellings)]);
        let mut out = redactor.push(format!("<{}>", &secret[from..from + 16]).as_bytes());
        out.extend(redactor.finish());
        assert_eq!(out, b"<****************>", "{from}");
    }
}

#[test]
fn an_event_is_not_held_back() {
    let mut redactor = CredentialRedactor::new([Arc::new(SecretSpellings::of(&[SECRET]))]);
    for event in [
        "data: hello\n\n",
        "data: {\"a\": \"g\"}\n\n",
        "data: gh\n\n",
        "data: 67\n\n",
    ] {
        assert_eq!(redactor.push(event.as_bytes()), event.as_bytes());
    }
    assert_eq!(redactor.push(b"data: ghp_s3cr3"), b"data: ");
    assert_eq!(redactor.push(b"on."), b"ghp_s3cr3on.");
    let echo = format!("data: {SECRET}\n\n");
    let stars = redactor.push(echo.as_bytes());
    assert_eq!(
        stars.len(),
        echo.len(),
        "what was overwritten is not held back"
    );
}

#[test]
fn a_head_keeps_its_lines_and_names() {
    let redactor = CredentialRedactor::new([Arc::new(SecretSpellings::of(&[SECRET]))]);
    let head = format!(
        "HTTP/1.1 200 OK\r\nX-A: {SECRET}\r\nX-B: ghp_s3cr3t/with\r\nX-C: +\"odd\"/Letters=\r\n\r\n"
    );
    let mut masked = head.clone().into_bytes();
    redactor.mask(&mut masked);
    let masked = String::from_utf8(masked).unwrap();
    assert_eq!(masked.len(), head.len());
    assert!(
        masked.contains("\r\nX-A: ") && masked.contains("\r\nX-B: "),
        "{masked}"
    );
    assert!(!masked.contains("s3cr3t/with+"), "{masked}");
}

fn counted(spellings: &Arc<SecretSpellings>) -> (SearchedSecret, Arc<GuessCounter>) {
    let counter = GuessCounter::new(32, Arc::default());
    let searched = SearchedSecret {
        spellings: Arc::clone(spellings),
        counter: Some(Arc::clone(&counter)),
    };
    (searched, counter)
}

/// One counter for a text that is read in two pieces, cut at every place.
fn counted_at_every_cut(spellings: &Arc<SecretSpellings>, texts: &[String]) -> Arc<GuessCounter> {
    let (searched, counter) = counted(spellings);
    for text in texts {
        for cut in 0..=text.len() {
            let mut redactor = CredentialRedactor::new([searched.clone()]);
            redactor.push(&text.as_bytes()[..cut]);
            redactor.push(&text.as_bytes()[cut..]);
            redactor.push("and so on. ".repeat(40).as_bytes());
            redactor.finish();
        }
    }
    counter
}

#[test]
fn where_a_read_ends_makes_no_other_part_of_an_echo() {
    let secret = "Zm9vYmFyQmF6UXV4Q29ycmVjdEhvcnNl";
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let spellings = Arc::new(SecretSpellings::of(&[secret]));
    for (echo, parts) in [
        (&secret[..12], 1),
        (&secret[..24], 1),
        (&secret[5..27], 1),
        (&hex[..30], 1),
        (secret, 0),
        (&hex, 0),
    ] {
        let counter = counted_at_every_cut(&spellings, &[format!("<{echo}>!?")]);
        assert_eq!(counter.counted(), parts, "{echo}");
    }
    // A letter more is another part, held back or starred.
    let texts = |echo: &str| -> Vec<String> {
        (9..13)
            .map(|length| format!("<{}>!?", &echo[..length]))
            .collect()
    };
    assert_eq!(
        counted_at_every_cut(&spellings, &texts(secret)).counted(),
        4
    );
    assert_eq!(counted_at_every_cut(&spellings, &texts(&hex)).counted(), 4);
    let starred: Vec<_> = (17..20)
        .map(|length| format!("<{}>!?", &secret[..length]))
        .collect();
    assert_eq!(counted_at_every_cut(&spellings, &starred).counted(), 3);
}

#[test]
fn what_is_no_secret_is_no_guess() {
    let user = "deployment-robot@example.test";
    let spellings = Arc::new(SecretSpellings::behind_heads(&[
        (&format!("{user}:"), "s3cr3tpassw0rdlong"),
        ("", "s3cr3tpassw0rdlong"),
    ]));
    let shown: Vec<_> = (0..user.len())
        .flat_map(|at| [&user[at..], &user[..at]])
        .map(|part| format!("<{part}>!?"))
        .chain([STANDARD.encode(user), format!("{user}:!?")])
        .collect();
    assert_eq!(counted_at_every_cut(&spellings, &shown).counted(), 0);
    let guess = [format!("{user}:s3c!?"), format!("{user}:s3cr!?")];
    assert_eq!(counted_at_every_cut(&spellings, &guess).counted(), 2);
}

#[test]
fn a_credential_that_was_given_back_is_not_lost_by_what_others_learnt() {
    let secret = "Zm9vYmFyQmF6UXV4Q29ycmVjdEhvcnNl";
    let shared = Arc::default();
    let part = |last| GuessedPart {
        automaton: 0,
        first: 1,
        last,
    };
    let counters: Vec<_> = (0..3)
        .map(|_| GuessCounter::new(secret.len(), Arc::clone(&shared)))
        .collect();
    for last in 0..16 {
        counters[(last / 8) as usize].count(part(last));
    }
    counters[2].count(part(99));
    assert!(counters[2].is_exhausted());
    counters[2].lift();
    counters[2].count(part(100));
    assert!(!counters[2].is_exhausted());
}

proptest! {
    #[test]
    fn other_bytes_pass_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..500), pieces in 1usize..50) {
        prop_assert_eq!(through(SECRET, &bytes, pieces), bytes);
    }

    #[test]
    fn the_secret_never_passes(before in "[a-z_0-9]{0,40}", after in "[a-z_0-9]{0,40}", pieces in 1usize..30) {
        let text = format!("{before}{SECRET}{SECRET}{after}");
        let out = through(SECRET, text.as_bytes(), pieces);
        let seen = String::from_utf8_lossy(&out).into_owned();
        prop_assert!(!seen.contains("s3cr3t") && !seen.contains("odd"), "{}", seen);
    }
}
