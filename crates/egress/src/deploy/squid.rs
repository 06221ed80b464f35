//! A Squid allowlist for those who keep Squid, with the holes of the usual one closed.
//!
//! The usual list lets a literal address through when its reverse name matches, allows any port, and
//! follows an allowed name to a private address. So names are compared without reverse look-ups (`-n`),
//! each rule pins its port, literals are refused first, and destinations that are not public are refused
//! after resolution. What Squid cannot do is compare the TLS name with the tunnel's or refuse bytes that
//! are not TLS: that takes `hermetic egress serve`.

use std::collections::BTreeMap;
use std::fmt::Write;

use thiserror::Error;

use crate::rules::{DEFAULT_PORT, HostRule, RuleMode, RulePreset, RuleText, RulesText};

/// The reason why the rules cannot be written for Squid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SquidError {
    #[error("mode open cannot be written as a Squid allowlist")]
    Open,
    #[error("{rule}: Squid cannot hold an address exception to one host")]
    Ranges { rule: String },
    #[error("{0}")]
    Rule(String),
}

/// Everything that is not public, in Squid's words. The mapped range is left out: to Squid it is all of IPv4,
/// and a mapped address is judged as the IPv4 address it holds. Of IPv6 the rest is what was never given out:
/// all outside of 2000::/3, where an IPv4 address or somebody's own network may be behind any of it.
const NOT_PUBLIC: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "::/96",
    "::ffff:0:0:0/96",
    "1::/16",
    "2::/15",
    "4::/14",
    "8::/13",
    "10::/12",
    "20::/11",
    "40::/10",
    "80::/9",
    "100::/8",
    "200::/7",
    "400::/6",
    "800::/5",
    "1000::/4",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "4000::/2",
    "8000::/1",
];

const HEAD: &str = r"# Written by `hermetic egress squid`. Order matters: the first line that matches decides.

# A literal address is never a name: not in dotted, not in IPv6, not in any old spelling.
acl literal_v4 dstdom_regex -n ^(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\.?$
acl literal_v6 dstdom_regex -n :
acl CONNECT method CONNECT
";

/// Fails rather than write a list that says less than the rules do. `left_out` is what Squid has no words
/// for, said at the top of the list.
pub fn squid_allowlist(rules: &RulesText, left_out: &[String]) -> Result<String, SquidError> {
    if rules.mode == Some(RuleMode::Open) {
        return Err(SquidError::Open);
    }
    let allowed = if rules.mode == Some(RuleMode::Closed) {
        Vec::new()
    } else {
        all_allowed(rules)?
    };
    let denied = parse(&rules.deny)?;

    let mut text = String::new();
    for note in left_out {
        // One line each, whatever a rule is called.
        let note = note.replace(char::is_control, " ");
        line(&mut text, format_args!("# Not in this list: {note}"));
    }
    text.push_str(HEAD);
    for range in NOT_PUBLIC {
        line(&mut text, format_args!("acl not_public dst {range}"));
    }
    line(
        &mut text,
        // First: whatever is allowed below is allowed by name, and Squid would compare a literal
        // with the name it resolves back to.
        format_args!("\nhttp_access deny literal_v4\nhttp_access deny literal_v6"),
    );
    // Before what is allowed, as the first line that matches decides.
    write_denied(&mut text, &denied);
    write_allowed(&mut text, &allowed);
    line(&mut text, format_args!("\nhttp_access deny all"));
    Ok(text)
}

fn write_denied(text: &mut String, denied: &[HostRule]) {
    for (port, rules) in by(denied, HostRule::port) {
        let (acl, on) = match port {
            None => ("denied".to_owned(), String::new()),
            Some(port) => (format!("denied_{port}"), format!(" to_{port}")),
        };
        if let Some(port) = port {
            line(text, format_args!("acl to_{port} port {port}"));
        }
        write_names(text, &acl, &rules);
        line(text, format_args!("http_access deny {acl}{on}"));
    }
}

fn write_allowed(text: &mut String, allowed: &[HostRule]) {
    for (port, rules) in by(allowed, |rule| rule.port().unwrap_or(DEFAULT_PORT)) {
        line(text, format_args!("\nacl on_{port} port {port}"));
        // Port 443 takes TLS only, and so does what a `tcp://` rule allows: both come by a tunnel. On
        // every other port a request may be plain HTTP as well.
        let (tunnels, hosts): (Vec<&HostRule>, Vec<&HostRule>) = rules
            .iter()
            .partition(|rule| port == DEFAULT_PORT || rule.is_plain_tcp());
        for (kind, method, some) in [("hosts", "", hosts), ("tunnels", "CONNECT ", tunnels)] {
            if !some.is_empty() {
                write_port(text, &format!("{kind}_{port}"), method, port, &some, &rules);
            }
        }
    }
}

fn write_port(
    text: &mut String,
    acl: &str,
    method: &str,
    port: u16,
    rules: &[&HostRule],
    all: &[&HostRule],
) {
    write_names(text, acl, rules);
    let below_only: Vec<&HostRule> = uncovered(rules)
        .into_iter()
        .filter(|rule| !rule.is_exact())
        .filter(|rule| {
            !all.iter()
                .any(|other| other.is_exact() && other.host() == rule.host())
        })
        .collect();
    for rule in &below_only {
        line(
            text,
            format_args!("acl apex_{acl} dstdomain -n {}", rule.host()),
        );
    }
    if !below_only.is_empty() {
        line(text, format_args!("http_access deny apex_{acl} on_{port}"));
    }
    // The name first: only names on the list are ever resolved.
    line(
        text,
        format_args!("http_access deny {acl} on_{port} not_public"),
    );
    line(
        text,
        format_args!("http_access allow {method}{acl} on_{port}"),
    );
}

fn write_names(text: &mut String, acl: &str, rules: &[&HostRule]) {
    for rule in uncovered(rules) {
        line(text, format_args!("acl {acl} dstdomain -n {}", name(rule)));
    }
}

fn by<K: Ord>(rules: &[HostRule], key: impl Fn(&HostRule) -> K) -> BTreeMap<K, Vec<&HostRule>> {
    let mut grouped: BTreeMap<K, Vec<&HostRule>> = BTreeMap::new();
    for rule in rules {
        grouped.entry(key(rule)).or_default().push(rule);
    }
    grouped
}

/// Squid does not start on a list in which one name holds another.
fn uncovered<'a>(rules: &[&'a HostRule]) -> Vec<&'a HostRule> {
    let covers = |wide: &HostRule, narrow: &HostRule| {
        let below = narrow
            .host()
            .parents()
            .any(|parent| parent == wide.host().as_str());
        !wide.is_exact() && (below || (narrow.is_exact() && narrow.host() == wide.host()))
    };
    let mut kept: Vec<&HostRule> = Vec::new();
    for &rule in rules {
        let repeated = kept
            .iter()
            .any(|k| k.is_exact() == rule.is_exact() && k.host() == rule.host());
        if !repeated && !rules.iter().any(|other| covers(other, rule)) {
            kept.push(rule);
        }
    }
    kept
}

fn all_allowed(rules: &RulesText) -> Result<Vec<HostRule>, SquidError> {
    let mut allowed = parse(&rules.allow)?;
    for preset in &rules.presets {
        let preset =
            RulePreset::named(preset).map_err(|error| SquidError::Rule(error.to_string()))?;
        let lines: Vec<RuleText> = preset.lines().map(RuleText::from).collect();
        allowed.extend(parse(&lines)?);
    }
    Ok(allowed)
}

fn parse(texts: &[RuleText]) -> Result<Vec<HostRule>, SquidError> {
    texts.iter().map(parse_one).collect()
}

fn parse_one(text: &RuleText) -> Result<HostRule, SquidError> {
    let RuleText::Line(line) = text else {
        return Err(SquidError::Ranges {
            rule: format!("{text:?}"),
        });
    };
    let rule = HostRule::parse(line).map_err(|error| SquidError::Rule(error.to_string()))?;
    if !rule.ranges().is_empty() {
        return Err(SquidError::Ranges {
            rule: rule.to_string(),
        });
    }
    Ok(rule)
}

/// Squid writes "this name and all below" with a dot and has no word for "only below"; the name itself is
/// denied by a line of its own.
fn name(rule: &HostRule) -> String {
    if rule.is_exact() {
        rule.host().to_string()
    } else {
        format!(".{}", rule.host())
    }
}

fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    writeln!(text, "{args}").expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::address::public;

    #[test]
    fn what_is_not_public_to_us_is_not_to_squid() {
        let ranges: Vec<ipnet::IpNet> = NOT_PUBLIC.iter().map(|net| net.parse().unwrap()).collect();
        let denied = |text: &str| {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(
                ranges.iter().any(|net| net.contains(&address)),
                public(address).is_err(),
                "{text}"
            );
        };
        for first in 1..=u16::MAX {
            denied(&format!("{first:x}::7"));
        }
        for text in [
            "::1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001:db8::1",
            "2001:2::1",
            "2606:4700::1111",
            "fe80::1",
            "10.0.0.1",
            "1.1.1.1",
            "169.254.169.254",
            "168.63.129.16",
        ] {
            denied(text);
        }
    }

    #[test]
    fn the_list_closes_the_holes() {
        let rules = RulesText {
            allow: [
                "api.openai.com",
                "*.githubusercontent.com",
                "deb.debian.org:80",
                "tcp://github.com:22",
                "registry.test:5000",
                "*.mixed.test:8443",
                "tcp://raw.test:8443",
            ]
            .map(RuleText::from)
            .into(),
            deny: vec![
                "bad.githubusercontent.com".into(),
                "registry.test:5001".into(),
            ],
            ..RulesText::default()
        };
        insta::assert_snapshot!(squid_allowlist(&rules, &["a budget".to_owned()]).unwrap());
    }

    #[test]
    fn what_squid_cannot_keep_is_not_written() {
        let open = RulesText {
            mode: Some(RuleMode::Open),
            ..RulesText::default()
        };
        assert_eq!(squid_allowlist(&open, &[]), Err(SquidError::Open));
        let ranged = RulesText::allowing(["a.lan in 10.0.0.0/8"]);
        assert!(matches!(
            squid_allowlist(&ranged, &[]),
            Err(SquidError::Ranges { .. })
        ));
        let closed = RulesText {
            mode: Some(RuleMode::Closed),
            ..RulesText::allowing(["a.test"])
        };
        assert!(
            !squid_allowlist(&closed, &[])
                .unwrap()
                .contains("http_access allow")
        );
    }
}
