//! A login by a code that a person types in on another device (RFC 8628), for machines without a browser.
//!
//! Whoever sees the code can hand it to somebody else to approve. So it is typed in at a page of the issuer that
//! was named and at no other: a hostile authority cannot have a person approve its own client at an honest one
//! unseen.

use std::time::Duration;

use hermetic_types::Secret;
use reqwest::Url;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::address::{self, AddressRule};
use crate::discovery::is_at_issuer;
use crate::failure::{LoginError, legible};
use crate::login::{LoginAttempt, PreparedLogin};
use crate::wire::shown;

pub(crate) const DEVICE_GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// What a client is registered with that no browser comes back to.
pub(crate) const NO_WAY_BACK: &str = "http://127.0.0.1/device";

/// Between two questions, where the authority does not say.
const USUAL_PAUSE: Duration = Duration::from_secs(5);
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const LONGEST_CODE: usize = 64;

/// A login that waits for a code to be typed in elsewhere.
#[derive(Debug)]
pub struct PendingDeviceLogin<'a> {
    prepared: PreparedLogin<'a>,
    page: Url,
    user_code: String,
    device_code: Secret,
    pause: Duration,
    patience: Duration,
}

impl<'a> LoginAttempt<'a> {
    /// The same with a code instead of a browser on this machine.
    pub async fn begin_on_device(self) -> Result<PendingDeviceLogin<'a>, LoginError> {
        let server = address::server(self.server)?;
        let prepared = self.prepare(NO_WAY_BACK.to_owned()).await?;
        let authority = &prepared.authority;
        let Some(endpoint) = &authority.device_endpoint else {
            return Err(LoginError::NoDeviceCodes(authority.issuer.clone()));
        };
        let scope = prepared.scope.as_text();
        let fields: &[(&str, &str)] = match scope.is_empty() {
            true => &[],
            false => &[("scope", &scope)],
        };
        let answer = prepared.endpoint().ask_at(endpoint, fields).await?;
        let missing = |what| LoginError::NoDocument {
            address: shown(endpoint),
            what,
        };
        let text = |name: &str| answer.text(name).filter(|text| !text.is_empty());
        // Google's has another name.
        let page = text("verification_uri").or_else(|| text("verification_url"));
        let page = page.ok_or_else(|| missing("a page for the code"))?;
        let page = AddressRule::of_server(&server).check("the page for the code", page)?;
        let issuer = Url::parse(&authority.issuer).ok();
        if !issuer.is_some_and(|issuer| is_at_issuer(&page, &issuer)) {
            return Err(LoginError::ForeignLoginPage {
                issuer: legible(&authority.issuer),
                page: shown(&page),
            });
        }
        let user_code = text("user_code").filter(|code| is_typable(code));
        let user_code = user_code.ok_or_else(|| missing("a code that can be typed"))?;
        let device_code = text("device_code").ok_or_else(|| missing("a code for the device"))?;
        let seconds = |name: &str| answer.json.get(name).and_then(Value::as_u64);
        let pause = seconds("interval").map_or(USUAL_PAUSE, Duration::from_secs);
        let most = prepared.attempt.settings.timeout;
        let patience = seconds("expires_in").map_or(most, Duration::from_secs);
        Ok(PendingDeviceLogin {
            user_code: user_code.to_owned(),
            device_code: Secret::new(device_code),
            pause: pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
            patience: patience.min(most),
            page,
            prepared,
        })
    }
}

impl PendingDeviceLogin<'_> {
    /// Where the person types the code in.
    pub fn page(&self) -> &str {
        self.page.as_str()
    }

    /// What they type.
    pub fn code(&self) -> &str {
        &self.user_code
    }

    pub fn issuer(&self) -> &str {
        &self.prepared.authority.issuer
    }

    /// What is asked for, in the server's words.
    pub fn scope(&self) -> String {
        self.prepared.scope.as_text()
    }

    /// Asks now and then whether they did, and keeps the tokens that come of it.
    pub async fn finish(self) -> Result<(), LoginError> {
        let fields = [
            ("grant_type", DEVICE_GRANT),
            ("device_code", self.device_code.expose()),
        ];
        let end = Instant::now() + self.patience;
        let mut pause = self.pause;
        loop {
            if Instant::now() + pause > end {
                return Err(LoginError::Slow(self.patience.as_secs()));
            }
            sleep(pause).await;
            match self.prepared.trade(&fields).await {
                Err(LoginError::TokenRefused { code, .. }) if code == "authorization_pending" => {}
                Err(LoginError::TokenRefused { code, .. }) if code == "slow_down" => {
                    pause = (pause + USUAL_PAUSE).min(LONGEST_PAUSE);
                }
                traded => return traded,
            }
        }
    }
}

/// Letters, digits and dashes: it is printed at a terminal.
fn is_typable(code: &str) -> bool {
    code.len() <= LONGEST_CODE
        && code
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b' '))
}
