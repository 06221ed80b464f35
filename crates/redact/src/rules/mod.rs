//! What secrets look like when nobody told us about them.
//!
//! A rule is started by three bytes, looks at a window around its place and answers where the secret
//! stands. Words before a secret (`password=`) stay, so that a reader sees what was taken out.

mod assignment;
mod header;
mod jwt;
mod pem;
mod platform;
mod url;
mod value;
mod vendor;

use crate::filter::{Key, key};
use crate::window::{Ahead, Found};

#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// A row of the table in [`vendor`].
    Vendor(&'static vendor::Prefix),
    Assignment(&'static str),
    Authorization,
    Bearer,
    Cookie,
    DiscordToken,
    Jwt,
    PrivateKey,
    TelegramToken,
    Userinfo,
    WebhookPath(&'static str),
}

impl Rule {
    pub(crate) fn look(self, behind: &[u8], ahead: Ahead<'_>) -> Found {
        match self {
            Self::Vendor(prefix) => prefix.look(behind, ahead),
            Self::Assignment(word) => assignment::look(word, behind, ahead),
            Self::Authorization => header::authorization(ahead),
            Self::Bearer => header::bearer(behind, ahead),
            Self::Cookie => header::cookie(ahead),
            Self::DiscordToken => platform::discord_token(behind, ahead),
            Self::Jwt => jwt::look(ahead),
            Self::PrivateKey => pem::look(ahead),
            Self::TelegramToken => platform::telegram_token(behind, ahead),
            Self::Userinfo => url::userinfo(ahead),
            Self::WebhookPath(path) => platform::webhook(path, ahead),
        }
    }
}

/// Which rules start where: a table by the hash of their first bytes.
pub(crate) struct Triggers(Vec<Vec<(Key, Rule)>>);

const SLOTS: usize = 1 << 10;

impl Triggers {
    pub(crate) fn none() -> Self {
        Self(vec![Vec::new(); SLOTS])
    }

    pub(crate) fn all() -> Self {
        let mut rules = vec![
            (start_of("authorization"), Rule::Authorization),
            (start_of("bearer"), Rule::Bearer),
            (start_of("cookie"), Rule::Cookie),
            (start_of("eyj"), Rule::Jwt),
            (start_of("-----begin"), Rule::PrivateKey),
            (start_of(":aa"), Rule::TelegramToken),
            (start_of("://"), Rule::Userinfo),
        ];
        rules.extend(
            vendor::PREFIXES
                .iter()
                .map(|row| (start_of(row.text), Rule::Vendor(row))),
        );
        rules.extend(
            assignment::WORDS
                .iter()
                .map(|word| (start_of(word), Rule::Assignment(word))),
        );
        rules.extend(
            platform::WEBHOOK_PATHS
                .iter()
                .map(|path| (start_of(path), Rule::WebhookPath(path))),
        );
        rules.extend(platform::discord_starts().map(|three| (key(three), Rule::DiscordToken)));
        let mut table = Self::none();
        for (key, rule) in rules {
            table.0[slot(key)].push((key, rule));
        }
        table
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.0.iter().flatten().map(|(key, _)| *key)
    }

    pub(crate) fn at(&self, key: Key) -> impl Iterator<Item = Rule> {
        let entries = &self.0[slot(key)];
        entries
            .iter()
            .filter(move |entry| entry.0 == key)
            .map(|entry| entry.1)
    }
}

fn slot(key: Key) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> 16) as usize % SLOTS
}

fn start_of(text: &str) -> Key {
    match text.as_bytes() {
        [a, b, c, ..] => key([*a, *b, *c]),
        // No table holds a shorter start; this one matches nothing but itself.
        _ => key([0, 0, 0]),
    }
}
