//! Requests in the name of a login, and what is done where the server does not take it.

use std::time::Duration;

use hermetic_egress::EgressClient;
use hermetic_oauth::{AuthChallenge, BearerError, BearerLogin};
use hermetic_types::Secret;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use tokio::time::Instant;

use super::http::broken;
use super::message::RequestFailure;
use crate::web_request::{WebAnswer, WebRequest};

/// A server that does not take the login, or wants a larger one.
pub(super) struct RefusedLogin {
    pub(super) status: StatusCode,
    pub(super) why: RequestFailure,
}

/// Sends with the token of the login. One that the server does not take is renewed once; what the server
/// wants instead is remembered for the person who logs in next.
pub(super) async fn send(
    login: &BearerLogin,
    message: WebRequest,
    client: &EgressClient,
    patience: Duration,
) -> Result<Result<WebAnswer, RefusedLogin>, RequestFailure> {
    let deadline = Instant::now() + patience;
    let mut token = match login.token().await {
        Ok(token) => Some(token),
        // Without one it says what it wants; some servers greet everybody.
        Err(BearerError::NoLogin(_)) => None,
        Err(error) => return Err(RequestFailure(error.to_string())),
    };
    let mut is_renewed = false;
    loop {
        let patience = deadline.saturating_duration_since(Instant::now());
        let sent = with_token(&message, token.as_ref())?.send(client, patience);
        let answer = sent.await.map_err(|error| broken(&error))?;
        let status = answer.status;
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok(Ok(answer));
        }
        let challenge = challenge(&answer);
        let is_insufficient = challenge
            .as_ref()
            .is_some_and(AuthChallenge::is_insufficient);
        if status == StatusCode::FORBIDDEN && !is_insufficient {
            return Ok(Ok(answer));
        }
        drop(answer);
        if let Some(held) = token.take().filter(|_| !is_insufficient && !is_renewed) {
            is_renewed = true;
            match login.after_refusal(held).await {
                Ok(renewed) => {
                    token = Some(renewed);
                    continue;
                }
                Err(error) => {
                    note(login, challenge).await;
                    let why = RequestFailure(error.to_string());
                    return Ok(Err(RefusedLogin { status, why }));
                }
            }
        }
        let why = wanted(login, challenge.as_ref(), is_renewed);
        note(login, challenge).await;
        return Ok(Err(RefusedLogin { status, why }));
    }
}

fn with_token(message: &WebRequest, token: Option<&Secret>) -> Result<WebRequest, RequestFailure> {
    let mut message = message.again();
    // What the file of the operator says besides is not for a server with logins.
    message.headers.remove(AUTHORIZATION);
    if let Some(token) = token {
        let value = Secret::new(format!("Bearer {}", token.expose()));
        let value = HeaderValue::from_str(value.expose());
        let mut value =
            value.map_err(|_| RequestFailure("its token fits into no header".to_owned()))?;
        value.set_sensitive(true);
        message.headers.insert(AUTHORIZATION, value);
    }
    Ok(message)
}

fn challenge(answer: &WebAnswer) -> Option<AuthChallenge> {
    let headers = answer.headers.get_all(WWW_AUTHENTICATE).iter();
    AuthChallenge::read(headers.filter_map(|value| value.to_str().ok()))
}

fn wanted(
    login: &BearerLogin,
    challenge: Option<&AuthChallenge>,
    is_renewed: bool,
) -> RequestFailure {
    let name = login.name();
    let insufficient = challenge.filter(|challenge| challenge.is_insufficient());
    RequestFailure(match insufficient {
        Some(challenge) => {
            let scope = challenge.scope().unwrap_or_else(|| "more".to_owned());
            format!(
                "its login does not cover this: it wants {scope:?}; the operator can log in again: \
                 hermetic mcp login {name}"
            )
        }
        None if is_renewed => format!(
            "it does not take its login, which was renewed just now; the operator can log in again: \
             hermetic mcp login {name}"
        ),
        None => BearerError::NoLogin(name.to_owned()).to_string(),
    })
}

async fn note(login: &BearerLogin, challenge: Option<AuthChallenge>) {
    let Some(challenge) = challenge else {
        return;
    };
    if let Err(error) = login.note(challenge).await {
        tracing::warn!(server = login.name(), %error, "what an MCP server wants of a login is not kept");
    }
}
