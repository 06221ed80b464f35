use std::path::Path;

use futures::future::{BoxFuture, FutureExt, ready};
use hermetic_chat::Chat;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, SandboxSpec, WardenLink,
};
use hermetic_store::Store;
use hermetic_types::{BackendDescription, SandboxId, SystemClock, UserId};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::{LeasedBackend, LeasedChat};
use super::*;
use crate::test_chat::NotingChat;

async fn rows(folder: &Path) -> LeaseRows {
    let opened = Store::open(&folder.join("s.db"), SystemClock::shared()).await;
    opened.unwrap().leases()
}

fn process(id: &str) -> GatewayProcess {
    GatewayProcess {
        id: id.parse().unwrap(),
        installation: "home".parse().unwrap(),
        host: "here".to_owned(),
        name: id.to_owned(),
        version: "1.2.3".to_owned(),
    }
}

async fn stand_by(rows: LeaseRows, id: &str) -> ServingLease {
    let admit = |_: LeaseState| ready(Ok::<(), ()>(()));
    let process = process(id);
    let stood = ServingLease::stand_by(rows, &process, terms(), admit);
    stood.await.unwrap()
}

fn terms() -> StandByTerms {
    StandByTerms {
        clock: SystemClock::shared(),
        shares: false,
        stop: CancellationToken::new(),
        waits: Box::new(|_| {}),
    }
}

fn ago(by: Duration) -> BootMoment {
    BootMoment(BootMoment::now().0.checked_sub(by).unwrap())
}

#[tokio::test]
async fn who_stands_by_serves_within_moments_of_a_release() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (rows(folder.path()).await, rows(folder.path()).await);
    let first = stand_by(one, "one").await;
    assert!(first.clock().is_held());
    let mut second = tokio::spawn(stand_by(two, "two"));
    // More than one look.
    let waited = timeout(LOOK * 2, &mut second).await;
    assert!(waited.is_err(), "two serve at once");
    let clock = first.clock();
    first.release().await;
    assert!(!clock.is_held());
    let second = timeout(DEAD_AFTER, second).await.unwrap().unwrap();
    assert_eq!(second.held().epoch(), 2);
}

#[tokio::test]
async fn who_was_replaced_hears_of_it_and_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let sleeper = stand_by(rows.clone(), "sleeper").await;
    let account = Arc::new(NotingChat::new("telegram"));
    let chat = LeasedChat::new(Arc::clone(&account) as Arc<dyn Chat>, sleeper.clock());
    let user = UserId::new("7").unwrap();
    chat.private_place(&user).await.unwrap();
    assert_eq!(account.noted().len(), 1);
    // What others do when it was not seen for long.
    rows.release(&sleeper.held()).await.unwrap();
    let other = rows.claim(SERVING, &process("other")).await.unwrap();
    assert_eq!(other.unwrap().epoch(), 2);
    assert_eq!(sleeper.lost().await, LeaseLoss::Taken);
    let refused = chat.private_place(&user).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("serves no longer")));
    assert_eq!(account.noted().len(), 1);
}

/// The clock counts from the last sign of life that was heard, also through a sleep of the whole process.
#[tokio::test]
async fn who_was_not_heard_for_long_may_not_act() {
    let renewed = |by: Duration| {
        let at = ago(by);
        LeaseClock(Arc::new(Mutex::new(Renewed { at, lost: false })))
    };
    assert!(renewed(CUT_AFTER - BEAT).is_held());
    let woken = renewed(CUT_AFTER);
    assert!(!woken.is_held());
    assert_eq!(woken.left(), Duration::ZERO);
}

/// Without an answer of the database, the keeper itself ends it, in time.
#[tokio::test]
async fn a_silent_holder_ends_before_others_may_begin() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let held = rows.claim(SERVING, &process("one")).await.unwrap().unwrap();
    let sent = ago(CUT_AFTER);
    let lease = ServingLease::keep((rows, process("one")), held, sent, SystemClock::shared());
    let loss = timeout(DEAD_AFTER * 4, lease.lost()).await.unwrap();
    assert_eq!(loss, LeaseLoss::Silent);
    assert!(!lease.clock().is_held());
}

#[tokio::test]
async fn who_could_not_go_on_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let _serving = stand_by(rows.clone(), "one").await;
    let admit = |state: LeaseState| ready(Err::<(), _>(state.host));
    let refused = ServingLease::stand_by(rows, &process("two"), terms(), admit).await;
    assert!(matches!(refused, Err(StandByError::Refused(host)) if host == "here"));
}

/// It is told so that its starter is, and a stop does not wait for the other gateway's end.
#[tokio::test]
async fn who_stands_by_says_so_once_and_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let serving = stand_by(rows.clone(), "one").await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let stop = CancellationToken::new();
    let terms = StandByTerms {
        shares: false,
        clock: SystemClock::shared(),
        stop: stop.clone(),
        waits: Box::new(move |holder| tell.send(holder.gateway.clone()).unwrap()),
    };
    let waiting = tokio::spawn({
        let rows = rows.clone();
        async move {
            let admit = |_: LeaseState| ready(Ok::<(), ()>(()));
            ServingLease::stand_by(rows, &process("two"), terms, admit).await
        }
    });
    assert_eq!(told.recv().await.as_deref(), Some("one"));
    // A look or two.
    tokio::time::sleep(LOOK + BEAT_AGAIN).await;
    assert_eq!(rows.gateways(SERVING).await.unwrap().len(), 2);
    stop.cancel();
    let ended = timeout(DEAD_AFTER, waiting).await.unwrap().unwrap();
    assert!(matches!(ended, Err(StandByError::Stopped)), "{ended:?}");
    assert!(told.recv().await.is_none(), "told twice");
    assert_eq!(rows.gateways(SERVING).await.unwrap().len(), 1);
    assert!(serving.clock().is_held());
}

/// What it had written down before it fell asleep it would still do.
#[tokio::test]
async fn who_was_replaced_does_nothing_in_a_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows(folder.path()).await;
    let sleeper = stand_by(rows.clone(), "sleeper").await;
    let (inside, mut heard) = tokio::io::duplex(64);
    let backend = Arc::new(OneSandbox(Mutex::new(Some(inside))));
    let backend = LeasedBackend::new(backend, sleeper.clock());
    let id = SandboxId::random();
    let mut link = backend.connect(&id).await.unwrap().into_stream();
    link.write_all(b"before").await.unwrap();
    backend.stop(&id).await.unwrap();
    rows.release(&sleeper.held()).await.unwrap();
    let _successor = stand_by(rows.clone(), "successor").await;
    sleeper.lost().await;
    assert!(link.write_all(b"after").await.is_err());
    for refused in [backend.stop(&id).await, backend.destroy(&id).await] {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("serves no longer"), "{refused}");
    }
    drop(link);
    let mut all = Vec::new();
    heard.read_to_end(&mut all).await.unwrap();
    assert_eq!(all, b"before");
}

/// One that lives already, and whose warden is the test.
#[derive(Debug)]
struct OneSandbox(Mutex<Option<DuplexStream>>);

impl Backend for OneSandbox {
    fn description(&self) -> BackendDescription {
        unreachable!("nobody asks")
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        ready(BackendReadiness { layers: Vec::new() }).boxed()
    }

    fn create<'a>(&'a self, _: &'a SandboxSpec) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        unreachable!("nobody asks")
    }

    fn connect<'a>(&'a self, _: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        let inside = self.0.lock().unwrap().take().unwrap();
        ready(Ok(WardenLink::new(inside))).boxed()
    }

    fn stop<'a>(&'a self, _: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        ready(Ok(())).boxed()
    }

    fn resume<'a>(&'a self, _: &'a SandboxSpec) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        unreachable!("nobody asks")
    }

    fn destroy<'a>(&'a self, _: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        ready(Ok(())).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        ready(Ok(Vec::new())).boxed()
    }
}
