use proptest::prelude::*;

use super::*;

fn rules(allow: &[&str], deny: &[&str]) -> CompiledRules {
    let mut text = RulesText::allowing(allow.iter().copied());
    text.deny = deny.iter().map(|&rule| rule.into()).collect();
    CompiledRules::compile(&text).unwrap()
}

fn decide(rules: &CompiledRules, target: &str, via: ProxyMethod) -> RuleVerdict {
    rules.decide(&Authority::parse(target).unwrap(), via)
}

fn allowed(rules: &CompiledRules, target: &str) -> bool {
    matches!(
        decide(rules, target, ProxyMethod::Tunnel),
        RuleVerdict::Allow(_)
    )
}

#[test]
fn a_wildcard_stops_at_label_boundaries() {
    let rules = rules(&["*.example.com"], &[]);
    assert!(allowed(&rules, "a.example.com:443"));
    assert!(allowed(&rules, "a.b.example.com:443"));
    for no in [
        "example.com:443",
        "evilexample.com:443",
        "example.com.evil.org:443",
        "a.example.com:80",
    ] {
        assert!(!allowed(&rules, no), "{no} was allowed");
    }
}

#[test]
fn an_exact_name_is_only_itself() {
    let rules = rules(&["example.com"], &[]);
    assert!(allowed(&rules, "EXAMPLE.com.:443"));
    for no in [
        "www.example.com:443",
        "example.com:80",
        "example.com:8443",
        "xexample.com:443",
    ] {
        assert!(!allowed(&rules, no), "{no} was allowed");
    }
}

#[test]
fn deny_beats_allow_on_every_port() {
    let rules = rules(
        &["*.example.com", "bad.example.com", "bad.example.com:80"],
        &["bad.example.com"],
    );
    assert!(allowed(&rules, "good.example.com:443"));
    for target in ["bad.example.com:443", "bad.example.com:80"] {
        let verdict = decide(&rules, target, ProxyMethod::Tunnel);
        assert!(
            matches!(verdict, RuleVerdict::Refuse(_)),
            "{target}: {verdict:?}"
        );
    }
}

#[test]
fn port_80_needs_a_rule_that_says_so() {
    let some = rules(&["a.test", "b.test:80"], &[]);
    assert!(matches!(
        decide(&some, "a.test:80", ProxyMethod::PlainHttp),
        RuleVerdict::Unknown(_)
    ));
    assert!(matches!(
        decide(&some, "b.test:80", ProxyMethod::PlainHttp),
        RuleVerdict::Allow(_)
    ));
    assert!(matches!(
        decide(&some, "a.test:443", ProxyMethod::PlainHttp),
        RuleVerdict::Refuse(_)
    ));
}

#[test]
fn plain_tcp_is_for_tunnels_and_its_own_port() {
    let rules = rules(&["tcp://git.test:22", "git.test"], &[]);
    let RuleVerdict::Allow(ssh) = decide(&rules, "git.test:22", ProxyMethod::Tunnel) else {
        panic!("ssh refused")
    };
    assert_eq!(
        (ssh.transport(), ssh.rule()),
        (AllowedTransport::Tcp, "tcp://git.test:22")
    );
    let RuleVerdict::Allow(https) = decide(&rules, "git.test:443", ProxyMethod::Tunnel) else {
        panic!("https refused")
    };
    assert_eq!(https.transport(), AllowedTransport::Tls);
    assert!(!matches!(
        decide(&rules, "git.test:22", ProxyMethod::PlainHttp),
        RuleVerdict::Allow(_)
    ));
}

#[test]
fn closed_refuses_and_open_allows_the_usual_ports() {
    let text = RulesText {
        mode: Some(RuleMode::Closed),
        ..RulesText::allowing(["a.test"])
    };
    assert!(matches!(
        decide(
            &CompiledRules::compile(&text).unwrap(),
            "a.test:443",
            ProxyMethod::Tunnel
        ),
        RuleVerdict::Refuse(_)
    ));
    let text = RulesText {
        mode: Some(RuleMode::Open),
        deny: vec!["*.bad.test".into()],
        ..RulesText::default()
    };
    let open = CompiledRules::compile(&text).unwrap();
    assert!(allowed(&open, "any.test:443"));
    assert!(!allowed(&open, "x.bad.test:443"));
    assert!(!allowed(&open, "any.test:22"));
    assert!(matches!(
        decide(&open, "any.test:80", ProxyMethod::PlainHttp),
        RuleVerdict::Allow(_)
    ));
}

#[test]
fn presets_count_as_rules_and_say_so() {
    let text = RulesText {
        presets: vec!["python".into()],
        ..RulesText::default()
    };
    let RuleVerdict::Allow(allowed) = decide(
        &CompiledRules::compile(&text).unwrap(),
        "pypi.org:443",
        ProxyMethod::Tunnel,
    ) else {
        panic!()
    };
    assert_eq!(allowed.rule(), "pypi.org (preset python)");
}

#[test]
fn ranges_of_all_matching_rules_count() {
    let text = RulesText {
        allow: vec![
            "a.test in 10.0.0.0/8".into(),
            RuleText::Ranged {
                host: "*.test".into(),
                addresses: vec!["192.168.0.0/16".parse().unwrap()],
            },
        ],
        ..RulesText::default()
    };
    let RuleVerdict::Allow(allowed) = decide(
        &CompiledRules::compile(&text).unwrap(),
        "a.test:443",
        ProxyMethod::Tunnel,
    ) else {
        panic!()
    };
    assert_eq!(allowed.ranges().len(), 2);
}

#[test]
fn a_narrower_scope_can_only_tighten_the_mode() {
    let open = RulesText {
        mode: Some(RuleMode::Open),
        ..RulesText::default()
    };
    let listed = RulesText::allowing(["a.test"]);
    let closed = RulesText {
        mode: Some(RuleMode::Closed),
        ..RulesText::default()
    };
    let strict = RulesText {
        mode: Some(RuleMode::Allowlist),
        ..RulesText::default()
    };
    assert_eq!(listed.clone().and(&open).mode, Some(RuleMode::Allowlist));
    assert_eq!(
        open.clone().and(&listed).mode,
        Some(RuleMode::Open),
        "additions leave the mode alone"
    );
    assert_eq!(open.clone().and(&strict).mode, Some(RuleMode::Allowlist));
    assert_eq!(open.and(&closed).mode, Some(RuleMode::Closed));
}

#[test]
fn all_problems_are_told_at_once() {
    let text = RulesText {
        allow: vec!["https://a.test".into(), "*".into()],
        presets: vec!["nope".into()],
        ..RulesText::default()
    };
    assert_eq!(CompiledRules::compile(&text).unwrap_err().problems.len(), 3);
}

#[test]
fn rules_read_from_a_file_with_strings_and_ranges() {
    let text: RulesText = serde_json::from_str(
        r#"{"mode":"allowlist","allow":["a.test",{"host":"b.test:8080","addresses":["10.0.0.0/8"]}]}"#,
    )
    .unwrap();
    assert!(allowed(
        &CompiledRules::compile(&text).unwrap(),
        "b.test:8080"
    ));
    assert!(serde_json::from_str::<RulesText>(r#"{"alow":[]}"#).is_err());
}

proptest! {
    #[test]
    fn nothing_but_the_listed_names_gets_through(
        label in "[a-z]{1,8}", other in "[a-z0-9.-]{1,30}",
    ) {
        let rules = rules(&["only.example.com", "*.below.example.com"], &[]);
        if let Ok(target) = Authority::parse(&format!("{other}:443")) {
            let name = target.host.as_str();
            let listed = name == "only.example.com" || name.ends_with(".below.example.com");
            prop_assert_eq!(matches!(rules.decide(&target, ProxyMethod::Tunnel), RuleVerdict::Allow(_)), listed);
        }
        let target = Authority::parse(&format!("{label}.below.example.com:443")).unwrap();
        prop_assert!(matches!(rules.decide(&target, ProxyMethod::Tunnel), RuleVerdict::Allow(_)));
    }
}
