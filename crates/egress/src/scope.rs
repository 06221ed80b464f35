//! Whom a rule or a credential is for.

use std::fmt;
use std::str::FromStr;

use hermetic_types::ConversationKey;
use thiserror::Error;

/// The first parts of a conversation's key, without `agent:` and the profile:
///
/// ```text
/// telegram                    everybody on Telegram, whichever of its bots they write to
/// telegram/work               everybody who writes to that bot
/// telegram:dm:42              that private chat, in all its threads
/// telegram:group:-100::42     that member of that group, where members have sandboxes of their own
/// cli:work                    `hermetic exec --session work`
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConversationScope(Vec<String>);

/// The error of a text that names no conversations.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} names no conversations: expected something like telegram or telegram:dm:42")]
pub struct InvalidScope {
    pub text: String,
}

const LONGEST_SCOPE: usize = 512;

impl ConversationScope {
    /// Exactly this conversation, and its threads.
    pub fn of(conversation: &ConversationKey) -> Self {
        Self(parts(conversation.as_str()))
    }

    /// Part by part: `telegram:dm:4` does not cover `telegram:dm:42`. A platform alone covers all of its
    /// accounts, so that what is denied there is denied to a bot that comes later too.
    pub fn covers(&self, conversation: &ConversationKey) -> bool {
        let parts = parts(conversation.as_str());
        let of_platform = |account: &String| account.split('/').next() == Some(self.0[0].as_str());
        match &self.0[..] {
            [_] => parts.first().is_some_and(of_platform) || parts.starts_with(&self.0),
            _ => parts.starts_with(&self.0),
        }
    }
}

fn parts(key: &str) -> Vec<String> {
    let mut parts: Vec<&str> = key.split(':').collect();
    if parts.len() > 2 && parts[0] == "agent" {
        parts.drain(..2);
    }
    parts.into_iter().map(str::to_owned).collect()
}

impl FromStr for ConversationScope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        // A scope stands in a line of the book, whose words are parted by spaces.
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let parts = parts(text);
        let last_is_there = parts.last().is_some_and(|part| !part.is_empty());
        if !plain || text.len() > LONGEST_SCOPE || parts[0].is_empty() || !last_is_there {
            return Err(InvalidScope {
                text: text.chars().take(80).collect(),
            });
        }
        Ok(Self(parts))
    }
}

impl fmt::Display for ConversationScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(":"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(scope: &str, key: &str) -> bool {
        let scope: ConversationScope = scope.parse().unwrap();
        scope.covers(&ConversationKey::new(key))
    }

    #[test]
    fn a_scope_holds_what_is_below_it_and_nothing_beside() {
        assert!(covers("telegram", "agent:main:telegram:dm:42"));
        assert!(covers("telegram:dm:42", "agent:main:telegram:dm:42:7"));
        assert!(covers(
            "agent:main:telegram:dm:42",
            "agent:main:telegram:dm:42"
        ));
        assert!(covers("telegram", "agent:main:telegram/work:dm:42"));
        assert!(covers("telegram/work", "agent:main:telegram/work:dm:42"));
        assert!(!covers("telegram/work", "agent:main:telegram:dm:42"));
        assert!(!covers("telegram:dm:42", "agent:main:telegram/work:dm:42"));
        assert!(covers("cli:work", "cli:work"));
        assert!(!covers("telegram:dm:4", "agent:main:telegram:dm:42"));
        assert!(!covers("telegram:dm:42", "agent:main:discord:dm:42"));
        assert!(!covers("dm:42", "agent:main:telegram:dm:42"));
        assert!(!covers("telegram:dm:42:7", "agent:main:telegram:dm:42"));
    }

    #[test]
    fn what_would_cover_everybody_by_mistake_is_refused() {
        for text in ["", ":", "telegram:", "a b", ":dm:4"] {
            assert!(text.parse::<ConversationScope>().is_err(), "{text:?}");
        }
    }
}
