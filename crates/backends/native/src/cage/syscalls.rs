//! The system calls a sandbox may make, as data.
//!
//! An allowlist: a call that is not named here fails with EPERM, and one that did not exist when
//! this was written fails with ENOSYS, so that programs fall back to what they used before it.
//! Left out on purpose, because each opened a way out of some sandbox: `io_uring_*`,
//! `userfaultfd`, `bpf`, `perf_event_open`, `keyctl`, `add_key`, `request_key`, `ptrace`,
//! `process_vm_*`, `process_madvise`, `pidfd_getfd`, `kcmp`, the mount family, `pivot_root`,
//! `chroot`, `unshare`, `setns`, `open_by_handle_at`, `name_to_handle_at`, `fanotify_*`,
//! `memfd_secret`, `modify_ldt`, `move_pages`, modules, kexec, quotas, swap, clocks, `syslog`.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};

use super::snag::Snag;
use crate::plan::Pin;

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Who is pinned to a CPU may not leave it.
pub(crate) fn filter(pin: Option<&Pin>) -> Result<(), Snag> {
    let program = program(pin).map_err(|_| broken())?;
    apply_filter(&program).map_err(|_| broken())
}

fn broken() -> Snag {
    Snag::new(
        "load the system call filter",
        std::io::Error::last_os_error(),
    )
}

fn program(pin: Option<&Pin>) -> Result<BpfProgram, seccompiler::BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let judged = SeccompFilter::new(
        judged()?,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        SeccompAction::Allow,
        arch,
    )?;
    let judged: BpfProgram = judged.try_into()?;
    // Jumps are relative, so the judged calls can follow as they are.
    let mut program = known_architecture();
    program.extend(unknown_to_programs());
    program.extend(search(&ranges(allowed(pin))));
    program.extend(judged);
    Ok(program)
}

/// Calls that need no look at their arguments.
fn allowed(pin: Option<&Pin>) -> Vec<c_long> {
    let mut calls = [
        FILES, MEMORY, PROCESSES, SIGNALS, TIME, SOCKETS, IPC, WAITING, SELF,
    ]
    .concat();
    #[cfg(target_arch = "x86_64")]
    calls.extend(OLD_NAMES);
    if pin.is_none() {
        calls.push(libc::SYS_sched_setaffinity);
    }
    calls
}

fn judged() -> Result<Rules, seccompiler::BackendError> {
    Ok(Rules::from([
        (libc::SYS_clone, no_namespaces()?),
        (libc::SYS_socket, sockets()?),
        (libc::SYS_socketpair, vec![rule([is(0, libc::AF_UNIX)?])?]),
        (libc::SYS_ioctl, ioctls()?),
        // Another process's limits are not ours to change, even with the same uid.
        (libc::SYS_prlimit64, vec![rule([is(0, 0)?])?]),
        (libc::SYS_personality, personalities()?),
    ]))
}

/// Neighbouring numbers as one test.
fn ranges(mut calls: Vec<c_long>) -> Vec<(u32, u32)> {
    calls.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for call in calls.into_iter().map(number) {
        match ranges.last_mut() {
            Some((_, last)) if call <= *last + 1 => *last = call,
            _ => ranges.push((call, call)),
        }
    }
    ranges
}

/// Flags of `clone` that make a namespace. `clone3` hides its flags from the filter, so it does
/// not exist here; the C library falls back to `clone`.
fn no_namespaces() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let namespaces = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    let mask = u64::from(namespaces.cast_unsigned());
    Ok(vec![rule([SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(mask),
        0,
    )?])?])
}

/// Unix sockets, TCP and UDP, and asking the kernel about interfaces. Every other family and
/// protocol is code that nobody here needs.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
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

/// Typing into a terminal, and line disciplines: old code that only a real console needs.
fn ioctls() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const REFUSED: [u64; 3] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];
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
fn personalities() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const QUERY: i32 = -1;
    [QUERY, 0, libc::ADDR_NO_RANDOMIZE]
        .into_iter()
        .map(|persona| rule([is(0, persona)?]))
        .collect()
}

fn is(argument: u8, value: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Eq,
        u64::from(value.cast_unsigned()),
    )
}

fn rule<const N: usize>(
    conditions: [SeccompCondition; N],
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.into())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's own numbers are small and positive"
)]
fn number(call: c_long) -> u32 {
    call as u32
}

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_GREATER: u16 = 0x25;
const IF_AT_LEAST: u16 = 0x35;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const KILL: u32 = 0x8000_0000;
/// Where the kernel puts the number and the architecture of a call.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// A call by another architecture's numbers is somebody looking for a gap.
fn known_architecture() -> Vec<sock_filter> {
    vec![
        step(LOAD, 0, 0, ARCHITECTURE),
        step(IF_EQUAL, 1, 0, OURS),
        step(RETURN, 0, 0, KILL),
    ]
}

/// Answers ENOSYS for `clone3` and for every number past the newest one named here, which takes in
/// all the x32 numbers: they have bit 30 set.
fn unknown_to_programs() -> [sock_filter; 4] {
    let [clone3, newest] = [libc::SYS_clone3, NEWEST].map(number);
    [
        step(LOAD, 0, 0, NUMBER),
        step(IF_EQUAL, 1, 0, clone3),
        step(IF_GREATER, 0, 1, newest),
        step(RETURN, 0, 0, ERRNO | libc::ENOSYS.cast_unsigned()),
    ]
}

/// Allows what is in one of the ranges and falls through for the rest.
///
/// By halves: the kernel runs the filter for every call there is when it is loaded, and one test
/// after the other would cost it as much as all the mounts.
fn search(ranges: &[(u32, u32)]) -> Vec<sock_filter> {
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let (Some(_), Some((middle, _))) = (lower.first(), upper.first()) else {
        return ranges
            .iter()
            .flat_map(|&(first, last)| allow(first, last))
            .collect();
    };
    let (below, above) = (search(lower), search(upper));
    let mut steps = match u8::try_from(below.len() + 1) {
        Ok(past) => vec![step(IF_AT_LEAST, past, 0, *middle)],
        // Too far for one jump: searched one after the other.
        Err(_) => return [below, above].concat(),
    };
    let past = u32::try_from(above.len()).expect("a program has a few hundred steps");
    steps.extend(below);
    steps.push(step(JUMP, 0, 0, past));
    steps.extend(above);
    steps
}

fn allow(first: u32, last: u32) -> [sock_filter; 3] {
    [
        step(IF_AT_LEAST, 0, 2, first),
        step(IF_GREATER, 1, 0, last),
        step(RETURN, 0, 0, ALLOW),
    ]
}

/// `mseal`, the newest call that was weighed.
const NEWEST: c_long = 462;

/// Numbers that the C library crate does not name yet; the same on every architecture.
const SYS_CACHESTAT: c_long = 451;
const SYS_FCHMODAT2: c_long = 452;
const SYS_FUTEX_WAKE: c_long = 454;
const SYS_FUTEX_WAIT: c_long = 455;
const SYS_FUTEX_REQUEUE: c_long = 456;

/// Files: Landlock and the mounts decide which.
const FILES: &[c_long] = &[
    libc::SYS_chdir,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_copy_file_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fallocate,
    libc::SYS_fchdir,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fcntl,
    libc::SYS_fdatasync,
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_flock,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getxattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_rm_watch,
    libc::SYS_lgetxattr,
    libc::SYS_linkat,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lseek,
    libc::SYS_lsetxattr,
    libc::SYS_memfd_create,
    libc::SYS_mkdirat,
    // Pipes and sockets; a device takes a capability that is gone.
    libc::SYS_mknodat,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_pipe2,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readahead,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_removexattr,
    libc::SYS_renameat2,
    libc::SYS_sendfile,
    libc::SYS_setxattr,
    libc::SYS_splice,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlinkat,
    libc::SYS_sync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_tee,
    libc::SYS_truncate,
    libc::SYS_umask,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_vmsplice,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Memory of the calling process only.
const MEMORY: &[c_long] = &[
    libc::SYS_brk,
    SYS_CACHESTAT,
    // What allocators and numeric libraries ask and set for themselves.
    libc::SYS_get_mempolicy,
    libc::SYS_madvise,
    libc::SYS_mbind,
    libc::SYS_membarrier,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    NEWEST,
    libc::SYS_msync,
    libc::SYS_munlock,
    libc::SYS_munlockall,
    libc::SYS_munmap,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_set_mempolicy,
];

/// Processes and threads; `clone` is judged by its flags.
const PROCESSES: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_get_robust_list,
    libc::SYS_getpgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getpriority,
    libc::SYS_getrusage,
    libc::SYS_getsid,
    libc::SYS_gettid,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_pidfd_open,
    libc::SYS_prctl,
    libc::SYS_rseq,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getattr,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_rr_get_interval,
    // Real-time classes are out of reach: RLIMIT_RTPRIO is 0.
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_setpgid,
    libc::SYS_setpriority,
    libc::SYS_setsid,
    libc::SYS_wait4,
    libc::SYS_waitid,
];

/// Signals: they end at the pid namespace.
const SIGNALS: &[c_long] = &[
    libc::SYS_kill,
    libc::SYS_pidfd_send_signal,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_sigaltstack,
    libc::SYS_signalfd4,
    libc::SYS_tgkill,
    libc::SYS_tkill,
];

/// Reading clocks and setting timers, never setting a clock.
const TIME: &[c_long] = &[
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getitimer,
    libc::SYS_gettimeofday,
    libc::SYS_nanosleep,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_gettime,
    libc::SYS_timerfd_settime,
    libc::SYS_times,
];

/// Sockets; `socket` and `socketpair` are judged by family.
const SOCKETS: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_listen,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
];

/// System V and POSIX queues, in an IPC namespace of their own.
const IPC: &[c_long] = &[
    libc::SYS_mq_getsetattr,
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
    libc::SYS_shmget,
];

/// Waiting for several things at once.
const WAITING: &[c_long] = &[
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    SYS_FUTEX_WAKE,
    SYS_FUTEX_WAIT,
    SYS_FUTEX_REQUEUE,
    // The old kind of asynchronous I/O, which databases use.
    libc::SYS_io_cancel,
    libc::SYS_io_destroy,
    libc::SYS_io_getevents,
    libc::SYS_io_setup,
    libc::SYS_io_submit,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
];

/// Asking about, and further restricting, oneself.
const SELF: &[c_long] = &[
    libc::SYS_capget,
    // There is nothing left to raise; dropping is what programs do with it.
    libc::SYS_capset,
    libc::SYS_getcpu,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getgroups,
    libc::SYS_getrandom,
    libc::SYS_getresgid,
    libc::SYS_getresuid,
    libc::SYS_getrlimit,
    libc::SYS_getuid,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_restrict_self,
    libc::SYS_seccomp,
    // Only one id is mapped, so these can only confirm it.
    libc::SYS_setfsgid,
    libc::SYS_setfsuid,
    libc::SYS_setgid,
    libc::SYS_setgroups,
    libc::SYS_setregid,
    libc::SYS_setresgid,
    libc::SYS_setresuid,
    libc::SYS_setreuid,
    libc::SYS_setrlimit,
    libc::SYS_setuid,
    libc::SYS_sysinfo,
    libc::SYS_uname,
];

/// What newer architectures dropped: the same acts as above under older names.
#[cfg(target_arch = "x86_64")]
const OLD_NAMES: &[c_long] = &[
    libc::SYS_access,
    libc::SYS_alarm,
    libc::SYS_arch_prctl,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_creat,
    libc::SYS_dup2,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_fork,
    libc::SYS_futimesat,
    libc::SYS_getdents,
    libc::SYS_getpgrp,
    libc::SYS_inotify_init,
    libc::SYS_lchown,
    libc::SYS_link,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_mknod,
    libc::SYS_open,
    libc::SYS_pause,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_rmdir,
    libc::SYS_select,
    libc::SYS_signalfd,
    libc::SYS_stat,
    libc::SYS_symlink,
    libc::SYS_time,
    libc::SYS_unlink,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_vfork,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_range_and_strangers_do_not() {
        assert_eq!(ranges(vec![5, 1, 2, 3, 7, 8]), [(1, 3), (5, 5), (7, 8)]);
    }

    /// What the kernel does with the few steps that `search` makes.
    fn allows(program: &[sock_filter], call: u32) -> bool {
        let mut at = 0;
        while let Some(step) = program.get(at) {
            let jump = |yes: bool| usize::from(if yes { step.jt } else { step.jf });
            at += 1 + match step.code {
                IF_AT_LEAST => jump(call >= step.k),
                IF_GREATER => jump(call > step.k),
                JUMP => step.k as usize,
                RETURN => return step.k == ALLOW,
                other => panic!("step {other:#x}"),
            };
        }
        assert_eq!(at, program.len(), "fell out of the program");
        false
    }

    #[test]
    fn the_search_allows_what_is_in_a_range_and_nothing_else() {
        let many: Vec<(u32, u32)> = (0..70).map(|n| (n * 7 + 1, n * 7 + 1 + n % 5)).collect();
        for count in [0, 1, 2, 3, 5, 70] {
            let ranges = &many[..count];
            let program = search(ranges);
            for call in 0..600 {
                let expected = ranges
                    .iter()
                    .any(|&(first, last)| (first..=last).contains(&call));
                assert_eq!(allows(&program, call), expected, "{call} of {count} ranges");
            }
        }
    }

    #[test]
    fn what_is_judged_is_not_allowed_unseen() {
        let allowed = allowed(None);
        for call in judged().unwrap().keys() {
            assert!(!allowed.contains(call), "{call}");
        }
    }
}
