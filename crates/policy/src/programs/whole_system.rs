//! The act of deleting a whole system, by whatever tool.
//!
//! A tool that is given `/`, a folder of the system or a whole home, and says that it deletes,
//! mirrors or renames, is `rm -rf` by another name.

use super::ProgramJudge;
use super::texts::takes_texts;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};

/// Words of a name, a subcommand or an option that mean losing what is there.
const LOSES: &[&str] = &[
    "rm",
    "del",
    "delete",
    "deleted",
    "remove",
    "erase",
    "wipe",
    "trash",
    "shred",
    "srm",
    "purge",
    "clean",
    "rimraf",
    "nuke",
    "destroy",
    "obliterate",
    "mirror",
    "mir",
    "prune",
    "uninstall",
    "rmdirs",
    "rmtree",
    "absent",
    "unlink",
    "bleach",
    "bleachbit",
    "scrub",
    "empty",
];

/// Tools whose names do not say it.
const LOSERS: &[&str] = &[
    "rip",
    "gomi",
    "tmpreaper",
    "tmpwatch",
    "del-cli",
    "prename",
    "perl-rename",
    "rename",
    "mmv",
    "vidir",
    "qmv",
    "renameutils",
    "file-rename",
    "trash-rm",
    "rmw",
    "rm-improved",
    "conmv",
    "detox",
    "dust-off",
    "ccrypt",
    "ccencrypt",
    "mcrypt",
    "aescrypt",
    "bcrypt",
    "gpgtar",
];

/// Tools that have rules of their own, or whose words mean something else.
const OTHERS: &[&str] = &[
    "rm",
    "rmdir",
    "find",
    "fd",
    "fdfind",
    "mv",
    "cp",
    "rsync",
    "tar",
    "zip",
    "chmod",
    "chown",
    "chgrp",
    "ln",
    "sudo",
    "docker",
    "podman",
    "apt",
    "apt-get",
    "brew",
    "systemctl",
    "kubectl",
    "mount",
    "umount",
    "shred",
    "truncate",
    "dd",
    "install",
    "ansible-playbook",
    "tmutil",
    "diskutil",
    "mdutil",
    "restic",
    "borg",
    "python",
    "python3",
    "node",
    "ruby",
    "perl",
    "php",
    "bash",
    "sh",
    "dpkg",
    "rpm",
    "updatedb",
    "fstrim",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let program = command.program();
    let whole = |text: &str| {
        text.starts_with(['/', '~', '.'])
            && matches!(
                paths::place(text, &judge.cwd, judge.context),
                PathLoss::Root | PathLoss::System | PathLoss::Home
            )
    };
    if program == "git" {
        return git_clean(command, &whole).into_iter().collect();
    }
    let overwritten = program == "dd"
        && command.args().iter().any(|arg| {
            arg.s
                .strip_prefix("of=")
                .is_some_and(|file| super::files::empties_everything(file, judge))
        });
    if overwritten {
        return vec![HarmFinding::floor(
            HarmCategory::Destruction,
            "overwrites every file of a whole system or home",
        )];
    }
    let only_starts = command.transparent && program != "ansible";
    if only_starts || OTHERS.contains(&program) || takes_texts(program) {
        return Vec::new();
    }
    let trial = [
        "--help",
        "--version",
        "--dry-run",
        "-n",
        "--dryrun",
        "--list",
        "-l",
    ]
    .iter()
    .any(|flag| command.has_arg(flag));
    let fits = |arg: &&crate::text::ExpandedText| {
        let value = arg.s.rsplit('=').next().unwrap_or_default();
        arg.s.len() < 256 && (whole(&arg.s) || value.len() < arg.s.len() && whole(value))
    };
    if trial
        || !command
            .args()
            .iter()
            .any(|arg| fits(&arg) || inner_path(&arg.s).any(whole))
    {
        return Vec::new();
    }
    if !loses(command) {
        return Vec::new();
    }
    vec![HarmFinding::floor(
        HarmCategory::Destruction,
        format!("deletes or replaces a whole system or home with {program}"),
    )]
}

/// `-e 'mirror --delete /empty /home'`: what a tool is told in one word.
fn inner_path(text: &str) -> impl Iterator<Item = &str> {
    let told = text.contains(char::is_whitespace) && text.len() < 256;
    text.split(|c: char| c.is_whitespace() || "'\"=,;".contains(c))
        .filter(move |word| told && word.starts_with('/') && word.len() > 1)
}

fn loses(command: &ReducedCommand) -> bool {
    let program = command.program();
    let says = |text: &str| {
        text.split(|c: char| !c.is_ascii_alphabetic())
            .any(|word| LOSES.contains(&word.to_lowercase().as_str()))
    };
    let duplicates = matches!(
        program,
        "fdupes" | "jdupes" | "rdfind" | "fclones" | "rmlint" | "dupeguru"
    ) && (command.short('d') || command.args().iter().any(|arg| says(&arg.s)));
    let forced = matches!(program, "unison" | "robocopy")
        && (command.has_arg("-force") || command.has_arg("/MIR") || command.has_arg("/PURGE"));
    let synced = program == "rclone"
        && matches!(
            command.operand(0),
            "sync" | "move" | "moveto" | "delete" | "purge" | "rmdirs" | "bisync"
        );
    let other = program != "rclone" && !matches!(program, "fdupes" | "jdupes" | "rdfind");
    LOSERS.contains(&program)
        || duplicates
        || forced
        || synced
        || other
            && (says(program)
                || command
                    .args()
                    .iter()
                    .any(|arg| !arg.s.starts_with('/') && says(&arg.s)))
}

/// `git -C / clean -xfd`.
fn git_clean(command: &ReducedCommand, whole: &dyn Fn(&str) -> bool) -> Option<HarmFinding> {
    let cleans = command.has_arg("clean") && (command.short('f') || command.long("--force"));
    let there = cleans
        && !command.has_arg("-n")
        && command
            .args()
            .iter()
            .any(|arg| whole(&arg.s) && arg.s.starts_with(['/', '~']));
    there.then(|| {
        HarmFinding::floor(
            HarmCategory::Destruction,
            "deletes every file of a whole system or home that git does not know",
        )
    })
}
