//! The tree: lists of pipelines of commands made of words made of parts.

use std::cell::OnceCell;
use std::rc::Rc;

/// Commands in the order in which they stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ShellScript {
    pub(crate) pipelines: Vec<Pipeline>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pipeline {
    pub(crate) stages: Vec<ShellNode>,
    /// Ended by `&`.
    pub(crate) background: bool,
    /// After `&&` or `||`: whether it runs at all depends on what ran before.
    pub(crate) conditional: bool,
    /// It follows `||`: something before it in the list failed or did not run.
    pub(crate) otherwise: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShellNode {
    pub(crate) kind: NodeKind,
    pub(crate) redirects: Vec<ShellRedirect>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeKind {
    Simple(SimpleCommand),
    /// `( … )`: what it assigns is lost afterwards.
    Subshell(ShellScript),
    /// `{ … }` and `if`: all parts in order, since any of them may run.
    Group(Vec<ShellScript>),
    /// `while`, `until` and `for (( … ))`: a condition and what runs again and again.
    Loop {
        condition: ShellScript,
        body: ShellScript,
    },
    For {
        name: String,
        words: Option<Vec<ShellWord>>,
        body: ShellScript,
    },
    Case {
        subject: ShellWord,
        arms: Vec<(Vec<ShellWord>, ShellScript)>,
    },
    Function {
        name: String,
        body: Rc<ShellScript>,
    },
    /// `(( … ))`.
    Arithmetic(ShellWord),
    /// `[[ … ]]`.
    Test(Vec<ShellWord>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SimpleCommand {
    pub(crate) assigns: Vec<ShellAssignment>,
    pub(crate) words: Vec<ShellWord>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShellAssignment {
    pub(crate) name: String,
    pub(crate) index: Option<String>,
    pub(crate) append: bool,
    /// Expansions inside the index.
    pub(crate) inside: Option<ShellWord>,
    pub(crate) value: AssignValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AssignValue {
    Scalar(ShellWord),
    Array(Vec<ShellWord>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShellRedirect {
    pub(crate) fd: Option<u32>,
    pub(crate) op: RedirectOp,
    pub(crate) target: ShellWord,
    /// The body, once the parser has passed it.
    pub(crate) heredoc: Option<Rc<OnceCell<ShellWord>>>,
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
pub(crate) struct ShellWord(pub(crate) Vec<WordPart>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum WordPart {
    /// Unquoted: globs, braces and a leading tilde are live.
    Plain(String),
    /// Escaped, `'…'` or `$'…'`: exactly these characters.
    Literal(String),
    Double(Vec<WordPart>),
    Param(Box<ShellParameter>),
    Command(Rc<ShellScript>),
    /// `<( … )` or `>( … )`.
    Process {
        script: Rc<ShellScript>,
        reads: bool,
    },
    Arithmetic(ShellWord),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShellParameter {
    pub(crate) name: String,
    pub(crate) index: Option<String>,
    pub(crate) length: bool,
    pub(crate) indirect: bool,
    /// Expansions inside the index or a slice.
    pub(crate) inside: Vec<ShellWord>,
    pub(crate) op: ParamOp,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParamOp {
    None,
    /// `-`, `:-`, `=`, `:=`.
    Default(ShellWord),
    /// `+`, `:+`.
    Alternative(ShellWord),
    /// `?`, `:?`.
    Error,
    Slice {
        from: String,
        length: Option<String>,
    },
    Replace {
        pattern: ShellWord,
        with: ShellWord,
        all: bool,
    },
    TrimStart(ShellWord, bool),
    TrimEnd(ShellWord, bool),
    /// `^`, `^^`, `,`, `,,`.
    Case {
        upper: bool,
        all: bool,
    },
    /// `@Q`, `@P` and whatever else there is.
    Other,
}

impl ShellWord {
    /// The text, if the word is one unquoted literal.
    pub(crate) fn as_plain(&self) -> Option<&str> {
        match self.0.as_slice() {
            [WordPart::Plain(text)] => Some(text),
            _ => None,
        }
    }
}
