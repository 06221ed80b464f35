//! From words as written to words as a program gets them.

mod values;

use super::{ScriptWalker, brace, glob};
use crate::syntax::{ParamOp, ShellParameter, ShellWord, WordPart};
use crate::text::{ExpandedText, HOLE, TaintSet, TextShape};
use values::{change_case, is_name, slice, trimmed, unassigned};

impl ScriptWalker<'_> {
    /// All fields that a word becomes.
    pub(super) fn fields(&mut self, word: &ShellWord) -> Vec<ExpandedText> {
        let mut fields = Vec::new();
        let Some(words) = brace::expand(word) else {
            self.doubt("it has more braces than can be followed");
            return vec![ExpandedText::unknown(TaintSet::NONE)];
        };
        for word in words {
            self.split_fields(&word, &mut fields);
        }
        fields
    }

    /// The word as one text, as an assignment or a redirection takes it.
    pub(super) fn text(&mut self, word: &ShellWord) -> ExpandedText {
        let mut text = ExpandedText::default();
        for (at, part) in word.0.iter().enumerate() {
            let piece = self.part(part, at == 0);
            text.push(&piece);
        }
        self.bounded(text)
    }

    fn split_fields(&mut self, word: &ShellWord, fields: &mut Vec<ExpandedText>) {
        let mut current: Option<ExpandedText> = None;
        for (at, part) in word.0.iter().enumerate() {
            if let WordPart::Double(parts) = part
                && let [WordPart::Param(param)] = parts.as_slice()
                && param.index.as_deref().unwrap_or(&param.name) == "@"
                && let Some(items) = self.list_of(param)
            {
                self.append_list(&items, &mut current, fields);
                continue;
            }
            let splits = matches!(
                part,
                WordPart::Param(_) | WordPart::Command(_) | WordPart::Arithmetic(_)
            );
            if let WordPart::Param(param) = part
                && let Some(items) = self.list_of(param)
            {
                self.append_list(&items, &mut current, fields);
                continue;
            }
            let mut piece = self.part(part, at == 0);
            if let WordPart::Param(param) = part
                && self.calls.is_empty()
                && self.positional.is_none()
                && (matches!(param.name.as_str(), "@" | "*")
                    || param.name.bytes().all(|b| b.is_ascii_digit()) && param.name != "0")
            {
                piece.taint = piece.taint | TaintSet::UNSET;
            }
            if !splits {
                current.get_or_insert_default().push(&piece);
                continue;
            }
            let separators = self.separators();
            let pieces = piece.s.split(|c: char| separators.contains(&c));
            let mut first = true;
            for field in pieces {
                if !first && let Some(done) = current.take() {
                    fields.push(done);
                }
                first = false;
                if !field.is_empty() {
                    let glob = field.contains(['*', '?', '[']);
                    current.get_or_insert_default().push(&ExpandedText {
                        s: field.to_owned(),
                        taint: piece.taint,
                        glob,
                    });
                }
            }
        }
        if let Some(done) = current {
            let done = self.bounded(done);
            fields.push(done);
        }
    }

    fn append_list(
        &mut self,
        items: &[ExpandedText],
        current: &mut Option<ExpandedText>,
        fields: &mut Vec<ExpandedText>,
    ) {
        for (at, item) in items.iter().take(256).enumerate() {
            if at > 0
                && let Some(done) = current.take()
            {
                fields.push(done);
            }
            current.get_or_insert_default().push(item);
        }
    }

    /// `${a[@]}`, `$@` and `$*` as lists, also with something done to each item.
    fn list_of(&mut self, param: &ShellParameter) -> Option<Vec<ExpandedText>> {
        if param.length || param.indirect {
            return None;
        }
        let items = match param.index.as_deref() {
            Some("@" | "*") => self.arrays.get(self.meant(&param.name)).cloned()?,
            None if param.name == "@" || param.name == "*" => self
                .positional
                .as_ref()
                .map(|args| args.get(1..).unwrap_or_default().to_vec())?,
            _ => return None,
        };
        match &param.op {
            ParamOp::None => Some(items),
            ParamOp::Slice { from, length } => {
                // `${@:1}` begins with the first argument, `${a[@]:1}` with the second item.
                let first = usize::from(param.index.is_none());
                Some(self.slice_of(&items, first, from, length.as_deref()))
            }
            ParamOp::Default(_) | ParamOp::Alternative(_) | ParamOp::Error => None,
            _ => Some(
                items
                    .into_iter()
                    .take(256)
                    .map(|item| self.changed(Some(item), param))
                    .collect(),
            ),
        }
    }

    fn slice_of(
        &self,
        items: &[ExpandedText],
        first: usize,
        from: &str,
        length: Option<&str>,
    ) -> Vec<ExpandedText> {
        let number = |text: &str| {
            super::arithmetic::value(text, &|name| self.number(name))
                .and_then(|n| usize::try_from(n).ok())
        };
        let from = number(from);
        let length = length.map_or(Some(usize::MAX), number);
        match (from, length) {
            (Some(from), Some(length)) => items
                .iter()
                .skip(from.saturating_sub(first))
                .take(length)
                .cloned()
                .collect(),
            _ => items.to_vec(),
        }
    }

    pub(super) fn separators(&self) -> Vec<char> {
        match self.vars.get("IFS") {
            Some(ifs) if ifs.is_known() => ifs.s.chars().collect(),
            _ => vec![' ', '\t', '\n'],
        }
    }

    fn part(&mut self, part: &WordPart, first: bool) -> ExpandedText {
        match part {
            WordPart::Plain(text) => ExpandedText {
                s: if first {
                    self.tilde(text)
                } else {
                    text.clone()
                },
                taint: TaintSet::NONE,
                glob: text.contains(['*', '?', '[']),
            },
            WordPart::Literal(text) => ExpandedText::known(text.clone()),
            WordPart::Double(parts) => {
                let mut text = ExpandedText::default();
                for part in parts {
                    let mut piece = self.part(part, false);
                    piece.glob = false;
                    text.push(&piece);
                }
                text
            }
            WordPart::Param(param) => self.param(param),
            WordPart::Command(script) => self.substitution(script).into_text(),
            WordPart::Process { script, reads } => self.process(script, *reads),
            WordPart::Arithmetic(word) => {
                let inner = self.text(word);
                self.calculate(&inner.s);
                super::arithmetic::value(&inner.s, &|name| self.number(name)).map_or_else(
                    || ExpandedText::shaped(&TextShape::Names, TaintSet::NONE),
                    |n| ExpandedText::known(n.to_string()),
                )
            }
        }
    }

    /// Forgets the numbers that an arithmetic expression changes.
    pub(super) fn calculate(&mut self, expression: &str) {
        for name in super::variables::changed_by(expression) {
            self.set_unknown_number(name);
        }
    }

    fn number(&self, name: &str) -> Option<i64> {
        match self.vars.get(name) {
            Some(text) => text.s.trim().parse().ok(),
            None => None,
        }
    }

    fn tilde(&self, text: &str) -> String {
        let home = &self.context.home;
        if text == "~" || text.starts_with("~/") {
            return format!("{home}{}", &text[1..]);
        }
        if text == "~root" || text.starts_with("~root/") {
            return format!("/root{}", &text[5..]);
        }
        if text == "~+" || text.starts_with("~+/") {
            return format!("{}{}", self.workdir(), &text[2..]);
        }
        match text.strip_prefix('~') {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => {
                format!("/home/{rest}")
            }
            _ => text.to_owned(),
        }
    }

    fn param(&mut self, param: &ShellParameter) -> ExpandedText {
        for word in &param.inside {
            self.text(word);
        }
        let mut value = self.value(param);
        // `$0` alone is the shell; what is cut out of it only running tells.
        if param.name == "0" && param.op != ParamOp::None && self.positional.is_none() {
            value = Some(ExpandedText::unknown(TaintSet::NONE));
        }
        if param.indirect {
            value = match value.filter(ExpandedText::is_known) {
                Some(name) => self.variable(&name.s),
                None => Some(ExpandedText::unknown(TaintSet::NONE)),
            };
        }
        if param.length {
            return match value.filter(ExpandedText::is_known) {
                Some(text) => ExpandedText::known(text.s.chars().count().to_string()),
                None => ExpandedText::shaped(&TextShape::Names, TaintSet::NONE),
            };
        }
        self.changed(value, param)
    }

    /// What the operator of an expansion makes of a value.
    fn changed(&mut self, value: Option<ExpandedText>, param: &ShellParameter) -> ExpandedText {
        match &param.op {
            ParamOp::None | ParamOp::Error => value.unwrap_or_else(|| unassigned(&param.name)),
            ParamOp::Default(word) => {
                let mut default = self.text(word);
                match value {
                    Some(value) if !value.s.is_empty() => value,
                    _ => {
                        if value.is_none() {
                            default.taint =
                                default.taint | unassigned(&param.name).taint | TaintSet::OPEN;
                        }
                        if is_name(&param.name) {
                            self.set(&param.name, default.clone());
                        }
                        default
                    }
                }
            }
            ParamOp::Alternative(word) => {
                // Whether it is set only running tells; what matters is that it may be this.
                let mut text = self.text(word);
                if value.is_none() {
                    text.taint = text.taint | TaintSet::OPEN;
                }
                text
            }
            ParamOp::Replace { pattern, with, all } => {
                let (pattern, with) = (self.text(pattern), self.text(with));
                match value {
                    Some(value) if value.is_known() && pattern.is_known() => ExpandedText {
                        s: glob::replace(&value.s, &pattern.s, &with.s, *all),
                        taint: value.taint | with.taint,
                        glob: false,
                    },
                    _ => ExpandedText::unknown(with.taint),
                }
            }
            ParamOp::TrimStart(word, longest) => {
                let pattern = self.text(word);
                trimmed(value, |s| glob::trim_start(s, &pattern.s, *longest))
            }
            ParamOp::TrimEnd(word, longest) => {
                let pattern = self.text(word);
                trimmed(value, |s| glob::trim_end(s, &pattern.s, *longest))
            }
            ParamOp::Slice { from, length } => {
                let from = super::arithmetic::value(from, &|name| self.number(name));
                let length = length
                    .as_ref()
                    .map(|text| super::arithmetic::value(text, &|name| self.number(name)));
                match (from, length) {
                    (Some(from), None) => trimmed(value, |s| slice(s, from, None)),
                    (Some(from), Some(Some(length))) => {
                        trimmed(value, |s| slice(s, from, Some(length)))
                    }
                    _ => ExpandedText::unknown(TaintSet::NONE),
                }
            }
            ParamOp::Case { upper, all } => trimmed(value, |s| change_case(s, *upper, *all)),
            // `@E`, `@L` and their kin make something else of it.
            ParamOp::Other => {
                ExpandedText::unknown(value.map_or(TaintSet::NONE, |text| text.taint))
            }
        }
    }

    fn value(&mut self, param: &ShellParameter) -> Option<ExpandedText> {
        if let Some(index) = &param.index {
            let name = self.meant(&param.name);
            let items = self.arrays.get(name)?;
            if index == "@" || index == "*" {
                let joined: Vec<&str> = items.iter().map(|item| item.s.as_str()).collect();
                return Some(ExpandedText {
                    s: joined.join(" "),
                    taint: items
                        .iter()
                        .fold(TaintSet::NONE, |taint, item| taint | item.taint),
                    glob: false,
                });
            }
            let index = index.trim_start_matches('$');
            let at = super::arithmetic::value(index, &|name| self.number(name));
            return match at.and_then(|at| usize::try_from(at).ok()) {
                Some(at) if !self.mixed.contains(name) => items.get(at).cloned(),
                Some(_) => self.worst(items),
                None => self
                    .variable(&format!("{name}[{index}]"))
                    .or_else(|| self.worst(items)),
            };
        }
        self.variable(&param.name)
    }

    /// The name that a name stands for.
    pub(super) fn meant<'n>(&'n self, name: &'n str) -> &'n str {
        const FURTHEST: usize = 8;
        let mut name = name;
        for _ in 0..FURTHEST {
            match self.references.get(name) {
                Some(other) => name = other,
                None => break,
            }
        }
        name
    }

    pub(super) fn variable(&self, name: &str) -> Option<ExpandedText> {
        let name = self.meant(name);
        if let Some(value) = self.older_value(name) {
            return Some(value.clone());
        }
        if let Some(value) = self.vars.get(name) {
            return Some(value.clone());
        }
        if let Some(items) = self.arrays.get(name) {
            return if self.mixed.contains(name) {
                self.worst(items)
            } else {
                items.first().cloned()
            };
        }
        if let Some(args) = &self.positional {
            if name == "@" || name == "*" {
                let joined: Vec<&str> = args.iter().skip(1).map(|arg| arg.s.as_str()).collect();
                return Some(ExpandedText::known(joined.join(" ")));
            }
            if let Ok(at) = name.parse::<usize>() {
                return Some(args.get(at).cloned().unwrap_or_default());
            }
        }
        super::environment::conventional(name, self.context)
    }

    fn bounded(&mut self, mut text: ExpandedText) -> ExpandedText {
        self.spend_text(text.s.len());
        if text.s.len() > super::LONGEST_TEXT {
            text.s = HOLE.to_string();
        }
        text
    }
}
