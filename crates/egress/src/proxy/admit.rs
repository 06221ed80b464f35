//! The checks every target passes, whichever protocol named it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Proxy;
use crate::ask::{Asked, Question};
use crate::audit::{Decision, Entry, How, Ticket};
use crate::conversation::Conversation;
use crate::dial::dial;
use crate::refusal::Refusal;
use crate::resolve::{Located, locate};
use crate::rules::{Allowed, Authority, Transport, Verdict, Via};
use crate::stream::Wire;

/// What stands in the place of a rule where a person decided.
const BY_A_PERSON: &str = "allowed by a person";

/// A target the rules, or a person, have let through. Made by [`Proxy::admit`] and, for another request
/// on the same connection, [`Proxy::admit_again`].
#[derive(Clone)]
pub(super) struct Admitted {
    target: Authority,
    allowed: Allowed,
}

/// An admitted target whose addresses have been checked. Made by [`Proxy::find`] only.
pub(super) struct Found {
    admitted: Admitted,
    located: Located,
}

impl Admitted {
    pub(super) fn target(&self) -> &Authority {
        &self.target
    }

    pub(super) fn transport(&self) -> Transport {
        self.allowed.transport()
    }

    pub(super) fn rule(&self) -> &str {
        self.allowed.rule()
    }
}

impl Found {
    pub(super) fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    pub(super) fn into_admitted(self) -> Admitted {
        self.admitted
    }
}

impl Proxy {
    pub(super) async fn admit(
        &self,
        conversation: &Conversation,
        target: Authority,
        via: Via,
    ) -> Result<Admitted, Refusal> {
        conversation
            .account()
            .check()
            .map_err(|spent| Refusal::budget(&target, spent))?;
        let allowed = match conversation.rules().decide(&target, via) {
            Verdict::Allow(allowed) => allowed,
            Verdict::Refuse(refused) => return Err(Refusal::by_rule(&target, via, &refused)),
            Verdict::Unknown(refused) => {
                let Some(asker) = &self.0.asker else {
                    return Err(Refusal::by_rule(&target, via, &refused));
                };
                let question = Question {
                    conversation: conversation.key().clone(),
                    target: target.clone(),
                };
                match conversation
                    .grants
                    .ask(asker, question, self.0.limits.ask)
                    .await
                {
                    Asked::Granted => Allowed::granted(via, BY_A_PERSON.to_owned()),
                    Asked::Denied => return Err(Refusal::by_person(&target, true)),
                    Asked::NoAnswer => return Err(Refusal::by_person(&target, false)),
                    Asked::TooManyQuestions => return Err(Refusal::too_many_questions(&target)),
                }
            }
        };
        Ok(Admitted { target, allowed })
    }

    /// A target that was admitted before, judged anew by the rules of now. What a person allowed for this
    /// connection stays allowed on it, unless a rule has come to forbid it.
    pub(super) fn admit_again(
        &self,
        conversation: &Conversation,
        before: &Admitted,
        via: Via,
    ) -> Result<Admitted, Refusal> {
        let target = &before.target;
        conversation
            .account()
            .check()
            .map_err(|spent| Refusal::budget(target, spent))?;
        match conversation.rules().decide(target, via) {
            Verdict::Allow(allowed) => Ok(Admitted {
                target: target.clone(),
                allowed,
            }),
            Verdict::Unknown(_) if before.allowed.rule() == BY_A_PERSON => Ok(before.clone()),
            Verdict::Refuse(refused) | Verdict::Unknown(refused) => {
                Err(Refusal::by_rule(target, via, &refused))
            }
        }
    }

    /// The one resolution of this connection.
    pub(super) async fn find(&self, admitted: Admitted) -> Result<Found, Refusal> {
        let Admitted { target, allowed } = &admitted;
        let within = self.0.limits.resolve;
        let located = locate(&*self.0.resolver, target, allowed.ranges(), within)
            .await
            .map_err(|error| Refusal::not_located(target, allowed.rule(), &error))?;
        Ok(Found { admitted, located })
    }

    pub(super) async fn reach(&self, found: &Found) -> Result<(Wire, SocketAddr), Refusal> {
        let (stream, address) = dial(&found.located, self.0.limits.dial)
            .await
            .map_err(|error| Refusal::not_dialled(&found.admitted.target, &error))?;
        Ok((Wire::new(stream), address))
    }

    pub(super) fn ticket(
        &self,
        conversation: &Conversation,
        admitted: &Admitted,
        address: SocketAddr,
        how: How,
    ) -> Ticket {
        let entry = Entry {
            conversation: conversation.key().clone(),
            host: admitted.target.host.to_string(),
            port: admitted.target.port,
            address: Some(address),
            how,
            rule: admitted.rule().to_owned(),
            verdict: Decision::Opened,
            bytes_up: 0,
            bytes_down: 0,
            duration: Duration::ZERO,
        };
        Ticket::open(
            Arc::clone(&self.0.record),
            entry,
            Arc::clone(conversation.account()),
        )
    }
}

#[cfg(test)]
mod tests {
    use hermetic_types::ConversationKey;

    use super::*;
    use crate::audit::LogRecord;
    use crate::limits::Limits;
    use crate::resolve::SystemResolver;
    use crate::rules::{Rules, RulesText};

    #[test]
    fn a_persons_yes_holds_on_its_connection_until_a_rule_forbids_it() {
        let limits = Limits::default();
        let proxy = Proxy::new(
            limits.clone(),
            Arc::new(SystemResolver::default()),
            Arc::new(LogRecord),
        );
        let conversation = Conversation::new(
            ConversationKey::new("test"),
            Rules::default(),
            Vec::new(),
            &limits,
        );
        let before = |rule: &str| Admitted {
            target: Authority::parse("new.test:443").unwrap(),
            allowed: Allowed::granted(Via::Tunnel, rule.to_owned()),
        };
        let again = |rule: &str| proxy.admit_again(&conversation, &before(rule), Via::Tunnel);
        assert!(again(BY_A_PERSON).is_ok());
        assert!(again("new.test").is_err(), "the rule is gone");

        let denied = RulesText {
            deny: vec!["new.test".into()],
            ..RulesText::default()
        };
        conversation.set_rules(Rules::compile(&denied).unwrap());
        assert!(again(BY_A_PERSON).is_err());
    }
}
