//! Calls that start, evaluate or change something.

use super::super::ScriptWalker;
use super::super::literals::{CodeToken, tokens};
use super::{names, vocabulary};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::{ByteFlow, ExpandedText, TaintSet};

/// A name with what stands around it.
pub(super) struct CodeCall<'t> {
    pub(super) name: &'t str,
    pub(super) before: &'t [CodeToken],
    /// What follows the name, past an opening bracket.
    pub(super) inner: &'t [CodeToken],
    pub(super) called: bool,
    pub(super) language: &'static str,
}

impl ScriptWalker<'_> {
    pub(super) fn calls(&mut self, tokens: &[CodeToken], language: &'static str) {
        for (at, token) in tokens.iter().enumerate() {
            match token {
                CodeToken::Name(name) => self.call_at(&CodeCall::new(name, tokens, at, language)),
                CodeToken::Backquoted(text)
                    if matches!(language, "ruby" | "perl" | "php" | "script")
                        || language == "node" && is_shell_tag(tokens, at) =>
                {
                    self.run_text(text, language, &ByteFlow::default());
                }
                CodeToken::Text(text) if language == "awk" => self.awk_text(text, tokens, at),
                CodeToken::Text(text) => self.text_at(text, tokens, at, language),
                _ => {}
            }
        }
    }

    fn call_at(&mut self, call: &CodeCall<'_>) {
        let (name, language) = (call.name, call.language);
        let method = call.before.last() == Some(&CodeToken::Mark('.'));
        if vocabulary::starts(name) || (language == "lua" && name == "execute") {
            if language == "python" && name == "exec" && !method {
                return self.evaluated(call);
            }
            if language == "awk" && name != "system" {
                return;
            }
            return self.started(call);
        }
        if vocabulary::evaluates(name) && (call.called || matches!(language, "perl" | "ruby")) {
            return self.evaluated(call);
        }
        // What comes after it starts there.
        if let ("chdir", Some(CodeToken::Text(path))) = (name, call.inner.first())
            && path.starts_with('/')
        {
            self.cwd = Some(path.clone());
        }
        if let ("truncate" | "truncateSync", Some(CodeToken::Text(path))) =
            (name, call.inner.first())
        {
            let words = ["truncate", "-s", "0", path.as_str()];
            self.amounts_to(words.map(ExpandedText::known).into());
        }
        self.deletes(call);
        self.moves(call);
    }

    fn started(&mut self, call: &CodeCall<'_>) {
        let language = call.language;
        match call.inner.first() {
            Some(CodeToken::Text(first)) => {
                let mut words = list_of_strings(call.inner);
                if vocabulary::names_itself(call.name) && words.len() > 1 {
                    words.remove(1);
                }
                // `system("rm", "-rf", "/")` and `spawn('rm', ['-rf', '/'])`.
                if words.len() > 1 && !first.trim().contains(' ') {
                    self.amounts_to(words.into_iter().map(ExpandedText::known).collect());
                } else {
                    // What is put behind it is only known when it runs.
                    let goes_on = first.ends_with(' ')
                        && matches!(
                            call.inner.get(1),
                            Some(CodeToken::Name(_) | CodeToken::Mark('+' | '.' | '$'))
                        );
                    let text = if goes_on {
                        format!("{first}\"$__unknown\"")
                    } else {
                        first.clone()
                    };
                    self.run_text(&text, language, &ByteFlow::default());
                }
            }
            Some(CodeToken::Backquoted(text)) if language == "node" => {
                self.run_text(text, language, &ByteFlow::default());
            }
            Some(CodeToken::Mark('[')) => {
                let words = list_of_strings(&call.inner[1..]);
                // `["726d"].pack("H*")`
                if language == "ruby" && names(call.inner, 12).any(|name| name == "pack") {
                    let what = "decodes a command and runs it";
                    self.found_in_code(HarmCategory::Disguise, what, language);
                    self.decoded(call.inner, language);
                } else if !words.is_empty() {
                    self.amounts_to(words.into_iter().map(ExpandedText::known).collect());
                }
            }
            Some(CodeToken::Name(_) | CodeToken::Mark('$')) if language == "awk" => {
                let what = "runs text that cannot be known beforehand";
                self.found_in_code(HarmCategory::Disguise, what, language);
            }
            Some(CodeToken::Name(_)) if call.called || matches!(language, "perl" | "ruby") => {
                if names(call.inner, 12).any(vocabulary::fetches) {
                    self.found_in_code(
                        HarmCategory::RemoteCode,
                        "runs what it downloads",
                        language,
                    );
                } else if names(call.inner, 12).any(vocabulary::decodes) {
                    let what = "decodes a command and runs it";
                    self.found_in_code(HarmCategory::Disguise, what, language);
                    self.decoded(call.inner, language);
                }
            }
            _ => {}
        }
    }

    fn evaluated(&mut self, call: &CodeCall<'_>) {
        let language = call.language;
        let code =
            call.inner.iter().take(24).find(
                |token| matches!(token, CodeToken::Text(text) if text.contains(['(', '`', ' '])),
            );
        let hidden = names(call.inner, 6).any(|name| {
            vocabulary::decodes(name) && !matches!(name, "join" | "loads" | "chr" | "reverse")
        });
        if hidden {
            self.found_in_code(HarmCategory::Disguise, "decodes code and runs it", language);
        }
        if let Some(CodeToken::Text(code)) = code {
            let inside = tokens(code);
            self.below(language, |walker| {
                if walker.depth < super::super::DEPTH {
                    walker.shapes(code, &inside, language);
                    walker.calls(&inside, language);
                }
            });
        } else if names(call.inner, 16).any(vocabulary::fetches) {
            self.found_in_code(HarmCategory::RemoteCode, "runs what it downloads", language);
        } else if names(call.inner, 16).any(vocabulary::decodes) {
            self.found_in_code(HarmCategory::Disguise, "decodes code and runs it", language);
        } else if let [
            CodeToken::Name(open),
            CodeToken::Mark('('),
            CodeToken::Text(file),
            ..,
        ] = call.inner
            && matches!(open.as_str(), "open" | "readFileSync" | "read")
            && crate::paths::anybodys(file, self.workdir(), self.context)
        {
            let what = "runs a file that anybody could have put there";
            self.found_in_code(HarmCategory::Injection, what, language);
        }
    }

    /// `os.rename`, `chmodSync` and what else has a command of the same meaning.
    fn moves(&mut self, call: &CodeCall<'_>) {
        if !call.called && !matches!(call.language, "perl" | "ruby") {
            return;
        }
        let program = match call.name {
            "rename" | "renameSync" | "move" => "mv",
            "chmod" | "chmodSync" => "chmod",
            "symlink" | "symlinkSync" => "ln",
            _ => return,
        };
        let [CodeToken::Text(first), CodeToken::Mark(','), second, ..] = call.inner else {
            return;
        };
        let second = match second {
            CodeToken::Text(text) | CodeToken::Name(text) => {
                text.trim_start_matches("0o").to_owned()
            }
            _ => return,
        };
        let first = self.with_home(first);
        let words = if program == "chmod" {
            [program, &second, &first]
        } else {
            [program, &first, &second]
        };
        self.amounts_to(words.into_iter().map(ExpandedText::known).collect());
    }

    /// A string that is itself a command, by where it stands.
    fn text_at(&mut self, text: &str, tokens: &[CodeToken], at: usize, language: &'static str) {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let named = |token: Option<&CodeToken>, expected: &str| matches!(token, Some(CodeToken::Name(name)) if name == expected);
        // `$f("rm")` with `$f = "system"`, and `os["system"]("rm")`.
        let called = tokens.get(at + 1) == Some(&CodeToken::Mark('('))
            || tokens.get(at + 1..at + 3) == Some(&[CodeToken::Mark(']'), CodeToken::Mark('(')]);
        if called && (vocabulary::starts(text) || vocabulary::evaluates(text)) {
            let what = "hides which function it calls";
            return self.found_in_code(HarmCategory::Disguise, what, language);
        }
        // Perl's `open(F, "cmd|")`.
        let piped = text.trim_end().strip_suffix('|');
        if let Some(command) = piped.filter(|_| matches!(language, "perl" | "ruby")) {
            self.run_text(command, language, &ByteFlow::default());
        }
        // AppleScript's `do shell script "…"` and Groovy's `"…".execute()`.
        if language == "script" && (named(before, "script") || named(tokens.get(at + 2), "execute"))
        {
            self.run_text(text, language, &ByteFlow::default());
        }
        // PHP's `array_map("unlink", glob("…"))`.
        if language == "php" && tokens.get(at + 1) == Some(&CodeToken::Mark(',')) {
            self.deletes(&CodeCall::new(text, tokens, at + 1, language));
        }
    }

    /// `"cmd" | getline`, `print | "cmd"`, `print > "file"` and sockets.
    fn awk_text(&mut self, text: &str, tokens: &[CodeToken], at: usize) {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let pipe = Some(&CodeToken::Mark('|'));
        if tokens.get(at + 1) == pipe || before == pipe {
            self.run_text(text, "awk", &ByteFlow::unknown(TaintSet::DECODED));
        }
        if before == Some(&CodeToken::Mark('>')) {
            self.run(ReducedCommand {
                words: vec![ExpandedText::known(":")],
                writes: vec![ExpandedText::known(text)],
                via: self.via.clone(),
                cwd: self.cwd.clone(),
                ..ReducedCommand::default()
            });
        }
        if text.starts_with("/inet") && text.contains("/tcp/") {
            self.find(HarmFinding::dangerous(
                HarmCategory::ReverseShell,
                "connects awk to the network",
            ));
        }
    }
}

impl<'t> CodeCall<'t> {
    fn new(name: &'t str, tokens: &'t [CodeToken], at: usize, language: &'static str) -> Self {
        let rest = &tokens[at + 1..];
        // Ruby's `send(:system, "…")`.
        let sent = tokens[..at].last() == Some(&CodeToken::Mark(':'))
            && rest.first() == Some(&CodeToken::Mark(','));
        let called = sent || rest.first() == Some(&CodeToken::Mark('('));
        Self {
            name,
            before: &tokens[..at],
            inner: if called { &rest[1..] } else { rest },
            called,
            language,
        }
    }
}

/// Bun's and zx's `$`, which runs the text behind it.
fn is_shell_tag(tokens: &[CodeToken], at: usize) -> bool {
    match at.checked_sub(1).and_then(|at| tokens.get(at)) {
        Some(CodeToken::Mark(mark)) => *mark == '$',
        Some(CodeToken::Name(name)) => name.ends_with('$'),
        _ => false,
    }
}

fn list_of_strings(tokens: &[CodeToken]) -> Vec<String> {
    let mut words = Vec::new();
    for token in tokens {
        match token {
            CodeToken::Text(text) => words.push(text.clone()),
            CodeToken::Mark(',' | '[') => {}
            _ => break,
        }
    }
    words
}
