//! Any text as `host:port`, and as a rule: what is accepted is one spelling, and never an address.

#![no_main]

use hermetic_egress::rules::ProxyMethod;
use hermetic_egress::{Authority, CompiledRules, HostRule, RulesText};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(authority) = Authority::parse(text) {
        let again = Authority::parse(&authority.to_string()).expect("what we print we accept");
        assert_eq!(again, authority);
        let name = authority.host.as_str();
        assert!(name.parse::<std::net::IpAddr>().is_err());
        assert!(name.len() <= 253 && name.split('.').all(|label| (1..=63).contains(&label.len())));
        assert!(
            name.bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b))
        );
        assert!(
            !name
                .rsplit('.')
                .next()
                .unwrap_or_default()
                .bytes()
                .all(|b| b.is_ascii_digit())
        );
    }
    if let Ok(rule) = HostRule::parse(text) {
        let rules = CompiledRules::compile(&RulesText::allowing([text]))
            .expect("a rule that parses compiles");
        let other = Authority::parse("elsewhere.invalid:443").expect("a plain name");
        if rule.is_exact() && rule.host().as_str() != "elsewhere.invalid" {
            assert!(!matches!(
                rules.decide(&other, ProxyMethod::Tunnel),
                hermetic_egress::rules::RuleVerdict::Allow(_)
            ));
        }
    }
});
