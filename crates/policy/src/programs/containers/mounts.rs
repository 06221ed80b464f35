//! What of the host a container is shown.

use crate::effective::{ReducedCommand, base_name};
use crate::text::ExpandedText;

pub(super) fn mounts(command: &ReducedCommand) -> Vec<String> {
    let mut sources = Vec::new();
    for flag in ["-v", "--volume"] {
        for value in command.values_of(flag) {
            if let Some(source) = value.split(':').next().filter(|source| {
                source.starts_with('/') || source.starts_with('.') || source.starts_with('~')
            }) {
                sources.push(source.to_owned());
            }
        }
    }
    for value in command.values_of("--mount") {
        for field in value.split(',') {
            if let Some(source) = field
                .strip_prefix("source=")
                .or_else(|| field.strip_prefix("src="))
                && source.starts_with('/')
            {
                sources.push(source.to_owned());
            }
        }
    }
    sources
}

/// The words of a command inside, with what is mounted there under the names it has outside.
pub(crate) fn as_on_the_host(
    command: &ReducedCommand,
    words: &[ExpandedText],
) -> Vec<ExpandedText> {
    let mounted = mounted(command);
    let from = folder_of(command, words);
    words
        .iter()
        .enumerate()
        .map(|(at, word)| {
            let given = match &from {
                Some(folder) if at > 0 && !word.s.starts_with(['-', '/']) => {
                    format!("{}/{}", folder.trim_end_matches('/'), word.s)
                }
                _ => word.s.clone(),
            };
            let s = mounted
                .iter()
                .fold(given, |s, (outside, inside)| renamed(&s, inside, outside));
            ExpandedText { s, ..word.clone() }
        })
        .collect()
}

/// Where a program inside that works on files starts, if it is told: `-w /m rm -rf etc`.
fn folder_of(command: &ReducedCommand, words: &[ExpandedText]) -> Option<String> {
    let program = words.first().map(|word| base_name(&word.s))?;
    if !matches!(
        program,
        "rm" | "mv" | "chmod" | "chown" | "find" | "shred" | "unlink"
    ) {
        return None;
    }
    let folder = ["-w", "--workdir"]
        .iter()
        .find_map(|flag| command.values_of(flag).pop())?;
    folder.starts_with('/').then_some(folder)
}

/// Pairs of folders: outside, inside.
fn mounted(command: &ReducedCommand) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for flag in ["-v", "--volume"] {
        for value in command.values_of(flag) {
            let mut fields = value.split(':');
            if let (Some(outside), Some(inside)) = (fields.next(), fields.next()) {
                pairs.push((outside.to_owned(), inside.to_owned()));
            }
        }
    }
    for value in command.values_of("--mount") {
        let field = |names: &[&str]| {
            value.split(',').find_map(|field| {
                let (name, path) = field.split_once('=')?;
                names.contains(&name).then(|| path.to_owned())
            })
        };
        if let (Some(outside), Some(inside)) = (
            field(&["source", "src"]),
            field(&["target", "dst", "destination"]),
        ) {
            pairs.push((outside, inside));
        }
    }
    pairs.retain(|(outside, inside)| outside.starts_with('/') && inside.len() > 1);
    pairs
}

/// `rm -rf /h/etc` with `/` for `/h` is `rm -rf /etc`.
fn renamed(text: &str, inside: &str, outside: &str) -> String {
    let inside = inside.trim_end_matches('/');
    let outside = outside.trim_end_matches('/');
    let mut done = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(inside) {
        let (before, after) = (&rest[..at], &rest[at + inside.len()..]);
        let bounded =
            |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && !"._-".contains(c));
        done.push_str(before);
        let starts = before.chars().next_back().is_none_or(|c| c != '/')
            && bounded(before.chars().next_back());
        if starts && bounded(after.chars().next()) {
            done.push_str(outside);
            if outside.is_empty() && !after.starts_with('/') {
                done.push('/');
            }
        } else {
            done.push_str(inside);
        }
        rest = after;
    }
    done.push_str(rest);
    done
}

pub(super) fn wide_mount(source: &str) -> bool {
    let source = source.trim_end_matches('/');
    matches!(
        source,
        "" | "/etc"
            | "/root"
            | "/home"
            | "/proc"
            | "/sys"
            | "/dev"
            | "/boot"
            | "/usr"
            | "/var"
            | "/var/run"
            | "/lib"
            | "/bin"
            | "/run"
    ) || source.ends_with("docker.sock")
        || source.ends_with("/.ssh")
        || source.ends_with("/.aws")
        || source.starts_with("/etc/")
        || source.ends_with("containerd.sock")
}
