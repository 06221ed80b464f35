//! Places: what a path means on a machine that somebody cares about.

use crate::context::JudgementContext;
use crate::effective::{ReducedCommand, base_name};
use crate::finding::HarmCategory;
use crate::text::{BELOW, HOLE, NAME, is_hole};

/// What would be lost with a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathLoss {
    /// `/`
    Root,
    /// A folder without which the machine does not work: `/etc`, `/usr`.
    System,
    /// A home folder itself.
    Home,
    /// A block device.
    Disk,
    /// Below one of the above.
    InsideSystem,
    InsideHome,
    /// `/tmp` itself or all of it.
    Temporary,
    InsideTemporary,
    /// The workspace itself, or something above it.
    Workspace,
    /// `.git` of the workspace.
    History,
    /// Built by a tool and built again by it.
    Artefact,
    InsideWorkspace,
    Elsewhere,
    Unknown,
}

const SYSTEM: &[&str] = &[
    "/etc",
    "/usr",
    "/var",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/boot",
    "/boot/efi",
    "/boot/grub",
    "/root",
    "/home",
    "/dev",
    "/proc",
    "/sys",
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib",
    "/usr/local",
    "/usr/share",
    "/var/lib",
    "/run",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/private",
    "/System/Volumes/Data",
    "/System/Volumes/Data/Users",
    "/System/Library",
    "/private/etc",
    "/private/var",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/modules",
    "/usr/lib/modules",
    "/lib/systemd",
    "/usr/lib/systemd",
];

const ARTEFACTS: &[&str] = &[
    "node_modules",
    "target",
    "build",
    "dist",
    "out",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "coverage",
    ".next",
    ".nuxt",
    ".turbo",
    ".parcel-cache",
    ".venv",
    "venv",
    ".tox",
    ".nyc_output",
    "htmlcov",
    ".gradle",
    "bin",
    "obj",
    ".cache",
    "cache",
    "tmp",
    "temp",
    ".tmp",
    "logs",
    "_build",
    "cmake-build-debug",
    "Debug",
    "Release",
    ".svelte-kit",
    "vendor",
    ".eggs",
    "DerivedData",
    "Pods",
    ".terraform",
    "public",
    "site",
    "storybook-static",
    ".angular",
    ".dart_tool",
    "deps",
    ".vite",
    ".output",
    "cmake-build-release",
    "builddir",
    "bazel-out",
    ".serverless",
    "lib-cov",
    ".coverage",
    "test-results",
    "playwright-report",
    ".ipynb_checkpoints",
];

/// Nobody calls anything else so, wherever it is.
const MADE_AGAIN: &[&str] = &[
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
];

pub(crate) fn place(path: &str, cwd: &str, context: &JudgementContext) -> PathLoss {
    if path.is_empty() {
        return PathLoss::Elsewhere;
    }
    let full = absolute(path, cwd);
    // A loop, because such a path may be nested as deeply as it is long.
    let mut inner = full.as_str();
    while let Some(next) = of_a_process(inner) {
        inner = next;
    }
    if inner.len() < full.len() {
        return place(inner, cwd, context);
    }
    // A hole first: anything. A hole later: somewhere below what is known.
    let mut start = full.strip_prefix('/').unwrap_or(&full).chars();
    match start.next() {
        Some(HOLE) => return PathLoss::Unknown,
        // A search of everything finds the folder itself: `find / -name etc`.
        Some(BELOW) if full.starts_with('/') && is_top_folder(start.as_str()) => {
            return PathLoss::System;
        }
        // Something or other right below `/`.
        Some(BELOW | NAME) if full.starts_with('/') => return PathLoss::InsideSystem,
        _ if path.starts_with(HOLE) => return PathLoss::Unknown,
        _ => {}
    }
    let (known, whole) = match full.find(is_hole) {
        Some(at) => (&full[..at], false),
        None => (full.as_str(), true),
    };
    if whole && let Some(found) = exact(known, context) {
        return found;
    }
    if is_disk(known) {
        return PathLoss::Disk;
    }
    let relative = !path.starts_with('/');
    let below = |folder: &str| {
        known
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let workspace = context.workspace.trim_end_matches('/');
    if below(workspace) || (relative && !path.contains("..") && cwd == context.workspace) {
        let last = base_name(known.trim_end_matches('/'));
        if last == ".git" || known.ends_with("/.git/") {
            return PathLoss::History;
        }
        let artefact = ARTEFACTS.contains(&last)
            || last.ends_with(".egg-info")
            || known[workspace.len().min(known.len())..]
                .split('/')
                .any(|part| ARTEFACTS.contains(&part));
        return if artefact && whole || MADE_AGAIN.contains(&base_name(&full)) {
            PathLoss::Artefact
        } else {
            PathLoss::InsideWorkspace
        };
    }
    if below("/tmp") || below("/var/tmp") || below("/dev/shm") {
        return PathLoss::InsideTemporary;
    }
    if below(context.home.trim_end_matches('/')) {
        return PathLoss::InsideHome;
    }
    if SYSTEM.iter().any(|folder| below(folder)) {
        return if below("/home") || below("/Users") {
            PathLoss::InsideHome
        } else {
            PathLoss::InsideSystem
        };
    }
    PathLoss::Elsewhere
}

/// Whether `/etc`, `/usr` and their like is what a name found anywhere may be.
fn is_top_folder(found: &str) -> bool {
    let top = found.strip_prefix('/').unwrap_or_default();
    !top.is_empty() && !top.contains('/') && SYSTEM.iter().any(|folder| &folder[1..] == top)
}

fn exact(full: &str, context: &JudgementContext) -> Option<PathLoss> {
    let bare = full.trim_end_matches('/');
    // `/etc/*` and `/etc/.*` are all of it.
    let bare = ["/*", "/.*", "/{*,.*}", "/**", "/?*", "/.[!.]*", "/*.*"]
        .iter()
        .find_map(|all| bare.strip_suffix(all))
        .unwrap_or(bare);
    let bare = all_but_some(bare).unwrap_or(bare);
    if bare.is_empty() {
        return Some(PathLoss::Root);
    }
    // `/e??` or `/[a-z]*` names top folders too.
    if bare.matches('/').count() == 1 && bare.contains(['*', '?', '[']) {
        let hits = SYSTEM
            .iter()
            .any(|folder| crate::reduce::glob::matches(bare, folder));
        return hits.then_some(PathLoss::System);
    }
    if SYSTEM.contains(&bare) {
        return Some(PathLoss::System);
    }
    if bare == context.home.trim_end_matches('/') {
        return Some(PathLoss::Home);
    }
    if bare == "/tmp" || bare == "/var/tmp" {
        return Some(PathLoss::Temporary);
    }
    let workspace = context.workspace.trim_end_matches('/');
    if bare == workspace || workspace.starts_with(&format!("{bare}/")) {
        return Some(PathLoss::Workspace);
    }
    is_somebodys_home(bare).then_some(PathLoss::Home)
}

/// The folder of which a pattern leaves only some out: `/!(proc|sys)`, zsh's `/^proc` and `/*(.)`.
fn all_but_some(bare: &str) -> Option<&str> {
    let (folder, name) = bare.rsplit_once('/')?;
    let qualified = name.starts_with("*(") || name.starts_with("**(");
    let leaves_out = name.starts_with("!(") || name.starts_with('^') && name.len() > 1;
    let folder = folder.strip_suffix("/**").unwrap_or(folder);
    (qualified || leaves_out).then_some(folder)
}

/// `/home/alice`, `/Users/alice`, and nothing below it.
fn is_somebodys_home(bare: &str) -> bool {
    let name = bare
        .strip_prefix("/home/")
        .or_else(|| bare.strip_prefix("/Users/"));
    name.is_some_and(|name| {
        !name.is_empty() && name != "Shared" && !name.contains(['/', '*', '?', '['])
    })
}

/// A block device: whole disks, partitions, device mapper.
pub(crate) fn is_disk(path: &str) -> bool {
    let Some(device) = path.strip_prefix("/dev/") else {
        return false;
    };
    let starts = [
        "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "dm-", "md", "loop",
        "sr", "zd", "nbd", "mem", "kmem", "port", "mtd", "pmem", "block/",
    ];
    starts.iter().any(|start| device.starts_with(start)) && !device.starts_with("mdev")
        || !is_other_device(device)
}

/// Devices that are no disk. Whatever is not named here may be one: other systems call theirs `ada0`
/// or `rdsk/c0t0d0s2`, and a group of volumes has the name that somebody gave it.
fn is_other_device(device: &str) -> bool {
    const OTHERS: &[&str] = &[
        "null",
        "zero",
        "full",
        "random",
        "urandom",
        "arandom",
        "tty",
        "pts/",
        "ptmx",
        "pty",
        "console",
        "fd/",
        "fd",
        "std",
        "shm/",
        "shm",
        "snd",
        "dsp",
        "audio",
        "mixer",
        "dri",
        "input",
        "net",
        "kvm",
        "fuse",
        "video",
        "log",
        "tcp/",
        "udp/",
        "hid",
        "usb",
        "bus",
        "cuse",
        "rtc",
        "watchdog",
        "i2c",
        "spi",
        "gpio",
        "nvidia",
        "vhost",
        "cpu",
        "mqueue",
        "huge",
        "rfkill",
        "uinput",
        "uhid",
        "vfio",
        "cdrom",
        "dvd",
        "cd",
        "sg",
        "st",
        "nst",
        "kmsg",
        "mcelog",
        "apm",
        "bpf",
        "ptp",
        "ipmi",
        "accel",
        "kfd",
        "dma",
        "fb",
        "lp",
        "parport",
        "ppp",
        "tpm",
        "tun",
        "tap",
        "udmabuf",
        "vcs",
        "vga",
        "vmci",
        "serial",
        "cu.",
        "cua",
        "ttyU",
        "initctl",
        "core",
        "midi",
        "seq",
        "js",
        "mice",
        "dtrace",
        "autofs",
        "btrfs-control",
        "loop-control",
        "mapper",
        "hpet",
        "hwrng",
        "ecryptfs",
        "ndctl",
        "nvram",
        "oldmem",
        "snapshot",
        "userfaultfd",
        "vsock",
        "xconsole",
        "char",
        "media",
        "cec",
        "dvb",
        "binder",
        "ashmem",
        "ion",
        "tee",
        "infiniband",
        "isst",
        "mei",
        "misc",
        "ng0n",
        "ptp0",
        "sgx",
        "stlink",
        "tcm",
        "virtio-ports",
        "vboxguest",
        "vbox",
    ];
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "/_-.:+".contains(c));
    // Whichever device a variable or a listing names.
    if device.starts_with(is_hole) {
        return false;
    }
    device.is_empty()
        || device.contains(odd)
        || !device.starts_with(|c: char| c.is_ascii_alphabetic())
        || OTHERS.iter().any(|start| device.starts_with(start))
}

/// A place where anybody may have put a file: shared folders, what a pipe brings, the network.
pub(crate) fn anybodys(path: &str, cwd: &str, context: &JudgementContext) -> bool {
    const BROUGHT: [&str; 4] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/", "/dev/tcp/"];
    if path == "-" || path.contains("://") || path.starts_with("data:") {
        return true;
    }
    if !path.starts_with(['/', '.', '~']) {
        return false;
    }
    let downloads = format!("{}/Downloads/", context.home.trim_end_matches('/'));
    let full = absolute(path, cwd);
    BROUGHT.iter().any(|start| full.starts_with(start))
        || matches!(
            place(&full, cwd, context),
            PathLoss::InsideTemporary | PathLoss::Temporary
        )
        || full.starts_with(&downloads)
}

/// `path` from `/`, without `.`, `..` and doubled slashes.
pub(crate) fn absolute(path: &str, cwd: &str) -> String {
    let joined = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{cwd}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let hole = joined.starts_with(is_hole);
    let mut full = parts.join("/");
    if !hole {
        full.insert(0, '/');
    }
    full
}

/// Whether only running would tell which file a path names, so that it may be any.
///
/// `$x` may be anything, and so may `/tmp/$x`: a value can begin with `../`. `$x/notes.txt` is a
/// file of that name, wherever it is.
pub(crate) fn may_be_anything(path: &str, cwd: &str, harmless: impl Fn(&str) -> bool) -> bool {
    let own = path.rfind(HOLE);
    let Some(at) = own else {
        // A name in a folder that nobody knows.
        let elsewhere = cwd.contains(HOLE) && !path.starts_with('/') && !path.is_empty();
        return elsewhere && !path.contains(is_hole) && !harmless(base_name(path));
    };
    let tail = &path[at + HOLE.len_utf8()..];
    let name = base_name(tail);
    let named = tail.contains('/') || name.rfind('.').is_some_and(|dot| dot + 1 < name.len());
    !(named && !tail.ends_with('/') && harmless(name))
}

/// Why reading this file is reading a secret.
pub(crate) fn secret(path: &str, cwd: &str, context: &JudgementContext) -> Option<&'static str> {
    if path.len() > 1024 || path.is_empty() {
        return None;
    }
    // One of several lines is meant, and only running tells which.
    if path.contains('\n') {
        let mut lines = path.lines().take(8);
        return lines.find_map(|line| secret(line, cwd, context));
    }
    if let Some((before, rest)) = path.split_once("@(")
        && let Some((either, after)) = rest.split_once(')')
    {
        let mut names = either.split('|').take(4);
        return names.find_map(|name| secret(&format!("{before}{name}{after}"), cwd, context));
    }
    let full = absolute(path, cwd);
    // A variable that was never set is nothing: `/etc/s${x}hadow`.
    let unset = path.contains(HOLE) && !path.starts_with(HOLE);
    let without = unset.then(|| absolute(&path.replace(HOLE, ""), cwd));
    let inner = of_another_system(&full, context);
    [Some(full.as_str()), inner, without.as_deref()]
        .into_iter()
        .flatten()
        .find_map(|path| crate::programs::secrets::holds(path, context))
}

pub(crate) fn prints_secret(command: &ReducedCommand) -> bool {
    crate::programs::secrets::prints(command)
}

/// What writing to this file would change, beyond the file itself.
pub(crate) fn protected(
    path: &str,
    cwd: &str,
    context: &JudgementContext,
) -> Option<(HarmCategory, String)> {
    let full = absolute(path, cwd);
    crate::programs::protected::reason(&full, path, context).or_else(|| {
        let inner = of_another_system(&full, context)?;
        crate::programs::protected::reason(inner, inner, context)
    })
}

/// The path on a mounted disk, unless that disk only holds the workspace.
fn of_another_system<'p>(full: &'p str, context: &JudgementContext) -> Option<&'p str> {
    let workspace = context.workspace.trim_end_matches('/');
    let inside = full
        .strip_prefix(workspace)
        .is_some_and(|rest| rest.starts_with('/'));
    if inside {
        return None;
    }
    of_a_mounted_system(full)
}

/// The path as a process knows it: `/proc/1/root/etc` is `/etc`.
fn of_a_process(full: &str) -> Option<&str> {
    let (_, rest) = full.strip_prefix("/proc/")?.split_once('/')?;
    rest.strip_prefix("root")
        .filter(|inner| inner.starts_with('/'))
}

/// The path as the system on a mounted disk knows it: `/mnt/disk/etc/shadow` is its `/etc/shadow`.
fn of_a_mounted_system(full: &str) -> Option<&str> {
    const MOUNTS: &[&str] = &[
        "/mnt/",
        "/media/",
        "/host/",
        "/hostfs/",
        "/rootfs/",
        "/run/media/",
    ];
    const INSIDE: &[&str] = &[
        "/etc/",
        "/root/.",
        "/boot/",
        "/home/",
        "/usr/bin/",
        "/usr/sbin/",
    ];
    if full.starts_with("/proc/") {
        return of_a_process(full);
    }
    let mount = MOUNTS.iter().find(|mount| full.starts_with(**mount))?;
    // The slash at its end may be the first of the inner path.
    let from = mount.len() - 1;
    let rest = &full[from..];
    let at = INSIDE.iter().filter_map(|folder| rest.find(folder)).min()?;
    Some(&rest[at..])
}
