//! Coming into the world and leaving it.

use std::sync::atomic::{AtomicU32, Ordering};

use hermetic_types::{Command, HolderEpoch, RunId, SandboxId};
use hermetic_warden::client::{HoldOutcome, RunEvent, WardenCallError};

use super::cleared;
use super::lab::{BackendCandidate, ConformanceLab, count_marked, run, stdout};
use crate::{CommandBond, FoundState, Sandbox, SandboxPersistence};

static STORIES_TOLD: AtomicU32 = AtomicU32::new(0);

pub async fn a_sandbox_is_listed_while_it_lives(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let listed = lab.candidate.backend.list().await.unwrap();
    let found = listed
        .iter()
        .find(|found| found.id == lab.spec.id)
        .expect("it is listed");
    assert_eq!(found.state, FoundState::Running);
    assert_eq!(found.conversation.as_ref(), Some(&lab.spec.conversation));
    lab.close().await;
}

pub async fn destroying_twice_is_fine(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let backend = &lab.candidate.backend;
    let (one, two) = tokio::join!(backend.destroy(&lab.spec.id), backend.destroy(&lab.spec.id));
    one.and(two)
        .expect("two who destroy at once both see it gone");
    backend
        .destroy(&SandboxId::random())
        .await
        .expect("what never was is gone");
    assert!(backend.connect(&lab.spec.id).await.is_err());
    lab.close().await;
}

pub async fn destroying_ends_what_runs(candidate: BackendCandidate) {
    const MARKER: &str = "86421.5";
    let lab = ConformanceLab::open(candidate).await;
    let text = format!("setsid sleep {MARKER} & echo ready; sleep {MARKER}");
    let mut running = lab
        .sandbox
        .start(cleared(Command::script(text)))
        .await
        .unwrap();
    while !matches!(running.next().await.unwrap(), Some(RunEvent::Out(_))) {}
    lab.candidate.backend.destroy(&lab.spec.id).await.unwrap();
    assert_eq!(marked_on_this_host(MARKER), 0);
    // The caller learns that it is over instead of waiting.
    while let Ok(Some(_)) = running.next().await {}
    lab.close().await;
}

pub async fn a_gateway_that_comes_back_finds_its_command(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let id = RunId::random();
    let text = "echo before; for i in 1 2 3; do sleep 0.2; done; echo after; exit 7";
    let command = cleared(Command::script(text));
    let mut running = lab
        .sandbox
        .start_as(id.clone(), command, CommandBond::Sandbox)
        .await
        .unwrap();
    while !matches!(running.next().await.unwrap(), Some(RunEvent::Out(_))) {}
    drop(running);
    let ConformanceLab {
        candidate,
        spec,
        sandbox,
    } = lab;
    sandbox.warden().close();
    drop(sandbox);

    let sandbox = candidate.reach(&spec).await;
    let (output, code) = pick_up(&sandbox, id).await;
    assert_eq!((output.as_str(), code), ("before\nafter\n", 7));
    ConformanceLab {
        candidate,
        spec,
        sandbox,
    }
    .close()
    .await;
}

pub async fn a_later_holder_takes_over(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let held = lab.sandbox.hold(HolderEpoch::new(1)).await.unwrap();
    if held == HoldOutcome::NotKept {
        eprintln!("SKIP: a_later_holder_takes_over: nobody keeps holders apart there");
        return lab.close().await;
    }
    let id = RunId::random();
    let text = "echo before; for i in 1 2 3; do sleep 0.2; done; echo after; exit 7";
    let mut running = lab
        .sandbox
        .start_as(
            id.clone(),
            cleared(Command::script(text)),
            CommandBond::Sandbox,
        )
        .await
        .unwrap();
    while !matches!(running.next().await.unwrap(), Some(RunEvent::Out(_))) {}

    let ConformanceLab {
        candidate,
        spec,
        sandbox: earlier,
    } = lab;
    let sandbox = candidate.reach(&spec).await;
    sandbox.hold(HolderEpoch::new(2)).await.unwrap();
    earlier.warden().closed().await;
    // Its next link is told why, and the one after as well.
    let late = candidate.reach(&spec).await;
    let refused = late.hold(HolderEpoch::new(1)).await;
    assert!(
        matches!(refused, Err(WardenCallError::HeldElsewhere { since }) if since.get() == 2),
        "{refused:?}"
    );
    drop((running, earlier, late));
    let (output, code) = pick_up(&sandbox, id).await;
    assert_eq!((output.as_str(), code), ("before\nafter\n", 7));
    ConformanceLab {
        candidate,
        spec,
        sandbox,
    }
    .close()
    .await;
}

async fn pick_up(sandbox: &Sandbox, id: RunId) -> (String, i32) {
    let mut running = sandbox.warden().attach(id, 0).await.unwrap();
    let mut output = Vec::new();
    loop {
        match running.next().await.unwrap().expect("it ends with its end") {
            RunEvent::Out(bytes) => output.extend_from_slice(&bytes),
            RunEvent::Ended(ended) => {
                let hermetic_warden::protocol::ExitState::Exited(code) = ended.status else {
                    panic!("it was ended: {ended:?}");
                };
                return (String::from_utf8_lossy(&output).into_owned(), code);
            }
            _ => {}
        }
    }
}

pub async fn a_kept_sandbox_resumes_with_its_files(candidate: BackendCandidate) {
    if !candidate.resumes {
        return eprintln!("SKIP: a_kept_sandbox_resumes_with_its_files: the backend cannot");
    }
    let spec = candidate.spec("kept", SandboxPersistence::Kept);
    let sandbox = candidate.make(&spec).await;
    // The same story may be told elsewhere on this machine at the same time, so the sleeper has a length of
    // its own, and this process is not the only one that tells stories.
    let told = STORIES_TOLD.fetch_add(1, Ordering::Relaxed);
    let mark = format!("86431{}.{told}", std::process::id());
    let write = format!("echo mine > note; mkdir -p a/b; (sleep {mark} &) ; pwd");
    let place = stdout(&run(&sandbox, Command::script(write)).await);
    candidate.backend.stop(&spec.id).await.unwrap();
    assert_eq!(marked_on_this_host(&mark), 0);
    let listed = candidate.backend.list().await.unwrap();
    assert!(
        listed
            .iter()
            .any(|found| found.id == spec.id && found.state == FoundState::Stopped),
        "{listed:?}"
    );
    let link = candidate.backend.resume(&spec).await.unwrap();
    let sandbox = Sandbox::greet(&spec.id, candidate.backend.description(), link)
        .await
        .unwrap();
    let back = run(&sandbox, Command::script("cat note; ls -d a/b; pwd")).await;
    assert_eq!(stdout(&back), format!("mine\na/b\n{place}"));
    ConformanceLab {
        candidate,
        spec,
        sandbox,
    }
    .close()
    .await;
}

pub async fn two_conversations_share_nothing(candidate: BackendCandidate) {
    if !candidate.is_sealed {
        return eprintln!("SKIP: two_conversations_share_nothing: the backend is no boundary");
    }
    let lab = ConformanceLab::open(candidate).await;
    let spec = lab.candidate.spec("other", SandboxPersistence::Ephemeral);
    let other = lab.candidate.make(&spec).await;
    lab.sh("echo secret > /tmp/theirs; echo secret > theirs; export THEIRS=secret")
        .await;
    let background = lab.sh("sleep 86441.5 & echo $!").await;
    assert_eq!(background.code(), 0);
    let look = "cat /tmp/theirs theirs 2>/dev/null; echo $THEIRS; ls /tmp";
    assert_eq!(stdout(&run(&other, Command::script(look)).await).trim(), "");
    assert_eq!(count_marked(&lab.sandbox, "86441.5").await, 1);
    assert_eq!(count_marked(&other, "86441.5").await, 0);
    lab.candidate.backend.destroy(&spec.id).await.unwrap();
    lab.close().await;
}

pub async fn two_installations_do_not_meet(candidate: BackendCandidate) {
    let lab = ConformanceLab::open(candidate).await;
    let others = lab.candidate.other.list().await.unwrap();
    assert!(
        !others.iter().any(|found| found.id == lab.spec.id),
        "{others:?}"
    );
    assert!(lab.candidate.other.connect(&lab.spec.id).await.is_err());
    // To the other installation it does not exist, so destroying it is done, and does nothing.
    lab.candidate.other.destroy(&lab.spec.id).await.unwrap();
    assert_eq!(lab.sh("true").await.code(), 0);
    lab.close().await;
}

/// Processes of this host with `marker` among their words; a container's are among them.
fn marked_on_this_host(marker: &str) -> usize {
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name != own))
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| {
            line.split(|byte| *byte == 0)
                .any(|word| word == marker.as_bytes())
        })
        .count()
}
