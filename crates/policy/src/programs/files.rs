//! Deleting, moving and changing files.

mod find;
mod modes;

use super::Judge;
use crate::effective::{Effective, base_name};
use crate::finding::{Category, Finding};
use crate::paths::{self, Place};
use crate::text::{BELOW, Text};
use find::find;
use modes::{modes, sets_id};

pub(super) fn judge(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    match command.program() {
        "rm" | "unlink" | "srm" | "trash" | "grm" | "del" | "rmtree" | "rimraf" => {
            remove(command, judge)
        }
        "find" | "fd" => find(command, judge),
        "shred" | "wipe" | "scrub" => shred(command, judge),
        "truncate" => truncate(command, judge),
        "mv" => moved(command, judge),
        "chmod" | "chown" | "chgrp" | "setfacl" | "chattr" => modes(command, judge),
        "rsync" if command.short('n') || command.long("--dry-run") => Vec::new(),
        "rsync" => rsync(command, judge),
        "tar" | "gtar" | "bsdtar" if command.long("--remove-files") => packed_away(command, judge),
        "zip" if command.short('m') || command.long("--move") => packed_away(command, judge),
        "7z" | "7za" if command.has_arg("-sdel") => packed_away(command, judge),
        "rar" if command.has_arg("-df") || command.operand(0) == "m" => packed_away(command, judge),
        "tar" | "gtar" | "bsdtar" | "unzip" | "cpio" => {
            unpacks(command, judge).into_iter().collect()
        }
        "install"
            if command
                .values_of("-m")
                .iter()
                .chain(&command.values_of("--mode"))
                .any(|mode| sets_id(mode)) =>
        {
            vec![Finding::dangerous(
                Category::Privilege,
                "gives a program another user's rights (setuid)",
            )]
        }
        _ => Vec::new(),
    }
}

fn remove(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let recursive = command.short('r')
        || command.short('R')
        || command.long("--recursive")
        || matches!(command.program(), "rmtree" | "rimraf");
    // Each file is asked for, by a terminal that nobody answers but a person.
    let asks = command.short('i') || command.short('I') || command.long("--interactive");
    if asks && !command.short('f') && !command.input.present {
        return Vec::new();
    }
    let no_preserve = command.long("--no-preserve-root");
    let mut findings = Vec::new();
    if no_preserve {
        findings.push(Finding::floor(
            Category::Destruction,
            "rm without the guard for /",
        ));
    }
    // `find -exec` is judged as a whole.
    let searched = command.via.last().is_some_and(|via| via == "find");
    for target in command.operands() {
        findings.extend(
            removal(target, recursive, judge)
                .filter(|finding| !(searched && finding.reason.contains("what a search finds"))),
        );
    }
    findings
}

fn removal(target: &Text, recursive: bool, judge: &Judge<'_>) -> Option<Finding> {
    let shown = target.shown();
    let place = paths::place(&target.s, &judge.cwd, judge.context);
    let everything = target.s.ends_with('*');
    // All files below a folder, one by one, are the folder.
    let recursive = recursive || target.s.ends_with("/**");
    let floor = |what: &str| {
        Some(Finding::floor(
            Category::Destruction,
            format!("deletes {what}: {shown}"),
        ))
    };
    let dangerous = |what: &str| {
        Some(Finding::dangerous(
            Category::Destruction,
            format!("deletes {what}: {shown}"),
        ))
    };
    match place {
        Place::Root if recursive || everything => floor("everything on this machine"),
        Place::System if recursive => floor("a system folder"),
        Place::System if everything => dangerous("all files of a system folder"),
        Place::Home if recursive => floor("the whole home folder"),
        Place::Home if everything => dangerous("the files of the home folder"),
        Place::Disk => dangerous("a device"),
        Place::Root | Place::System | Place::Home if !recursive => None,
        Place::InsideSystem if MADE_AGAIN.iter().any(|cache| target.s.starts_with(cache)) => None,
        Place::InsideSystem => dangerous("something of the system"),
        Place::Unknown if recursive => dangerous("a folder whose name cannot be known beforehand"),
        Place::Temporary if recursive || everything => dangerous("all temporary files"),
        Place::Workspace if recursive || everything => dangerous("the whole workspace"),
        Place::History if recursive => dangerous("the history of the project"),
        Place::InsideHome if recursive => dangerous("a folder of the home folder"),
        // A name with an ending is a file, whatever the flags say.
        Place::InsideWorkspace if has_ending(&target.s) => None,
        Place::InsideWorkspace if recursive => dangerous("a folder with everything in it"),
        Place::Elsewhere if recursive => dangerous("a folder with everything in it"),
        Place::Elsewhere | Place::InsideHome if everything && target.s.starts_with('/') => {
            dangerous("all files of a folder")
        }
        Place::InsideHome if paths::protected(&target.s, &judge.cwd, judge.context).is_some() => {
            dangerous("a file that others rely on")
        }
        Place::InsideHome | Place::Elsewhere if target.s.contains(BELOW) => {
            dangerous("what a search finds")
        }
        Place::InsideWorkspace
            if target.s.contains(&format!("/{BELOW}"))
                && !LEFTOVERS.contains(&base_name(&target.s)) =>
        {
            dangerous("what a search finds")
        }
        _ => None,
    }
}

/// Caches of package managers, which every image is built without.
const MADE_AGAIN: &[&str] = &[
    "/var/lib/apt/lists/",
    "/var/cache/apt/",
    "/var/cache/dnf/",
    "/var/cache/yum/",
    "/var/cache/apk/",
    "/var/cache/debconf/",
    "/var/cache/pacman/pkg/",
];

/// What tools leave behind and make again.
const LEFTOVERS: &[&str] = &[
    "*.pyc",
    "*.pyo",
    "*.o",
    "*.obj",
    "*.tmp",
    "*.temp",
    "*.bak",
    "*.orig",
    "*.rej",
    "*.swp",
    "*~",
    "*.class",
    "*.log",
    "*.a",
    "*.so",
    "*.gcda",
    "*.gcno",
    "*.d",
    "__pycache__",
    ".DS_Store",
    "*.cache",
    "node_modules",
    "*.egg-info",
    ".pytest_cache",
    "*.map",
    "*.tsbuildinfo",
    "Thumbs.db",
    "*.snap",
    "*.profraw",
    "*.dSYM",
    "*.elc",
    "*.beam",
    "*.aux",
    "*.old",
    "core",
    "core.*",
    "*.core",
    "a.out",
    "*.swo",
    "*.bk",
    "*.out",
    "*.err",
    "*.pid",
    "*.lo",
    "*.la",
    "*.hi",
    "*.dSYM",
    "*.ipynb_checkpoints",
    ".coverage",
    "*.stackdump",
    "npm-debug.log*",
];

/// What goes into an archive and is deleted where it was.
fn packed_away(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let archive = command.value_of("-f").map_or("", |text| text.s.as_str());
    let is_archive = |text: &Text| {
        [
            ".tar",
            ".tgz",
            ".gz",
            ".xz",
            ".bz2",
            ".zst",
            ".zip",
            ".7z",
            ".rar",
            "/dev/null",
        ]
        .iter()
        .any(|end| text.s.ends_with(end))
    };
    command
        .operands()
        .filter(|text| text.s != archive && !is_archive(text))
        .filter_map(|text| removal(text, true, judge))
        .collect()
}

/// An archive from somewhere else, laid over the machine.
fn unpacks(command: &Effective, judge: &Judge<'_>) -> Option<Finding> {
    let folder = match command.program() {
        "tar" | "gtar" | "bsdtar" if command.short('x') || command.operand(0).starts_with('x') => {
            command
                .value_of("-C")
                .or_else(|| command.value_of("--directory"))
        }
        "unzip" => command.value_of("-d"),
        "cpio" if command.short('i') => command
            .value_of("-D")
            .or_else(|| command.value_of("--directory")),
        _ => None,
    }?;
    matches!(
        paths::place(&folder.s, &judge.cwd, judge.context),
        Place::Root | Place::System
    )
    .then(|| {
        Finding::dangerous(
            Category::SystemFile,
            format!("unpacks an archive over {}", folder.shown()),
        )
    })
}

fn has_ending(path: &str) -> bool {
    base_name(path)
        .rsplit_once('.')
        .is_some_and(|(stem, ending)| {
            !stem.is_empty()
                && (1..=5).contains(&ending.len())
                && ending.chars().all(|c| c.is_ascii_alphanumeric())
        })
}

fn shred(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    command
        .operands()
        .map(|target| {
            if paths::is_disk(&target.s) {
                Finding::floor(
                    Category::Disk,
                    format!("overwrites a disk: {}", target.shown()),
                )
            } else if matches!(
                paths::place(&target.s, &judge.cwd, judge.context),
                Place::Root | Place::System | Place::Home
            ) {
                Finding::floor(
                    Category::Destruction,
                    format!("overwrites {}", target.shown()),
                )
            } else {
                Finding::dangerous(
                    Category::Destruction,
                    format!("overwrites beyond recovery: {}", target.shown()),
                )
            }
        })
        .collect()
}

fn truncate(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    command
        .operands()
        .filter_map(|target| {
            if paths::is_disk(&target.s) {
                return Some(Finding::floor(
                    Category::Disk,
                    format!("overwrites a disk: {}", target.shown()),
                ));
            }
            paths::protected(&target.s, &judge.cwd, judge.context)
                .map(|(category, reason)| Finding::dangerous(category, reason))
        })
        .collect()
}

fn moved(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let operands: Vec<&Text> = command.operands().collect();
    let mut findings = Vec::new();
    let target_first = command.value_of("-t").is_some() || command.long("--target-directory");
    let sources = if target_first {
        &operands[..]
    } else {
        &operands[..operands.len().saturating_sub(1)]
    };
    for source in sources {
        match paths::place(&source.s, &judge.cwd, judge.context) {
            Place::Root | Place::System | Place::Home => findings.push(Finding::floor(
                Category::Destruction,
                format!("moves away {}", source.shown()),
            )),
            Place::InsideSystem => findings.push(Finding::dangerous(
                Category::SystemFile,
                format!("moves away something of the system: {}", source.shown()),
            )),
            Place::InsideHome if super::uploads::personal(&source.s, judge) => {
                findings.push(Finding::dangerous(
                    Category::Destruction,
                    format!("moves away a personal folder: {}", source.shown()),
                ));
            }
            Place::InsideHome
                if paths::protected(&source.s, &judge.cwd, judge.context).is_some() =>
            {
                findings.push(Finding::dangerous(
                    Category::Persistence,
                    format!("moves away a file that others rely on: {}", source.shown()),
                ));
            }
            _ => {}
        }
    }
    if operands.last().is_some_and(|last| last.s == "/dev/null") {
        findings.push(Finding::dangerous(
            Category::Destruction,
            "moves files into nothing",
        ));
    }
    findings
}

fn rsync(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let deletes = command
        .args()
        .iter()
        .any(|arg| arg.s.starts_with("--delete") || arg.s == "--del");
    if !deletes && !command.long("--remove-source-files") {
        return Vec::new();
    }
    let target = command.operands().last();
    let wipes = target.is_some_and(|target| {
        matches!(
            paths::place(&target.s, &judge.cwd, judge.context),
            Place::Root | Place::System | Place::Home
        ) && !target.s.contains(':')
    });
    let reason = "deletes what the other side does not have";
    vec![if wipes {
        Finding::floor(Category::Destruction, reason)
    } else {
        Finding::dangerous(Category::Destruction, reason)
    }]
}
