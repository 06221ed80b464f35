//! Which language, and where its code stands.

use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

pub(super) enum InterpreterInput {
    Code(ExpandedText),
    Input,
    File(ExpandedText),
}

pub(super) fn language(program: &str) -> Option<&'static str> {
    let stem = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    Some(match stem {
        "python" | "pypy" | "ipython" | "micropython" => "python",
        "perl" => "perl",
        "ruby" | "irb" | "jruby" | "pry" | "rake" => "ruby",
        "node" | "nodejs" | "deno" | "bun" | "qjs" => "node",
        "php" => "php",
        "mongosh" | "mongo" => "node",
        "lua" | "luajit" => "lua",
        "awk" | "gawk" | "mawk" | "nawk" => "awk",
        "tclsh" | "wish" | "expect" | "osascript" | "Rscript" | "R" | "julia" | "groovy"
        | "scala" | "guile" | "racket" | "octave" | "jrunscript" | "jjs" | "jshell" | "ghc"
        | "ghci" | "runghc" | "erl" | "elixir" | "iex" | "clojure" | "clj" | "sbcl" | "slsh"
        | "puppet" | "knife" | "crystal" | "nim" | "swift" | "kotlin" | "bb" | "nbb" | "ocaml"
        | "swipl" | "dart" | "janet" | "fennel" | "hy" | "raku" | "chef-apply" => "script",
        "tcc" | "gcc" | "cc" | "clang" | "g++" | "clang++" | "go" | "rustc" | "rust-script"
        | "cargo" | "java" | "javac" | "zig" => "compiled",
        _ => return None,
    })
}

pub(super) fn code_of(command: &ReducedCommand, language: &str) -> Option<InterpreterInput> {
    let args = command.args();
    if language == "awk" {
        let mut at = 0;
        while let Some(arg) = args
            .get(at)
            .filter(|arg| arg.s.starts_with('-') && arg.s.len() > 1)
        {
            if arg.s == "-f" || arg.s == "--file" {
                return args
                    .get(at + 1)
                    .map(|file| InterpreterInput::File(file.clone()));
            }
            at += if matches!(arg.s.as_str(), "-F" | "-v" | "-i") {
                2
            } else {
                1
            };
        }
        return args
            .get(at)
            .map(|code| InterpreterInput::Code(code.clone()));
    }
    if language == "compiled" {
        return compiled(args);
    }
    let flags: &[char] = match language {
        _ if command.program() == "swipl" => &['g'],
        "python" => &['c'],
        "perl" | "ruby" => &['e', 'E'],
        "node" => &['e', 'p'],
        "php" => &['r'],
        _ => &['e', 'c', 'E'],
    };
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let s = arg.s.as_str();
        if matches!(s, "--eval" | "--print" | "--execute" | "eval" | "-eval") {
            return args
                .get(at + 1)
                .map(|code| InterpreterInput::Code(code.clone()));
        }
        if let Some(code) = s
            .strip_prefix("--eval=")
            .or_else(|| s.strip_prefix("--eval:"))
            .or_else(|| s.strip_prefix("--print="))
        {
            return Some(InterpreterInput::Code(ExpandedText::known(code)));
        }
        let glued = s
            .strip_prefix("-e")
            .filter(|code| code.contains(['(', '"', '\'', '`', ' ']));
        if let Some(code) = glued.filter(|_| matches!(language, "perl" | "ruby" | "lua")) {
            return Some(InterpreterInput::Code(ExpandedText::known(code)));
        }
        if s == "-" {
            return Some(InterpreterInput::Input);
        }
        if s == "-m" {
            return None;
        }
        if s == "run" && matches!(command.program(), "deno" | "bun") {
            at += 1;
            continue;
        }
        if s.starts_with('-') && !s.starts_with("--") {
            let found = s[1..].char_indices().find(|(_, c)| flags.contains(c));
            // `-i.bak` and `-W…` carry text of their own.
            let cluster = s[1..]
                .chars()
                .take_while(|c| !matches!(c, '.' | '='))
                .all(|c| c.is_ascii_alphanumeric());
            if let Some((from, c)) = found.filter(|_| cluster || language == "python") {
                let rest = &s[1 + from + c.len_utf8()..];
                if rest.is_empty()
                    || matches!(language, "perl" | "ruby")
                        && rest.chars().all(|c| flags.contains(&c))
                {
                    return args
                        .get(at + 1)
                        .map(|code| InterpreterInput::Code(code.clone()));
                }
                if language == "python" {
                    return Some(InterpreterInput::Code(ExpandedText::known(rest)));
                }
            }
            at += if matches!(s, "-W" | "-X" | "-I" | "-r" | "-M") {
                2
            } else {
                1
            };
            continue;
        }
        if s.starts_with("--") {
            at += 1;
            continue;
        }
        return Some(InterpreterInput::File(arg.clone()));
    }
    Some(InterpreterInput::Input)
}

/// The first of its words that is a source.
fn compiled(args: &[ExpandedText]) -> Option<InterpreterInput> {
    const SOURCES: &[&str] = &[".c", ".cc", ".cpp", ".cxx", ".go", ".rs", ".java", ".zig"];
    args.iter().find_map(|arg| {
        let source =
            arg.s.starts_with("/dev/fd/") || SOURCES.iter().any(|end| arg.s.ends_with(end));
        if arg.s == "-" {
            Some(InterpreterInput::Input)
        } else {
            source.then(|| InterpreterInput::File(arg.clone()))
        }
    })
}
