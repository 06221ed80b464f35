//! A form with files in it.

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use hermetic_store::NewBrowserFile;
use multer::{Constraints, Multipart, SizeLimit};

use crate::ChatBounds;

/// What came with a form: its fields by name, and its files.
#[derive(Debug, Default)]
pub(crate) struct UploadedForm {
    fields: Vec<(String, String)>,
    pub(crate) files: Vec<NewBrowserFile>,
}

/// A form that cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadRefused {
    TooLarge,
    Incomplete,
}

/// Fields of one form besides its files.
const MOST_FIELDS: usize = 8;

/// Headers and boundaries of the parts.
const AROUND: u64 = 16 << 10;

const MOST_NAME_CHARS: usize = 200;

impl UploadedForm {
    pub(crate) fn is_one(request: &Request) -> bool {
        let kind = request.headers().get(CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"multipart/form-data"))
    }

    /// Whether it says that it is no longer than a message without files, which needs no place of its own.
    pub(crate) fn is_small(request: &Request, bounds: ChatBounds) -> bool {
        let (_, announced) = head_of(request.headers());
        // Beside it a length means nothing: the chunks go on for as long as they come.
        let in_chunks = request.headers().contains_key(TRANSFER_ENCODING);
        !in_chunks
            && announced.is_some_and(|announced| announced <= bounds.text_bytes as u64 + AROUND)
    }

    /// Reads a form, and no more of it than a message may hold.
    pub(crate) async fn read(request: Request, bounds: ChatBounds) -> Result<Self, UploadRefused> {
        let (boundary, announced) = head_of(request.headers());
        let boundary = boundary.ok_or(UploadRefused::Incomplete)?;
        let whole = bounds.file_bytes * bounds.files as u64 + bounds.text_bytes as u64 + AROUND;
        if announced.is_some_and(|announced| announced > whole) {
            return Err(UploadRefused::TooLarge);
        }
        // For whoever announced nothing, or less than comes.
        let limits = SizeLimit::new()
            .whole_stream(whole)
            .per_field(bounds.file_bytes.max(bounds.text_bytes as u64) + 1);
        let stream = Body::into_data_stream(request.into_body());
        let constraints = Constraints::new().size_limit(limits);
        let mut parts = Multipart::with_constraints(stream, boundary, constraints);
        let mut form = Self::default();
        while let Some(part) = parts.next_field().await.map_err(|error| refusal(&error))? {
            let name = part.name().unwrap_or_default().to_owned();
            let file = part.file_name().map(str::to_owned);
            let mime = part
                .content_type()
                .map(|mime| mime.essence_str().to_owned());
            let bytes = part.bytes().await.map_err(|error| refusal(&error))?;
            match file {
                // A browser sends this for a field in which no file was chosen.
                Some(file) if file.is_empty() && bytes.is_empty() => {}
                Some(file) if form.files.len() < bounds.files => form.files.push(NewBrowserFile {
                    name: plain_name(&file),
                    mime,
                    bytes: bytes.to_vec(),
                }),
                None if form.fields.len() < MOST_FIELDS && bytes.len() <= bounds.text_bytes => {
                    let text = String::from_utf8(bytes.to_vec());
                    let text = text.map_err(|_| UploadRefused::Incomplete)?;
                    form.fields.push((name, text));
                }
                Some(_) | None => return Err(UploadRefused::TooLarge),
            }
        }
        Ok(form)
    }

    /// The value of a field that is there once.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(own, _)| own == name);
        let value = found.next().map(|(_, value)| value.as_str());
        value.filter(|_| found.next().is_none())
    }
}

/// What separates the parts, and how long all of them are said to be.
fn head_of(headers: &HeaderMap) -> (Option<String>, Option<u64>) {
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok());
    let boundary = text(CONTENT_TYPE).and_then(|kind| multer::parse_boundary(kind).ok());
    let announced = text(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    (boundary, announced)
}

/// A name as its sender spelled it, without what would make it a path or several lines.
fn plain_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible = last.chars().filter(|c| !c.is_control());
    let name: String = visible.take(MOST_NAME_CHARS).collect();
    match name.trim() {
        "" | "." | ".." => "file".to_owned(),
        name => name.to_owned(),
    }
}

fn refusal(error: &multer::Error) -> UploadRefused {
    match error {
        multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamSizeExceeded { .. } => {
            UploadRefused::TooLarge
        }
        _ => UploadRefused::Incomplete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: ChatBounds = ChatBounds {
        text_bytes: 64,
        files: 2,
        file_bytes: 100,
    };

    fn request(body: &str) -> Request {
        Request::builder()
            .header(CONTENT_TYPE, "multipart/form-data; boundary=b0undary")
            .body(Body::from(body.to_owned()))
            .unwrap()
    }

    fn part(head: &str, bytes: &str) -> String {
        format!("--b0undary\r\nContent-Disposition: form-data; {head}\r\n\r\n{bytes}\r\n")
    }

    async fn read(parts: &[String]) -> Result<UploadedForm, UploadRefused> {
        let body = format!("{}--b0undary--\r\n", parts.concat());
        UploadedForm::read(request(&body), BOUNDS).await
    }

    #[tokio::test]
    async fn fields_and_files_come_apart_and_names_are_only_names() {
        let parts = [
            part("name=\"text\"", "hello"),
            part("name=\"c\"", "1"),
            part("name=\"c\"", "2"),
            part("name=\"files\"; filename=\"\"", ""),
            part("name=\"files\"; filename=\"../../etc/passwd\"", "a\0b"),
            part("name=\"files\"; filename=\"..\"", "x"),
        ];
        let form = read(&parts).await.unwrap();
        assert_eq!(form.field("text"), Some("hello"));
        assert_eq!(form.field("c"), None, "there twice");
        let files: Vec<_> = form.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(files, ["passwd", "file"]);
        assert_eq!(form.files[0].bytes, b"a\0b");
    }

    #[tokio::test]
    async fn more_than_a_message_holds_is_refused() {
        let file = |size: usize| part("name=\"files\"; filename=\"a\"", &"x".repeat(size));
        let too_large = |read: Result<UploadedForm, UploadRefused>| {
            assert_eq!(read.err(), Some(UploadRefused::TooLarge));
        };
        assert!(read(&[file(100), file(100)]).await.is_ok());
        too_large(read(&[file(102)]).await);
        too_large(read(&[file(1), file(1), file(1)]).await);
        too_large(read(&[part("name=\"text\"", &"x".repeat(65))]).await);
        let many: Vec<_> = (0..9).map(|n| part(&format!("name=\"{n}\""), "")).collect();
        too_large(read(&many).await);
        let huge = part("name=\"files\"; filename=\"a\"", &"x".repeat(1 << 20));
        too_large(read(&[huge]).await);
    }

    #[tokio::test]
    async fn what_is_no_form_is_refused() {
        for body in ["", "x", "--b0undary", "--b0undary\r\n\r\nx"] {
            let read = UploadedForm::read(request(body), BOUNDS).await;
            assert_eq!(read.err(), Some(UploadRefused::Incomplete), "{body:?}");
        }
        let mut small = request("");
        assert!(
            !UploadedForm::is_small(&small, BOUNDS),
            "no word of how long it is"
        );
        for (length, is_small) in [(64 + AROUND, true), (64 + AROUND + 1, false)] {
            small.headers_mut().insert(CONTENT_LENGTH, length.into());
            assert_eq!(UploadedForm::is_small(&small, BOUNDS), is_small);
        }
        small.headers_mut().insert(CONTENT_LENGTH, 1_u64.into());
        let chunked = axum::http::HeaderValue::from_static("chunked");
        small.headers_mut().insert(TRANSFER_ENCODING, chunked);
        assert!(!UploadedForm::is_small(&small, BOUNDS), "chunks go on");
        let bare = Request::new(Body::from("x"));
        assert!(!UploadedForm::is_one(&bare));
        let read = UploadedForm::read(bare, BOUNDS).await;
        assert_eq!(read.err(), Some(UploadRefused::Incomplete));
    }
}
