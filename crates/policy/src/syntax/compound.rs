//! Commands that contain commands.

use std::rc::Rc;

use super::{NodeKind, Pipeline, ShellNode, ShellParser, ShellScript, ShellWord, SyntaxDoubt};

impl ShellParser<'_> {
    /// `None` if a simple command comes next.
    pub(super) fn compound(&mut self) -> Result<Option<NodeKind>, SyntaxDoubt> {
        if self.looks_at("((") {
            let start = self.at;
            if let Some(kind) = self.arithmetic_command()? {
                return Ok(Some(kind));
            }
            self.at = start;
        }
        if self.take("(") {
            let body = self.script(&[")"])?;
            self.expect(")")?;
            return Ok(Some(NodeKind::Subshell(body)));
        }
        let kind = if self.take_reserved("{") {
            let body = self.script(&["}"])?;
            self.expect_word("}")?;
            NodeKind::Group(vec![body])
        } else if self.take_reserved("if") {
            NodeKind::Group(self.branches()?)
        } else if self.take_reserved("while") || self.take_reserved("until") {
            let condition = self.script(&["do"])?;
            let body = self.do_group()?;
            NodeKind::Loop { condition, body }
        } else if self.take_reserved("for") || self.take_reserved("select") {
            self.for_loop()?
        } else if self.take_reserved("case") {
            self.case()?
        } else if self.take_reserved("[[") {
            self.test()?
        } else if self.take_reserved("function") {
            self.skip_blanks();
            let word = self.word()?;
            self.skip_blanks();
            if self.take("(") {
                self.skip_blanks();
                self.expect(")")?;
            }
            let name = word.as_plain().unwrap_or_default().to_owned();
            return self.function_body(name).map(|node| Some(node.kind));
        } else if self.take_reserved("coproc") {
            let start = self.at;
            self.skip_blanks();
            // `coproc NAME { … }`: the name only counts before a compound command.
            if !self.name().is_empty() {
                self.skip_blanks();
                if !(self.looks_at("{") || self.looks_at("(")) {
                    self.at = start;
                }
            }
            let node = self.nested(Self::stage)?;
            let mut script = one(node);
            script.pipelines[0].background = true;
            NodeKind::Subshell(script)
        } else {
            return Ok(None);
        };
        Ok(Some(kind))
    }

    pub(super) fn function_body(&mut self, name: String) -> Result<ShellNode, SyntaxDoubt> {
        self.skip_newlines()?;
        let body = self.nested(Self::stage)?;
        Ok(ShellNode {
            kind: NodeKind::Function {
                name,
                body: Rc::new(one(body)),
            },
            redirects: Vec::new(),
        })
    }

    fn stage(&mut self) -> Result<ShellNode, SyntaxDoubt> {
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

    fn branches(&mut self) -> Result<Vec<ShellScript>, SyntaxDoubt> {
        let mut parts = vec![self.script(&["then"])?];
        self.expect_word("then")?;
        loop {
            parts.push(self.script(&["elif", "else", "fi"])?);
            if self.take_reserved("fi") {
                return Ok(parts);
            }
            if self.take_reserved("elif") {
                parts.push(self.script(&["then"])?);
                self.expect_word("then")?;
            } else {
                self.expect_word("else")?;
            }
        }
    }

    fn do_group(&mut self) -> Result<ShellScript, SyntaxDoubt> {
        self.skip_newlines()?;
        if self.take_reserved("{") {
            let body = self.script(&["}"])?;
            self.expect_word("}")?;
            return Ok(body);
        }
        self.expect_word("do")?;
        let body = self.script(&["done"])?;
        self.expect_word("done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> Result<NodeKind, SyntaxDoubt> {
        self.skip_blanks();
        if self.looks_at("((") {
            let header = self.arithmetic_command()?;
            self.skip_blanks();
            self.take(";");
            let body = self.do_group()?;
            let condition = header.map_or_else(ShellScript::default, |kind| {
                one(ShellNode {
                    kind,
                    redirects: Vec::new(),
                })
            });
            return Ok(NodeKind::Loop { condition, body });
        }
        let name = self.name();
        if name.is_empty() {
            return Err(self.doubt("a loop without a name"));
        }
        self.skip_newlines()?;
        let mut words = None;
        if self.take_reserved("in") {
            let list = words.insert(Vec::new());
            loop {
                self.skip_blanks();
                if self.at_word_end() && !self.looks_at("<(") {
                    break;
                }
                list.push(self.word()?);
            }
        }
        self.skip_blanks();
        self.take(";");
        let body = self.do_group()?;
        Ok(NodeKind::For { name, words, body })
    }

    fn case(&mut self) -> Result<NodeKind, SyntaxDoubt> {
        self.skip_blanks();
        let subject = self.word()?;
        self.skip_newlines()?;
        self.expect_word("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.take_reserved("esac") {
                return Ok(NodeKind::Case { subject, arms });
            }
            self.take("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.word()?);
                self.skip_blanks();
                if !self.take("|") {
                    break;
                }
            }
            self.expect(")")?;
            let body = self.script(&[";;", ";&", "esac"])?;
            arms.push((patterns, body));
            let _ = self.take(";;&") || self.take(";;") || self.take(";&");
        }
    }

    fn test(&mut self) -> Result<NodeKind, SyntaxDoubt> {
        let mut words = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.take_reserved("]]") {
                return Ok(NodeKind::Test(words));
            }
            if self.at_end() {
                return Err(self.doubt("a [[ that does not end"));
            }
            if matches!(self.peek(), Some('<' | '>' | '(' | ')' | '&' | '|' | ';')) {
                self.bump();
                continue;
            }
            words.push(self.test_word()?);
        }
    }

    /// `(( … ))`, or `None` when the two parentheses turn out to be two subshells.
    fn arithmetic_command(&mut self) -> Result<Option<NodeKind>, SyntaxDoubt> {
        if !self.take("((") {
            return Ok(None);
        }
        match self.arithmetic_text() {
            Ok(text) => Ok(Some(NodeKind::Arithmetic(ShellWord(text)))),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), SyntaxDoubt> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.doubt(&format!("a missing {token:?}")))
        }
    }

    fn expect_word(&mut self, word: &str) -> Result<(), SyntaxDoubt> {
        self.skip_newlines()?;
        if self.take_reserved(word) {
            Ok(())
        } else {
            Err(self.doubt(&format!("a missing {word:?}")))
        }
    }
}

fn one(node: ShellNode) -> ShellScript {
    ShellScript {
        pipelines: vec![Pipeline {
            stages: vec![node],
            background: false,
            conditional: false,
            otherwise: false,
        }],
    }
}
