//! Deleting at a service.
//!
//! There are more clients of services than tables can name, and nearly all of them speak the same
//! way: some nouns, then `delete`, `destroy` or `purge`. A client that has no row of its own is asked
//! about for that word; tools of this machine, whose words mean something else, are left out.

use super::acts::{has_flag, subcommands};
use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};

const VERBS: &[&str] = &[
    "delete",
    "destroy",
    "purge",
    "terminate",
    "undeploy",
    "unregister",
    "deregister",
    "decommission",
    "revoke",
    "wipe",
    "del-user",
    "remove-user",
    "remove-secret",
];

const BEGINNINGS: &[&str] = &[
    "delete-",
    "delete_",
    "destroy-",
    "destroy_",
    "purge-",
    "purge_",
    "terminate-",
    "revoke-",
    "clear_",
    "forget_",
    "batch-delete",
];

const ENDINGS: &[&str] = &[
    ":delete", ":destroy", ":purge", ":wipe", "-delete", "-destroy",
];

/// Programs whose operands are texts, files, scripts or packages, or that have rules of their own.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "", ":", "[", "[[", "test", "echo", "printf", "grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "gawk",
    "find", "fd", "fdfind", "cat", "bat", "less", "more", "head", "tail", "ls", "cd", "man", "tldr", "info", "help",
    "which", "whatis", "apropos", "type", "command", "touch", "mkdir", "cp", "mv", "rm", "ln", "make", "gmake",
    "just", "task", "rake", "ninja", "cmake", "python", "python2", "python3", "node", "nodejs", "ruby", "perl", "php",
    "lua", "go", "deno", "bun", "npm", "npx", "pnpm", "yarn", "pip", "pip3", "pipx", "poetry", "uv", "pdm", "conda",
    "mamba", "cargo", "rustup", "gem", "bundle", "composer", "mvn", "gradle", "sbt", "mix", "cabal", "stack", "opam",
    "apt", "apt-get", "apt-cache", "dpkg", "dnf", "yum", "zypper", "brew", "pacman", "apk", "snap", "flatpak", "nix",
    "port", "emerge", "git", "hg", "svn", "fossil", "jj", "bzr", "docker", "podman", "tmux", "screen", "vim", "vi",
    "nvim", "nano", "emacs", "code", "tar", "zip", "jq", "yq", "tr", "cut", "sort", "uniq", "wc", "diff", "xargs",
    "bash", "sh", "zsh", "fish", "dash", "ksh", "eval", "exec", "source", ".", "export", "alias", "set", "unset",
    "sudo", "doas", "env", "time", "nohup", "timeout", "psql", "mysql", "sqlite3", "mongosh", "redis-cli", "curl",
    "wget", "ssh", "scp", "rsync", "nmcli", "ip", "iptables", "nft", "ufw", "gpg", "say", "notify-send", "logger",
    "expr", "let", "read", "trap", "wait", "sleep", "date", "cal", "seq", "yes", "hermetic", "hermes", "pytest",
    "jest", "phpunit", "rspec", "ctest", "vitest", "mocha", "pre-commit", "direnv", "asdf", "mise", "nvm", "pyenv",
    "rbenv", "module", "ml", "dd", "kubectl", "oc", "helm", "terraform", "tofu", "terragrunt", "pulumi", "vagrant", "zfs", "zpool", "k3d",
    "kind", "minikube", "defaults", "aws", "gcloud", "az", "gh", "glab", "virsh", "systemctl", "lxc", "incus", "heroku", "zoxide", "fzf", "history", "bind", "timew", "nb", "jrnl", "todo.sh", "abduco", "dtach", "zellij",
];

#[rustfmt::skip]
const ACTS: &[Act] = &[
    Act::new(&["nats"], &["*", "rm|del"], Category::Cloud, "deletes something at a service"),
    Act::new(&["mc"], &["admin", "*", "remove|rm|disable|unset|detach"], Category::Cloud, "changes who may use a store"),
    Act::new(&["mc"], &["rb|rm"], Category::Cloud, "deletes from a cloud store"),
    Act::new(&["rclone"], &["rmdir"], Category::Cloud, "deletes from a cloud store").unless(&["--dry-run"]),
    Act::new(&["gsutil"], &[], Category::Cloud, "deletes from a cloud store").with(&["rb", "rm"]),
    Act::new(&["azcopy"], &["sync"], Category::Cloud, "deletes from a cloud store").with(&["--delete-destination"]),
    Act::new(&["borg"], &["repo-delete|rdelete|compact"], Category::Destruction, "deletes backups"),
    Act::new(&["splunk"], &["remove|clean"], Category::Cloud, "deletes what was recorded"),
    Act::new(&["rabbitmqctl"], &["reset|force_reset|stop_app|stop|remove_user|change_password|set_permissions"], Category::Cloud, "changes a message broker"),
    Act::new(&["aws"], &["*", "batch-delete*|unsubscribe|update-secret|put-secret-value|change-resource-record-sets|untag-*"], Category::Cloud, "changes something in the cloud").unless(&["help"]),
    Act::new(&["gcloud", "az"], &["*", "*", "undeploy|untag"], Category::Cloud, "deletes or stops something in the cloud"),
    Act::new(&["vault"], &["lease", "revoke"], Category::Cloud, "deletes or locks secrets"),
    Act::new(&["gitlab-rake"], &["gitlab:backup:restore|db:*"], Category::Database, "replaces the data of a service"),
];

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    if only_asks(command) {
        return Vec::new();
    }
    if deletes_at_a_service(command) || alters_a_queue(command) {
        findings.push(Finding::dangerous(
            Category::Cloud,
            "deletes something at a service",
        ));
    }
    if let Some(path) = onto_another_machine(command) {
        findings.push(Finding::dangerous(
            Category::SystemFile,
            format!("changes the files of another machine's system: {path}"),
        ));
    }
    findings
}

/// Asks for help, or for what would happen.
fn only_asks(command: &Effective) -> bool {
    let trial = ["--help", "--dry-run", "--dryrun", "--what-if"]
        .iter()
        .any(|word| has_flag(command, word));
    // Among other letters `h` means anything, and to rsync it never means help.
    let help = command.program() != "rsync" && (command.has_arg("-h") || command.has_arg("help"));
    trial || help
}

fn deletes_at_a_service(command: &Effective) -> bool {
    const FURTHEST: usize = 4;
    let program = command.program();
    if command.transparent || program.len() < 2 || OTHERS.contains(&program) {
        return false;
    }
    let words = subcommands(command);
    let archive = |word: &str| word.ends_with(".jar") || word.contains("://");
    words
        .iter()
        .take(FURTHEST)
        .filter(|word| !archive(word))
        .take_while(|word| is_subcommand(word))
        .any(|word| is_verb(word))
}

fn is_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_:".contains(&b))
}

fn is_verb(word: &str) -> bool {
    VERBS.contains(&word)
        || BEGINNINGS.iter().any(|start| word.starts_with(start))
        || ENDINGS.iter().any(|end| word.ends_with(end))
}

/// Kafka's tools say it by a flag.
fn alters_a_queue(command: &Effective) -> bool {
    command.program().starts_with("kafka-")
        && ["--delete", "--remove", "--delete-config", "--reset-offsets"]
            .iter()
            .any(|flag| has_flag(command, flag))
}

/// `scp x host:/etc/` and its kin.
fn onto_another_machine(command: &Effective) -> Option<String> {
    const SYSTEM: &[&str] = &[
        "/etc", "/boot", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/root", "/var/lib",
    ];
    if !matches!(command.program(), "scp" | "rsync") {
        return None;
    }
    let target = command.operands().last()?;
    let (host, path) = target.s.split_once(':')?;
    let system = path == "/"
        || SYSTEM.iter().any(|folder| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    (system && !host.contains('/')).then(|| target.shown())
}
