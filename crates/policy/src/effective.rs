//! One command as it will really run.

use crate::text::{ByteFlow, ExpandedText, TaintSet};

/// A program with its final words, after quoting, expansion and wrappers are gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReducedCommand {
    pub(crate) words: Vec<ExpandedText>,
    pub(crate) assigns: Vec<(String, ExpandedText)>,
    /// Files opened for writing.
    pub(crate) writes: Vec<ExpandedText>,
    /// Files opened for reading.
    pub(crate) reads: Vec<ExpandedText>,
    pub(crate) input: ByteFlow,
    /// Where it runs, if a `cd` in the same text told.
    pub(crate) cwd: Option<String>,
    /// How it was reached: "sudo", "bash -c", "base64 -d".
    pub(crate) via: Vec<String>,
    /// Only starts another command, which stands for itself.
    pub(crate) transparent: bool,
    /// What it prints is only counted.
    pub(crate) unseen: bool,
}

impl ReducedCommand {
    /// The program's name without its folder, and its whole name where nearly everybody writes a short one.
    pub(crate) fn program(&self) -> &str {
        match self.words.first().map_or("", |word| base_name(&word.s)) {
            "k" | "kubecolor" => "kubectl",
            "tf" => "terraform",
            name => name,
        }
    }

    pub(crate) fn args(&self) -> &[ExpandedText] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Arguments that are no options, in order; everything after `--` counts.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &ExpandedText> {
        let mut ended = false;
        self.args().iter().filter(move |arg| {
            if !ended && arg.s == "--" {
                ended = true;
                return false;
            }
            ended || !arg.s.starts_with('-') || arg.s == "-"
        })
    }

    pub(crate) fn operand(&self, index: usize) -> &str {
        self.operands()
            .nth(index)
            .map_or("", |text| text.s.as_str())
    }

    /// The first argument, option or not.
    pub(crate) fn operand_or_flag(&self) -> &str {
        self.args().first().map_or("", |text| text.s.as_str())
    }

    /// Whether a short flag (also inside a cluster such as `-rf`) is given.
    pub(crate) fn short(&self, flag: char) -> bool {
        self.args()
            .iter()
            .take_while(|arg| arg.s != "--")
            .any(|arg| {
                arg.s.starts_with('-') && !arg.s.starts_with("--") && arg.s[1..].contains(flag)
            })
    }

    /// Whether a long flag is given, also with `=value` or shortened as getopt allows.
    pub(crate) fn long(&self, flag: &str) -> bool {
        self.args()
            .iter()
            .take_while(|arg| arg.s != "--")
            .any(|arg| long_matches(&arg.s, flag))
    }

    /// The value of `--flag=value`, `--flag value`, `-f value` or `-fvalue`.
    pub(crate) fn value_of(&self, flag: &str) -> Option<&ExpandedText> {
        let args = self.args();
        let at = args.iter().position(|arg| arg.s == flag)?;
        args.get(at + 1)
    }

    /// Values of a flag in any spelling.
    pub(crate) fn values_of(&self, flag: &str) -> Vec<String> {
        let args = self.args();
        let mut values = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            if arg.s == flag {
                if let Some(next) = args.get(at + 1) {
                    values.push(next.s.clone());
                }
            } else if ends_cluster(&arg.s, flag) {
                values.extend(args.get(at + 1).map(|next| next.s.clone()));
            } else if let Some(rest) = arg.s.strip_prefix(flag) {
                let value = rest.strip_prefix('=').unwrap_or(rest);
                if flag.starts_with("--") && !rest.starts_with('=') {
                    continue;
                }
                values.push(value.to_owned());
            }
        }
        values
    }

    pub(crate) fn has_arg(&self, arg: &str) -> bool {
        self.args().iter().any(|word| word.s == arg)
    }

    /// Whether what it works on is decided outside of the text. Names and paths that are bounded, such as a
    /// date or what a listing of one folder gives, are not open.
    pub(crate) fn is_open(&self) -> bool {
        let assigned = self.assigns.iter().map(|(_, value)| value);
        let mut texts = self.words.iter().chain(&self.writes).chain(&self.reads);
        texts.any(|text| text.is_unbounded() || text.taint.has(TaintSet::OPEN))
            || assigned.clone().any(ExpandedText::is_unbounded)
    }

    /// How many words, and how long they are together.
    pub(crate) fn size(&self) -> (usize, usize) {
        let bytes = self.words.iter().map(|word| word.s.len()).sum();
        (self.words.len(), bytes)
    }

    /// As one line, for globs, fingerprints and people.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        for word in &self.words {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word.shown());
        }
        for write in &self.writes {
            line.push_str(" > ");
            line.push_str(&write.shown());
        }
        line
    }
}

/// The name after the last slash.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `-sSLo` ends in the flag that takes the value.
fn ends_cluster(arg: &str, flag: &str) -> bool {
    flag.len() == 2
        && (3..8).contains(&arg.len())
        && arg.starts_with('-')
        && arg.ends_with(&flag[1..])
        && arg[1..].bytes().all(|b| b.is_ascii_alphabetic())
}

fn long_matches(arg: &str, flag: &str) -> bool {
    let given = arg.split('=').next().unwrap_or(arg);
    given == flag || (given.len() >= 5 && given.starts_with("--") && flag.starts_with(given))
}
