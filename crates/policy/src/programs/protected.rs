//! Files that do something when written to: at boot, at login, for the next `sudo`.

mod places;

use super::Judge;
use crate::context::Context;
use crate::effective::{Effective, base_name};
use crate::finding::{Category, Finding};
use crate::paths;
use crate::text::Text;
use places::{ANYWHERE, HOME};

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
    let mut targets: Vec<Text> = command.writes.clone();
    targets.extend(self::targets(command));
    targets.extend(put_into(command));
    targets.extend(super::reach::by_name(command));
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

/// Files and folders that a program writes to, besides what the shell redirects.
pub(super) fn targets(command: &Effective) -> Vec<Text> {
    let mut targets = written(command);
    targets.extend(super::reach::written(command));
    targets
}

/// What a copy into a folder makes there, and whatever `-o` or `--output` names.
fn put_into(command: &Effective) -> Vec<Text> {
    let copies = matches!(
        command.program(),
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" | "gcp"
    );
    if !copies {
        return ["-o", "--output", "-out", "--output-file", "--out"]
            .iter()
            .flat_map(|flag| command.values_of(flag))
            .filter(|value| value.starts_with('/'))
            .map(Text::known)
            .collect();
    }
    let operands: Vec<&Text> = command.operands().collect();
    let Some((folder, sources)) = operands.split_last() else {
        return Vec::new();
    };
    sources
        .iter()
        .take(8)
        .map(|source| {
            let name = base_name(source.s.trim_end_matches('/'));
            Text::known(format!("{}/{name}", folder.s.trim_end_matches('/')))
        })
        .collect()
}

/// Operands that a program writes to.
fn written(command: &Effective) -> Vec<Text> {
    let operands: Vec<Text> = command.operands().cloned().collect();
    let last = || operands.last().cloned().into_iter().collect();
    match command.program() {
        "tee" | "sponge" | "touch" | "ed" | "ex" | "patch" => operands,
        "cp" | "mv" | "install" | "ln" | "rsync" | "scp" | "gcp" => match command.value_of("-t") {
            Some(folder) => vec![folder.clone()],
            None if operands.len() > 1 || command.program() == "ln" => last(),
            None => Vec::new(),
        },
        "sed" | "gsed" | "perl" | "ruby" | "awk" | "gawk" if in_place(command) => operands,
        "sed" | "gsed" => sed_writes(command).into_iter().cloned().collect(),
        "ffmpeg" | "convert" | "magick" | "sox" | "cwebp" | "gs" => last(),
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
