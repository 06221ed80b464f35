//! Lists, pipelines and simple commands.

use super::{
    AssignValue, MOST_COMMANDS, NodeKind, Pipeline, RedirectOp, ShellAssignment, ShellNode,
    ShellParser, ShellRedirect, ShellScript, ShellWord, SimpleCommand, SyntaxDoubt, WordPart,
};

impl ShellParser<'_> {
    /// Pipelines up to one of `ends` (a reserved word or a closing operator), which is not taken.
    pub(super) fn script(&mut self, ends: &[&str]) -> Result<ShellScript, SyntaxDoubt> {
        self.nested(|parser| {
            let mut script = ShellScript::default();
            let mut conditional = false;
            let mut otherwise = false;
            loop {
                parser.skip_newlines()?;
                if parser.at_end() || parser.at_one_of(ends) {
                    return Ok(script);
                }
                let mut pipeline = parser.pipeline()?;
                pipeline.conditional = std::mem::take(&mut conditional);
                pipeline.otherwise = std::mem::take(&mut otherwise);
                parser.skip_blanks();
                let or = parser.looks_at("||");
                if parser.take("&&") || parser.take("||") {
                    conditional = true;
                    otherwise = or;
                    parser.skip_newlines()?;
                    if parser.at_end() {
                        return Err(parser.doubt("nothing follows && or ||"));
                    }
                } else if !parser.looks_at(";;") && parser.take(";") {
                } else if parser.take("&") {
                    pipeline.background = true;
                } else if !parser.at_end()
                    && parser.peek() != Some('\n')
                    && !parser.looks_at("#")
                    && !parser.at_one_of(ends)
                {
                    return Err(parser.doubt("a word or operator that does not belong there"));
                }
                script.pipelines.push(pipeline);
            }
        })
    }

    fn pipeline(&mut self) -> Result<Pipeline, SyntaxDoubt> {
        let mut stages = Vec::new();
        loop {
            self.skip_blanks();
            while self.take_reserved("!") || self.take_reserved("time") {
                self.skip_blanks();
                while self.take_reserved("-p") || self.take_reserved("--") {
                    self.skip_blanks();
                }
            }
            let done = self.at_end() || matches!(self.peek(), Some('\n' | ';'));
            if !(done && stages.is_empty()) {
                stages.push(self.command()?);
            } else {
                break;
            }
            self.skip_blanks();
            if !self.looks_at("||") && (self.take("|&") || self.take("|")) {
                self.skip_newlines()?;
            } else {
                break;
            }
        }
        Ok(Pipeline {
            stages,
            background: false,
            conditional: false,
            otherwise: false,
        })
    }

    fn command(&mut self) -> Result<ShellNode, SyntaxDoubt> {
        self.commands += 1;
        if self.commands > MOST_COMMANDS {
            return Err(SyntaxDoubt(
                "it has more commands than anybody reads".to_owned(),
            ));
        }
        self.skip_blanks();
        if let Some(kind) = self.compound()? {
            let mut redirects = Vec::new();
            while let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
            }
            return Ok(ShellNode { kind, redirects });
        }
        self.simple_stage()
    }

    pub(super) fn simple_stage(&mut self) -> Result<ShellNode, SyntaxDoubt> {
        let mut simple = SimpleCommand::default();
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                continue;
            }
            if simple.words.is_empty()
                && let Some(assign) = self.assign()?
            {
                simple.assigns.push(assign);
                continue;
            }
            let substitutes = self.looks_at("<(") || self.looks_at(">(");
            if (self.at_word_end() && !substitutes) || self.looks_at("#") {
                break;
            }
            // `declare -a x=(…)` and its kin take assignments as arguments.
            if !simple.words.is_empty()
                && declares(&simple.words[0])
                && let Some(assign) = self.assign()?
            {
                simple.assigns.push(assign);
                continue;
            }
            let word = self.word()?;
            if simple.words.is_empty() && simple.assigns.is_empty() && redirects.is_empty() {
                let start = self.at;
                self.skip_blanks();
                if self.take("(") {
                    self.skip_blanks();
                    if self.take(")")
                        && let Some(name) = function_name(&word)
                    {
                        return self.function_body(name);
                    }
                    return Err(self.doubt("a parenthesis after a word"));
                }
                self.at = start;
            }
            simple.words.push(word);
        }
        if simple.words.is_empty() && simple.assigns.is_empty() && redirects.is_empty() {
            return Err(self.doubt("a command is missing"));
        }
        Ok(ShellNode {
            kind: NodeKind::Simple(simple),
            redirects,
        })
    }

    /// `name=`, `name+=`, `name[index]=` and their values.
    fn assign(&mut self) -> Result<Option<ShellAssignment>, SyntaxDoubt> {
        let start = self.at;
        let name = self.name();
        if name.is_empty() {
            return Ok(None);
        }
        let mut index = None;
        let mut inside = None;
        if self.take("[") {
            let from = self.at;
            while let Some(c) = self.peek() {
                if c == ']' || c == '\n' {
                    break;
                }
                self.bump();
            }
            index = Some(self.text[from..self.at].to_owned());
            if !self.take("]") {
                self.at = start;
                return Ok(None);
            }
            inside = self.expansions_in(index.as_deref().unwrap_or_default())?;
        }
        let append = self.looks_at("+=") && self.take("+");
        if !self.take("=") {
            self.at = start;
            return Ok(None);
        }
        let value = if self.take("(") {
            AssignValue::Array(self.array_items()?)
        } else if self.at_word_end() && !self.looks_at("<(") && !self.looks_at(">(") {
            AssignValue::Scalar(ShellWord::default())
        } else {
            AssignValue::Scalar(self.word()?)
        };
        Ok(Some(ShellAssignment {
            name,
            index,
            append,
            inside,
            value,
        }))
    }

    fn array_items(&mut self) -> Result<Vec<ShellWord>, SyntaxDoubt> {
        let mut items = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.take(")") {
                return Ok(items);
            }
            if self.at_word_end() && !self.looks_at("<(") {
                return Err(self.doubt("an array that does not end"));
            }
            items.push(self.word()?);
        }
    }

    pub(super) fn redirect(&mut self) -> Result<Option<ShellRedirect>, SyntaxDoubt> {
        self.skip_blanks();
        let start = self.at;
        let digits = self.digits();
        if digits.is_empty() && self.take("{") {
            // `{name}>file` picks a descriptor.
            if self.name().is_empty() || !self.take("}") {
                self.at = start;
                return Ok(None);
            }
        }
        let op = if self.looks_at("<(") || self.looks_at(">(") {
            None
        } else if self.take("&>>") {
            Some(RedirectOp::Append)
        } else if self.take("&>") {
            Some(RedirectOp::Write)
        } else if self.take("<<<") {
            Some(RedirectOp::HereString)
        } else if self.take("<<-") {
            return self.heredoc(digits.parse().ok(), true).map(Some);
        } else if self.take("<<") {
            return self.heredoc(digits.parse().ok(), false).map(Some);
        } else if self.take("<>") {
            Some(RedirectOp::ReadWrite)
        } else if self.take("<&") || self.take(">&") {
            Some(RedirectOp::Duplicate)
        } else if self.take(">>") {
            Some(RedirectOp::Append)
        } else if self.take(">|") || self.take(">") {
            Some(RedirectOp::Write)
        } else if self.take("<") {
            Some(RedirectOp::Read)
        } else {
            None
        };
        let Some(op) = op else {
            self.at = start;
            return Ok(None);
        };
        self.skip_blanks();
        if self.at_word_end() && !self.looks_at("<(") && !self.looks_at(">(") {
            return Err(self.doubt("a redirection to nowhere"));
        }
        Ok(Some(ShellRedirect {
            fd: digits.parse().ok(),
            op,
            target: self.word()?,
            heredoc: None,
        }))
    }

    pub(super) fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            let fits =
                c == '_' || c.is_ascii_alphabetic() || (c.is_ascii_digit() && !name.is_empty());
            if !fits {
                break;
            }
            name.push(c);
            self.bump();
        }
        name
    }

    pub(super) fn digits(&mut self) -> String {
        let mut digits = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            digits.push(c);
            self.bump();
        }
        digits
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r')) {
            self.bump();
        }
    }

    fn skip_comment(&mut self) {
        if self.peek() == Some('#') {
            // A continuation has no meaning in a comment.
            let rest = &self.text[self.at..];
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    pub(super) fn skip_newlines(&mut self) -> Result<(), SyntaxDoubt> {
        loop {
            self.skip_blanks();
            self.skip_comment();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    fn newline(&mut self) -> Result<(), SyntaxDoubt> {
        self.bump();
        self.read_heredocs()
    }

    pub(super) fn at_word_end(&mut self) -> bool {
        matches!(
            self.peek(),
            None | Some(' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
        )
    }

    /// Whether one of these comes next: reserved words as whole words, operators as they are.
    pub(super) fn at_one_of(&mut self, tokens: &[&str]) -> bool {
        tokens.iter().any(|token| {
            if token.starts_with(|c: char| c.is_ascii_alphabetic()) || *token == "}" {
                let start = self.at;
                let found = self.take_reserved(token);
                self.at = start;
                found
            } else {
                self.looks_at(token)
            }
        })
    }

    pub(super) fn take_reserved(&mut self, word: &str) -> bool {
        let start = self.at;
        if self.take(word) && self.at_word_end() {
            return true;
        }
        self.at = start;
        false
    }
}

fn declares(word: &ShellWord) -> bool {
    matches!(
        word.as_plain(),
        Some("declare" | "typeset" | "local" | "export" | "readonly" | "alias")
    )
}

fn function_name(word: &ShellWord) -> Option<String> {
    match word.0.as_slice() {
        [WordPart::Plain(name)] => Some(name.clone()),
        _ => None,
    }
}
