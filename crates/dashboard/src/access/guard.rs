//! What stands before every page.
//!
//! In this order: the name under which we were asked for, then who asks, then, for whatever could change
//! something, where the request comes from. The token of a form is held against the session when the form is
//! read ([`crate::acts`]).

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use super::key::{digest, mac};
use super::{AccessKey, DashboardAccess, DashboardRole, EnterRefused, PassKind, Viewer, read_pass};
use crate::api;
use crate::failure::FailureText;
use crate::pages::{plain_page, sign_in_page};
use crate::state::SharedState;

pub(crate) const COOKIE_NAME: &str = "hermetic_dashboard";

const PROXY_SECRET: &str = "x-hermetic-proxy-secret";

/// No script but ours, no style but ours, nothing from anywhere else, in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Puts on every answer what keeps a browser from doing more with it than show it.
pub(crate) async fn secure_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let fixed = |text: &'static str| HeaderValue::from_static(text);
    headers.insert(CONTENT_SECURITY_POLICY, fixed(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(X_FRAME_OPTIONS, fixed("DENY"));
    // `no-referrer` would also take the origin from the forms of our own pages.
    headers.insert(REFERRER_POLICY, fixed("same-origin"));
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        headers.insert(HeaderName::from_static(name), fixed("same-origin"));
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert_with(|| fixed("no-store"));
    response
}

/// Lets through who may look, with their [`Viewer`] among the request's extensions.
pub(crate) async fn guard(
    State(state): State<SharedState>,
    mut request: Request,
    next: Next,
) -> Response {
    let access = &state.access;
    let for_program = request.uri().path().starts_with("/api/");
    let refuse = |status: StatusCode, title: &'static str, text: &str| match for_program {
        true => api::refusal(status, text),
        false => plain_page(status, title, text, None),
    };
    if !is_asked_for_by_name(access, request.headers()) {
        let text = "This dashboard was asked for under a name that is not its own. Use the address that \
                    `hermetic dashboard link` prints, or write the name into gateway.dashboard.names.";
        return refuse(StatusCode::MISDIRECTED_REQUEST, "Not under this name", text);
    }
    if !access.settings.is_open() {
        let text = "The dashboard listens on an address that others can reach, and nothing keeps them \
                    out. Write gateway.dashboard.password (or HERMETIC_DASHBOARD_PASSWORD), set up \
                    gateway.dashboard.proxy_secret, or listen on 127.0.0.1; then restart the gateway.";
        return refuse(StatusCode::FORBIDDEN, "Locked", text);
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let is_open_page = request.uri().path() == "/enter";
    let bearer = bearer(request.headers()).map(str::to_owned);
    // A token is sent by no browser unasked, so no page of somebody else's can make use of it.
    if bearer.is_none() && changes && !comes_from_here(request.headers()) {
        let text = "This request did not come from a page of this dashboard, so nothing was done.";
        return refuse(StatusCode::FORBIDDEN, "Not from here", text);
    }
    // After both looks, which count for signing in too: nobody's page may sign a browser in as
    // somebody else.
    if is_open_page {
        return next.run(request).await;
    }
    match who(access, request.headers(), bearer.as_deref(), for_program).await {
        Ok(Some(viewer)) => {
            request.extensions_mut().insert(viewer);
            let response = next.run(request).await;
            match response.extensions().get::<FailureText>() {
                Some(FailureText(text)) if for_program => api::refusal(response.status(), text),
                _ => response,
            }
        }
        Ok(None) if for_program => api::refusal(
            StatusCode::UNAUTHORIZED,
            "a token is needed: `hermetic dashboard token` makes one",
        ),
        Ok(None) => sign_in_page(StatusCode::UNAUTHORIZED, &access.settings, None),
        Err(error) => {
            tracing::error!(%error, "who looks at the dashboard could not be found out");
            refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "Nobody gets in at this moment",
                &error.to_string(),
            )
        }
    }
}

/// Who this is, if anybody whom we know.
async fn who(
    access: &DashboardAccess,
    headers: &HeaderMap,
    bearer: Option<&str>,
    for_program: bool,
) -> Result<Option<Viewer>, EnterRefused> {
    let now = access.now();
    let key = match AccessKey::load(&access.settings.state)? {
        Some(key) => key,
        // Who comes by a proxy needs no link of ours, so nobody may ever have made one.
        None if access.settings.proxy.is_some() => {
            AccessKey::load_or_create(&access.settings.state)?
        }
        None => return Ok(None),
    };
    if let Some(token) = bearer {
        // A token is for programs: a page that was shown for one would have no session to act by.
        let pass =
            read_pass(&key, token, now).filter(|pass| for_program && pass.kind == PassKind::Token);
        return Ok(pass.map(|pass| Viewer::new(format!("token:{}", pass.name), pass.role)));
    }
    if let Some(viewer) = by_proxy(access, headers, &key) {
        return Ok(Some(viewer));
    }
    match cookie(headers) {
        Some(cookie) => Ok(access.sessions.find(&key, cookie, now).await?),
        None => Ok(None),
    }
}

/// Whether who came with these headers is let in to this day, as who they were and with what they might. What
/// cannot be found out is a no.
pub(crate) async fn is_still_in(state: &SharedState, headers: &HeaderMap, viewer: &Viewer) -> bool {
    let found = who(&state.access, headers, None, false).await;
    matches!(found, Ok(Some(found)) if found.who == viewer.who && found.role == viewer.role)
}

fn by_proxy(access: &DashboardAccess, headers: &HeaderMap, key: &AccessKey) -> Option<Viewer> {
    let proxy = access.settings.proxy.as_ref()?;
    let secret = headers.get(PROXY_SECRET)?.to_str().ok()?;
    // Hashed first, so that the time it takes says nothing about how long the right one is.
    if !bool::from(digest(secret).ct_eq(&digest(proxy.secret.expose()))) {
        return None;
    }
    let mut users = headers.get_all(proxy.user_header.as_str()).iter();
    let user = users.next()?.to_str().ok()?.trim();
    // Two of them: one may be the person's own.
    if user.is_empty() || user.len() > 256 || users.next().is_some() {
        return None;
    }
    let role = match proxy.operators.iter().any(|one| one == user) {
        true => DashboardRole::Operator,
        false => DashboardRole::Viewer,
    };
    let who = format!("proxy:{user}");
    // There is no session to take it from. It follows from the key, so it outlives a restart and
    // ends with the key.
    let csrf = mac(key.fingerprint().as_bytes(), &who);
    Some(Viewer {
        csrf: Some(URL_SAFE_NO_PAD.encode(csrf)),
        ..Viewer::new(who, role)
    })
}

fn is_asked_for_by_name(access: &DashboardAccess, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| access.settings.knows_name(host))
}

/// Whether a request that could change something was sent by a page under the same name. Browsers say so;
/// whoever says nothing is no browser of today and has no business with forms.
fn comes_from_here(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else {
        return false;
    };
    let bare = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"));
    bare.is_some_and(|bare| bare.eq_ignore_ascii_case(host))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(str::trim)
}

/// The cookie of the session.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(COOKIE).iter();
    let texts = all.filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE_NAME).then_some(value))
}

/// The header that hands a browser its session, or takes it away.
pub(crate) fn session_cookie(value: Option<&str>, is_secure: bool) -> HeaderValue {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = match value {
        Some(value) => {
            let age = super::SESSION_LENGTH.as_secs();
            format!(
                "{COOKIE_NAME}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}"
            )
        }
        None => format!("{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{secure}"),
    };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Whether the browser speaks TLS with whoever stands before us.
pub(crate) fn is_secure(headers: &HeaderMap) -> bool {
    let proto = headers.get("x-forwarded-proto");
    let from_https = |origin: &HeaderValue| origin.as_bytes().starts_with(b"https://");
    proto.is_some_and(|value| value.as_bytes() == b"https")
        || headers.get(ORIGIN).is_some_and(from_https)
}

impl IntoResponse for EnterRefused {
    fn into_response(self) -> Response {
        let text = self.to_string();
        let status = match self {
            Self::Link | Self::Password => StatusCode::UNAUTHORIZED,
            Self::TooMany => StatusCode::TOO_MANY_REQUESTS,
            Self::Key(_) | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        plain_page(status, "Not signed in", &text, None)
    }
}
