//! Tables that the whole host shares, and the part of each that one sandbox may have.
//!
//! The kernel bounds terminals and file notifications for each sandbox, and the filter refuses what
//! it cannot bound. Left are open files and the memory of TCP buffers: for those, one number of the
//! host is read many times a second, and only when it grows large is each sandbox asked for its part.

use std::fs;

use rustix::process::getuid;

use crate::plan::InotifyBounds;
use hermetic_sandbox::host::{held, process_tree};

/// Of a table of the host: no sandbox has more, so that this many greedy ones leave something.
const SHARES: u64 = 64;

/// Terminals for one sandbox. The host keeps a reserve that no sandbox's instance can touch.
pub(super) fn ptys() -> u32 {
    let most = number("kernel/pty/max").unwrap_or(4096);
    let reserve = number("kernel/pty/reserve").unwrap_or(1024);
    let share = most.saturating_sub(reserve) / SHARES;
    u32::try_from(share).unwrap_or(u32::MAX).clamp(8, 64)
}

/// A plain user's sandboxes and the gateway itself are one user to the kernel; as root each sandbox
/// is a user of its own, with numbers of its own.
pub(super) fn inotify() -> Option<InotifyBounds> {
    if getuid().is_root() {
        return None;
    }
    let of = |name: &str, least: u64, shares: u64| {
        let most = number(&format!("fs/inotify/{name}")).unwrap_or(least * shares);
        (most / shares).max(least)
    };
    Some(InotifyBounds {
        instances: of("max_user_instances", 8, 8),
        watches: of("max_user_watches", 1024, 8),
    })
}

/// What a sandbox's TCP connections may hold by a cgroup of version 1, which counts it apart.
pub(super) fn tcp_bytes(memory_limit: u64) -> u64 {
    let share = tcp_most().map_or(u64::MAX, |most| most / 8);
    share.min(memory_limit / 4).max(1 << 20)
}

/// A table that one sandbox can fill and that no kernel mechanism divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelTable {
    OpenFiles,
    TcpBuffers,
}

/// How full a table of the host is.
#[derive(Clone, Copy, Debug)]
struct TableFill {
    used: u64,
    most: u64,
}

impl TableFill {
    /// From here on somebody is asked for what he has.
    fn is_high(self) -> bool {
        self.used > self.most / 2
    }

    /// What one sandbox may have of it once it is high.
    fn share(self) -> u64 {
        self.most / 8
    }
}

impl KernelTable {
    pub(super) const ALL: [Self; 2] = [Self::OpenFiles, Self::TcpBuffers];

    /// The share that counts now, where the table is so full that it does.
    pub(super) fn share_now(self) -> Option<u64> {
        let fill = match self {
            Self::OpenFiles => open_files(&fs::read_to_string("/proc/sys/fs/file-nr").ok()?)?,
            Self::TcpBuffers => TableFill {
                used: tcp_used(&fs::read_to_string("/proc/net/sockstat").ok()?)?,
                most: tcp_most()?,
            },
        };
        fill.is_high().then(|| fill.share())
    }

    /// What the sandbox of this first process has of it.
    pub(super) fn part_of(self, first: i32) -> u64 {
        match self {
            Self::OpenFiles => held::descriptors(&process_tree(first)),
            Self::TcpBuffers => ["tcp", "tcp6"]
                .iter()
                // By its first process, whose network namespace is the sandbox's.
                .filter_map(|name| fs::read_to_string(format!("/proc/{first}/net/{name}")).ok())
                .map(|text| tcp_waiting(&text))
                .sum(),
        }
    }
}

fn open_files(text: &str) -> Option<TableFill> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let (used, _, most) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some(TableFill { used, most })
}

/// The kernel counts one sum for all namespaces.
fn tcp_used(sockstat: &str) -> Option<u64> {
    let line = sockstat
        .lines()
        .find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "mem");
    let pages: u64 = words.nth(1)?.parse().ok()?;
    Some(pages * page())
}

fn tcp_most() -> Option<u64> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").ok()?;
    let pages: u64 = text.split_whitespace().nth(2)?.parse().ok()?;
    Some(pages * page())
}

/// A connection with bytes waiting counts for all that its buffers may have grown to: what they hold
/// may be many times the bytes in them.
fn tcp_waiting(table: &str) -> u64 {
    const EACH: u64 = 1 << 20;
    let waits = |line: &&str| {
        line.split_whitespace()
            .nth(4)
            .is_some_and(|queues| queues.bytes().any(|digit| !matches!(digit, b'0' | b':')))
    };
    let waiting = table.lines().skip(1).filter(waits).count();
    EACH.saturating_mul(waiting as u64)
}

fn page() -> u64 {
    rustix::param::page_size() as u64
}

fn number(name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_high_at_its_half_and_an_eighth_is_a_share() {
        let fill = open_files("1439\t0\t16000\n").unwrap();
        assert!(!fill.is_high());
        let fill = open_files("8001 0 16000").unwrap();
        assert!(fill.is_high());
        assert_eq!(fill.share(), 2000);
        assert!(open_files("").is_none());
    }

    #[test]
    fn what_the_kernel_says_of_tcp_is_understood() {
        let said =
            "sockets: used 5\nTCP: inuse 0 orphan 0 tw 0 alloc 1 mem 104\nUDP: inuse 0 mem 7\n";
        assert_eq!(tcp_used(said), Some(104 * page()));
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n   \
            0: 0100007F:1F90 0100007F:C001 01 00000000:0000A000 00:00000000 00000000\n   \
            1: 0100007F:1F90 0100007F:C002 01 00000000:00000000 00:00000000 00000000\n";
        assert_eq!(tcp_waiting(table), 1 << 20);
    }

    #[test]
    fn open_files_of_a_process_are_counted() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let before = KernelTable::OpenFiles.part_of(pid);
        let more: Vec<_> = (0..50)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        assert!(
            KernelTable::OpenFiles.part_of(pid) >= before + 40,
            "{before}"
        );
        drop(more);
        assert!(KernelTable::TcpBuffers.share_now().is_none() || tcp_most().is_some());
    }
}
