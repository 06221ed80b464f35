//! The requests of a terminal.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::stream;
use hermetic_types::{ConversationKey, SandboxId};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::bounds::{MOST_KEYS, SeatGuard, SeatsTaken, TerminalHandle, TerminalOrder};
use super::session::TerminalSession;
use super::{OpenedShell, TerminalRefused, TerminalSize};
use crate::ActFailed;
use crate::acts::{self, Act};
use crate::failure::PageFailure;
use crate::state::{DashboardState, SharedState};

pub(crate) fn routes(state: &SharedState, stop: &CancellationToken) -> Router {
    let opening = Router::new()
        .route("/terminal/open", post(open))
        .with_state((state.clone(), stop.clone()));
    Router::new()
        .route("/terminal/keys", post(keys))
        .route("/terminal/resize", post(resize))
        .route("/terminal/close", post(close))
        .with_state(state.clone())
        .merge(opening)
}

#[derive(Debug, Deserialize)]
struct OpenForm {
    key: String,
    columns: u16,
    rows: u16,
}

#[derive(Debug, Deserialize)]
struct KeysForm {
    id: String,
    /// Base64: keys are bytes, and a form is text.
    keys: String,
    /// `no` for what the screen answers to a program by itself: that keeps no terminal open.
    typed: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ResizeForm {
    id: String,
    columns: u16,
    rows: u16,
}

#[derive(Debug, Deserialize)]
struct CloseForm {
    id: String,
}

/// Opens a shell; the answer is what it writes, until one of the two is gone.
async fn open(
    State((state, stop)): State<(SharedState, CancellationToken)>,
    request: Request,
) -> Response {
    // Kept, so that it can be asked later whether whoever opened it would still be let in.
    let entry = request.headers().clone();
    let act = match Act::<OpenForm>::from_request(request, &state).await {
        Ok(act) => act,
        Err(refused) => return refused.into_response(),
    };
    let key = ConversationKey::new(&act.form.key);
    let (seat, opened, what) = match start(&state, &act, &key).await {
        Ok(started) => started,
        Err(failure) => return failure.into_response(),
    };
    let (session, frames) = TerminalSession::new(opened, seat, entry, act.viewer, what);
    // It ends with the body of the answer, or with the gateway.
    tokio::spawn(session.serve(state, stop));
    let body = stream::unfold(frames, |mut frames| async move {
        let frame: Bytes = frames.recv().await?;
        Some((Ok::<_, Infallible>(frame), frames))
    });
    let headers = [
        (CONTENT_TYPE, "application/octet-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from_stream(body)).into_response()
}

async fn start(
    state: &Arc<DashboardState>,
    act: &Act<OpenForm>,
    key: &ConversationKey,
) -> Result<(SeatGuard, OpenedShell, String), PageFailure> {
    // A token has no form of ours. What it would have typed, nobody did.
    if act.viewer.csrf.is_none() {
        return Err(PageFailure::Forbidden("A terminal is for people."));
    }
    let Some(opener) = &state.terminals else {
        let why = "The gateway is not running, so there is no sandbox to open a terminal in.";
        return Err(ActFailed(why.to_owned()).into());
    };
    // Taken before anything is asked of a backend: the bound holds for shells that are being
    // opened, too.
    let seat = state.terminal_seats.take(&act.viewer.who);
    let seat = seat.map_err(|taken| {
        PageFailure::Busy(match taken {
            SeatsTaken::ByYou => "You have four terminals open already. Close one of them first.",
            SeatsTaken::ByAll => {
                "Sixteen terminals are open already. Somebody has to close one first."
            }
        })
    })?;
    let sandbox = living(state, key).await?;
    let what = format!("{key} {sandbox}");
    // Before it is opened: a shell of which nothing is written down is none.
    act.record(state, "open_terminal", &what)?;
    let size = TerminalSize::new(act.form.columns, act.form.rows);
    match opener.open(key, &sandbox, size).await {
        Ok(opened) => Ok((seat, opened, what)),
        // The record says that one was opened, so it has to say that it was not.
        Err(refused) => {
            let _ = acts::record(
                state,
                &act.viewer,
                "close_terminal",
                &format!("{what} refused"),
            );
            Err(match refused {
                TerminalRefused::NotLiving | TerminalRefused::NoBoundary => {
                    PageFailure::Conflict(refused.to_string())
                }
                TerminalRefused::NotStarted => ActFailed(refused.to_string()).into(),
            })
        }
    }
}

/// The sandbox that the conversation uses now.
async fn living(state: &DashboardState, key: &ConversationKey) -> Result<SandboxId, PageFailure> {
    let entry = state.ledger.of(key).await?;
    let entry = entry.ok_or(PageFailure::NotFound("This conversation has no sandbox."))?;
    Ok(entry.id)
}

async fn keys(
    State(state): State<SharedState>,
    act: Act<KeysForm>,
) -> Result<StatusCode, PageFailure> {
    let terminal = found(&state, &act, &act.form.id)?;
    let keys = URL_SAFE_NO_PAD.decode(&act.form.keys);
    let keys = keys.map_err(|_| PageFailure::Invalid("That is not base64.".to_owned()))?;
    if keys.len() > MOST_KEYS {
        return Err(PageFailure::Invalid(
            "Those are too many keys at once.".to_owned(),
        ));
    }
    if act.form.typed.as_deref() != Some("no") {
        terminal.note_typing();
    }
    match terminal.write(keys.into()).await {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(PageFailure::Busy(
            "The program in the terminal does not read what is typed.",
        )),
    }
}

async fn resize(
    State(state): State<SharedState>,
    act: Act<ResizeForm>,
) -> Result<StatusCode, PageFailure> {
    let terminal = found(&state, &act, &act.form.id)?;
    let size = TerminalSize::new(act.form.columns, act.form.rows);
    order(&terminal, TerminalOrder::Resize(size))
}

async fn close(
    State(state): State<SharedState>,
    act: Act<CloseForm>,
) -> Result<StatusCode, PageFailure> {
    let terminal = found(&state, &act, &act.form.id)?;
    order(&terminal, TerminalOrder::Close)
}

fn found<T>(state: &DashboardState, act: &Act<T>, id: &str) -> Result<TerminalHandle, PageFailure> {
    let found = state.terminal_seats.find(id, &act.viewer.who);
    found.ok_or(PageFailure::NotFound("This terminal is closed."))
}

fn order(terminal: &TerminalHandle, order: TerminalOrder) -> Result<StatusCode, PageFailure> {
    match terminal.orders.try_send(order) {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(_) => Err(PageFailure::Busy("The terminal is busy, or closed.")),
    }
}
