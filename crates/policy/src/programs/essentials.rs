//! The act of taking away what the system runs on, by whatever package manager.

use super::ProgramJudge;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::TaintSet;

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
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    if !removes(command) {
        return Vec::new();
    }
    let package = |text: &str| {
        let name = text.rsplit('/').next().unwrap_or(text);
        let name = name.split([':', '=']).next().unwrap_or(name);
        ESSENTIAL.contains(&name) || matches!(text, "*" | ".*" | "?*")
    };
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
