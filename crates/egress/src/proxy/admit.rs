//! The checks every target passes, whichever protocol named it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Proxy;
use crate::ask::{Asked, Question, Word};
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
    via: Via,
    allowed: Allowed,
    by: By,
}

/// Who let it through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Rule,
    Person(Word),
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

    pub(super) fn via(&self) -> Via {
        self.via
    }

    pub(super) fn by(&self) -> By {
        self.by
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
        let (allowed, by) = match conversation.rules().decide(&target, via) {
            Verdict::Allow(allowed) => (allowed, By::Rule),
            Verdict::Refuse(refused) => return Err(Refusal::by_rule(&target, via, &refused)),
            Verdict::Unknown(refused) => {
                let Some(asker) = &self.0.asker else {
                    return Err(Refusal::by_rule(&target, via, &refused));
                };
                let question = question(conversation, &target);
                let asked = conversation
                    .questions
                    .ask(asker, question, self.0.limits.ask);
                match asked.await {
                    Asked::Granted(word) => {
                        let allowed = Allowed::granted(via, BY_A_PERSON.to_owned());
                        (allowed, By::Person(word))
                    }
                    Asked::Denied => return Err(Refusal::by_person(&target, true)),
                    Asked::NoAnswer => return Err(Refusal::by_person(&target, false)),
                    Asked::TooManyQuestions => return Err(Refusal::too_many_questions(&target)),
                }
            }
        };
        Ok(Admitted {
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
        conversation: &Conversation,
        before: &Admitted,
    ) -> Result<Admitted, Refusal> {
        let target = &before.target;
        conversation
            .account()
            .check()
            .map_err(|spent| Refusal::budget(target, spent))?;
        match conversation.rules().decide(target, before.via) {
            Verdict::Allow(allowed) => Ok(Admitted {
                allowed,
                by: By::Rule,
                ..before.clone()
            }),
            Verdict::Unknown(_) if self.has_their_word(conversation, before).await => {
                Ok(before.clone())
            }
            Verdict::Refuse(refused) | Verdict::Unknown(refused) => {
                Err(Refusal::by_rule(target, before.via, &refused))
            }
        }
    }

    /// Whether a person let this through and what they said still counts.
    pub(super) async fn has_their_word(
        &self,
        conversation: &Conversation,
        admitted: &Admitted,
    ) -> bool {
        match (admitted.by, &self.0.asker) {
            (By::Person(Word::ForThisConnection), _) => true,
            (By::Person(Word::WhileItHolds), Some(asker)) => {
                let question = question(conversation, &admitted.target);
                asker.still_holds(question).await
            }
            (By::Rule, _) | (By::Person(Word::WhileItHolds), None) => false,
        }
    }

    /// The one resolution of this connection.
    pub(super) async fn find(
        &self,
        conversation: &Conversation,
        admitted: Admitted,
    ) -> Result<Found, Refusal> {
        let Admitted {
            target, allowed, ..
        } = &admitted;
        let (turns, within) = (&conversation.lookups, self.0.limits.resolve);
        let located = locate(&self.0.resolver, turns, target, allowed.ranges(), within)
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

fn question(conversation: &Conversation, target: &Authority) -> Question {
    Question {
        conversation: conversation.key().clone(),
        target: target.clone(),
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

    #[tokio::test]
    async fn a_persons_yes_holds_on_its_connection_until_a_rule_forbids_it() {
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
        let before = |by| Admitted {
            target: Authority::parse("new.test:443").unwrap(),
            via: Via::Tunnel,
            allowed: Allowed::granted(Via::Tunnel, BY_A_PERSON.to_owned()),
            by,
        };
        let once = before(By::Person(Word::ForThisConnection));
        assert!(proxy.admit_again(&conversation, &once).await.is_ok());
        let by_rule = proxy.admit_again(&conversation, &before(By::Rule)).await;
        assert!(by_rule.is_err(), "the rule is gone");

        let denied = RulesText {
            deny: vec!["new.test".into()],
            ..RulesText::default()
        };
        conversation.set_rules(Rules::compile(&denied).unwrap());
        assert!(proxy.admit_again(&conversation, &once).await.is_err());
    }
}
