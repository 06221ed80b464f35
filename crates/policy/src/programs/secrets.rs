//! Where secrets are kept.

mod places;
mod printing;
mod reading;

use super::ProgramJudge;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::TaintSet;
use reading::{left_out, loaded, names_a_key, reads_words, used_as_meant};

pub(crate) use places::holds;
pub(crate) use printing::{names_secret, prints};

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
    "evtest",
    "fftest",
    "libinput",
    "udevadm",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
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
            || command.has_arg("-nokeys")
            || command.has_arg("-pubout"));
    let certificates = certificates
        || program == "step" && command.operand(0) == "certificate"
        || program == "certtool"
            && (command.has_arg("-i") || command.has_arg("--certificate-info"));
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::SecretRead,
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::SecretRead,
                format!("copies {what}: {}", crate::text::shown(file)),
            ));
        }
    }
    if harmless && command.reads.is_empty() && matches!(program, "mv" | "install" | "ln") {
        let operands: Vec<_> = command.operands().collect();
        for source in &operands[..operands.len().saturating_sub(1)] {
            let what = crate::paths::secret(&source.s, &judge.cwd, judge.context);
            if let Some(what) = what.filter(|what| *what != "the project's secrets") {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::SecretRead,
                    format!("moves {what} elsewhere: {}", source.shown()),
                ));
            }
        }
    }
    let agent = |name: &str, value: &str| name == "SSH_AUTH_SOCK" && value.starts_with("/tmp/ssh-");
    let set = command
        .assigns
        .iter()
        .any(|(name, value)| agent(name, &value.s));
    let exported = command
        .args()
        .iter()
        .filter_map(|arg| arg.s.split_once('='));
    if set || exported.into_iter().any(|(name, value)| agent(name, value)) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Privilege,
            "logs in with the keys of somebody's running ssh agent",
        ));
    }
    if program == "osascript" && asks_for_a_secret(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecretRead,
            "gets at a person's password or data (osascript)",
        ));
    }
    if prints(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecretRead,
            "prints a stored secret",
        ));
    }
    if command
        .words
        .iter()
        .any(|word| word.taint.has(TaintSet::SECRET))
        && matches!(program, "echo" | "printf")
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecretRead,
            "prints a secret",
        ));
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
            "api_key",
            "apikey",
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::SecretRead,
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::SecretRead,
                "searches the machine for secrets",
            ));
        }
    }
    findings
}

/// A dialog that hides what is typed, or the stores of other programs.
fn asks_for_a_secret(command: &ReducedCommand) -> bool {
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
