//! All that can be said about a command before any rule.

use hermetic_types::{Command, CommandInput, CommandProgram};

use crate::clean;
use crate::context::JudgementContext;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding, HarmSeverity};
use crate::fingerprint::CommandFingerprint;
use crate::reduce::{self, ReducedScript};
use crate::scan;
use crate::second;
use crate::syntax;
use crate::text::ByteFlow;

/// Longer texts are scanned, not read: they are asked about anyway.
const LONGEST_READ_TEXT: usize = 32 * 1024;

#[derive(Debug)]
pub(crate) struct CommandInsight {
    pub(crate) commands: Vec<ReducedCommand>,
    pub(crate) findings: Vec<HarmFinding>,
    pub(crate) doubts: Vec<String>,
    pub(crate) fingerprint: CommandFingerprint,
}

impl CommandInsight {
    pub(crate) fn into(command: &Command, context: &JudgementContext) -> Self {
        let input = match &command.stdin {
            CommandInput::Empty => ByteFlow::default(),
            CommandInput::Bytes(bytes) => ByteFlow::known(String::from_utf8_lossy(bytes)),
            CommandInput::Open => ByteFlow::unknown(crate::text::TaintSet::NONE),
        };
        let fingerprint = CommandFingerprint::of(command, context);
        let elsewhere;
        let (context, cwd) = match &command.workdir {
            Some(workdir) if workdir.starts_with('/') && *workdir != context.workspace => {
                if works_there(workdir, context) {
                    elsewhere = JudgementContext {
                        workspace: workdir.clone(),
                        ..context.clone()
                    };
                    (&elsewhere, None)
                } else {
                    (context, Some(workdir.clone()))
                }
            }
            _ => (context, None),
        };
        let reduced = match &command.program {
            CommandProgram::Script(text) | CommandProgram::Shell(text) => {
                read(text, context, &input, cwd.as_deref())
            }
            CommandProgram::Words(words) => read_words(words, context, input, cwd),
            // Ours: it runs by `OwnProgram` and comes here only if somebody asks all the same.
            CommandProgram::Inside { role, words } => {
                let words = words
                    .iter()
                    .map(|word| String::from_utf8_lossy(word).into_owned());
                let words: Vec<_> = std::iter::once((*role).to_owned()).chain(words).collect();
                read_words(&words, context, input, cwd)
            }
        };
        let mut findings = reduced.findings;
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Self {
            commands: reduced.commands,
            findings,
            doubts: reduced.doubts,
            fingerprint,
        }
    }

    /// Whether the same text does the same thing the next time, as far as the text tells. A path out of a
    /// file, a variable that is set elsewhere, a script from a pipe may be another by then.
    pub(crate) fn is_foreseeable(&self) -> bool {
        let hidden = [HarmCategory::Unknown, HarmCategory::RemoteCode];
        let is_hidden = |finding: &HarmFinding| hidden.contains(&finding.category);
        self.doubts.is_empty()
            && !self.findings.iter().any(is_hidden)
            && !self.commands.iter().any(ReducedCommand::is_open)
    }

    pub(crate) fn floor(&self) -> Vec<&HarmFinding> {
        self.findings
            .iter()
            .filter(|finding| finding.severity == HarmSeverity::Floor)
            .collect()
    }
}

/// A folder of somebody's own is a workspace like any other. The machine's folders and those with
/// keys in them are not: being there does not make them the project's.
fn works_there(workdir: &str, context: &JudgementContext) -> bool {
    use crate::paths::{self, PathLoss};
    let inside = format!("{}/x", workdir.trim_end_matches('/'));
    !matches!(
        paths::place(workdir, workdir, context),
        PathLoss::Root
            | PathLoss::System
            | PathLoss::InsideSystem
            | PathLoss::Home
            | PathLoss::Disk
    ) && paths::protected(&inside, workdir, context).is_none()
        && paths::secret(&inside, workdir, context).is_none()
}

fn read(
    text: &str,
    context: &JudgementContext,
    input: &ByteFlow,
    cwd: Option<&str>,
) -> ReducedScript {
    let marked = clean::without_holes(text);
    let text = marked.as_deref().unwrap_or(text);
    if text.len() > LONGEST_READ_TEXT {
        return scan::long(text, context);
    }
    let mut reduced = read_once(text, context, input, cwd, true);
    // What it looks like counts as well as what the shell would make of it.
    if let Some(folded) = clean::folded(text) {
        let looks = read_once(&folded, context, input, cwd, false);
        for finding in looks.findings {
            if !reduced.findings.contains(&finding) {
                reduced.findings.push(finding);
            }
        }
        reduced.commands.extend(looks.commands);
    }
    reduced
}

fn read_once(
    text: &str,
    context: &JudgementContext,
    input: &ByteFlow,
    cwd: Option<&str>,
    check: bool,
) -> ReducedScript {
    match syntax::parse(text) {
        Ok(script) => {
            let mut reduced = reduce::reduce(&script, context, input, cwd.map(str::to_owned));
            if check && let Some(doubt) = second::disagrees(text, &script) {
                reduced.doubts.push(doubt);
            }
            reduced
        }
        Err(doubt) if never_runs(text, &doubt) => ReducedScript::default(),
        Err(doubt) => {
            let mut reduced = scan::unreadable(text, context);
            reduced
                .doubts
                .insert(0, format!("it cannot be read as shell: {doubt}"));
            reduced
        }
    }
}

/// One line of bare words that ends in a redirection to nowhere: every shell refuses it before it
/// runs anything.
fn never_runs(text: &str, doubt: &syntax::SyntaxDoubt) -> bool {
    let bare = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(
                c,
                ' ' | '<' | '>' | '|' | '/' | '.' | '-' | '_' | '?' | ':' | '+'
            )
    };
    doubt.0.starts_with("a redirection to nowhere")
        && !text.contains("<<")
        && text.chars().all(bare)
}

fn read_words(
    words: &[String],
    context: &JudgementContext,
    input: ByteFlow,
    cwd: Option<String>,
) -> ReducedScript {
    let size: usize = words.iter().map(String::len).sum();
    if size > LONGEST_READ_TEXT {
        return scan::long(&words.join(" "), context);
    }
    let words: Vec<String> = words
        .iter()
        .map(|word| clean::without_holes(word).unwrap_or_else(|| word.clone()))
        .collect();
    reduce::reduce_words(&words, context, input, cwd)
}
