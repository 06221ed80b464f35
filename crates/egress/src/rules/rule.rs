//! One line of an allowlist or a denylist.
//!
//! ```text
//! pypi.org                          that host, port 443, TLS
//! deb.debian.org:80                 that host and port, plain HTTP or TLS
//! *.githubusercontent.com           every name below it, not the name itself
//! tcp://github.com:22               any bytes, for protocols that are not TLS
//! registry.lan in 10.2.0.0/16       also where the name resolves to these private addresses
//! ```

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use thiserror::Error;

use super::authority::{self, InvalidAuthority};
use super::host::HostName;

pub const DEFAULT_PORT: u16 = 443;

/// One rule: a host or all names below one, a port, and what may be carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    pub(super) pattern: HostPattern,
    /// `None` is the default: 443 for an allow rule, every port for a deny rule.
    pub(super) port: Option<u16>,
    pub(super) carries: AllowedProtocol,
    pub(super) ranges: Vec<IpNet>,
    text: String,
}

/// The names that a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HostPattern {
    Exact(HostName),
    /// Names with at least one label in front of this.
    Below(HostName),
}

/// What a rule lets a connection carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedProtocol {
    TlsOrHttp,
    AnyBytes,
}

/// A text that is no rule, and why.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not an egress rule: {problem}")]
pub struct InvalidRule {
    pub text: String,
    pub problem: RuleProblem,
}

/// The reason why a text is no rule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RuleProblem {
    #[error("a single * would match everything; say `mode: open` or `mode: closed` instead")]
    Everything,
    #[error("a * stands only as a whole first label, as in *.example.com")]
    StrayWildcard,
    #[error("rules take a host, not a URL; only tcp:// may stand in front")]
    Scheme,
    #[error("tcp:// needs a port, as in tcp://github.com:22")]
    TcpWithoutPort,
    #[error("{text:?} is not an address range such as 10.2.0.0/16")]
    BadRange { text: String },
    #[error("{range} is too wide: at least /8 for IPv4 and /7 for IPv6")]
    WideRange { range: IpNet },
    #[error(transparent)]
    Authority(#[from] InvalidAuthority),
}

impl HostRule {
    pub fn parse(text: &str) -> Result<Self, InvalidRule> {
        parse(text.trim()).map_err(|problem| InvalidRule {
            text: text.to_owned(),
            problem,
        })
    }

    pub fn with_ranges(mut self, ranges: &[IpNet]) -> Result<Self, InvalidRule> {
        for range in ranges {
            let range = bounded(*range).map_err(|problem| InvalidRule {
                text: self.text.clone(),
                problem,
            })?;
            self.text = format!(
                "{}{}{range}",
                self.text,
                if self.ranges.is_empty() { " in " } else { "," }
            );
            self.ranges.push(range);
        }
        Ok(self)
    }

    pub fn host(&self) -> &HostName {
        match &self.pattern {
            HostPattern::Exact(host) | HostPattern::Below(host) => host,
        }
    }

    /// Whether the name itself is meant, and not those below it.
    pub fn is_exact(&self) -> bool {
        matches!(self.pattern, HostPattern::Exact(_))
    }

    pub fn port(&self) -> Option<u16> {
        self.port
    }

    pub fn is_plain_tcp(&self) -> bool {
        self.carries == AllowedProtocol::AnyBytes
    }

    pub fn ranges(&self) -> &[IpNet] {
        &self.ranges
    }
}

/// `host[:port]` or `*.host[:port]`, with `tcp://` in front or `in RANGE,RANGE` behind.
fn parse(text: &str) -> Result<HostRule, RuleProblem> {
    let (target, ranges) = match text.split_once(" in ") {
        Some((target, ranges)) => (target.trim(), parse_ranges(ranges)?),
        None => (text, Vec::new()),
    };
    let (carries, target) = match target.strip_prefix("tcp://") {
        Some(target) => (AllowedProtocol::AnyBytes, target),
        None => (AllowedProtocol::TlsOrHttp, target),
    };
    if target.contains('/') {
        return Err(RuleProblem::Scheme);
    }
    let (pattern, port) = parse_target(target)?;
    if carries == AllowedProtocol::AnyBytes && port.is_none() {
        return Err(RuleProblem::TcpWithoutPort);
    }
    Ok(HostRule {
        pattern,
        port,
        carries,
        ranges,
        text: text.to_owned(),
    })
}

fn parse_target(target: &str) -> Result<(HostPattern, Option<u16>), RuleProblem> {
    if target == "*" || target.starts_with("*:") {
        return Err(RuleProblem::Everything);
    }
    let (below, name) = match target.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, target),
    };
    if name.contains('*') {
        return Err(RuleProblem::StrayWildcard);
    }
    let (host, port) = authority::split(name)?;
    let pattern = if below {
        HostPattern::Below(host)
    } else {
        HostPattern::Exact(host)
    };
    Ok((pattern, port))
}

fn parse_ranges(text: &str) -> Result<Vec<IpNet>, RuleProblem> {
    text.split(',')
        .map(|range| bounded(parse_range(range.trim())?))
        .collect()
}

fn parse_range(text: &str) -> Result<IpNet, RuleProblem> {
    let single = || text.parse::<IpAddr>().map(IpNet::from);
    text.parse()
        .or_else(|_| single())
        .map(|range: IpNet| range.trunc())
        .map_err(|_| RuleProblem::BadRange {
            text: text.to_owned(),
        })
}

/// A range so wide that it switches the address check off is a mistake, not an exception.
fn bounded(range: IpNet) -> Result<IpNet, RuleProblem> {
    let least = match range {
        IpNet::V4(_) => 8,
        IpNet::V6(_) => 7,
    };
    if range.prefix_len() < least {
        return Err(RuleProblem::WideRange { range });
    }
    Ok(range)
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_form_parses() {
        for text in [
            "pypi.org",
            "deb.debian.org:80",
            "*.githubusercontent.com",
            "*.example.com:8443",
            "tcp://github.com:22",
            "registry.lan in 10.2.0.0/16",
            "a.lan:81 in 10.0.0.1, fd00::/8",
        ] {
            assert_eq!(HostRule::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_a_person_may_mistype_is_refused_with_a_reason() {
        for text in [
            "*",
            "*:443",
            "a.*.com",
            "*a.com",
            "*.*.com",
            "https://a.com",
            "a.com/path",
            "tcp://a.com",
            "1.2.3.4",
            "[::1]:443",
            "10.0.0.0/8",
            "a.com in everywhere",
            "a.com in 0.0.0.0/0",
            "a.com in ::/0",
            "",
            "u@a.com",
            "a.com:0",
            "a com",
        ] {
            assert!(HostRule::parse(text).is_err(), "{text:?} was accepted");
        }
    }
}
