//! One login, from the question to the file.

use hermetic_types::{Secret, SharedClock, Timestamp};
use reqwest::{StatusCode, Url};
use serde_json::json;
use tokio::time::timeout;

use crate::address;
use crate::challenge::AuthChallenge;
use crate::code_flow::{AuthorizationRequest, ExpectedAnswer, FlowSecrets};
use crate::discovery::{AuthorityMetadata, ProtectedResource};
use crate::failure::{LoginError, legible};
use crate::login_file::{KeptLogin, LoginFile, LoginState};
use crate::redirect_listener::RedirectListener;
use crate::registration;
use crate::scope::ScopeSet;
use crate::settings::OAuthSettings;
use crate::token::{ClientIdentity, TokenEndpoint};
use crate::wire::{AuthorityClient, AuthorityRoute};

/// What a login needs to know.
#[derive(Debug)]
pub struct LoginAttempt<'a> {
    /// The address of the MCP server.
    pub server: &'a str,
    pub settings: &'a OAuthSettings,
    pub file: &'a LoginFile,
    pub http: &'a AuthorityClient,
    pub clock: &'a SharedClock,
}

/// Who is to be asked for a login, as whom, and for what.
#[derive(Debug)]
pub(crate) struct PreparedLogin<'a> {
    pub(crate) attempt: LoginAttempt<'a>,
    pub(crate) authority: AuthorityMetadata,
    resource: String,
    pub(crate) scope: ScopeSet,
    client: ClientIdentity,
    redirect: String,
    named: AuthorityRoute,
}

/// A login that waits for the person.
#[derive(Debug)]
pub struct PendingLogin<'a> {
    prepared: PreparedLogin<'a>,
    address: Url,
    secrets: FlowSecrets,
}

impl<'a> LoginAttempt<'a> {
    /// Finds out who is to be asked, and what.
    pub async fn begin(self, listener: &RedirectListener) -> Result<PendingLogin<'a>, LoginError> {
        let redirect = listener.address(self.settings);
        let prepared = self.prepare(redirect).await?;
        let secrets = FlowSecrets::random()?;
        let request = AuthorizationRequest {
            endpoint: &prepared.authority.authorization_endpoint,
            client: &prepared.client.id,
            redirect: &prepared.redirect,
            resource: &prepared.resource,
            scope: &prepared.scope,
        };
        Ok(PendingLogin {
            address: request.address(&secrets),
            secrets,
            prepared,
        })
    }

    /// `redirect` is where a browser would come back to.
    pub(crate) async fn prepare(self, redirect: String) -> Result<PreparedLogin<'a>, LoginError> {
        let server = address::server(self.server)?;
        let kept = self.file.load()?;
        let challenge = match kept.challenge {
            Some(challenge) => challenge,
            None => self.challenge(&server).await?,
        };
        let named = self.http.named_by(&server).await;
        let own = |login: &KeptLogin| login.server == self.server;
        let login = kept.login.filter(own);
        let resource = ProtectedResource::of(&self.http.to_server(), &server, &challenge).await?;
        let authority = AuthorityMetadata::of(&named, &server, &resource).await?;
        // Before anything is asked of that authority, a registration included.
        self.check_issuer(&authority.issuer, login.as_ref())?;
        let scope = self.scope(&challenge, &resource, &authority, login.as_ref());
        let client = registration::client(
            &named,
            &authority,
            self.settings,
            &redirect,
            &scope,
            login.as_ref(),
        );
        Ok(PreparedLogin {
            client: client.await?,
            authority,
            resource: resource.resource,
            scope,
            redirect,
            named,
            attempt: self,
        })
    }

    /// The operator's word counts, else where people logged in before: a server that was taken over cannot send
    /// them to another authority unseen.
    fn check_issuer(&self, issuer: &str, login: Option<&KeptLogin>) -> Result<(), LoginError> {
        let bare = |text: &str| text.trim_end_matches('/').to_owned();
        let said = bare(issuer);
        match (&self.settings.issuer, login) {
            (Some(wanted), _) if bare(wanted) != said => Err(LoginError::UnwantedIssuer {
                said: legible(&said),
                wanted: wanted.clone(),
            }),
            (None, Some(login)) if bare(&login.issuer) != said => Err(LoginError::ChangedIssuer {
                before: legible(&login.issuer),
                now: legible(&said),
            }),
            _ => Ok(()),
        }
    }

    /// What the server says to somebody without a token.
    async fn challenge(&self, server: &Url) -> Result<AuthChallenge, LoginError> {
        let hello = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "hermetic", "version": env!("CARGO_PKG_VERSION")},
            },
        });
        let both = "application/json, text/event-stream";
        let answer = self
            .http
            .to_server()
            .post_json(server, &hello, both)
            .await?;
        let headers = answer.headers.get_all("www-authenticate").iter();
        let read = AuthChallenge::read(headers.filter_map(|value| value.to_str().ok()));
        let wants_login = matches!(
            answer.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        );
        Ok(read.filter(|_| wants_login).unwrap_or_default())
    }

    /// The operator's word, else what the server wants. A login that was too small grows: what it had is
    /// asked for again beside what was missing.
    fn scope(
        &self,
        challenge: &AuthChallenge,
        resource: &ProtectedResource,
        authority: &AuthorityMetadata,
        login: Option<&KeptLogin>,
    ) -> ScopeSet {
        if let Some(written) = &self.settings.scope {
            return ScopeSet::parse(written);
        }
        let suggested = challenge.scope.as_ref().or(resource.scopes.as_ref());
        let mut scope = suggested.cloned().unwrap_or_default();
        if challenge.is_insufficient
            && let Some(before) = login.and_then(|login| login.scope.clone())
        {
            scope = before.with(&scope);
        }
        if authority.scopes.contains("offline_access") {
            scope.add("offline_access");
        }
        scope
    }
}

impl PendingLogin<'_> {
    /// What the person opens in a browser.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    pub fn issuer(&self) -> &str {
        &self.prepared.authority.issuer
    }

    /// What is asked for, in the server's words.
    pub fn scope(&self) -> String {
        self.prepared.scope.as_text()
    }

    /// The code in what the browser came back with: an address, or what stands behind its question mark.
    pub fn code(&self, answer: &str) -> Result<Secret, LoginError> {
        let expected = ExpectedAnswer {
            state: &self.secrets.state,
            issuer: &self.prepared.authority.issuer,
            names_issuer: self.prepared.authority.names_issuer,
        };
        expected.code(answer)
    }

    /// The code, once a browser comes back to the port with it.
    pub async fn wait(&self, listener: &RedirectListener) -> Result<Secret, LoginError> {
        let patience = self.prepared.attempt.settings.timeout;
        let waited = timeout(patience, listener.answer(|answer| self.code(answer)));
        waited
            .await
            .unwrap_or_else(|_| Err(LoginError::Slow(patience.as_secs())))
    }

    /// Trades the code for tokens and keeps them.
    pub async fn finish(self, code: &Secret) -> Result<(), LoginError> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code.expose()),
            ("redirect_uri", &self.prepared.redirect),
            ("code_verifier", self.secrets.verifier.expose()),
        ];
        self.prepared.trade(&fields).await
    }
}

impl PreparedLogin<'_> {
    pub(crate) fn endpoint(&self) -> TokenEndpoint<'_> {
        TokenEndpoint {
            http: &self.named,
            address: &self.authority.token_endpoint,
            client: &self.client,
            resource: &self.resource,
        }
    }

    /// Trades what the person brought for tokens and keeps them.
    pub(crate) async fn trade(&self, fields: &[(&str, &str)]) -> Result<(), LoginError> {
        let attempt = &self.attempt;
        let locked = attempt.file.lock().await?;
        let room = locked.reserve()?;
        let now = attempt.clock.now();
        let given = self.endpoint().ask(fields, now).await?;
        let scope = Some(self.scope.clone());
        let login = KeptLogin {
            server: attempt.server.to_owned(),
            resource: self.resource.clone(),
            issuer: self.authority.issuer.clone(),
            token_endpoint: self.authority.token_endpoint.to_string(),
            is_registered: attempt.settings.client_id.is_none() && !is_document(&self.client),
            client: self.client.clone(),
            redirect: self.redirect.clone(),
            access: given.access,
            refresh: given.refresh,
            since_seconds: now.seconds(),
            expires_seconds: given.expires.map(Timestamp::seconds),
            // It may have given less than was asked for, and says so then.
            scope: given.scope.or(scope).filter(|scope| !scope.is_empty()),
        };
        let state = LoginState {
            challenge: None,
            login: Some(login),
        };
        Ok(locked.write(&room, &state)?)
    }
}

fn is_document(client: &ClientIdentity) -> bool {
    client.id.starts_with("https://")
}
