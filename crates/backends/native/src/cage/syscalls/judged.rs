//! The calls that are allowed for what they are given.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

use super::FilterOptions;

type SyscallRules = BTreeMap<c_long, Vec<SeccompRule>>;

/// The largest System V segment where nobody counts them. With the kernel's default of 4096 segments
/// for a namespace that makes 64 MiB; PostgreSQL's own has 56 bytes.
const SMALL_SEGMENT: u64 = 16 << 10;
/// Semaphores in one set where nobody counts them, of 32,000 sets. PostgreSQL takes 17 or 20.
const SMALL_SET: u64 = 32;

pub(super) fn judged(allowance: FilterOptions) -> Result<SyscallRules, BackendError> {
    Ok(SyscallRules::from([
        (libc::SYS_clone, no_namespaces()?),
        (libc::SYS_socket, sockets()?),
        (libc::SYS_socketpair, vec![rule([is(0, libc::AF_UNIX)?])?]),
        (libc::SYS_ioctl, ioctls()?),
        // Another process's limits are not ours to change, even with the same uid.
        (libc::SYS_prlimit64, vec![rule([is(0, 0)?])?]),
        (libc::SYS_personality, personalities()?),
        (
            libc::SYS_mmap,
            vec![rule([without(3, libc::MAP_HUGETLB.cast_unsigned())?])?],
        ),
        (
            libc::SYS_memfd_create,
            vec![rule([without(1, libc::MFD_HUGETLB)?])?],
        ),
        (libc::SYS_shmget, segments(allowance)?),
        (libc::SYS_semget, semaphores(allowance)?),
    ]))
}

/// Huge pages come from a pool that the operator set aside on the whole host for something.
fn segments(allowance: FilterOptions) -> Result<Vec<SeccompRule>, BackendError> {
    let mut conditions = vec![without(2, libc::SHM_HUGETLB.cast_unsigned())?];
    if !allowance.memory_is_counted {
        conditions.push(SeccompCondition::new(
            1,
            SeccompCmpArgLen::Qword,
            SeccompCmpOp::Le,
            SMALL_SEGMENT,
        )?);
    }
    Ok(vec![SeccompRule::new(conditions)?])
}

fn semaphores(allowance: FilterOptions) -> Result<Vec<SeccompRule>, BackendError> {
    let most = if allowance.memory_is_counted {
        u64::from(u32::MAX)
    } else {
        SMALL_SET
    };
    Ok(vec![rule([SeccompCondition::new(
        1,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Le,
        most,
    )?])?])
}

/// Flags of `clone` that make a namespace.
fn no_namespaces() -> Result<Vec<SeccompRule>, BackendError> {
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    Ok(vec![rule([without(0, namespaces.cast_unsigned())?])?])
}

/// Unix sockets, TCP and UDP, and asking the kernel about interfaces. Every other family and
/// protocol is code that nobody here needs.
fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let mut rules = vec![
        rule([is(0, libc::AF_UNIX)?])?,
        rule([is(0, libc::AF_NETLINK)?, is(2, libc::NETLINK_ROUTE)?])?,
    ];
    for family in [libc::AF_INET, libc::AF_INET6] {
        for (kind, protocols) in [
            (libc::SOCK_STREAM, [0, libc::IPPROTO_TCP]),
            (libc::SOCK_DGRAM, [0, libc::IPPROTO_UDP]),
        ] {
            for protocol in protocols {
                let kind = SeccompCondition::new(
                    1,
                    SeccompCmpArgLen::Dword,
                    SeccompCmpOp::MaskedEq(0xf),
                    u64::from(kind.cast_unsigned()),
                )?;
                rules.push(rule([is(0, family)?, kind, is(2, protocol)?])?);
            }
        }
    }
    Ok(rules)
}

/// Typing into a terminal, and line disciplines: old code that only a real console needs. Attributes
/// of files: whoever is no user namespace's could leave the project by which an engine bounds his disk.
fn ioctls() -> Result<Vec<SeccompRule>, BackendError> {
    const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
    const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;
    const REFUSED: [u64; 5] = [
        libc::TIOCSTI,
        libc::TIOCLINUX,
        libc::TIOCSETD,
        FS_IOC_SETFLAGS,
        FS_IOC_FSSETXATTR,
    ];
    let mut conditions = Vec::new();
    for request in REFUSED {
        // The kernel looks at 32 bits; so must we, or the upper ones slip past.
        conditions.push(SeccompCondition::new(
            1,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            request,
        )?);
    }
    Ok(vec![SeccompRule::new(conditions)?])
}

/// Asking, the default, and a debugger's fixed addresses.
fn personalities() -> Result<Vec<SeccompRule>, BackendError> {
    const QUERY: i32 = -1;
    [QUERY, 0, libc::ADDR_NO_RANDOMIZE]
        .into_iter()
        .map(|persona| rule([is(0, persona)?]))
        .collect()
}

fn is(argument: u8, value: i32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(value.cast_unsigned()),
    )
}

/// None of these flags.
fn without(argument: u8, flags: u32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(u64::from(flags)),
        0,
    )
}

fn rule<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into())
}
