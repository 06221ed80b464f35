//! Builds the sandbox around the process it runs in, and then becomes its warden.
//!
//! The order of the steps in [`inside`] is the security argument: everything that needs a power
//! comes before the power is given up, and nothing that is not ours runs before the last of them.

mod guard;
mod identity;
mod landlock;
mod limits;
mod network;
mod proc;
mod seal;
mod snag;
#[allow(unsafe_code, reason = "the system calls that no safe crate wraps")]
mod sys;
mod syscalls;
mod view;
mod warden;

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{DumpableBehavior, set_dumpable_behavior, setsid, umask};
use rustix::thread::UnshareFlags;

use self::snag::{Snag, Step};
use self::sys::clone::{Side, clone_into};
pub use self::sys::doors::knock;
use self::syscalls::Allowance;
use crate::cord::Cord;
use crate::plan::{DOOR, GO, Identity, PORCH, Plan, Report};

/// The gateway hung up before or while the cage was built. Nobody is left to be told.
const ABANDONED: u8 = 75;

/// `--housed` where something else stands around the cage; `--keeper` outside, to end that with it.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let word = words.next();
    match word.as_deref().map(|word| word.to_str()) {
        None => take_cord().map_or(ExitCode::from(64), |cord| tend(&cord)),
        // With nobody at the door there is nothing to live for.
        Some(Some("--housed")) => {
            ask_at_the_door().map_or(ExitCode::from(ABANDONED), |cord| tend(&cord))
        }
        Some(Some("--keeper")) => guard::keep_house(),
        Some(_) => ExitCode::from(64),
    }
}

fn tend(cord: &Cord) -> ExitCode {
    let Ok((plan, fds)) = cord.receive::<Plan>() else {
        return ExitCode::from(ABANDONED);
    };
    let Some(given) = Given::from(fds) else {
        return ExitCode::from(64);
    };
    match build(cord, plan, given) {
        Ok(code) => code,
        Err(snag) => {
            let _ = cord.send(&snag.report(), &[]);
            ExitCode::FAILURE
        }
    }
}

/// Puts the cage's last bars around a process that somebody else caged: no new privileges, and no
/// system calls but those that a sandbox of ours needs.
pub fn filter_calls() -> Result<(), io::Error> {
    rustix::thread::set_no_new_privs(true)?;
    // An engine counts memory by a cgroup of the container.
    let allowance = Allowance {
        pinned: false,
        memory_is_counted: true,
    };
    syscalls::filter(allowance).map_err(Snag::into_error)
}

/// The descriptors that come with the plan.
struct Given {
    listener: OwnedFd,
    first: OwnedFd,
    /// Held by whoever may still make something that would have to be cleaned up.
    lock: OwnedFd,
}

impl Given {
    fn from(fds: Vec<OwnedFd>) -> Option<Self> {
        let [listener, first, lock] = fds.try_into().ok()?;
        Some(Self {
            listener,
            first,
            lock,
        })
    }
}

/// Two processes from here on: one that becomes the sandbox, one that stays outside.
fn build(cord: &Cord, plan: Plan, given: Given) -> Result<ExitCode, Snag> {
    let oom_counter = limits::make_groups(&plan.groups)?;
    match clone_into(namespaces(&plan.identity)).step("make the namespaces")? {
        Side::Outside { pidfd } => {
            drop((given.listener, given.first));
            Ok(guard::outside(cord, &pidfd, &plan, given.lock))
        }
        Side::Inside => become_warden(cord, plan, given, oom_counter),
    }
}

/// The cord arrives as stdin, the one descriptor a plain spawn can hand over.
fn take_cord() -> io::Result<Cord> {
    let cord = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
    sys::fds::close_all_but(&[cord.as_fd()])?;
    Ok(Cord::from_fd(cord))
}

/// In a house nothing is handed over: the gateway waits at a door that was put into it.
fn ask_at_the_door() -> std::io::Result<Cord> {
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    };

    let cord = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    connect(&cord, &SocketAddrUnix::new(Path::new(PORCH).join(DOOR))?)?;
    sys::fds::close_all_but(&[cord.as_fd()])?;
    Ok(Cord::from_fd(cord))
}

/// A plain user needs the user namespace first to be allowed the others.
fn namespaces(identity: &Identity) -> UnshareFlags {
    let all = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWNET;
    match identity {
        Identity::Assumed(_) => all,
        Identity::Own { .. } => all | UnshareFlags::NEWUSER,
    }
}

/// Never back to where two processes were one.
fn become_warden(cord: &Cord, plan: Plan, given: Given, oom_counter: Option<OwnedFd>) -> ! {
    let (landlock, exit) = match inside(&plan) {
        Ok(sealed) => sealed,
        Err(snag) => {
            let _ = cord.send(&snag.report(), &[]);
            std::process::exit(1);
        }
    };
    let ready = Report::Ready { landlock };
    let handed: Vec<_> = exit.iter().map(AsFd::as_fd).collect();
    if cord.send(&ready, &handed).is_err() || !told_to_go(cord) {
        std::process::exit(ABANDONED.into());
    }
    drop(given.lock);
    let kept: Vec<_> = [
        Some(&given.listener),
        Some(&given.first),
        oom_counter.as_ref(),
    ]
    .into_iter()
    .flatten()
    .map(AsFd::as_fd)
    .collect();
    if sys::fds::close_all_but(&kept).is_err() {
        std::process::exit(1);
    }
    let code = warden::serve(plan, given.listener, given.first, oom_counter);
    // The cord's number was closed above and may be somebody else's by now.
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 1 })
}

/// Until the gateway has written down whom it started, its death is ours.
fn told_to_go(cord: &Cord) -> bool {
    let mut word = [0; GO.len()];
    matches!(cord.receive_bytes(&mut word), Ok((length, _)) if &word[..length] == GO)
}

/// Returns the Landlock ABI that holds, and the way out.
fn inside(plan: &Plan) -> Result<(Option<u8>, Option<TcpListener>), Snag> {
    sys::signals::reset();
    setsid().step("start a session")?;
    umask(Mode::from_raw_mode(0o022));
    if let Identity::Own { uid, gid } = plan.identity {
        identity::map_own_user(uid, gid)?;
    }

    // Before anything is made for the sandbox, so that all of it is counted.
    limits::enter_groups(&plan.groups)?;
    limits::hide_groups()?;

    network::name_host()?;
    network::raise_loopback()?;
    let exit = plan.exit.map(network::open_exit).transpose()?;
    view::build(plan)?;
    reopen_standard_streams(plan)?;
    limits::apply(&plan.bounds)?;

    // As root, only now: mounts made by the real root are out of reach of the new user namespace.
    if let Identity::Assumed(id) = plan.identity {
        identity::assume(id)?;
    }
    seal::drop_capabilities()?;
    // Landlock needs no_new_privs, and its own calls before the filter judges calls.
    let ourselves = plan.housed.then_some(Path::new("/proc/self/exe"));
    let landlock = landlock::restrict(&view::writable(plan), ourselves)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("hide the warden's memory")?;
    syscalls::filter(Allowance {
        pinned: plan.bounds.pin.is_some(),
        memory_is_counted: plan.bounds.memory_is_counted,
    })?;
    Ok((landlock, exit))
}

/// The ones inherited belong to the host's `/dev`, but for stderr: that is a pipe on which the gateway
/// hears why this program died. In a house it is the house's.
fn reopen_standard_streams(plan: &Plan) -> Result<(), Snag> {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .step("open /dev/null inside")?;
    rustix::stdio::dup2_stdin(&null).step("replace stdin")?;
    rustix::stdio::dup2_stdout(&null).step("replace stdout")?;
    if plan.housed {
        rustix::stdio::dup2_stderr(&null).step("replace stderr")?;
    }
    Ok(())
}
