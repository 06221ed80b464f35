//! What small tools print, worked out without running them.

use crate::effective::ReducedCommand;
use crate::reduce::{LONGEST_TEXT, escapes};

/// `s,^,/,`: something before or after each line.
pub(super) fn prefixed(text: &str, script: &str) -> Option<String> {
    let rest = script.strip_prefix('s')?;
    let mark = rest.chars().next().filter(char::is_ascii_punctuation)?;
    let mut fields = rest[1..].split(mark);
    let (at, with) = (fields.next()?, fields.next()?);
    if with.contains(['&', '\\']) {
        return None;
    }
    let changed: Vec<String> = match at {
        "^" => text.lines().map(|line| format!("{with}{line}")).collect(),
        "$" => text.lines().map(|line| format!("{line}{with}")).collect(),
        _ => return None,
    };
    Some(changed.join("\n") + "\n")
}

pub(super) fn echo(args: &[&str]) -> String {
    let mut newline = true;
    let mut escapes = false;
    let mut from = 0;
    for arg in args {
        let flags = arg.strip_prefix('-').unwrap_or_default();
        if flags.is_empty() || !flags.chars().all(|c| "neE".contains(c)) {
            break;
        }
        newline &= !flags.contains('n');
        escapes |= flags.contains('e');
        from += 1;
    }
    let mut text = args[from..].join(" ");
    if escapes {
        text = escapes::echo(&text);
    }
    if newline {
        text.push('\n');
    }
    text
}

pub(super) fn printf(args: &[&str]) -> Option<String> {
    let args = if args.first() == Some(&"--") {
        &args[1..]
    } else {
        args
    };
    let (format, mut values) = args.split_first()?;
    let format = escapes::echo(format);
    let mut out = String::new();
    loop {
        let before = values.len();
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut spec = chars.next()?;
            while spec.is_ascii_digit() || "-+ #.".contains(spec) {
                spec = chars.next()?;
            }
            let mut next = || {
                let (first, rest) = values.split_first().unwrap_or((&"", &[]));
                values = rest;
                *first
            };
            match spec {
                '%' => out.push('%'),
                's' => out.push_str(next()),
                'b' => out.push_str(&escapes::echo(next())),
                'd' | 'i' | 'u' => out.push_str(next()),
                'c' => out.extend(next().chars().next()),
                'x' => out.push_str(&format!("{:x}", next().parse::<i64>().ok()?)),
                'o' => out.push_str(&format!("{:o}", next().parse::<i64>().ok()?)),
                'q' => out.push_str(next()),
                _ => return None,
            }
        }
        if values.is_empty() || values.len() == before || out.len() > LONGEST_TEXT {
            return Some(out);
        }
    }
}

pub(super) fn cut(text: &str, command: &ReducedCommand) -> Option<String> {
    let range = command
        .values_of("-c")
        .into_iter()
        .chain(command.values_of("-b"))
        .next()?;
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (from.parse().unwrap_or(1), to.parse().unwrap_or(usize::MAX)),
        None => {
            let at = range.parse::<usize>().ok()?;
            (at, at)
        }
    };
    let mut out = String::new();
    for line in text.lines() {
        out.extend(
            line.chars()
                .skip(from.saturating_sub(1))
                .take(to.saturating_sub(from).saturating_add(1)),
        );
        out.push('\n');
    }
    Some(out)
}
