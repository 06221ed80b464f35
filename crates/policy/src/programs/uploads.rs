//! Files that leave by name: an upload, a form, a copy into somebody's cloud.
//!
//! Sending what a project made is everyday work, so what matters is where the file lies and what it
//! is called. Host names with somebody's data in them are the same act by other means.

use super::ProgramJudge;
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths::{self, PathLoss};
use crate::text::{HOLE, NAME, TaintSet};

/// Words in a file's name that say it was not made for others.
const TELLING: &[&str] = &[
    "secret",
    "passw",
    "credential",
    "private",
    "token",
    "backup",
    "dump",
    "wallet",
    "keystore",
    "customers",
    "payroll",
    ".kdbx",
    ".sql",
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = Vec::new();
    let program = command.program();
    if !to_this_machine(command) {
        for file in sent(command) {
            let file = match file.strip_prefix("~/") {
                Some(rest) => format!("{}/{rest}", judge.context.home),
                None => file,
            };
            let secret = paths::secret(&file, &judge.cwd, judge.context);
            if let Some(what) = secret.filter(|_| file.starts_with('/')) {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Exfiltration,
                    format!("sends {what} away with {program}"),
                ));
            }
            if let Some(what) = not_for_others(&file, judge) {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Exfiltration,
                    format!(
                        "sends {what} away with {program}: {}",
                        crate::text::shown(&file)
                    ),
                ));
            }
        }
    }
    if !sent(command).is_empty() && names_a_drop_site(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("publishes a file at a place for everybody with {program}"),
        ));
    }
    if matches!(
        program,
        "whois" | "finger" | "rlogin" | "telnet" | "snmpset" | "logger"
    ) && (program != "logger" || command.value_of("-n").is_some())
        && command.args().iter().any(|arg| {
            arg.taint
                .has(TaintSet::FILE | TaintSet::SECRET | TaintSet::ENVIRONMENT)
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("hides data in what {program} asks for"),
        ));
    }
    findings.extend(copied(command, judge));
    if matches!(
        program,
        "restic" | "borg" | "kopia" | "duplicity" | "rdiff-backup"
    ) && command.args().iter().any(|arg| arg.s.contains(':'))
        && command.operands().any(|text| {
            matches!(
                paths::place(&text.s, &judge.cwd, judge.context),
                PathLoss::Home | PathLoss::Root | PathLoss::System
            ) || personal(&text.s, judge)
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("copies what is somebody's own to another machine with {program}"),
        ));
    }
    if program == "ping" && command.value_of("-p").is_some_and(|text| !text.is_known()) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            "hides data in pings",
        ));
    }
    if matches!(
        program,
        "dig" | "nslookup" | "host" | "drill" | "ping" | "delv" | "kdig"
    ) && command
        .args()
        .iter()
        .any(|arg| arg.s.contains(&format!("{HOLE}.")) || arg.s.contains(&format!("{NAME}.")))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Exfiltration,
            format!("hides data in a name that {program} asks for"),
        ));
    }
    findings
}

/// Places where anybody may leave a file and whoever knows the address may have it.
fn names_a_drop_site(command: &ReducedCommand) -> bool {
    #[rustfmt::skip]
    const SITES: &[&str] = &[
        "transfer.sh", "file.io", "0x0.st", "ix.io", "sprunge.us", "termbin.com", "paste.rs", "dpaste.", "pastebin.",
        "bashupload.com", "temp.sh", "oshi.at", "gofile.io", "catbox.moe", "anonfiles.", "tmpfiles.org", "webhook.site",
        "requestbin.", "pipedream.net", "ngrok.io", "ngrok-free.app", "trycloudflare.com", "interact.sh", ".oast.",
        "burpcollaborator.", "canarytokens.", "discord.com/api/webhooks", "discordapp.com/api/webhooks",
        "hooks.slack.com", "api.telegram.org/bot", "keep.sh", "uguu.se", "pixeldrain.com", "filebin.net", "clbin.com",
        "transfer.adttemp", "wormhole.app", "send.firefox", "hastebin.", "ghostbin.", "rentry.co", "bin.sh",
    ];
    command.operands().any(|text| {
        let address = text
            .s
            .split_once("://")
            .map_or(text.s.as_str(), |(_, rest)| rest);
        SITES.iter().any(|site| {
            let host = address.split(['/', ':', '?']).next().unwrap_or_default();
            let named = site.contains('/') && address.starts_with(site);
            named
                || site.starts_with('.') && host.contains(site)
                || site.ends_with('.') && host.split("//").any(|host| host.starts_with(site))
                || host == *site
                || host
                    .strip_suffix(site)
                    .is_some_and(|rest| rest.ends_with('.'))
        })
    })
}

/// What the program is told to send, as the command line names it.
pub(crate) fn sent(command: &ReducedCommand) -> Vec<String> {
    let valued = |flags: &[&str]| -> Vec<String> {
        flags
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .collect()
    };
    let after = |texts: Vec<String>, marks: &[char]| -> Vec<String> {
        texts
            .iter()
            .filter_map(|text| text.split_once(marks).map(|(_, file)| file))
            .map(|file| file.split(';').next().unwrap_or(file).to_owned())
            .collect()
    };
    match command.program() {
        "curl" => {
            let data = [
                "-d",
                "--data",
                "--data-binary",
                "--data-raw",
                "--data-ascii",
                "--data-urlencode",
                "--json",
            ];
            let mut files = valued(&["-T", "--upload-file"]);
            files.extend(after(valued(&data), &['@']));
            files.extend(after(valued(&["-F", "--form"]), &['@', '<']));
            files
        }
        "wget" => valued(&["--post-file", "--body-file"]),
        "http" | "https" | "xh" => after(
            command.operands().map(|text| text.s.clone()).collect(),
            &['@'],
        ),
        "rclone" => match command.operand(0) {
            "copy" | "sync" | "move" | "copyto" | "moveto" | "bisync" => {
                vec![command.operand(1).to_owned()]
            }
            _ => Vec::new(),
        },
        "gsutil" | "s3cmd" | "mc" | "az" | "aws" | "gcloud" | "gist" | "pastebinit" | "croc"
        | "wormhole" | "ipfs" => command
            .operands()
            .map(|text| text.s.clone())
            .filter(|word| word.starts_with(['/', '~', '.']))
            .collect(),
        "gh" if command.operand(0) == "gist" => command
            .operands()
            .skip(2)
            .map(|text| text.s.clone())
            .collect(),
        _ => Vec::new(),
    }
}

/// Copies to another host: of a whole home, of the system, of folders where people keep their own.
fn copied(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Option<HarmFinding> {
    if !matches!(command.program(), "rsync" | "scp" | "sftp" | "unison") {
        return None;
    }
    let operands: Vec<_> = command.operands().collect();
    let (target, sources) = operands.split_last()?;
    if !target.s.contains(':') || to_this_machine(command) {
        return None;
    }
    let source = sources.iter().find(|source| {
        !source.s.contains(':')
            && (not_for_others(&source.s, judge).is_some() || personal(&source.s, judge))
    })?;
    Some(HarmFinding::dangerous(
        HarmCategory::Exfiltration,
        format!("copies {} to another machine", source.shown()),
    ))
}

/// Where people keep what is theirs.
pub(super) fn personal(file: &str, judge: &ProgramJudge<'_>) -> bool {
    const FOLDERS: &[&str] = &[
        "Documents",
        "Desktop",
        "Pictures",
        "Photos",
        "Mail",
        "Music",
        "Videos",
        "Library",
        ".config",
        ".local",
    ];
    let home = judge.context.home.trim_end_matches('/');
    let full = paths::absolute(file, &judge.cwd);
    full.strip_prefix(home)
        .and_then(|rest| rest.strip_prefix('/'))
        .is_some_and(|rest| FOLDERS.contains(&rest.trim_end_matches('/')))
}

fn not_for_others(file: &str, judge: &ProgramJudge<'_>) -> Option<&'static str> {
    if file.is_empty() || file == "-" || file.contains("://") {
        return None;
    }
    match paths::place(file, &judge.cwd, judge.context) {
        PathLoss::Root | PathLoss::Home => return Some("everything of somebody"),
        PathLoss::System | PathLoss::InsideSystem if !file.contains("/share/") => {
            return Some("a file of the system");
        }
        _ => {}
    }
    if personal(file, judge) {
        return Some("a personal folder");
    }
    let packed = [
        ".tgz", ".tar.gz", ".tar", ".zip", ".7z", ".tar.xz", ".tar.zst", ".gpg", ".wav", ".pcap",
        ".png", ".jpg", ".mp4", ".mkv", ".mov",
    ];
    let shared = matches!(
        paths::place(file, &judge.cwd, judge.context),
        PathLoss::InsideTemporary
    );
    if shared && packed.iter().any(|end| file.ends_with(end)) {
        return Some("what somebody packed where everybody may");
    }
    let name = base_name(file.trim_end_matches('/')).to_lowercase();
    TELLING
        .iter()
        .any(|word| name.contains(word))
        .then_some("what its name says is not for others")
}

fn to_this_machine(command: &ReducedCommand) -> bool {
    const HERE: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"];
    let host = |text: &str| {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        HERE.iter().any(|here| {
            rest.strip_prefix(here)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        })
    };
    command.operands().any(|text| host(&text.s))
}
