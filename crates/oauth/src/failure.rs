//! Why a login came to nothing.

use reqwest::StatusCode;
use thiserror::Error;

use crate::login_file::LoginFileError;

/// A login, or the refresh of one, that failed. No variant holds a secret; what servers said is bounded
/// and legible.
#[derive(Debug, Error)]
pub enum LoginError {
    #[error("{what} is {address:?}, which is no address that a login may go to: {why}")]
    Address {
        what: &'static str,
        address: String,
        why: &'static str,
    },
    #[error("{address} cannot be reached: {why}")]
    Unreachable { address: String, why: String },
    #[error("{address} sent more than {most} bytes")]
    TooLarge { address: String, most: usize },
    #[error("{address} points elsewhere ({status}), and a login follows no redirection")]
    Redirected { address: String, status: StatusCode },
    #[error("{address} answered with {status}{words}")]
    Refused {
        address: String,
        status: StatusCode,
        /// Empty, or begins with a colon.
        words: String,
    },
    #[error("{address} did not answer with {what}")]
    NoDocument { address: String, what: &'static str },
    #[error("{address} says that it protects {said:?}, which is not this server")]
    OtherResource { address: String, said: String },
    #[error("{address} is of the issuer {said:?}, and {expected:?} was expected")]
    OtherIssuer {
        address: String,
        said: String,
        expected: String,
    },
    #[error(
        "the authorization server {issuer} sends people to {page} to log in, which is not its own, and does not \
         say that its answers name it; a login there could be carried to somebody else"
    )]
    ForeignLoginPage { issuer: String, page: String },
    #[error(
        "this server had people log in at {before}, and now names {now}; if that is meant, write \
         `oauth: {{issuer: {now}}}` and log in again"
    )]
    ChangedIssuer { before: String, now: String },
    #[error(
        "this server names the authorization server {said}, and the configuration allows {wanted} only"
    )]
    UnwantedIssuer { said: String, wanted: String },
    #[error("no authorization server says anything about itself at {0}")]
    NoAuthority(String),
    #[error("the authorization server {0} does not say that it takes PKCE with S256")]
    NoPkce(String),
    #[error(
        "the authorization server {0} registers no clients; register one there by hand and write its \
         `oauth: {{client_id: …}}`"
    )]
    NoRegistration(String),
    #[error("the authorization server {0} gives no codes for devices; log in with a browser")]
    NoDeviceCodes(String),
    #[error("the answer does not belong to this login (its state is another)")]
    OtherState,
    #[error("the answer names the issuer {said:?}, and this login is at {expected:?}")]
    MixedUp { said: String, expected: String },
    #[error("the answer names no issuer, though {0} says that its answers do")]
    NoIssuer(String),
    #[error("the answer holds no code")]
    NoCode,
    #[error("the login was refused: {0}")]
    Denied(String),
    /// What the token endpoint said in its own words for it.
    #[error("the authorization server refused ({code}){words}")]
    TokenRefused { code: String, words: String },
    #[error("the authorization server gave a token that cannot be used: {0}")]
    UnusableToken(&'static str),
    #[error("no port for the browser's answer: {0}")]
    Listen(#[source] std::io::Error),
    #[error("nobody logged in within {0} seconds")]
    Slow(u64),
    #[error("no random numbers from the system: {0}")]
    Random(getrandom::Error),
    #[error("no client for requests can be made: {0}")]
    Client(String),
    #[error(transparent)]
    File(#[from] LoginFileError),
}

/// The longest part of what a server says that is shown.
const LONGEST_WORDS: usize = 300;

/// Words of a stranger, for people: one line, bounded, nothing that moves a cursor.
pub(crate) fn legible(text: &str) -> String {
    let letters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    letters
        .take(LONGEST_WORDS)
        .collect::<String>()
        .trim()
        .to_owned()
}

/// The same behind a colon, or nothing.
pub(crate) fn after_colon(text: &str) -> String {
    match legible(text).as_str() {
        "" => String::new(),
        words => format!(": {words}"),
    }
}
