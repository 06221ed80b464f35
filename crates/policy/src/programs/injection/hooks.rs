//! Options whose value is a program, a library or a file of orders.

mod table;

use super::super::ProgramJudge;
use super::{injected, is_plain};
use crate::effective::{ReducedCommand, base_name};
use crate::finding::HarmFinding;
use crate::paths;
use table::{HOOKS, SWITCHES};

/// Some options of some programs, and what may stand there without anybody minding.
struct OptionHook {
    programs: &'static [&'static str],
    /// `--long`, `-x`, `-word`, `NAME=`, or nothing for the operands.
    options: &'static [&'static str],
    usual: UsualValue,
}

enum UsualValue {
    /// Whatever stands there runs.
    Nothing,
    /// A compressor, a pager, `ssh`: one of [`TOOLS`].
    Tool,
    /// The same, and it may write a file.
    Filter,
    /// A command that begins with one of these.
    One(&'static [&'static str]),
    /// One of these and nothing more.
    Bare(&'static [&'static str]),
    /// Anything without one of these in it, in whatever case.
    Without(&'static [&'static str]),
    /// A name that is looked up, not a path.
    Name,
    /// A file that not just anybody could have put there.
    Settled,
    /// A file of the system.
    System,
}

const TOOLS: &[&str] = &[
    "ssh", "zstd", "pigz", "pbzip2", "gzip", "bzip2", "xz", "lz4", "less", "more", "cat", "pixz",
    "lbzip2", "unzip", "plzip", "zstdmt", "bat", "lzop", "brotli", "rsync", "vim", "nvim",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let program = command.program();
    let mut findings = Vec::new();
    for hook in HOOKS.iter().filter(|hook| hook.programs.contains(&program)) {
        if hook.options.is_empty() {
            let strange = command
                .operands()
                .any(|text| !hook.usual.covers(&text.s, judge));
            findings.extend(strange.then(|| runs(program, "its orders")));
        }
        for option in hook.options {
            let strange = values(command, option)
                .iter()
                .any(|value| !hook.usual.covers(value, judge));
            findings.extend(strange.then(|| runs(program, option)));
        }
    }
    for (programs, switch) in SWITCHES {
        if programs.contains(&program) && command.has_arg(switch) {
            findings.push(runs(program, switch));
        }
    }
    findings
}

fn runs(program: &str, option: &str) -> HarmFinding {
    injected(format!("makes {program} run another program ({option})"))
}

impl UsualValue {
    fn covers(&self, value: &str, judge: &ProgramJudge<'_>) -> bool {
        let value = value.trim();
        let first = base_name(value.split_whitespace().next().unwrap_or_default());
        match self {
            Self::Nothing => false,
            Self::Tool => TOOLS.contains(&first) && is_plain(value) && !proxied(value),
            Self::Filter => TOOLS.contains(&first) && is_plain(&value.replace('>', "")),
            Self::One(programs) => {
                let value = value.strip_prefix("sudo ").unwrap_or(value);
                let first = base_name(value.split_whitespace().next().unwrap_or_default());
                programs.contains(&first) && is_plain(value) && !proxied(value)
            }
            Self::Bare(programs) => programs.contains(&base_name(value)),
            Self::Without(words) => {
                let value = value.to_lowercase();
                !words.iter().any(|word| value.contains(word))
            }
            Self::Name => !value.contains('/'),
            Self::Settled => {
                let after = value.rsplit(['=', ':', ' ']).next().unwrap_or(value);
                ![value, after]
                    .iter()
                    .any(|path| paths::anybodys(path, &judge.cwd, judge.context))
            }
            Self::System => ["/usr/lib", "/lib", "/etc/"]
                .iter()
                .any(|place| value.starts_with(place)),
        }
    }
}

/// `ssh -o ProxyCommand=…` runs more than ssh.
fn proxied(value: &str) -> bool {
    value.to_lowercase().contains("command=")
}

fn values(command: &ReducedCommand, option: &str) -> Vec<String> {
    if option.ends_with('=') {
        let args = command.args().iter();
        return args
            .filter_map(|arg| arg.s.strip_prefix(option))
            .map(str::to_owned)
            .collect();
    }
    let mut values = Vec::new();
    let args = command.args();
    for (at, arg) in args.iter().enumerate() {
        let (name, value) = match arg.s.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg.s.as_str(), None),
        };
        if name == option || shortened(name, option) {
            let next = || args.get(at + 1).map_or("", |next| next.s.as_str());
            values.push(value.unwrap_or_else(next).to_owned());
        } else if option.len() == 2
            && let Some(glued) = arg.s.strip_prefix(option)
        {
            values.push(glued.to_owned());
        }
    }
    values
}

/// As getopt lets people write long options.
fn shortened(name: &str, option: &str) -> bool {
    name.len() >= 6 && name.starts_with("--") && option.starts_with(name)
}
