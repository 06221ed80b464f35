//! A file of the machine in the hands of a tool that is not known to read it only.
//!
//! Which option of which tool writes is more than any table holds. A path by which jobs are scheduled,
//! people log in or services start has few reasons to be on a command line, and the tools that look at
//! it are known.

use super::ProgramJudge;
use super::looks::only_looks;
use super::texts::takes_texts;
use super::unknown::reads_only;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;

/// Where a line is a job, a service, a login or a right.
const RULING: &[&str] = &[
    "/etc/cron",
    "/var/spool/cron",
    "/etc/sudoers",
    "/etc/passwd",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/pam.d/",
    "/etc/profile.d/",
    "/etc/ld.so.preload",
    "/etc/ld.so.conf",
    "/etc/systemd/system/",
    "/lib/systemd/system/",
    "/etc/init.d/",
    "/etc/rc.local",
    "/etc/polkit-1/rules.d/",
    "/etc/udev/rules.d/",
    "/root/.ssh/authorized_keys",
    "/etc/update-motd.d/",
];

/// Tools that have rules of their own for such files, or look at them for a living.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "systemd-analyze", "systemctl", "run-parts", "pwck", "grpck", "sshd", "ssh", "shellcheck", "bash", "sh", "dash", "zsh", "sudo", "doas",
    "cd", "pushd", "test", "[", "[[", "ls", "find", "fd", "rm", "mv", "cp", "install", "ln", "rsync", "scp", "chmod", "chown", "chgrp", "setfacl", "getfacl", "chattr",
    "lsattr", "mkdir", "rmdir", "touch", "tee", "sed", "awk", "gawk", "perl", "python", "python3", "ruby", "node", "php", "vim", "vi", "nvim", "nano", "emacs", "code", "subl",
    "rpm", "dpkg", "dpkg-query", "apt-file", "dnf", "yum", "pacman", "basename", "dirname", "realpath", "readlink", "service", "tar", "zip", "gzip", "git", "etckeeper", "tripwire",
    "aide", "debsums", "restorecon", "chcon", "semanage", "matchpathcon", "ansible", "ansible-playbook", "docker", "podman", "kubectl", "update-rc.d", "getent", "visudo", "vipw",
    "crontab", "anacron", "logger", "read", "mapfile", "readarray", "export", "declare", "local", "exec", "trap", "for", "inotifywait", "entr", "watch", "kate", "gedit", "mousepad",
    "meld", "vimdiff", "delta", "difft", "open", "xdg-open", "ausearch", "auditctl", "lynis", "trivy", "grype", "checkov", "semgrep", "openssl", "gpg", "unlink", "shred", "truncate", "dd",
    "gpasswd", "usermod", "useradd", "userdel", "chpasswd", "newusers", "john", "unshadow", "crunch", "udevadm", "pkaction", "augtool", "sudoedit", "stow", "hash", "su", "runuser",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let program = command.program();
    if command.transparent
        || OTHERS.contains(&program)
        || reads_only(program)
        || takes_texts(program)
    {
        return Vec::new();
    }
    let ruled = command.args().iter().find_map(|arg| {
        let value = arg
            .s
            .rsplit_once(['=', '@'])
            .map_or(arg.s.as_str(), |(_, value)| value);
        let value = if value.starts_with('/') {
            value
        } else {
            arg.s.as_str()
        };
        rules(value, judge).then_some(value)
    });
    let Some(path) = ruled else {
        return Vec::new();
    };
    let args: Vec<&str> = command.args().iter().map(|arg| arg.s.as_str()).collect();
    if only_looks(program, &args) {
        return Vec::new();
    }
    vec![HarmFinding::dangerous(
        HarmCategory::SystemFile,
        format!(
            "hands a file that the machine goes by to {program}: {}",
            crate::text::shown(path)
        ),
    )]
}

fn rules(path: &str, judge: &ProgramJudge<'_>) -> bool {
    if !path.starts_with('/') || path.len() > 256 || path.contains(char::is_whitespace) {
        return false;
    }
    let full = paths::absolute(path, &judge.cwd);
    let is_ruling = |start: &str| full.starts_with(start) || full == start.trim_end_matches('/');
    RULING.iter().any(|start| is_ruling(start))
}
