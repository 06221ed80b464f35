//! By what files hold.

use std::io;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch,
};

use super::{PageWriter, WalkEnd, bytes, files, only};
use crate::{MatchRow, SearchQuery, SearchRecord, ShownMatches};

/// Of a compiled expression, and of each of its tables.
const EXPRESSION_BYTES: usize = 10 << 20;
/// A line longer than this makes its file unreadable.
const LINE_BYTES: usize = 16 << 20;
/// What is passed on of a line.
const SHOWN_BYTES: usize = 2000;

pub(super) fn look(
    query: &SearchQuery,
    pattern: &str,
    shown: ShownMatches,
    context: usize,
    report: &mut PageWriter,
) -> Result<(), WalkEnd> {
    let expression = RegexMatcherBuilder::new()
        .line_terminator(Some(b'\n'))
        .size_limit(EXPRESSION_BYTES)
        .dfa_size_limit(EXPRESSION_BYTES)
        .build(pattern)
        .map_err(|error| WalkEnd::Wrong(error.to_string()))?;
    let context = if shown == ShownMatches::Lines {
        context
    } else {
        0
    };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        // A file that another process cuts short while it is mapped would end this one with a
        // signal.
        .memory_map(MmapChoice::never())
        .heap_limit(Some(LINE_BYTES))
        .build();
    for entry in files(query, only(query, query.glob.as_deref())?) {
        let Ok(entry) = entry else {
            report.unreadable += 1;
            continue;
        };
        let path = bytes(entry.path());
        if !one_file(&mut searcher, &expression, &path, shown, report)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Says whether more results are wanted.
fn one_file(
    searcher: &mut Searcher,
    expression: &RegexMatcher,
    path: &[u8],
    shown: ShownMatches,
    report: &mut PageWriter,
) -> Result<bool, WalkEnd> {
    let mut finder = ContentFinder {
        path,
        shown,
        report,
        count: 0,
        wanted: true,
        pipe: None,
    };
    let searched = searcher.search_path(expression, super::path(path), &mut finder);
    let ContentFinder {
        count,
        mut wanted,
        pipe,
        ..
    } = finder;
    if let Some(error) = pipe {
        return Err(WalkEnd::Pipe(error));
    }
    if searched.is_err() {
        report.unreadable += 1;
    }
    let path = path.to_vec();
    match shown {
        ShownMatches::Lines => {}
        _ if count == 0 => {}
        ShownMatches::Files => wanted = report.result(&SearchRecord::File { path })?,
        ShownMatches::Counts => wanted = report.result(&SearchRecord::Count { path, count })?,
    }
    Ok(wanted)
}

struct ContentFinder<'a> {
    path: &'a [u8],
    shown: ShownMatches,
    report: &'a mut PageWriter,
    count: u64,
    wanted: bool,
    /// Why nothing more can be said.
    pipe: Option<io::Error>,
}

impl ContentFinder<'_> {
    fn row(&mut self, line: Option<u64>, text: &[u8], matches: bool) -> bool {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let record = SearchRecord::Row(MatchRow {
            path: self.path.to_vec(),
            line: line.unwrap_or(0),
            matches,
            text: text[..text.len().min(SHOWN_BYTES)].to_vec(),
        });
        match self.report.result(&record) {
            Ok(wanted) => self.wanted = wanted,
            Err(error) => {
                self.wanted = false;
                self.pipe = Some(error);
            }
        }
        self.wanted
    }
}

impl Sink for ContentFinder<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        Ok(match self.shown {
            ShownMatches::Lines => self.row(found.line_number(), found.bytes(), true),
            ShownMatches::Counts => true,
            ShownMatches::Files => false,
        })
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.row(near.line_number(), near.bytes(), false))
    }
}
