use hermetic_chat::TextUnit;
use hermetic_testkit::telegram::visible_text;
use proptest::prelude::*;

use super::*;

#[test]
fn common_markdown_becomes_markdown_v2() {
    for (source, expected) in [
        ("plain", "plain"),
        ("a.b!", "a\\.b\\!"),
        ("**bold** and *it* and _it_", "*bold* and _it_ and _it_"),
        ("__bold__ ~~gone~~ ||psst||", "*bold* ~gone~ ||psst||"),
        ("# Title", "*Title*"),
        ("### A *b* c", "*A _b_ c*"),
        ("- one\n* two\n1. three", "• one\n• two\n1\\. three"),
        ("> said\n> so", ">said\n>so"),
        ("`a.b`", "`a.b`"),
        ("``a`b``", "`a\\`b`"),
        ("**use `x` now**", "*use *`x`* now*"),
        ("**`x`**", "`x`"),
        ("[a.b](https://x.y/z_(1))", "[a\\.b](https://x.y/z_(1)\\)"),
        ("[x](javascript:alert)", "\\[x\\]\\(javascript:alert\\)"),
        ("snake_case_name and 2*3*4", "snake\\_case\\_name and 2_3_4"),
        ("\\*not bold\\*", "\\*not bold\\*"),
        ("**open", "\\*\\*open"),
        ("* * *", "• \\* \\*"),
        (
            "```rust\nlet a = `x`;\n```",
            "```rust\nlet a = \\`x\\`;\n```",
        ),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("```we!rd\nx\n```", "```\nx\n```"),
        ("a\n\nb", "a\n\nb"),
        ("***both***", "*_both_*"),
        ("*a**b*", "_a\\*\\*b_"),
    ] {
        assert_eq!(to_markdown_v2(source), expected, "{source}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The judge is the parser of our stand-in for Telegram.
    #[test]
    fn telegram_always_accepts_it(text in "[a-z \n*_`~|#>!\\[\\]().:/\\\\😀-]{0,60}") {
        let converted = to_markdown_v2(&text);
        let seen = visible_text(&converted);
        prop_assert!(seen.is_ok(), "{text:?} became {converted:?}: {seen:?}");
        prop_assert!(units(&seen.unwrap()) <= units(&text) + 1);
    }

    #[test]
    fn any_text_is_accepted(text in any::<String>()) {
        let converted = to_markdown_v2(&text);
        prop_assert!(visible_text(&converted).is_ok(), "{converted:?}");
    }

    #[test]
    fn text_without_markup_is_seen_as_written(text in "[a-zA-Z0-9 ,.!?(){}=+€ß-]{1,60}") {
        prop_assume!(!text.trim_start().starts_with(['-', '+']));
        prop_assert_eq!(visible_text(&to_markdown_v2(&text)), Ok(text));
    }
}

fn units(text: &str) -> usize {
    TextUnit::Utf16.count(text)
}
