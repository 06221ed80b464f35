//! Deleting, moving and changing files.

mod find;
mod modes;

use super::ProgramJudge;
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding, HarmSeverity};
use crate::paths::{self, PathLoss};
use crate::text::{BELOW, ExpandedText};
use find::find;
use modes::{modes, sets_id};

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    match command.program() {
        "rm" | "Remove-Item" | "unlink" | "srm" | "trash" | "grm" | "del" | "rmtree" | "rimraf" => {
            remove(command, judge)
        }
        // What is in the trash can be had back, unless nothing is left to have it with.
        "gio" | "trash-put" | "gtrash" => command
            .operands()
            .filter_map(|target| removal(target, true, judge))
            .filter(|finding| finding.severity == HarmSeverity::Floor)
            .collect(),
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
            vec![HarmFinding::dangerous(
                HarmCategory::Privilege,
                "gives a program another user's rights (setuid)",
            )]
        }
        _ => Vec::new(),
    }
}

fn remove(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let recursive = command.short('r')
        || command.short('R')
        || command.long("--recursive")
        || matches!(command.program(), "rmtree" | "rimraf");
    // Each file is asked for, by a terminal that nobody answers but a person.
    let never = [
        "--interactive=never",
        "--interactive=no",
        "--interactive=none",
    ];
    let asks = command.short('i')
        || command.short('I')
        || command.long("--interactive") && !never.iter().any(|word| command.has_arg(word));
    if asks && !command.short('f') && !command.input.present {
        return Vec::new();
    }
    let no_preserve = command.long("--no-preserve-root");
    let mut findings = Vec::new();
    if no_preserve {
        findings.push(HarmFinding::floor(
            HarmCategory::Destruction,
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

fn removal(
    target: &ExpandedText,
    recursive: bool,
    judge: &ProgramJudge<'_>,
) -> Option<HarmFinding> {
    let shown = target.shown();
    let place = paths::place(&target.s, &judge.cwd, judge.context);
    let everything = target.s.ends_with('*');
    // All files below a folder, one by one, are the folder.
    let recursive = recursive || target.s.ends_with("/**");
    let floor = |what: &str| {
        Some(HarmFinding::floor(
            HarmCategory::Destruction,
            format!("deletes {what}: {shown}"),
        ))
    };
    let dangerous = |what: &str| {
        Some(HarmFinding::dangerous(
            HarmCategory::Destruction,
            format!("deletes {what}: {shown}"),
        ))
    };
    match place {
        PathLoss::Root if recursive || everything => floor("everything on this machine"),
        PathLoss::System if recursive => floor("a system folder"),
        PathLoss::System if everything && modes::is_core(&target.s, judge) => {
            floor("all that a system folder holds")
        }
        PathLoss::System if everything => dangerous("all files of a system folder"),
        PathLoss::Home if recursive => floor("the whole home folder"),
        PathLoss::Home if everything => dangerous("the files of the home folder"),
        PathLoss::Disk => dangerous("a device"),
        PathLoss::Root | PathLoss::System | PathLoss::Home if !recursive => None,
        PathLoss::InsideSystem if MADE_AGAIN.iter().any(|cache| target.s.starts_with(cache)) => {
            None
        }
        PathLoss::InsideSystem => dangerous("something of the system"),
        PathLoss::Unknown if recursive => {
            dangerous("a folder whose name cannot be known beforehand")
        }
        PathLoss::Temporary if recursive || everything => dangerous("all temporary files"),
        PathLoss::Workspace if recursive || everything => dangerous("the whole workspace"),
        PathLoss::History if recursive => dangerous("the history of the project"),
        PathLoss::InsideHome if is_cache(&target.s, judge) => None,
        PathLoss::InsideHome if recursive => dangerous("a folder of the home folder"),
        // A name with an ending is a file, whatever the flags say.
        PathLoss::InsideWorkspace if has_ending(&target.s) => None,
        PathLoss::InsideWorkspace if recursive => dangerous("a folder with everything in it"),
        PathLoss::Elsewhere if recursive => dangerous("a folder with everything in it"),
        PathLoss::Elsewhere | PathLoss::InsideHome if everything && target.s.starts_with('/') => {
            dangerous("all files of a folder")
        }
        PathLoss::InsideHome
            if paths::protected(&target.s, &judge.cwd, judge.context).is_some() =>
        {
            dangerous("a file that others rely on")
        }
        PathLoss::InsideHome | PathLoss::Elsewhere if target.s.contains(BELOW) => {
            dangerous("what a search finds")
        }
        PathLoss::InsideWorkspace
            if target.s.contains(&format!("/{BELOW}"))
                && !LEFTOVERS.contains(&base_name(&target.s)) =>
        {
            dangerous("what a search finds")
        }
        _ => None,
    }
}

/// Whether it lies in a cache of somebody's own, which is filled again by whoever needs it.
fn is_cache(target: &str, judge: &ProgramJudge<'_>) -> bool {
    const CACHES: &[&str] = &[
        ".cache/",
        "Library/Caches/",
        "Library/Developer/Xcode/DerivedData",
        "Library/Developer/CoreSimulator/Caches",
        ".npm/_cacache",
        ".gradle/caches",
        ".cargo/registry/cache",
        ".m2/repository/",
        ".nuget/packages/",
        ".pub-cache/",
    ];
    let full = paths::absolute(target, &judge.cwd);
    let home = judge.context.home.trim_end_matches('/');
    let below = full
        .strip_prefix(home)
        .and_then(|rest| rest.strip_prefix('/'));
    below.is_some_and(|rest| {
        let known = !rest.contains(crate::text::is_hole);
        known && CACHES.iter().any(|cache| rest.starts_with(cache))
    })
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
fn packed_away(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let archive = command.value_of("-f").map_or("", |text| text.s.as_str());
    let is_archive = |text: &ExpandedText| {
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
fn unpacks(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Option<HarmFinding> {
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
        PathLoss::Root | PathLoss::System
    )
    .then(|| {
        HarmFinding::dangerous(
            HarmCategory::SystemFile,
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

fn shred(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    command
        .operands()
        .map(|target| {
            if paths::is_disk(&target.s) {
                HarmFinding::floor(
                    HarmCategory::Disk,
                    format!("overwrites a disk: {}", target.shown()),
                )
            } else if matches!(
                paths::place(&target.s, &judge.cwd, judge.context),
                PathLoss::Root | PathLoss::System | PathLoss::Home
            ) {
                HarmFinding::floor(
                    HarmCategory::Destruction,
                    format!("overwrites {}", target.shown()),
                )
            } else {
                HarmFinding::dangerous(
                    HarmCategory::Destruction,
                    format!("overwrites beyond recovery: {}", target.shown()),
                )
            }
        })
        .collect()
}

fn truncate(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    command
        .operands()
        .filter_map(|target| {
            if paths::is_disk(&target.s) {
                return Some(HarmFinding::floor(
                    HarmCategory::Disk,
                    format!("overwrites a disk: {}", target.shown()),
                ));
            }
            if empties_everything(&target.s, judge) {
                return Some(HarmFinding::floor(
                    HarmCategory::Destruction,
                    format!("empties all of {}", target.shown()),
                ));
            }
            let place = paths::place(&target.s, &judge.cwd, judge.context);
            if place == PathLoss::InsideHome
                && target.s.ends_with('*')
                && target.s.starts_with(['/', '~'])
            {
                return Some(HarmFinding::dangerous(
                    HarmCategory::Destruction,
                    format!("empties all files of a folder: {}", target.shown()),
                ));
            }
            paths::protected(&target.s, &judge.cwd, judge.context)
                .map(|(category, reason)| HarmFinding::dangerous(category, reason))
        })
        .collect()
}

/// Whether every file of the system or of a home is meant.
pub(super) fn empties_everything(target: &str, judge: &ProgramJudge<'_>) -> bool {
    (target.ends_with("/**") || target.ends_with("/*"))
        && matches!(
            paths::place(target, &judge.cwd, judge.context),
            PathLoss::Root | PathLoss::System | PathLoss::Home
        )
}

fn moved(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let operands: Vec<&ExpandedText> = command.operands().collect();
    let mut findings = Vec::new();
    let target_first = command.value_of("-t").is_some() || command.long("--target-directory");
    let sources = if target_first {
        &operands[..]
    } else {
        &operands[..operands.len().saturating_sub(1)]
    };
    for source in sources {
        match paths::place(&source.s, &judge.cwd, judge.context) {
            PathLoss::Root | PathLoss::System | PathLoss::Home => {
                findings.push(HarmFinding::floor(
                    HarmCategory::Destruction,
                    format!("moves away {}", source.shown()),
                ));
            }
            PathLoss::InsideSystem => findings.push(HarmFinding::dangerous(
                HarmCategory::SystemFile,
                format!("moves away something of the system: {}", source.shown()),
            )),
            PathLoss::InsideHome if super::uploads::personal(&source.s, judge) => {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Destruction,
                    format!("moves away a personal folder: {}", source.shown()),
                ));
            }
            PathLoss::InsideHome
                if paths::protected(&source.s, &judge.cwd, judge.context).is_some() =>
            {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Persistence,
                    format!("moves away a file that others rely on: {}", source.shown()),
                ));
            }
            _ => {}
        }
    }
    if operands.last().is_some_and(|last| last.s == "/dev/null") {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Destruction,
            "moves files into nothing",
        ));
    }
    findings
}

fn rsync(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let deletes = command
        .args()
        .iter()
        .any(|arg| arg.s.starts_with("--delete") || arg.s == "--del");
    if !deletes && !command.long("--remove-source-files") {
        return Vec::new();
    }
    let takes = command.long("--remove-source-files");
    let count = command.operands().count();
    let mut touched = command.operands().enumerate().filter(|(at, _)| {
        let last = at + 1 == count;
        if takes { !last } else { last }
    });
    let wipes = touched.any(|(_, target)| {
        matches!(
            paths::place(&target.s, &judge.cwd, judge.context),
            PathLoss::Root | PathLoss::System | PathLoss::Home
        ) && !target.s.contains(':')
    });
    let made_again = touched_again(command, judge);
    if !wipes && !takes && made_again {
        return Vec::new();
    }
    let reason = "deletes what the other side does not have";
    vec![if wipes {
        HarmFinding::floor(HarmCategory::Destruction, reason)
    } else {
        HarmFinding::dangerous(HarmCategory::Destruction, reason)
    }]
}

/// A folder that a build makes again.
fn touched_again(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> bool {
    command.operands().last().is_some_and(|target| {
        paths::place(target.s.trim_end_matches('/'), &judge.cwd, judge.context)
            == PathLoss::Artefact
    })
}
