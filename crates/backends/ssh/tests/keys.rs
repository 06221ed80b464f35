//! Who the host is, and what it gets of us.

use std::fs;

use hermetic_sandbox::{BackendError, SandboxPersistence};
use hermetic_types::InstallationId;

use crate::lab::{Lab, make, run, spec, stdout};

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_remembered_and_a_changed_one_refused_with_the_remedy() {
    let Some(mut lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    assert_eq!(lab.backend(&installation).list().await.unwrap(), []);
    let known = fs::read_to_string(lab.at("known_hosts")).unwrap();
    assert!(known.contains("127.0.0.1"), "{known}");

    lab.change_host_key();
    let refused = lab.backend(&installation).list().await.unwrap_err();
    let BackendError::Unavailable { what, remedy } = refused else {
        panic!("{refused:?}");
    };
    assert!(what.contains("another host key"), "{what}");
    let line = format!(
        "ssh-keygen -f '{}' -R '[127.0.0.1]:{}'",
        lab.at("known_hosts").display(),
        lab.port
    );
    assert!(remedy.contains(&line), "{remedy}");
    assert_eq!(fs::read_to_string(lab.at("known_hosts")).unwrap(), known);

    // The remedy is one.
    let mended = std::process::Command::new("sh")
        .args(["-c", &line])
        .status();
    assert!(mended.unwrap().success());
    assert_eq!(lab.backend(&installation).list().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_wants_keys_to_be_known_keeps_that() {
    let Some(lab) = Lab::open() else { return };
    lab.write_client("StrictHostKeyChecking yes");
    let refused = lab.backend(&InstallationId::random()).list().await;
    assert!(
        matches!(&refused, Err(BackendError::Unavailable { what, .. }) if what.contains("not known")),
        "{refused:?}"
    );
    assert!(!lab.at("known_hosts").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_told_from_a_host_that_is_not_there() {
    let Some(mut lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    fs::write(lab.at("authorized"), "").unwrap();
    let denied = lab.backend(&installation).list().await.unwrap_err();
    assert!(
        denied.to_string().contains("does not let us in"),
        "{denied}"
    );
    lab.stop();
    let away = lab.backend(&installation).list().await.unwrap_err();
    assert!(away.to_string().contains("cannot be reached"), "{away}");
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_agent_nor_ports_of_ours_reach_the_host() {
    let Some(lab) = Lab::open() else { return };
    lab.write_client(
        "ForwardAgent yes\nForwardX11 yes\nRemoteForward 127.0.0.1:1 127.0.0.1:1\nSendEnv *",
    );
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let env = stdout(&run(&sandbox, "env").await);
    assert!(
        !env.contains("SSH_AUTH_SOCK") && !env.contains("DISPLAY"),
        "{env}"
    );
    backend.destroy(&spec.id).await.unwrap();
}
