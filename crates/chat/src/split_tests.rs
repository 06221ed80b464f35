use proptest::prelude::*;

use super::*;

const LIMIT: TextLimit = TextLimit::utf16(4096);

#[test]
fn a_short_text_stays_as_it_is() {
    assert_eq!(split("hello", LIMIT), ["hello"]);
    assert_eq!(split(" \n ", LIMIT), Vec::<String>::new());
}

#[test]
fn lengths_are_in_the_unit_of_the_platform() {
    for (limit, smileys) in [
        (TextLimit::utf16(4096), 2048),
        (TextLimit::characters(2000), 2000),
        (TextLimit::bytes(2000), 500),
    ] {
        let text = "😀".repeat(smileys);
        assert_eq!(split(&text, limit).len(), 1, "{limit:?}");
        let parts = split(&format!("{text}😀"), limit);
        assert_eq!(parts.len(), 2, "{limit:?}");
        assert!(parts.iter().all(|part| limit.fits(part)), "{limit:?}");
    }
}

#[test]
fn parts_end_at_paragraphs_and_are_numbered() {
    let paragraph = format!("{}\n\n", "word ".repeat(100));
    let parts = split(&paragraph.repeat(12), LIMIT);
    assert_eq!(parts.len(), 2);
    assert!(parts[0].ends_with("word (1/2)") && parts[1].ends_with("word (2/2)"));
}

#[test]
fn a_code_block_that_fits_is_not_cut() {
    let prose = "word ".repeat(700);
    let code = format!("```rust\n{}```\n", "let x = 1;\n".repeat(200));
    let parts = split(&format!("{prose}\n\n{code}after"), LIMIT);
    assert_eq!(parts.len(), 2);
    assert!(parts[1].starts_with(&code), "{}", parts[1]);
}

#[test]
fn a_longer_code_block_is_closed_and_opened_again() {
    let code = format!("~~~~python\n{}~~~~", "print('hello')\n".repeat(600));
    let parts = split(&code, LIMIT);
    assert_eq!(parts.len(), 3);
    for part in &parts[..2] {
        assert!(part.starts_with("~~~~python\nprint"), "{}", &part[..40]);
        assert!(part.contains("\n~~~~\n("), "{}", &part[part.len() - 40..]);
    }
    assert!(parts.iter().all(|part| balanced(part)));
}

#[test]
fn a_formatted_span_is_not_cut() {
    let line = format!(
        "{} **bold words here** {}",
        "x".repeat(4070),
        "y".repeat(200)
    );
    let parts = split(&line, LIMIT);
    assert!(parts[1].contains("**bold words here**"), "{}", parts[1]);
}

#[test]
fn hostile_text_is_cut_in_reasonable_time() {
    for text in [
        "**".repeat(40_000),
        "`".repeat(80_000),
        "[](".repeat(30_000),
        "\\".repeat(80_000),
    ] {
        assert!(split(&text, LIMIT).iter().all(|part| LIMIT.fits(part)));
    }
}

#[test]
fn a_cut_makes_no_fence_of_what_was_none() {
    let words = "~~~ not a fence because it goes on and on ".repeat(8);
    for limit in 128..200 {
        for text in [
            words.clone(),
            format!("{words}\n{words}"),
            format!("```\n{words}\n```\n{words}"),
        ] {
            for part in split(&text, TextLimit::utf16(limit)) {
                assert!(balanced(&part), "{part:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_lost_and_nothing_is_too_long(text in markdownish(), limit in limits()) {
        let parts = cut(&text, limit);
        let joined: String = parts.iter().map(|part| part.raw).collect();
        prop_assert_eq!(&joined, &text);
        for part in split(&text, limit) {
            prop_assert!(limit.fits(&part), "{limit:?}: {part:?}");
        }
    }

    #[test]
    fn fences_are_balanced_in_every_part(text in markdownish(), limit in limits()) {
        let parts = split(&text, limit);
        if parts.len() > 1 {
            for part in parts {
                prop_assert!(balanced(&part), "{part:?}");
            }
        }
    }
}

fn balanced(part: &str) -> bool {
    let mut fence = None;
    for line in part.split_inclusive('\n') {
        fence = LineKind::read(line, fence.as_ref()).leaves_open(fence);
    }
    fence.is_none()
}

fn limits() -> impl Strategy<Value = TextLimit> {
    const UNITS: [TextUnit; 3] = [TextUnit::Utf16, TextUnit::Characters, TextUnit::Bytes];
    let unit = proptest::sample::select(&UNITS[..]);
    (128usize..300, unit).prop_map(|(length, unit)| TextLimit { length, unit })
}

/// Lines that are prose, code, fences of every kind, long words and wide characters.
fn markdownish() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[a-z *_`~|\\[\\]()\\\\😀é]{0,80}",
        2 => Just("```".to_owned()),
        1 => Just("```rust".to_owned()),
        1 => Just("  ~~~~ ".to_owned()),
        1 => "[x`~ ]{0,400}",
        1 => "[x😀]{100,500}",
        1 => Just(String::new()),
    ];
    proptest::collection::vec(line, 0..40).prop_map(|lines| lines.join("\n"))
}
