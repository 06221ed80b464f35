//! The program on the remote host.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use hermetic_sandbox::{BackendError, SandboxPersistence};
use hermetic_types::InstallationId;

use crate::lab::{Lab, make, run, spec, stdout};

fn program(lab: &Lab, installation: &InstallationId) -> PathBuf {
    let folder = lab.home().join(".hermetic").join(installation.as_str());
    fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.display().to_string().contains("warden-"))
        .expect("it was placed")
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_sent_once_and_again_only_if_it_is_not_what_was_sent() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    lab.backend(&installation).list().await.unwrap();
    let path = program(&lab, &installation);
    let first = fs::metadata(&path).unwrap();
    assert_eq!(first.mode() & 0o777, 0o700);
    assert_eq!(
        fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o777,
        0o700
    );

    lab.backend(&installation).list().await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), first.ino());

    // Another file under its name: the old one may still be running.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "#!/bin/sh\nexit 64\n").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
    lab.backend(&installation).list().await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), hermetic_embedded::WARDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_others_could_write_to_is_not_used() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    lab.backend(&installation).list().await.unwrap();
    let folder = lab.home().join(".hermetic");
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    let refused = lab.backend(&installation).list().await;
    let Err(BackendError::Unavailable { what, remedy }) = refused else {
        panic!("{refused:?}");
    };
    assert!(what.contains("not private"), "{what}");
    assert!(remedy.contains("chmod"), "{remedy}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_somebody_else_is_not_used() {
    let Some(lab) = Lab::open() else { return };
    if !rustix::process::getuid().is_root() {
        return eprintln!("SKIP: a_folder_of_somebody_else_is_not_used: only root can make one");
    }
    // Root's own, behind a link: private, and yet not the account's.
    let theirs = lab.at("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::set_permissions(&theirs, Permissions::from_mode(0o777)).unwrap();
    symlink(&theirs, lab.home().join(".hermetic")).unwrap();
    let refused = lab.backend(&InstallationId::random()).list().await;
    assert!(
        matches!(&refused, Err(BackendError::Unavailable { what, .. }) if what.contains("not private")),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_talks_does_not_disturb() {
    let Some(lab) = Lab::open() else { return };
    let noise = "echo Welcome to hermetic; printf 'no newline'; echo oops >&2";
    fs::write(lab.home().join(".bashrc"), noise).unwrap();
    let installation = InstallationId::random();
    let backend = lab.backend(&installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    assert_eq!(stdout(&run(&sandbox, "echo hi").await), "hi\n");
    backend.destroy(&spec.id).await.unwrap();
}
