//! Where secrets are kept.

mod places;

use super::Judge;
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::text::{Taint, Text};

pub(crate) use places::holds;

/// Programs that get a secret's path without showing or sending its content.
const HARMLESS: &[&str] = &[
    "ls",
    "stat",
    "test",
    "[",
    "file",
    "echo",
    "printf",
    "chmod",
    "chown",
    "ssh",
    "ssh-add",
    "ssh-copy-id",
    "ssh-keygen",
    "touch",
    "mkdir",
    "cd",
    "pushd",
    "du",
    "find",
    "rm",
    "realpath",
    "readlink",
    "basename",
    "dirname",
    "source",
    ".",
    "export",
    "hermetic",
    "hermes",
    "docker",
    "docker-compose",
    "podman",
    "git",
    "vi",
    "vim",
    "nano",
    "nvim",
    "code",
    "which",
    "wc",
    "md5sum",
    "sha256sum",
    "sha1sum",
    "tree",
    "autossh",
    "mosh",
    "ansible",
    "ansible-playbook",
    "ansible-vault",
    "node",
    "npm",
    "npx",
    "uvicorn",
    "flask",
    "dotenv",
    "python",
    "python3",
    "kubectl",
    "helm",
    "id",
    "true",
    "",
    "unset",
    "alias",
    "chattr",
    "lsattr",
    "getfacl",
    "rmdir",
    "sftp",
    "emacs",
    "subl",
    "op",
    "vault",
    "terraform",
    "trap",
    "read",
    "sops",
    "age",
    "env",
    "sudo",
    "visudo",
    "pytest",
    "make",
    "cargo",
    "deno",
    "bun",
    "gpg",
    "openssl_x509",
    "mktemp",
    "shred",
    "declare",
    "local",
    "set",
    "mv",
    "install",
    "ln",
];

pub(super) fn judge(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let program = command.program();
    let certificates = program == "openssl"
        && (matches!(
            command.operand(0),
            "x509"
                | "verify"
                | "s_client"
                | "crl"
                | "ciphers"
                | "version"
                | "rand"
                | "req"
                | "genrsa"
                | "genpkey"
                | "ecparam"
                | "dhparam"
                | "ca"
                | "crl2pkcs7"
                | "pkcs7"
                | "ocsp"
                | "ts"
        ) || command.has_arg("-noout")
            || command.has_arg("-pubout"));
    let harmless = HARMLESS.contains(&program) || certificates;
    let mut files: Vec<String> = command.reads.iter().map(|text| text.s.clone()).collect();
    if !harmless {
        let pattern_first = matches!(
            program,
            "grep" | "egrep" | "fgrep" | "rg" | "ag" | "sed" | "awk" | "gawk" | "jq"
        );
        // A key to log in with stays here.
        let by = ["-e", "--rsh"]
            .iter()
            .find_map(|flag| command.value_of(flag))
            .filter(|_| program == "rsync");
        let identity = command
            .value_of("-i")
            .or(by)
            .filter(|_| matches!(program, "ssh" | "scp" | "sftp" | "rsync" | "mosh"));
        let mut operands = command.operands();
        if pattern_first && !command.short('e') && !command.short('f') {
            operands.next();
        }
        // `tar -C folder file`.
        let folder = command
            .value_of("-C")
            .filter(|_| matches!(program, "tar" | "gtar" | "bsdtar"));
        for text in operands {
            if left_out(command, text) {
                continue;
            }
            files.extend(folder.map(|folder| format!("{}/{}", folder.s, text.s)));
            if identity.is_some_and(|key| key.s == text.s) || used_as_meant(command, text) {
                continue;
            }
            // A word that is no path is a file only to a program that reads files.
            if !text.s.contains(['/', '.']) && !reads_words(program) {
                continue;
            }
            files.push(text.s.clone());
            // `@file`, `key=@file`, `if=file`, `host:path`, `file:/path`
            if let Some((_, rest)) = text.s.split_once(":/") {
                files.push(format!("/{rest}"));
            }
            if let Some((_, rest)) = text.s.split_once(['@', '=']) {
                files.push(rest.trim_start_matches(['@', '<']).to_owned());
            }
            if let Some(rest) = text.s.strip_prefix("file://") {
                files.push(rest.to_owned());
            }
        }
        for arg in command
            .args()
            .iter()
            .filter(|arg| arg.s.starts_with('-') && arg.s.contains(['=', '@']))
            .filter(|arg| !arg.s.starts_with("--exclude") && !arg.s.starts_with("--ignore"))
            .filter(|arg| !names_a_key(arg.s.split('=').next().unwrap_or_default()))
        {
            if let Some((_, rest)) = arg.s.split_once(['=', '@']) {
                files.push(rest.trim_start_matches('@').to_owned());
            }
        }
    }
    files.extend(loaded(command, judge));
    let copies_in = matches!(
        program,
        "cp" | "tee" | "sponge" | "dd" | "scp" | "rsync" | "curl" | "wget"
    );
    let count = files.len();
    for (at, file) in files.iter().enumerate() {
        // The last operand of a copy is written, not read.
        if copies_in && at + 1 == count && count > 1 && matches!(program, "cp" | "scp" | "rsync") {
            continue;
        }
        if matches!(program, "tee" | "sponge") && at >= command.reads.len() {
            continue;
        }
        if let Some(what) = crate::paths::secret(file, &judge.cwd, judge.context) {
            findings.push(Finding::dangerous(
                Category::SecretRead,
                format!("reads {what}: {}", crate::text::shown(file)),
            ));
        }
        let folder = matches!(
            program,
            "tar" | "zip" | "7z" | "rsync" | "scp" | "cp" | "rclone" | "cpio"
        );
        if folder
            && let Some(what) = crate::paths::secret(
                &format!("{}/", file.trim_end_matches('/')),
                &judge.cwd,
                judge.context,
            )
            .or_else(|| {
                crate::paths::secret(
                    &format!("{}/x", file.trim_end_matches('/')),
                    &judge.cwd,
                    judge.context,
                )
            })
        {
            findings.push(Finding::dangerous(
                Category::SecretRead,
                format!("copies {what}: {}", crate::text::shown(file)),
            ));
        }
    }
    if harmless && command.reads.is_empty() && matches!(program, "mv" | "install" | "ln") {
        let operands: Vec<_> = command.operands().collect();
        for source in &operands[..operands.len().saturating_sub(1)] {
            let what = crate::paths::secret(&source.s, &judge.cwd, judge.context);
            if let Some(what) = what.filter(|what| *what != "the project's secrets") {
                findings.push(Finding::dangerous(
                    Category::SecretRead,
                    format!("moves {what} elsewhere: {}", source.shown()),
                ));
            }
        }
    }
    if program == "osascript" && asks_for_a_secret(command) {
        findings.push(Finding::dangerous(
            Category::SecretRead,
            "gets at a person's password or data (osascript)",
        ));
    }
    if prints(command) {
        findings.push(Finding::dangerous(
            Category::SecretRead,
            "prints a stored secret",
        ));
    }
    if command
        .words
        .iter()
        .any(|word| word.taint.has(Taint::SECRET))
        && matches!(program, "echo" | "printf")
    {
        findings.push(Finding::dangerous(Category::SecretRead, "prints a secret"));
    }
    // A search over everything for keys is a search for keys.
    if matches!(program, "grep" | "rg" | "ag" | "egrep")
        && (command.short('r') || command.short('R') || program == "rg" || program == "ag")
    {
        let pattern = command.operand(0).to_lowercase();
        let hunts = [
            "begin rsa",
            "begin openssh",
            "private key",
            "aws_secret",
            "akia",
            "password",
            "api_key=",
            "passwd=",
            "secret_key",
        ]
        .iter()
        .any(|word| pattern.contains(word));
        let wide = command.operands().skip(1).any(|text| {
            matches!(
                text.s.as_str(),
                "/" | "/etc" | "/home" | "/var" | "/root" | "/opt"
            ) || text.s.trim_end_matches('/') == judge.context.home
                || text
                    .s
                    .starts_with(&format!("{}/.config", judge.context.home))
        });
        if hunts && wide {
            findings.push(Finding::dangerous(
                Category::SecretRead,
                "searches the machine for secrets",
            ));
        }
    }
    if program == "find" {
        let hunts = command.args().iter().any(|arg| {
            let name = arg.s.trim_matches('*').to_lowercase();
            matches!(
                name.as_str(),
                "id_rsa"
                    | "id_"
                    | ".pem"
                    | "id_ed25519"
                    | ".kdbx"
                    | "credentials"
                    | ".env"
                    | "wallet.dat"
                    | ".key"
                    | "shadow"
                    | ".p12"
                    | ".pfx"
                    | ".ppk"
                    | ".pgp"
                    | ".gpg"
                    | ".asc"
                    | ".jks"
                    | ".keystore"
                    | "id_dsa"
                    | "id_ecdsa"
                    | ".git-credentials"
                    | ".pgpass"
                    | ".netrc"
            )
        });
        let wide = command.operands().next().is_some_and(|text| {
            matches!(
                text.s.trim_end_matches('/'),
                "" | "/home" | "/root" | "/etc" | "/Users" | "/opt" | "/var" | "/srv"
            ) || text.s.trim_end_matches('/') == judge.context.home
        });
        if hunts && wide {
            findings.push(Finding::dangerous(
                Category::SecretRead,
                "searches the machine for secrets",
            ));
        }
    }
    findings
}

/// A dialog that hides what is typed, or the stores of other programs.
fn asks_for_a_secret(command: &Effective) -> bool {
    const TELLING: &[&str] = &[
        "hidden answer",
        "Cookies.binarycookies",
        "group.com.apple.notes",
        "NoteStore",
        "Keychains",
        "the clipboard",
        "Login Data",
        "chat.db",
        "eppc://",
    ];
    let typed = command.input.known.as_deref().unwrap_or_default();
    TELLING.iter().any(|word| typed.contains(word))
        || command
            .args()
            .iter()
            .any(|arg| TELLING.iter().any(|word| arg.s.contains(word)))
}

/// Programs whose operands are files, whatever they look like.
fn reads_words(program: &str) -> bool {
    matches!(
        program,
        "cat"
            | "plutil"
            | "defaults"
            | "PlistBuddy"
            | "less"
            | "more"
            | "head"
            | "tail"
            | "cp"
            | "tar"
            | "zip"
            | "base64"
            | "strings"
            | "xxd"
            | "od"
            | "hexdump"
            | "bat"
            | "tac"
            | "nl"
            | "sort"
            | "cut"
            | "grep"
            | "awk"
            | "sed"
            | "scp"
            | "rsync"
            | "curl"
            | "dd"
            | "jq"
            | "yq"
            | "rev"
            | "diff"
            | "gzip"
            | "7z"
            | "paste"
    )
}

/// The value of `--load-privkey` or `--client-cert` is a key for a tool that needs one.
fn used_as_meant(command: &Effective, text: &Text) -> bool {
    command.args().windows(2).any(|pair| {
        std::ptr::eq(&raw const pair[1], text)
            && pair[0].s.starts_with('-')
            && (names_a_key(&pair[0].s)
                || ["key", "cert", "identity", "out"]
                    .iter()
                    .any(|word| pair[0].s.contains(word))
                    && !matches!(
                        command.program(),
                        "cat" | "curl" | "wget" | "scp" | "sort" | "cut"
                    ))
    })
}

/// Options by which every client is told the key it shows itself with.
fn names_a_key(option: &str) -> bool {
    matches!(
        option,
        "--cert"
            | "--key"
            | "--cert-key"
            | "--cacert"
            | "--client-cert"
            | "--client-key"
            | "--certificate"
            | "--private-key"
            | "--ca-certificate"
            | "--tls-cert"
            | "--tls-key"
            | "--ssl-cert"
            | "--ssl-key"
            | "--tlscert"
            | "--tlskey"
    )
}

/// Secrets handed to programs that have a right to most of what they are given.
///
/// `.env` is what such programs are for, and a key is what ssh is for; `/etc/shadow` is neither.
fn loaded(command: &Effective, judge: &Judge<'_>) -> Vec<String> {
    let foreign = |path: &str| {
        crate::paths::secret(path, &judge.cwd, judge.context)
            .is_some_and(|what| what != "the project's secrets")
    };
    let words = || command.operands().map(|text| text.s.clone());
    let valued = |flags: &[&str]| -> Vec<String> {
        flags
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .collect()
    };
    let candidates: Vec<String> = match command.program() {
        "source" | "." | "python" | "python3" | "node" | "ansible-playbook" | "make" | "read" => {
            words().collect()
        }
        "git"
            if matches!(
                command.operand(0),
                "add" | "diff" | "hash-object" | "show" | "grep" | "blame"
            ) =>
        {
            words().collect()
        }
        "ssh" | "autossh" | "mosh" => valued(&["-F", "-E"]),
        "file" => valued(&["-f", "-m", "--files-from", "--magic-file"]),
        "wc" | "du" => valued(&["--files0-from"]),
        "ssh-keygen" if !command.short('y') && !command.short('p') && !command.short('l') => {
            Vec::new()
        }
        "docker" | "podman" | "docker-compose" => {
            let mut files = valued(&["-f", "--file", "--env-file"]);
            if command.operand(0) == "cp" {
                files.extend(words().skip(1));
            }
            files
        }
        "kubectl" | "helm" => valued(&["-f", "--filename", "--from-file", "--from-env-file"]),
        _ => mentioned(command),
    };
    candidates
        .into_iter()
        .filter(|path| foreign(path))
        .collect()
}

/// Paths inside of code: a query, a document, a script of a language nobody reads here.
fn mentioned(command: &Effective) -> Vec<String> {
    const SPEAKS: &[&str] = &[
        "psql",
        "mysql",
        "mariadb",
        "sqlite3",
        "octave",
        "octave-cli",
        "gnuplot",
        "latex",
        "tex",
        "pdflatex",
        "xelatex",
        "lualatex",
        "latexmk",
        "m4",
        "emacs",
        "gdb",
        "lldb",
        "troff",
        "groff",
        "nroff",
        "asciidoctor",
        "jrunscript",
        "julia",
        "java",
        "jshell",
        "ghc",
        "runghc",
        "dosbox",
        "R",
        "Rscript",
        "gimp",
        "maxima",
        "bc",
        "tclsh",
        "wish",
        "erl",
        "elixir",
        "iex",
        "sbcl",
        "cpio",
        "xargs",
        "ed",
        "vim",
        "ex",
        "duckdb",
        "clickhouse-local",
        "mongosh",
        "scala",
        "kotlin",
        "nawk",
        "slsh",
        "rlwrap",
        "php",
        "lua",
        "perl",
        "ruby",
        "multitime",
        "restic",
    ];
    if !SPEAKS.contains(&command.program()) {
        return Vec::new();
    }
    let typed = command.input.known.as_deref().unwrap_or_default();
    command
        .args()
        .iter()
        .map(|arg| arg.s.as_str())
        .chain([typed])
        .flat_map(|text| text.split(|c: char| c.is_whitespace() || "'\"`(){}[]<>,;=".contains(c)))
        .filter(|word| word.starts_with(['/', '~']) && word.len() < 256)
        .take(64)
        .map(str::to_owned)
        .collect()
}

/// What `--exclude` and zip's `-x` name stays where it is.
fn left_out(command: &Effective, text: &Text) -> bool {
    let args = command.args();
    args.windows(2).any(|pair| {
        std::ptr::eq(&raw const pair[1], text)
            && (pair[0].s.starts_with("--exclude") || pair[0].s == "-x")
    })
}

/// Whether a variable or a pattern is about keys and passwords by its name.
pub(crate) fn names_secret(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "secret",
        "token",
        "passw",
        "api_key",
        "apikey",
        "private",
        "credential",
    ];
    let name = name.to_lowercase();
    WORDS.iter().any(|word| name.contains(word))
        || name.ends_with("_key")
        || matches!(name.as_str(), "key" | "pass" | "pwd")
}

/// Programs that print what they guard.
pub(crate) fn prints(command: &Effective) -> bool {
    let words = super::acts::subcommands(command);
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    match command.program() {
        "pass" | "gopass" => {
            matches!(first, "show")
                || (!words.is_empty()
                    && !matches!(
                        first,
                        "ls" | "list"
                            | "sync"
                            | "audit"
                            | "config"
                            | "insert"
                            | "generate"
                            | "git"
                            | "init"
                            | "find"
                            | "search"
                            | "help"
                            | "version"
                            | "edit"
                            | "rm"
                            | "mv"
                            | "cp"
                            | "grep"
                    ))
        }
        "secret-tool" => matches!(first, "lookup" | "search"),
        // A certificate is for everybody to see.
        "security" => {
            first.starts_with("find-") && !matches!(first, "find-certificate" | "find-identity")
                || matches!(first, "dump-keychain" | "export")
        }
        "gpg" | "gpg2" => command
            .args()
            .iter()
            .any(|arg| arg.s.starts_with("--export-secret") || arg.s.contains(".password-store/")),
        "lpass" => first == "show",
        "chamber" => matches!(first, "read" | "export"),
        "terraform" | "tofu" => first == "state" && second == "pull",
        "openssl" => first == "pkcs12" && (command.has_arg("-nodes") || command.has_arg("-noenc")),
        "op" => matches!(first, "read") || (first == "item" && second == "get"),
        "bw" => first == "get" || first == "export",
        "vault" => (first == "kv" && second == "get") || first == "read",
        "aws" => {
            matches!(
                (first, second),
                ("secretsmanager", "get-secret-value")
                    | (
                        "ssm",
                        "get-parameter" | "get-parameters" | "get-parameters-by-path"
                    )
                    | ("configure", "export-credentials" | "get")
                    | ("sts", "get-session-token")
                    | ("ecr", "get-login-password")
            ) && !command.has_arg("help")
        }
        "gcloud" => {
            (first == "auth"
                && matches!(
                    second,
                    "print-access-token" | "print-identity-token" | "application-default"
                ))
                || (first == "secrets" && second == "versions")
        }
        "az" => {
            (first == "account" && second == "get-access-token")
                || (first == "keyvault" && second == "secret")
        }
        "kubectl" | "oc" => {
            (first == "get"
                && second.starts_with("secret")
                && (command.short('o') || command.long("--output")))
                || (first == "config" && second == "view" && command.long("--raw"))
        }
        "gh" => {
            first == "auth"
                && (second == "token" || command.has_arg("--show-token") || command.short('t'))
        }
        "npm" => first == "config" && second == "get" && words.iter().any(|w| w.contains("_auth")),
        "heroku" => first == "config",
        "getent" => first == "shadow",
        "gcore" | "procdump" => true,
        "printenv" => names_secret(first),
        "grep" | "egrep" | "fgrep" | "rg" => {
            command.input.taint.has(crate::text::Taint::ENVIRONMENT) && names_secret(first)
        }
        "docker" | "podman" if first == "inspect" => {
            command.args().iter().any(|arg| arg.s.contains(".Env"))
        }
        "ps" => command.args().first().is_some_and(|text| {
            text.s.contains('e') && text.s.chars().all(|c| "auxefwlsvjh".contains(c))
        }),
        "rclone" => first == "config" && matches!(second, "show" | "dump"),
        "lsassy" | "mimikatz" | "mimipenguin" | "laZagne" | "lazagne" => true,
        "unshadow" | "john" | "hashcat" => true,
        "doppler" => first == "secrets",
        "sops" => command.short('d') || command.long("--decrypt"),
        "ansible-vault" => first == "view" || first == "decrypt",
        "docker" => first == "secret" && second == "inspect",
        "git" => first == "credential" && second == "fill",
        "keyring" => first == "get",
        _ => false,
    }
}
