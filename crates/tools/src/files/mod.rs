//! read_file, write_file, patch and search_files, over the warden's file channel.
//!
//! A path is first followed to where it really leads. That place is judged, and that place is used,
//! with symlinks refused from then on: what was judged is what is touched. Names, defaults, limits and
//! result keys are those that models trained on Hermes know.

mod arguments;
mod failed;
mod file_session;
mod legible;
mod lint;
mod patch;
mod path_policy;
mod place;
mod read;
mod search;
mod seen;
mod similar;
mod window;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hermetic_pictures::PictureScaler;
use hermetic_policy::{JudgementContext, Policy};
use hermetic_redact::Redactor;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::toolbox::RawAnswer;
use crate::{CommandApprover, ToolDescription, ToolWorkplace};
use arguments::FileArguments;
use failed::FileToolFailure;
use file_session::FileSession;
use path_policy::PathPolicy;
use seen::SeenFiles;

pub(crate) use read::WholeFile;

/// The file tools. What they remember of a sandbox is which files its agent has seen.
#[derive(Clone, Debug)]
pub struct FileTools {
    gate: PathPolicy,
    redactor: Redactor,
    bounds: ResultBounds,
    seen: Arc<SeenFiles>,
    /// Makes pictures small enough to be shown, and bounds how many large files are read at once.
    pictures: PictureScaler,
}

/// How much a model is shown.
#[derive(Clone, Copy, Debug)]
pub struct ResultBounds {
    /// Lines of one read.
    pub lines: usize,
    /// Characters of one line.
    pub line_chars: usize,
    /// Characters of a whole result.
    pub result_chars: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileTool {
    Read,
    Write,
    Patch,
    Search,
}

impl Default for ResultBounds {
    fn default() -> Self {
        Self {
            lines: 2000,
            line_chars: 2000,
            result_chars: 100_000,
        }
    }
}

impl FileTool {
    const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Patch, Self::Search];

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Whether a call changes nothing.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Search)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read_file",
            Self::Write => "write_file",
            Self::Patch => "patch",
            Self::Search => "search_files",
        }
    }
}

impl FileTools {
    /// `context` says where the files are and what the policy protects there.
    pub fn new(
        policy: Arc<Policy>,
        context: JudgementContext,
        redactor: Redactor,
        bounds: ResultBounds,
    ) -> Self {
        Self {
            gate: PathPolicy::new(policy, context),
            redactor,
            bounds,
            seen: Arc::default(),
            pictures: PictureScaler::default(),
        }
    }

    /// Makes what came along with a message small enough to be shown.
    pub fn pictures(&self) -> &PictureScaler {
        &self.pictures
    }

    pub(crate) fn described(&self) -> Vec<ToolDescription> {
        FileTool::ALL
            .into_iter()
            .map(|tool| ToolDescription {
                name: tool.name().into(),
                description: self.description(tool),
                schema: self.schema(tool),
            })
            .collect()
    }

    pub(crate) async fn call(
        &self,
        tool: FileTool,
        arguments: &Map<String, Value>,
        workplace: &dyn ToolWorkplace,
        ask: &dyn CommandApprover,
        stop: &CancellationToken,
    ) -> RawAnswer {
        let arguments = FileArguments(arguments);
        let committing = AtomicBool::new(false);
        let work = async {
            let held = workplace.sandbox().await?;
            let session = FileSession::new(self, &held, ask, stop, &committing);
            match tool {
                FileTool::Read => session.read(&arguments).await,
                FileTool::Write => session.write(&arguments).await,
                FileTool::Patch => session.patch(&arguments).await,
                FileTool::Search => session.search(&arguments).await,
            }
        };
        let interrupted = async {
            stop.cancelled().await;
            // From here on the file is being put in its place: cut off, nobody could say whether it
            // was changed.
            if committing.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        };
        let done = tokio::select! {
            done = Box::pin(work) => done,
            () = interrupted => Err(FileToolFailure::new("interrupted; nothing was changed")),
        };
        match done {
            Ok(json) => RawAnswer {
                json,
                failed: false,
            },
            Err(failed) => RawAnswer {
                json: failed.into_json(tool),
                failed: true,
            },
        }
    }

    /// All bytes of a file, judged as a read of it; `None` where it has more than is read.
    pub(crate) async fn read_whole(
        &self,
        path: &str,
        small: usize,
        workplace: &dyn ToolWorkplace,
        ask: &dyn CommandApprover,
        stop: &CancellationToken,
    ) -> Result<Option<WholeFile>, String> {
        let committing = AtomicBool::new(false);
        let work = async {
            let held = workplace.sandbox().await?;
            let session = FileSession::new(self, &held, ask, stop, &committing);
            session.read_whole(path, small).await
        };
        let read = stop.run_until_cancelled(Box::pin(work)).await;
        let read = read.unwrap_or_else(|| Err(FileToolFailure::new("interrupted")));
        read.map_err(|failed| failed.to_string())
    }

    fn description(&self, tool: FileTool) -> String {
        match tool {
            FileTool::Read => format!(
                "Reads a text file, or shows a picture (made smaller where it is large) or a PDF file; of a PDF \
                 of more than 1 MiB it reads the words. Each line is shown as NUMBER|TEXT. offset and limit choose the \
                 lines, at most {} at once; what is too long ends with a next_offset. A file that is \
                 not there is answered with similar names. Better than cat, head or tail in the \
                 terminal.",
                self.bounds.lines
            ),
            FileTool::Write => "Writes a whole file: it is created with its folders, or replaced at \
                 once, keeping its mode. For a change of a part use patch. Python, JSON, TOML and \
                 YAML are read once to see whether they can be. Better than echo or a heredoc in the \
                 terminal."
                .to_owned(),
            FileTool::Patch => "Changes parts of files and shows the difference. mode=replace: \
                 old_string, which must occur once unless replace_all is set, becomes new_string. \
                 mode=patch: a V4A patch over any number of files, applied as a whole or not at all. \
                 Better than sed in the terminal."
                .to_owned(),
            FileTool::Search => "Looks through files. target=content: a regular expression within \
                 lines; output_mode chooses lines, files or counts. target=files: names by a glob, \
                 newest first. Hidden files and what .gitignore names are passed over. Better than \
                 grep, rg, find or ls in the terminal."
                .to_owned(),
        }
    }

    fn schema(&self, tool: FileTool) -> Value {
        let (properties, required) = match tool {
            FileTool::Read => (
                json!({
                    "path": {"type": "string", "description": "absolute, relative or ~/path"},
                    "offset": {
                        "type": "integer", "default": 1, "minimum": 1,
                        "description": "the first line",
                    },
                    "limit": {
                        "type": "integer", "default": 500, "maximum": self.bounds.lines,
                        "description": "how many lines",
                    },
                }),
                json!(["path"]),
            ),
            FileTool::Write => (
                json!({
                    "path": {"type": "string", "description": "the file to create or replace"},
                    "content": {"type": "string", "description": "all of its text"},
                    "cross_profile": {
                        "type": "boolean", "default": false, "description": "has no effect here",
                    },
                }),
                json!(["path", "content"]),
            ),
            FileTool::Patch => (patch::properties(), json!(["mode"])),
            FileTool::Search => (search::properties(), json!(["pattern"])),
        };
        json!({"type": "object", "properties": properties, "required": required})
    }
}
