//! Files that code names: secrets it would read, places it would write.

use super::super::Walker;
use super::super::literals::Token;
use crate::effective::Effective;
use crate::finding::Category;
use crate::paths::{self, Place};
use crate::text::{Flow, HOLE, Taint, Text};

const LONGEST: usize = 256;

impl Walker<'_> {
    pub(super) fn named_files(
        &mut self,
        tokens: &[Token],
        language: &'static str,
        command: &Effective,
    ) {
        for (at, token) in tokens.iter().enumerate() {
            let Token::Text(text) = token else {
                continue;
            };
            let text = &self.under_home(text, &tokens[at.saturating_sub(8)..at]);
            if text.contains(HOLE) && opens(&tokens[at.saturating_sub(3)..at]) {
                self.found_in_code(
                    Category::Unknown,
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
                self.found_in_code(Category::SecretRead, &what, language);
            }
            if written(tokens, at) {
                let path = self.with_home(text.trim_start_matches('>').trim());
                let fetched = super::names(tokens, usize::MAX).any(super::vocabulary::fetches);
                let taint = if fetched { Taint::NETWORK } else { Taint::NONE };
                self.keep(&path, Flow::unknown(taint));
                self.judge(Effective {
                    writes: vec![Text::known(path)],
                    cwd: command.cwd.clone(),
                    via: self.via.clone(),
                    ..Effective::default()
                });
            }
        }
    }

    /// `process.env.HOME + '/.bashrc'` and `join(homedir(), '.bashrc')`.
    fn under_home(&self, text: &str, before: &[Token]) -> String {
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
    pub(super) fn names_foreign_file(&self, token: &Token) -> bool {
        let Token::Text(text) = token else {
            return false;
        };
        let path = self.with_home(text);
        path.starts_with('/')
            && path.len() < LONGEST
            && !path.contains("/ssl/")
            && !path.contains("/pki/")
            && matches!(
                paths::place(&path, self.workdir(), self.context),
                Place::InsideSystem | Place::InsideHome
            )
    }
}

/// Calls that are given the name of a file.
fn opens(before: &[Token]) -> bool {
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
    text.len() < LONGEST
        && (text.starts_with(['/', '~', '.', '>']) || text.ends_with("/.ssh/id_rsa"))
}

fn written(tokens: &[Token], at: usize) -> bool {
    let mut after = tokens[at + 1..]
        .iter()
        .skip_while(|token| **token == Token::Mark(')'))
        .take(2);
    let mode = match (after.next(), after.next()) {
        (Some(Token::Mark(',')), Some(Token::Text(mode))) => mode.as_str(),
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
        && matches!(&tokens[at - 2], Token::Text(mode) if matches!(mode.as_str(), ">" | ">>" | "+>" | "+<"));
    let before = super::names(&tokens[at.saturating_sub(3)..at], 3).any(writes)
        || super::names(&tokens[at.saturating_sub(6)..at], 6).any(stores)
        || opened;
    let after = super::names(&tokens[at + 1..], 6).any(|n| n == "write_text" || n == "write_bytes");
    let marked = matches!(&tokens[at], Token::Text(text) if text.starts_with('>'));
    mode.starts_with(['w', 'a', 'x', '>']) || mode == "r+" || before || after || marked
}
