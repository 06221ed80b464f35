//! read_file.

use hermetic_pictures::{MOST_READ_BYTES, ReadingSlot, media_type};
use hermetic_warden::protocol::{PathAt, ReadRequest};
use serde_json::{Value, json};

use super::FileToolFailure;
use super::arguments::FileArguments;
use super::file_session::FileSession;
use super::legible::{cost, is_binary, redacted_lines, shortened};
use super::path_policy::PathAct;
use super::place::ResolvedPath;
use super::window::LineCollector;
use crate::web::pdf;

const DEFAULT_LINES: usize = 500;
/// Enough to tell a text from something else.
const SAMPLE: usize = 8 << 10;
/// Beyond this the lines of a file are not counted to the end.
const COUNTED: u64 = 2 << 30;
/// What the keys of a result and their other values take.
const FRAME: usize = 2000;
const PDF: &str = "application/pdf";
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What was found in the file.
struct ReadWindow {
    lines: Vec<(usize, Vec<u8>)>,
    total: usize,
    counted_all: bool,
    binary: bool,
    pdf: bool,
    size: u64,
}

/// A file of which all is here.
pub(crate) struct WholeFile {
    pub(crate) bytes: Vec<u8>,
    /// Held while a large one is in memory.
    pub(crate) slot: Option<ReadingSlot>,
}

impl FileSession<'_> {
    pub(super) async fn read(
        &self,
        arguments: &FileArguments<'_>,
    ) -> Result<Value, FileToolFailure> {
        let bounds = self.files.bounds;
        let path = arguments.path("path")?;
        let first = arguments.count("offset", 1, (1, usize::MAX / 2))?;
        let limit = arguments.count("limit", DEFAULT_LINES, (1, bounds.lines.max(1)))?;
        let place = self.locate_existing(path).await?;
        self.clear(PathAct::Read, &place).await?;
        let (id, window) = (self.sandbox.id(), (first, limit));
        let stamp = place.stamp();
        if let Some(stamp) = stamp
            && self.files.seen.take_shown(id, &place.path, stamp, window)
        {
            return Ok(unchanged(&place));
        }
        let found = self.look(&place, first, limit).await?;
        if found.pdf
            && let Some(words) = self.words_of_pdf(&place, first, limit).await?
        {
            return Ok(self.shown(&words, first, limit));
        }
        if found.binary {
            return Err(FileToolFailure::new(format!(
                "{path} is a binary file and cannot be shown as text; use the terminal to inspect it"
            ))
            .with("is_binary", true)
            .with("file_size", found.size));
        }
        if let Some(stamp) = stamp {
            self.files.seen.note_shown(id, &place.path, stamp, window);
        }
        Ok(self.shown(&found, first, limit))
    }

    pub(super) async fn read_whole(
        &self,
        path: &str,
        small: usize,
    ) -> Result<Option<WholeFile>, FileToolFailure> {
        let place = self.locate_existing(path).await?;
        self.clear(PathAct::Read, &place).await?;
        if let Some(bytes) = self.fetch(&place, small).await? {
            return Ok(Some(WholeFile { bytes, slot: None }));
        }
        self.fetch_large(&place).await
    }

    /// Read only now that it was let through: whoever waits for a person holds nobody up.
    async fn fetch_large(
        &self,
        place: &ResolvedPath,
    ) -> Result<Option<WholeFile>, FileToolFailure> {
        let slot = self.files.pictures.reading_slot().await;
        let fetched = self.fetch(place, MOST_READ_BYTES).await?;
        Ok(fetched.map(|bytes| WholeFile {
            bytes,
            slot: Some(slot),
        }))
    }

    /// The words of a PDF file, which a message cannot hold whole, as the lines of a text.
    async fn words_of_pdf(
        &self,
        place: &ResolvedPath,
        first: usize,
        limit: usize,
    ) -> Result<Option<ReadWindow>, FileToolFailure> {
        let Some(WholeFile { bytes, slot }) = self.fetch_large(place).await? else {
            return Ok(None);
        };
        if media_type(&bytes) != Some(PDF) {
            return Ok(None);
        }
        let size = bytes.len() as u64;
        // Takes up to seconds, and others wait for this thread.
        let reading = tokio::task::spawn_blocking(move || {
            let words = pdf::text_of(&bytes);
            drop((bytes, slot));
            words
        });
        let words = reading
            .await
            .map_err(|_| FileToolFailure::new("this PDF could not be read"))?
            .map_err(|error| FileToolFailure::new(error.to_string()).with("is_binary", true))?;
        let mut lines = LineCollector::new(first, limit, self.files.bounds.line_chars);
        lines.push(words.text.as_bytes());
        let (lines, total) = lines.finish();
        Ok(Some(ReadWindow {
            lines,
            total,
            counted_all: !words.is_cut,
            binary: false,
            pdf: true,
            size,
        }))
    }

    async fn look(
        &self,
        place: &ResolvedPath,
        first: usize,
        limit: usize,
    ) -> Result<ReadWindow, FileToolFailure> {
        let read = ReadRequest {
            at: PathAt::resolved(place.path.clone()),
            offset: 0,
            length: Some(COUNTED),
        };
        let mut lines = LineCollector::new(first, limit, self.files.bounds.line_chars);
        let warden = self.sandbox.warden();
        self.patiently(place, async {
            let mut file = warden.read_file(read).await?;
            let size = file.metadata().size;
            let (mut seen, mut binary, mut pdf) = (0u64, false, false);
            while let Some(mut piece) = file.next().await? {
                if seen == 0 {
                    pdf = media_type(&piece) == Some(PDF);
                    binary = pdf || is_binary(&piece[..piece.len().min(SAMPLE)]);
                    if binary {
                        break;
                    }
                    if piece.starts_with(BYTE_ORDER_MARK) {
                        piece = piece.slice(BYTE_ORDER_MARK.len()..);
                        seen += BYTE_ORDER_MARK.len() as u64;
                    }
                }
                seen += piece.len() as u64;
                lines.push(&piece);
            }
            let (lines, total) = lines.finish();
            Ok(ReadWindow {
                lines,
                total,
                counted_all: seen < COUNTED,
                binary,
                pdf,
                size,
            })
        })
        .await
    }

    fn shown(&self, found: &ReadWindow, first: usize, limit: usize) -> Value {
        let bounds = self.files.bounds;
        let last = first.saturating_add(limit - 1);
        let odd = found
            .lines
            .iter()
            .any(|(_, line)| std::str::from_utf8(line).is_err());
        let text: Vec<(usize, String)> = found
            .lines
            .iter()
            .map(|(number, line)| (*number, String::from_utf8_lossy(line).into_owned()))
            .collect();
        let mut content = String::new();
        let mut room = bounds.result_chars.saturating_sub(FRAME);
        let mut next = None;
        let text = redacted_lines(&text, &self.files.redactor);
        for (number, line) in text
            .into_iter()
            .filter(|(number, _)| (first..=last).contains(number))
        {
            let row = format!("{number}|{}", shortened(&line, bounds.line_chars));
            let taken = cost(&row) + 2;
            if taken > room {
                next = Some(number);
                break;
            }
            room -= taken;
            if !content.is_empty() {
                content.push('\n');
            }
            content.push_str(&row);
        }
        let ReadWindow { total, size, .. } = *found;
        let truncated = next.is_some() || total > last;
        let mut json = json!({
            "content": content,
            "total_lines": total,
            "file_size": size,
            "truncated": truncated,
            "is_binary": false,
            "is_image": false,
        });
        if let Some(next) = next {
            json["truncated_by"] = json!("bytes");
            json["next_offset"] = json!(next);
        }
        if let Some(hint) = found.hint((first, last), next) {
            json["hint"] = json!(hint);
        }
        if odd {
            json["_warning"] = json!(
                "The file is not valid UTF-8; bytes that are none show as \u{fffd}. Do not write this \
                 text back."
            );
        }
        json
    }
}

impl ReadWindow {
    /// How to go on, where that is not all. `next` is the line that did not fit any more.
    fn hint(&self, (first, last): (usize, usize), next: Option<usize>) -> Option<String> {
        let total = self.total;
        let of = match self.counted_all {
            true => "of",
            false => "of more than",
        };
        match next {
            Some(next) => Some(format!(
                "The rest did not fit. Use offset={next} to go on (lines {first}-{} {of} {total}).",
                next - 1
            )),
            None if total > last => Some(format!(
                "Use offset={} to continue reading (showing {first}-{last} {of} {total} lines)",
                last + 1
            )),
            None if total < first => {
                Some(format!("The file has {total} lines; nothing at {first}."))
            }
            None => None,
        }
    }
}

fn unchanged(place: &ResolvedPath) -> Value {
    json!({
        "status": "unchanged",
        "message": "You have read these lines already and the file has not changed since. Use what \
                    you have; if it is gone, call again and the lines are shown.",
        "path": place.asked,
        "dedup": true,
        "content_returned": false,
    })
}
