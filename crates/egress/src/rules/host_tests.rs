use proptest::prelude::*;

use super::*;

fn host(text: &str) -> Result<String, InvalidHost> {
    HostName::parse(text).map(|host| host.to_string())
}

#[test]
fn spellings_of_one_name_become_one() {
    for text in [
        "example.com",
        "EXAMPLE.com",
        "example.com.",
        "Example.Com.",
        "ｅｘａｍｐｌｅ。com",
    ] {
        assert_eq!(host(text), Ok("example.com".to_owned()), "{text:?}");
    }
    assert_eq!(host("bücher.de"), Ok("xn--bcher-kva.de".to_owned()));
    assert_eq!(host("BÜCHER.de"), host("xn--bcher-kva.de"));
    assert_eq!(host("a_b.example"), Ok("a_b.example".to_owned()));
}

#[test]
fn addresses_in_any_spelling_are_no_names() {
    for text in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0x7f000001",
        "017700000001",
        "2130706433",
        "127.0.0.1.",
        "0x",
        "1.2.3.4.5",
        "[::1]",
        "::1",
        "fe80::1%eth0",
        "[fe80::1%25eth0]",
        "::ffff:127.0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "example.1",
        "0X7F.0x1",
        "①②⑦.1",
    ] {
        assert_eq!(host(text), Err(InvalidHost::Literal), "{text:?}");
    }
}

#[test]
fn malformed_names_are_refused() {
    let long_label = format!("{}.com", "a".repeat(64));
    let long_name = format!("{}com", "abcdefg.".repeat(32));
    for text in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a.b..",
        " example.com",
        "example.com ",
        "a b",
        "a\0b",
        "a/b",
        "a@b",
        "a%2eb",
        "a\\b",
        "a\tb",
        "a\r\nb",
        "-a.com",
        "a-.com",
        "a?b",
        "a#b",
        "*",
        "*.a",
        "xn--",
        "xn--a",
        "xn--zzzzzz99999",
        "a,b",
        "\u{200d}",
        &long_label,
        &long_name,
    ] {
        assert!(
            host(text).is_err(),
            "{text:?} was accepted as {:?}",
            host(text)
        );
    }
}

#[test]
fn parents_go_outwards() {
    let host = HostName::parse("a.b.example.com").unwrap();
    assert_eq!(
        host.parents().collect::<Vec<_>>(),
        ["b.example.com", "example.com", "com"]
    );
}

proptest! {
    #[test]
    fn what_is_accepted_is_a_fixed_point(text in "\\PC{0,80}") {
        if let Ok(first) = HostName::parse(&text) {
            prop_assert_eq!(HostName::parse(first.as_str()), Ok(first.clone()));
            prop_assert!(first.as_str().parse::<std::net::IpAddr>().is_err());
            prop_assert!(first.as_str().len() <= NAME_LIMIT);
        }
    }

    #[test]
    fn ordinary_names_are_accepted(text in "[a-z][a-z0-9]{0,20}(\\.[a-z][a-z0-9]{0,20}){0,5}") {
        prop_assert_eq!(HostName::parse(&text.to_uppercase()).unwrap().to_string(), text);
    }
}
