//! Every path, and who answers there.

use axum::Router;
use axum::extract::{Extension, Query, Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::access::{EnterRefused, Viewer};
use crate::access::{cookie, guard, is_secure, secure_headers, session_cookie};
use crate::acts::{self, Act};
use crate::failure::PageFailure;
use crate::live;
use crate::pages;
use crate::state::{DashboardParts, DashboardState, SharedState, small_body};
use crate::{api, assets, terminal};

/// The dashboard, to be answered on the gateway's port until `stop`. Must be called within a runtime.
pub fn dashboard_routes(parts: DashboardParts, stop: &CancellationToken) -> Router {
    let state = DashboardState::new(parts);
    tokio::spawn(live::watch(state.clone(), stop.clone()));
    let events = Router::new()
        .route("/events", get(live::events))
        .with_state((state.clone(), stop.clone()));
    let pages = Router::new()
        .route("/enter", get(enter).post(enter_by_password))
        .route("/leave", post(leave))
        .merge(pages::routes())
        .merge(api::routes())
        .with_state(state.clone())
        .merge(events)
        .merge(terminal::routes(&state, stop))
        .fallback(pages::not_found)
        // Around everything but the files below, the page of no name included: nobody learns which
        // pages there are.
        .layer(from_fn_with_state(state, guard));
    // The files hold nothing of anybody's, and the page for signing in needs them.
    pages.merge(assets::routes()).layer(from_fn(secure_headers))
}

#[derive(Deserialize)]
struct EnterQuery {
    key: Option<String>,
}

/// Lets somebody in by a link, and leads away from the address that has it.
async fn enter(
    State(state): State<SharedState>,
    Query(query): Query<EnterQuery>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let Some(link) = query.key else {
        return pages::sign_in_page(StatusCode::OK, &state.access.settings, None);
    };
    // Whoever only looks whether it is there does not use it up.
    if method == Method::HEAD {
        return StatusCode::OK.into_response();
    }
    let entered = state.access.enter_by_link(&link).await;
    signed_in(&state, &headers, entered).await
}

#[derive(Deserialize)]
struct PasswordForm {
    password: String,
}

async fn enter_by_password(State(state): State<SharedState>, request: Request) -> Response {
    let headers = request.headers().clone();
    let body = small_body(request.into_body()).await.unwrap_or_default();
    let form = serde_urlencoded::from_bytes::<PasswordForm>(&body);
    let entered = match form {
        Ok(form) => state.access.enter_by_password(&form.password).await,
        Err(_) => Err(EnterRefused::Password),
    };
    signed_in(&state, &headers, entered).await
}

async fn signed_in(
    state: &SharedState,
    headers: &HeaderMap,
    entered: Result<(String, Viewer), EnterRefused>,
) -> Response {
    let (session, viewer) = match entered {
        Ok(entered) => entered,
        Err(EnterRefused::Key(error)) => {
            tracing::error!(%error, "nobody can sign in to the dashboard");
            return EnterRefused::Key(error).into_response();
        }
        Err(refused) => {
            let status = refused.into_response().status();
            let text = match status {
                StatusCode::TOO_MANY_REQUESTS => "Too many wrong passwords. Wait a minute.",
                StatusCode::SERVICE_UNAVAILABLE => "Nobody can sign in at this moment.",
                _ => {
                    "That did not let you in: a link works once and for a quarter of an hour, and a \
                     password has to be the right one."
                }
            };
            return pages::sign_in_page(status, &state.access.settings, Some(text));
        }
    };
    if let Err(failure) = acts::record(state, &viewer, "signed_in", "") {
        // Nobody is in whose coming could not be written down.
        let _ = state.access.sessions.close(&session).await;
        return failure.into_response();
    }
    // A session that the browser had before is not carried on: what was put there by somebody else ends.
    // Only once the new one counts: whoever fails to sign in keeps what they had.
    if let Some(before) = cookie(headers) {
        let _ = state.access.sessions.close(before).await;
    }
    let cookie = session_cookie(Some(&session), is_secure(headers));
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, "/")]).into_response();
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}

#[derive(Deserialize)]
struct LeaveForm {
    csrf: Option<String>,
}

/// Ends the session. Viewers may do that too, so it is no [`Act`].
async fn leave(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    request: Request,
) -> Result<Response, PageFailure> {
    let headers = request.headers().clone();
    let body = small_body(request.into_body()).await.unwrap_or_default();
    let form = serde_urlencoded::from_bytes::<LeaveForm>(&body).ok();
    if form.and_then(|form| form.csrf) != viewer.csrf {
        return Err(PageFailure::Forbidden("This form is not of your session."));
    }
    if let Some(session) = cookie(&headers) {
        state.access.sessions.close(session).await?;
    }
    acts::record(&state, &viewer, "signed_out", "")?;
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, "/enter")]).into_response();
    let cookie = session_cookie(None, is_secure(&headers));
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// Leads a person back to a page, and tells a program that it is done.
pub(crate) fn done<T>(act: &Act<T>, back: &str) -> Response {
    match act.for_program {
        true => axum::Json(serde_json::json!({ "done": true })).into_response(),
        false => (StatusCode::SEE_OTHER, [(LOCATION, back)]).into_response(),
    }
}
