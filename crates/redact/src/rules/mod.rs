//! What secrets look like when nobody told us about them.
//!
//! A rule is started by three bytes, looks at a window around its place and answers where the secret
//! stands. Words before a secret (`password=`) stay, so that a reader sees what was taken out.

mod assigned;
mod assignment;
mod azure;
mod bare;
mod command;
mod header;
mod jwt;
mod kubernetes;
mod names;
mod pem;
mod platform;
mod random;
mod services;
mod url;
mod value;
mod vendor;

use std::ops::Range;

pub(crate) use value::is_identifier;

use crate::filter::{FoldedKey, KnownStart, fold, key};
use crate::window::{NeedMore, TextAhead};

/// A rule that recognises one shape of secrets.
#[derive(Clone, Copy)]
pub(crate) enum SecretRule {
    /// A row of the table in [`vendor`].
    Vendor(&'static vendor::VendorPrefix),
    Assignment(&'static str),
    Authorization,
    Bearer,
    Cookie,
    DiscordToken,
    Jwt,
    KubernetesData,
    KubernetesKind,
    PasswordHash(&'static str),
    PasswordOption(&'static command::PasswordOption),
    Pgpass,
    PrivateKey,
    PuttyKey(&'static str),
    RegistryAuth,
    TelegramToken,
    UserOption(&'static str),
    Userinfo,
    WebhookPath(&'static str),
}

impl SecretRule {
    pub(crate) fn look(
        self,
        behind: &[u8],
        ahead: TextAhead<'_>,
    ) -> Result<Vec<Range<usize>>, NeedMore> {
        let found = match self {
            Self::Vendor(prefix) => prefix.look(behind, ahead),
            Self::Assignment(word) => return assignment::look(word, behind, ahead),
            Self::Authorization => header::authorization(ahead),
            Self::Bearer => header::bearer(behind, ahead),
            Self::Cookie => header::cookie(ahead),
            Self::DiscordToken => platform::discord_token(behind, ahead),
            Self::Jwt => jwt::look(ahead),
            Self::KubernetesData => return kubernetes::above_kind(behind, ahead),
            Self::KubernetesKind => return kubernetes::below_kind(behind, ahead),
            Self::PasswordHash(start) => command::password_hash(start, ahead),
            Self::PasswordOption(option) => command::password_option(option, behind, ahead),
            Self::Pgpass => command::pgpass(behind, ahead),
            Self::PrivateKey => pem::look(ahead),
            Self::PuttyKey(title) => pem::putty(title, ahead),
            Self::RegistryAuth => command::registry_auth(behind, ahead),
            Self::TelegramToken => platform::telegram_token(behind, ahead),
            Self::UserOption(text) => command::user_option(text, behind, ahead),
            Self::Userinfo => url::userinfo(ahead),
            Self::WebhookPath(path) => platform::webhook(path, ahead),
        };
        Ok(found?.into_iter().collect())
    }
}

/// What is a key because it is long and looks drawn. `ahead` begins with a long run.
pub(crate) fn long_run(behind: &[u8], ahead: TextAhead<'_>) -> Result<Vec<Range<usize>>, NeedMore> {
    if let Some(found) = assigned::look(behind, ahead)? {
        return Ok(vec![found]);
    }
    bare::look(behind, ahead)
}

/// The rules that may start at a byte: a table by the hash of their first bytes.
pub(crate) struct RuleTriggers(Vec<Vec<(KnownStart, SecretRule)>>);

const SLOTS: usize = 1 << 12;

impl RuleTriggers {
    pub(crate) fn none() -> Self {
        Self(vec![Vec::new(); SLOTS])
    }

    pub(crate) fn all() -> Self {
        let mut table = Self::none();
        for (start, rule) in [
            (start_of("authorization"), SecretRule::Authorization),
            (start_of("bearer"), SecretRule::Bearer),
            (start_of("cookie"), SecretRule::Cookie),
            (start_of("eyj"), SecretRule::Jwt),
            (start_of("ewo"), SecretRule::Jwt),
            (start_of("-----begin"), SecretRule::PrivateKey),
            (start_of("kind"), SecretRule::KubernetesKind),
            (start_of("data"), SecretRule::KubernetesData),
            (start_of("auth"), SecretRule::RegistryAuth),
            (start_of(":54"), SecretRule::Pgpass),
            (start_of(":64"), SecretRule::Pgpass),
            (start_of(":*:"), SecretRule::Pgpass),
            (start_of(":aa"), SecretRule::TelegramToken),
            (start_of("://"), SecretRule::Userinfo),
        ] {
            table.add(start, rule);
        }
        for row in vendor::PREFIXES {
            for start in row.starts() {
                table.add(start, SecretRule::Vendor(row));
            }
        }
        for word in &names::WORDS {
            table.add(start_of(word), SecretRule::Assignment(word));
        }
        // Too short a word to look for without what may follow it.
        for start in ["pw:", "pw=", "pw "] {
            table.add(start_of(start), SecretRule::Assignment("pw"));
        }
        for start in [
            "pat:", "pat=", "pat_", "pat-", "pat\"", "pat'", "pat ", "pat<",
        ] {
            table.add(start_of(start), SecretRule::Assignment("pat"));
        }
        for path in &platform::WEBHOOK_PATHS {
            table.add(start_of(path), SecretRule::WebhookPath(path));
        }
        for three in platform::discord_starts() {
            table.add(KnownStart::Three(key(three)), SecretRule::DiscordToken);
        }
        for start in &command::HASHES {
            table.add(start_of(start), SecretRule::PasswordHash(start));
        }
        for option in &command::OPTIONS {
            table.add(start_of(option.text), SecretRule::PasswordOption(option));
        }
        for text in [" -u", " --user"] {
            table.add(start_of(text), SecretRule::UserOption(text));
        }
        for title in pem::PUTTY_TITLES {
            table.add(start_of(title), SecretRule::PuttyKey(title));
        }
        table
    }

    fn add(&mut self, start: KnownStart, rule: SecretRule) {
        self.0[slot(start.key())].push((start, rule));
    }

    pub(crate) fn starts(&self) -> impl Iterator<Item = KnownStart> {
        self.0.iter().flatten().map(|(start, _)| *start)
    }

    /// The rules that may have something to say about a text that begins so.
    pub(crate) fn at(&self, text: &[u8]) -> impl Iterator<Item = SecretRule> {
        let three = text.first_chunk().map(|three| key(*three));
        let four = text
            .first_chunk()
            .map(|four| fold(u32::from_le_bytes(*four)));
        let entries = three.map_or(&[][..], |three| &self.0[slot(three)]);
        entries
            .iter()
            .filter(move |entry| three.is_some_and(|three| entry.0.may_be(three, four)))
            .map(|entry| entry.1)
    }
}

fn slot(key: FoldedKey) -> usize {
    (key.wrapping_mul(0x9E37_79B1) >> 16) as usize % SLOTS
}

fn start_of(text: &str) -> KnownStart {
    // No table holds a shorter start; this one matches nothing but itself.
    KnownStart::of(text.as_bytes()).unwrap_or(KnownStart::Three(key([0, 0, 0])))
}
