//! Every path, and who answers there.

use axum::Router;
use axum::extract::{Extension, Query, Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
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
        .route("/enter", get(look_in).post(enter))
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

/// Asks whether this browser is to be signed in by the link in the address. Nobody is by looking at it: anybody's
/// page can lead a browser here, and would sign it in as somebody else. Whoever only looks whether it is there does
/// not use it up, either.
async fn look_in(State(state): State<SharedState>, Query(query): Query<EnterQuery>) -> Response {
    let settings = &state.access.settings;
    let Some(link) = query.key else {
        return pages::sign_in_page(StatusCode::OK, settings, None);
    };
    match state.access.look_at_link(&link).await {
        Ok(viewer) => pages::link_page(&viewer),
        Err(refused) => not_signed_in(&state, refused),
    }
}

#[derive(Default, Deserialize)]
struct PasswordForm {
    password: Option<String>,
}

/// Lets somebody in by the link in the address, and leads away from it; or by a password. Only a form of our own page
/// comes this far.
async fn enter(
    State(state): State<SharedState>,
    Query(query): Query<EnterQuery>,
    request: Request,
) -> Response {
    let headers = request.headers().clone();
    let body = small_body(request.into_body()).await.unwrap_or_default();
    let form = serde_urlencoded::from_bytes::<PasswordForm>(&body).unwrap_or_default();
    let entered = match (query.key, form.password) {
        // Whoever typed a password meant that, also at the address of a link that is not valid any more.
        (_, Some(password)) => state.access.enter_by_password(&password).await,
        (Some(link), None) => state.access.enter_by_link(&link).await,
        (None, None) => Err(EnterRefused::Password),
    };
    signed_in(&state, &headers, entered).await
}

fn not_signed_in(state: &SharedState, refused: EnterRefused) -> Response {
    if let EnterRefused::Key(error) = refused {
        tracing::error!(%error, "nobody can sign in to the dashboard");
        return EnterRefused::Key(error).into_response();
    }
    let status = refused.into_response().status();
    let text = match status {
        StatusCode::TOO_MANY_REQUESTS => "Too many wrong passwords. Wait a minute.",
        StatusCode::SERVICE_UNAVAILABLE => "Nobody can sign in at this moment.",
        _ => {
            "That did not let you in: a link works once and for a quarter of an hour, and a password has to be \
             the right one."
        }
    };
    pages::sign_in_page(status, &state.access.settings, Some(text))
}

async fn signed_in(
    state: &SharedState,
    headers: &HeaderMap,
    entered: Result<(String, Viewer), EnterRefused>,
) -> Response {
    let (session, viewer) = match entered {
        Ok(entered) => entered,
        Err(refused) => return not_signed_in(state, refused),
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
