//! Code in other languages given on the command line or on standard input.
//!
//! What is recognisable is turned into the commands it amounts to: `shutil.rmtree('/x')` is judged
//! as `rm -rf /x`, `os.system('…')` as shell text.

mod calls;
mod deletes;
mod given;
mod guesses;
mod named;
mod printed;
mod shapes;
mod vocabulary;
mod whole;

pub(super) use printed::printed;

use super::ScriptWalker;
use super::literals::{CodeToken, tokens};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::text::{ByteFlow, ExpandedText, TaintSet};
use given::{InterpreterInput, code_of, language};

/// The code on an interpreter's command line.
pub(super) fn given_code(command: &ReducedCommand) -> Option<String> {
    let language = language(command.program())?;
    if language == "awk" {
        return None;
    }
    match code_of(command, language) {
        Some(InterpreterInput::Code(text)) => Some(text.s),
        _ => None,
    }
}

impl ScriptWalker<'_> {
    /// Looks inside the code of an interpreter, if there is any to see.
    pub(super) fn code(&mut self, command: &ReducedCommand) {
        let Some(language) = language(command.program()) else {
            return;
        };
        let cwd = self.cwd.clone();
        match code_of(command, language) {
            Some(InterpreterInput::Code(text)) => {
                let all = text.is_hole();
                if all || !text.is_known() && text.taint.has(TaintSet::NETWORK | TaintSet::DECODED)
                {
                    self.judge_unknown_code(text.taint, language);
                }
                self.look_inside(&text.s, language, command);
                self.deletes_what_it_is_given(&text.s, language, command);
            }
            Some(InterpreterInput::Input) => self.fed(&command.input.clone(), language, command),
            Some(InterpreterInput::File(file)) => {
                let mut content = self.content_of(&file, &command.input);
                content.taint = content.taint | file.taint;
                self.fed(&content, language, command);
            }
            None => {}
        }
        self.cwd = cwd;
    }

    /// `find / | perl -ne 'chomp; unlink'`: code that deletes what its input or its arguments name.
    fn deletes_what_it_is_given(&mut self, code: &str, language: &str, command: &ReducedCommand) {
        const DELETES: &[&str] = &[
            "unlink",
            "os.remove",
            "rmtree",
            "File.delete",
            "FileUtils.rm",
            "rmSync",
            "\"rm ",
            "'rm ",
        ];
        if !DELETES.iter().any(|call| code.contains(call)) {
            return;
        }
        let lines = command
            .input
            .known
            .as_deref()
            .unwrap_or_default()
            .lines()
            .take(8);
        let args = command.args().iter().map(|arg| arg.s.as_str());
        let whole = lines
            .chain(args)
            .filter(|path| path.starts_with('/'))
            .any(|path| {
                matches!(
                    paths::place(path, self.workdir(), self.context),
                    PathLoss::Root | PathLoss::System | PathLoss::Home
                )
            });
        if whole {
            self.find(HarmFinding::floor(
                HarmCategory::Destruction,
                format!("deletes every file of a whole system or home, in {language}"),
            ));
        }
    }

    fn fed(&mut self, code: &ByteFlow, language: &'static str, command: &ReducedCommand) {
        match &code.known {
            Some(text) => self.look_inside(text, language, command),
            None if code.present && code.taint.has(TaintSet::NETWORK | TaintSet::DECODED) => {
                self.judge_unknown_code(code.taint, language);
            }
            None => {}
        }
    }

    pub(super) fn look_inside(
        &mut self,
        code: &str,
        language: &'static str,
        command: &ReducedCommand,
    ) {
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
            walker.named_files(&tokens, language, command);
            walker.code_in_code(&tokens, language, command);
            walker.whole_code(code, &tokens, language);
        });
    }

    /// `exec("""…""")`: a text that is handed to the interpreter again.
    fn code_in_code(
        &mut self,
        tokens: &[CodeToken],
        language: &'static str,
        command: &ReducedCommand,
    ) {
        const SHORTEST: usize = 16;
        const MOST_CODE_TEXTS: usize = 4;
        let again = names(tokens, usize::MAX).any(|name| {
            matches!(
                name,
                "exec" | "eval" | "compile" | "Function" | "instance_eval"
            )
        });
        if !again {
            return;
        }
        let texts = tokens.iter().filter_map(|token| match token {
            CodeToken::Text(text) if text.len() >= SHORTEST && text.contains(['(', ';']) => {
                Some(text)
            }
            _ => None,
        });
        for text in texts.take(MOST_CODE_TEXTS) {
            self.look_inside(text, language, command);
        }
    }

    /// Tcl and expect: `exec rm …`, `spawn rm …`, a statement a line.
    fn statements(&mut self, code: &str) {
        for statement in code.split([';', '\n', '{', '}', '[', ']']).take(64) {
            let statement = statement.trim();
            let rest = statement
                .strip_prefix("exec ")
                .or_else(|| statement.strip_prefix("spawn "));
            if let Some(rest) = rest {
                self.run_text(rest, "script", &ByteFlow::default());
            }
            // Tcl's own commands for files.
            let own = [("file delete ", "rm -r "), ("file rename ", "mv ")]
                .into_iter()
                .find_map(|(own, shell)| Some((shell, statement.strip_prefix(own)?)));
            if let Some((shell, rest)) = own {
                let rest = rest.replace("-force", "-f");
                self.run_text(&format!("{shell}{rest}"), "script", &ByteFlow::default());
            }
        }
    }

    /// Runs what a call amounts to.
    fn amounts_to(&mut self, words: Vec<ExpandedText>) {
        self.run(ReducedCommand {
            words,
            via: self.via.clone(),
            cwd: self.cwd.clone(),
            ..ReducedCommand::default()
        });
    }

    fn with_home(&self, path: &str) -> String {
        match path.strip_prefix('~') {
            Some(rest) => format!("{}{rest}", self.context.home),
            None => path.to_owned(),
        }
    }

    fn found_in_code(&mut self, category: HarmCategory, what: &str, language: &str) {
        self.find(HarmFinding::dangerous(
            category,
            format!("{what}, in {language}"),
        ));
    }
}

/// The names among the next few tokens.
fn names(tokens: &[CodeToken], most: usize) -> impl Iterator<Item = &str> {
    tokens.iter().take(most).filter_map(|token| match token {
        CodeToken::Name(name) => Some(name.as_str()),
        _ => None,
    })
}
