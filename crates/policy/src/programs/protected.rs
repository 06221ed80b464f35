//! Files that do something when written to: at boot, at login, for the next `sudo`.

mod places;

use super::ProgramJudge;
use super::property_lists;
use crate::context::JudgementContext;
use crate::effective::{ReducedCommand, base_name};
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;
use crate::text::ExpandedText;
use places::{ANYWHERE, HOME};

/// Why writing to `full` matters; `given` is how it was spelled.
pub(crate) fn reason(
    full: &str,
    given: &str,
    context: &JudgementContext,
) -> Option<(HarmCategory, String)> {
    if let Some(reason) = super::own::file(full, context) {
        return Some((HarmCategory::OwnFiles, reason));
    }
    if paths::is_disk(full) {
        return Some((
            HarmCategory::Disk,
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
    // Which hosts were met before is written down at every first login.
    if full.ends_with("/.ssh/known_hosts") {
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
    if let Some((_, name)) = full
        .rsplit_once("/.local/bin/")
        .or_else(|| full.rsplit_once("/bin/"))
        && full.starts_with(&format!("{home}/"))
        && SHADOWED.contains(&name)
    {
        return Some((
            HarmCategory::Persistence,
            format!("writes {given}, which is found before the system's {name}"),
        ));
    }
    let workspace = context.workspace.trim_end_matches('/');
    let inside = full.starts_with(&format!("{workspace}/"));
    if let Some(reason) = loaded_by_python(full) {
        return Some((
            HarmCategory::Persistence,
            format!("writes {given}, which {reason}"),
        ));
    }
    ANYWHERE
        .iter()
        .find(|(path, _, _)| {
            if path.starts_with("/.") {
                full.contains(path)
            } else {
                // Root's own home is a home like any other to whoever works as root.
                !inside && full.starts_with(path) && !(home == "/root" && *path == "/root/")
            }
        })
        .map(|(_, category, what)| (*category, format!("writes {given}, which {what}")))
}

/// Programs that are started without a thought.
const SHADOWED: &[&str] = &[
    "sudo", "ls", "cat", "ssh", "su", "git", "bash", "sh", "cd", "ps", "rm", "cp", "login",
    "passwd", "gpg", "scp", "curl", "python3", "vim", "which", "env",
];

/// Python runs these whenever it starts.
fn loaded_by_python(full: &str) -> Option<&'static str> {
    let name = base_name(full);
    let packages = full.contains("/site-packages/") || full.contains("/dist-packages/");
    let at_start =
        matches!(name, "usercustomize.py" | "sitecustomize.py") || name.ends_with(".pth");
    (packages && at_start && !full.contains("/.venv/") && !full.contains("/venv/"))
        .then_some("runs at every start of Python")
}

fn listed(rest: &str, path: &str) -> bool {
    if path.ends_with('/') {
        rest.starts_with(path)
    } else {
        // A copy that nothing reads.
        let copy = [".bak", ".orig", ".old", ".backup", ".save", "~"]
            .iter()
            .any(|end| rest.ends_with(end));
        rest == path
            || rest.starts_with(&format!("{path}.")) && !copy
            || (rest.starts_with(path) && path.contains('/'))
    }
}

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut targets: Vec<ExpandedText> = command.writes.clone();
    targets.extend(self::targets(command));
    targets.extend(put_into(command));
    targets.extend(super::reach::by_name(command));
    targets
        .into_iter()
        .filter_map(|target| {
            if paths::is_disk(&paths::absolute(&target.s, &judge.cwd)) {
                return Some(HarmFinding::floor(
                    HarmCategory::Disk,
                    format!("writes straight onto a disk: {}", target.shown()),
                ));
            }
            if super::files::empties_everything(&target.s, judge) && target.s.ends_with("/**") {
                return Some(HarmFinding::floor(
                    HarmCategory::Destruction,
                    format!("overwrites all of {}", target.shown()),
                ));
            }
            if let Some(finding) = planted(&target) {
                return Some(finding);
            }
            if matches!(
                target.s.as_str(),
                "/proc/sysrq-trigger" | "/sys/power/state"
            ) {
                return Some(HarmFinding::floor(
                    HarmCategory::Power,
                    "orders the kernel to stop or reboot (sysrq)",
                ));
            }
            if target.s.starts_with("/sys/block/") && target.s.ends_with("/device/delete") {
                return Some(HarmFinding::floor(
                    HarmCategory::Disk,
                    "takes a disk away from the machine",
                ));
            }
            let (category, reason) = paths::protected(&target.s, &judge.cwd, judge.context)?;
            Some(HarmFinding::dangerous(category, reason))
        })
        .collect()
}

/// A file whose name is an option of the program that will be given `*`.
fn planted(target: &ExpandedText) -> Option<HarmFinding> {
    let name = base_name(&target.s);
    let option = target.s.starts_with("-") && target.s.contains(['=', ' '])
        || name.starts_with("--") && name.contains('=')
        || target.s.contains("--checkpoint");
    option.then(|| {
        HarmFinding::dangerous(
            HarmCategory::Injection,
            format!("plants an option as the name of a file: {}", target.shown()),
        )
    })
}

/// Files and folders that a program writes to, besides what the shell redirects.
pub(crate) fn targets(command: &ReducedCommand) -> Vec<ExpandedText> {
    let mut targets = written(command);
    targets.extend(super::reach::written(command));
    targets
}

/// What a copy into a folder makes there, and whatever `-o` or `--output` names.
fn put_into(command: &ReducedCommand) -> Vec<ExpandedText> {
    let copies = matches!(
        command.program(),
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" | "gcp"
    );
    if !copies {
        return ["-o", "--output", "-out", "--output-file", "--out"]
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .filter(|value| value.starts_with('/'))
            .map(ExpandedText::known)
            .collect();
    }
    let operands: Vec<&ExpandedText> = command.operands().collect();
    let Some((folder, sources)) = operands.split_last() else {
        return Vec::new();
    };
    // A name with an ending is a file; `cron.d` is a folder.
    let name = base_name(&folder.s);
    let file = name
        .rfind('.')
        .is_some_and(|dot| dot > 0 && &name[dot..] != ".d");
    if file && sources.len() == 1 {
        return Vec::new();
    }
    sources
        .iter()
        .take(8)
        .map(|source| {
            let name = base_name(source.s.trim_end_matches('/'));
            ExpandedText::known(format!("{}/{name}", folder.s.trim_end_matches('/')))
        })
        .collect()
}

/// Operands that a program writes to.
fn written(command: &ReducedCommand) -> Vec<ExpandedText> {
    let operands: Vec<ExpandedText> = command.operands().cloned().collect();
    let last = || operands.last().cloned().into_iter().collect();
    match command.program() {
        "tee" | "sponge" | "touch" | "ed" | "ex" | "patch" | "mkfifo" => operands,
        "logsave" | "mknod" | "savelog" => operands.into_iter().take(1).collect(),
        "plutil" | "PlistBuddy" | "defaults" if property_lists::changes(command) => {
            property_lists::written(&operands)
        }
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" | "gcp" => match command.value_of("-t") {
            Some(folder) => vec![folder.clone()],
            None if operands.len() > 1 || command.program() == "ln" => last(),
            None => Vec::new(),
        },
        "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" if in_place(command) => edited(command),
        "yq" | "tomlq" | "xq" if command.short('i') || command.long("--inplace") => {
            operands.into_iter().skip(1).collect()
        }
        "sed" | "gsed" => sed_writes(command).into_iter().cloned().collect(),
        "ffmpeg" | "convert" | "magick" | "sox" | "cwebp" | "gs" => last(),
        "visudo" if command.short('c') || command.long("--check") => Vec::new(),
        "sudoedit" | "visudo" | "nano" | "vi" | "vim" | "nvim" | "emacs" | "crudini" => operands,
        _ => Vec::new(),
    }
}

/// The files behind the script of an edit in place.
fn edited(command: &ReducedCommand) -> Vec<ExpandedText> {
    let args = command.args();
    let given = |text: &ExpandedText| {
        args.windows(2).any(|pair| {
            std::ptr::eq(&raw const pair[1], text)
                && pair[0].s.starts_with('-')
                && (pair[0].s.ends_with('e')
                    || pair[0].s.ends_with('f')
                    || pair[0].s == "--expression")
        })
    };
    let scripted = args.iter().any(given);
    command
        .operands()
        .filter(|text| !given(text))
        .skip(usize::from(!scripted && command.program() != "ruby"))
        .cloned()
        .collect()
}

pub(super) fn in_place(command: &ReducedCommand) -> bool {
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
fn sed_writes(command: &ReducedCommand) -> Vec<&ExpandedText> {
    command
        .args()
        .iter()
        .filter(|arg| arg.s.contains("w /") && base_name(&arg.s).len() < 256)
        .filter(|arg| arg.s.starts_with('/') && !arg.s.contains(' '))
        .collect()
}
