//! What the log says, read from the macros that say it.
//!
//! A log is read by people and by programs that are not ours: values stand there in plain words, not as
//! Rust prints them for its own debugging, and `message` is the line itself and no field beside it.

use std::fs;
use std::path::Path;

use crate::manifests::Workspace;

const MACROS: [&str; 12] = [
    "trace!(",
    "debug!(",
    "info!(",
    "warn!(",
    "error!(",
    "event!(",
    "trace_span!(",
    "debug_span!(",
    "info_span!(",
    "warn_span!(",
    "error_span!(",
    "span!(",
];

#[test]
fn the_log_holds_no_rust_and_no_second_message() {
    let mut found = Vec::new();
    for package in &Workspace::ours().packages {
        scan(&package.folder.join("src"), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_rule_catches_what_it_is_for() {
    for bad in [
        "warn!(?error, \"x\")",
        "tracing::info!(a = 1, code = ?status.code(), \"x\")",
        "debug!(%a, \"again in {pause:?}\")",
        "error!(message = row, %error, \"x\")",
        "info!(%message, \"x\")",
        "info!(a = ?Some((1, \")\")), \"x\")",
    ] {
        assert_eq!(complaints(bad).len(), 1, "{bad}");
    }
    for good in [
        "warn!(%error, row = message.row().0, \"a message? {what}\")",
        "info!(a = read()?, \"x\")",
        "eprintln!(\"{x:?}\")",
        "my_info!(?x)",
    ] {
        assert_eq!(complaints(good), Vec::<String>::new(), "{good}");
    }
}

fn scan(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            scan(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).expect("a source file is text");
            let here = complaints(&text).into_iter();
            found.extend(here.map(|what| format!("{}: {what}", path.display())));
        }
    }
}

/// Every field or text of a log macro that breaks the rule.
fn complaints(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in MACROS {
        for (at, _) in text.match_indices(name) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let arguments = arguments(&text[at + name.len()..]);
            found.extend(arguments.iter().filter(|one| is_bad(one)).cloned());
        }
    }
    found
}

fn is_bad(argument: &str) -> bool {
    if argument.starts_with('"') {
        return argument.contains(":?}") || argument.contains(":#?}");
    }
    let (name, value) = match argument.split_once('=') {
        Some((name, value)) => (name.trim(), value.trim()),
        None => ("", argument),
    };
    value.starts_with('?')
        || name == "message"
        || matches!(value, "message" | "%message") && name.is_empty()
}

/// Up to the closing parenthesis, cut at the commas of the outermost level.
fn arguments(text: &str) -> Vec<String> {
    let (mut all, mut one) = (Vec::new(), String::new());
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for c in text.chars() {
        match c {
            _ if quoted => {
                quoted = escaped || c != '"';
                escaped = c == '\\' && !escaped;
            }
            '"' => quoted = true,
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(std::mem::take(&mut one).trim().to_owned());
                continue;
            }
            _ => {}
        }
        one.push(c);
    }
    all.push(one.trim().to_owned());
    all
}
