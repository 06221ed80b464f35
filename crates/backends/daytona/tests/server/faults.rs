//! Failing on purpose, and remembering what was asked.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{Cloud, KEY};

pub(crate) struct Fault {
    /// Method and path; an asterisk stands for one segment.
    pub(crate) request: &'static str,
    pub(crate) how: How,
    pub(crate) times: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum How {
    /// Nothing is done.
    Refuse { status: u16, said: &'static str },
    /// Nothing is done, and it says when to come back.
    Later { seconds: u64 },
    /// Nothing is done, and nonsense is said.
    Say { body: &'static str },
    /// It is done, and the answer is lost.
    DoneButLost,
    /// It is done, and the answer breaks off in the middle.
    DoneButCut,
}

pub(crate) async fn stand_before(
    State(cloud): State<Arc<Cloud>>,
    request: Request,
    next: Next,
) -> Response {
    let asked = format!("{} {}", request.method(), request.uri().path());
    cloud.world().asked.push(asked.clone());
    let expected = format!("Bearer {KEY}");
    let key = request.headers().get(header::AUTHORIZATION);
    if key.is_none_or(|key| key != expected.as_str()) {
        return refuse(401, "Unauthorized");
    }
    match cloud.fault(&asked) {
        None => next.run(request).await,
        Some(How::Refuse { status, said }) => refuse(status, said),
        Some(How::Say { body }) => body.into_response(),
        Some(How::Later { seconds }) => {
            let mut response = refuse(429, "Rate limit exceeded");
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
            response
        }
        Some(How::DoneButLost) => {
            next.run(request).await;
            refuse(502, "Bad gateway")
        }
        Some(How::DoneButCut) => {
            next.run(request).await;
            let pieces: [Result<&str, std::io::Error>; 2] =
                [Ok("{\"id\":"), Err(std::io::ErrorKind::BrokenPipe.into())];
            Body::from_stream(futures::stream::iter(pieces)).into_response()
        }
    }
}

/// As the provider's errors look.
pub(crate) fn refuse(status: u16, said: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let reason = status.canonical_reason();
    let body = json!({ "statusCode": status.as_u16(), "message": said, "error": reason });
    (status, axum::Json(body)).into_response()
}

impl Cloud {
    fn fault(&self, asked: &str) -> Option<How> {
        let mut world = self.world();
        let fault = world
            .faults
            .iter_mut()
            .find(|fault| fault.times > 0 && fits(fault.request, asked))?;
        fault.times -= 1;
        Some(fault.how)
    }
}

fn fits(pattern: &str, asked: &str) -> bool {
    let (pattern, asked) = (pattern.split('/'), asked.split('/'));
    pattern.clone().count() == asked.clone().count()
        && pattern
            .zip(asked)
            .all(|(one, other)| one == "*" || one == other)
}
