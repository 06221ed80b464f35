//! `sudo` and its like.

use super::{LOOKS, changes};
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::programs::{ProgramJudge, looks};

pub(super) fn sudo(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let finding = |reason: &str| vec![HarmFinding::dangerous(HarmCategory::Privilege, reason)];
    let own: Vec<&str> = command
        .args()
        .iter()
        .map(|arg| arg.s.as_str())
        .take_while(|arg| arg.starts_with('-') || *arg == "root")
        .collect();
    let short = |letter: char| {
        own.iter()
            .any(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg[1..].contains(letter))
    };
    if short('S') || short('A') || own.contains(&"--stdin") || own.contains(&"--askpass") {
        return finding("feeds a password to sudo");
    }
    if own.iter().any(|arg| {
        matches!(
            *arg,
            "-l" | "-v" | "-V" | "-k" | "-K" | "--list" | "--version" | "--validate" | "--help"
        )
    }) && command.operands().next().is_none()
    {
        return Vec::new();
    }
    if short('i')
        || short('s')
        || short('e')
        || own.contains(&"--login")
        || own.contains(&"--shell")
        || own.contains(&"--edit")
    {
        return finding("opens a shell as root");
    }
    let mut skip = false;
    let inner = command.args().iter().find(|arg| {
        if skip {
            skip = false;
            return false;
        }
        if arg.s.starts_with('-') {
            skip = matches!(
                arg.s.as_str(),
                "-u" | "-g" | "-p" | "-C" | "-D" | "-h" | "-T" | "-r" | "-t" | "--user" | "--group"
            );
            return false;
        }
        !arg.s.contains('=')
    });
    let Some(inner) = inner else {
        return Vec::new();
    };
    let name = base_name(&inner.s);
    // Its own options end where the other command begins.
    let own = ReducedCommand {
        words: std::iter::once(&command.words[0])
            .chain(
                command
                    .args()
                    .iter()
                    .take_while(|arg| !std::ptr::eq(*arg, inner)),
            )
            .cloned()
            .collect(),
        ..ReducedCommand::default()
    };
    let becomes = ["-u", "--user"]
        .iter()
        .flat_map(|flag| own.values_of(flag))
        .next();
    // -1 and its twin are nobody, and to some sudo that is root.
    if becomes
        .as_ref()
        .is_some_and(|user| user.starts_with("#-") || user.starts_with("#429496"))
    {
        return finding("becomes root by a number that is no user's");
    }
    // An account of a service can do less; what it is told to do stands for itself.
    if becomes.is_some_and(|user| !matches!(user.as_str(), "root" | "0" | "#0")) {
        return Vec::new();
    }
    if LOOKS.contains(&name) && !changes(command, name) {
        return Vec::new();
    }
    let after: Vec<&str> = command
        .args()
        .iter()
        .skip_while(|arg| !std::ptr::eq(*arg, inner))
        .skip(1)
        .map(|arg| arg.s.as_str())
        .collect();
    let set = command
        .args()
        .iter()
        .any(|arg| arg.s.starts_with("PATH=") || arg.s.starts_with("LD_"));
    if !set && looks::only_looks(name, &after) {
        return Vec::new();
    }
    if !set && works_on_own_files(name, &after, judge) {
        return Vec::new();
    }
    finding("runs a command as root")
}

/// Giving the project's own files back to somebody, or making a folder for them, is judged without the
/// `sudo` in front.
fn works_on_own_files(program: &str, args: &[&str], judge: &ProgramJudge<'_>) -> bool {
    if program == "umount" {
        const MOUNTED: &[&str] = &["/mnt/", "/media/", "/run/media/", "/Volumes/"];
        return args
            .iter()
            .all(|arg| MOUNTED.iter().any(|folder| arg.starts_with(folder)));
    }
    if !matches!(program, "chown" | "chgrp" | "mkdir" | "touch") {
        return false;
    }
    let named = usize::from(matches!(program, "chown" | "chgrp"));
    let mut files = args
        .iter()
        .filter(|arg| !arg.starts_with('-'))
        .skip(named)
        .peekable();
    let whose = args
        .iter()
        .find(|arg| !arg.starts_with('-'))
        .copied()
        .unwrap_or_default();
    let given_away = named == 1 && matches!(whose.split(':').next(), Some("root" | "0"));
    let recursive = args
        .iter()
        .any(|arg| *arg == "--recursive" || is_recursive(arg));
    let own = |path: &&&str| match paths::place(path, &judge.cwd, judge.context) {
        PathLoss::Workspace
        | PathLoss::InsideWorkspace
        | PathLoss::Artefact
        | PathLoss::InsideTemporary => true,
        PathLoss::Elsewhere => !recursive,
        PathLoss::InsideHome => {
            named == 1 && paths::secret(path, &judge.cwd, judge.context).is_none()
        }
        _ => false,
    };
    files.peek().is_some() && !given_away && files.all(|path| own(&path))
}

fn is_recursive(arg: &str) -> bool {
    arg.starts_with('-') && !arg.starts_with("--") && arg.contains('R')
}
