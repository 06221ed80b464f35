//! The keeper: a small process above each command.
//!
//! It is a child subreaper, so whatever a command starts stays below it, also after a double fork
//! and `setsid`, and a kill finds all of it. It waits for everything below, tells the warden when
//! the command itself ended and with what usage, and goes when nothing is left: "the keeper is
//! gone" means "the tree is gone".
//!
//! Price: one `fork` of a two-megabyte process for each command. The command itself is started from
//! the keeper without copying memory again (`CLONE_VM | CLONE_VFORK`, as `posix_spawn` does). A
//! subreaper *within* the command's own process would be cheaper and would change what `wait` means
//! to it; a cgroup for each command would be stronger and is not to be had everywhere.
//!
//! Everything is prepared before the fork. After it, nothing here allocates, locks or panics.

use std::ffi::CString;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_char, c_int, c_void};

/// What to start, ready to be used by code that must not allocate.
pub(crate) struct StartPlan<'a> {
    /// Tells this start from any other in what the keeper reports.
    pub(crate) slot: u64,
    /// Where [`KeeperReport`]s go.
    pub(crate) report: BorrowedFd<'a>,
    /// The program, and where else to look for it, in order.
    pub(crate) programs: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) cwd: CString,
    /// Which descriptor becomes which number in the command. 0, 1 and 2 are among them.
    pub(crate) descriptors: Vec<(BorrowedFd<'a>, RawFd)>,
    /// Descriptor 0 is a terminal and becomes the controlling one.
    pub(crate) terminal: bool,
    /// Whether the kernel ends us with our parent anyway, as it does below pid 1.
    pub(crate) below_init: bool,
}

/// One message from a keeper, written whole.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeeperReport {
    pub(crate) slot: u64,
    /// 0 started, 1 not started, 2 ended.
    pub(crate) kind: u32,
    /// Started: the command's pid. Not started: the [`StartStage`]. Ended: whether others are left.
    pub(crate) detail: u32,
    /// Not started: errno. Ended: the wait status.
    pub(crate) status: i32,
    pub(crate) _pad: u32,
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    pub(crate) max_rss_kib: u64,
}

/// Where starting a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum StartStage {
    Clone = 1,
    Terminal = 2,
    Descriptors = 3,
    WorkingDirectory = 4,
    Exec = 5,
}

impl KeeperReport {
    pub(crate) const SIZE: usize = size_of::<Self>();

    pub(crate) fn from_bytes(bytes: &[u8; Self::SIZE]) -> Self {
        // SAFETY: `KeeperReport` is plain integers without padding, so any bytes are one.
        unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) }
    }
}

impl StartStage {
    pub(crate) fn from_number(number: u32) -> Self {
        match number {
            2 => Self::Terminal,
            3 => Self::Descriptors,
            4 => Self::WorkingDirectory,
            5 => Self::Exec,
            _ => Self::Clone,
        }
    }
}

/// Forks a keeper and returns its pid. Everything else arrives as [`KeeperReport`]s.
pub(crate) fn start(plan: &StartPlan<'_>) -> io::Result<i32> {
    let prepared = PreparedStart::new(plan);
    // Before the fork, which copies it: the keeper asks by it whether its parent is still us.
    WARDEN.store(std::process::id().cast_signed(), Ordering::Relaxed);
    // SAFETY: the warden has one thread, so the child may do anything; it goes straight to `keep`,
    // which never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => keep(&prepared),
        pid => Ok(pid),
    }
}

/// The plan as pointers.
struct PreparedStart {
    slot: u64,
    report: RawFd,
    programs: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    cwd: *const c_char,
    descriptors: Vec<(RawFd, RawFd)>,
    /// Descriptors to keep open until the command has them, in order.
    needed: Vec<RawFd>,
    terminal: bool,
    below_init: bool,
}

impl PreparedStart {
    fn new(plan: &StartPlan<'_>) -> Self {
        let pointers = |words: &[CString]| -> Vec<*const c_char> {
            words
                .iter()
                .map(|word| word.as_ptr())
                .chain([ptr::null()])
                .collect()
        };
        let report = plan.report.as_raw_fd();
        let descriptors: Vec<_> = plan
            .descriptors
            .iter()
            .map(|(fd, number)| (fd.as_raw_fd(), *number))
            .collect();
        let mut needed: Vec<RawFd> = descriptors.iter().map(|(fd, _)| *fd).collect();
        needed.push(report);
        needed.sort_unstable();
        needed.dedup();
        Self {
            slot: plan.slot,
            report,
            programs: plan.programs.iter().map(|path| path.as_ptr()).collect(),
            argv: pointers(&plan.argv),
            env: pointers(&plan.env),
            cwd: plan.cwd.as_ptr(),
            descriptors,
            needed,
            terminal: plan.terminal,
            below_init: plan.below_init,
        }
    }
}

/// Shared between the keeper and the command's process until that one execs.
struct StartAttempt<'a> {
    prepared: &'a PreparedStart,
    stage: u32,
    errno: c_int,
}

fn keep(prepared: &PreparedStart) -> ! {
    // SAFETY: plain system calls on values prepared before the fork. The clone shares our memory
    // and suspends us until the child has exec'ed or exited, so `attempt` and `stack` outlive it.
    unsafe {
        close_all_but(&prepared.needed);
        // What the warden says before it dies goes to the gateway alone.
        libc::dup2(0, 2);
        // Before the command exists, so that nothing it starts can get past us.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        // Masked before the command runs: it is of the same user and may send us anything.
        mask_all_but_hangup();
        if !prepared.below_init {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGHUP, 0, 0, 0);
            // The parent may have died before the kernel was asked to tell; then nobody tells.
            if libc::getppid() != WARDEN.load(Ordering::Relaxed) {
                libc::_exit(0);
            }
        }
        // Here and not in the command: it is inherited, and may not be lowered again without a
        // capability.
        volunteer_for_oom();

        let mut attempt = StartAttempt {
            prepared,
            stage: 0,
            errno: 0,
        };
        let mut stack = MaybeUninit::<[u128; 1024]>::uninit();
        let top = stack.as_mut_ptr().add(1).cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let main = libc::clone(command, top, flags, (&raw mut attempt).cast());
        let errno = if main < 0 {
            *libc::__errno_location()
        } else {
            0
        };

        // The command has its own by now. A pipe that we held would not end with it.
        close_all_but(&[prepared.report]);
        // Written by the child in our memory, behind the compiler's back.
        let stage = ptr::read_volatile(&raw const attempt.stage);
        if main < 0 || stage != 0 {
            tell(
                prepared,
                KeeperReport {
                    kind: 1,
                    detail: if main < 0 {
                        StartStage::Clone as u32
                    } else {
                        stage
                    },
                    status: if main < 0 { errno } else { attempt.errno },
                    ..KeeperReport::default()
                },
            );
            wait_for_the_rest(prepared, -1);
        }
        tell(
            prepared,
            KeeperReport {
                detail: main.unsigned_abs(),
                ..KeeperReport::default()
            },
        );
        wait_for_the_rest(prepared, main)
    }
}

/// Becomes the command. Runs in the keeper's memory, on its own stack.
extern "C" fn command(attempt: *mut c_void) -> c_int {
    // SAFETY: `attempt` is the keeper's, which is suspended meanwhile; only system calls follow.
    unsafe {
        let attempt = &mut *attempt.cast::<StartAttempt<'_>>();
        let prepared = attempt.prepared;
        let mut fail = |stage: StartStage| -> c_int {
            attempt.errno = *libc::__errno_location();
            attempt.stage = stage as u32;
            // Not `exit`: the handlers and buffers are the keeper's, whose memory this is.
            libc::_exit(127)
        };

        libc::setsid();
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGHUP, libc::SIG_DFL);
        if place_descriptors(&prepared.descriptors) != 0 {
            return fail(StartStage::Descriptors);
        }
        if prepared.terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
            return fail(StartStage::Terminal);
        }
        if libc::chdir(prepared.cwd) != 0 {
            return fail(StartStage::WorkingDirectory);
        }
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        // Unmasked last: a signal before the exec would run the keeper's handler in the keeper's
        // memory.
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        let mut errno = libc::ENOENT;
        for program in &prepared.programs {
            libc::execve(*program, prepared.argv.as_ptr(), prepared.env.as_ptr());
            match *libc::__errno_location() {
                libc::ENOENT | libc::ENOTDIR => {}
                // Found, and not ours to run; another folder may have one that is.
                libc::EACCES => errno = libc::EACCES,
                other => {
                    errno = other;
                    break;
                }
            }
        }
        *libc::__errno_location() = errno;
        fail(StartStage::Exec)
    }
}

/// Moves each descriptor to its number, by way of numbers that no target uses.
unsafe fn place_descriptors(descriptors: &[(RawFd, RawFd)]) -> c_int {
    // SAFETY: descriptor calls on our own table, which the clone did not share.
    unsafe {
        let mut aside = [0; 8];
        if descriptors.len() > aside.len() {
            *libc::__errno_location() = libc::EINVAL;
            return -1;
        }
        for (place, (fd, _)) in aside.iter_mut().zip(descriptors) {
            *place = libc::fcntl(*fd, libc::F_DUPFD_CLOEXEC, 70);
            if *place < 0 {
                return -1;
            }
        }
        // Everything of ours below the copies. These are closed by the exec.
        libc::close_range(3, 69, 0);
        for (place, (_, number)) in aside.iter().zip(descriptors) {
            if libc::dup2(*place, *number) < 0 {
                return -1;
            }
        }
        0
    }
}

/// Reaps until nothing is left, then exits.
unsafe fn wait_for_the_rest(prepared: &PreparedStart, main: i32) -> ! {
    // SAFETY: wait4 fills in what it is given; everything else is plain system calls.
    unsafe {
        loop {
            let mut status = 0;
            let mut usage = MaybeUninit::<libc::rusage>::zeroed();
            let pid = libc::wait4(-1, &raw mut status, 0, usage.as_mut_ptr());
            if pid == main && main > 0 {
                let usage = usage.assume_init();
                // Those that are dead already are none that it left behind.
                let others = reap_the_dead();
                tell(
                    prepared,
                    KeeperReport {
                        kind: 2,
                        detail: u32::from(others),
                        status,
                        user_us: micros(usage.ru_utime),
                        system_us: micros(usage.ru_stime),
                        max_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
                        ..KeeperReport::default()
                    },
                );
                if !others {
                    libc::_exit(0);
                }
            } else if pid < 0 && *libc::__errno_location() == libc::ECHILD {
                libc::_exit(0);
            }
        }
    }
}

/// Whether anybody is left.
unsafe fn reap_the_dead() -> bool {
    loop {
        // SAFETY: nothing is asked back but the pid.
        let pid = unsafe { libc::wait4(-1, ptr::null_mut(), libc::WNOHANG, ptr::null_mut()) };
        if pid <= 0 {
            return pid == 0;
        }
    }
}

unsafe fn tell(prepared: &PreparedStart, mut record: KeeperReport) {
    record.slot = prepared.slot;
    // SAFETY: a record is plain bytes, shorter than PIPE_BUF and so written whole.
    unsafe {
        libc::write(
            prepared.report,
            (&raw const record).cast(),
            KeeperReport::SIZE,
        );
    }
}

fn micros(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}

/// `needed` is sorted. The standard three stay: they are `/dev/null`.
unsafe fn close_all_but(needed: &[RawFd]) {
    let mut from = 3;
    for fd in needed {
        let fd = fd.unsigned_abs();
        if fd > from {
            // SAFETY: none of these numbers is used by this process from here on.
            unsafe { libc::close_range(from, fd - 1, 0) };
        }
        from = from.max(fd + 1);
    }
    // SAFETY: as above.
    unsafe { libc::close_range(from, u32::MAX, 0) };
}

/// The warden's death must not leave a tree behind: the keeper then ends it.
unsafe fn mask_all_but_hangup() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises the set. The handler may do what it likes: the one thread it
    // can interrupt sits in a system call or between two, never within malloc or a lock.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        libc::sigdelset(set.as_mut_ptr(), libc::SIGHUP);
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), ptr::null_mut());
        libc::signal(libc::SIGHUP, orphaned as *const () as libc::sighandler_t);
    }
}

extern "C" fn orphaned(_signal: c_int) {
    // SAFETY: getppid cannot fail.
    if unsafe { libc::getppid() } == WARDEN.load(Ordering::Relaxed) {
        return;
    }
    crate::serve::tree::end_below(std::process::id());
    // SAFETY: never returns.
    unsafe { libc::_exit(0) };
}

/// Whose death matters; anybody can send a SIGHUP.
static WARDEN: AtomicI32 = AtomicI32::new(0);

/// When memory runs out the kernel takes the highest score: commands before the warden.
unsafe fn volunteer_for_oom() {
    // SAFETY: constant strings; a failure to open or write leaves things as they were.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_CLOEXEC;
        let fd = libc::open(c"/proc/self/oom_score_adj".as_ptr(), flags);
        if fd >= 0 {
            libc::write(fd, b"700".as_ptr().cast(), 3);
            libc::close(fd);
        }
    }
}
