//! The calls that need no look at their arguments.

use libc::c_long;

use super::FilterOptions;

pub(super) fn allowed(allowance: FilterOptions) -> Vec<c_long> {
    let mut calls = [
        FILES, MEMORY, PROCESSES, SIGNALS, TIME, SOCKETS, IPC, WAITING, SELF,
    ]
    .concat();
    #[cfg(target_arch = "x86_64")]
    calls.extend(OLD_NAMES);
    if !allowance.pinned {
        calls.push(libc::SYS_sched_setaffinity);
    }
    if allowance.memory_is_counted {
        calls.extend(MESSAGE_QUEUES);
    }
    calls
}

/// Calls that a program finds missing, as on a kernel built without them, and does without.
pub(super) const ABSENT: [c_long; 2] = [
    // Its flags cannot be seen by a filter; the C library falls back to `clone`.
    libc::SYS_clone3,
    // The old kind of asynchronous I/O: what it may hold is one number for the whole host
    // (`fs.aio-max-nr`). Databases fall back to threads.
    libc::SYS_io_setup,
];

/// `mseal`, the newest call that was weighed.
pub(super) const NEWEST: c_long = 462;
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
    // What the C library's `rename` is on aarch64.
    libc::SYS_renameat,
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

/// System V and POSIX IPC, in a namespace of their own; `shmget` and `semget` are judged by size.
const IPC: &[c_long] = &[
    libc::SYS_mq_getsetattr,
    libc::SYS_mq_notify,
    libc::SYS_mq_open,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_unlink,
    libc::SYS_semctl,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmdt,
];

/// System V queues: by the kernel's defaults they hold half a gigabyte for each namespace.
const MESSAGE_QUEUES: &[c_long] = &[
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
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
    use super::super::generic_table::NAMES;

    const SOURCE: &str = include_str!("calls.rs");
    const OLD: &str = concat!("const OLD_", "NAMES");

    fn names(source: &str) -> impl Iterator<Item = &str> {
        let named = source.split("libc::SYS_").skip(1);
        named.filter_map(|rest| {
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
        })
    }

    fn is_generic(name: &str) -> bool {
        NAMES.split_whitespace().any(|generic| generic == name)
    }

    fn tables() -> (&'static str, &'static str) {
        let (shared, rest) = SOURCE.split_once(OLD).expect("the table has this name");
        let end = rest.find("];").expect("the table has an end");
        (shared, &rest[..end])
    }

    #[test]
    fn what_every_architecture_is_allowed_exists_on_aarch64() {
        let (shared, _) = tables();
        let missing: Vec<_> = names(shared).filter(|name| !is_generic(name)).collect();
        assert!(
            names(shared).count() > 200 && missing.is_empty(),
            "{missing:?}"
        );
    }

    /// One of these is refused on aarch64, where the C library may know the act by no other name.
    #[test]
    fn what_only_x86_is_allowed_does_not_exist_on_aarch64() {
        let (_, old) = tables();
        let kept: Vec<_> = names(old).filter(|name| is_generic(name)).collect();
        assert!(names(old).count() > 30 && kept.is_empty(), "{kept:?}");
    }
}
