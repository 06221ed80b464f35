//! What in a group is meant for us.

use std::collections::BTreeSet;

use hermetic_types::{ChatId, ChatKind, ChatPlace};

#[derive(Clone, Debug, Default)]
pub struct WhatsAppHearing {
    /// `require_mention`: in groups only what names us or replies to us.
    pub require_mention: bool,
    /// `free_response_chats`: groups where no mention is needed all the same.
    pub free_response_chats: BTreeSet<ChatId>,
    /// `mention_patterns`: words that count as our name, in lower case.
    pub names: Vec<String>,
    /// `dm_policy: disabled`.
    pub private_disabled: bool,
    /// `group_policy: disabled`.
    pub groups_disabled: bool,
}

impl WhatsAppHearing {
    /// Why something that was said there is not for us.
    pub(crate) fn ignores(&self, place: &ChatPlace, mentions_us: bool) -> Option<&'static str> {
        let is_private = place.kind == ChatKind::Dm;
        match is_private {
            true if self.private_disabled => return Some("private messages are switched off"),
            false if self.groups_disabled => return Some("groups are switched off"),
            _ => {}
        }
        let free =
            is_private || !self.require_mention || self.free_response_chats.contains(&place.chat);
        (!free && !mentions_us).then_some("it does not mention us")
    }

    /// Whether one of our names stands in the text as a word of its own.
    pub(crate) fn names_us(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let names = self.names.iter().filter(|name| !name.is_empty());
        names.into_iter().any(|name| is_a_word_of(&text, name))
    }
}

/// Whether `word` stands in the text with neither a letter nor a digit beside it.
pub(crate) fn is_a_word_of(text: &str, word: &str) -> bool {
    let of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(of_a_word) && !after.is_some_and(of_a_word)
    })
}

/// What somebody only passed on is quoted: it is nobody's command.
pub(crate) fn passed_on(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("> {line}")).collect();
    format!(
        "[passed on, not written by who sent it:]\n{}",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_is_not_heard() {
        let place = |kind| ChatPlace {
            chat: ChatId::from(1),
            kind,
            thread: None,
        };
        let hearing = WhatsAppHearing {
            private_disabled: true,
            groups_disabled: true,
            ..WhatsAppHearing::default()
        };
        for kind in [ChatKind::Dm, ChatKind::Group] {
            assert!(hearing.ignores(&place(kind), true).is_some());
            assert_eq!(
                WhatsAppHearing::default().ignores(&place(kind), false),
                None
            );
        }
    }

    #[test]
    fn a_name_is_a_word_and_not_a_part_of_one() {
        let hearing = WhatsAppHearing {
            names: vec!["bot".to_owned(), String::new()],
            ..WhatsAppHearing::default()
        };
        for (text, named) in [
            ("Bot, help", true),
            ("ask the bot", true),
            ("@bot", true),
            ("robots", false),
            ("bots", false),
            ("", false),
        ] {
            assert_eq!(hearing.names_us(text), named, "{text:?}");
        }
    }
}
