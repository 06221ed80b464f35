//! Why a page could not be made.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hermetic_access::PairingError;
use hermetic_audit::AppendError;
use hermetic_egress::BookError;
use hermetic_store::StoreError;
use thiserror::Error;

use crate::ActFailed;
use crate::pages::plain_page;

#[derive(Debug, Error)]
pub(crate) enum PageFailure {
    #[error("the store does not answer")]
    Store(#[from] StoreError),
    #[error("the audit record cannot be written, so nothing was done")]
    Audit(#[from] AppendError),
    #[error("the audit record cannot be read")]
    Read(#[from] std::io::Error),
    #[error(transparent)]
    Book(#[from] BookError),
    #[error(transparent)]
    Pairing(#[from] PairingError),
    #[error(transparent)]
    Act(#[from] ActFailed),
    #[error("{0}")]
    NotFound(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Forbidden(&'static str),
    #[error("{0}")]
    Busy(&'static str),
}

/// What a program is told where a person gets a page.
#[derive(Clone, Debug)]
pub(crate) struct FailureText(pub(crate) String);

impl PageFailure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Busy(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Pairing(PairingError::Approve(_)) => StatusCode::BAD_REQUEST,
            Self::Book(BookError::Line { .. } | BookError::TooLarge { .. }) => StatusCode::CONFLICT,
            Self::Store(_)
            | Self::Audit(_)
            | Self::Read(_)
            | Self::Book(_)
            | Self::Pairing(_)
            | Self::Act(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The log learns the causes, which a page does not show.
    pub(crate) fn log(&self) {
        if self.status().is_server_error() {
            let mut text = self.to_string();
            let mut cause = std::error::Error::source(self);
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            tracing::error!(error = text, "a page of the dashboard failed");
        }
    }
}

impl IntoResponse for PageFailure {
    fn into_response(self) -> Response {
        self.log();
        let (status, text) = (self.status(), self.to_string());
        let onward = Some(("/", "To the overview"));
        let mut response = plain_page(status, "That did not work", &text, onward);
        response.extensions_mut().insert(FailureText(text));
        response
    }
}
