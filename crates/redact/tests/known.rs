use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::Secret;

use crate::knowing;

const VALUE: &str = "hunter2/ö\"Zebra?";

#[test]
fn every_way_a_value_is_printed() {
    let redactor = knowing(&[VALUE]);
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let reversed: String = VALUE.chars().rev().collect();
    let percent = "hunter2%2F%C3%B6%22Zebra%3F";
    let forms = [
        VALUE,
        &hex,
        &hex.to_uppercase(),
        &reversed,
        percent,
        &percent.to_lowercase().replace("zebra", "Zebra"),
        "hunter2/ö\\\"Zebra?",
        "hunter2\\/ö\\\"Zebra?",
        "hunter2/\\u00f6\\\"Zebra?",
        &STANDARD.encode(VALUE),
        &URL_SAFE_NO_PAD.encode(VALUE),
    ];
    for form in forms {
        let text = format!("it is <{form}> here");
        assert_eq!(
            redactor.redact(&text).as_str(),
            "it is <[redacted]> here",
            "{form}"
        );
    }
}

#[test]
fn a_value_with_spaces_in_a_form() {
    let redactor = knowing(&["open sesame & co"]);
    let text = "q=open+sesame+%26+co&r=open%20sesame%20%26%20co";
    assert_eq!(redactor.redact(text).as_str(), "q=[redacted]&r=[redacted]");
}

#[test]
fn base64_of_something_larger_at_every_offset() {
    let redactor = knowing(&["correct-horse-battery"]);
    for before in ["", "a", "ab", "abc", "user:"] {
        for after in ["", "x", "xy", "xyz"] {
            let encoded = STANDARD.encode(format!("{before}correct-horse-battery{after}"));
            let redacted = redactor.redact(&encoded).into_inner();
            assert!(redacted.contains("[redacted]"), "{encoded} → {redacted}");
            assert!(redacted.len() < 28, "{encoded} → {redacted}");
        }
    }
}

#[test]
fn base64_that_wraps() {
    let redactor = knowing(&["correct-horse-battery-staple"]);
    let encoded = STANDARD.encode("some words first, correct-horse-battery-staple, some more");
    for width in 8..60 {
        let lines: Vec<_> = encoded
            .as_bytes()
            .chunks(width)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        let redacted = redactor.redact(lines.join("\n")).into_inner();
        assert!(redacted.contains("[redacted]"), "width {width}: {redacted}");
    }
}

#[test]
fn values_that_overlap_leave_no_tail() {
    let redactor = knowing(&["abcdefgh", "efghijkl", "ijklmnop"]);
    assert_eq!(
        redactor.redact("<abcdefghijklmnop>").as_str(),
        "<[redacted]>"
    );
}

#[test]
fn the_longer_of_two_values_wins() {
    let redactor = knowing(&["secret-one", "secret-one-and-two"]);
    assert_eq!(
        redactor.redact("secret-one-and-two.").as_str(),
        "[redacted]."
    );
}

#[test]
fn lines_of_a_key_are_known_one_by_one() {
    let redactor = knowing(&["first-line-of-the-key\nsecond-line-of-the-key\n"]);
    let numbered = "1|first-line-of-the-key\n2|second-line-of-the-key\n";
    assert_eq!(
        redactor.redact(numbered).as_str(),
        "1|[redacted]\n2|[redacted]\n"
    );
}

#[test]
fn a_value_too_short_to_mean_anything_is_counted() {
    let redactor = knowing(&["1234", "", "long-enough"]);
    assert_eq!(redactor.ignored(), 1);
    assert_eq!(redactor.redact("1234").as_str(), "1234");
}

#[test]
fn known_values_go_even_where_shapes_are_switched_off() {
    let settings = RedactorSettings {
        shapes: false,
        ..RedactorSettings::default()
    };
    let redactor = Redactor::new([Secret::new("hunter22")], settings);
    let text = "password=abcdef12 hunter22";
    assert_eq!(
        redactor.redact(text).as_str(),
        "password=abcdef12 [redacted]"
    );
}

#[test]
fn a_redactor_does_not_print_what_it_knows() {
    assert!(!format!("{:?}", knowing(&["hunter22"])).contains("hunter22"));
}
