//! What processes hold that no folder shows: open, mapped and running files without a name, and what
//! nobody outside can weigh.
//!
//! Three things cannot be weighed: descriptors that wait in a socket's queue, which only the kernel
//! sees; mappings of an unnamed file, where we are not root; and processes that hide from us, where
//! we are not root either. Each is a doubt, and whoever asks decides what a doubt costs. The warden's
//! own processes hide as well, and are none.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::statfs;

use super::usage::DiskUsage;

/// More descriptors than this, of all threads together, are not looked at one by one.
const MOST_SCANNED_DESCRIPTORS: u64 = 200_000;
/// What still waits or hides after a few of these is kept there on purpose.
const IN_PASSING: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub struct HeldFiles {
    /// On the device that was asked about.
    pub unnamed: DiskUsage,
    /// Files without a name that are memory, by what they hold.
    pub in_memory: u64,
    /// The most that buffers of sockets and pipes may hold.
    pub buffers: u64,
    /// Something on that device may be held that could not be weighed.
    pub disk_doubt: bool,
    /// The same for memory.
    pub memory_doubt: bool,
}

/// Where the files lie that are asked about.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice {
    pub number: u64,
    /// Seen through an overlay, whose own number differs.
    pub overlaid: bool,
}

/// Looks at everything these processes hold.
pub fn look(pids: &[i32], device: OnDevice) -> HeldFiles {
    let mut look = HeldFilesScan {
        device,
        memory: memory_device(),
        buffers: BufferLimits::of_this_host(),
        seen: HashSet::new(),
        left: MOST_SCANNED_DESCRIPTORS,
        in_flight: Vec::new(),
        unreadable: Vec::new(),
        wardens: WardenProcesses::of(pids.first().copied()),
        held: HeldFiles::default(),
    };
    for &pid in pids {
        look.process(pid);
    }
    look.wait_for_what_passes();
    look.held
}

/// How many descriptors these processes have, threads with tables of their own included.
pub fn descriptors(pids: &[i32]) -> u64 {
    let mut count = 0;
    for &pid in pids {
        // Since Linux 6.2 the size of the folder is the number of descriptors; before, it is 0.
        let folder = format!("/proc/{pid}/fd");
        count += match fs::metadata(&folder).map(|found| found.size()) {
            Ok(size) if size > 0 => size,
            _ => fs::read_dir(&folder).map_or(0, |entries| entries.count() as u64),
        };
    }
    count
}

struct HeldFilesScan {
    device: OnDevice,
    /// Of all files in memory that never had a name.
    memory: Option<u64>,
    buffers: BufferLimits,
    seen: HashSet<(u64, u64)>,
    left: u64,
    /// Where descriptors wait in a socket's queue.
    in_flight: Vec<String>,
    /// Processes and threads that could not be looked at.
    unreadable: Vec<String>,
    wardens: WardenProcesses,
    held: HeldFiles,
}

impl HeldFilesScan {
    fn process(&mut self, pid: i32) {
        let root = format!("/proc/{pid}");
        if has_ended(&root) {
            return;
        }
        // Kept by the process even when it has unmapped every part of it.
        self.file(Path::new(&format!("{root}/exe")));
        self.mappings(&root);
        let Ok(threads) = fs::read_dir(format!("{root}/task")) else {
            return;
        };
        for thread in threads.flatten() {
            // Each may have a table of its own, and the first one may have ended before the others.
            self.descriptors(&thread.path());
        }
    }

    fn descriptors(&mut self, thread: &Path) {
        let entries = match fs::read_dir(thread.join("fd")) {
            Ok(entries) => entries,
            Err(_) => return self.could_not_look(thread),
        };
        for entry in entries {
            let Ok(entry) = entry else {
                return self.could_not_look(thread);
            };
            // Not looked at is not empty: a sandbox could hide what it likes behind enough
            // descriptors.
            if self.left == 0 {
                return self.doubt();
            }
            self.left -= 1;
            self.file(&entry.path());
            let info = thread.join("fdinfo").join(entry.file_name());
            self.queue(&entry.path(), &info);
        }
    }

    /// Follows the kernel's own link to an open file, not a path.
    fn file(&mut self, link: &Path) {
        let Ok(found) = fs::metadata(link) else {
            return;
        };
        let kind = found.file_type();
        // One file may be open many times over, and counts once.
        if !self.seen.insert((found.dev(), found.ino())) {
            return;
        }
        if kind.is_fifo() {
            self.held.buffers += self.buffers.pipe;
        }
        if kind.is_socket() {
            self.held.buffers += self.buffers.socket;
        }
        if !kind.is_file() || found.nlink() > 0 {
            return;
        }
        let bytes = found.blocks() * 512;
        if found.dev() == self.device.number || is_in(link, OVERLAY) {
            self.held.unnamed.bytes += bytes;
            self.held.unnamed.inodes += 1;
        } else if is_in(link, TMPFS) {
            self.held.in_memory += bytes;
        }
    }

    fn queue(&mut self, link: &Path, info: &Path) {
        let is_socket = fs::metadata(link).is_ok_and(|found| found.file_type().is_socket());
        if is_socket && let Some(info) = info.to_str().filter(|info| in_queue(info)) {
            self.in_flight.push(info.to_owned());
        }
    }

    /// Weighed through the kernel's links to mapped files, which are root's to follow. A mapping is a
    /// file without a name also where it is shared memory that nobody opened.
    fn mappings(&mut self, root: &str) {
        let Ok(maps) = fs::read_to_string(format!("{root}/maps")) else {
            return self.could_not_look(Path::new(root));
        };
        for line in maps.lines().filter(|line| line.ends_with(" (deleted)")) {
            let mut words = line.split_whitespace();
            let (Some(range), Some(device), Some(inode)) =
                (words.next(), words.nth(2), words.next())
            else {
                continue;
            };
            let (Some(device), Ok(inode)) = (number_of(device), inode.parse()) else {
                continue;
            };
            if self.seen.contains(&(device, inode)) {
                continue;
            }
            let link = format!("{root}/map_files/{range}");
            if fs::metadata(&link).is_ok() {
                self.file(Path::new(&link));
            } else {
                self.unweighed(device);
            }
        }
    }

    fn could_not_look(&mut self, root: &Path) {
        if let Some(root) = root.to_str().filter(|root| !self.wardens.include(root)) {
            self.unreadable.push(root.to_owned());
        }
    }

    fn doubt(&mut self) {
        self.held.disk_doubt = true;
        self.held.memory_doubt = true;
    }

    /// A mapped file without a name, of which only the device is known.
    fn unweighed(&mut self, device: u64) {
        let is_without_disk = |number| rustix::fs::major(number) == 0;
        if Some(device) == self.memory {
            self.held.memory_doubt = true;
        } else if device == self.device.number {
            self.held.disk_doubt = true;
        } else if is_without_disk(device) {
            // The scratch space, which has a size, or a file system that goes by two numbers.
            let two_numbers = self.device.overlaid || is_without_disk(self.device.number);
            self.held.disk_doubt |= two_numbers;
        }
    }

    /// A descriptor on its way is taken at once, and a command that is about to start can be read as
    /// soon as it has.
    fn wait_for_what_passes(&mut self) {
        for _ in 0..3 {
            if self.in_flight.is_empty() && self.unreadable.is_empty() {
                return;
            }
            // Looked at again instead of doubted at once: a command that is being started hides for
            // a moment as well.
            thread::sleep(IN_PASSING);
            self.in_flight.retain(|info| in_queue(info));
            self.unreadable.retain(|root| {
                let hides = || fs::read_dir(format!("{root}/fd")).is_err();
                !has_ended(root) && hides()
            });
        }
        if !(self.in_flight.is_empty() && self.unreadable.is_empty()) {
            self.doubt();
        }
    }
}

/// The warden and the processes that it keeps above commands. They hide their memory from everybody
/// of their own user, so from us too where we are not root.
#[derive(Debug)]
struct WardenProcesses {
    first: i32,
    /// The size of the warden's program text.
    text: Option<String>,
}

impl WardenProcesses {
    fn of(first: Option<i32>) -> Self {
        let first = first.unwrap_or_default();
        Self {
            first,
            text: program_text(&format!("/proc/{first}")),
        }
    }

    /// A copy of the warden: its child, of the same program, that never became another.
    fn include(&self, root: &str) -> bool {
        let first = format!("/proc/{}", self.first);
        if root == first || root.starts_with(&format!("{first}/")) {
            return true;
        }
        const NEVER_BECAME_ANOTHER: u64 = 0x40;
        let stat = fs::read_to_string(format!("{root}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let mut words = rest.split(' ').skip(1);
        let parent = words.next().and_then(|word| word.parse::<i32>().ok());
        let flags = words.nth(4).and_then(|word| word.parse::<u64>().ok());
        // All of these together: a program of the sandbox's could pose as any one of them, and
        // whatever is taken for the warden is not weighed.
        parent == Some(self.first)
            && flags.is_some_and(|flags| flags & NEVER_BECAME_ANOTHER != 0)
            && self.text.is_some()
            && program_text(root) == self.text
    }
}

fn program_text(root: &str) -> Option<String> {
    let status = fs::read_to_string(format!("{root}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmExe:"))?;
    Some(line.trim().to_owned())
}

/// The most that one socket and one pipe may hold on this host.
#[derive(Clone, Copy, Debug)]
struct BufferLimits {
    socket: u64,
    pipe: u64,
}

impl BufferLimits {
    fn of_this_host() -> Self {
        let number = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
            text.trim().parse::<u64>().ok()
        };
        // The kernel doubles what a program asks for.
        let sends = number("net/core/wmem_max").unwrap_or(212_992) * 2;
        let receives = number("net/core/rmem_max").unwrap_or(212_992) * 2;
        Self {
            socket: sends + receives,
            pipe: number("fs/pipe-max-size").unwrap_or(1 << 20),
        }
    }
}

fn memory_device() -> Option<u64> {
    let file = rustix::fs::memfd_create("device", rustix::fs::MemfdFlags::CLOEXEC).ok()?;
    rustix::fs::fstat(file).map(|found| found.st_dev).ok()
}

const OVERLAY: u32 = 0x794c_7630;
const TMPFS: u32 = 0x0102_1994;

fn is_in(open: &Path, kind: u32) -> bool {
    statfs(open).is_ok_and(|found| u32::try_from(found.f_type) == Ok(kind))
}

/// Gone, or a zombie that only waits to be collected. A leader whose threads live on is neither.
fn has_ended(root: &str) -> bool {
    let Ok(stat) = fs::read_to_string(format!("{root}/stat")) else {
        return true;
    };
    let mut rest = stat
        .rsplit_once(") ")
        .map_or("", |(_, rest)| rest)
        .split(' ');
    let dead = matches!(rest.next(), Some("Z" | "X"));
    let threads: u32 = rest.nth(16).and_then(|word| word.parse().ok()).unwrap_or(1);
    dead && threads <= 1
}

fn in_queue(info: &str) -> bool {
    fs::read_to_string(info).is_ok_and(|text| {
        text.lines()
            .filter_map(|line| line.strip_prefix("scm_fds:"))
            .any(|count| count.trim() != "0")
    })
}

/// `maps` writes a device in hexadecimal, major and minor; `stat` makes one number of them.
fn number_of(device: &str) -> Option<u64> {
    let (major, minor) = device.split_once(':')?;
    let part = |text| u32::from_str_radix(text, 16).ok();
    Some(rustix::fs::makedev(part(major)?, part(minor)?))
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
