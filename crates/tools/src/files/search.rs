//! search_files.
//!
//! The looking happens inside the sandbox, in a process of its own; see `hermetic_search` for why.

mod found;

use hermetic_policy::{Cleared, OwnProgram};
use hermetic_sandbox::RunError;
use hermetic_search::{RecordParser, SearchQuery, SearchRecord, SearchTarget, ShownMatches};
use hermetic_warden::client::{RunEvent, RunningCommand, WardenCallError};
use hermetic_warden::protocol::{ExitState, FileKind};
use serde_json::{Value, json};

use super::arguments::FileArguments;
use super::file_session::FileSession;
use super::path_policy::PathAct;
use super::place::ResolvedPath;
use super::{FileToolFailure, similar};
use found::SearchResults;

const DEFAULT_RESULTS: usize = 50;
const MOST_RESULTS: usize = 1000;
const FARTHEST: usize = 100_000;
const MOST_CONTEXT: usize = 20;
const LONGEST_PATTERN: usize = 10_000;
/// Many times what a page of results can take.
const MOST_RESULT_BYTES: usize = 16 << 20;

pub(super) fn properties() -> Value {
    json!({
        "pattern": {
            "type": "string",
            "description": "target=content: a regular expression; target=files: a glob such as *.py",
        },
        "target": {
            "type": "string", "enum": ["content", "files"], "default": "content",
            "description": "what files hold, or what they are called",
        },
        "path": {"type": "string", "default": ".", "description": "the folder or file to look in"},
        "file_glob": {"type": "string", "description": "target=content: only files named like this"},
        "limit": {"type": "integer", "default": DEFAULT_RESULTS, "description": "most results"},
        "offset": {"type": "integer", "default": 0, "description": "results to leave out first"},
        "output_mode": {
            "type": "string", "enum": ["content", "files_only", "count"], "default": "content",
            "description": "target=content: the lines, the files, or how many lines in each",
        },
        "context": {
            "type": "integer", "default": 0,
            "description": "target=content: lines before and after each match",
        },
    })
}

impl FileSession<'_> {
    pub(super) async fn search(
        &self,
        arguments: &FileArguments<'_>,
    ) -> Result<Value, FileToolFailure> {
        let pattern = pattern(arguments)?;
        let path = arguments.text("path")?.filter(|path| !path.is_empty());
        let place = self.locate_tree(path.unwrap_or(".")).await?;
        self.clear(PathAct::Search, &place).await?;
        let query = SearchQuery {
            path: place.path.0.clone(),
            target: target(arguments, pattern)?,
            glob: arguments.text("file_glob")?.map(str::to_owned),
            skip: arguments.count("offset", 0, (0, FARTHEST))?,
            take: arguments.count("limit", DEFAULT_RESULTS, (1, MOST_RESULTS))?,
        };
        let mut found = SearchResults::default();
        self.look_through(&query, &mut found).await?;
        let omitted = found.omit(|path| !self.is_free(PathAct::Read, path));
        let mut json = found.into_json(&place, &query, &self.files.redactor, self.files.bounds);
        if omitted > 0 {
            json["_omitted"] = json!(format!(
                "{omitted} results are left out: reading their files needs a person's yes"
            ));
        }
        Ok(json)
    }

    async fn look_through(
        &self,
        query: &SearchQuery,
        found: &mut SearchResults,
    ) -> Result<(), FileToolFailure> {
        let program = OwnProgram::Search(query.words());
        let running = self.sandbox.start(Cleared::own_program(program)).await;
        let running = running.map_err(|error| match error {
            RunError::Call(error) => unreachable(&error),
            RunError::ShellTakesNoStdin => FileToolFailure::new(error.to_string()),
        })?;
        gather(running, found).await
    }

    /// A folder or a file that is there.
    async fn locate_tree(&self, path: &str) -> Result<ResolvedPath, FileToolFailure> {
        let place = self.follow(path).await?;
        match place.metadata.as_ref().map(|metadata| metadata.kind) {
            Some(FileKind::File | FileKind::Directory) => Ok(place),
            Some(_) => Err(FileToolFailure::new(format!(
                "{path} is a device, a socket or a pipe; there is nothing to look through"
            ))),
            None => {
                let similar = similar::names(self, &place).await;
                let hint = match similar.is_empty() {
                    true => String::new(),
                    false => format!(". Similar paths: {}", similar.join(", ")),
                };
                let failed = FileToolFailure::new(format!("Path not found: {path}{hint}"));
                Err(failed.with("total_count", 0))
            }
        }
    }
}

fn pattern<'a>(arguments: &FileArguments<'a>) -> Result<&'a str, FileToolFailure> {
    let pattern = arguments.needed("pattern")?;
    if pattern.is_empty() || pattern.contains('\0') || pattern.len() > LONGEST_PATTERN {
        return Err(FileToolFailure::new(format!(
            "pattern must have 1 to {LONGEST_PATTERN} characters and no NUL byte"
        )));
    }
    Ok(pattern)
}

fn target(arguments: &FileArguments<'_>, pattern: &str) -> Result<SearchTarget, FileToolFailure> {
    let pattern = pattern.to_owned();
    let shown = match arguments.text("output_mode")?.unwrap_or("content") {
        "content" => ShownMatches::Lines,
        "files_only" => ShownMatches::Files,
        "count" => ShownMatches::Counts,
        other => {
            return Err(FileToolFailure::new(format!(
                "output_mode is {other:?}; expected content, files_only or count"
            )));
        }
    };
    match arguments.text("target")?.unwrap_or("content") {
        "content" | "grep" => Ok(SearchTarget::Content {
            pattern,
            shown,
            context: arguments.count("context", 0, (0, MOST_CONTEXT))?,
        }),
        "files" | "find" => Ok(SearchTarget::Names(pattern)),
        other => Err(FileToolFailure::new(format!(
            "target is {other:?}; expected content or files"
        ))),
    }
}

/// What the process says, to its end. It goes when this is dropped.
async fn gather(
    mut running: RunningCommand,
    found: &mut SearchResults,
) -> Result<(), FileToolFailure> {
    let mut records = RecordParser::default();
    let mut taken = 0;
    loop {
        let event = running.next().await.map_err(|error| unreachable(&error))?;
        match event {
            Some(RunEvent::Out(bytes)) => {
                taken += bytes.len();
                if taken > MOST_RESULT_BYTES {
                    return Err(FileToolFailure::new(
                        "the search said more than it can have found",
                    ));
                }
                records.push(&bytes);
                let said = |_| FileToolFailure::new("the search said what makes no sense");
                while let Some(record) = records.take().map_err(said)? {
                    match record {
                        SearchRecord::Wrong { text } => {
                            return Err(FileToolFailure::new(format!("Search failed: {text}"))
                                .with("total_count", 0));
                        }
                        record => found.add(record),
                    }
                }
            }
            Some(RunEvent::Ended(ended)) => {
                match (found.is_whole(), ended.cut, ended.status) {
                    (true, _, _) => {}
                    (false, Some(_), _) => found.cut_off("it took longer than 60 seconds"),
                    (false, None, ExitState::Signalled(_)) => found.cut_off("it was killed"),
                    (false, None, _) => {
                        return Err(FileToolFailure::new(
                            "the search could not be made in this sandbox",
                        ));
                    }
                }
                return Ok(());
            }
            Some(_) => {}
            None => return Err(FileToolFailure::new("the sandbox does not answer")),
        }
    }
}

fn unreachable(error: &WardenCallError) -> FileToolFailure {
    FileToolFailure::at("search_files", error)
}

#[cfg(test)]
mod tests {
    use hermetic_types::CommandProgram;

    use super::*;

    #[test]
    fn the_program_inside_knows_the_role_by_the_name_we_use() {
        let cleared = Cleared::own_program(OwnProgram::Search(Vec::new()));
        let CommandProgram::Inside { role, .. } = cleared.command().program else {
            panic!("{cleared:?}");
        };
        assert_eq!(role, hermetic_search::ROLE);
    }
}
