//! Functions that a reader can hold in his head: sixty lines, but for tables and for sequences whose order is
//! the point.
//!
//! The list only grows shorter: each one on it has its reason, and leaves it when it fits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::manifests::Workspace;

/// Lines from the one with `fn` to the closing brace.
const MOST_LINES: usize = 60;

/// Folders in which functions of one kind are long: why, and how many may be.
const KINDS: &[(&str, &str, usize)] = &[
    (
        "crates/config/src/schema/",
        "a table of keys, each with its type, default and words",
        14,
    ),
    (
        "crates/policy/src/",
        "what programs do, case by case; a case is read beside its neighbours",
        62,
    ),
    (
        "crates/redact/src/rules/",
        "what a secret looks like, case by case",
        4,
    ),
    (
        "crates/dashboard/src/pages/",
        "a page as it is laid out, from top to bottom",
        11,
    ),
];

/// Single functions that may be longer: file, name, and why.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/access/src/admit.rs",
        "decide",
        "the rules of admission in the order in which they count",
    ),
    (
        "crates/acp/src/sealed_agent.rs",
        "turn",
        "the life of one turn: what must be there before what",
    ),
    (
        "crates/agent/src/running.rs",
        "ask",
        "one request and all the ways in which it can end",
    ),
    (
        "crates/app/src/gateway.rs",
        "gateway",
        "the parts of a gateway, each made when all it needs is there",
    ),
    (
        "crates/app/src/keyboard.rs",
        "keyboard_chat",
        "the same for a conversation at a keyboard",
    ),
    (
        "crates/audit/src/audit.rs",
        "catch_up",
        "how a record of another process is gone on with, step by step",
    ),
    (
        "crates/audit/src/page.rs",
        "page_before",
        "a file is read backwards, with what is left over in between",
    ),
    (
        "crates/backends/kubernetes/src/host/access.rs",
        "of",
        "what a kubeconfig says, fact by fact",
    ),
    (
        "crates/backends/kubernetes/src/host/exec.rs",
        "upgrade",
        "a handshake and the ways in which it fails",
    ),
    (
        "crates/config/src/json_schema.rs",
        "of",
        "one arm for each shape of a value",
    ),
    (
        "crates/config/src/reader.rs",
        "read",
        "one arm for each shape and what was written for it",
    ),
    (
        "crates/egress/src/proxy/requests.rs",
        "serve",
        "the order of checking, recording and sending is the argument",
    ),
    (
        "crates/gateway/src/conversation/commands.rs",
        "run_command",
        "one arm for each command",
    ),
    (
        "crates/gateway/src/conversation/delegate_tool.rs",
        "run",
        "the life of a subagent, from its budget to its answer",
    ),
    (
        "crates/gateway/src/conversation/sandbox_tools.rs",
        "call",
        "one arm for each tool",
    ),
    (
        "crates/gateway/src/conversation/turn.rs",
        "open_session",
        "what a turn needs, each made when all it needs is there",
    ),
    (
        "crates/gateway/src/conversation/turn.rs",
        "take_turn",
        "the life of a turn, step by step",
    ),
    (
        "crates/gateway/src/gateway.rs",
        "new",
        "the fields of the gateway, each with its origin",
    ),
    (
        "crates/gateway/src/run/metrics.rs",
        "registered",
        "a table of names and what they count",
    ),
    (
        "crates/gateway/src/schedule/ticker.rs",
        "fire",
        "the claim of a moment and what follows from it, in this order",
    ),
    (
        "crates/hermetic/src/commands/chat/talk.rs",
        "say",
        "the life of a turn at a keyboard, step by step",
    ),
    (
        "crates/hermetic/src/commands/demo/attempt.rs",
        "all",
        "a table of attempts",
    ),
    (
        "crates/memory/src/skills/draft.rs",
        "change",
        "one arm for each act",
    ),
    (
        "crates/platforms/matrix/src/listening.rs",
        "read_message",
        "the order decides what a room costs in requests",
    ),
    (
        "crates/platforms/signal/src/events.rs",
        "done_by",
        "one arm for each act",
    ),
    (
        "crates/platforms/whatsapp/src/cloud/message.rs",
        "event",
        "kinds of posts, told apart in an order that cannot be faked",
    ),
    (
        "crates/sandbox/src/distant.rs",
        "follow",
        "one loop with every way in which a link ends",
    ),
    (
        "crates/testkit/src/discord/methods.rs",
        "answer",
        "one arm for each method",
    ),
    (
        "crates/testkit/src/discord/rest.rs",
        "call",
        "what a server does with a request, in its order",
    ),
    (
        "crates/warden/src/serve/run.rs",
        "live",
        "one loop with everything that can happen to a command",
    ),
    (
        "crates/warden/src/serve/shell/session.rs",
        "perform",
        "one loop with everything that can happen in a shell",
    ),
    (
        "crates/warden/src/serve/sys/keeper.rs",
        "keep",
        "after a fork only these calls are safe, in this order",
    ),
];

struct LongFunction {
    file: String,
    name: String,
    lines: usize,
}

#[test]
fn no_function_is_longer_than_a_screen_but_for_those_with_a_reason() {
    let mut unexplained = Vec::new();
    let mut of_kind: BTreeMap<&str, usize> = BTreeMap::new();
    let found = long_functions();
    for one in &found {
        let kind = KINDS
            .iter()
            .find(|(folder, ..)| one.file.starts_with(folder));
        if let Some((folder, ..)) = kind {
            *of_kind.entry(folder).or_default() += 1;
        } else if !allows(one) {
            unexplained.push(format!("{} {}: {} lines", one.file, one.name, one.lines));
        }
    }
    assert!(
        unexplained.is_empty(),
        "divide it, or say in {} why it is one piece: {unexplained:#?}",
        file!()
    );
    for (folder, why, count) in KINDS {
        let now = of_kind.get(folder).copied().unwrap_or_default();
        assert!(now <= *count, "{folder} has {now} ({why}), and had {count}");
    }
    for (file, name, why) in ALLOWED {
        let is_long = found
            .iter()
            .any(|one| one.file == *file && one.name == *name);
        assert!(is_long, "{file} {name} needs no allowance any more: {why}");
    }
}

#[test]
fn the_count_finds_where_a_function_ends() {
    let body = "        work();\n".repeat(MOST_LINES);
    let text = format!(
        "trait T {{\n    fn short(&self);\n    async fn long(\n        &self,\n    ) {{\n{body}    }}\n}}\n\
         pub(crate) const fn one_line() {{}}\n"
    );
    let lengths: Vec<_> = functions(&text).collect();
    assert_eq!(
        lengths,
        [("short", 1), ("long", MOST_LINES + 4), ("one_line", 1)]
    );
}

fn allows(one: &LongFunction) -> bool {
    let mut allowed = ALLOWED.iter();
    allowed.any(|(file, name, _)| *file == one.file && *name == one.name)
}

fn long_functions() -> Vec<LongFunction> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().expect("the repository");
    let mut files = Vec::new();
    for package in &Workspace::ours().packages {
        collect(&package.folder.join("src"), &mut files);
    }
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let file = path
            .strip_prefix(&root)
            .expect("ours")
            .display()
            .to_string();
        let text = fs::read_to_string(&path).expect("a source file is text");
        // A story may be as long as what it tells.
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let long = functions(code.unwrap_or_default()).filter(|(_, lines)| *lines > MOST_LINES);
        found.extend(long.map(|(name, lines)| LongFunction {
            file: file.clone(),
            name: name.to_owned(),
            lines,
        }));
    }
    found
}

/// Files of a crate, without those of its tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
}

/// Each function and its lines. The code is formatted, so that one ends at a brace as far in as it began.
fn functions(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let begun = lines.clone().into_iter().enumerate();
    begun.filter_map(move |(at, line)| {
        let name = function_name(line)?;
        let indent = &line[..line.len() - line.trim_start().len()];
        let ends = |line: &&str| {
            line.strip_prefix(indent)
                .is_some_and(|rest| rest == "}" || rest.starts_with(')') && rest.ends_with(';'))
        };
        if line.ends_with(['}', ';']) {
            return Some((name, 1));
        }
        let below = lines[at + 1..].iter().position(ends)?;
        Some((name, below + 2))
    })
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let words = ["const", "async", "unsafe", "default", "extern", "\"C\""];
    let is_plain =
        |word: &str| word.starts_with("pub") || word.ends_with(')') || words.contains(&word);
    let is_function = before.split_whitespace().all(is_plain);
    let end = after.find(['(', '<'])?;
    is_function.then_some(&after[..end])
}
