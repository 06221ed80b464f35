//! Code in other languages given on the command line or on standard input.
//!
//! What is recognisable is turned into the commands it amounts to: `shutil.rmtree('/x')` is judged
//! as `rm -rf /x`, `os.system('…')` as shell text.

mod given;
mod shapes;

use super::Walker;
use super::literals::{Token, tokens};
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::text::{Flow, Taint, Text};
use given::{Given, code_of, language};

/// Calls whose string is run as a command.
const STARTS: &[&str] = &[
    "system",
    "popen",
    "popen2",
    "popen3",
    "exec",
    "execSync",
    "spawn",
    "spawnSync",
    "execFile",
    "execFileSync",
    "call",
    "check_call",
    "check_output",
    "run",
    "Popen",
    "getoutput",
    "getstatusoutput",
    "shell_exec",
    "passthru",
    "proc_open",
    "execv",
    "execve",
    "execvp",
    "execl",
    "execlp",
    "spawnl",
    "spawnv",
    "capture2",
    "capture3",
    "posix_spawn",
    "startfile",
    "capture2e",
    "pcntl_exec",
];

const DELETES_TREE: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm_r",
    "remove_entry_secure",
    "rmSync",
    "rmdirSync",
    "remove_tree",
    "rimraf",
    "removeSync",
    "removedirs",
    "rm",
];

const DELETES_FILE: &[&str] = &["unlink", "unlinkSync", "remove", "delete", "removeFile"];

impl Walker<'_> {
    /// Looks inside the code of an interpreter, if there is any to see.
    pub(super) fn code(&mut self, command: &Effective) {
        let Some(language) = language(command.program()) else {
            return;
        };
        match code_of(command, language) {
            Some(Given::Code(text)) if text.is_known() => {
                self.look_inside(&text.s, language, command);
            }
            Some(Given::Code(text)) => {
                let all = text.s.trim() == crate::text::HOLE.to_string();
                if all || text.taint.has(Taint::NETWORK | Taint::DECODED) {
                    self.judge_unknown_code(text.taint, language);
                }
                self.look_inside(&text.s, language, command);
            }
            Some(Given::Input) => match &command.input.known {
                Some(code) => {
                    let code = code.clone();
                    self.look_inside(&code, language, command);
                }
                None if command.input.present
                    && command.input.taint.has(Taint::NETWORK | Taint::DECODED) =>
                {
                    self.judge_unknown_code(command.input.taint, language);
                }
                None => {}
            },
            Some(Given::File(file)) => {
                let content = self.content_of(&file, &command.input);
                if let Some(code) = &content.known {
                    let code = code.clone();
                    self.look_inside(&code, language, command);
                } else if (content.taint | file.taint).has(Taint::NETWORK | Taint::DECODED) {
                    self.judge_unknown_code(content.taint | file.taint, language);
                }
            }
            None => {}
        }
    }

    fn look_inside(&mut self, code: &str, language: &'static str, command: &Effective) {
        if self.depth >= super::DEPTH {
            return self.doubt("it is nested too deeply to follow");
        }
        self.spend_text(code.len());
        let tokens = tokens(code);
        self.below(language, |walker| {
            walker.shapes(code, &tokens, language);
            walker.calls(&tokens, language);
            if language == "script" {
                walker.statements(code);
            }
            walker.files(&tokens, language, command);
        });
    }

    /// Tcl and expect: `exec rm …`, `spawn rm …`, a statement a line.
    fn statements(&mut self, code: &str) {
        for statement in code.split([';', '\n', '{', '}', '[', ']']).take(64) {
            let statement = statement.trim();
            let rest = statement
                .strip_prefix("exec ")
                .or_else(|| statement.strip_prefix("spawn "));
            if let Some(rest) = rest {
                self.run_text(rest, "script", &Flow::default());
            }
        }
    }

    fn calls(&mut self, tokens: &[Token], language: &'static str) {
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::Backquoted(text) if matches!(language, "ruby" | "perl" | "php") => {
                    self.run_text(&text.clone(), language, &Flow::default());
                }
                Token::Name(name) => self.call_at(
                    name,
                    &tokens[at + 1..],
                    at > 0 && tokens[at - 1] == Token::Mark('.'),
                    language,
                ),
                // Perl's `open(F, "cmd|")` and awk's `"cmd" | getline`, `print | "cmd"`.
                Token::Text(text)
                    if matches!(language, "perl" | "ruby") && text.trim_end().ends_with('|') =>
                {
                    let command = text.trim_end().trim_end_matches('|').to_owned();
                    self.run_text(&command, language, &Flow::default());
                }
                Token::Backquoted(text) if language == "script" => {
                    self.run_text(&text.clone(), language, &Flow::default());
                }
                // AppleScript's `do shell script "…"` and Groovy's `"…".execute()`.
                Token::Text(text)
                    if language == "script"
                        && (matches!(tokens.get(at.wrapping_sub(1)), Some(Token::Name(name)) if name == "script")
                            || matches!(tokens.get(at + 2), Some(Token::Name(name)) if name == "execute")) =>
                {
                    self.run_text(&text.clone(), language, &Flow::default());
                }
                Token::Text(text) if language == "awk" => {
                    let piped = tokens.get(at + 1) == Some(&Token::Mark('|'))
                        || (at > 0 && tokens[at - 1] == Token::Mark('|'));
                    if piped {
                        self.run_text(&text.clone(), "awk", &Flow::unknown(Taint::DECODED));
                    }
                    if at > 0 && tokens[at - 1] == Token::Mark('>') {
                        self.run(Effective {
                            words: vec![Text::known(":")],
                            writes: vec![Text::known(text.clone())],
                            via: self.via.clone(),
                            cwd: self.cwd.clone(),
                            ..Effective::default()
                        });
                    }
                    if text.starts_with("/inet") && text.contains("/tcp/") {
                        self.find(Finding::dangerous(
                            Category::ReverseShell,
                            "connects awk to the network",
                        ));
                    }
                }
                _ => {}
            }
        }
    }

    fn call_at(&mut self, name: &str, rest: &[Token], method: bool, language: &'static str) {
        let called = rest.first() == Some(&Token::Mark('('));
        let inner = if called { &rest[1..] } else { rest };
        if STARTS.contains(&name) || (language == "lua" && name == "execute") {
            if language == "python" && name == "exec" && !method {
                return self.evaluated(inner, language);
            }
            if language == "awk" && name != "system" {
                return;
            }
            return self.started(inner, called, language);
        }
        if matches!(
            name,
            "eval"
                | "Function"
                | "assert"
                | "instance_eval"
                | "loadstring"
                | "dofile"
                | "execfile"
                | "load"
        ) && (called || matches!(language, "perl" | "ruby"))
        {
            return self.evaluated(inner, language);
        }
        let target = inner.iter().find_map(|token| match token {
            Token::Text(text) => Some(self.with_home(text)),
            _ => None,
        });
        if DELETES_TREE.contains(&name) && (called || language == "ruby") {
            let recursive = name != "rm"
                && (name != "rmSync"
                    || inner
                        .iter()
                        .any(|t| matches!(t, Token::Name(n) if n == "recursive")))
                || inner
                    .iter()
                    .any(|t| matches!(t, Token::Name(n) if n == "recursive"));
            let target = target.map_or_else(|| Text::unknown(Taint::NONE), Text::known);
            let target = if literal_first(inner) || target.is_known() {
                target
            } else {
                self.home_call(inner).unwrap_or(target)
            };
            let flag = if recursive { "-rf" } else { "-f" };
            self.run(Effective {
                words: vec![Text::known("rm"), Text::known(flag), target],
                via: self.via.clone(),
                cwd: self.cwd.clone(),
                ..Effective::default()
            });
        } else if name == "unlink" && glob_inside(inner) {
            let target = target.unwrap_or_default();
            self.run(Effective {
                words: vec![Text::known("rm"), Text::known("-rf"), Text::known(target)],
                via: self.via.clone(),
                cwd: self.cwd.clone(),
                ..Effective::default()
            });
        } else if DELETES_FILE.contains(&name)
            && called
            && let Some(target) = target.filter(|_| literal_first(inner))
        {
            self.run(Effective {
                words: vec![Text::known("rm"), Text::known("-f"), Text::known(target)],
                via: self.via.clone(),
                cwd: self.cwd.clone(),
                ..Effective::default()
            });
        }
    }

    fn with_home(&self, path: &str) -> String {
        match path.strip_prefix('~') {
            Some(rest) => format!("{}{rest}", self.context.home),
            None => path.to_owned(),
        }
    }

    /// `expanduser('~')`, `Path.home()`, `os.homedir()`.
    fn home_call(&self, inner: &[Token]) -> Option<Text> {
        inner.iter().take(6).any(|token| matches!(token, Token::Name(name) if matches!(name.as_str(), "home" | "homedir" | "HOME"))).then(|| Text::known(self.context.home.clone()))
    }

    fn started(&mut self, inner: &[Token], called: bool, language: &'static str) {
        match inner.first() {
            Some(Token::Text(first)) => {
                let words = list_of_strings(inner);
                // `system("rm", "-rf", "/")` and `spawn('rm', ['-rf', '/'])`.
                if words.len() > 1 && !first.trim().contains(' ') {
                    let words = words.into_iter().map(Text::known).collect();
                    self.run(Effective {
                        words,
                        via: self.via.clone(),
                        cwd: self.cwd.clone(),
                        ..Effective::default()
                    });
                } else {
                    self.run_text(&first.clone(), language, &Flow::default());
                }
            }
            Some(Token::Mark('[')) => {
                let words: Vec<String> = list_of_strings(&inner[1..]);
                if !words.is_empty() {
                    let words = words.into_iter().map(Text::known).collect();
                    self.run(Effective {
                        words,
                        via: self.via.clone(),
                        cwd: self.cwd.clone(),
                        ..Effective::default()
                    });
                }
            }
            Some(Token::Name(_)) if called => {
                let near: Vec<&str> = inner
                    .iter()
                    .take(12)
                    .filter_map(|t| match t {
                        Token::Name(name) => Some(name.as_str()),
                        _ => None,
                    })
                    .collect();
                if near.iter().any(|name| fetches(name)) {
                    self.find(Finding::dangerous(
                        Category::RemoteCode,
                        format!("runs what it downloads, in {language}"),
                    ));
                } else if near.iter().any(|name| {
                    name.contains("decode")
                        || *name == "fromhex"
                        || *name == "unhexlify"
                        || *name == "join"
                        || *name == "chr"
                }) {
                    self.find(Finding::dangerous(
                        Category::Disguise,
                        format!("decodes a command and runs it, in {language}"),
                    ));
                }
            }
            _ => {}
        }
    }

    fn evaluated(&mut self, inner: &[Token], language: &'static str) {
        let mut names = inner.iter().take(16).filter_map(|token| match token {
            Token::Name(name) => Some(name.as_str()),
            _ => None,
        });
        let code = inner
            .iter()
            .take(24)
            .find(|token| matches!(token, Token::Text(text) if text.contains(['(', '`'])));
        if let Some(Token::Text(code)) = code.or(inner.first()) {
            let tokens = tokens(code);
            let code = code.clone();
            return self.below(language, |walker| {
                if walker.depth < super::DEPTH {
                    walker.shapes(&code, &tokens, language);
                    walker.calls(&tokens, language);
                }
            });
        }
        let all: Vec<&str> = names.by_ref().collect();
        if all.iter().any(|name| fetches(name)) {
            self.find(Finding::dangerous(
                Category::RemoteCode,
                format!("runs what it downloads, in {language}"),
            ));
        } else if all.iter().any(|name| {
            name.contains("decode")
                || name.contains("decompress")
                || name.contains("hex")
                || *name == "loads"
                || *name == "chr"
                || *name == "unpack"
        }) {
            self.find(Finding::dangerous(
                Category::Disguise,
                format!("decodes code and runs it, in {language}"),
            ));
        }
    }

    /// Files that the code names: secrets it would read, places it would write.
    fn files(&mut self, tokens: &[Token], language: &'static str, command: &Effective) {
        for (at, token) in tokens.iter().enumerate() {
            let Token::Text(text) = token else {
                continue;
            };
            if text.len() > 256
                || !(text.starts_with('/') || text.starts_with('~') || text.starts_with('.'))
            {
                continue;
            }
            if self.is_secret(text) {
                self.find(Finding::dangerous(
                    Category::SecretRead,
                    format!("reads a secret in {language}: {text}"),
                ));
            }
            let mode = match tokens.get(at + 1..at + 3) {
                Some([Token::Mark(','), Token::Text(mode)]) => mode.as_str(),
                _ => "",
            };
            let by_call = tokens[..at].iter().rev().take(3).any(|t| matches!(t, Token::Name(n) if n.starts_with("write") || n.starts_with("append") || n == "file_put_contents"));
            let path = text.trim_start_matches('>').trim().to_owned();
            let writes = mode.starts_with(['w', 'a', 'x'])
                || mode == "r+"
                || by_call
                || mode.starts_with('>')
                || tokens.get(at + 1..).is_some_and(|rest| {
                    rest.iter().take(6).any(
                        |t| matches!(t, Token::Name(n) if n == "write_text" || n == "write_bytes"),
                    )
                });
            if writes {
                let path = path.strip_prefix('~').map_or_else(
                    || path.clone(),
                    |rest| format!("{}{rest}", self.context.home),
                );
                self.judge(Effective {
                    writes: vec![Text::known(path)],
                    cwd: command.cwd.clone(),
                    via: self.via.clone(),
                    ..Effective::default()
                });
            }
        }
    }
}

/// What a one-liner that only prints a constant prints.
pub(super) fn printed(command: &Effective) -> Option<String> {
    let language = language(command.program())?;
    let Given::Code(code) = code_of(command, language)? else {
        return None;
    };
    let tokens = tokens(&code.s);
    match tokens.as_slice() {
        [Token::Name(name), Token::Text(text)]
        | [Token::Name(name), Token::Text(text), Token::Mark(';')]
        | [
            Token::Name(name),
            Token::Mark('('),
            Token::Text(text),
            Token::Mark(')'),
        ]
        | [
            Token::Name(name),
            Token::Mark('('),
            Token::Text(text),
            Token::Mark(')'),
            Token::Mark(';'),
        ] if matches!(name.as_str(), "print" | "puts" | "echo" | "say") => Some(text.clone()),
        [
            Token::Name(begin),
            Token::Mark('{'),
            Token::Name(name),
            Token::Text(text),
            Token::Mark('}'),
        ] if begin == "BEGIN" && matches!(name.as_str(), "print" | "printf") => Some(text.clone()),
        _ => None,
    }
}

fn list_of_strings(tokens: &[Token]) -> Vec<String> {
    let mut words = Vec::new();
    for token in tokens {
        match token {
            Token::Text(text) => words.push(text.clone()),
            Token::Mark(',' | '[') => {}
            _ => break,
        }
    }
    words
}

/// `unlink glob "…"`: as good as a folder with everything in it.
fn glob_inside(inner: &[Token]) -> bool {
    inner
        .iter()
        .take(8)
        .any(|token| matches!(token, Token::Name(name) if name == "glob"))
}

fn literal_first(inner: &[Token]) -> bool {
    matches!(inner.first(), Some(Token::Text(_)))
}

fn fetches(name: &str) -> bool {
    matches!(
        name,
        "urlopen"
            | "requests"
            | "urllib"
            | "urllib2"
            | "urlretrieve"
            | "httpx"
            | "get"
            | "LWP"
            | "HTTP"
            | "Net"
            | "fetch"
            | "open_uri"
            | "file_get_contents"
            | "curl_exec"
            | "URI"
            | "https"
            | "recv"
            | "request"
    )
}
