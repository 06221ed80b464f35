use std::sync::LazyLock;

use hermetic_redact::Redactor;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::knowing;

/// Made once: there are thousands of cases.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| knowing(&KNOWN));

const KNOWN: [&str; 4] = [
    "hunter2hunter2",
    "abcabcabd",
    "Zx9-correct-horse",
    "line-one-of-it\nline-two-of-it-all",
];

/// Pieces that rules react to, in every order.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~\n]{0,12}",
        2 => proptest::sample::select(KNOWN.to_vec()).prop_map(str::to_owned),
        2 => proptest::sample::select(KNOWN.to_vec()).prop_map(|text| text[..text.len() / 2].to_owned()),
        3 => proptest::sample::select(vec![
            "password", "API_KEY", "token", "=", ": ", "\"", "\\\"", "'", "?", "&", "://", "@", ":AA", "\n",
            "Authorization: ", "Bearer ", "sk-", "ghp_", "eyJ", ".", "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----", "MTA", "--", "[redacted]", "[", "]", "123456789", "cookie: ", "ö", "_base",
        ]).prop_map(str::to_owned),
        2 => "[a-zA-Z0-9]{16,48}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    vec(piece(), 0..14).prop_map(|pieces| pieces.concat())
}

fn spans_lines(text: &str) -> bool {
    text.contains("-----BEGIN")
        || KNOWN
            .iter()
            .any(|value| value.contains('\n') && text.contains(value))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_cutting_gives_the_same(text in text(), cuts in vec(1_usize..40, 1..60)) {
        let redactor = &*REDACTOR;
        let mut stream = redactor.stream();
        let mut whole = stream.push(text.as_bytes()).into_inner();
        whole.extend(stream.finish().into_inner());
        let mut stream = redactor.stream();
        let mut pieces = Vec::new();
        let mut rest = text.as_bytes();
        for cut in cuts.iter().cycle() {
            let (chunk, later) = rest.split_at((*cut).min(rest.len()));
            pieces.extend(stream.push(chunk).into_inner());
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        pieces.extend(stream.finish().into_inner());
        prop_assert_eq!(String::from_utf8_lossy(&pieces), String::from_utf8_lossy(&whole));
    }

    #[test]
    fn no_known_value_survives(text in text()) {
        let redacted = REDACTOR.redact(&text).into_inner();
        for value in KNOWN {
            prop_assert!(!redacted.contains(value), "{redacted:?}");
        }
    }

    /// What spans lines is left out: gone, it joins two lines that had nothing to do with each other,
    /// and together they may look like something to hide.
    #[test]
    fn twice_is_once(text in text().prop_filter("one line at a time", |text| !spans_lines(text))) {
        let redactor = &*REDACTOR;
        let once = redactor.redact(&text);
        prop_assert_eq!(redactor.redact(&once), once);
    }

    #[test]
    fn a_second_pass_brings_nothing_back(text in text()) {
        let redactor = &*REDACTOR;
        let once = redactor.redact(&text);
        let twice = redactor.redact(&once);
        let (once, twice) = (once.into_inner(), twice.into_inner());
        let mut rest = once.as_str();
        for kept in twice.split("[redacted]").filter(|kept| !kept.is_empty()) {
            let found = rest.find(kept);
            prop_assert!(found.is_some(), "{kept:?} of {twice:?} is not in {once:?}");
            rest = &rest[found.unwrap_or(0) + kept.len()..];
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..600)) {
        REDACTOR.redact_bytes(&bytes);
    }
}

#[test]
fn a_value_across_ever_so_many_chunks() {
    let redactor = &*REDACTOR;
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    for byte in b"<hunter2hunter2> password=abcd1234\n" {
        out.extend(stream.push(&[*byte]).into_inner());
    }
    out.extend(stream.finish().into_inner());
    assert_eq!(
        String::from_utf8_lossy(&out),
        "<[redacted]> password=[redacted]\n"
    );
}

#[test]
fn a_stream_holds_back_no_more_than_the_window() {
    let redactor = &*REDACTOR;
    let mut stream = redactor.stream();
    let mut given = stream
        .push(b"-----BEGIN PRIVATE KEY-----\n")
        .into_inner()
        .len();
    let line = "not a key! ".repeat(100);
    for _ in 0..64 {
        given += stream.push(line.as_bytes()).into_inner().len();
    }
    let pushed = 64 * line.len();
    assert!(given + (20 << 10) > pushed, "{given} of {pushed}");
}
