//! The checks every target passes, whichever protocol named it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Proxy;
use crate::ask::{GrantLifetime, HostQuestion, QuestionOutcome};
use crate::audit::{ConnectionRecord, EgressDecision, EgressEntry, EgressMethod};
use crate::conversation::ConversationEgress;
use crate::dial::dial;
use crate::refusal::ProxyRefusal;
use crate::resolve::{CheckedAddresses, locate};
use crate::rules::{AllowedAccess, AllowedTransport, Authority, ProxyMethod, RuleVerdict};
use crate::stream::PeekedStream;

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
    located: CheckedAddresses,
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
}

impl Proxy {
    pub(super) async fn admit(
        &self,
        conversation: &ConversationEgress,
        target: Authority,
        via: ProxyMethod,
    ) -> Result<AdmittedTarget, ProxyRefusal> {
        conversation
            .account()
            .check()
            .map_err(|spent| ProxyRefusal::budget(&target, spent))?;
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
            .account()
            .check()
            .map_err(|spent| ProxyRefusal::budget(target, spent))?;
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
        let (turns, within) = (&conversation.lookups, self.0.limits.resolve);
        let located = locate(&self.0.resolver, turns, target, allowed.ranges(), within)
            .await
            .map_err(|error| ProxyRefusal::not_located(target, allowed.rule(), &error))?;
        Ok(CheckedTarget { admitted, located })
    }

    pub(super) async fn reach(
        &self,
        found: &CheckedTarget,
    ) -> Result<(PeekedStream, SocketAddr), ProxyRefusal> {
        let (stream, address) = dial(&found.located, self.0.limits.dial)
            .await
            .map_err(|error| ProxyRefusal::not_dialled(&found.admitted.target, &error))?;
        Ok((PeekedStream::new(stream), address))
    }

    pub(super) fn open_record(
        &self,
        conversation: &ConversationEgress,
        admitted: &AdmittedTarget,
        address: SocketAddr,
        how: EgressMethod,
    ) -> ConnectionRecord {
        let entry = EgressEntry {
            conversation: conversation.key().clone(),
            host: admitted.target.host.to_string(),
            port: admitted.target.port,
            address: Some(address),
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
            Arc::clone(conversation.account()),
        )
    }
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
