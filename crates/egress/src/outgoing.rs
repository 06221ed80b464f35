//! A bound on the bytes that leave, beyond one conversation's life: of a day, a person, everybody.

use std::fmt;

use hermetic_types::ConversationKey;

use crate::account::BudgetSpent;

/// Counts what leaves and says when it is enough.
///
/// What an implementer promises: `spend` counts before the bytes leave and lets none through beyond a bound,
/// however many ask at once; neither blocks.
pub trait OutgoingBudget: Send + Sync + fmt::Debug {
    /// Counts bytes that are about to leave.
    fn spend(&self, conversation: &ConversationKey, bytes: u64) -> Result<(), BudgetSpent>;

    /// Whether a connection may be opened at all.
    fn check(&self, conversation: &ConversationKey) -> Result<(), BudgetSpent>;
}
