//! The kernel's doors.

use std::fs::OpenOptions;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};

use super::KnockedCall;
use crate::{AttackFinding, AttemptState};

pub(super) fn findings(knocked: &[KnockedCall]) -> Vec<AttackFinding> {
    vec![calls(knocked), sockets(), settings(), devices()]
}

/// What a filter says, or a kernel that does not know the call or wants a capability for it.
fn is_refusal(errno: i32) -> bool {
    [Errno::PERM, Errno::NOSYS, Errno::ACCESS]
        .iter()
        .any(|refusal| refusal.raw_os_error() == errno)
}

fn calls(knocked: &[KnockedCall]) -> AttackFinding {
    let through = knocked
        .iter()
        .filter(|(_, ended)| !ended.is_some_and(is_refusal))
        .map(|(name, _)| *name);
    all_refused(
        "system calls that sandboxes were left by",
        knocked.len(),
        through,
    )
}

fn sockets() -> AttackFinding {
    const FAMILIES: [(&str, u16, u32); 6] = [
        ("vsock", 40, 1),
        ("packet", 17, 3),
        ("alg", 38, 5),
        ("rds", 21, 5),
        ("xdp", 44, 3),
        ("tipc", 30, 5),
    ];
    let through = FAMILIES.iter().filter(|(_, family, kind)| {
        let (family, kind) = (
            AddressFamily::from_raw(*family),
            SocketType::from_raw(*kind),
        );
        opens(family, kind, None)
    });
    let raw = opens(
        AddressFamily::INET,
        SocketType::RAW,
        Some(rustix::net::ipproto::ICMP),
    );
    let names = through.map(|(name, ..)| *name).chain(raw.then_some("raw"));
    all_refused("sockets of odd families", FAMILIES.len() + 1, names)
}

fn opens(family: AddressFamily, kind: SocketType, protocol: Option<Protocol>) -> bool {
    socket_with(family, kind, SocketFlags::CLOEXEC, protocol).is_ok()
}

/// Opened for writing and not written.
fn settings() -> AttackFinding {
    const FILES: [&str; 6] = [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
        "/sys/fs/cgroup/release_agent",
    ];
    // Where a file is covered by a device that takes anything, writing it is nothing.
    let through = FILES
        .into_iter()
        .filter(|path| opened(path, true) && !is_device(path));
    all_refused("changing settings of the kernel", FILES.len(), through)
}

fn devices() -> AttackFinding {
    const FILES: [&str; 9] = [
        "/dev/mem",
        "/dev/kmsg",
        "/dev/port",
        "/dev/kvm",
        "/dev/fuse",
        "/dev/sda",
        "/dev/vda",
        "/dev/nvme0n1",
        "/proc/kcore",
    ];
    let through = FILES.into_iter().filter(|path| opened(path, false));
    all_refused(
        "opening devices and the kernel's memory",
        FILES.len(),
        through,
    )
}

fn opened(path: &str, for_writing: bool) -> bool {
    let mut options = OpenOptions::new();
    options.read(!for_writing).write(for_writing);
    match options.open(path) {
        // One that is covered has nothing in it.
        Ok(file) => for_writing || file.metadata().is_ok_and(|metadata| !covered(&metadata)),
        Err(_) => false,
    }
}

/// `/dev/null` over it.
fn covered(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    const NULL: u64 = 0x103;
    metadata.rdev() == NULL
}

fn is_device(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    Path::new(path)
        .metadata()
        .is_ok_and(|metadata| metadata.file_type().is_char_device())
}

fn all_refused<'a>(
    attempt: &str,
    tried: usize,
    through: impl Iterator<Item = &'a str>,
) -> AttackFinding {
    let through: Vec<&str> = through.collect();
    match through.is_empty() {
        true => AttackFinding::new(attempt, AttemptState::Held, format!("{tried} tried")),
        false => AttackFinding::new(attempt, AttemptState::Open, through.join(", ")),
    }
}
