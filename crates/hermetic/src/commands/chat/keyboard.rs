//! Questions, on their way to whoever sits at the keyboard.

use futures::future::{BoxFuture, FutureExt, ready};
use hermetic_approvals::{ApprovalPrompt, NobodyToAsk, ONLY_ONCE};
use hermetic_store::{ApprovalRequest, ApprovalScope, GivenAnswer, StoredSubject};
use hermetic_types::RequestId;
use tokio::sync::mpsc;

/// Hands questions to the conversation, which shows them and hears the answers.
#[derive(Debug)]
pub(super) struct KeyboardPrompts(mpsc::Sender<PromptSign>);

/// Nobody is there: every question is a no.
#[derive(Debug)]
pub(super) struct NobodyThere;

#[derive(Debug)]
pub(super) enum PromptSign {
    Asked(Box<ApprovalRequest>),
    /// Answered, here or elsewhere, or not waited for any more.
    Settled(RequestId),
}

/// More than wait in one conversation at a time, twice over.
const MOST_SIGNS: usize = 64;

impl KeyboardPrompts {
    pub(super) fn new() -> (Self, mpsc::Receiver<PromptSign>) {
        let (signs, seen) = mpsc::channel(MOST_SIGNS);
        (Self(signs), seen)
    }
}

impl ApprovalPrompt for KeyboardPrompts {
    fn show<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<(), NobodyToAsk>> {
        let sent = self
            .0
            .try_send(PromptSign::Asked(Box::new(request.clone())));
        ready(sent.map_err(|_| NobodyToAsk::NobodyAtTheKeyboard)).boxed()
    }

    fn settled(&self, request: &ApprovalRequest) {
        // A conversation that has ended needs no sign.
        let _ = self.0.try_send(PromptSign::Settled(request.id.clone()));
    }
}

impl ApprovalPrompt for NobodyThere {
    fn show<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Result<(), NobodyToAsk>> {
        ready(Err(NobodyToAsk::NobodyAtTheKeyboard)).boxed()
    }

    fn settled(&self, _: &ApprovalRequest) {}
}

/// What was asked, for somebody who reads along.
pub(super) fn question(request: &ApprovalRequest) -> String {
    let mut text = String::from(match request.subject {
        StoredSubject::Command => "❓ May I run this?\n\n",
        StoredSubject::Host => "❓ May this conversation reach it?\n\n",
        StoredSubject::Agent => "❓ The agent asks whether it may\n\n",
    });
    for line in request.what.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    text.push('\n');
    for reason in &request.reasons {
        text.push_str(&format!("  - {reason}\n"));
    }
    if request.longest == ApprovalScope::Once {
        text.push_str(&format!("  - {ONLY_ONCE}\n"));
    }
    text
}

/// What can be typed.
pub(super) fn choices(request: &ApprovalRequest) -> &'static str {
    match request.subject {
        StoredSubject::Command | StoredSubject::Agent if request.longest == ApprovalScope::Once => {
            "y: once, n: no › "
        }
        StoredSubject::Command | StoredSubject::Agent => "y: once, s: this session, n: no › ",
        StoredSubject::Host => "y: once, t: ten minutes, s: this session, a: always, n: no › ",
    }
}

/// What was typed, if it is an answer; after a no, why.
pub(super) fn answer<'a>(
    line: &'a str,
    request: &ApprovalRequest,
) -> Option<(GivenAnswer, Option<&'a str>)> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let of_a_host = request.subject == StoredSubject::Host;
    let given = match word.to_lowercase().as_str() {
        "n" | "no" => {
            let reason = Some(rest.trim()).filter(|reason| !reason.is_empty());
            return Some((GivenAnswer::No, reason));
        }
        "y" | "yes" => GivenAnswer::Yes(ApprovalScope::Once),
        "s" | "session" if request.longest >= ApprovalScope::Session => {
            GivenAnswer::Yes(ApprovalScope::Session)
        }
        "t" if of_a_host => GivenAnswer::Yes(ApprovalScope::TenMinutes),
        "a" | "always" if of_a_host => GivenAnswer::Yes(ApprovalScope::Always),
        _ => return None,
    };
    // A sentence that begins with such a word is no answer.
    rest.is_empty().then_some((given, None))
}

#[cfg(test)]
mod tests {
    use hermetic_store::RequestState;
    use hermetic_types::{ConversationKey, Timestamp};

    use super::*;

    fn request(subject: StoredSubject) -> ApprovalRequest {
        ApprovalRequest {
            id: RequestId::random(),
            subject,
            conversation: ConversationKey::new("cli:x"),
            message: None,
            what: "rm -r build".to_owned(),
            fingerprint: String::new(),
            reasons: vec!["deletes a folder".to_owned()],
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

    #[test]
    fn a_word_is_an_answer_and_a_sentence_is_none() {
        let asked = request(StoredSubject::Command);
        assert_eq!(
            answer(" Y\n", &asked),
            Some((GivenAnswer::Yes(ApprovalScope::Once), None))
        );
        assert_eq!(
            answer("session", &asked),
            Some((GivenAnswer::Yes(ApprovalScope::Session), None))
        );
        assert_eq!(
            answer("n not now", &asked),
            Some((GivenAnswer::No, Some("not now")))
        );
        for text in ["", "y but only if", "maybe", "always", "t", "yes please"] {
            assert_eq!(answer(text, &asked), None, "{text:?}");
        }
        let host = request(StoredSubject::Host);
        assert_eq!(
            answer("a", &host),
            Some((GivenAnswer::Yes(ApprovalScope::Always), None))
        );
    }

    #[test]
    fn what_is_only_known_when_it_runs_is_allowed_once_or_not() {
        let asked = ApprovalRequest {
            longest: ApprovalScope::Once,
            ..request(StoredSubject::Command)
        };
        assert_eq!(answer("s", &asked), None);
        assert_eq!(
            answer("y", &asked),
            Some((GivenAnswer::Yes(ApprovalScope::Once), None))
        );
        assert!(!choices(&asked).contains("session"));
        assert!(question(&asked).contains("only known when it runs"));
    }
}
