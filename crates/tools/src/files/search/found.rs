//! What a search brought, as a model reads it.

use std::collections::HashMap;

use hermetic_redact::Redactor;
use hermetic_search::{MatchRow, SearchQuery, SearchRecord};
use serde_json::{Map, Value, json};

use crate::files::ResultBounds;
use crate::files::legible::{cost, redacted_lines, shortened};
use crate::files::place::ResolvedPath;

/// Characters of a line.
const LINE_CHARS: usize = 500;
/// From so many on, lines are grouped under their file.
const GROUPED: usize = 5;
/// What the other keys take.
const FRAME: usize = 4000;

#[derive(Debug, Default)]
pub(super) struct SearchResults {
    rows: Vec<MatchRow>,
    files: Vec<Vec<u8>>,
    counts: Vec<(Vec<u8>, u64)>,
    total: u64,
    more: bool,
    unreadable: u64,
    whole: bool,
    cut_off: Option<&'static str>,
}

impl SearchResults {
    pub(super) fn add(&mut self, record: SearchRecord) {
        match record {
            SearchRecord::Row(row) => self.rows.push(row),
            SearchRecord::File { path } => self.files.push(path),
            SearchRecord::Count { path, count } => self.counts.push((path, count)),
            SearchRecord::End {
                total,
                more,
                unreadable,
            } => {
                (self.total, self.more, self.unreadable) = (total, more, unreadable);
                self.whole = true;
            }
            SearchRecord::Wrong { .. } => {}
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(super) fn cut_off(&mut self, why: &'static str) {
        self.cut_off = Some(why);
        self.total = (self.rows.len() + self.files.len() + self.counts.len()) as u64;
    }

    /// Takes out what is found in files of which this is true, and says how much that was.
    pub(super) fn omit(&mut self, mut hidden: impl FnMut(&str) -> bool) -> usize {
        let mut known: HashMap<Vec<u8>, bool> = HashMap::new();
        let mut shown = |path: &Vec<u8>| {
            let text = || String::from_utf8_lossy(path).into_owned();
            !*known.entry(path.clone()).or_insert_with(|| hidden(&text()))
        };
        let before = self.rows.len() + self.files.len() + self.counts.len();
        self.rows.retain(|row| shown(&row.path));
        self.files.retain(|path| shown(path));
        self.counts.retain(|(path, _)| shown(path));
        before - (self.rows.len() + self.files.len() + self.counts.len())
    }

    pub(super) fn into_json(
        self,
        place: &ResolvedPath,
        query: &SearchQuery,
        redactor: &Redactor,
        bounds: ResultBounds,
    ) -> Value {
        let mut page = ResultPage {
            room: bounds.result_chars.saturating_sub(FRAME),
            left: query.skip,
            cut: false,
        };
        let named = |path: &[u8]| name(path, place);
        let mut json = json!({});
        if !self.rows.is_empty() {
            lines(&mut json, &self.rows, named, redactor, &mut page);
        }
        if !self.files.is_empty() {
            let files = self.files.iter().map(|path| named(path));
            let files: Vec<_> = files.take_while(|path| page.fits(path)).collect();
            json["files"] = json!(files);
        }
        if !self.counts.is_empty() {
            let counts = self
                .counts
                .iter()
                .map(|(path, count)| (named(path), json!(count)));
            let counts: Map<_, _> = counts.take_while(|(path, _)| page.fits(path)).collect();
            json["counts"] = json!(counts);
        }
        let matched: u64 = self.counts.iter().map(|(_, count)| count).sum();
        json["total_count"] = json!(if matched > 0 { matched } else { self.total });
        if let Some(why) = self.cut_off {
            json["limit_reason"] = json!(format!("The search was ended early: {why}."));
        }
        if self.more || page.cut || self.cut_off.is_some() {
            json["truncated"] = json!(true);
            json["_hint"] = json!(format!(
                "There may be more. Use offset={} to go on, or narrow the pattern, the path or \
                 file_glob.",
                page.left
            ));
        }
        if self.unreadable > 0 {
            let count = self.unreadable;
            json["warning"] = json!(format!("{count} files or folders could not be read"));
        }
        json
    }
}

/// What still fits, and where the next page begins.
struct ResultPage {
    room: usize,
    left: usize,
    cut: bool,
}

impl ResultPage {
    fn fits(&mut self, text: &str) -> bool {
        let taken = cost(text) + 40;
        if self.cut || taken > self.room {
            self.cut = true;
            return false;
        }
        self.room -= taken;
        self.left += 1;
        true
    }
}

fn lines(
    json: &mut Value,
    rows: &[MatchRow],
    named: impl Fn(&[u8]) -> String,
    redactor: &Redactor,
    page: &mut ResultPage,
) {
    let mut shown: Vec<(String, usize, String)> = Vec::new();
    // A secret may be several lines, so lines of one file are redacted together.
    for rows in rows.chunk_by(|a, b| a.path == b.path) {
        let path = named(&rows[0].path);
        let text: Vec<(usize, String)> = rows
            .iter()
            .map(|row| {
                let line = usize::try_from(row.line).unwrap_or(usize::MAX);
                (line, String::from_utf8_lossy(&row.text).into_owned())
            })
            .collect();
        for (line, text) in redacted_lines(&text, redactor) {
            let text = shortened(text.trim_end(), LINE_CHARS);
            if !page.fits(&format!("{path}{text}")) {
                break;
            }
            shown.push((path.clone(), line, text));
        }
    }
    if shown.len() < GROUPED {
        let matches = shown
            .iter()
            .map(|(path, line, content)| json!({"path": path, "line": line, "content": content}));
        json["matches"] = matches.collect();
        return;
    }
    let mut text = String::new();
    for group in shown.chunk_by(|a, b| a.0 == b.0) {
        text.push_str(&group[0].0);
        for (_, line, content) in group {
            text.push_str(&format!("\n  {line}: {content}"));
        }
        text.push('\n');
    }
    json["matches_format"] = json!(
        "path-grouped: a file's path on its own line, then indented '<line>: <content>' rows"
    );
    json["matches_text"] = json!(text.trim_end());
}

/// A path as it can be given back: below what the model named. Nothing in it can look like more
/// results.
fn name(path: &[u8], place: &ResolvedPath) -> String {
    let below = path.strip_prefix(place.path.0.as_slice());
    let below = below.map(|rest| rest.strip_prefix(b"/").unwrap_or(rest));
    let asked = place.asked.trim_end_matches('/');
    let path = match below {
        Some([]) => place.asked.clone(),
        Some(rest) if asked == "." => String::from_utf8_lossy(rest).into_owned(),
        Some(rest) => format!("{asked}/{}", String::from_utf8_lossy(rest)),
        None => String::from_utf8_lossy(path).into_owned(),
    };
    path.chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect()
}
