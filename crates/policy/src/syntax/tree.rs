//! The tree: lists of pipelines of commands made of words made of parts.

use std::cell::OnceCell;
use std::rc::Rc;

/// Commands in the order in which they stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Script {
    pub(crate) pipelines: Vec<Pipeline>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pipeline {
    pub(crate) stages: Vec<Node>,
    /// Ended by `&`.
    pub(crate) background: bool,
    /// After `&&` or `||`: whether it runs at all depends on what ran before.
    pub(crate) conditional: bool,
    /// It follows `||`: something before it in the list failed or did not run.
    pub(crate) otherwise: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Simple(Simple),
    /// `( … )`: what it assigns is lost afterwards.
    Subshell(Script),
    /// `{ … }` and `if`: all parts in order, since any of them may run.
    Group(Vec<Script>),
    /// `while`, `until` and `for (( … ))`: a condition and what runs again and again.
    Loop {
        condition: Script,
        body: Script,
    },
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: Script,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, Script)>,
    },
    Function {
        name: String,
        body: Rc<Script>,
    },
    /// `(( … ))`.
    Arithmetic(Word),
    /// `[[ … ]]`.
    Test(Vec<Word>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Simple {
    pub(crate) assigns: Vec<Assign>,
    pub(crate) words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assign {
    pub(crate) name: String,
    pub(crate) index: Option<String>,
    pub(crate) append: bool,
    /// Expansions inside the index.
    pub(crate) inside: Option<Word>,
    pub(crate) value: AssignValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AssignValue {
    Scalar(Word),
    Array(Vec<Word>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Redirect {
    pub(crate) fd: Option<u32>,
    pub(crate) op: RedirectOp,
    pub(crate) target: Word,
    /// The body, once the parser has passed it.
    pub(crate) heredoc: Option<Rc<OnceCell<Word>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectOp {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `>&` and `<&` with a descriptor, or `>&file`.
    Duplicate,
    HereDoc,
    HereString,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Word(pub(crate) Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Unquoted: globs, braces and a leading tilde are live.
    Plain(String),
    /// Escaped, `'…'` or `$'…'`: exactly these characters.
    Literal(String),
    Double(Vec<Part>),
    Param(Box<Param>),
    Command(Rc<Script>),
    /// `<( … )` or `>( … )`.
    Process {
        script: Rc<Script>,
        reads: bool,
    },
    Arithmetic(Word),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) index: Option<String>,
    pub(crate) length: bool,
    pub(crate) indirect: bool,
    /// Expansions inside the index or a slice.
    pub(crate) inside: Vec<Word>,
    pub(crate) op: ParamOp,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParamOp {
    None,
    /// `-`, `:-`, `=`, `:=`.
    Default(Word),
    /// `+`, `:+`.
    Alternative(Word),
    /// `?`, `:?`.
    Error,
    Slice {
        from: String,
        length: Option<String>,
    },
    Replace {
        pattern: Word,
        with: Word,
        all: bool,
    },
    TrimStart(Word, bool),
    TrimEnd(Word, bool),
    /// `^`, `^^`, `,`, `,,`.
    Case {
        upper: bool,
        all: bool,
    },
    /// `@Q`, `@P` and whatever else there is.
    Other,
}

impl Word {
    /// The text, if the word is one unquoted literal.
    pub(crate) fn as_plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Part::Plain(text)] => Some(text),
            _ => None,
        }
    }
}
