//! Becoming somebody else.

mod sudo;

use super::{HarmfulAct, ProgramJudge};
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use sudo::sudo;

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(
        &[
            "useradd", "adduser", "userdel", "deluser", "groupadd", "addgroup", "groupdel",
            "delgroup", "newusers", "chpasswd",
        ],
        &[],
        HarmCategory::Privilege,
        "changes the users of this machine",
    ),
    HarmfulAct::new(
        &["usermod", "gpasswd", "groupmod", "vipw", "vigr"],
        &[],
        HarmCategory::Privilege,
        "changes who may do what",
    ),
    HarmfulAct::new(
        &["passwd"],
        &[],
        HarmCategory::Privilege,
        "changes a password",
    )
    .unless(&["-S", "--status", "--help"]),
    HarmfulAct::new(
        &["chage", "chsh", "chfn"],
        &[],
        HarmCategory::Privilege,
        "changes an account",
    )
    .unless(&["-l", "--list", "--help"]),
    HarmfulAct::new(
        &[
            "ldapadd",
            "ldapmodify",
            "ldapdelete",
            "ldappasswd",
            "ldapmodrdn",
            "smbpasswd",
        ],
        &[],
        HarmCategory::Privilege,
        "changes accounts that others log in with",
    ),
    HarmfulAct::new(
        &["pw"],
        &["useradd|usermod|userdel|groupadd|groupmod|groupdel|user|group"],
        HarmCategory::Privilege,
        "changes the users of this machine",
    ),
    HarmfulAct::new(
        &[
            "samba-tool",
            "ipa",
            "kadmin.local",
            "kadmin",
            "homectl",
            "pdbedit",
            "gcloud_users",
            "realm",
        ],
        &["user*|group*|addprinc|cpw|create|update|join|permit|add*"],
        HarmCategory::Privilege,
        "changes accounts that others log in with",
    )
    .unless(&["list", "show", "--list"]),
    HarmfulAct::new(
        &["pdbedit"],
        &[],
        HarmCategory::Privilege,
        "changes accounts that others log in with",
    )
    .with(&["-a", "-x", "-m"]),
    HarmfulAct::new(
        &["net", "net.exe"],
        &["user|localgroup|group|rpc|ads"],
        HarmCategory::Privilege,
        "changes the users of this machine",
    )
    .with(&["/add", "/delete", "/active:yes", "add", "join"]),
    HarmfulAct::new(
        &["setcap"],
        &[],
        HarmCategory::Privilege,
        "gives a program rights of root",
    ),
    HarmfulAct::new(
        &["visudo", "sudoedit"],
        &[],
        HarmCategory::Privilege,
        "changes who may do what, as root",
    )
    .unless(&["-c", "--check"]),
    HarmfulAct::new(
        &["setenforce"],
        &["0|Permissive|permissive"],
        HarmCategory::SecurityTool,
        "switches SELinux off",
    ),
    HarmfulAct::new(
        &["aa-disable", "aa-complain", "aa-teardown"],
        &[],
        HarmCategory::SecurityTool,
        "switches AppArmor off",
    ),
    HarmfulAct::new(
        &["dscl", "dseditgroup", "sysadminctl"],
        &[],
        HarmCategory::Privilege,
        "changes the users of this machine",
    )
    .unless(&[
        "-list",
        "list",
        "-read",
        "read",
        "-search",
        "search",
        "-readall",
        "readall",
        "ls",
        "cat",
        "-ls",
        "-cat",
        "checkmember",
        "-secureTokenStatus",
    ]),
    HarmfulAct::new(
        &["loginctl"],
        &["enable-linger"],
        HarmCategory::Persistence,
        "keeps services running without a login",
    ),
    HarmfulAct::new(
        &["xhost"],
        &["+*"],
        HarmCategory::Privilege,
        "opens the screen to everybody",
    ),
    HarmfulAct::new(
        &["pkexec"],
        &[],
        HarmCategory::Privilege,
        "runs a command as root",
    )
    .unless(&["--version", "--help"]),
    HarmfulAct::new(
        &["nsenter"],
        &[],
        HarmCategory::Privilege,
        "enters another namespace",
    )
    .with(&[
        "-t", "--target", "--all", "-a", "--mount", "-m", "--pid", "-p", "--net", "-n",
    ]),
];

/// With `sudo` in front these only look.
const LOOKS: &[&str] = &[
    "whoami",
    "id",
    "ls",
    "pwd",
    "echo",
    "true",
    "date",
    "uptime",
    "df",
    "du",
    "free",
    "ps",
    "top",
    "htop",
    "uname",
    "hostname",
    "lsof",
    "ss",
    "netstat",
    "dmesg",
    "journalctl",
    "lsblk",
    "blkid",
    "cat",
    "head",
    "tail",
    "less",
    "grep",
    "find",
    "stat",
    "file",
    "wc",
    "which",
    "test",
    "tcpdump",
    "iotop",
    "lspci",
    "lsusb",
    "lsmod",
    "fdisk",
    "parted",
    "ip",
    "ifconfig",
    "systemctl",
    "service",
    "apt",
    "apt-get",
    "dnf",
    "yum",
    "pacman",
    "zypper",
    "apk",
    "snap",
    "brew",
    "docker",
    "podman",
    "nginx",
    "apachectl",
    "ufw",
    "iptables",
    "crontab",
    "smartctl",
    "hdparm",
    "dmidecode",
    "updatedb",
    "locate",
    "tree",
    "nmap",
    "ping",
    "traceroute",
    "ethtool",
    "lshw",
    "vmstat",
    "iostat",
    "timedatectl",
    "hostnamectl",
    "loginctl",
    "sysctl",
    "swapon",
    "findmnt",
    "mount",
    "getent",
    "groups",
    "last",
    "lastlog",
    "env",
    "printenv",
    "time",
    "timeout",
    "nice",
    "command",
    "awk",
    "sort",
    "md5sum",
    "sha256sum",
    "readlink",
    "realpath",
    "dpkg",
    "rpm",
    "flatpak",
    "ctop",
    "strace",
    "mysql",
    "mariadb",
    "psql",
    "redis-cli",
    "mongosh",
    "dscacheutil",
    "killall",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    match command.program() {
        "sudo" => findings.extend(sudo(command, judge)),
        "doas" => findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "runs a command as root",
        )),
        "su" | "runuser"
            if ["--help", "--version", "-h", "-V"]
                .iter()
                .any(|flag| command.has_arg(flag)) => {}
        "su" | "runuser" | "machinectl" | "gosu" | "su-exec"
            if command.program() != "machinectl" || command.has_arg("shell") =>
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Privilege,
                "becomes another user",
            ));
        }
        "chroot" => findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "runs a command in another root",
        )),
        "unshare" if command.short('r') || command.long("--map-root-user") => {}
        "capsh"
            if command
                .args()
                .iter()
                .any(|arg| arg.s.starts_with("--uid=0") || arg.s.starts_with("--gid=0")) =>
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Privilege,
                "becomes root",
            ));
        }
        "setpriv" if command.args().iter().any(|arg| arg.s.contains("uid=0")) => {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Privilege,
                "becomes root",
            ));
        }
        "newgrp" | "sg"
            if command.has_arg("docker") || command.has_arg("root") || command.has_arg("sudo") =>
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Privilege,
                "joins a group that is as good as root",
            ));
        }
        _ => {}
    }
    findings
}

/// Programs that look or change, depending on their words.
fn changes(command: &ReducedCommand, name: &str) -> bool {
    let after: Vec<&str> = command
        .args()
        .iter()
        .map(|arg| arg.s.as_str())
        .skip_while(|arg| base_name(arg) != name)
        .skip(1)
        .collect();
    let any = |words: &[&str]| after.iter().any(|word| words.contains(word));
    match name {
        // Packages by name, services and containers are judged for themselves.
        "apt" | "apt-get" | "dnf" | "yum" | "apk" | "zypper" | "snap" | "flatpak" | "brew" => after
            .iter()
            .any(|word| word.contains('/') || word.ends_with(".deb") || word.ends_with(".rpm")),
        "systemctl" | "service" | "docker" | "podman" => false,
        "pacman" => after
            .iter()
            .any(|word| word.starts_with("-R") || word.starts_with("-U")),
        "dpkg" | "rpm" => after.iter().any(|word| {
            matches!(
                *word,
                "-i" | "-r" | "-P" | "-e" | "-U" | "--install" | "--remove" | "--purge"
            ) || word.starts_with("-iv")
                || word.starts_with("-Uv")
        }),
        // A statement is judged for itself; a prompt as root is not one.
        "mysql" | "mariadb" | "psql" | "mongosh" => !after.iter().any(|word| {
            matches!(
                *word,
                "-e" | "-c" | "--execute" | "--command" | "--eval" | "-l"
            )
        }),
        "redis-cli" => after.is_empty(),
        "killall" => !any(&["-HUP", "-USR1", "-0", "-INFO"]),
        "nginx" | "apachectl" => !any(&["-t", "configtest", "-v", "-V", "-T"]),
        "ufw" => !any(&["status"]),
        "iptables" => !after.iter().any(|word| {
            word.starts_with("-L")
                || word.starts_with("-S")
                || *word == "--list"
                || word.contains("nvL")
                || word.starts_with("-n")
        }),
        "crontab" => !any(&["-l"]),
        "sysctl" => {
            any(&["-w", "-p", "--write", "--load", "--system"])
                || after.iter().any(|word| word.contains('='))
        }
        "fdisk" | "parted" | "swapon" => !after
            .iter()
            .any(|word| matches!(*word, "-l" | "--list" | "--show" | "print" | "-s")),
        "ip" => any(&["add", "del", "delete", "set", "flush", "change", "replace"]),
        "ifconfig" | "mount" | "ethtool" => after.len() > 1,
        "find" => any(&["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprintf"]),
        "awk" => after
            .iter()
            .any(|word| word.contains("system") || word.contains('|')),
        "env" | "time" | "timeout" | "nice" | "command" | "strace" => after
            .iter()
            .find(|word| {
                !word.starts_with('-')
                    && !word.contains('=')
                    && !word.starts_with(|c: char| c.is_ascii_digit())
            })
            .is_some_and(|word| !LOOKS.contains(&base_name(word))),
        "timedatectl" | "hostnamectl" => after.iter().any(|word| word.starts_with("set")),
        "hdparm" | "smartctl" => after
            .iter()
            .any(|word| word.starts_with("--security") || word.starts_with("--yes")),
        _ => false,
    }
}
