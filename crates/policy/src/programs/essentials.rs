//! The act of taking away what the system runs on: its packages, by whatever manager, or the few files
//! without which nothing starts and nobody logs in.

use super::ProgramJudge;
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;
use crate::text::{ExpandedText, TaintSet};

/// Files by their whole path.
const ESSENTIAL_FILES: &[&str] = &[
    "/bin/sh",
    "/usr/bin/sh",
    "/bin/bash",
    "/usr/bin/bash",
    "/bin/dash",
    "/sbin/init",
    "/usr/sbin/init",
    "/lib/systemd/systemd",
    "/usr/lib/systemd/systemd",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/group",
    "/etc/fstab",
    "/etc/ld.so.cache",
    "/etc/pam.d",
    "/etc/master.passwd",
    "/sbin/launchd",
    "/bin/busybox",
    "/bin/zsh",
];

const ACCOUNTS: &[&str] = &["/etc/passwd", "/etc/shadow", "/etc/master.passwd"];

/// Files by how their name begins, in folders that hold libraries and kernels.
const ESSENTIAL_STARTS: &[&str] = &[
    "ld-linux",
    "ld-musl",
    "ld-2.",
    "libc.so",
    "libc-2.",
    "libpam.so",
    "vmlinuz",
    "initrd",
    "initramfs",
];
const LIBRARY_FOLDERS: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/boot"];

/// Without these nothing starts any more.
const ESSENTIAL: &[&str] = &[
    "glibc",
    "libc6",
    "libc-bin",
    "musl",
    "bash",
    "dash",
    "coreutils",
    "busybox",
    "systemd",
    "systemd-sysv",
    "sysvinit",
    "sysvinit-core",
    "openrc",
    "runit",
    "util-linux",
    "dpkg",
    "apt",
    "rpm",
    "dnf",
    "yum",
    "pacman",
    "apk-tools",
    "base-files",
    "base-passwd",
    "base-system",
    "alpine-base",
    "filesystem",
    "init",
    "login",
    "mount",
    "util-linux-core",
    "libpam-modules",
    "linux-base",
    "initscripts",
    "base",
    "libstdc++6",
    "zlib1g",
    "ld-linux",
    "basesystem",
    "opkg",
    "uclibc",
    "linux",
    "libc",
    "procd",
    "sudo-base",
    "netbase",
    "kernel",
    "kernel-core",
    "kernel-default",
    "linux-image-generic",
    "linux-image-amd64",
    "linux-image-arm64",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    if let Some(file) = lost(command)
        .into_iter()
        .find(|file| is_essential(file, judge))
    {
        return vec![HarmFinding::floor(
            HarmCategory::Destruction,
            format!(
                "takes away a file that the system runs on: {}",
                file.shown()
            ),
        )];
    }
    if !removes(command) {
        return Vec::new();
    }
    let package = |text: &str| is_essential_package(text) || matches!(text, "*" | ".*" | "?*");
    let all = matches!(command.program(), "pkg" | "pkg_delete" | "nix-env")
        && (command.short('a') && command.short('f') || command.has_arg("*"));
    // Every package that a listing names.
    let listed = command
        .args()
        .iter()
        .any(|arg| arg.taint.has(TaintSet::EVERY_PACKAGE));
    if all || listed || command.operands().any(|text| package(&text.s)) {
        return vec![HarmFinding::floor(
            HarmCategory::Destruction,
            "removes what the system runs on",
        )];
    }
    Vec::new()
}

/// Whether nothing starts any more without this package, however its version is written.
pub(crate) fn is_essential_package(package: &str) -> bool {
    let name = package.rsplit('/').next().unwrap_or(package);
    let name = name.split([':', '=']).next().unwrap_or(name);
    ESSENTIAL.contains(&name)
}

fn removes(command: &ReducedCommand) -> bool {
    let trial = [
        "-s",
        "--simulate",
        "--dry-run",
        "--just-print",
        "--assume-no",
        "-n",
        "--test",
    ]
    .iter()
    .any(|flag| command.has_arg(flag) && !(command.program() == "zypper" && *flag == "-n"));
    let verb = command.operands().take(2).any(|text| {
        matches!(
            text.s.as_str(),
            "remove" | "purge" | "erase" | "rm" | "del" | "delete" | "uninstall" | "unmerge"
        )
    });
    !trial
        && match command.program() {
            "apt" | "apt-get" | "aptitude" | "dnf" | "yum" | "microdnf" | "zypper" | "apk"
            | "opkg" | "pkg" | "swupd" | "eopkg" | "nala" | "tdnf" | "urpme" | "pkgin"
            | "slackpkg" | "rpm-ostree" => verb,
            "dpkg" => ["-r", "-P", "--remove", "--purge"]
                .iter()
                .any(|flag| command.has_arg(flag)),
            "rpm" => command.short('e') || command.long("--erase"),
            "pacman" | "yay" | "paru" | "pamac" => command
                .args()
                .iter()
                .any(|arg| arg.s.starts_with("-R") || arg.s == "--remove"),
            "emerge" => command.short('C') || command.short('c') || command.long("--unmerge"),
            "xbps-remove" | "pkg_delete" | "removepkg" => true,
            "nix-env" => command.has_arg("-e") || command.long("--uninstall"),
            _ => false,
        }
}

/// The files that are gone or empty after a command.
fn lost(command: &ReducedCommand) -> Vec<ExpandedText> {
    // Most commands lose nothing.
    if !matches!(
        command.program(),
        "rm" | "unlink"
            | "shred"
            | "srm"
            | "grm"
            | "wipe"
            | "trash"
            | "truncate"
            | ""
            | ":"
            | "true"
            | "mv"
            | "cp"
            | "install"
            | "ln"
            | "cat"
            | "echo"
            | "printf"
            | "dd"
            | "chmod"
            | "sed"
            | "tee"
    ) {
        return Vec::new();
    }
    let operands: Vec<ExpandedText> = command.operands().cloned().collect();
    let emptied = || command.writes.clone();
    match command.program() {
        "rm" | "unlink" | "shred" | "srm" | "grm" | "wipe" | "trash" => operands,
        "truncate" => operands,
        // `> file` and `: > file`.
        "" | ":" | "true" => emptied(),
        // `echo -n > file`: nothing takes the place of what was there.
        "echo" | "printf" if prints_nothing(command) => emptied(),
        "mv" => {
            let sources = operands.len().saturating_sub(1);
            let elsewhere = |text: &ExpandedText| text.s.starts_with('/') || sources > 1;
            match operands.split_last() {
                // A name beside it is a copy to come back to only if something takes its place.
                Some((_, sources)) if sources.iter().all(elsewhere) => sources.to_vec(),
                _ => Vec::new(),
            }
        }
        "cp" | "install" | "ln" if operands.first().is_some_and(|text| text.s == "/dev/null") => {
            operands.into_iter().skip(1).collect()
        }
        "dd" => {
            let target = |arg: &ExpandedText| arg.s.strip_prefix("of=").map(ExpandedText::known);
            let source = command
                .args()
                .iter()
                .find_map(|arg| arg.s.strip_prefix("if="));
            let emptied = matches!(
                source,
                Some("/dev/null" | "/dev/zero" | "/dev/urandom" | "/dev/random")
            );
            let targets = command.args().iter().filter_map(target);
            targets.filter(|_| emptied).collect()
        }
        "chmod" => {
            let shuts = |mode: &str| {
                mode.starts_with("a-")
                    || mode.starts_with("ugo-")
                    || mode.starts_with("-x")
                    || mode.starts_with("-r")
                    || !mode.is_empty() && mode.bytes().all(|b| b == b'0')
            };
            let mode = command.args().iter().position(|arg| shuts(&arg.s));
            let after = mode.and_then(|at| command.args().get(at + 1..));
            after.unwrap_or_default().to_vec()
        }
        "sed" if super::protected::in_place(command) => {
            let all = matches!(
                command.operand(0),
                "d" | "1,$d" | "D" | "/./d" | "/.*/d" | "Q" | "1Q" | "s/.*//"
            );
            operands.into_iter().skip(1).filter(|_| all).collect()
        }
        "tee" if command.input.known.as_deref() == Some("") && !command.short('a') => operands,
        // Accounts without root's are none.
        "tee"
            if !command.short('a')
                && !command.long("--append")
                && command
                    .input
                    .known
                    .as_deref()
                    .is_some_and(|text| !text.contains("root:")) =>
        {
            let accounts = |text: &ExpandedText| ACCOUNTS.contains(&text.s.as_str());
            operands.into_iter().filter(accounts).collect()
        }
        "tee" if command.reads.iter().any(|file| file.s == "/dev/null") => operands,
        "cat" if operands.iter().all(|text| text.s == "/dev/null") && !operands.is_empty() => {
            emptied()
        }
        _ => Vec::new(),
    }
}

/// `echo -n`, `printf ''`. A newline may be appended.
fn prints_nothing(command: &ReducedCommand) -> bool {
    let args: Vec<&str> = command.args().iter().map(|arg| arg.s.as_str()).collect();
    match command.program() {
        "printf" => args == [""],
        _ => args.contains(&"-n") && args.iter().all(|arg| matches!(*arg, "" | "-n")),
    }
}

fn is_essential(file: &ExpandedText, judge: &ProgramJudge<'_>) -> bool {
    let full = paths::absolute(&file.s, &judge.cwd);
    let named = base_name(&full);
    let in_libraries = || {
        LIBRARY_FOLDERS.iter().any(|folder| {
            full.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    };
    ESSENTIAL_FILES.contains(&full.as_str())
        || ESSENTIAL_STARTS
            .iter()
            .any(|start| named.starts_with(start))
            && in_libraries()
}
