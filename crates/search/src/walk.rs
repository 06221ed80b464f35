//! Inside: goes through the tree and says what it finds.
//!
//! The walking, the ignoring and the matching are ripgrep's own libraries, with its defaults: hidden
//! files and what `.gitignore` names are passed over, symlinks are not followed, a file with a NUL byte
//! is not text. The regular expressions have no backtracking, and their size is bounded.

mod content;
mod names;

use std::ffi::OsString;
use std::io::{self, BufWriter, Stdout, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::ExitCode;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};

use crate::{SearchQuery, SearchRecord, SearchTarget};

/// sysexits(3): the command line makes no sense.
const USAGE: u8 = 64;

/// `search` and the words of a [`SearchQuery`].
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<Vec<u8>> = words.map(OsStringExt::into_vec).collect();
    let Some(query) = SearchQuery::read(&words) else {
        return ExitCode::from(USAGE);
    };
    let mut report = PageWriter::new(&query);
    let looked = match &query.target {
        SearchTarget::Content {
            pattern,
            shown,
            context,
        } => content::look(&query, pattern, *shown, *context, &mut report),
        SearchTarget::Names(glob) => names::look(&query, glob, &mut report),
    };
    let ended = match looked {
        Ok(()) => report.end(),
        Err(WalkEnd::Wrong(text)) => report.say(&SearchRecord::Wrong { text }),
        // Whoever asked has gone.
        Err(WalkEnd::Pipe(error)) => Err(error),
    };
    match ended.and_then(|()| report.out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Why the looking ended early.
enum WalkEnd {
    Wrong(String),
    Pipe(io::Error),
}

impl From<io::Error> for WalkEnd {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

impl From<ignore::Error> for WalkEnd {
    fn from(error: ignore::Error) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// Counts results and passes on those of the page that was asked for.
struct PageWriter {
    out: BufWriter<Stdout>,
    skip: u64,
    last: u64,
    total: u64,
    more: bool,
    unreadable: u64,
}

impl PageWriter {
    fn new(query: &SearchQuery) -> Self {
        let skip = query.skip as u64;
        Self {
            out: BufWriter::new(io::stdout()),
            skip,
            last: skip.saturating_add(query.take as u64),
            total: 0,
            more: false,
            unreadable: 0,
        }
    }

    /// Says whether more are wanted.
    fn result(&mut self, record: &SearchRecord) -> io::Result<bool> {
        if self.total >= self.last {
            self.more = true;
            return Ok(false);
        }
        self.total += 1;
        if self.total > self.skip {
            self.say(record)?;
        }
        Ok(true)
    }

    fn say(&mut self, record: &SearchRecord) -> io::Result<()> {
        self.out.write_all(&record.encode())
    }

    fn end(&mut self) -> io::Result<()> {
        self.say(&SearchRecord::End {
            total: self.total,
            more: self.more,
            unreadable: self.unreadable,
        })
    }
}

/// The files of the tree, in the order of their names.
fn files(
    query: &SearchQuery,
    only: Override,
) -> impl Iterator<Item = Result<DirEntry, ignore::Error>> {
    let root = path(&query.path).to_owned();
    let mut walk = WalkBuilder::new(&root);
    walk.overrides(only)
        .follow_links(false)
        .sort_by_file_name(|a, b| a.cmp(b))
        .filter_entry(|entry| entry.depth() == 0 || !is_the_kernels(entry.path()));
    walk.build().filter(|entry| match entry {
        Ok(entry) => entry.file_type().is_some_and(|kind| kind.is_file()),
        Err(_) => true,
    })
}

/// Files there have no end, or act when they are read.
fn is_the_kernels(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"]
        .iter()
        .any(|kernel| path == Path::new(kernel))
}

fn only(query: &SearchQuery, glob: Option<&str>) -> Result<Override, ignore::Error> {
    let root = path(&query.path);
    let folder = if root.is_dir() {
        root
    } else {
        root.parent().unwrap_or(root)
    };
    let mut only = OverrideBuilder::new(folder);
    if let Some(glob) = glob {
        only.add(glob)?;
    }
    only.build()
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
