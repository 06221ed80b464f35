//! May this host be reached? Pure decisions: no clock, no resolver, no socket.
//!
//! Deny beats allow, an exact name or a `*.suffix` at a label boundary, port 443 unless a rule
//! names another. Every answer names the rule it came from.

mod authority;
mod host;
mod presets;
mod rule;
mod text;
mod verdict;

use std::collections::HashMap;
use std::sync::Arc;

use ipnet::IpNet;

pub use authority::{Authority, InvalidAuthority};
pub use host::{Host, InvalidHost};
pub use presets::{Preset, UnknownPreset};
pub use rule::{DEFAULT_PORT, InvalidRule, Rule, RuleProblem};
pub use text::{InvalidRules, Mode, RuleText, RulesText};
pub use verdict::{Allowed, Ground, Refused, Transport, Verdict, Via};

use rule::{Carries, Pattern};

/// A compiled set of rules, looked up by name and by each of its parents.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    mode: Mode,
    allow: Table,
    deny: Table,
}

#[derive(Clone, Debug, Default)]
struct Table {
    exact: HashMap<Host, Vec<Arc<Listed>>>,
    below: HashMap<Host, Vec<Arc<Listed>>>,
}

/// A rule and where it was written.
#[derive(Debug)]
struct Listed {
    rule: Rule,
    preset: Option<&'static str>,
}

impl Rules {
    pub fn compile(text: &RulesText) -> Result<Self, InvalidRules> {
        text.compile()
    }

    /// Nothing may be reached.
    pub fn closed() -> Self {
        Self {
            mode: Mode::Closed,
            ..Self::default()
        }
    }

    /// Every rule that allows something, as it was written, in the order of the alphabet.
    pub fn allowed_rules(&self) -> Vec<String> {
        if self.mode == Mode::Closed {
            return Vec::new();
        }
        let tables = self.allow.exact.values().chain(self.allow.below.values());
        let mut rules: Vec<_> = tables
            .flatten()
            .map(|listed| listed.rule.to_string())
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub fn decide(&self, target: &Authority, via: Via) -> Verdict {
        if self.mode == Mode::Closed {
            return Verdict::Refuse(Refused::new(Ground::Closed));
        }
        if let Some(listed) = self
            .deny
            .matching(&target.host)
            .find(|l| l.denies(target.port))
        {
            return Verdict::Refuse(Refused::new(Ground::Denied {
                rule: listed.describe(),
            }));
        }
        if via == Via::PlainHttp && target.port == DEFAULT_PORT {
            return Verdict::Refuse(Refused::new(Ground::TlsOnly));
        }
        if let Some(allowed) = self.allowed(target, via) {
            return Verdict::Allow(allowed);
        }
        self.unlisted(target, via)
    }

    fn allowed(&self, target: &Authority, via: Via) -> Option<Allowed> {
        let mut found: Option<Allowed> = None;
        for listed in self
            .allow
            .matching(&target.host)
            .filter(|l| l.allows(target.port, via))
        {
            let transport = listed.transport(via);
            let allowed = found.get_or_insert_with(|| Allowed::new(transport, listed.describe()));
            allowed.add(transport, &listed.rule.ranges);
        }
        found
    }

    fn unlisted(&self, target: &Authority, via: Via) -> Verdict {
        let usual = match via {
            Via::Tunnel => DEFAULT_PORT,
            Via::PlainHttp => 80,
        };
        if self.mode == Mode::Open && target.port == usual {
            return Verdict::Allow(Allowed::new(via.into(), "mode: open".to_owned()));
        }
        let listed: Vec<String> = self
            .allow
            .matching(&target.host)
            .map(|listed| listed.describe())
            .collect();
        let ground = if listed.is_empty() && self.mode != Mode::Open {
            Ground::NotListed
        } else {
            Ground::PortNotListed { rules: listed }
        };
        Verdict::Unknown(Refused::new(ground))
    }

    fn insert(&mut self, list: List, rule: Rule, preset: Option<&'static str>) {
        let table = match list {
            List::Allow => &mut self.allow,
            List::Deny => &mut self.deny,
        };
        let map = match rule.pattern {
            Pattern::Exact(_) => &mut table.exact,
            Pattern::Below(_) => &mut table.below,
        };
        map.entry(rule.host().clone())
            .or_default()
            .push(Arc::new(Listed { rule, preset }));
    }
}

#[derive(Clone, Copy)]
enum List {
    Allow,
    Deny,
}

impl Table {
    fn matching(&self, host: &Host) -> impl Iterator<Item = &Listed> {
        let exact = self.exact.get(host.as_str());
        let below = host.parents().filter_map(|parent| self.below.get(parent));
        exact.into_iter().chain(below).flatten().map(AsRef::as_ref)
    }
}

impl Listed {
    fn denies(&self, port: u16) -> bool {
        self.rule.port.is_none_or(|denied| denied == port)
    }

    fn allows(&self, port: u16, via: Via) -> bool {
        let carried = via == Via::Tunnel || self.rule.carries == Carries::TlsOrHttp;
        carried && self.rule.port.unwrap_or(DEFAULT_PORT) == port
    }

    fn transport(&self, via: Via) -> Transport {
        match self.rule.carries {
            Carries::AnyBytes => Transport::Tcp,
            Carries::TlsOrHttp => via.into(),
        }
    }

    fn describe(&self) -> String {
        match self.preset {
            Some(preset) => format!("{} (preset {preset})", self.rule),
            None => self.rule.to_string(),
        }
    }
}

impl Allowed {
    fn new(transport: Transport, rule: String) -> Self {
        Self {
            transport,
            rule,
            ranges: Vec::new(),
        }
    }

    /// A person's answer counts as a rule for that host and port, without any range.
    pub(crate) fn granted(via: Via, rule: String) -> Self {
        Self::new(via.into(), rule)
    }

    fn add(&mut self, transport: Transport, ranges: &[IpNet]) {
        if transport == Transport::Tcp {
            self.transport = Transport::Tcp;
        }
        self.ranges.extend_from_slice(ranges);
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
