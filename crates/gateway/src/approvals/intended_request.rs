//! Which question an answer without a name is for.
//!
//! An answer counts for what was shown to that person before it was written, and for nothing else: while
//! it was on its way the question may have been withdrawn and another one asked. The order is that of the
//! platform's own message numbers in the chat, not of any clock. Where it cannot be proven, or the answer
//! could be for more than one, it is for none, and the names are told.

use std::collections::HashSet;

use hermetic_redact::Redacted;
use hermetic_store::{ApprovalRequest, StoreError};
use hermetic_types::{MessageId, RequestId};

use crate::Gateway;
use crate::approvals::answers::is_theirs;
use crate::approvals::person_name;
use crate::message::AcceptedMessage;
use hermetic_approvals::RequestText;

impl Gateway {
    /// The question that was shown last in this chat before the answer was written, if it is the only
    /// one of those that waits.
    pub(crate) async fn the_one_meant(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Result<RequestId, Redacted<String>>, StoreError> {
        let approvals = &self.approvals.questions;
        // Somebody may be faster than the note of where it was shown.
        approvals.until_shown().await;
        let said = message.said();
        let by = person_name(said.platform(), &said.sender.id);
        let mut pending = approvals.pending().await?;
        pending.retain(|request| {
            is_theirs(
                request,
                said.platform(),
                &by,
                message.admitted().conversation(),
            )
        });
        if pending.is_empty() {
            return Ok(Err(Redacted::constant("Nothing waits for an answer.")));
        }
        let place = serde_json::to_string(&said.place).unwrap_or_default();
        let account = said.account.to_string();
        let shown = approvals.rows().shown_in(&account, &place).await?;
        let chat = self.outbox.chat(&said.account);
        let ordered = chat.is_some_and(|chat| chat.capabilities().ordered_messages);
        let meant = ordered.then(|| meant(&said.message, &shown, &pending));
        Ok(meant.flatten().ok_or_else(|| {
            let lines: Vec<_> = pending.iter().map(|one| RequestText(one).line()).collect();
            self.redactor.redact(format!(
                "It cannot be told which question this answers, so nothing was allowed or refused. Name \
                 one, as in /approve {}:\n{}",
                pending[0].id,
                lines.join("\n")
            ))
        }))
    }
}

/// Of messages whose ids are numbers that grow within their chat.
fn meant(
    answer: &MessageId,
    shown: &[(RequestId, String)],
    pending: &[ApprovalRequest],
) -> Option<RequestId> {
    let answered_at = number(answer.as_str())?;
    let waits = |id: &RequestId| pending.iter().any(|request| request.id == *id);
    if has_doubt(answered_at, shown, waits) {
        return None;
    }
    let before: Vec<_> = shown
        .iter()
        .filter_map(|(id, message)| Some((number(message)?, id)))
        .filter(|(shown_at, _)| *shown_at < answered_at)
        .collect();
    let (_, latest) = before.iter().max_by_key(|(shown_at, _)| *shown_at)?;
    let waiting: HashSet<_> = before.iter().filter(|(_, id)| waits(id)).collect();
    let names: HashSet<_> = waiting.iter().map(|(_, id)| *id).collect();
    // If the latest does not wait any more, the answer was probably for that one.
    (names.len() == 1 && waits(latest)).then(|| (*latest).clone())
}

/// Whether a question may have been read of which nobody knows where it stands: it was sent, and the
/// platform did not say what became of it. `shown` has the latest first.
fn has_doubt(
    answered_at: i64,
    shown: &[(RequestId, String)],
    waits: impl Fn(&RequestId) -> bool,
) -> bool {
    let unnumbered = |message: &str| number(message).is_none();
    let of_one_that_waits = shown
        .iter()
        .any(|(id, message)| unnumbered(message) && waits(id));
    let since_the_latest = shown
        .iter()
        .take_while(|(_, message)| number(message).is_none_or(|at| at >= answered_at))
        .any(|(_, message)| unnumbered(message));
    of_one_that_waits || since_the_latest
}

/// Where a message stands among those of its chat.
fn number(message: &str) -> Option<i64> {
    message.parse().ok()
}

#[cfg(test)]
mod tests {
    use hermetic_store::{ApprovalScope, RequestState, StoredSubject};
    use hermetic_types::{ConversationKey, Timestamp};

    use super::*;

    fn waiting(id: &RequestId) -> ApprovalRequest {
        ApprovalRequest {
            id: id.clone(),
            subject: StoredSubject::Command,
            conversation: ConversationKey::new("k"),
            message: None,
            what: "rm -r build".to_owned(),
            fingerprint: String::new(),
            reasons: Vec::new(),
            longest: ApprovalScope::Always,
            asker: "me".to_owned(),
            asked_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(1),
            state: RequestState::Pending,
            scope: None,
            answered_by: None,
            via: None,
            reason: None,
            answered_at: None,
            spent: false,
        }
    }

    fn at(number: i64) -> MessageId {
        MessageId::new(number.to_string()).unwrap()
    }

    /// The answer's number, questions and where they were shown, and which of them wait.
    fn found(answer: i64, shown: &[(&RequestId, i64)], waits: &[&RequestId]) -> Option<RequestId> {
        let shown: Vec<_> = shown
            .iter()
            .map(|(id, message)| ((*id).clone(), message.to_string()))
            .collect();
        let pending: Vec<_> = waits.iter().map(|id| waiting(id)).collect();
        meant(&at(answer), &shown, &pending)
    }

    #[test]
    fn an_answer_is_for_what_was_shown_before_it_was_written() {
        let [a, b] = [(); 2].map(|()| RequestId::random());
        assert_eq!(found(12, &[(&a, 10)], &[&a]), Some(a.clone()));
        // A was asked at 10, withdrawn, and B asked at 15; the yes at 12 was for A.
        assert_eq!(found(12, &[(&a, 10), (&b, 15)], &[&b]), None);
        assert_eq!(found(16, &[(&a, 10), (&b, 15)], &[&b]), Some(b.clone()));
        // B came while the yes was on its way: it is still for A.
        assert_eq!(found(12, &[(&a, 10), (&b, 15)], &[&a, &b]), Some(a.clone()));
        // Numbers, not texts.
        assert_eq!(found(100, &[(&a, 99)], &[&a]), Some(a.clone()));
    }

    #[test]
    fn where_it_cannot_be_told_it_is_for_none() {
        let [a, b] = [(); 2].map(|()| RequestId::random());
        assert_eq!(
            found(12, &[(&a, 10), (&b, 11)], &[&a, &b]),
            None,
            "two wait"
        );
        assert_eq!(
            found(12, &[(&a, 10), (&b, 11)], &[&a]),
            None,
            "b was the last"
        );
        assert_eq!(found(12, &[], &[&a]), None, "not shown here");
        assert_eq!(found(10, &[(&a, 10)], &[&a]), None, "not before");
        let shown = [(a.clone(), "b7e1".to_owned())];
        let pending = [waiting(&a)];
        let unordered = meant(&at(12), &shown, &pending);
        assert_eq!(unordered, None, "names without an order");
    }

    #[test]
    fn one_of_which_it_is_not_known_where_it_stands_is_doubt() {
        let (a, b) = (RequestId::random(), RequestId::random());
        let pending = [waiting(&a), waiting(&b)];
        let unknown = [(b.clone(), String::new()), (a.clone(), "10".to_owned())];
        let meant_by = |shown: &[(RequestId, String)], pending: &[ApprovalRequest]| {
            meant(&at(12), shown, pending)
        };
        assert_eq!(meant_by(&unknown, &pending), None);
        // It was withdrawn meanwhile, and is still what the person read last.
        assert_eq!(meant_by(&unknown, &pending[..1]), None);
        // It waits, wherever it stands.
        let older = [(a.clone(), "10".to_owned()), (b.clone(), String::new())];
        assert_eq!(meant_by(&older, &pending), None);
        // One of long ago that does not wait any more is none.
        assert_eq!(meant_by(&older, &pending[..1]), Some(a));
    }

    #[test]
    fn one_that_was_shown_twice_is_one() {
        let a = RequestId::random();
        assert_eq!(found(12, &[(&a, 9), (&a, 10)], &[&a]), Some(a.clone()));
    }
}
