//! What is signed by the key: a link that lets somebody in once, a token that lets a program in.
//!
//! ```text
//! <link|token>.<operator|viewer>.<until, in seconds>.<nonce>.<name>.<signature>
//! ```

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermetic_types::Timestamp;
use subtle::ConstantTimeEq as _;

use super::key::{AccessKey, KeyError, random_text};
use super::viewer::DashboardRole;

/// What was signed, once its signature and its time were seen to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedPass {
    pub(crate) kind: PassKind,
    pub(crate) role: DashboardRole,
    pub(crate) name: String,
    pub(crate) nonce: String,
    pub(crate) until: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassKind {
    /// Lets a person in, once.
    Link,
    /// Lets a program in, until its time is over or the key is replaced.
    Token,
}

/// Long enough to go to the browser with it.
const LINK_LENGTH: Duration = Duration::from_secs(15 * 60);

/// No name is longer.
const NAME_CHARS: usize = 64;

/// The part of a one-time link that lets in whoever has it.
pub fn access_link(
    key: &AccessKey,
    role: DashboardRole,
    name: &str,
    now: Timestamp,
) -> Result<String, KeyError> {
    sign(key, "link", role, name, now.plus(LINK_LENGTH))
}

/// A token for a program, for so long.
pub fn access_token(
    key: &AccessKey,
    role: DashboardRole,
    name: &str,
    now: Timestamp,
    length: Duration,
) -> Result<String, KeyError> {
    sign(key, "token", role, name, now.plus(length))
}

/// Nothing for what was not signed by this key, or whose time is over.
pub(crate) fn read_pass(key: &AccessKey, text: &str, now: Timestamp) -> Option<SignedPass> {
    let (signed, signature) = text.rsplit_once('.')?;
    let expected = key.sign(signed);
    // Before any field is read: of what we did not sign nothing is parsed.
    if !bool::from(expected.as_bytes().ct_eq(signature.as_bytes())) {
        return None;
    }
    let mut fields = signed.split('.');
    let kind = match fields.next()? {
        "link" => PassKind::Link,
        "token" => PassKind::Token,
        _ => return None,
    };
    let role = fields.next()?.parse().ok()?;
    let until = Timestamp::from_seconds(fields.next()?.parse().ok()?);
    let nonce = fields.next()?.to_owned();
    let name = URL_SAFE_NO_PAD.decode(fields.next()?).ok()?;
    let name = String::from_utf8(name).ok()?;
    let pass = SignedPass {
        kind,
        role,
        name,
        nonce,
        until,
    };
    (fields.next().is_none() && now < pass.until).then_some(pass)
}

fn sign(
    key: &AccessKey,
    kind: &str,
    role: DashboardRole,
    name: &str,
    until: Timestamp,
) -> Result<String, KeyError> {
    let name: String = name
        .chars()
        .filter(|c| !c.is_control())
        .take(NAME_CHARS)
        .collect();
    // Encoded, as a dot in it would begin another field.
    let name = URL_SAFE_NO_PAD.encode(name);
    let nonce = random_text()?;
    let signed = format!("{kind}.{role}.{}.{nonce}.{name}", until.seconds());
    let signature = key.sign(&signed);
    Ok(format!("{signed}.{signature}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_holds_until_its_time_and_not_a_letter_longer() {
        let folder = tempfile::tempdir().unwrap();
        let key = AccessKey::load_or_create(folder.path()).unwrap();
        let now = Timestamp::from_seconds(1000);
        let link = access_link(&key, DashboardRole::Viewer, "ada.l", now).unwrap();
        let pass = read_pass(&key, &link, now).unwrap();
        assert_eq!(pass.kind, PassKind::Link);
        assert_eq!(
            (pass.role, pass.name.as_str()),
            (DashboardRole::Viewer, "ada.l")
        );
        assert_eq!(read_pass(&key, &link, now.plus(LINK_LENGTH)), None);
        for forged in [
            link.replace("viewer", "operator"),
            link.replace("link", "token"),
            format!("{link}x"),
            link[1..].to_owned(),
            String::new(),
            ".".to_owned(),
            "link.operator.99999999999.n.eA.".to_owned(),
        ] {
            assert_eq!(read_pass(&key, &forged, now), None, "{forged}");
        }
        let other = AccessKey::replace(folder.path()).unwrap();
        assert_eq!(read_pass(&other, &link, now), None);
        let (day, role) = (Duration::from_secs(86_400), DashboardRole::Operator);
        let token = access_token(&other, role, "cron", now, day).unwrap();
        assert_eq!(
            read_pass(&other, &token, now).unwrap().kind,
            PassKind::Token
        );
    }
}
