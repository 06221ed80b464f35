//! The token of a login, for requests that the gateway makes: read from its file, renewed before it ends.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermetic_redact::Redactor;
use hermetic_types::{Secret, SharedClock, Timestamp};
use reqwest::Url;
use thiserror::Error;

use crate::address::{self, AddressRule};
use crate::challenge::AuthChallenge;
use crate::failure::LoginError;
use crate::login_file::{KeptLogin, LoginFile, LoginFileError, LoginState};
use crate::token::TokenEndpoint;
use crate::wire::AuthorityClient;

/// A token that ends within this is renewed first.
const MARGIN: Duration = Duration::from_secs(60);

/// The tokens of a login that are taken out of text: those that hold, and those that were just renewed.
const GENERATIONS: usize = 2;

/// The login of one server. Clones share it.
#[derive(Clone)]
pub struct BearerLogin(Arc<SharedLogin>);

struct SharedLogin {
    name: String,
    /// The address that the token is for.
    server: String,
    file: LoginFile,
    http: AuthorityClient,
    redactor: Redactor,
    clock: SharedClock,
    /// What the redactor was told, the last at the end. One login teaches it this much and no more: an authority
    /// that gave out other words with every renewal could have them taken out of everybody's text.
    told: Mutex<VecDeque<Vec<Secret>>>,
}

/// Why there is no token. The words are for people and models.
#[derive(Debug, Error)]
pub enum BearerError {
    #[error("nobody is logged in to it; the operator can: hermetic mcp login {0}")]
    NoLogin(String),
    #[error("its login is over ({why}); the operator can renew it: hermetic mcp login {name}")]
    Over { name: String, why: String },
    #[error("its login could not be renewed: {0}")]
    Renewal(LoginError),
    #[error("its login cannot be read: {0}")]
    File(#[from] LoginFileError),
}

/// When a token is renewed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RenewalReason {
    EndsSoon,
    /// The server did not take it.
    Refused,
}

impl BearerLogin {
    pub fn new(
        name: &str,
        server: &str,
        file: LoginFile,
        http: AuthorityClient,
        redactor: Redactor,
        clock: SharedClock,
    ) -> Self {
        Self(Arc::new(SharedLogin {
            name: name.to_owned(),
            server: server.to_owned(),
            file,
            http,
            redactor,
            clock,
            told: Mutex::default(),
        }))
    }

    /// The name by which a person logs in.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// A token that holds, renewed where it would not for long.
    pub async fn token(&self) -> Result<Secret, BearerError> {
        let login = self.0.login(&self.0.file.load()?)?;
        match login.expires() {
            Some(end) if end <= self.0.clock.now().plus(MARGIN) => {
                self.renew(login.access, RenewalReason::EndsSoon).await
            }
            Some(_) | None => Ok(login.access),
        }
    }

    /// Another token than the one that a server did not take.
    pub async fn after_refusal(&self, refused: Secret) -> Result<Secret, BearerError> {
        self.renew(refused, RenewalReason::Refused).await
    }

    /// Remembers what the server wants, for the next login.
    pub async fn note(&self, challenge: AuthChallenge) -> Result<(), BearerError> {
        // Looked at without the lock first: a server says the same with every call, and each would
        // write the file.
        if self.0.file.load()?.challenge.as_ref() == Some(&challenge) {
            return Ok(());
        }
        let locked = self.0.file.lock().await?;
        let mut state = locked.load()?;
        state.challenge = Some(challenge);
        Ok(locked.replace(&state)?)
    }

    /// In a task of its own: whoever waits may be interrupted, and the answer to a refresh token that was
    /// spent must not be lost with them.
    async fn renew(&self, held: Secret, reason: RenewalReason) -> Result<Secret, BearerError> {
        let shared = Arc::clone(&self.0);
        let renewed = tokio::spawn(async move { shared.renew(&held, reason).await });
        renewed.await.unwrap_or_else(|_| {
            let why = LoginError::Client("the renewal was cut short".to_owned());
            Err(BearerError::Renewal(why))
        })
    }
}

impl SharedLogin {
    fn login(&self, state: &LoginState) -> Result<KeptLogin, BearerError> {
        // One for another address is none: the operator has changed it since.
        let login = state
            .login
            .as_ref()
            .filter(|login| login.server == self.server);
        let login = login.ok_or_else(|| BearerError::NoLogin(self.name.clone()))?;
        self.hide(login);
        Ok(login.clone())
    }

    async fn renew(&self, held: &Secret, reason: RenewalReason) -> Result<Secret, BearerError> {
        let locked = self.file.lock().await?;
        let mut state = locked.load()?;
        let mut login = self.login(&state)?;
        if login.access != *held {
            // Somebody else was quicker.
            return Ok(login.access);
        }
        let now = self.clock.now();
        let holds = login.expires().is_none_or(|end| now < end);
        let Some(refresh) = login.refresh.clone() else {
            return match holds && reason == RenewalReason::EndsSoon {
                true => Ok(login.access),
                false => Err(self.over("it cannot be renewed")),
            };
        };
        // Before the refresh token is spent: it is good for one use, and what replaces it has to
        // have a place.
        let room = locked.reserve()?;
        let asked = self.ask(&login, &refresh, now).await;
        let given = match asked {
            Ok(given) => given,
            Err(LoginError::TokenRefused { code, words }) if code == "invalid_grant" => {
                // Not asked for again with every call.
                login.refresh = None;
                state.login = Some(login);
                locked.write(&room, &state)?;
                return Err(self.over(&format!("{code}{words}")));
            }
            // It may be back before the token ends.
            Err(_) if holds && reason == RenewalReason::EndsSoon => return Ok(login.access),
            Err(error) => return Err(BearerError::Renewal(error)),
        };
        login.access = given.access;
        login.refresh = given.refresh.or(Some(refresh));
        login.expires_seconds = given.expires.map(Timestamp::seconds);
        login.scope = given.scope.or(login.scope);
        // Hidden before it is written and before anybody has it: from then on it may turn up in any
        // text.
        self.hide(&login);
        let access = login.access.clone();
        state.login = Some(login);
        locked.write(&room, &state)?;
        tracing::info!(server = %self.name, "the login of an MCP server was renewed");
        Ok(access)
    }

    async fn ask(
        &self,
        login: &KeptLogin,
        refresh: &Secret,
        now: Timestamp,
    ) -> Result<crate::token::GivenTokens, LoginError> {
        let server = address::server(&login.server)?;
        let rule = AddressRule::of_server(&server);
        let address: Url = rule.check("its token_endpoint", &login.token_endpoint)?;
        let named = self.http.named_by(&server).await;
        let endpoint = TokenEndpoint {
            http: &named,
            address: &address,
            client: &login.client,
            resource: &login.resource,
        };
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose()),
        ];
        endpoint.ask(&fields, now).await
    }

    /// Before anybody uses it.
    fn hide(&self, login: &KeptLogin) {
        let secrets = login.secrets();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.back() == Some(&secrets) {
            return;
        }
        let mut over = match told.len() >= GENERATIONS {
            true => told.pop_front().unwrap_or_default(),
            false => Vec::new(),
        };
        // What the later ones have as well stays: the name of a client does not change with its tokens.
        over.retain(|secret| !told.iter().flatten().any(|kept| kept == secret));
        self.redactor.learn_instead(&over, secrets.clone());
        told.push_back(secrets);
    }

    fn over(&self, why: &str) -> BearerError {
        BearerError::Over {
            name: self.name.clone(),
            why: why.to_owned(),
        }
    }
}

impl fmt::Debug for BearerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BearerLogin").field(&self.0.name).finish()
    }
}
