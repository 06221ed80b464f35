//! As which client we ask: one that the operator registered, a document about us, or one that is
//! registered on the way (RFC 7591).

use hermetic_types::Secret;
use reqwest::Url;
use serde_json::json;

use crate::device_login::{DEVICE_GRANT, NO_WAY_BACK};
use crate::discovery::AuthorityMetadata;
use crate::failure::{LoginError, after_colon};
use crate::login_file::KeptLogin;
use crate::scope::ScopeSet;
use crate::settings::OAuthSettings;
use crate::token::{ClientAuth, ClientIdentity};
use crate::wire::{AuthorityRoute, WireAnswer, shown};

const LONGEST_ID: usize = 2048;

/// In the order of the specification. `kept`: the login before this one, whose registration is used again.
pub(crate) async fn client(
    http: &AuthorityRoute,
    authority: &AuthorityMetadata,
    settings: &OAuthSettings,
    redirect: &str,
    scope: &ScopeSet,
    kept: Option<&KeptLogin>,
) -> Result<ClientIdentity, LoginError> {
    if let Some(id) = &settings.client_id {
        let secret = settings.client_secret.clone();
        let auth = match secret {
            Some(_) => ClientAuth::with_secret(authority.client_auth.as_deref()),
            None => ClientAuth::Public,
        };
        return Ok(ClientIdentity {
            id: id.clone(),
            secret,
            auth,
        });
    }
    if let Some(document) = &settings.client_metadata_url
        && authority.takes_metadata_documents
    {
        return Ok(ClientIdentity {
            id: document.clone(),
            secret: None,
            auth: ClientAuth::Public,
        });
    }
    // One that was registered elsewhere, or for another way back, is not known there.
    let same = |kept: &&KeptLogin| {
        kept.is_registered && kept.issuer == authority.issuer && kept.redirect == redirect
    };
    if let Some(kept) = kept.filter(same) {
        return Ok(kept.client.clone());
    }
    register(http, authority, settings, redirect, scope).await
}

async fn register(
    http: &AuthorityRoute,
    authority: &AuthorityMetadata,
    settings: &OAuthSettings,
    redirect: &str,
    scope: &ScopeSet,
) -> Result<ClientIdentity, LoginError> {
    let Some(endpoint) = &authority.registration_endpoint else {
        return Err(LoginError::NoRegistration(authority.issuer.clone()));
    };
    let offered = authority.client_auth.as_deref();
    let wanted = match offered {
        // A program on somebody's machine keeps no secret from them, so none is wanted.
        Some(offered) if !offered.contains(&ClientAuth::Public) => {
            ClientAuth::with_secret(Some(offered))
        }
        Some(_) | None => ClientAuth::Public,
    };
    let mut grants = vec!["authorization_code", "refresh_token"];
    if redirect == NO_WAY_BACK {
        grants.push(DEVICE_GRANT);
    }
    let mut about_us = json!({
        "client_name": settings.client_name,
        "redirect_uris": [redirect],
        "grant_types": grants,
        "response_types": ["code"],
        "application_type": "native",
        "token_endpoint_auth_method": wanted.name(),
    });
    if !scope.is_empty() {
        about_us["scope"] = scope.as_text().into();
    }
    let answer = http
        .post_json(endpoint, &about_us, "application/json")
        .await?;
    if !answer.status.is_success() {
        let words = answer.text("error_description").or(answer.text("error"));
        return Err(LoginError::Refused {
            address: shown(endpoint),
            status: answer.status,
            words: after_colon(words.unwrap_or_default()),
        });
    }
    granted(endpoint, &answer, offered)
}

/// What a server that registered us says we are.
fn granted(
    endpoint: &Url,
    answer: &WireAnswer,
    offered: Option<&[ClientAuth]>,
) -> Result<ClientIdentity, LoginError> {
    let id = answer
        .text("client_id")
        .filter(|id| (1..=LONGEST_ID).contains(&id.len()));
    let id = id.ok_or_else(|| LoginError::NoDocument {
        address: shown(endpoint),
        what: "the id of a client",
    })?;
    let secret = answer
        .text("client_secret")
        .filter(|secret| !secret.is_empty());
    let said = answer
        .text("token_endpoint_auth_method")
        .and_then(ClientAuth::named);
    let auth = match (said, secret) {
        (_, None) => ClientAuth::Public,
        (Some(said), Some(_)) if said != ClientAuth::Public => said,
        // It gave a secret and did not say for what.
        (_, Some(_)) => ClientAuth::with_secret(offered),
    };
    Ok(ClientIdentity {
        id: id.to_owned(),
        secret: secret.map(Secret::new),
        auth,
    })
}
