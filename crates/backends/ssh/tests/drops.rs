//! Links that break while a command runs.

use std::fs;

use hermetic_sandbox::{DroppedLink, Sandbox, SandboxPersistence};
use hermetic_types::InstallationId;

use crate::lab::{Lab, in_shell, kill, make, processes_with, run, spec, stdout, until_there};

/// Says that it began, waits for a file, says that it ended.
fn waits_for(lab: &Lab) -> String {
    let (begun, go) = (lab.home().join("begun"), lab.home().join("go"));
    format!(
        "echo before; touch {}; until [ -e {} ]; do sleep 0.05; done; echo after; exit 7",
        begun.display(),
        go.display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_picked_up_again_when_the_link_comes_back() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let text = waits_for(&lab);
    let (finished, ()) = tokio::join!(run(&sandbox, &text), async {
        until_there(&lab.home().join("begun")).await;
        lab.cut();
        fs::write(lab.home().join("go"), "").unwrap();
    });
    assert_eq!(stdout(&finished), "before\nafter\n");
    assert_eq!(
        (finished.code(), finished.dropped),
        (7, Some(DroppedLink::PickedUp))
    );
    // The old link is gone for good; a new one finds the same sandbox.
    assert!(!sandbox.is_reachable());
    backend.destroy(&spec.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_has_kept_its_state_when_the_link_comes_back() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let text = format!("x=5; {}", waits_for(&lab).replace("exit 7", "false"));
    let (finished, ()) = tokio::join!(in_shell(&sandbox, &text), async {
        until_there(&lab.home().join("begun")).await;
        lab.cut();
        fs::write(lab.home().join("go"), "").unwrap();
    });
    assert_eq!(
        (stdout(&finished).as_str(), finished.code()),
        ("before\nafter\n", 1)
    );
    let link = backend.connect(&spec.id).await.unwrap();
    let sandbox = Sandbox::greet(&spec.id, backend.description(), link)
        .await
        .unwrap();
    assert_eq!(stdout(&in_shell(&sandbox, "echo $x").await), "5\n");
    backend.destroy(&spec.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_and_started_again_has_lost_nothing() {
    let Some(mut lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let text = waits_for(&lab);
    let (begun, go) = (lab.home().join("begun"), lab.home().join("go"));
    let (finished, ()) = tokio::join!(run(&sandbox, &text), async {
        until_there(&begun).await;
        lab.stop();
        // It ends while nobody can see it.
        fs::write(&go, "").unwrap();
        lab.restart();
    });
    assert_eq!(
        (stdout(&finished).as_str(), finished.code()),
        ("before\nafter\n", 7)
    );
    backend.destroy(&spec.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_warden_died_is_called_lost() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let text = waits_for(&lab);
    let (finished, ()) = tokio::join!(run(&sandbox, &text), async {
        until_there(&lab.home().join("begun")).await;
        // As a machine that starts anew would: processes gone, files there.
        for pid in processes_with("serve") {
            if fs::read_link(format!("/proc/{pid}/exe"))
                .is_ok_and(|exe| exe.starts_with(lab.home()))
            {
                kill(pid);
            }
        }
        lab.cut();
    });
    assert_eq!(finished.dropped, Some(DroppedLink::Lost));
    assert_eq!(
        (stdout(&finished).as_str(), finished.code()),
        ("before\n", 255)
    );
    // Its warden and keepers are gone, perhaps before they could end it; it is still found.
    let orphan = lab.home().join("begun").display().to_string();
    backend.destroy(&spec.id).await.unwrap();
    assert_eq!(processes_with(&orphan), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lets_go_ends_the_command_though_it_could_go_on() {
    const MARKER: &str = "86451.5";
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let begun = lab.home().join("begun");
    let text = format!("touch {}; sleep {MARKER}", begun.display());
    tokio::select! {
        _ = run(&sandbox, &text) => panic!("it ended by itself"),
        () = until_there(&begun) => {}
    }
    crate::lab::until_gone(MARKER).await;
    backend.destroy(&spec.id).await.unwrap();
}
