//! What is written to the bot, and what it wrote.

use crate::telegram::{Call, TelegramServer};

/// Every letter has a word of its own, of one length, so that half a word is none.
const DIGITS: usize = 6;

/// A message to the bot.
#[derive(Clone, Debug)]
pub struct Letter {
    pub(super) user: i64,
    pub(super) kind: Kind,
    pub(super) word: String,
    pub(super) update: i64,
    /// How many messages the bot had sent when it was written.
    pub(super) replies_before: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For the model, which says the word back.
    Talk,
    /// A command that prints the word and writes it down.
    Shell,
}

/// A message of the bot's, or a change of one.
#[derive(Clone, Debug)]
pub struct Sent {
    pub chat: i64,
    pub message: i64,
    pub text: String,
    pub new: bool,
}

impl Letter {
    pub(super) fn new(number: usize, user: i64, kind: Kind, replies_before: usize) -> Self {
        Self {
            user,
            kind,
            word: format!("w{number:0DIGITS$}"),
            update: 0,
            replies_before,
        }
    }

    pub(super) fn with_update(self, update: i64) -> Self {
        Self { update, ..self }
    }

    pub(super) fn text(&self) -> String {
        match self.kind {
            Kind::Talk => format!("please note {}", self.word),
            Kind::Shell => format!("/sh echo {} | tee -a ran", self.word),
        }
    }
}

impl Sent {
    pub(super) fn answers(&self, letter: &Letter) -> bool {
        self.chat == letter.user && words(&self.text).any(|word| word == letter.word)
    }
}

pub(super) fn has_word(text: &str) -> bool {
    words(text).next().is_some()
}

/// The words of letters in a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| {
            let digits = word.strip_prefix('w');
            digits.is_some_and(|digits| {
                digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_digit())
            })
        })
}

/// New messages in the order in which they came, then the changes of them.
pub(super) fn sent(telegram: &TelegramServer) -> Vec<Sent> {
    let news = telegram.calls("sendMessage");
    let news = news.iter().map(|call| read(call, true));
    let changes = telegram.calls("editMessageText");
    let changes = changes.iter().map(|call| read(call, false));
    news.chain(changes).collect()
}

fn read(call: &Call, new: bool) -> Sent {
    let message = call.params["message_id"].as_i64().unwrap_or(call.message);
    Sent {
        chat: call.params["chat_id"].as_i64().unwrap_or_default(),
        message,
        text: call.params["text"].as_str().unwrap_or_default().to_owned(),
        new,
    }
}
