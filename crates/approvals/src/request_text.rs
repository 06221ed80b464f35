//! A question in words, for people who have seconds to decide.

use std::fmt::Write as _;
use std::time::Duration;

use hermetic_store::{ApprovalRequest, ApprovalScope, RequestState, StoredSubject};
use hermetic_types::Timestamp;

/// RequestText of a text that is longer: its beginning and its end.
const HEAD: usize = 1600;
const TAIL: usize = 800;
const MOST_REASONS: usize = 8;

/// Why there is no yes for the session.
pub const ONLY_ONCE: &str = "what it works on is only known when it runs, and may be something else \
                             next time: a yes is for this one time";

/// A question, or what came of it, as a message.
#[derive(Clone, Debug)]
pub struct RequestText<'a>(pub &'a ApprovalRequest);

impl RequestText<'_> {
    pub fn question(&self, now: Timestamp) -> String {
        let request = self.0;
        let mut text = match request.subject {
            StoredSubject::Command => format!("❓ {}: may I run this?\n\n", request.id),
            StoredSubject::Host => {
                format!("❓ {}: may this conversation reach it?\n\n", request.id)
            }
            StoredSubject::Agent => format!("❓ {}: the agent asks whether it may\n\n", request.id),
        };
        text.push_str(&fenced(&request.what));
        text.push('\n');
        for reason in request.reasons.iter().take(MOST_REASONS) {
            let _ = writeln!(text, "- {}", cut(reason, 300, 0));
        }
        let more = request.reasons.len().saturating_sub(MOST_REASONS);
        if more > 0 {
            let _ = writeln!(text, "- and {more} more reasons");
        }
        if request.longest == ApprovalScope::Once && request.subject == StoredSubject::Command {
            let _ = writeln!(text, "- {ONLY_ONCE}");
        }
        let id = &request.id;
        let seconds = request.expires_at.since(now).as_secs();
        let for_longer = match request.longest {
            ApprovalScope::Once => String::new(),
            _ => format!(", /approve {id} session"),
        };
        let _ = write!(
            text,
            "\nAsked by {}. Silence is no, in {seconds} seconds.\n/approve {id}{for_longer}, /deny {id}",
            cut(&request.asker, 100, 0)
        );
        text
    }

    pub fn outcome(&self) -> String {
        let request = self.0;
        let by = request.answered_by.as_deref().unwrap_or("nobody");
        let what = match request.state {
            RequestState::Approved => match request.scope {
                Some(ApprovalScope::Always) if request.subject == StoredSubject::Host => {
                    format!("✅ {}: allowed from now on by {by}", request.id)
                }
                Some(ApprovalScope::Session | ApprovalScope::Always) => {
                    format!("✅ {}: allowed for this session by {by}", request.id)
                }
                Some(ApprovalScope::TenMinutes) => {
                    format!("✅ {}: allowed for ten minutes by {by}", request.id)
                }
                Some(ApprovalScope::Once) | None => {
                    format!("✅ {}: allowed once by {by}", request.id)
                }
            },
            RequestState::Denied => format!("🚫 {}: refused by {by}", request.id),
            RequestState::Expired => format!("⌛ {}: nobody answered, which is a no", request.id),
            RequestState::Withdrawn => {
                format!("⌛ {}: nobody waits for an answer any more", request.id)
            }
            RequestState::Pending => format!("❓ {}: waits for an answer", request.id),
        };
        let reason = match &request.reason {
            Some(reason) => format!(" ({})", cut(reason, 300, 0)),
            None => String::new(),
        };
        let rule = match (request.scope, request.subject) {
            (Some(ApprovalScope::Always), StoredSubject::Host) => {
                "\nKept as a rule of this conversation; `hermetic egress rules` shows it."
                    .to_owned()
            }
            _ => String::new(),
        };
        format!("{what}{reason}\n\n{}{rule}", fenced(&request.what))
    }

    /// A line of a list.
    pub fn line(&self) -> String {
        let request = self.0;
        format!(
            "{}: {}",
            request.id,
            cut(&request.what, 80, 0).replace('\n', " ")
        )
    }
}

/// What the chat, and with it the model, is told about a no.
pub(crate) fn refusal(request: &ApprovalRequest, waited: Duration) -> String {
    match request.state {
        RequestState::Denied => match &request.reason {
            Some(reason) => format!("A person said no: {reason}. Nothing was run."),
            None => "A person said no. Nothing was run.".to_owned(),
        },
        RequestState::Expired => format!(
            "This needs a person's yes, and nobody answered within {} seconds, which is a no. Nothing was \
             run.",
            waited.as_secs()
        ),
        _ => "It was interrupted while it waited for a person's yes. Nothing was run.".to_owned(),
    }
}

/// In a fence that nothing inside can end.
fn fenced(text: &str) -> String {
    let text = cut(text, HEAD, TAIL);
    // Longer than any fence inside, so that a command cannot end its own frame and write words that
    // look like ours.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{text}\n{fence}\n")
}

fn cut(text: &str, head: usize, tail: usize) -> String {
    let count = text.chars().count();
    if count <= head + tail {
        return text.to_owned();
    }
    let at = |index: usize| {
        text.char_indices()
            .nth(index)
            .map_or(text.len(), |(at, _)| at)
    };
    let left_out = count - head - tail;
    if tail == 0 {
        return format!("{}…", &text[..at(head)]);
    }
    format!(
        // The end is shown too: what is cut in the middle is said to be cut, and the end is where
        // harm is appended.
        "{}\n[… {left_out} characters are not shown here …]\n{}",
        &text[..at(head)],
        &text[at(count - tail)..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_fence() {
        assert_eq!(fenced("a ``` b"), "````\na ``` b\n````\n");
        let long = format!("{}{}", "a".repeat(5000), "the end");
        assert!(fenced(&long).contains("the end"), "the end is not shown");
    }
}
