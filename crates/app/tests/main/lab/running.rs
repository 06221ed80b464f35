//! A gateway on a thread of its own.
//!
//! The thread has one runtime, and all that the gateway does happens there: dropping it ends everything
//! at once, as a crash does, and its clock can be moved without that of the test.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hermetic_app::Surroundings;
use hermetic_config::Config;
use hermetic_gateway::{GatewayCondition, GatewayStage, serve};
use hermetic_testkit::clock::ManualClock;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Time passes in so many steps, and whoever it wakes works in between.
const STEPS: u32 = 20;

pub(super) struct Running {
    pub(super) health: SocketAddr,
    pub(super) intakes: Vec<SocketAddr>,
    handle: Handle,
    stop: CancellationToken,
    crash: CancellationToken,
    thread: JoinHandle<()>,
    state: watch::Receiver<State>,
    pub(super) countdown: Countdown,
}

/// Ends a gateway at its n-th wait. Its one thread waits wherever it has handed something to the disk, to
/// a platform or to the model, and between two waits nothing is written and nothing leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Countdown(Arc<Waits>);

#[derive(Debug, Default)]
struct Waits {
    waited: AtomicU64,
    /// It dies when it has waited so often; never, if this is 0.
    last: AtomicU64,
    crash: CancellationToken,
}

impl Countdown {
    /// How often it has waited.
    pub(super) fn waited(&self) -> u64 {
        self.0.waited.load(Ordering::SeqCst)
    }

    /// It dies when it has waited so often from now on.
    pub(super) fn end_after(&self, waits: u64) {
        self.0.last.store(self.waited() + waits, Ordering::SeqCst);
    }

    fn note_wait(&self) {
        let waited = self.0.waited.fetch_add(1, Ordering::SeqCst) + 1;
        let last = self.0.last.load(Ordering::SeqCst);
        if last != 0 && waited >= last {
            // The runtime polls whoever waits for this next, before any task.
            self.0.crash.cancel();
        }
    }
}

#[derive(Clone, Debug)]
enum State {
    Starting,
    Serving {
        health: SocketAddr,
        intakes: Vec<SocketAddr>,
    },
    Ended(Result<(), String>),
}

impl Running {
    /// Once it takes messages, or why it does not.
    pub(super) async fn start(
        config: Config,
        surroundings: Surroundings,
        countdown: Countdown,
    ) -> Result<Self, String> {
        let runtime = counted_runtime(countdown.clone());
        let handle = runtime.handle().clone();
        let (stop, crash) = (CancellationToken::new(), countdown.0.crash.clone());
        let (tell, mut state) = watch::channel(State::Starting);
        let thread = std::thread::spawn({
            let (stop, crash) = (stop.clone(), crash.clone());
            move || {
                let living = live(config, surroundings, stop, tell.clone());
                let ended = runtime.block_on(crash.run_until_cancelled(living));
                // A blocking call may still wait for something outside; a crash does not wait for it.
                runtime.shutdown_background();
                tell.send_replace(State::Ended(ended.unwrap_or(Ok(()))));
            }
        });
        let begun = state
            .wait_for(|state| !matches!(state, State::Starting))
            .await;
        let begun = begun.map_err(|_| "it panicked".to_owned())?.clone();
        match begun {
            State::Serving { health, intakes } => Ok(Self {
                health,
                intakes,
                handle,
                stop,
                crash,
                thread,
                state,
                countdown,
            }),
            State::Ended(Err(why)) => Err(why),
            State::Ended(Ok(())) | State::Starting => Err("it ended at once".to_owned()),
        }
    }

    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        let ended = self
            .state
            .wait_for(|state| matches!(state, State::Ended(_)))
            .await;
        let ended = ended.map(|state| state.clone());
        assert!(matches!(ended, Ok(State::Ended(Ok(())))), "{ended:?}");
        self.thread.join().unwrap();
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(*self.state.borrow(), State::Ended(_))
    }

    pub(super) fn crash(self) {
        self.crash.cancel();
        let _ = self.thread.join();
    }

    /// Whoever waits for a time up to this long from now is woken, if the gateway lives.
    pub(super) async fn nudge(&self, time: Duration) {
        let nudging = self.handle.spawn(async move {
            tokio::time::pause();
            tokio::time::advance(time).await;
            tokio::time::resume();
        });
        let _ = nudging.await;
    }

    /// Moves both clocks. They move between two steps and not during one, because the store works in
    /// threads of its own.
    pub(super) async fn pass(&self, time: Duration, wall: ManualClock) {
        let passing = self.handle.spawn(async move {
            for _ in 0..STEPS {
                wall.advance(time / STEPS);
                tokio::time::pause();
                tokio::time::advance(time / STEPS).await;
                tokio::time::resume();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        passing.await.unwrap();
    }
}

pub(super) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn counted_runtime(countdown: Countdown) -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.on_thread_park(move || countdown.note_wait());
    builder.enable_all().build().unwrap()
}

async fn live(
    config: Config,
    surroundings: Surroundings,
    stop: CancellationToken,
    tell: watch::Sender<State>,
) -> Result<(), String> {
    let resolved =
        hermetic_config::resolve_gateway_backend(&config).map_err(|error| error.to_string())?;
    let redactor = hermetic_app::redactor(&config);
    let parts = hermetic_app::gateway(&config, &resolved, redactor, surroundings);
    let parts = parts.await.map_err(|failure| failure.to_string())?;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let health = listener.local_addr().unwrap();
    let ports = parts.intakes.iter();
    let intakes: Vec<_> = ports.map(|(port, _)| port.local_addr().unwrap()).collect();
    let report = move |condition: &GatewayCondition| {
        if condition.stage == GatewayStage::Serving {
            let intakes = intakes.clone();
            tell.send_replace(State::Serving { health, intakes });
        }
    };
    let served = serve(parts, listener, stop, Box::new(report)).await;
    served.map(drop).map_err(|error| in_full(&error))
}

fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
