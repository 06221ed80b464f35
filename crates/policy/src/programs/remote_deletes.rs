//! Deleting at a service.
//!
//! There are more clients of services than tables can name, and nearly all of them speak the same
//! way: some nouns, then `delete`, `destroy` or `purge`. A client that has no row of its own is asked
//! about for that word; tools of this machine, whose words mean something else, are left out.

use super::acts::{has_flag, subcommands};
use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

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
    "drop",
    "drop-all",
    "nuke",
    "teardown",
    "obliterate",
];

const BEGINNINGS: &[&str] = &[
    "delete-",
    "delete_",
    "drop-",
    "drop_",
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
    "rbenv", "module", "ml", "xcrun", "simctl", "gpart", "diskutil", "btrfs", "nvme", "dd", "kubectl", "oc", "helm", "terraform", "tofu", "terragrunt", "pulumi", "vagrant", "zfs", "zpool", "k3d",
    "kind", "minikube", "defaults", "aws", "gcloud", "az", "gh", "glab", "virsh", "systemctl", "lxc", "incus", "heroku", "zoxide", "fzf", "history", "bind", "timew", "nb", "jrnl", "todo.sh", "abduco", "dtach", "zellij",
];

#[rustfmt::skip]
const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["nats"], &["*", "rm|del"], HarmCategory::Cloud, "deletes something at a service"),
    HarmfulAct::new(&["mc"], &["admin", "*", "remove|rm|disable|unset|detach"], HarmCategory::Cloud, "changes who may use a store"),
    HarmfulAct::new(&["mc"], &["rb|rm"], HarmCategory::Cloud, "deletes from a cloud store"),
    HarmfulAct::new(&["rclone"], &["rmdir"], HarmCategory::Cloud, "deletes from a cloud store").unless(&["--dry-run"]),
    HarmfulAct::new(&["gsutil"], &[], HarmCategory::Cloud, "deletes from a cloud store").with(&["rb", "rm"]),
    HarmfulAct::new(&["azcopy"], &["sync"], HarmCategory::Cloud, "deletes from a cloud store").with(&["--delete-destination"]),
    HarmfulAct::new(&["borg"], &["repo-delete|rdelete|compact"], HarmCategory::Destruction, "deletes backups"),
    HarmfulAct::new(&["nomad"], &["job|alloc|node", "stop|purge|drain|eligibility"], HarmCategory::Cloud, "stops something in a cluster"),
    HarmfulAct::new(&["mysqladmin"], &[], HarmCategory::Database, "deletes or stops a database").with(&["drop", "shutdown"]),
    HarmfulAct::new(&["wp"], &["db|site|user|post", "reset|drop|empty|clean"], HarmCategory::Database, "deletes the data of a site"),
    HarmfulAct::new(&["drush"], &["sql:drop|sql-drop|site:install|si"], HarmCategory::Database, "deletes the data of a site"),
    HarmfulAct::new(&["timeshift", "snapper"], &[], HarmCategory::Destruction, "deletes backups").with(&["--delete", "--delete-all", "delete"]),
    HarmfulAct::new(&["bleachbit"], &[], HarmCategory::Destruction, "deletes beyond recovery").with(&["--clean", "-c", "--shred", "-s", "--wipe-free-space"]),
    HarmfulAct::new(&["flyway"], &["clean|undo"], HarmCategory::Database, "deletes a database").unless(&["-dryRunOutput"]),
    HarmfulAct::new(&["heroku"], &["ps:scale|ps:stop|ps:kill|maintenance:on|pg:*|rollback"], HarmCategory::Cloud, "stops or changes an app").unless(&["pg:info", "pg:ps", "pg:psql", "pg:backups", "pg:diagnose"]),
    HarmfulAct::new(&["gh"], &["auth", "refresh"], HarmCategory::Privilege, "asks for more rights on the forge").with(&["-s", "--scopes"]),
    HarmfulAct::new(&["svn"], &["delete|rm|remove|del", "http*|svn*|file*"], HarmCategory::VersionControl, "deletes from a repository that others use"),
    HarmfulAct::new(&["rdiff-backup"], &[], HarmCategory::Destruction, "deletes backups").with(&["--remove-older-than"]),
    HarmfulAct::new(&["rdiff-backup"], &["remove"], HarmCategory::Destruction, "deletes backups"),
    HarmfulAct::new(&["ipfs"], &["pin", "rm"], HarmCategory::Cloud, "lets go of what was kept"),
    HarmfulAct::new(&["ipfs"], &["repo", "gc"], HarmCategory::Cloud, "deletes what nothing holds"),
    HarmfulAct::new(&["splunk"], &["remove|clean"], HarmCategory::Cloud, "deletes what was recorded"),
    HarmfulAct::new(&["rabbitmqctl"], &["reset|force_reset|stop_app|stop|remove_user|change_password|set_permissions"], HarmCategory::Cloud, "changes a message broker"),
    HarmfulAct::new(&["aws"], &["*", "batch-delete*|unsubscribe|update-secret|put-secret-value|change-resource-record-sets|untag-*"], HarmCategory::Cloud, "changes something in the cloud").unless(&["help"]),
    HarmfulAct::new(&["gcloud", "az"], &["*", "*", "undeploy|untag"], HarmCategory::Cloud, "deletes or stops something in the cloud"),
    HarmfulAct::new(&["vault"], &["lease", "revoke"], HarmCategory::Cloud, "deletes or locks secrets"),
    HarmfulAct::new(&["gitlab-rake"], &["gitlab:backup:restore|db:*"], HarmCategory::Database, "replaces the data of a service"),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    if only_asks(command) {
        return Vec::new();
    }
    if deletes_at_a_service(command) || alters_a_queue(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Cloud,
            "deletes something at a service",
        ));
    }
    if let Some(path) = onto_another_machine(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SystemFile,
            format!("changes the files of another machine's system: {path}"),
        ));
    }
    findings
}

/// Asks for help, or for what would happen.
fn only_asks(command: &ReducedCommand) -> bool {
    let trial = ["--help", "--dry-run", "--dryrun", "--what-if"]
        .iter()
        .any(|word| has_flag(command, word));
    // Among other letters `h` means anything, and to rsync it never means help.
    let help = command.program() != "rsync" && (command.has_arg("-h") || command.has_arg("help"));
    trial || help
}

fn deletes_at_a_service(command: &ReducedCommand) -> bool {
    const FURTHEST: usize = 4;
    let program = command.program();
    // A script of the project, and what it calls its own.
    let own = command
        .words
        .first()
        .is_some_and(|word| word.s.starts_with("./"));
    if command.transparent || own || program.len() < 2 || OTHERS.contains(&program) {
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
fn alters_a_queue(command: &ReducedCommand) -> bool {
    command.program().starts_with("kafka-")
        && ["--delete", "--remove", "--delete-config", "--reset-offsets"]
            .iter()
            .any(|flag| has_flag(command, flag))
}

/// `scp x host:/etc/` and its kin.
fn onto_another_machine(command: &ReducedCommand) -> Option<String> {
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
