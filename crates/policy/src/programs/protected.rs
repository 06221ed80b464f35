//! Files that do something when written to: at boot, at login, for the next `sudo`.

use super::Judge;
use crate::context::Context;
use crate::effective::{Effective, base_name};
use crate::finding::{Category, Finding};
use crate::paths;
use crate::text::Text;

/// Below the home folder.
const HOME: &[(&str, Category, &str)] = &[
    (
        ".ssh/authorized_keys",
        Category::Persistence,
        "lets somebody log in by key",
    ),
    (
        ".ssh/",
        Category::Persistence,
        "changes ssh keys or settings",
    ),
    (
        ".bashrc",
        Category::Persistence,
        "runs at every shell start",
    ),
    (
        ".bash_profile",
        Category::Persistence,
        "runs at every login",
    ),
    (".bash_login", Category::Persistence, "runs at every login"),
    (
        ".bash_logout",
        Category::Persistence,
        "runs at every logout",
    ),
    (
        ".bash_aliases",
        Category::Persistence,
        "runs at every shell start",
    ),
    (".profile", Category::Persistence, "runs at every login"),
    (".zshrc", Category::Persistence, "runs at every shell start"),
    (
        ".zshenv",
        Category::Persistence,
        "runs at every shell start",
    ),
    (".zprofile", Category::Persistence, "runs at every login"),
    (".zlogin", Category::Persistence, "runs at every login"),
    (
        ".config/fish/",
        Category::Persistence,
        "runs at every shell start",
    ),
    (".kshrc", Category::Persistence, "runs at every shell start"),
    (".cshrc", Category::Persistence, "runs at every shell start"),
    (".xinitrc", Category::Persistence, "runs at every login"),
    (".xsession", Category::Persistence, "runs at every login"),
    (".xprofile", Category::Persistence, "runs at every login"),
    (
        ".inputrc",
        Category::Persistence,
        "changes what keys do in a shell",
    ),
    (
        ".config/autostart/",
        Category::Persistence,
        "runs at every login",
    ),
    (
        ".config/systemd/",
        Category::Persistence,
        "installs a service",
    ),
    (
        ".local/share/systemd/",
        Category::Persistence,
        "installs a service",
    ),
    (
        ".config/environment.d/",
        Category::Persistence,
        "changes the environment of every login",
    ),
    (
        "Library/LaunchAgents/",
        Category::Persistence,
        "runs at every login",
    ),
    (
        ".pam_environment",
        Category::Persistence,
        "changes the environment of every login",
    ),
    (
        ".netrc",
        Category::Persistence,
        "changes stored credentials",
    ),
    (
        ".pgpass",
        Category::Persistence,
        "changes stored credentials",
    ),
    (".aws/", Category::Persistence, "changes cloud credentials"),
    (
        ".kube/config",
        Category::Persistence,
        "changes cluster credentials",
    ),
    (
        ".docker/config.json",
        Category::Persistence,
        "changes registry credentials",
    ),
    (
        ".npmrc",
        Category::Persistence,
        "changes registry credentials",
    ),
    (
        ".pypirc",
        Category::Persistence,
        "changes registry credentials",
    ),
    (
        ".pip/pip.conf",
        Category::Persistence,
        "changes where packages come from",
    ),
    (
        ".config/pip/pip.conf",
        Category::Persistence,
        "changes where packages come from",
    ),
    (
        ".cargo/config",
        Category::Persistence,
        "changes how everything is built",
    ),
    (
        ".cargo/credentials",
        Category::Persistence,
        "changes registry credentials",
    ),
    (".gnupg/", Category::Persistence, "changes keys"),
    (
        ".vimrc",
        Category::Persistence,
        "runs at every editor start",
    ),
    (
        ".config/nvim/",
        Category::Persistence,
        "runs at every editor start",
    ),
    (
        ".tmux.conf",
        Category::Persistence,
        "runs at every terminal start",
    ),
    (
        ".git-credentials",
        Category::Persistence,
        "changes stored credentials",
    ),
    (".rhosts", Category::Persistence, "lets somebody log in"),
    (".shosts", Category::Persistence, "lets somebody log in"),
    (".forward", Category::Persistence, "runs at every mail"),
    (".gitconfig", Category::Persistence, "changes what git runs"),
    (
        ".config/git/",
        Category::Persistence,
        "changes what git runs",
    ),
    (
        ".bash_history",
        Category::LogTampering,
        "rewrites the shell history",
    ),
    (
        ".zsh_history",
        Category::LogTampering,
        "rewrites the shell history",
    ),
    (
        ".python_history",
        Category::LogTampering,
        "rewrites the shell history",
    ),
    (
        ".claude/settings",
        Category::Persistence,
        "changes what an agent may do",
    ),
];

/// Anywhere: the path contains it.
const ANYWHERE: &[(&str, Category, &str)] = &[
    (
        "/.ssh/authorized_keys",
        Category::Persistence,
        "lets somebody log in by key",
    ),
    (
        "/.ssh/",
        Category::Persistence,
        "changes ssh keys or settings",
    ),
    ("/.git/hooks/", Category::Persistence, "installs a git hook"),
    (
        "/.git/config",
        Category::Persistence,
        "changes what git runs",
    ),
    ("/.husky/_/", Category::Persistence, "installs a git hook"),
    (
        "/etc/cron",
        Category::Persistence,
        "installs a scheduled job",
    ),
    (
        "/var/spool/cron",
        Category::Persistence,
        "installs a scheduled job",
    ),
    ("/etc/systemd/", Category::Persistence, "installs a service"),
    (
        "/lib/systemd/system",
        Category::Persistence,
        "installs a service",
    ),
    (
        "/run/systemd/system",
        Category::Persistence,
        "installs a service",
    ),
    ("/etc/init.d/", Category::Persistence, "installs a service"),
    ("/etc/rc.local", Category::Persistence, "runs at every boot"),
    ("/etc/rc", Category::Persistence, "runs at every boot"),
    ("/etc/profile", Category::Persistence, "runs at every login"),
    (
        "/etc/bash.bashrc",
        Category::Persistence,
        "runs at every shell start",
    ),
    (
        "/etc/zsh",
        Category::Persistence,
        "runs at every shell start",
    ),
    (
        "/etc/ld.so",
        Category::Persistence,
        "is loaded into every program",
    ),
    ("/etc/pam.d/", Category::Privilege, "changes who may log in"),
    (
        "/etc/sudoers",
        Category::Privilege,
        "changes who may become root",
    ),
    (
        "/etc/passwd",
        Category::Privilege,
        "changes the users of this machine",
    ),
    ("/etc/shadow", Category::Privilege, "changes passwords"),
    (
        "/etc/group",
        Category::Privilege,
        "changes who belongs where",
    ),
    ("/etc/gshadow", Category::Privilege, "changes passwords"),
    (
        "/etc/doas.conf",
        Category::Privilege,
        "changes who may become root",
    ),
    (
        "/etc/polkit",
        Category::Privilege,
        "changes who may do what",
    ),
    (
        "/etc/security/",
        Category::Privilege,
        "changes who may do what",
    ),
    ("/etc/ssh/", Category::Persistence, "changes who may log in"),
    (
        "/etc/udev/",
        Category::Persistence,
        "runs when a device appears",
    ),
    (
        "/etc/apt/",
        Category::Persistence,
        "changes where packages come from",
    ),
    (
        "/etc/yum",
        Category::Persistence,
        "changes where packages come from",
    ),
    (
        "/etc/modules",
        Category::Kernel,
        "loads kernel modules at boot",
    ),
    (
        "/etc/modprobe.d",
        Category::Kernel,
        "changes kernel modules",
    ),
    (
        "/etc/sysctl",
        Category::Kernel,
        "changes the kernel's settings",
    ),
    (
        "/etc/audit",
        Category::LogTampering,
        "changes what is recorded",
    ),
    (
        "/etc/rsyslog",
        Category::LogTampering,
        "changes what is recorded",
    ),
    (
        "/etc/logrotate",
        Category::LogTampering,
        "changes what is recorded",
    ),
    ("/etc/iptables", Category::Firewall, "changes the firewall"),
    ("/etc/nftables", Category::Firewall, "changes the firewall"),
    ("/etc/ufw", Category::Firewall, "changes the firewall"),
    (
        "/etc/hosts",
        Category::SystemFile,
        "changes where names lead",
    ),
    (
        "/etc/resolv.conf",
        Category::SystemFile,
        "changes where names lead",
    ),
    (
        "/etc/fstab",
        Category::SystemFile,
        "changes what is mounted",
    ),
    (
        "/etc/",
        Category::SystemFile,
        "changes the machine's configuration",
    ),
    (
        "/proc/sysrq-trigger",
        Category::Kernel,
        "orders the kernel about",
    ),
    (
        "/proc/sys/",
        Category::Kernel,
        "changes the kernel's settings",
    ),
    ("/sys/", Category::Kernel, "changes the kernel's settings"),
    (
        "/proc/",
        Category::Kernel,
        "changes a process or the kernel",
    ),
    ("/boot/", Category::Kernel, "changes what boots"),
    (
        "/var/log/",
        Category::LogTampering,
        "changes the machine's records",
    ),
    (
        "/private/etc/",
        Category::SystemFile,
        "changes the machine's configuration",
    ),
    (
        "/private/var/",
        Category::SystemFile,
        "changes the machine's files",
    ),
    (
        "/usr/lib/python",
        Category::Persistence,
        "runs at every start of Python",
    ),
    (
        "/usr/",
        Category::SystemFile,
        "changes the machine's programs",
    ),
    (
        "/bin/",
        Category::SystemFile,
        "changes the machine's programs",
    ),
    (
        "/sbin/",
        Category::SystemFile,
        "changes the machine's programs",
    ),
    (
        "/lib/",
        Category::SystemFile,
        "changes the machine's libraries",
    ),
    (
        "/lib64/",
        Category::SystemFile,
        "changes the machine's libraries",
    ),
    ("/root/", Category::SystemFile, "changes the files of root"),
    (
        "/var/lib/",
        Category::SystemFile,
        "changes the data of a service",
    ),
    (
        "/var/spool/",
        Category::SystemFile,
        "changes the data of a service",
    ),
    (
        "/var/run/docker.sock",
        Category::Container,
        "orders the container engine about",
    ),
];

/// Why writing to `full` matters; `given` is how it was spelled.
pub(crate) fn reason(full: &str, given: &str, context: &Context) -> Option<(Category, String)> {
    if let Some(reason) = super::own::file(full, context) {
        return Some((Category::OwnFiles, reason));
    }
    if paths::is_disk(full) {
        return Some((
            Category::Disk,
            format!("writes straight onto a disk: {full}"),
        ));
    }
    if matches!(
        full,
        "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty" | "/dev/zero"
    ) || full.starts_with("/dev/fd/")
        || full.starts_with("/dev/pts/")
        || full.starts_with("/proc/self/fd/")
    {
        return None;
    }
    let home = context.home.trim_end_matches('/');
    for base in [home, "/root"] {
        if let Some(rest) = full
            .strip_prefix(base)
            .and_then(|rest| rest.strip_prefix('/'))
            && let Some((_, category, what)) = HOME.iter().find(|(path, _, _)| listed(rest, path))
        {
            return Some((*category, format!("writes {given}, which {what}")));
        }
    }
    // Somebody else's home.
    if let Some(rest) = full
        .strip_prefix("/home/")
        .or_else(|| full.strip_prefix("/Users/"))
        && let Some((_, rest)) = rest.split_once('/')
        && let Some((_, category, what)) = HOME.iter().find(|(path, _, _)| listed(rest, path))
    {
        return Some((*category, format!("writes {given}, which {what}")));
    }
    let workspace = context.workspace.trim_end_matches('/');
    let inside = full.starts_with(&format!("{workspace}/"));
    ANYWHERE
        .iter()
        .find(|(path, _, _)| {
            if path.starts_with("/.") {
                full.contains(path)
            } else {
                !inside && full.starts_with(path)
            }
        })
        .map(|(_, category, what)| (*category, format!("writes {given}, which {what}")))
}

fn listed(rest: &str, path: &str) -> bool {
    if path.ends_with('/') {
        rest.starts_with(path)
    } else {
        rest == path
            || rest.starts_with(&format!("{path}."))
            || (rest.starts_with(path) && path.contains('/'))
    }
}

pub(super) fn judge(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let mut targets: Vec<&Text> = command.writes.iter().collect();
    targets.extend(written(command));
    targets
        .into_iter()
        .filter_map(|target| {
            if paths::is_disk(&paths::absolute(&target.s, &judge.cwd)) {
                return Some(Finding::floor(
                    Category::Disk,
                    format!("writes straight onto a disk: {}", target.shown()),
                ));
            }
            if target.s == "/proc/sysrq-trigger" {
                return Some(Finding::floor(
                    Category::Power,
                    "orders the kernel to stop or reboot (sysrq)",
                ));
            }
            let (category, reason) = paths::protected(&target.s, &judge.cwd, judge.context)?;
            Some(Finding::dangerous(category, reason))
        })
        .collect()
}

/// Operands that a program writes to.
fn written(command: &Effective) -> Vec<&Text> {
    let operands: Vec<&Text> = command.operands().collect();
    let last = || operands.last().copied().into_iter().collect();
    match command.program() {
        "tee" | "sponge" | "touch" | "ed" | "ex" | "patch" => operands,
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" | "gcp" => match command.value_of("-t") {
            Some(folder) => vec![folder],
            None if operands.len() > 1 || command.program() == "ln" => last(),
            None => Vec::new(),
        },
        "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" if in_place(command) => operands,
        "sed" | "gsed" => sed_writes(command),
        "curl" | "wget" | "aria2c" | "tar" | "unzip" | "sort" | "openssl" | "gpg" | "dd" | "jq"
        | "yq" | "pandoc" | "xxd" | "split" => {
            let mut files = Vec::new();
            let flags: &[&str] = match command.program() {
                "wget" => &["-O", "--output-document", "-P", "-o"],
                "tar" => &["-C", "--directory"],
                "unzip" => &["-d"],
                "dd" | "jq" | "yq" | "xxd" | "split" => &[],
                "openssl" => &["-out"],
                _ => &[
                    "-o",
                    "--output",
                    "--output-dir",
                    "-D",
                    "--dump-header",
                    "-c",
                    "--cookie-jar",
                    "-d",
                    "--dir",
                ],
            };
            for flag in flags {
                if let Some(file) = command.value_of(flag) {
                    files.push(file);
                }
            }
            files
        }
        "sudoedit" | "visudo" | "nano" | "vi" | "vim" | "nvim" | "emacs" | "crudini" => operands,
        _ => Vec::new(),
    }
}

pub(super) fn in_place(command: &Effective) -> bool {
    command.args().iter().any(|arg| {
        let s = arg.s.as_str();
        s.starts_with("--in-place")
            || s == "inplace"
            || (s.starts_with("-i") && !s.starts_with("--") && !s.starts_with("-inc"))
            || (s.starts_with('-')
                && !s.starts_with("--")
                && s.len() < 8
                && s[1..].chars().all(|c| c.is_ascii_alphabetic())
                && s.contains('i')
                && matches!(command.program(), "perl" | "ruby" | "sed"))
    })
}

/// `sed 'w file'` writes, whatever else the script does.
fn sed_writes(command: &Effective) -> Vec<&Text> {
    command
        .args()
        .iter()
        .filter(|arg| arg.s.contains("w /") && base_name(&arg.s).len() < 256)
        .filter(|arg| arg.s.starts_with('/') && !arg.s.contains(' '))
        .collect()
}
