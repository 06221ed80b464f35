//! Secrets that stay outside.
//!
//! The sandbox holds a placeholder. For the one host a credential belongs to, TLS ends here, the header
//! is put in, and the request goes on over TLS that we verified. Anywhere else a placeholder is just a
//! word. What comes back is searched for the secret, so that an origin that echoes it tells the sandbox
//! nothing.

mod ca;
mod frames;
mod guesses;
mod paths;
mod redactor;
mod roots;
mod spellings;
mod text_decoder;

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hermetic_types::Secret;
use thiserror::Error;

pub use ca::{CaError, CertificateAuthority};
pub(crate) use frames::{FrameRedactor, UnsearchableFrames};
pub(crate) use guesses::{GuessCounter, SharedParts};
pub(crate) use paths::CredentialPaths;
pub(crate) use redactor::{CredentialRedactor, SearchedSecret};
pub use roots::{TrustRoots, TrustRootsError, has_authorities, trust_bundle};

pub(crate) use spellings::SecretSpellings;

use crate::http::fields::HeaderFields;
use crate::http::head::is_token;
use crate::rules::{Authority, DEFAULT_PORT, InvalidAuthority};

/// A secret that is put into one header of the requests to one host.
#[derive(Clone)]
pub struct Credential {
    target: Authority,
    header: String,
    scheme: CredentialScheme,
    value: Secret,
    placeholder: String,
    paths: CredentialPaths,
    spellings: Arc<SecretSpellings>,
    /// Counts the guesses of the conversation that has it.
    counter: Option<Arc<GuessCounter>>,
}

/// The form in which the value stands in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialScheme {
    /// `Bearer VALUE`, `token VALUE` and the like.
    Word(String),
    /// The value is `user:password` and goes in encoded, as git and registries want it.
    Basic,
    /// The value alone, as in `x-api-key`.
    Bare,
}

/// The reason why a credential cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum InvalidCredential {
    #[error("a credential needs a host name: {0}")]
    Host(#[from] InvalidAuthority),
    #[error("{header:?} cannot carry a credential")]
    Header { header: String },
    #[error("{scheme:?} is not a scheme: expected one word, \"basic\" or nothing")]
    Scheme { scheme: String },
    #[error(
        "the value of the credential for {host} is shorter than {LEAST_BYTES} bytes or holds control characters"
    )]
    Value { host: String },
    #[error("the value for {host} must be user:password for the scheme \"basic\"")]
    NotUserAndPassword { host: String },
    #[error(
        "{path:?} is no path of a host: expected something like /v1/messages, or POST /v1/messages, without % or .., with * for one last segment behind a method"
    )]
    Path { path: String },
    #[error("{count} paths are too many for one credential")]
    TooManyPaths { count: usize },
}

/// Anything shorter could not be taken out of an answer without tearing it apart.
const LEAST_BYTES: usize = 8;

/// The shortest signature of a JSON web token: 32 bytes in base64.
const LEAST_SIGNATURE: usize = 43;

/// Headers that frame or route a message; a credential in one of them would be an attack on ourselves.
const RESERVED: &[&str] = &[
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "accept-encoding",
    "range",
    "expect",
];

impl Credential {
    /// `host` may carry a port; 443 otherwise. An empty `scheme` puts the value in as it is.
    pub fn new(
        host: &str,
        header: &str,
        scheme: &str,
        value: Secret,
        placeholder: impl Into<String>,
    ) -> Result<Self, InvalidCredential> {
        let target = Authority::parse_with_default(host, DEFAULT_PORT)?;
        let lower = header.to_ascii_lowercase();
        if !is_token(header.as_bytes())
            || RESERVED.contains(&lower.as_str())
            || lower.starts_with("proxy-")
        {
            return Err(InvalidCredential::Header {
                header: header.to_owned(),
            });
        }
        let scheme = CredentialScheme::parse(scheme)?;
        let text = value.expose();
        // A line end in it would be further headers, written with our authority.
        if text.len() < LEAST_BYTES || !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return Err(InvalidCredential::Value {
                host: host.to_owned(),
            });
        }
        if scheme == CredentialScheme::Basic && !text.contains(':') {
            return Err(InvalidCredential::NotUserAndPassword {
                host: host.to_owned(),
            });
        }
        let spellings = spellings(&scheme, text);
        Ok(Self {
            spellings,
            counter: None,
            target,
            header: header.to_owned(),
            scheme,
            value,
            placeholder: placeholder.into(),
            paths: CredentialPaths::default(),
        })
    }

    /// The same credential for these paths and what is below them, or for a method and a path alone where one is
    /// written as `POST /v1/messages`; for all where none is named. Any other request to the host is refused.
    pub fn limited_to(mut self, paths: &[String]) -> Result<Self, InvalidCredential> {
        self.paths = CredentialPaths::parse(paths)?;
        Ok(self)
    }

    pub fn target(&self) -> &Authority {
        &self.target
    }

    pub fn header(&self) -> &str {
        &self.header
    }

    /// What the sandbox holds in place of the value.
    pub fn placeholder(&self) -> &str {
        &self.placeholder
    }

    pub(crate) fn is_for(&self, target: &Authority) -> bool {
        self.target == *target
    }

    /// Whether a request for this path and query gets it.
    pub(crate) fn covers(&self, method: &str, path: &str) -> bool {
        self.paths.cover(method, path)
    }

    /// Whether it is for some requests to its host and not for others.
    pub(crate) fn is_limited(&self) -> bool {
        self.paths.are_limited()
    }

    /// Whether it is the same secret for the same place, whoever counts the guesses at it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.target == other.target
            && self.header.eq_ignore_ascii_case(&other.header)
            && self.scheme == other.scheme
            && self.paths == other.paths
            && self.value.expose() == other.value.expose()
    }

    /// Puts the header in, over whatever the sandbox had there.
    pub(crate) fn put_into(&self, fields: &mut HeaderFields) {
        let value = match &self.scheme {
            CredentialScheme::Word(word) => format!("{word} {}", self.value.expose()),
            CredentialScheme::Basic => format!("Basic {}", STANDARD.encode(self.value.expose())),
            CredentialScheme::Bare => self.value.expose().to_owned(),
        };
        fields.set(&self.header, value.as_bytes());
    }

    /// Every spelling of the secret that must not come back.
    pub(crate) fn searched(&self) -> SearchedSecret {
        SearchedSecret {
            spellings: Arc::clone(&self.spellings),
            counter: self.counter.clone(),
        }
    }

    /// The same credential, for a conversation whose guesses at it are counted there.
    pub(crate) fn counted_by(mut self, counter: Arc<GuessCounter>) -> Self {
        self.counter = Some(counter);
        self
    }

    pub(crate) fn counter(&self) -> Option<&Arc<GuessCounter>> {
        self.counter.as_ref()
    }

    /// How many letters and digits of it are secret: a user name is not.
    pub(crate) fn secret_letters(&self) -> usize {
        let (_, secret) = head_and_secret(&self.scheme, self.value.expose());
        secret.bytes().filter(u8::is_ascii_alphanumeric).count()
    }
}

/// The value, and the password in it where there is one.
fn spellings(scheme: &CredentialScheme, value: &str) -> Arc<SecretSpellings> {
    let mut values = vec![head_and_secret(scheme, value)];
    if let (CredentialScheme::Basic, Some((_, password))) = (scheme, value.split_once(':'))
        && password.len() >= LEAST_BYTES
    {
        values.push(password.split_at(signed_text(password)));
    }
    Arc::new(SecretSpellings::behind_heads(&values))
}

/// What of a value may be known, and what is secret.
fn head_and_secret<'a>(scheme: &CredentialScheme, value: &'a str) -> (&'a str, &'a str) {
    let password = match (scheme, value.find(':')) {
        (CredentialScheme::Basic, Some(colon)) => colon + 1,
        _ => 0,
    };
    value.split_at(password + signed_text(&value[password..]))
}

/// How long the signed text of a JSON web token is, with its dot; 0 for anything else. Tokens of one issuer
/// begin alike for a long way, so that a host that shows others would answer guesses that nobody made. Without
/// its signature none of them is worth anything.
fn signed_text(value: &str) -> usize {
    let segments: Vec<&str> = value.split('.').collect();
    let is_web_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    match &segments[..] {
        [header, body, signature]
            if header.starts_with("eyJ")
                && body.starts_with("eyJ")
                && signature.len() >= LEAST_SIGNATURE
                && signature.bytes().all(is_web_safe) =>
        {
            value.len() - signature.len()
        }
        _ => 0,
    }
}

impl CredentialScheme {
    fn parse(text: &str) -> Result<Self, InvalidCredential> {
        match text {
            "" => Ok(Self::Bare),
            text if text.eq_ignore_ascii_case("basic") => Ok(Self::Basic),
            text if is_token(text.as_bytes()) => Ok(Self::Word(text.to_owned())),
            text => Err(InvalidCredential::Scheme {
                scheme: text.to_owned(),
            }),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({} for {})", self.header, self.target)
    }
}

#[cfg(test)]
#[path = "credential_tests.rs"]
mod tests;
