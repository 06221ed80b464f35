//! What a person does in the chat: opens, says, presses, deletes, takes a file.

use std::fmt::Write as _;
use std::time::Duration;

use axum::extract::{Extension, FromRequest as _, Query, Request, State};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use hermetic_types::RunId;
use serde::Deserialize;
use tokio::time::timeout;

use super::{chat, person};
use crate::access::Viewer;
use crate::acts::{Act, ActRefused};
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::SharedState;
use crate::upload::{UploadRefused, UploadedForm};
use crate::{ChatPress, ChatRefused, ChatWords, words};

/// For a place to send files by.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

pub(crate) async fn open(
    State(state): State<SharedState>,
    act: Act<NoFields>,
) -> Result<Response, PageFailure> {
    let person = person(&act.viewer)?;
    act.record(&state, "chat_opened", "")?;
    let id = chat(&state)?.open(&person).await?;
    Ok(match act.for_program {
        true => axum::Json(serde_json::json!({ "c": id })).into_response(),
        false => done(&act, &format!("/chat?c={id}")),
    })
}

/// A form that says nothing.
#[derive(Debug, Deserialize)]
pub(crate) struct NoFields {}

#[derive(Debug, Deserialize)]
struct SayFields {
    c: i64,
    #[serde(default)]
    text: String,
    once: Option<String>,
}

/// Says something, with files or without. The gateway writes down who said it, as of every platform.
pub(crate) async fn say(
    State(state): State<SharedState>,
    request: Request,
) -> Result<Response, SayFailure> {
    let bounds = chat(&state)?.bounds();
    let (act, files) = match UploadedForm::is_one(&request) {
        false => (
            Act::<SayFields>::from_request(request, &state).await?,
            Vec::new(),
        ),
        true => {
            let viewer = Act::<SayFields>::viewer_of(&request)?;
            // Each of them holds as much as a message may. What has no files waits for nobody's.
            let _place = match UploadedForm::is_small(&request, bounds) {
                true => None,
                false => {
                    let place = timeout(LONGEST_WAIT, state.uploads.acquire()).await;
                    Some(place.map_err(|_| {
                        PageFailure::Busy(
                            "Others are sending files at this moment. It was not sent: send it again in a while.",
                        )
                    })?)
                }
            };
            let for_program = request.uri().path().starts_with("/api/");
            let form = UploadedForm::read(request, bounds).await;
            let mut form = form.map_err(|refused| match refused {
                UploadRefused::TooLarge => PageFailure::Invalid(format!(
                    "That is too much: at most {} files of {} each go with one message.",
                    bounds.files,
                    words::bytes(bounds.file_bytes)
                )),
                UploadRefused::Incomplete => {
                    PageFailure::Invalid("That form is not complete.".to_owned())
                }
            })?;
            let files = std::mem::take(&mut form.files);
            let given = form.field("csrf").unwrap_or_default();
            Act::<SayFields>::check_token(&viewer, given, for_program)?;
            let c = form.field("c").and_then(|c| c.parse().ok());
            let c = c.ok_or(PageFailure::Invalid(
                "That form is not complete.".to_owned(),
            ))?;
            let fields = SayFields {
                c,
                text: form.field("text").unwrap_or_default().to_owned(),
                once: form.field("once").map(str::to_owned),
            };
            let act = Act {
                form: fields,
                viewer,
                for_program,
            };
            (act, files)
        }
    };
    let said = ChatWords {
        person: person(&act.viewer)?,
        conversation: act.form.c,
        // As forms write ends of lines.
        text: act.form.text.replace("\r\n", "\n"),
        once: once(act.form.once.as_deref()),
        files,
    };
    chat(&state)?.say(said).await.map_err(PageFailure::from)?;
    Ok(done(&act, &format!("/chat?c={}#latest", act.form.c)))
}

/// What makes a form that is sent twice one message; one of our own where there is none that can be used.
fn once(given: Option<&str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let given = given.filter(|it| (8..=64).contains(&it.len()) && it.chars().all(is_plain));
    given.map_or_else(|| RunId::random().to_string(), str::to_owned)
}

#[derive(Debug, Deserialize)]
pub(crate) struct PressForm {
    c: i64,
    message: i64,
    data: String,
}

pub(crate) async fn press(
    State(state): State<SharedState>,
    act: Act<PressForm>,
) -> Result<Response, PageFailure> {
    let press = ChatPress {
        person: person(&act.viewer)?,
        conversation: act.form.c,
        message: act.form.message,
        data: act.form.data.clone(),
    };
    chat(&state)?.press(press).await?;
    Ok(done(&act, &format!("/chat?c={}#latest", act.form.c)))
}

#[derive(Debug, Deserialize)]
pub(crate) struct DeleteForm {
    c: i64,
    sure: Option<String>,
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    act: Act<DeleteForm>,
) -> Result<Response, PageFailure> {
    if act.form.sure.as_deref() != Some("yes") {
        return Err(PageFailure::Invalid("Say that you are sure.".to_owned()));
    }
    let (person, rows) = (person(&act.viewer)?, state.store.browser_chat());
    let found = rows.conversation(person.as_str(), act.form.c).await?;
    let key = chat(&state)?.key(&person, act.form.c);
    let (Some(_), Some(key)) = (found, key) else {
        return Err(PageFailure::NotFound(
            "There is no such conversation of yours.",
        ));
    };
    act.record(&state, "chat_deleted", key.as_str())?;
    // The sandbox first: while it stands, its conversation can be found.
    state.gateway.destroy(&key).await?;
    rows.forget(person.as_str(), act.form.c).await?;
    Ok(done(&act, "/chat"))
}

#[derive(Debug, Deserialize)]
pub(crate) struct FileQuery {
    id: i64,
}

/// A file, to be kept and not to be looked at: whatever is in it, no page is made of it.
pub(crate) async fn file(
    State(state): State<SharedState>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<FileQuery>,
) -> Result<Response, PageFailure> {
    let person = person(&viewer)?;
    let rows = state.store.browser_chat();
    let found = rows.file(person.as_str(), query.id).await?;
    let (file, bytes) = found.ok_or(PageFailure::NotFound("There is no such file of yours."))?;
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/octet-stream");
    headers.insert(CONTENT_TYPE, kind);
    let name = HeaderValue::from_str(&disposition(&file.name));
    let unnamed = HeaderValue::from_static("attachment");
    headers.insert(CONTENT_DISPOSITION, name.unwrap_or(unnamed));
    Ok(response)
}

fn disposition(name: &str) -> String {
    let mut text = "attachment; filename*=UTF-8''".to_owned();
    // Also what turns the direction of writing, so that a name ends as it seems to.
    for byte in words::visible(name).bytes() {
        match byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            true => text.push(char::from(byte)),
            false => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// Why something was not said.
#[derive(Debug)]
pub(crate) enum SayFailure {
    Act(ActRefused),
    Page(PageFailure),
}

impl From<ActRefused> for SayFailure {
    fn from(refused: ActRefused) -> Self {
        Self::Act(refused)
    }
}

impl From<PageFailure> for SayFailure {
    fn from(failure: PageFailure) -> Self {
        Self::Page(failure)
    }
}

impl IntoResponse for SayFailure {
    fn into_response(self) -> Response {
        match self {
            Self::Act(refused) => refused.into_response(),
            Self::Page(failure) => failure.into_response(),
        }
    }
}

impl From<ChatRefused> for PageFailure {
    fn from(refused: ChatRefused) -> Self {
        match (refused.is_passing, refused.is_other) {
            (true, _) => Self::Act(crate::ActFailed(refused.why)),
            (false, true) => Self::Conflict(refused.why),
            (false, false) => Self::Invalid(refused.why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_plain_letters_in_its_header() {
        assert_eq!(
            disposition("a \"b\"\r\nX: y\u{202e}.txt"),
            "attachment; filename*=UTF-8''a%20%22b%22%E2%90%8D%0AX%3A%20y%E2%9F%A6202E%E2%9F%A7.txt"
        );
    }

    #[test]
    fn a_form_without_a_usable_token_is_one_of_its_own() {
        assert_eq!(once(Some("abcdef-12345")), "abcdef-12345");
        for bad in [
            None,
            Some(""),
            Some("short"),
            Some("with a space"),
            Some("x\ny12345678"),
        ] {
            assert_ne!(once(bad), once(bad));
        }
    }
}
