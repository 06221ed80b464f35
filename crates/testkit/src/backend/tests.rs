use super::*;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use hermetic_sandbox::{
    Backend, NetworkMode, PassingSandbox, SandboxLifeline, SandboxPersistence, SandboxSpec,
    SystemView,
};
use hermetic_types::{
    BackendDescription, BackendKind, ConversationKey, InstallationId, SandboxLimits,
};
use hermetic_warden::client::{RunEvent, Warden};
use hermetic_warden::protocol::{CommandEnd, CutReason, ExitState, KillRequest, ShellRequest};

const PATIENCE: Duration = Duration::from_secs(20);

fn spec() -> SandboxSpec {
    SandboxSpec {
        installation: InstallationId::random(),
        conversation: ConversationKey::new("alice"),
        id: SandboxId::random(),
        system: SystemView::Host,
        limits: SandboxLimits::default(),
        mounts: Vec::new(),
        env: BTreeMap::new(),
        network: NetworkMode::Closed,
        persistence: SandboxPersistence::Ephemeral,
        lifeline: SandboxLifeline::Ledger,
        lifetime: PATIENCE,
    }
}

async fn warden(backend: &StandInBackend, spec: &SandboxSpec) -> Warden {
    let link = backend.create(spec).await.unwrap();
    Warden::greet(link.into_stream(), PATIENCE).await.unwrap()
}

async fn run(warden: &Warden, text: &str) -> (String, CommandEnd) {
    let mut running = warden.shell(ShellRequest::new("main", text)).await.unwrap();
    let mut output = Vec::new();
    loop {
        match running.next().await.unwrap().unwrap() {
            RunEvent::Out(bytes) => output.extend_from_slice(&bytes),
            RunEvent::Ended(ended) => return (String::from_utf8(output).unwrap(), ended),
            _ => {}
        }
    }
}

#[tokio::test]
async fn commands_print_what_was_scripted_and_endless_ones_can_be_ended() {
    let script = |text: &str| match text {
        "ls" => Printed::text("a\nb\n"),
        "wait" => Printed::Endless,
        _ => Printed::failure("what?", 127),
    };
    let backend = StandInBackend::new(
        BackendDescription::sealed(BackendKind::Native),
        Commands::scripted(script),
    );
    let warden = warden(&backend, &spec()).await;
    let (output, ended) = run(&warden, "ls").await;
    assert_eq!(
        (output.as_str(), ended.status),
        ("a\nb\n", ExitState::Exited(0))
    );
    let wait = ShellRequest::new("main", "wait");
    let id = wait.id.clone();
    let mut running = warden.shell(wait).await.unwrap();
    assert!(matches!(
        running.next().await,
        Ok(Some(RunEvent::Started { .. }))
    ));
    warden.kill(KillRequest::Run(id)).await.unwrap();
    let Ok(Some(RunEvent::Ended(ended))) = running.next().await else {
        unreachable!("it was ended")
    };
    assert_eq!(ended.cut, Some(CutReason::Killed));
}

#[tokio::test]
async fn a_sandbox_of_bash_has_files_of_its_own_until_it_is_destroyed() {
    let backend = StandInBackend::new(
        BackendDescription::sealed(BackendKind::Native),
        Commands::bash(),
    );
    let (alices, bobs) = (spec(), spec());
    let alice = warden(&backend, &alices).await;
    let bob = warden(&backend, &bobs).await;
    assert_eq!(run(&alice, "echo mine > f; cat f").await.0, "mine\n");
    assert_eq!(run(&bob, "cat f").await.1.status, ExitState::Exited(1));
    assert_eq!((backend.created(), backend.living()), (2, 2));
    for _ in 0..2 {
        backend.destroy(&alices.id).await.unwrap();
    }
    assert_eq!((backend.destroyed(), backend.living()), (1, 1));
}

#[tokio::test]
async fn creating_fails_and_hangs_as_ordered() {
    let backend = StandInBackend::new(
        BackendDescription::sealed(BackendKind::Native),
        Commands::Silent,
    );
    backend.fail_creates(true);
    assert!(backend.create(&spec()).await.is_err());
    backend.fail_creates(false);
    backend.hang_creates(true);
    let spec = spec();
    let release = async {
        tokio::task::yield_now().await;
        assert_eq!(backend.created(), 0);
        backend.hang_creates(false);
    };
    let (created, ()) = tokio::join!(backend.create(&spec), release);
    assert!(created.is_ok());
}

/// However it ends: by a word, by a failure, or by a caller who gave up.
#[tokio::test]
async fn a_passing_sandbox_is_seen_out_however_it_ends() {
    let stand_in = Arc::new(StandInBackend::new(
        BackendDescription::sealed(BackendKind::Native),
        Commands::Silent,
    ));
    let backend: Arc<dyn Backend> = Arc::clone(&stand_in) as _;
    let passing = PassingSandbox::create(&backend, &spec()).await.unwrap();
    assert_eq!(stand_in.living(), 1);
    passing.destroy().await.unwrap();
    assert_eq!((stand_in.destroyed(), stand_in.living()), (1, 0));

    drop(PassingSandbox::create(&backend, &spec()).await.unwrap());
    until_none_lives(&stand_in).await;

    stand_in.hang_creates(true);
    let spec = spec();
    let given_up = PassingSandbox::create(&backend, &spec);
    assert!(given_up.now_or_never().is_none());
    stand_in.hang_creates(false);
    until_none_lives(&stand_in).await;
}

async fn until_none_lives(backend: &StandInBackend) {
    let gone = async {
        while backend.living() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("it is left");
}
