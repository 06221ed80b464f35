//! The checks every target passes, whichever protocol named it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::Proxy;
use crate::address;
use crate::ask::{GrantLifetime, HostQuestion, QuestionOutcome};
use crate::audit::{ConnectionRecord, EgressDecision, EgressEntry, EgressMethod};
use crate::conversation::{ConversationEgress, RefusedHost};
use crate::dial::dial;
use crate::refusal::ProxyRefusal;
use crate::resolve::{CheckedAddresses, LocateError, locate};
use crate::rules::{AllowedAccess, AllowedTransport, Authority, ProxyMethod, RuleVerdict};
use crate::stream::PeekedStream;
use crate::upstream::{NameCheck, UpstreamRoute, is_internal_name, pinned};

/// The text recorded in place of a rule where a person decided.
const BY_A_PERSON: &str = "allowed by a person";

/// A target the rules, or a person, have let through. Made by [`Proxy::admit`] and, for another request
/// on the same connection, [`Proxy::admit_again`].
#[derive(Clone)]
pub(super) struct AdmittedTarget {
    target: Authority,
    via: ProxyMethod,
    allowed: AllowedAccess,
    by: AdmittedBy,
}

/// Who let the target through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AdmittedBy {
    Rule,
    Person(GrantLifetime),
}

/// An admitted target whose addresses have been checked. Made by [`Proxy::find`] only.
pub(super) struct CheckedTarget {
    admitted: AdmittedTarget,
    way: CheckedWay,
}

/// The way to a checked target.
enum CheckedWay {
    Direct(CheckedAddresses),
    /// Through a company's proxy; the addresses where they were looked up here as well.
    Upstream(UpstreamRoute, Option<CheckedAddresses>),
}

/// The other end of a connection, as far as it is known.
#[derive(Clone)]
pub(super) struct ReachedPeer {
    /// The address that was dialled, or that a proxy was told to dial.
    dialled: Option<SocketAddr>,
    /// The addresses that the rule has to go on permitting.
    checked: Vec<SocketAddr>,
}

impl ReachedPeer {
    pub(super) fn direct(address: SocketAddr) -> Self {
        Self {
            dialled: Some(address),
            checked: vec![address],
        }
    }

    /// Tells whether a rule with these ranges would have let us come here.
    pub(super) fn fits(&self, ranges: &[IpNet]) -> bool {
        let permitted = |at: &SocketAddr| address::permit(at.ip(), ranges).is_ok();
        // An address that nobody here knows is in no range.
        let known = !self.checked.is_empty() || ranges.is_empty();
        known && self.checked.iter().all(permitted)
    }
}

impl AdmittedTarget {
    pub(super) fn target(&self) -> &Authority {
        &self.target
    }

    pub(super) fn via(&self) -> ProxyMethod {
        self.via
    }

    pub(super) fn by(&self) -> AdmittedBy {
        self.by
    }

    pub(super) fn transport(&self) -> AllowedTransport {
        self.allowed.transport()
    }

    pub(super) fn rule(&self) -> &str {
        self.allowed.rule()
    }
}

impl CheckedTarget {
    pub(super) fn admitted(&self) -> &AdmittedTarget {
        &self.admitted
    }

    pub(super) fn into_admitted(self) -> AdmittedTarget {
        self.admitted
    }

    /// The proxy that stands between us and the target.
    pub(super) fn upstream(&self) -> Option<&UpstreamRoute> {
        match &self.way {
            CheckedWay::Direct(_) => None,
            CheckedWay::Upstream(route, _) => Some(route),
        }
    }

    fn peer(&self) -> ReachedPeer {
        let CheckedWay::Upstream(route, Some(addresses)) = &self.way else {
            return ReachedPeer {
                dialled: None,
                checked: Vec::new(),
            };
        };
        let is_pinned = route.names() == NameCheck::Pinned;
        ReachedPeer {
            dialled: is_pinned.then(|| pinned(addresses)).flatten(),
            checked: addresses.addresses().to_vec(),
        }
    }
}

impl Proxy {
    pub(super) async fn admit(
        &self,
        conversation: &ConversationEgress,
        target: Authority,
        via: ProxyMethod,
    ) -> Result<AdmittedTarget, ProxyRefusal> {
        conversation
            // Before a person is asked: there is no use in a yes that buys nothing.
            .check_budgets()
            .map_err(|spent| ProxyRefusal::budget(&target, spent))?;
        self.check_guesses(conversation, &target)?;
        let (allowed, by) = match conversation.rules().decide(&target, via) {
            RuleVerdict::Allow(allowed) => (allowed, AdmittedBy::Rule),
            RuleVerdict::Refuse(refused) => {
                return Err(ProxyRefusal::by_rule(&target, via, &refused));
            }
            RuleVerdict::Unknown(refused) => {
                let Some(asker) = &self.0.asker else {
                    return Err(ProxyRefusal::by_rule(&target, via, &refused));
                };
                let question = question(conversation, &target);
                let asked = conversation
                    .questions
                    .ask(asker, question, self.0.limits.ask);
                match asked.await {
                    QuestionOutcome::Granted(lifetime) => {
                        let allowed = AllowedAccess::granted(via, BY_A_PERSON.to_owned());
                        (allowed, AdmittedBy::Person(lifetime))
                    }
                    QuestionOutcome::Denied => return Err(ProxyRefusal::by_person(&target, true)),
                    QuestionOutcome::NoAnswer => {
                        return Err(ProxyRefusal::by_person(&target, false));
                    }
                    QuestionOutcome::TooManyQuestions => {
                        return Err(ProxyRefusal::too_many_questions(&target));
                    }
                }
            }
        };
        Ok(AdmittedTarget {
            target,
            via,
            allowed,
            by,
        })
    }

    /// A target that was admitted before, judged anew by the rules of now. What a person allowed stays
    /// allowed for as long as they meant it to, unless a rule has come to forbid it.
    pub(super) async fn admit_again(
        &self,
        conversation: &ConversationEgress,
        before: &AdmittedTarget,
    ) -> Result<AdmittedTarget, ProxyRefusal> {
        let target = &before.target;
        conversation
            .check_budgets()
            .map_err(|spent| ProxyRefusal::budget(target, spent))?;
        self.check_guesses(conversation, target)?;
        // By the rules of this moment: those of the tunnel's beginning may have been taken back.
        match conversation.rules().decide(target, before.via) {
            RuleVerdict::Allow(allowed) => Ok(AdmittedTarget {
                allowed,
                by: AdmittedBy::Rule,
                ..before.clone()
            }),
            RuleVerdict::Unknown(_) if self.grant_holds(conversation, before).await => {
                Ok(before.clone())
            }
            RuleVerdict::Refuse(refused) | RuleVerdict::Unknown(refused) => {
                Err(ProxyRefusal::by_rule(target, before.via, &refused))
            }
        }
    }

    /// Refuses a host at whose credential the conversation guessed, and sees to it that a person learns of
    /// it.
    pub(super) fn check_guesses(
        &self,
        conversation: &ConversationEgress,
        target: &Authority,
    ) -> Result<(), ProxyRefusal> {
        if !conversation.has_lost(target) {
            return Ok(());
        }
        let lift = conversation.how_to_lift(target);
        let refusal = ProxyRefusal::credential_guessed(target, lift);
        if conversation.write_loss(target) {
            let remedy = refusal.remedy.as_ref();
            let remedy = remedy.map_or_else(String::new, |remedy| remedy.words(self.0.allowing));
            tracing::error!(
                conversation = %conversation.key(),
                host = %target,
                remedy,
                "a sandbox guessed at a credential and has lost it"
            );
            conversation.note_refused(RefusedHost {
                target: format!("{target} (its sandbox guessed at the credential)"),
                remedy,
            });
            self.note(conversation, EgressMethod::Credential, &refusal);
        }
        Err(refusal)
    }

    /// Tells whether a person let this through and their grant still holds.
    pub(super) async fn grant_holds(
        &self,
        conversation: &ConversationEgress,
        admitted: &AdmittedTarget,
    ) -> bool {
        match (admitted.by, &self.0.asker) {
            (AdmittedBy::Person(GrantLifetime::ForThisConnection), _) => true,
            (AdmittedBy::Person(GrantLifetime::WhileItHolds), Some(asker)) => {
                let question = question(conversation, &admitted.target);
                asker.still_holds(question).await
            }
            (AdmittedBy::Rule, _) | (AdmittedBy::Person(GrantLifetime::WhileItHolds), None) => {
                false
            }
        }
    }

    /// Resolves the target: the one resolution of this connection.
    pub(super) async fn find(
        &self,
        conversation: &ConversationEgress,
        admitted: AdmittedTarget,
    ) -> Result<CheckedTarget, ProxyRefusal> {
        let AdmittedTarget {
            target, allowed, ..
        } = &admitted;
        let upstream = self.0.upstream.as_ref();
        // Before the name is looked up: by its address the proxy could be a host like any other.
        if upstream.is_some_and(|route| route.is_itself(target)) {
            return Err(ProxyRefusal::upstream_itself(target));
        }
        let upstream = upstream.filter(|route| route.serves(target)).cloned();
        let by_proxy = upstream
            .as_ref()
            .is_some_and(|route| route.names() == NameCheck::ByProxy);
        if by_proxy {
            check_name_alone(target, allowed)?;
        }
        let addresses = if by_proxy {
            None
        } else {
            let (turns, within) = (conversation.lookup_turns(), self.0.limits.resolve);
            let looked = locate(&self.0.resolver, turns, target, allowed.ranges(), within);
            Some(looked.await.map_err(|error| {
                let refusal = ProxyRefusal::not_located(target, allowed.rule(), &error);
                match (&upstream, &error) {
                    (None, _) | (Some(_), LocateError::Address(_)) => refusal,
                    (Some(_), _) => refusal.unchecked_by_us(),
                }
            })?)
        };
        let way = match (upstream, addresses) {
            (Some(route), addresses) => CheckedWay::Upstream(route, addresses),
            (None, Some(addresses)) => CheckedWay::Direct(addresses),
            (None, None) => unreachable!("only a proxy looks a name up for us"),
        };
        Ok(CheckedTarget { admitted, way })
    }

    pub(super) async fn reach(
        &self,
        found: &CheckedTarget,
    ) -> Result<(PeekedStream, ReachedPeer), ProxyRefusal> {
        let (target, limits) = (&found.admitted.target, &self.0.limits);
        match &found.way {
            CheckedWay::Direct(addresses) => {
                let (stream, address) = dial(addresses, limits.dial)
                    .await
                    .map_err(|error| ProxyRefusal::not_dialled(target, &error))?;
                Ok((PeekedStream::new(stream), ReachedPeer::direct(address)))
            }
            CheckedWay::Upstream(route, _) => {
                let peer = found.peer();
                let stream = route
                    .tunnel(target, peer.dialled, limits)
                    .await
                    .map_err(|error| ProxyRefusal::by_upstream(target, &error))?;
                Ok((stream, peer))
            }
        }
    }

    /// A connection to the proxy that stands between, for a request that it passes on by itself.
    pub(super) async fn reach_forwarder(
        &self,
        found: &CheckedTarget,
        route: &UpstreamRoute,
    ) -> Result<(PeekedStream, ReachedPeer), ProxyRefusal> {
        let stream = route
            .dial(self.0.limits.dial)
            .await
            .map_err(|error| ProxyRefusal::by_upstream(&found.admitted.target, &error))?;
        let mut peer = found.peer();
        // It is told the name: a request for an address would ask for another host.
        peer.dialled = None;
        Ok((stream, peer))
    }

    pub(super) fn open_record(
        &self,
        conversation: &ConversationEgress,
        admitted: &AdmittedTarget,
        peer: &ReachedPeer,
        how: EgressMethod,
    ) -> ConnectionRecord {
        let entry = EgressEntry {
            conversation: conversation.key().clone(),
            host: admitted.target.host.to_string(),
            port: admitted.target.port,
            address: peer.dialled,
            how,
            rule: admitted.rule().to_owned(),
            verdict: EgressDecision::Opened,
            bytes_up: 0,
            bytes_down: 0,
            duration: Duration::ZERO,
        };
        ConnectionRecord::open(
            Arc::clone(&self.0.recorder),
            entry,
            (Arc::clone(conversation.account()), conversation.outgoing()),
            conversation.agent_traffic_to(&admitted.target),
        )
    }
}

/// All that can be said of a target whose name only the proxy can look up.
fn check_name_alone(target: &Authority, allowed: &AllowedAccess) -> Result<(), ProxyRefusal> {
    if is_internal_name(&target.host) {
        return Err(ProxyRefusal::internal_name(target));
    }
    if !allowed.ranges().is_empty() {
        return Err(ProxyRefusal::unknown_address(target, allowed.rule()));
    }
    Ok(())
}

fn question(conversation: &ConversationEgress, target: &Authority) -> HostQuestion {
    HostQuestion {
        conversation: conversation.key().clone(),
        target: target.clone(),
    }
}

#[cfg(test)]
mod tests {
    use hermetic_types::ConversationKey;

    use super::*;
    use crate::audit::LogRecorder;
    use crate::limits::EgressLimits;
    use crate::resolve::SystemResolver;
    use crate::rules::{CompiledRules, RulesText};

    #[tokio::test]
    async fn a_persons_yes_holds_on_its_connection_until_a_rule_forbids_it() {
        let limits = EgressLimits::default();
        let proxy = Proxy::new(
            limits.clone(),
            Arc::new(SystemResolver::default()),
            Arc::new(LogRecorder),
        );
        let conversation = ConversationEgress::new(
            ConversationKey::new("test"),
            CompiledRules::default(),
            Vec::new(),
            &limits,
        );
        let before = |by| AdmittedTarget {
            target: Authority::parse("new.test:443").unwrap(),
            via: ProxyMethod::Tunnel,
            allowed: AllowedAccess::granted(ProxyMethod::Tunnel, BY_A_PERSON.to_owned()),
            by,
        };
        let once = before(AdmittedBy::Person(GrantLifetime::ForThisConnection));
        assert!(proxy.admit_again(&conversation, &once).await.is_ok());
        let by_rule = proxy
            .admit_again(&conversation, &before(AdmittedBy::Rule))
            .await;
        assert!(by_rule.is_err(), "the rule is gone");

        let denied = RulesText {
            deny: vec!["new.test".into()],
            ..RulesText::default()
        };
        conversation.set_rules(CompiledRules::compile(&denied).unwrap());
        assert!(proxy.admit_again(&conversation, &once).await.is_err());
    }
}
