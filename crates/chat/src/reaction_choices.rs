//! Reactions instead of buttons, for platforms that have none.
//!
//! A message that asks says which reaction means what. Whoever sends it keeps what each means across a
//! restart, because a question outlives the process.

use serde::{Deserialize, Serialize};

use crate::ReplyButton;

const YES: &str = "👍";
const NO: &str = "👎";
/// For what stands between the first and the last choice.
const BETWEEN: [&str; ReactionChoices::MOST - 2] = ["2⃣", "3⃣", "4⃣", "5⃣", "6⃣", "7⃣", "8⃣"];

/// The reactions to one message, and what each of them means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReactionChoices(Vec<ReactionChoice>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ReactionChoice {
    emoji: String,
    data: String,
}

impl ReactionChoices {
    /// How many choices a message may offer.
    pub const MOST: usize = 9;

    /// The choices that these buttons are, and the words that say so. The first is a thumb up, the last a
    /// thumb down, which are the two that apps offer first.
    pub fn of(buttons: &[Vec<ReplyButton>]) -> Option<(Self, String)> {
        let buttons: Vec<_> = buttons.iter().flatten().take(Self::MOST).collect();
        let last = buttons.len().checked_sub(1)?;
        let emoji = |index: usize| match index {
            0 => YES,
            index if index == last => NO,
            index => BETWEEN[index - 1],
        };
        let named: Vec<_> = buttons
            .iter()
            .enumerate()
            .map(|(index, button)| format!("{} {}", emoji(index), button.label()))
            .collect();
        let choices = buttons
            .iter()
            .enumerate()
            .map(|(index, button)| ReactionChoice {
                emoji: plain(emoji(index)),
                data: button.data().to_owned(),
            });
        let words = format!("\n\nOr react to this message: {}", named.join(", "));
        Some((Self(choices.collect()), words))
    }

    /// What this reaction means.
    pub fn data(&self, emoji: &str) -> Option<&str> {
        let emoji = plain(emoji);
        let chosen = self.0.iter().find(|choice| choice.emoji == emoji)?;
        Some(&chosen.data)
    }

    /// Every reaction that means something.
    pub fn emojis(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|choice| choice.emoji.as_str())
    }
}

/// Without the colour of a skin and the sign that asks for a picture: phones add both.
fn plain(emoji: &str) -> String {
    let adds = |c: &char| matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
    emoji.chars().filter(|c| !adds(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buttons(labels: &[&str]) -> Vec<Vec<ReplyButton>> {
        let button = |label: &&str| ReplyButton::new(*label, format!("q:{label}")).unwrap();
        vec![labels.iter().map(button).collect()]
    }

    #[test]
    fn the_words_say_what_each_reaction_means() {
        let (choices, words) = ReactionChoices::of(&buttons(&["Once", "Session", "Deny"])).unwrap();
        assert_eq!(
            words.trim(),
            "Or react to this message: 👍 Once, 2⃣ Session, 👎 Deny"
        );
        for (emoji, data) in [
            ("👍", Some("q:Once")),
            ("👍🏿", Some("q:Once")),
            ("2️⃣", Some("q:Session")),
            ("👎🏻", Some("q:Deny")),
            ("❤️", None),
            ("", None),
        ] {
            assert_eq!(choices.data(emoji), data, "{emoji}");
        }
        assert_eq!(choices.emojis().count(), 3);
        assert!(ReactionChoices::of(&[]).is_none());
        let (many, _) = ReactionChoices::of(&buttons(&["x"; 30])).unwrap();
        assert_eq!(many.0.len(), ReactionChoices::MOST);
    }
}
