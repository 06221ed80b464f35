//! Files that code names: secrets it would read, places it would write.

use super::super::ScriptWalker;
use super::super::literals::CodeToken;
use crate::effective::ReducedCommand;
use crate::finding::HarmCategory;
use crate::paths::{self, PathLoss};
use crate::text::{ByteFlow, ExpandedText, HOLE, TaintSet};

const LONGEST_CODE_NAME: usize = 256;

impl ScriptWalker<'_> {
    pub(super) fn named_files(
        &mut self,
        tokens: &[CodeToken],
        language: &'static str,
        command: &ReducedCommand,
    ) {
        for (at, token) in tokens.iter().enumerate() {
            let CodeToken::Text(text) = token else {
                continue;
            };
            let text = &self.under_home(text, &tokens[at.saturating_sub(8)..at]);
            if text.contains(HOLE) && opens(&tokens[at.saturating_sub(3)..at]) {
                self.found_in_code(
                    HarmCategory::Unknown,
                    "opens a file that cannot be known beforehand",
                    language,
                );
                continue;
            }
            let plain = is_script_name(text) && written(tokens, at);
            if !is_path(text) && !plain {
                continue;
            }
            if self.is_secret(text) {
                let what = format!("reads a secret ({text})");
                self.found_in_code(HarmCategory::SecretRead, &what, language);
            }
            if written(tokens, at) {
                let path = self.with_home(text.trim_start_matches('>').trim());
                let fetched = super::names(tokens, usize::MAX).any(super::vocabulary::fetches);
                let taint = if fetched {
                    TaintSet::NETWORK
                } else {
                    TaintSet::NONE
                };
                self.keep(&path, ByteFlow::unknown(taint));
                self.judge(ReducedCommand {
                    writes: vec![ExpandedText::known(path)],
                    cwd: command.cwd.clone(),
                    via: self.via.clone(),
                    ..ReducedCommand::default()
                });
            }
        }
    }

    /// `process.env.HOME + '/.bashrc'` and `join(homedir(), '.bashrc')`.
    fn under_home(&self, text: &str, before: &[CodeToken]) -> String {
        let home = super::names(before, 8).any(|name| matches!(name, "HOME" | "homedir" | "home"));
        if home && (text.starts_with("/.") || text.starts_with('.')) {
            return format!("{}/{}", self.context.home, text.trim_start_matches('/'));
        }
        text.to_owned()
    }

    pub(super) fn is_secret(&self, text: &str) -> bool {
        let path = self.with_home(text);
        is_path(text) && paths::secret(&path, self.workdir(), self.context).is_some()
    }

    /// Of the machine or of a home folder, and nothing that a connection itself needs.
    pub(super) fn names_foreign_file(&self, token: &CodeToken) -> bool {
        let CodeToken::Text(text) = token else {
            return false;
        };
        let path = self.with_home(text);
        path.starts_with('/')
            && path.len() < LONGEST_CODE_NAME
            && !path.contains("/ssl/")
            && !path.contains("/pki/")
            && matches!(
                paths::place(&path, self.workdir(), self.context),
                PathLoss::InsideSystem | PathLoss::InsideHome
            )
    }
}

/// Calls that are given the name of a file.
fn opens(before: &[CodeToken]) -> bool {
    super::names(before, 3).any(|name| {
        matches!(
            name,
            "open"
                | "read"
                | "readFileSync"
                | "readfile"
                | "file_get_contents"
                | "readlines"
                | "unlink"
                | "remove"
                | "rmtree"
                | "writeFileSync"
                | "write"
                | "Path"
                | "slurp"
        )
    })
}

/// A file that a shell or an interpreter would be given next.
fn is_script_name(text: &str) -> bool {
    text.len() < 64
        && [".sh", ".py", ".pl", ".rb", ".js", ".php", ".lua", ".bash"]
            .iter()
            .any(|end| text.ends_with(end))
}

fn is_path(text: &str) -> bool {
    text.len() < LONGEST_CODE_NAME
        && (text.starts_with(['/', '~', '.', '>']) || text.ends_with("/.ssh/id_rsa"))
}

fn written(tokens: &[CodeToken], at: usize) -> bool {
    let mut after = tokens[at + 1..]
        .iter()
        .skip_while(|token| **token == CodeToken::Mark(')'))
        .take(2);
    let mode = match (after.next(), after.next()) {
        (Some(CodeToken::Mark(',')), Some(CodeToken::Text(mode))) => mode.as_str(),
        _ => "",
    };
    let writes = |name: &str| {
        name.starts_with("write")
            || name.starts_with("append")
            || name == "file_put_contents"
            || name == "createWriteStream"
            || matches!(
                name,
                "OpenFile" | "FileWriter" | "FileOutputStream" | "PrintWriter" | "RandomAccessFile"
            )
    };
    let stores = |name: &str| {
        matches!(
            name,
            "getstore"
                | "cp"
                | "urlretrieve"
                | "download"
                | "copy"
                | "copyfile"
                | "mirror"
                | "download_file"
                | "rename"
        )
    };
    // Perl's `open F, ">", "file"`.
    let opened = at >= 2
        && matches!(&tokens[at - 2], CodeToken::Text(mode) if matches!(mode.as_str(), ">" | ">>" | "+>" | "+<"));
    let before = super::names(&tokens[at.saturating_sub(3)..at], 3).any(writes)
        || super::names(&tokens[at.saturating_sub(6)..at], 6).any(stores)
        || opened;
    let after = super::names(&tokens[at + 1..], 6).any(|n| n == "write_text" || n == "write_bytes");
    let marked = matches!(&tokens[at], CodeToken::Text(text) if text.starts_with('>'));
    // `os.open(path, os.O_WRONLY)`, and a path that is put together before it is written to.
    let flagged = super::names(&tokens[at + 1..], 6)
        .any(|name| matches!(name, "O_WRONLY" | "O_RDWR" | "O_CREAT" | "O_APPEND"));
    let from = tokens[..at]
        .iter()
        .rposition(|token| matches!(token, CodeToken::Mark(';' | '{' | '}')))
        .map_or(0, |at| at + 1);
    let joined = tokens[..at].last() == Some(&CodeToken::Mark('+'))
        && super::names(&tokens[from.max(at.saturating_sub(14))..at], 14).any(writes);
    mode.starts_with(['w', 'a', 'x', '>'])
        || mode.starts_with("r+")
        || before
        || after
        || marked
        || flagged
        || joined
}
