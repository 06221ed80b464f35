//! How much there is of us, here and there, and when it goes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use hermetic_sandbox::{Sandbox, SandboxPersistence};
use hermetic_types::InstallationId;

use crate::lab::{Lab, make, processes_with, run, spec, stdout, until_gone};

#[tokio::test(flavor = "multi_thread")]
async fn more_sandboxes_than_a_connection_carries_take_another() {
    let Some(lab) = Lab::with("MaxSessions 3") else {
        return;
    };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let specs: Vec<_> = (0..7)
        .map(|_| spec(&installation, SandboxPersistence::Ephemeral))
        .collect();
    let mut sandboxes = Vec::new();
    for spec in &specs {
        sandboxes.push(make(&backend, spec).await);
    }
    for sandbox in &sandboxes {
        assert_eq!(stdout(&run(sandbox, "echo hi").await), "hi\n");
    }
    assert_eq!(backend.list().await.unwrap().len(), 7);
    for spec in &specs {
        backend.destroy(&spec.id).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_ours_is_left_when_all_is_over() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Kept);
    let sandbox = make(&backend, &spec).await;
    let locked = "mkdir -p deep/er && touch deep/er/x && chmod 0 deep/er deep; ln -s / out; \
                  chmod 0 ..";
    assert_eq!(run(&sandbox, locked).await.code(), 0);
    backend.destroy(&spec.id).await.unwrap();
    drop(sandbox);
    drop(backend);
    // Every process of ours names the folder it lives in, here as there.
    until_gone(&lab.at("ssh_config").display().to_string()).await;
    until_gone(&installation.to_string()).await;
    let there = lab.home().join(".hermetic").join(installation.as_str());
    let left: Vec<_> = fs::read_dir(there.join("sandboxes")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(
        fs::metadata(there).unwrap().permissions().mode() & 0o777,
        0o700
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_conversation_has_a_folder_of_its_own() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let (one, two) = (
        spec(&installation, SandboxPersistence::Ephemeral),
        spec(&installation, SandboxPersistence::Ephemeral),
    );
    let (first, second) = (make(&backend, &one).await, make(&backend, &two).await);
    run(&first, "echo mine > note").await;
    assert_eq!(
        stdout(&run(&second, "ls; echo $HOME").await),
        format!("{}\n", lab.home().display())
    );
    backend.destroy(&one.id).await.unwrap();
    backend.destroy(&two.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_serves_all_who_come_at_once() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let lists = (0..5).map(|_| {
        let backend = Arc::clone(&backend);
        tokio::spawn(async move { backend.list().await })
    });
    for list in lists.collect::<Vec<_>>() {
        assert_eq!(list.await.unwrap().unwrap(), []);
    }
    let config = lab.at("ssh_config").display().to_string();
    let masters = processes_with(&config).into_iter().filter(|pid| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "ssh\n")
    });
    assert_eq!(masters.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_sandbox_waits_for_a_host_that_is_away() {
    let Some(mut lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Kept);
    let sandbox = make(&backend, &spec).await;
    run(&sandbox, "echo mine > note").await;
    lab.stop();
    sandbox.warden().closed().await;
    assert!(backend.connect(&spec.id).await.is_err());
    lab.restart();
    let link = backend.connect(&spec.id).await.unwrap();
    let sandbox = Sandbox::greet(&spec.id, backend.description(), link)
        .await
        .unwrap();
    assert_eq!(stdout(&run(&sandbox, "cat note").await), "mine\n");
    backend.destroy(&spec.id).await.unwrap();
}
