//! The places themselves, and what writing there does.

use crate::finding::Category;

/// Below the home folder.
pub(super) const HOME: &[(&str, Category, &str)] = &[
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
pub(super) const ANYWHERE: &[(&str, Category, &str)] = &[
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
