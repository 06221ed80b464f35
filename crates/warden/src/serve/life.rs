//! From start to end of a warden.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::pin::pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::{Instant, sleep, sleep_until};

use super::state::WardenState;
use super::sys::{ArrivedSignal, SignalReader, uncatch_signals, watch_signals};
use super::{CreatorLink, ServeConfig, client, tree};
use crate::sys::{keep_freed_frames, let_go_of_startup_code};

/// What the kernel calls this process; it has room for fifteen letters.
const NAME: &std::ffi::CStr = c"hermetic-warden";

/// When a warden is taken to have started. Long enough for the first command, which needs much of the
/// same code: letting go of it sooner would only have it mapped twice.
const STARTED: Duration = Duration::from_secs(1);

/// sysexits(3): the system would not let us.
const OS_ERROR: u8 = 71;

/// Serves until the lifetime is over, the creator is gone (if tied) or SIGTERM arrives; then ends
/// every process that was started here.
pub fn serve(config: ServeConfig) -> ExitCode {
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever started this reads it where no greeting came.
            let _ = writeln!(io::stderr(), "the warden cannot serve: {error}");
            ExitCode::from(OS_ERROR)
        }
    }
}

fn run(config: ServeConfig) -> io::Result<()> {
    // First of all: what is opened next would get a number below 3, and a command would have it as
    // its stdin.
    occupy_standard_descriptors()?;
    uncatch_signals();
    // Processes of the same user must not trace us, read our memory or open our descriptors.
    // Commands get a fresh, dumpable image by exec.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // By which a program that it runs can know whose it is: nothing else of us can be read now.
    rustix::thread::set_name(NAME)?;
    // Below pid 1 every orphan comes to us anyway.
    if !config.is_init {
        set_child_subreaper(Some(rustix::process::getpid()))?;
    }
    keep_freed_frames();
    // Blocked from here on: a SIGTERM during the start is read later, and ends nobody who has yet
    // to tidy up.
    let signals = SignalReader::take_over()?;
    // One thread, because commands are started by `fork`: a second one could hold a lock that the
    // child then never gets.
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    LocalSet::new().block_on(&runtime, live(config, signals))
}

async fn live(config: ServeConfig, signals: SignalReader) -> io::Result<()> {
    let ServeConfig {
        listener, first, ..
    } = config;
    let listener = into_listener(listener)?;
    let (warden, reports) =
        WardenState::new(config.env, config.cwd, config.is_init, config.oom_counter)?;
    let warden = Rc::new(warden);

    // These run before anything can be asked for: a child that ends at once is still heard.
    spawn_local(Rc::clone(&warden).read_reports(reports));
    spawn_local(wait_for_signals(Rc::clone(&warden), signals));
    spawn_local(Rc::clone(&warden).expire(config.lifetime));
    spawn_local(async {
        sleep(STARTED).await;
        let_go_of_startup_code();
    });
    let had_first = first.is_some();
    match first {
        Some(CreatorLink::Socket(socket)) => {
            let stream = into_stream(socket)?;
            spawn_local(tend(Rc::clone(&warden), stream, config.tied));
        }
        Some(CreatorLink::Pipes { from, to }) => {
            // A read that fills its buffer is followed by another, and there may be nothing more: where it
            // blocks, everything here stands still until the gateway says something.
            rustix::io::ioctl_fionbio(&from, true)?;
            rustix::io::ioctl_fionbio(&to, true)?;
            let from = pipe::Receiver::from_owned_fd_unchecked(from)?;
            let to = pipe::Sender::from_owned_fd_unchecked(to)?;
            let stream = tokio::io::join(from, to);
            spawn_local(tend(Rc::clone(&warden), stream, config.tied));
        }
        None => {}
    }
    // Where nobody was there from the beginning, the first who comes is the one whose leaving ends
    // it.
    let tie = config.tied && !had_first;
    spawn_local(accept(Rc::clone(&warden), listener, tie));

    warden.stopped().await;
    // Links end first: that something was killed because all of it ends is no result of a command.
    yield_now().await;
    end_everything(&warden).await;
    Ok(())
}

async fn tend(warden: Rc<WardenState>, stream: impl AsyncRead + AsyncWrite + Unpin, tied: bool) {
    let tended = pin!(client::tend(Rc::clone(&warden), stream));
    let stopped = pin!(warden.stopped());
    futures::future::select(tended, stopped).await;
    if tied {
        warden.stop();
    }
}

async fn accept(warden: Rc<WardenState>, listener: UnixListener, mut tie: bool) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                spawn_local(tend(Rc::clone(&warden), stream, std::mem::take(&mut tie)));
            }
            // Out of descriptors or memory: those who are here go first.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn wait_for_signals(warden: Rc<WardenState>, signals: SignalReader) {
    let Ok(signals) = watch_signals(signals) else {
        return warden.stop();
    };
    loop {
        let Ok(mut ready) = signals.readable().await else {
            return warden.stop();
        };
        match ready.try_io(|signals| signals.get_ref().read()) {
            Ok(Ok(ArrivedSignal::ChildChanged)) => warden.reap(),
            Ok(Ok(ArrivedSignal::AskedToStop)) => warden.stop(),
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

impl WardenState {
    /// Stops the warden when nobody was connected and nothing asked for `lifetime`.
    async fn expire(self: Rc<Self>, lifetime: Duration) {
        loop {
            let idle_since = self.idle_since().unwrap_or_else(Instant::now);
            let Some(deadline) = idle_since.checked_add(lifetime) else {
                return;
            };
            if Instant::now() >= deadline {
                return self.stop();
            }
            sleep_until(deadline).await;
        }
    }
}

/// Below pid 1 the kernel ends what is left; elsewhere nothing may be.
async fn end_everything(warden: &WardenState) {
    let own = std::process::id();
    let deadline = Instant::now() + Duration::from_secs(10);
    // What hangs below keepers first: a keeper that is killed hands its children to us, where they
    // would have to be found again.
    let keepers = warden.keepers();
    while Instant::now() < deadline {
        let mut any = false;
        for keeper in &keepers {
            any |= tree::sweep(*keeper, &Default::default());
        }
        if !any {
            break;
        }
        sleep(Duration::from_millis(1)).await;
    }
    // Keepers that were stopped or replaced, and orphans of those that were killed.
    while tree::sweep(own, &Default::default()) && Instant::now() < deadline {
        warden.reap();
        sleep(Duration::from_millis(1)).await;
    }
}

/// Pipes must never get the numbers 0, 1 and 2.
fn occupy_standard_descriptors() -> io::Result<()> {
    loop {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())?;
        if std::os::fd::AsRawFd::as_raw_fd(&null) > 2 {
            return Ok(());
        }
        // Stays open for good.
        let _ = std::os::fd::IntoRawFd::into_raw_fd(null);
    }
}

fn into_listener(fd: OwnedFd) -> io::Result<UnixListener> {
    let listener = StdListener::from(fd);
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

fn into_stream(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
