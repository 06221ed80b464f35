//! The way by which anything is done.
//!
//! An [`Act`] is made of a request by somebody who may act, whose form came from a page of theirs. It is the
//! only thing that writes acts into the audit record, and handlers that do something take one: none can
//! forget to ask.

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hermetic_audit::{AuditEvent, AuditText};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;

use crate::access::Viewer;
use crate::api;
use crate::failure::PageFailure;
use crate::pages::plain_page;
use crate::state::{DashboardState, SharedState, small_body};

/// Something that somebody may do, and what they sent along.
#[derive(Debug)]
pub(crate) struct Act<T> {
    pub(crate) form: T,
    pub(crate) viewer: Viewer,
    /// Whether a program waits for JSON.
    pub(crate) for_program: bool,
}

/// An act that was refused.
#[derive(Debug)]
pub(crate) struct ActRefused {
    for_program: bool,
    status: StatusCode,
    why: &'static str,
}

#[derive(Deserialize)]
struct FormToken {
    csrf: Option<String>,
}

impl<T> Act<T> {
    /// Whoever sent this, if they may act.
    pub(crate) fn viewer_of(request: &Request) -> Result<Viewer, ActRefused> {
        let for_program = request.uri().path().starts_with("/api/");
        let refused = |status, why| ActRefused {
            for_program,
            status,
            why,
        };
        let viewer = request.extensions().get::<Viewer>().cloned();
        let viewer = viewer.ok_or(refused(StatusCode::UNAUTHORIZED, "Nobody is signed in."))?;
        match viewer.may_act() {
            true => Ok(viewer),
            false => {
                let why = "You may look here, and not act. An operator can.";
                Err(refused(StatusCode::FORBIDDEN, why))
            }
        }
    }

    /// Holds the token of a form against the session. Programs have none, and need none.
    pub(crate) fn check_token(
        viewer: &Viewer,
        given: &str,
        for_program: bool,
    ) -> Result<(), ActRefused> {
        let Some(expected) = &viewer.csrf else {
            return Ok(());
        };
        match bool::from(given.as_bytes().ct_eq(expected.as_bytes())) {
            true => Ok(()),
            false => Err(ActRefused {
                for_program,
                status: StatusCode::FORBIDDEN,
                why: "This form is not of your session, or it is too old: go back, load the page \
                      again, and repeat it. Nothing was done.",
            }),
        }
    }

    /// Writes down that this is about to be done. What cannot be written down is not done.
    pub(crate) fn record(
        &self,
        state: &DashboardState,
        act: &'static str,
        what: &str,
    ) -> Result<(), PageFailure> {
        record(state, &self.viewer, act, what)
    }
}

/// Writes an act into the audit record.
pub(crate) fn record(
    state: &DashboardState,
    viewer: &Viewer,
    act: &'static str,
    what: &str,
) -> Result<(), PageFailure> {
    state.approvals.append(&AuditEvent::Dashboard {
        act: AuditText::constant(act),
        what: state.approvals.words(what),
        by: state.approvals.words(&viewer.who),
        role: AuditText::constant(viewer.role.name()),
    })?;
    Ok(())
}

impl<T: DeserializeOwned> FromRequest<SharedState> for Act<T> {
    type Rejection = ActRefused;

    async fn from_request(request: Request, _: &SharedState) -> Result<Self, ActRefused> {
        let for_program = request.uri().path().starts_with("/api/");
        let refused = |status, why| ActRefused {
            for_program,
            status,
            why,
        };
        // Before the body: whoever may not act does not make us read one.
        let viewer = Self::viewer_of(&request)?;
        let content = request.headers().get(CONTENT_TYPE).cloned();
        let is_json = content.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let body = small_body(request.into_body()).await;
        let body = body.ok_or(refused(StatusCode::PAYLOAD_TOO_LARGE, "That is too much."))?;
        let invalid = refused(StatusCode::BAD_REQUEST, "That form is not complete.");
        let form = match (&viewer.csrf, is_json) {
            // Only without a session: what a program sends needs no token, so no browser may be
            // able to send it.
            (None, true) => serde_json::from_slice(&body).map_err(|_| invalid)?,
            (None, false) => serde_urlencoded::from_bytes(&body).map_err(|_| invalid)?,
            (Some(_), _) => {
                let token = serde_urlencoded::from_bytes::<FormToken>(&body).ok();
                let given = token.and_then(|token| token.csrf).unwrap_or_default();
                Self::check_token(&viewer, &given, for_program)?;
                serde_urlencoded::from_bytes(&body).map_err(|_| invalid)?
            }
        };
        Ok(Self {
            form,
            viewer,
            for_program,
        })
    }
}

impl IntoResponse for ActRefused {
    fn into_response(self) -> Response {
        match self.for_program {
            true => api::refusal(self.status, self.why),
            false => plain_page(
                self.status,
                "Nothing was done",
                self.why,
                Some(("/", "To the overview")),
            ),
        }
    }
}
