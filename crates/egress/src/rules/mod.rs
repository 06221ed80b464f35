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
pub use host::{HostName, InvalidHost};
pub use presets::{RulePreset, UnknownPreset};
pub use rule::{DEFAULT_PORT, HostRule, InvalidRule, RuleProblem};
pub use text::{InvalidRules, RuleMode, RuleText, RulesText};
pub use verdict::{
    AllowedAccess, AllowedTransport, ProxyMethod, RefusalGround, RefusedAccess, RuleVerdict,
};

use rule::{AllowedProtocol, HostPattern};

/// A compiled set of rules, looked up by name and by each of its parents.
#[derive(Clone, Debug, Default)]
pub struct CompiledRules {
    mode: RuleMode,
    allow: RuleTable,
    deny: RuleTable,
}

/// The rules of one list, by the name they speak of.
#[derive(Clone, Debug, Default)]
struct RuleTable {
    exact: HashMap<HostName, Vec<Arc<ListedRule>>>,
    below: HashMap<HostName, Vec<Arc<ListedRule>>>,
}

/// A rule and where it was written.
#[derive(Debug)]
struct ListedRule {
    rule: HostRule,
    preset: Option<&'static str>,
}

impl CompiledRules {
    pub fn compile(text: &RulesText) -> Result<Self, InvalidRules> {
        text.compile()
    }

    /// Nothing may be reached.
    pub fn closed() -> Self {
        Self {
            mode: RuleMode::Closed,
            ..Self::default()
        }
    }

    /// Every rule that allows something, as it was written, in the order of the alphabet.
    pub fn allowed_rules(&self) -> Vec<String> {
        if self.mode == RuleMode::Closed {
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

    pub fn mode(&self) -> RuleMode {
        self.mode
    }

    pub fn decide(&self, target: &Authority, via: ProxyMethod) -> RuleVerdict {
        if self.mode == RuleMode::Closed {
            return RuleVerdict::Refuse(RefusedAccess::new(RefusalGround::Closed));
        }
        if let Some(listed) = self
            .deny
            .matching(&target.host)
            .find(|l| l.denies(target.port))
        {
            return RuleVerdict::Refuse(RefusedAccess::new(RefusalGround::Denied {
                rule: listed.describe(),
            }));
        }
        // Before the rules that allow: none of them makes plain HTTP to the port of TLS right.
        if via == ProxyMethod::PlainHttp && target.port == DEFAULT_PORT {
            return RuleVerdict::Refuse(RefusedAccess::new(RefusalGround::TlsOnly));
        }
        if let Some(allowed) = self.allowed(target, via) {
            return RuleVerdict::Allow(allowed);
        }
        self.unlisted(target, via)
    }

    fn allowed(&self, target: &Authority, via: ProxyMethod) -> Option<AllowedAccess> {
        let mut found: Option<AllowedAccess> = None;
        for listed in self
            .allow
            .matching(&target.host)
            .filter(|l| l.allows(target.port, via))
        {
            let transport = listed.transport(via);
            let allowed =
                found.get_or_insert_with(|| AllowedAccess::new(transport, listed.describe()));
            allowed.add(transport, &listed.rule.ranges);
        }
        found
    }

    fn unlisted(&self, target: &Authority, via: ProxyMethod) -> RuleVerdict {
        let usual = match via {
            ProxyMethod::Tunnel => DEFAULT_PORT,
            ProxyMethod::PlainHttp => 80,
        };
        if self.mode == RuleMode::Open && target.port == usual {
            return RuleVerdict::Allow(AllowedAccess::new(via.into(), "mode: open".to_owned()));
        }
        let listed: Vec<String> = self
            .allow
            .matching(&target.host)
            .map(|listed| listed.describe())
            .collect();
        let ground = if listed.is_empty() && self.mode != RuleMode::Open {
            RefusalGround::NotListed
        } else {
            RefusalGround::PortNotListed { rules: listed }
        };
        RuleVerdict::Unknown(RefusedAccess::new(ground))
    }

    fn insert(&mut self, list: RuleTableKind, rule: HostRule, preset: Option<&'static str>) {
        let table = match list {
            RuleTableKind::Allow => &mut self.allow,
            RuleTableKind::Deny => &mut self.deny,
        };
        let map = match rule.pattern {
            HostPattern::Exact(_) => &mut table.exact,
            HostPattern::Below(_) => &mut table.below,
        };
        map.entry(rule.host().clone())
            .or_default()
            .push(Arc::new(ListedRule { rule, preset }));
    }
}

/// Tells which list a rule belongs to.
#[derive(Clone, Copy)]
enum RuleTableKind {
    Allow,
    Deny,
}

impl RuleTable {
    fn matching(&self, host: &HostName) -> impl Iterator<Item = &ListedRule> {
        let exact = self.exact.get(host.as_str());
        let below = host.parents().filter_map(|parent| self.below.get(parent));
        exact.into_iter().chain(below).flatten().map(AsRef::as_ref)
    }
}

impl ListedRule {
    fn denies(&self, port: u16) -> bool {
        self.rule.port.is_none_or(|denied| denied == port)
    }

    fn allows(&self, port: u16, via: ProxyMethod) -> bool {
        let carried = via == ProxyMethod::Tunnel || self.rule.carries == AllowedProtocol::TlsOrHttp;
        carried && self.rule.port.unwrap_or(DEFAULT_PORT) == port
    }

    fn transport(&self, via: ProxyMethod) -> AllowedTransport {
        match self.rule.carries {
            AllowedProtocol::AnyBytes => AllowedTransport::Tcp,
            AllowedProtocol::TlsOrHttp => via.into(),
        }
    }

    fn describe(&self) -> String {
        match self.preset {
            Some(preset) => format!("{} (preset {preset})", self.rule),
            None => self.rule.to_string(),
        }
    }
}

impl AllowedAccess {
    fn new(transport: AllowedTransport, rule: String) -> Self {
        Self {
            transport,
            rule,
            ranges: Vec::new(),
        }
    }

    /// A person's answer counts as a rule for that host and port, without any range.
    pub(crate) fn granted(via: ProxyMethod, rule: String) -> Self {
        Self::new(via.into(), rule)
    }

    fn add(&mut self, transport: AllowedTransport, ranges: &[IpNet]) {
        if transport == AllowedTransport::Tcp {
            self.transport = AllowedTransport::Tcp;
        }
        self.ranges.extend_from_slice(ranges);
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
