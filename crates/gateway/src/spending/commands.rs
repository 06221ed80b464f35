//! `/usage` and `/lift`.

use std::fmt::Write as _;

use hermetic_audit::{AuditEvent, RuleChange};
use hermetic_redact::Redacted;
use hermetic_session::{OutgoingLift, OutgoingScope, OutgoingSum};
use hermetic_store::{SpendingDay, SpendingScope, StoreError};

use super::book::LiftOutcome;
use super::limits::{DayLimits, money};
use super::meter::lift_command;
use super::{SpendingBook, TurnMeter};
use crate::Gateway;
use crate::approvals::person_name;
use crate::message::AcceptedMessage;

const HOW_TO_LIFT: &str = "Write /lift person <name>, /lift conversation <name> or /lift all, as it was said where the \
     budget was reached.";

impl Gateway {
    /// The meter of a message's turn.
    pub(crate) fn meter(&self, message: &AcceptedMessage) -> TurnMeter<'_> {
        let conversation = message.conversation().to_string();
        TurnMeter::new(&self.spending, person(message), conversation)
            .counting_in(&self.metrics)
            .traced_in(&self.traces, message.row())
    }

    /// What was spent today by whoever asks and in this conversation.
    pub(crate) async fn usage(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Redacted<String>, StoreError> {
        let mut text = match self.agent_name(message).await? {
            Some(agent) => format!("agent: {agent}\n"),
            None => {
                let agent = self.agent_of(message.conversation()).await?;
                format!("model: {}\n", agent.model_name())
            }
        };
        let yours = SpendingScope::Person(person(message));
        let here = SpendingScope::Conversation(message.conversation().to_string());
        for (whose, scope) in [("you, today", yours), ("this conversation, today", here)] {
            let line = self.usage_line(&scope).await?;
            let _ = writeln!(text, "{whose}: {line}");
        }
        if message.may_answer() {
            let line = self.usage_line(&SpendingScope::All).await?;
            let _ = writeln!(text, "everybody, today: {line}");
        }
        Ok(self.redactor.redact(text.trim_end()))
    }

    /// What was spent under a name, and what left, with the command that lifts its bound: a program that is refused
    /// does not know the name.
    async fn usage_line(&self, scope: &SpendingScope) -> Result<String, StoreError> {
        let mut line = self.spending.line(scope).await?;
        let outgoing = self.outgoing.as_ref().zip(outgoing_scope(scope));
        if let Some(sum) = outgoing.and_then(|(day, scope)| day.sum(&scope)) {
            let OutgoingSum { bytes, limit } = sum;
            let command = lift_command(scope);
            let _ = write!(
                line,
                ", {bytes} of {limit} bytes left the sandbox ({command} lifts that once for today)"
            );
        }
        Ok(line)
    }

    /// Lifts a budget once for today. For who may approve.
    pub(crate) async fn lift(
        &self,
        message: &AcceptedMessage,
        words: &str,
    ) -> Result<Redacted<String>, StoreError> {
        if !message.may_answer() {
            return Ok(Redacted::constant(
                "Only somebody who may approve can lift a budget.",
            ));
        }
        let scope = match words.split_once(char::is_whitespace) {
            None if words == "all" => SpendingScope::All,
            Some(("person", name)) => SpendingScope::Person(name.trim().to_owned()),
            Some(("conversation", name)) => SpendingScope::Conversation(name.trim().to_owned()),
            _ => return Ok(Redacted::constant(HOW_TO_LIFT)),
        };
        match self.lift_all_of(&scope).await? {
            Some(LiftOutcome::Lifted) => {}
            None => return Ok(Redacted::constant("There is no such budget.")),
            Some(LiftOutcome::Already) => {
                return Ok(Redacted::constant(
                    "It was lifted today already. It begins anew at midnight.",
                ));
            }
            Some(LiftOutcome::Unknown) => {
                return Ok(Redacted::constant(
                    "Nothing was spent under that name today, so nothing is lifted. Write the name as it was said \
                     where the budget was reached.",
                ));
            }
        }
        let noted = |text: &str| self.approvals.questions.words(text);
        self.approvals.note(&AuditEvent::Rule {
            act: RuleChange::Added,
            rule: noted(&format!("lifted for today: the budget of {words}")),
            by: noted(&person(message)),
        });
        Ok(Redacted::constant(
            "Lifted: for today it is twice what it was.",
        ))
    }
}

impl Gateway {
    /// Lifts what a name may spend and what may leave under it. Nothing where neither is bounded.
    async fn lift_all_of(&self, scope: &SpendingScope) -> Result<Option<LiftOutcome>, StoreError> {
        let spent = match self.spending.limits_of(scope).is_none() {
            true => None,
            false => Some(self.spending.lift(scope).await?),
        };
        let outgoing = self.outgoing.as_ref().zip(outgoing_scope(scope));
        let outgoing = outgoing.map(|(day, scope)| day.lift(&scope));
        let outgoing = outgoing.and_then(|lifted| match lifted {
            OutgoingLift::Lifted => Some(LiftOutcome::Lifted),
            OutgoingLift::Already => Some(LiftOutcome::Already),
            OutgoingLift::Unknown => Some(LiftOutcome::Unknown),
            OutgoingLift::NotBounded => None,
        });
        Ok(match (spent, outgoing) {
            (Some(one), Some(other)) => Some(one.or(other)),
            (one, other) => one.or(other),
        })
    }
}

impl LiftOutcome {
    /// What became of two bounds of one name.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Lifted, _) | (_, Self::Lifted) => Self::Lifted,
            (Self::Already, _) | (_, Self::Already) => Self::Already,
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }
}

/// The same name for bytes. What a model sends leaves no sandbox.
fn outgoing_scope(scope: &SpendingScope) -> Option<OutgoingScope> {
    match scope {
        SpendingScope::Person(name) => Some(OutgoingScope::Person(name.clone())),
        SpendingScope::Conversation(name) => Some(OutgoingScope::Conversation(name.clone())),
        SpendingScope::All => Some(OutgoingScope::All),
        SpendingScope::Model(_) => None,
    }
}

impl SpendingBook {
    async fn line(&self, scope: &SpendingScope) -> Result<String, StoreError> {
        Ok(shown(self.day(scope).await?, self.limits_of(scope)))
    }
}

pub(super) fn person(message: &AcceptedMessage) -> String {
    let said = message.said();
    person_name(said.platform(), &said.sender.id)
}

fn shown(day: SpendingDay, limits: &DayLimits) -> String {
    let times = 1 + u64::try_from(day.lifts).unwrap_or(0);
    let of = |limit: Option<String>| limit.map_or_else(String::new, |limit| format!(" of {limit}"));
    let spent = day.spent;
    let dollars = limits.dollars.map(|limit| {
        hermetic_agent::NanoDollars::new(limit.get().saturating_mul(times)).to_string()
    });
    let tokens = limits
        .tokens
        .map(|limit| limit.saturating_mul(times).to_string());
    let seconds = limits
        .tool_seconds
        .map(|limit| limit.saturating_mul(times).to_string());
    let mut text = format!(
        "{} requests, {}{} tokens, {}{}, {}{} seconds of tools",
        spent.requests,
        spent.tokens,
        of(tokens),
        money(spent.nanodollars),
        of(dollars),
        spent.tool_ms / 1000,
        of(seconds)
    );
    if spent.unpriced > 0 {
        let _ = write!(text, " ({} tokens without a known price)", spent.unpriced);
    }
    text
}

#[cfg(test)]
mod tests {
    use hermetic_agent::NanoDollars;
    use hermetic_store::SpendingAmounts;

    use super::*;

    #[test]
    fn sums_are_shown_beside_their_bounds() {
        let day = SpendingDay {
            spent: SpendingAmounts {
                requests: 3,
                tokens: 1200,
                nanodollars: 2_500_000,
                unpriced: 200,
                tool_ms: 12_345,
            },
            lifts: 1,
        };
        let limits = DayLimits {
            dollars: NanoDollars::from_dollars(5.0),
            ..DayLimits::default()
        };
        assert_eq!(
            shown(day, &limits),
            "3 requests, 1200 tokens, $0.0025 of $10.00, 12 seconds of tools (200 tokens without a known price)"
        );
    }
}
