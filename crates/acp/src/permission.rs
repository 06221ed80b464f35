//! What an agent asks before it does something.
//!
//! A permission is a courtesy of the agent: it may ask for what is harmless and do in silence what is not.
//! The sandbox is what holds it. So an answer here opens nothing, and is never needed for anything that the
//! sandbox keeps closed.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::update::{ToolNews, listed, words};

/// A question of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionRequest {
    /// The agent's name.
    pub agent: String,
    /// What it says that it wants to do.
    pub title: String,
    /// What it says that it would call a tool with.
    pub detail: Option<String>,
    /// The checksum of all of that, of which a person may be shown a part.
    pub(crate) input: Option<String>,
    pub options: Vec<PermissionOption>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionOption {
    pub id: String,
    /// What the agent calls it.
    pub name: String,
    pub kind: PermissionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
}

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    AllowOnce,
    /// For the rest of the agent's session.
    AllowSession,
    /// Also silence, doubt and failure.
    Deny,
}

impl PermissionRequest {
    /// `None` where there is nothing that a person could say yes to.
    pub(crate) fn read(agent: &str, params: &Value) -> Option<Self> {
        let call = params.get("toolCall")?;
        let options: Vec<_> = listed(params, "options").filter_map(option).collect();
        let news = ToolNews::read(call).unwrap_or_default();
        let request = Self {
            agent: agent.to_owned(),
            title: news
                .title
                .or_else(|| words(call, "kind"))
                .unwrap_or_else(|| "something".to_owned()),
            detail: news.detail,
            input: call
                .get("rawInput")
                .map(|input| digits(&Sha256::digest(input.to_string()))),
            options,
        };
        // Without a way to say yes once there is nothing to ask: the only yes would be one for
        // always.
        request
            .of_kind(PermissionKind::AllowOnce)
            .is_some()
            .then_some(request)
    }

    /// Whether a yes can be for longer than once.
    pub fn offers_always(&self) -> bool {
        self.of_kind(PermissionKind::AllowAlways).is_some()
    }

    /// What the agent itself calls a choice, where it offers one of that kind and has a name for it.
    pub fn name_of(&self, kind: PermissionKind) -> Option<&str> {
        let name = self.of_kind(kind)?.name.trim();
        (!name.is_empty()).then_some(name)
    }

    /// The same for the same question, and for no other.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for part in [
            "agent permission",
            &self.agent,
            &self.title,
            self.detail.as_deref().unwrap_or(""),
            self.input.as_deref().unwrap_or(""),
        ] {
            // With its length, so that no two different questions run together into the same bytes.
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        digits(&hash.finalize())
    }

    /// What the agent is told.
    pub(crate) fn outcome(&self, answer: PermissionAnswer) -> Value {
        let chosen = match answer {
            PermissionAnswer::AllowOnce => self.of_kind(PermissionKind::AllowOnce),
            // Where it offers no more than once, once is what it is told.
            PermissionAnswer::AllowSession => self
                .of_kind(PermissionKind::AllowAlways)
                .or_else(|| self.of_kind(PermissionKind::AllowOnce)),
            PermissionAnswer::Deny => self.of_kind(PermissionKind::RejectOnce),
        };
        match chosen {
            Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option.id}}),
            None => cancelled(),
        }
    }

    fn of_kind(&self, kind: PermissionKind) -> Option<&PermissionOption> {
        self.options.iter().find(|option| option.kind == kind)
    }
}

fn digits(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// What is said to a question that nobody answers.
pub(crate) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

fn option(option: &Value) -> Option<PermissionOption> {
    let kind = match option.get("kind").and_then(Value::as_str)? {
        "allow_once" => PermissionKind::AllowOnce,
        "allow_always" => PermissionKind::AllowAlways,
        "reject_once" => PermissionKind::RejectOnce,
        "reject_always" => PermissionKind::RejectAlways,
        _ => return None,
    };
    Some(PermissionOption {
        // Handed back as it came; one that was cut would be another.
        id: words(option, "optionId")
            .filter(|id| Some(id.as_str()) == option["optionId"].as_str())?,
        name: words(option, "name").unwrap_or_default(),
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "a test writes them in place")]
    fn params(options: Value) -> Value {
        json!({
            "sessionId": "s",
            "toolCall": {"toolCallId": "1", "title": "Run ls", "rawInput": {"command": "ls"}},
            "options": options,
        })
    }

    fn usual() -> Value {
        json!([
            {"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "a", "name": "Always", "kind": "allow_always"},
            {"optionId": "n", "name": "No", "kind": "reject_once"},
        ])
    }

    #[test]
    fn an_answer_is_one_of_the_agents_own_options() {
        let request = PermissionRequest::read("x", &params(usual())).expect("a question");
        let chosen = |answer| request.outcome(answer)["outcome"]["optionId"].clone();
        assert_eq!(chosen(PermissionAnswer::AllowOnce), "y");
        assert_eq!(chosen(PermissionAnswer::AllowSession), "a");
        assert_eq!(chosen(PermissionAnswer::Deny), "n");
        assert_eq!(request.name_of(PermissionKind::RejectOnce), Some("No"));
        assert_eq!(request.name_of(PermissionKind::RejectAlways), None);
        let once = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}]);
        let request = PermissionRequest::read("x", &params(once)).expect("a question");
        assert!(!request.offers_always());
        assert_eq!(request.outcome(PermissionAnswer::Deny), cancelled());
        assert_eq!(
            request.outcome(PermissionAnswer::AllowSession)["outcome"]["optionId"],
            "y"
        );
    }

    #[test]
    fn a_question_without_a_yes_for_once_is_none() {
        for options in [
            json!([]),
            json!(null),
            json!([{"optionId": "a", "name": "x", "kind": "allow_always"}]),
            json!([{"optionId": "a", "name": "x", "kind": "allow_everything"}]),
            json!([{"optionId": 7, "name": "x", "kind": "allow_once"}]),
            json!([{"optionId": "i".repeat(1000), "name": "x", "kind": "allow_once"}]),
        ] {
            assert_eq!(PermissionRequest::read("x", &params(options)), None);
        }
    }

    #[test]
    fn a_yes_is_for_one_question() {
        let one = PermissionRequest::read("x", &params(usual())).expect("a question");
        let mut other = one.clone();
        assert_eq!(one.fingerprint(), other.fingerprint());
        other.detail = Some("rm -r .".to_owned());
        assert_ne!(one.fingerprint(), other.fingerprint());
        // Words do not flow from one part into the next.
        let parts = |title: &str, detail: &str| PermissionRequest {
            title: title.to_owned(),
            detail: Some(detail.to_owned()),
            ..one.clone()
        };
        assert_ne!(
            parts("ab", "c").fingerprint(),
            parts("a", "bc").fingerprint()
        );
    }
}
