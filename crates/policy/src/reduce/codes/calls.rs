//! Calls that start, evaluate or change something.

use super::super::Walker;
use super::super::literals::{Token, tokens};
use super::{names, vocabulary};
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::text::{Flow, Taint, Text};

/// A name with what stands around it.
pub(super) struct Call<'t> {
    pub(super) name: &'t str,
    pub(super) before: &'t [Token],
    /// What follows the name, past an opening bracket.
    pub(super) inner: &'t [Token],
    pub(super) called: bool,
    pub(super) language: &'static str,
}

impl Walker<'_> {
    pub(super) fn calls(&mut self, tokens: &[Token], language: &'static str) {
        for (at, token) in tokens.iter().enumerate() {
            match token {
                Token::Name(name) => self.call_at(&Call::new(name, tokens, at, language)),
                Token::Backquoted(text)
                    if matches!(language, "ruby" | "perl" | "php" | "script") =>
                {
                    self.run_text(text, language, &Flow::default());
                }
                Token::Text(text) if language == "awk" => self.awk_text(text, tokens, at),
                Token::Text(text) => self.text_at(text, tokens, at, language),
                _ => {}
            }
        }
    }

    fn call_at(&mut self, call: &Call<'_>) {
        let (name, language) = (call.name, call.language);
        let method = call.before.last() == Some(&Token::Mark('.'));
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
        self.deletes(call);
        self.moves(call);
    }

    fn started(&mut self, call: &Call<'_>) {
        let language = call.language;
        match call.inner.first() {
            Some(Token::Text(first)) => {
                let mut words = list_of_strings(call.inner);
                if vocabulary::names_itself(call.name) && words.len() > 1 {
                    words.remove(1);
                }
                // `system("rm", "-rf", "/")` and `spawn('rm', ['-rf', '/'])`.
                if words.len() > 1 && !first.trim().contains(' ') {
                    self.amounts_to(words.into_iter().map(Text::known).collect());
                } else {
                    self.run_text(first, language, &Flow::default());
                }
            }
            Some(Token::Backquoted(text)) if language == "node" => {
                self.run_text(text, language, &Flow::default());
            }
            Some(Token::Mark('[')) => {
                let words = list_of_strings(&call.inner[1..]);
                if !words.is_empty() {
                    self.amounts_to(words.into_iter().map(Text::known).collect());
                }
            }
            Some(Token::Name(_) | Token::Mark('$')) if language == "awk" => {
                let what = "runs text that cannot be known beforehand";
                self.found_in_code(Category::Disguise, what, language);
            }
            Some(Token::Name(_)) if call.called => {
                if names(call.inner, 12).any(vocabulary::fetches) {
                    self.found_in_code(Category::RemoteCode, "runs what it downloads", language);
                } else if names(call.inner, 12).any(vocabulary::decodes) {
                    let what = "decodes a command and runs it";
                    self.found_in_code(Category::Disguise, what, language);
                }
            }
            _ => {}
        }
    }

    fn evaluated(&mut self, call: &Call<'_>) {
        let language = call.language;
        let code = call
            .inner
            .iter()
            .take(24)
            .find(|token| matches!(token, Token::Text(text) if text.contains(['(', '`', ' '])));
        if let Some(Token::Text(code)) = code {
            let inside = tokens(code);
            self.below(language, |walker| {
                if walker.depth < super::super::DEPTH {
                    walker.shapes(code, &inside, language);
                    walker.calls(&inside, language);
                }
            });
        } else if names(call.inner, 16).any(vocabulary::fetches) {
            self.found_in_code(Category::RemoteCode, "runs what it downloads", language);
        } else if names(call.inner, 16).any(vocabulary::decodes) {
            self.found_in_code(Category::Disguise, "decodes code and runs it", language);
        } else if let [Token::Name(open), Token::Mark('('), Token::Text(file), ..] = call.inner
            && matches!(open.as_str(), "open" | "readFileSync" | "read")
            && crate::paths::anybodys(file, self.workdir(), self.context)
        {
            let what = "runs a file that anybody could have put there";
            self.found_in_code(Category::Injection, what, language);
        }
    }

    /// `os.rename`, `chmodSync` and what else has a command of the same meaning.
    fn moves(&mut self, call: &Call<'_>) {
        if !call.called {
            return;
        }
        let program = match call.name {
            "rename" | "renameSync" | "move" => "mv",
            "chmod" | "chmodSync" => "chmod",
            "symlink" | "symlinkSync" => "ln",
            _ => return,
        };
        let [Token::Text(first), Token::Mark(','), second, ..] = call.inner else {
            return;
        };
        let second = match second {
            Token::Text(text) | Token::Name(text) => text.trim_start_matches("0o").to_owned(),
            _ => return,
        };
        let first = self.with_home(first);
        let words = if program == "chmod" {
            [program, &second, &first]
        } else {
            [program, &first, &second]
        };
        self.amounts_to(words.into_iter().map(Text::known).collect());
    }

    /// A string that is itself a command, by where it stands.
    fn text_at(&mut self, text: &str, tokens: &[Token], at: usize, language: &'static str) {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let named = |token: Option<&Token>, expected: &str| matches!(token, Some(Token::Name(name)) if name == expected);
        // `$f("rm")` with `$f = "system"`, and `os["system"]("rm")`.
        let called = tokens.get(at + 1) == Some(&Token::Mark('('))
            || tokens.get(at + 1..at + 3) == Some(&[Token::Mark(']'), Token::Mark('(')]);
        if called && (vocabulary::starts(text) || vocabulary::evaluates(text)) {
            let what = "hides which function it calls";
            return self.found_in_code(Category::Disguise, what, language);
        }
        // Perl's `open(F, "cmd|")`.
        let piped = text.trim_end().strip_suffix('|');
        if let Some(command) = piped.filter(|_| matches!(language, "perl" | "ruby")) {
            self.run_text(command, language, &Flow::default());
        }
        // AppleScript's `do shell script "…"` and Groovy's `"…".execute()`.
        if language == "script" && (named(before, "script") || named(tokens.get(at + 2), "execute"))
        {
            self.run_text(text, language, &Flow::default());
        }
        // PHP's `array_map("unlink", glob("…"))`.
        if language == "php" && tokens.get(at + 1) == Some(&Token::Mark(',')) {
            self.deletes(&Call::new(text, tokens, at + 1, language));
        }
    }

    /// `"cmd" | getline`, `print | "cmd"`, `print > "file"` and sockets.
    fn awk_text(&mut self, text: &str, tokens: &[Token], at: usize) {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let pipe = Some(&Token::Mark('|'));
        if tokens.get(at + 1) == pipe || before == pipe {
            self.run_text(text, "awk", &Flow::unknown(Taint::DECODED));
        }
        if before == Some(&Token::Mark('>')) {
            self.run(Effective {
                words: vec![Text::known(":")],
                writes: vec![Text::known(text)],
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
}

impl<'t> Call<'t> {
    fn new(name: &'t str, tokens: &'t [Token], at: usize, language: &'static str) -> Self {
        let rest = &tokens[at + 1..];
        // Ruby's `send(:system, "…")`.
        let sent = tokens[..at].last() == Some(&Token::Mark(':'))
            && rest.first() == Some(&Token::Mark(','));
        let called = sent || rest.first() == Some(&Token::Mark('('));
        Self {
            name,
            before: &tokens[..at],
            inner: if called { &rest[1..] } else { rest },
            called,
            language,
        }
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
