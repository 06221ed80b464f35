//! What the words of a tool that nobody knows give away.
//!
//! [`super::remote_deletes`] asks about words that mean a loss whoever says them. Here are words that
//! mean one only in the mouth of a tool that steers something (`…ctl`, `…adm`), or together with an
//! option that takes a person's answer for granted, and options that name a place the system acts on.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::ProgramJudge;
use super::acts::subcommands;
use super::texts::takes_texts;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;

/// A loss if the tool steers something, or nobody is asked.
const WEAK: &[&str] = &[
    "reset",
    "remove",
    "uninstall",
    "truncate",
    "flush",
    "disable",
    "kill",
    "drain",
    "empty",
    "leave",
    "clear",
    "down",
    "del",
    "rm",
    "unload",
    "detach",
    "evict",
    "fence",
    "deactivate",
    "expire",
    "prune",
    "stop",
    "downgrade",
    "rollback",
    "disconnect",
    "erase",
    "format",
    "restore",
    "deprovision",
    "unpublish",
    "yank",
    "zap",
    "abort",
    "cordon",
    "mask",
];

/// Names of the same in the style of an interface: `DeleteInstance`, `vm.destroy`, `setup:uninstall`.
const STRONG: &[&str] = &[
    "delete",
    "destroy",
    "purge",
    "terminate",
    "drop",
    "deleteall",
    "wipe",
    "nuke",
    "revoke",
    "truncate",
    "uninstall",
    "dropdatabase",
    "flushall",
    "decommission",
    "factoryreset",
    "erase",
];

/// Options that take an answer for granted, or mean all there is.
const UNASKED: &[&str] = &[
    "--force",
    "-f",
    "--yes",
    "-y",
    "--all",
    "--no-prompt",
    "--no-prompts",
    "--noconfirm",
    "--assume-yes",
    "--non-interactive",
    "--purge",
    "--confirm",
    "--auto-approve",
    "--skip-confirmation",
    "--really",
    "--no-backup",
    "force=true",
    "force=yes",
    "--yes-i-really-mean-it",
    "--noinput",
    "--no-input",
    "--quiet-delete",
    "--graceful=false",
];

/// Options that are the act themselves.
const ACTS_BY_OPTION: &[&str] = &[
    "--nuke",
    "--wipe",
    "--destroy",
    "--delete-all",
    "--purge-all",
    "--erase-all",
    "--factory-reset",
    "--wipe-data",
    "--delete-generations",
    "--drop-all",
    "--gpu-reset",
    "--remove-all",
    "--uninstall",
    "-skipTrash",
    "--clear-all",
];

/// Options that name where something is written.
const WRITES: &[&str] = &[
    "--write",
    "--out",
    "--output",
    "--dest",
    "--destination",
    "--target",
    "--install-to",
    "--save",
    "--save-to",
    "--in-place",
    "--inplace",
    "--to",
    "--into",
    "--outfile",
    "--output-file",
    "--export-to",
    "--append-to",
    "--edit",
];

/// Tools for building, testing and writing, whose words concern a project, and tools that have rules.
#[rustfmt::skip]
const OF_A_PROJECT: &[&str] = &[
    "tlmgr", "sdkmanager", "texconfig", "opencode", "nx", "turbo", "lerna", "rush", "bazel", "buck2", "pants", "gradle", "mvn", "sbt", "mix", "cabal", "stack", "opam", "dune", "lein",
    "conda", "mamba", "micromamba", "poetry", "uv", "pdm", "pip", "pip3", "pipx", "pipenv", "rye", "hatch", "tox", "nox", "gem", "bundle", "composer",
    "go", "deno", "bun", "bunx", "npx", "node", "python", "python3", "ruby", "perl", "php", "lua", "rustup", "nvm", "pyenv", "rbenv", "mise", "volta",
    "fnm", "sdk", "dotnet", "flutter", "dart", "expo", "pod", "carthage", "tuist", "xcrun", "xcodebuild", "swift", "fastlane", "docker", "docker-compose",
    "podman", "podman-compose", "kubectl", "helm", "kind", "k3d", "minikube", "colima", "ddev", "lando", "vagrant", "terraform", "tofu", "terragrunt", "pulumi",
    "aws", "gcloud", "az", "heroku", "flyctl", "fly", "vercel", "netlify", "wrangler", "supabase", "firebase", "systemctl", "brew", "apt", "apt-get", "dnf",
    "yum", "zypper", "pacman", "apk", "snap", "flatpak", "port", "nix", "nix-env", "emerge", "dpkg", "rpm", "launchctl", "diskutil", "hdiutil", "tmutil", "defaults", "security",
    "playerctl", "brightnessctl", "wpctl", "pactl", "bluetoothctl", "swaymsg", "i3-msg", "hyprctl", "timedatectl", "hostnamectl", "localectl", "loginctl",
    "journalctl", "resolvectl", "networkctl", "nmcli", "busctl", "supervisorctl", "pm2", "service", "rc-service", "sysctl", "pg_ctl", "pg_ctlcluster", "apachectl",
    "rabbitmqctl", "etcdctl", "zpool", "zfs", "btrfs", "mdadm", "cryptsetup", "nvme", "mmc", "mtd", "virsh", "lxc", "incus", "multipass", "limactl", "VBoxManage",
    "psql", "mysql", "mariadb", "sqlite3", "mongosh", "redis-cli", "ssh", "scp", "rsync", "rclone", "restic", "borg", "tar", "zip", "unzip", "gpg", "openssl",
    "sudo", "doas", "env", "nice", "timeout", "watch", "xargs", "parallel", "find", "fd", "rm", "cp", "mv", "ln", "dd", "chmod", "chown", "kill", "pkill",
    "killall", "vim", "vi", "nvim", "nano", "emacs", "bash", "sh", "zsh", "fish", "dash", "ip", "iptables", "nft", "ufw", "firewall-cmd", "crontab", "at",
    "eval", "exec", "source", ".", "dbt", "celery", "manage.py", "django-admin", "rails", "rake", "artisan", "symfony", "wp", "drush",
    "pre-commit", "direnv", "chezmoi", "stow", "yadm", "zoxide", "taskwarrior", "task", "timew", "todo.sh", "nb", "jrnl", "abduco", "dtach", "zellij", "reset", "tset", "clear", "jobs", "fg", "bg", "disown", "umask", "ulimit", "dirs",
    "adb", "fastboot", "esptool.py", "picocom", "arduino-cli", "platformio", "pio", "ansible", "ansible-playbook", "salt", "puppet", "osascript", "diskpart", "tccutil", "systemextensionsctl", "nginx", "caddy", "kitty", "wezterm", "alacritty", "foreman", "overmind", "mprocs", "devbox", "devenv", "toolbox", "distrobox", "act", "dvc", "wandb", "mlflow", "mutagen", "skaffold", "tilt", "telepresence", "k9s", "kubectx", "kubens", "stern", "localstack", "awslocal", "samlocal", "sam", "cdk", "serverless", "amplify", "eas",
];

static PROJECT_SET: LazyLock<HashSet<&str>> =
    LazyLock::new(|| OF_A_PROJECT.iter().copied().collect());

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let program = command.program();
    if command.transparent || program.len() < 2 || takes_texts(program) || only_asks(command) {
        return Vec::new();
    }
    let mut findings: Vec<HarmFinding> = written(command)
        .filter_map(|path| paths::protected(path, &judge.cwd, judge.context))
        .map(|(category, reason)| HarmFinding::dangerous(category, reason))
        .collect();
    if PROJECT_SET.contains(program) || is_of_the_project(command) {
        return findings;
    }
    let option = command
        .args()
        .iter()
        .any(|arg| ACTS_BY_OPTION.contains(&arg.s.split('=').next().unwrap_or_default()));
    if let Some(reason) = queries(command) {
        findings.push(HarmFinding::dangerous(HarmCategory::Database, reason));
    }
    if option || says_loss(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Unknown,
            format!("a tool that is not known is told to take something away ({program})"),
        ));
    }
    findings
}

fn only_asks(command: &ReducedCommand) -> bool {
    [
        "--help",
        "-h",
        "help",
        "--version",
        "version",
        "--dry-run",
        "--dryrun",
        "--check",
        "--list",
        "list",
        "show",
        "status",
        "get",
        "describe",
        "info",
    ]
    .iter()
    .any(|word| command.has_arg(word))
}

/// A script of the project, however it is started.
fn is_of_the_project(command: &ReducedCommand) -> bool {
    command
        .words
        .first()
        .is_some_and(|word| word.s.contains('/') && !word.s.starts_with('/'))
}

fn says_loss(command: &ReducedCommand) -> bool {
    const FURTHEST: usize = 4;
    let words = subcommands(command);
    let words = || words.iter().take(FURTHEST).filter(|word| is_word(word));
    let unasked = || {
        command
            .args()
            .iter()
            .any(|arg| UNASKED.contains(&arg.s.as_str()))
    };
    let exact = words().any(|word| STRONG.contains(word)) && unasked();
    if exact || is_named_so(command.program()) || words().any(|word| is_strong(word)) {
        return true;
    }
    let weak = words().any(|word| WEAK.contains(word) || begins_weakly(word));
    weak && (steers(command.program()) || unasked())
}

/// `rsnapshot-purge`, `k3s-uninstall.sh`: the name is the act.
fn is_named_so(program: &str) -> bool {
    let stem = program.strip_suffix(".sh").unwrap_or(program);
    stem.rsplit_once(['-', '_']).is_some_and(|(_, act)| {
        matches!(
            act,
            "purge"
                | "wipe"
                | "delete"
                | "destroy"
                | "uninstall"
                | "nuke"
                | "erase"
                | "reset"
                | "zap"
        )
    })
}

/// `…ctl`, `…adm`, `…-admin`: programs for steering something.
fn steers(program: &str) -> bool {
    let stem = program.strip_suffix(".sh").unwrap_or(program);
    [
        "ctl", "adm", "admin", "cfg", "-cli", "_cli", "-shell", "-client", "mgr", "-manager",
        "wall", "config",
    ]
    .iter()
    .any(|end| stem.ends_with(end))
}

/// A subcommand: no path, no address, no file.
fn is_word(word: &str) -> bool {
    word.len() < 48
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_:./".contains(&b))
        && !word.contains("://")
        && !word.starts_with("./")
}

/// `vm.destroy`, `vmsvc/destroy`, `setup:uninstall`, `DeleteInstance`, `vm-uninstall`.
fn is_strong(word: &str) -> bool {
    let ended = [
        ".md", ".txt", ".json", ".yml", ".yaml", ".py", ".js", ".ts", ".rs", ".go", ".sh", ".sql",
        ".rb", ".html", ".css", ".toml", ".csv", ".log", ".c", ".h",
    ]
    .iter()
    .any(|end| word.ends_with(end));
    if ended {
        return false;
    }
    let parts = word.split(['.', ':', '/', '-', '_']);
    let count = word.split(['.', ':', '/', '-', '_']).count();
    let part = parts.clone().next_back().unwrap_or_default();
    let verb = |part: &str| STRONG.contains(&part.to_lowercase().as_str());
    // Camel case: the verb comes first and a noun follows.
    let camel = word.starts_with(|c: char| c.is_ascii_uppercase() || c.is_ascii_lowercase())
        && STRONG.iter().any(|verb| {
            word.len() > verb.len()
                && word
                    .get(..verb.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(verb))
                && word[verb.len()..].starts_with(|c: char| c.is_ascii_uppercase())
        });
    let all = |word: &str| {
        matches!(
            word,
            "truncate" | "deleteall" | "flushall" | "dropdatabase" | "nuke"
        )
    };
    count > 1 && count < 5 && verb(part) || camel || all(word)
}

/// `del-br`, `delbr`, `remove-user`, `reset-password`, `clear-cache`.
fn begins_weakly(word: &str) -> bool {
    [
        "del-",
        "del_",
        "delbr",
        "delif",
        "remove-",
        "remove_",
        "reset-",
        "reset_",
        "disable-",
        "cache-remove",
        "leave-",
        "stop-",
        "down-to",
    ]
    .iter()
    .any(|start| word.starts_with(start))
        && !word.contains("cache-dir")
}

/// A query in a text of its own, for whatever store.
fn queries(command: &ReducedCommand) -> Option<&'static str> {
    const OTHER: &[&str] = &[
        "detach delete",
        "remove database",
        "remove table",
        "dropdatabase",
        "drop '",
        "delete volume",
        "deletemany({})",
        "flushall",
    ];
    let typed = command.input.known.as_deref().into_iter();
    let args = command.args().iter().map(|arg| arg.s.as_str());
    args.filter(|text| text.contains([' ', '(']))
        .chain(typed)
        .filter(|text| text.len() < 2_000)
        .find_map(|text| {
            let lower = text.to_lowercase();
            let other = OTHER.iter().any(|word| lower.contains(word));
            super::databases::destructive_sql(text)
                .or_else(|| other.then_some("deletes what a store holds"))
        })
}

/// Paths behind an option that says where to.
fn written(command: &ReducedCommand) -> impl Iterator<Item = &str> {
    let args = command.args();
    args.iter().enumerate().filter_map(move |(at, arg)| {
        let (flag, value) = match arg.s.split_once('=') {
            Some((flag, value)) => (flag, value),
            None => (
                arg.s.as_str(),
                args.get(at + 1).map_or("", |next| next.s.as_str()),
            ),
        };
        (WRITES.contains(&flag) && value.starts_with(['/', '~'])).then_some(value)
    })
}
