//! What leaves by the network.

use super::ProgramJudge;
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::TaintSet;

/// Programs that can carry bytes away.
const SENDERS: &[&str] = &[
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "ftp",
    "tftp",
    "mail",
    "mailx",
    "mutt",
    "sendmail",
    "dig",
    "nslookup",
    "host",
    "ping",
    "http",
    "https",
    "xh",
    "aws",
    "gsutil",
    "rclone",
    "s3cmd",
    "gh",
    "openssl",
    "smbclient",
    "lftp",
    "gcloud",
    "az",
    "mc",
    "drill",
    "msmtp",
    "swaks",
    "croc",
    "wormhole",
    "magic-wormhole",
    "transfer",
    "pastebinit",
    "ipfs",
    "redis-cli",
    "psql",
    "mysql",
    "logger",
    "xmpp",
    "websocat",
    "wscat",
    "ncftpput",
    "curlftpfs",
    "aria2c",
    "git",
    "slack",
    "gist",
    "termbin",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = Vec::new();
    let program = command.program();
    // Its other tools work on files, however much they say about keys.
    let talks = program != "openssl" || command.operand(0) == "s_client";
    let sends = SENDERS.contains(&program) && talks;
    let to_network = command.writes.iter().any(|file| network_file(&file.s));
    let mut taint = command.input.taint;
    for word in command
        .words
        .iter()
        .chain(command.assigns.iter().map(|(_, value)| value))
    {
        taint = taint | word.taint;
    }
    if (sends || to_network) && taint.has(TaintSet::SECRET) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("sends a secret away with {}", name(program)),
        ));
    }
    // What is piped in is the whole message; in a word it may be a header that logs in.
    let piped = sends && command.input.taint.has(TaintSet::NAMED) && program != "git";
    if piped && !local(command) || to_network && taint.has(TaintSet::NAMED) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!(
                "sends a variable that is called like a secret away with {}",
                name(program)
            ),
        ));
    }
    if (sends || to_network) && taint.has(TaintSet::ENVIRONMENT) && program != "openssl" {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("sends the environment away with {}", name(program)),
        ));
    }
    if to_network && command.words.is_empty() {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "writes to a network connection of the shell",
        ));
    } else if to_network {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "sends its output to a network connection of the shell",
        ));
    }
    let raw = matches!(program, "nc" | "ncat" | "netcat" | "telnet")
        || program == "socat" && command.args().iter().any(|arg| dials_out(&arg.s));
    let unseen = command.input.known.is_none() || taint.has(TaintSet::FILE);
    if raw && command.input.present && unseen && !local(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("sends what nobody has seen away with {program}"),
        ));
    }
    let uploads = matches!(program, "curl" | "wget" | "http" | "https" | "xh");
    if uploads && taint.has(TaintSet::ARCHIVE) && !local(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("sends an archive of the project away with {program}"),
        ));
    }
    if uploads && taint.has(TaintSet::CLIPBOARD) && !local(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("sends what a person copied away with {program}"),
        ));
    }
    let names_data = matches!(program, "dig" | "nslookup" | "host" | "drill" | "ping")
        || program == "curl"
        || program == "wget"
        || matches!(
            program,
            "whois" | "finger" | "rlogin" | "telnet" | "traceroute" | "ftp"
        );
    if names_data
        && command.args().iter().any(|arg| {
            arg.taint.has(TaintSet::FILE | TaintSet::ENVIRONMENT)
                && arg.s != crate::text::HOLE.to_string()
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("hides file content in a request of {program}"),
        ));
    }
    if matches!(program, "mail" | "mailx" | "mutt" | "sendmail" | "swaks")
        && taint.has(TaintSet::FILE)
        && taint.has(TaintSet::SECRET)
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "mails a secret away",
        ));
    }
    let typed = command.input.known.as_deref().unwrap_or_default();
    let puts = matches!(program, "sftp" | "ftp" | "lftp" | "smbclient" | "tftp")
        && [typed]
            .into_iter()
            .chain(command.args().iter().map(|arg| arg.s.as_str()))
            .flat_map(|text| text.split([' ', '\n', ';', '"', '\'']))
            .take(256)
            .map(|word| word.replacen('~', &judge.context.home, usize::from(word.starts_with('~'))))
            .any(|word| crate::paths::secret(&word, &judge.cwd, judge.context).is_some());
    let everything = matches!(program, "lftp" | "ncftpput" | "sftp" | "smbclient")
        && [typed]
            .into_iter()
            .chain(command.args().iter().map(|arg| arg.s.as_str()))
            .filter(|text| text.contains("-R") || text.contains("put ") || program == "ncftpput")
            .flat_map(|text| text.split([' ', '\n', ';', '"', '\'']))
            .take(64)
            .any(|word| word.starts_with('/') && is_everything(word, judge));
    let puts = puts || everything;
    if puts {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("sends a secret away with {program}"),
        ));
    }
    if command.has_arg("http.server")
        || command.has_arg("SimpleHTTPServer")
        || command.has_arg("pyftpdlib")
        || command.has_arg("uploadserver")
        || matches!(program, "http-server" | "serve" | "httpd")
        || program == "php" && command.short('S')
        || program == "ruby" && command.has_arg("httpd")
    {
        let folder = ["--directory", "-d", "-t", "-h", "httpd"]
            .iter()
            .find_map(|flag| command.value_of(flag))
            .map_or("", |text| text.s.as_str());
        let shared = if folder.is_empty() {
            judge.cwd.as_str()
        } else {
            folder
        };
        let place = crate::paths::place(shared, &judge.cwd, judge.context);
        if matches!(
            place,
            crate::paths::PathLoss::Root
                | crate::paths::PathLoss::Home
                | crate::paths::PathLoss::System
        ) || crate::paths::secret(shared, &judge.cwd, judge.context).is_some()
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Exfiltration,
                format!("shares {shared} with the network"),
            ));
        }
    }
    if sends {
        findings.extend(files(command, judge));
    }
    if matches!(program, "curl" | "wget")
        && command.args().iter().any(|arg| {
            arg.s.contains("169.254.169.254")
                || arg.s.contains("metadata.google.internal")
                || arg.s.contains("169.254.170.2")
                || arg.s.contains("//metadata/")
                || arg.s.contains("100.100.100.200")
                || arg.s.contains("fd00:ec2::254")
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecretRead,
            "asks the cloud for this machine's credentials",
        ));
    }
    if matches!(program, "curl" | "wget" | "http" | "https" | "xh")
        && command
            .args()
            .iter()
            .any(|arg| holds_cluster_secrets(&arg.s))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SecretRead,
            "reads the secrets of a cluster",
        ));
    }
    findings
}

/// The interface of a cluster, asked for its secrets, or a node asked to run something.
fn holds_cluster_secrets(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let secrets = path.contains("/api/v1/") && path.split('/').any(|part| part == "secrets");
    let node = path.contains(":10250/")
        && ["/run/", "/exec/", "/attach/", "/portForward/"]
            .iter()
            .any(|call| path.contains(call));
    secrets || node || path.contains(":2379/v2/keys") || path.contains("/v3/kv/range")
}

fn is_everything(path: &str, judge: &ProgramJudge<'_>) -> bool {
    use crate::paths::PathLoss;
    matches!(
        crate::paths::place(path, &judge.cwd, judge.context),
        PathLoss::Root | PathLoss::Home | PathLoss::System
    ) || super::uploads::personal(path, judge)
}

fn name(program: &str) -> &str {
    if program.is_empty() {
        "the shell"
    } else {
        program
    }
}

fn network_file(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/")
}

/// An address of socat that leads to another machine.
fn dials_out(address: &str) -> bool {
    let address = address.to_lowercase();
    ["tcp", "udp", "openssl", "ssl", "sctp"]
        .iter()
        .any(|kind| address.starts_with(kind))
        && !address.contains("listen")
        && !address.contains(":localhost:")
        && !address.contains(":127.0.0.1:")
}

fn local(command: &ReducedCommand) -> bool {
    command
        .args()
        .iter()
        .any(|arg| matches!(arg.s.as_str(), "localhost" | "127.0.0.1" | "::1"))
        || command.short('l')
        || command.short('z')
}

/// Secret files given as arguments: `-d @~/.ssh/id_rsa`, `-F f=@/etc/shadow`, `scp key host:`.
fn files(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let program = command.program();
    let mut findings = Vec::new();
    let args = command.args();
    for (at, arg) in args.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |at| args[at].s.as_str());
        let mut candidates = vec![arg.s.as_str()];
        candidates.extend(arg.s.split(['@', '=', '<', ',']).skip(1));
        for candidate in candidates {
            let candidate = candidate
                .trim_start_matches("file://")
                .split(';')
                .next()
                .unwrap_or(candidate);
            if candidate.is_empty() || candidate.contains(':') && program != "rclone" {
                continue;
            }
            let identity = matches!(
                program,
                "ssh"
                    | "scp"
                    | "sftp"
                    | "rsync"
                    | "git"
                    | "psql"
                    | "mysql"
                    | "gh"
                    | "openssl"
                    | "redis-cli"
            ) && !sent(command, before, &arg.s);
            let own_key = matches!(program, "curl" | "wget" | "http" | "https" | "xh")
                && is_value_of(
                    before,
                    &arg.s,
                    &[
                        "--cert",
                        "--key",
                        "-E",
                        "--cacert",
                        "--netrc-file",
                        "--certificate",
                        "--private-key",
                        "--ca-certificate",
                        "-b",
                        "--cookie",
                    ],
                );
            if identity || own_key {
                continue;
            }
            if let Some(what) = crate::paths::secret(candidate, &judge.cwd, judge.context) {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Exfiltration,
                    format!("sends {what} away with {program}"),
                ));
            }
        }
    }
    findings
}

/// Whether a word of `scp`, `rsync` or `sftp` is a file to send rather than a key to use.
fn sent(command: &ReducedCommand, before: &str, word: &str) -> bool {
    matches!(command.program(), "scp" | "rsync" | "sftp")
        && !is_value_of(before, word, &["-i", "-F", "-o", "-e", "--password-file"])
        && !word.starts_with('-')
        && command
            .operands()
            .last()
            .is_some_and(|last| last.s.contains(':'))
}

/// Whether a word stands behind one of these flags, or in it.
fn is_value_of(before: &str, word: &str, flags: &[&str]) -> bool {
    flags.contains(&before)
        || word
            .split_once('=')
            .is_some_and(|(flag, _)| flag.starts_with("--") && flags.contains(&flag))
}
