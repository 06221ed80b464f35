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
mod step_failure;
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

use self::step_failure::{FailingStep, StepFailure};
use self::sys::clone::{CloneSide, clone_into};
pub use self::sys::doors::knock;
use self::syscalls::FilterOptions;
use crate::control_socket::ControlSocket;
use crate::plan::{CAGE_LISTENER, CONTROL_DIR, CagePlan, CageReport, GO, SandboxIdentity};

/// The gateway hung up before or while the cage was built. Nobody is left to be told.
const ABANDONED: u8 = 75;

/// Runs the cage. `--housed` tells that it stands in an outer container, and `--keeper`, outside, that it is
/// to end such a container with its cage.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let word = words.next();
    match word.as_deref().map(|word| word.to_str()) {
        None => take_control_socket().map_or(ExitCode::from(64), |control| {
            run(&control, make_network_early())
        }),
        // A cage that cannot reach its gateway has nothing to build.
        Some(Some("--housed")) => {
            let control = connect_to_gateway();
            control.map_or(ExitCode::from(ABANDONED), |control| {
                run(&control, UnshareFlags::empty())
            })
        }
        Some(Some("--keeper")) => guard::keep_container(),
        Some(_) => ExitCode::from(64),
    }
}

/// Makes the network of a sandbox before it is known which one it will be: of all its namespaces this one takes
/// the kernel longest, and a cage that was started early has the time. Returns what was made. Only root may
/// before there is a user namespace; for others it is made with the rest.
fn make_network_early() -> UnshareFlags {
    match sys::clone::unshare(UnshareFlags::NEWNET) {
        Ok(()) => UnshareFlags::NEWNET,
        Err(_) => UnshareFlags::empty(),
    }
}

fn run(control: &ControlSocket, made: UnshareFlags) -> ExitCode {
    let Ok((plan, fds)) = control.receive::<CagePlan>() else {
        return ExitCode::from(ABANDONED);
    };
    let Some(given) = PassedDescriptors::from(fds) else {
        return ExitCode::from(64);
    };
    match build(control, plan, given, made) {
        Ok(code) => code,
        Err(failure) => {
            let _ = control.send(&failure.report(), &[]);
            ExitCode::FAILURE
        }
    }
}

/// Puts the cage's last bars around a process that somebody else caged: no new privileges, and no
/// system calls but those that a sandbox of ours needs.
pub fn filter_calls() -> Result<(), io::Error> {
    rustix::thread::set_no_new_privs(true)?;
    // An engine counts memory by a cgroup of the container.
    let allowance = FilterOptions {
        pinned: false,
        memory_is_counted: true,
    };
    syscalls::filter(allowance).map_err(StepFailure::into_error)
}

/// Bounds the number and the size of files that a process of somebody else's cage, and whatever it starts, may
/// open and write, and leaves no core behind.
pub fn limit_files(open: u64, bytes: u64) -> Result<(), io::Error> {
    limits::files(open, bytes).map_err(StepFailure::into_error)
}

/// The descriptors that come with the plan.
struct PassedDescriptors {
    listener: OwnedFd,
    first: OwnedFd,
    /// Held by whoever may still make something that would have to be cleaned up.
    lock: OwnedFd,
}

impl PassedDescriptors {
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
fn build(
    control: &ControlSocket,
    plan: CagePlan,
    given: PassedDescriptors,
    made: UnshareFlags,
) -> Result<ExitCode, StepFailure> {
    let oom_counter = limits::make_groups(&plan.groups)?;
    // A clone, and not `unshare`: a new pid namespace takes in only the children of whoever makes
    // it, and the warden is to be its first process.
    match clone_into(namespaces(&plan.identity, made)).step("make the namespaces")? {
        CloneSide::Outside { pidfd } => {
            // Held here too, the link would not close when the sandbox dies, and the gateway would
            // wait for it in vain.
            drop((given.listener, given.first));
            Ok(guard::outside(control, &pidfd, &plan, given.lock))
        }
        CloneSide::Inside => become_warden(control, plan, given, oom_counter),
    }
}

/// The control socket arrives as stdin, the one descriptor a plain spawn can hand over.
fn take_control_socket() -> io::Result<ControlSocket> {
    // Away from stdin, which whatever is executed later would inherit.
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
    // Whatever else a careless parent left open must not get into the cage: a folder of the host
    // held open is a way out.
    sys::fds::close_all_but(&[control.as_fd()])?;
    Ok(ControlSocket::from_fd(control))
}

/// Connects to the gateway from within an outer container, which hands nothing over: the gateway listens on a
/// socket that was put into it.
fn connect_to_gateway() -> std::io::Result<ControlSocket> {
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    };

    let control = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    connect(
        &control,
        &SocketAddrUnix::new(Path::new(CONTROL_DIR).join(CAGE_LISTENER))?,
    )?;
    sys::fds::close_all_but(&[control.as_fd()])?;
    Ok(ControlSocket::from_fd(control))
}

/// A plain user needs the user namespace first to be allowed the others, and one that was made before belongs to
/// the user namespace of the host, where nothing could be set up in it.
fn namespaces(identity: &SandboxIdentity, made: UnshareFlags) -> UnshareFlags {
    let all = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWNET;
    match identity {
        SandboxIdentity::Assumed(_) => all.difference(made),
        SandboxIdentity::Own { .. } => all | UnshareFlags::NEWUSER,
    }
}

/// Never back to where two processes were one.
fn become_warden(
    control: &ControlSocket,
    plan: CagePlan,
    given: PassedDescriptors,
    oom_counter: Option<OwnedFd>,
) -> ! {
    let (landlock, exit) = match inside(&plan) {
        Ok(sealed) => sealed,
        Err(failure) => {
            let _ = control.send(&failure.report(), &[]);
            std::process::exit(1);
        }
    };
    let ready = CageReport::Ready { landlock };
    let handed: Vec<_> = exit.iter().map(AsFd::as_fd).collect();
    // Confirmed only now: `Ready` promises that nothing can be undone any more, and the gateway
    // hands out the link by it.
    if control.send(&ready, &handed).is_err() || !told_to_go(control) {
        std::process::exit(ABANDONED.into());
    }
    // Kept until the gateway has it in writing: till then cleaning up may not begin behind our
    // back.
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
    // After the seal the last way to the host is a descriptor: nothing stays but what the warden
    // serves with.
    if sys::fds::close_all_but(&kept).is_err() {
        std::process::exit(1);
    }
    let code = warden::serve(plan, given.listener, given.first, oom_counter);
    // The control socket's number was closed above and may be somebody else's by now.
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 1 })
}

/// Until the gateway has written down whom it started, its death is ours.
fn told_to_go(control: &ControlSocket) -> bool {
    let mut word = [0; GO.len()];
    matches!(control.receive_bytes(&mut word), Ok((length, _)) if &word[..length] == GO)
}

/// Returns the Landlock ABI that holds, and the way out.
fn inside(plan: &CagePlan) -> Result<(Option<u8>, Option<TcpListener>), StepFailure> {
    sys::signals::reset();
    // Out of the gateway's session: its terminal's signals, and its terminal, are not the
    // sandbox's.
    setsid().step("start a session")?;
    umask(Mode::from_raw_mode(0o022));
    // Before anything else: until its ids are mapped, a plain user owns nothing here and may set
    // nothing up.
    if let SandboxIdentity::Own { uid, gid } = plan.identity {
        identity::map_own_user(uid, gid)?;
    }

    // Before anything is made for the sandbox, so that all of it is counted.
    limits::enter_groups(&plan.groups)?;
    limits::hide_groups()?;

    // These need the power over the namespaces just made, which goes with the capabilities below.
    network::name_host()?;
    network::raise_loopback()?;
    // Listens before anything of the sandbox's runs, which could otherwise take the port and pose
    // as the way out.
    let exit = plan.exit.map(network::open_exit).transpose()?;
    view::build(plan)?;
    // After the view, for its `/dev/null`; before the seal, as the old ones are descriptors of the
    // host's.
    reopen_standard_streams(plan)?;
    limits::apply(&plan.bounds)?;

    // As root, only now: mounts made by the real root are out of reach of the new user namespace.
    if let SandboxIdentity::Assumed(id) = plan.identity {
        identity::assume(id)?;
    }
    // After the identity: a new user namespace gives whoever makes it every capability in it, and
    // all of them go here.
    seal::drop_capabilities()?;
    // Landlock needs no_new_privs, and its own calls before the filter judges calls.
    let ourselves = plan.program_is_file.then_some(Path::new("/proc/self/exe"));
    let landlock = landlock::restrict(&view::writable(plan), ourselves)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).step("hide the warden's memory")?;
    // The last: several of the calls above are refused by it from here on.
    syscalls::filter(FilterOptions {
        pinned: plan.bounds.pin.is_some(),
        memory_is_counted: plan.bounds.memory_is_counted,
    })?;
    Ok((landlock, exit))
}

/// The ones inherited belong to the host's `/dev`, but for stderr: that is a pipe on which the gateway
/// hears why this program died. In an outer container it is the outer container's.
fn reopen_standard_streams(plan: &CagePlan) -> Result<(), StepFailure> {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .step("open /dev/null inside")?;
    rustix::stdio::dup2_stdin(&null).step("replace stdin")?;
    rustix::stdio::dup2_stdout(&null).step("replace stdout")?;
    if plan.in_container {
        rustix::stdio::dup2_stderr(&null).step("replace stderr")?;
    }
    Ok(())
}
