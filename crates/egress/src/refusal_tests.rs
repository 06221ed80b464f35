use super::*;
use crate::rules::{CompiledRules, RuleVerdict, RulesText};

fn refusal(target: &str, via: ProxyMethod) -> ProxyRefusal {
    let rules = CompiledRules::compile(&RulesText::allowing(["known.test"])).unwrap();
    let target = Authority::parse(target).unwrap();
    match rules.decide(&target, via) {
        RuleVerdict::Refuse(refused) | RuleVerdict::Unknown(refused) => {
            ProxyRefusal::by_rule(&target, via, &refused)
        }
        RuleVerdict::Allow(_) => panic!("allowed"),
    }
}

#[test]
fn a_model_can_read_what_happened() {
    insta::assert_snapshot!(refusal("api.example.com:443", ProxyMethod::Tunnel).text(AllowInstructions::ByRule), @r"
    hermetic egress: refused: api.example.com:443 is not on the allowlist of this sandbox
    rule: no rule names this host
    what a person can do: hermetic egress allow api.example.com
    Trying again, or another way out, will not help until then.
    ");
    insta::assert_snapshot!(refusal("known.test:80", ProxyMethod::PlainHttp).text(AllowInstructions::ByRule), @r"
    hermetic egress: refused: known.test is not allowed on port 80
    rule: no rule names this port; the host has: known.test
    what a person can do: hermetic egress allow known.test:80 (or https:// where the host is allowed)
    Trying again, or another way out, will not help until then.
    ");
}

#[test]
fn the_remedy_is_the_callers_own() {
    let text =
        |target, via| refusal(target, via).text(AllowInstructions::ByFlagOf("hermetic exec"));
    insta::assert_snapshot!(text("api.example.com:443", ProxyMethod::Tunnel), @r"
    hermetic egress: refused: api.example.com:443 is not on the allowlist of this sandbox
    rule: no rule names this host
    what a person can do: start `hermetic exec` with --allow api.example.com
    Trying again, or another way out, will not help until then.
    ");
}

#[test]
fn a_program_can_read_it_too() {
    insta::assert_snapshot!(refusal("a.test:8443", ProxyMethod::Tunnel).json(AllowInstructions::ByRule), @r#"{"code":"not-allowed","error":"egress_refused","reason":"a.test:8443 is not on the allowlist of this sandbox","remedy":"hermetic egress allow a.test:8443","rule":"no rule names this host","target":"a.test:8443"}"#);
}

#[test]
fn hostile_targets_cannot_forge_lines() {
    let refusal = ProxyRefusal::bad_target("a\r\nSet-Cookie: x", "literal");
    assert!(!refusal.target.contains(['\r', '\n']));
}
