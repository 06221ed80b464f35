//! Ways to get a known value past the redactor.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::knowing;

/// Awkward in every form: each escape has something to do, and base64 has `+` and `/` in it.
const VALUES: [&str; 4] = [
    "hunt3r",
    "~~>?&<'s \"path\"/ö\\>>>",
    "correct-horse-battery",
    "0123456789abcdef0123456789abcdef",
];

fn forms(value: &str) -> Vec<String> {
    let bytes = value.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let percent = |upper: bool| -> String {
        bytes
            .iter()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    char::from(*byte).to_string()
                }
                _ if upper => format!("%{byte:02X}"),
                _ => format!("%{byte:02x}"),
            })
            .collect()
    };
    let json = value.replace('\\', "\\\\").replace('"', "\\\"");
    let for_pages = json
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026");
    let html = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;");
    vec![
        value.to_owned(),
        value.chars().rev().collect(),
        hex.to_uppercase(),
        hex,
        percent(true),
        percent(false),
        json,
        for_pages,
        html,
        value.replace('\'', r"'\''"),
    ]
}

#[test]
fn a_stream_cut_in_two_at_any_byte_shows_no_form_of_a_value() {
    for value in VALUES {
        let redactor = knowing(&[value]);
        let mut spellings = forms(value);
        spellings.push(STANDARD.encode(format!("user:{value}")));
        for spelling in spellings {
            let text = format!("before <{spelling}> after");
            let whole = redactor.redact_bytes(text.as_bytes()).into_inner();
            assert!(
                !String::from_utf8_lossy(&whole).contains(&spelling),
                "{spelling}"
            );
            for cut in 0..=text.len() {
                let (one, two) = text.as_bytes().split_at(cut);
                let mut stream = redactor.stream();
                let mut out = stream.push(one).into_inner();
                out.extend(stream.push(two).into_inner());
                out.extend(stream.finish().into_inner());
                assert_eq!(out, whole, "{spelling} cut at {cut}");
            }
        }
    }
}

#[test]
fn base64_in_every_alphabet_at_every_offset_gives_nothing_back() {
    for value in VALUES {
        let redactor = knowing(&[value]);
        for before in ["", "a", "ab", "abc", "user:"] {
            for after in ["", "x", "xy", "\n"] {
                let plain = format!("{before}{value}{after}");
                for engine in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
                    let encoded = engine.encode(&plain);
                    let left = redactor.redact(&encoded).into_inner();
                    assert!(left.contains("[redacted]"), "{plain:?}: {encoded} → {left}");
                    // Of the characters that depend on the value alone, none is left.
                    let until = (before.len() + value.len()) * 8 / 6;
                    let own = until - (before.len() * 8).div_ceil(6);
                    let rest = left.replace("[redacted]", "");
                    assert!(rest.len() <= encoded.len() - own, "{encoded} → {left}");
                }
            }
        }
    }
}

/// `kubectl get secret -o yaml` shows the login of a registry so.
#[test]
fn base64_within_base64_gives_nothing_back() {
    for value in [
        "correct-horse-battery",
        "~~>?&<'s \"path\"/ö\\>>>",
        VALUES[3],
    ] {
        let redactor = knowing(&[value]);
        for (user, address) in [
            ("me", "r"),
            ("user", "re.example"),
            ("login", "reg.example"),
        ] {
            let login = STANDARD.encode(format!("{user}:{value}"));
            let file = format!("{{\"auths\":{{\"{address}\":{{\"auth\":\"{login}\"}}}}}}");
            let left = redactor.redact(STANDARD.encode(&file)).into_inner();
            let outer = left.replace("[redacted]", "");
            assert!(left.contains("[redacted]"), "{file} → {left}");
            // What is left of the outer one is not long enough for the login to stand in it.
            let rest = STANDARD.encode(&file).len() - outer.len();
            assert!(rest + 16 >= login.len() * 4 / 3 - user.len() * 2, "{left}");
        }
    }
}

#[test]
fn the_shortest_that_is_looked_for_is_found_and_words_stay() {
    let redactor = knowing(&["abc123", "zzzzz"]);
    assert_eq!(redactor.ignored(), 1);
    assert_eq!(
        redactor.redact("abc123 zzzzz abc12").as_str(),
        "[redacted] zzzzz abc12"
    );
    let prose =
        "A message arrives, is authorised, joins a session and becomes a turn of the agent.\n";
    let long = prose.repeat(200);
    assert_eq!(redactor.redact(&long).as_str(), long);
}

#[test]
fn values_within_values_and_side_by_side_leave_no_rest() {
    let redactor = knowing(&["secret-one", "one-secret-one-two", "aaaaaaaa"]);
    for text in [
        "secret-onesecret-one",
        "one-secret-one-two",
        "one-secret-one-secret-one-two",
        "aaaaaaaaaaaaaaaaaaaaaaa",
        "eno-tercessecret-one",
    ] {
        let left = redactor.redact(format!("<{text}>")).into_inner();
        assert!(
            !left.contains("secret") && !left.contains("aaaaaaaa"),
            "{text} → {left}"
        );
        assert!(!left.contains("terces"), "{text} → {left}");
    }
}

#[test]
fn a_secret_among_broken_bytes_is_found_all_the_same() {
    let redactor = knowing(&["correct-horse-battery"]);
    for noise in [&b"\xff\xfe"[..], b"\x00", b"\xc3", b"\xe2\x82", b"\x1b[31m"] {
        let bytes = [noise, b"correct-horse-battery", noise].concat();
        let left = redactor.redact_bytes(&bytes).into_inner();
        assert_eq!(left, [noise, b"[redacted]", noise].concat());
    }
}

/// Beginnings within a value that is hidden are not looked at one by one for ever; what reaches out of it
/// is hidden all the same, however the text was cut.
#[test]
fn what_begins_deep_within_a_hidden_value_and_ends_behind_it_is_hidden_too() {
    let key = "q7Rw2mZx9Lp4Tk8vBn3cQ5";
    let text = format!("{}x\nbearer {key}, {key}\n", "TOKEN=".repeat(4000));
    let redactor = knowing(&["correct-horse-battery"]);
    let whole = redactor.redact(&text).into_inner();
    assert!(!whole.contains(key), "{whole}");
    for size in [7, 1000, 20_000] {
        let mut stream = redactor.stream();
        let mut left = Vec::new();
        for chunk in text.as_bytes().chunks(size) {
            left.extend(stream.push(chunk).into_inner());
        }
        left.extend(stream.finish().into_inner());
        assert_eq!(String::from_utf8_lossy(&left), whole, "in pieces of {size}");
    }
}
