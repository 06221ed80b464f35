//! A host on which our program does not run.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::{Backend, FoundState, LayerState, Sandbox, SandboxPersistence};
use hermetic_ssh::SshBackend;
use hermetic_types::{Command, CommandInput, InstallationId};
use hermetic_warden::protocol::{PathAt, ReadRequest};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, in_shell, make, processes_with, run, spec, stdout, until_gone, until_there};

/// As a program for another machine would be.
fn foreign(lab: &Lab, installation: &InstallationId) -> Arc<dyn Backend> {
    let mut config = lab.config(installation);
    config.program = b"\x7fELF for another machine";
    Arc::new(SshBackend::new(config))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_is_told() {
    let Some(lab) = Lab::open() else { return };
    let readiness = foreign(&lab, &InstallationId::random()).readiness().await;
    assert!(readiness.missing().is_none(), "{readiness:?}");
    let layer = readiness.layers.iter().find(|layer| layer.name == "warden");
    let layer = layer.expect("it is spoken of");
    assert_eq!(layer.state, LayerState::Weaker);
    assert!(layer.detail.contains("plain shell"), "{}", layer.detail);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_run_with_their_words_codes_and_input() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = foreign(&lab, &installation);
    let mut spec = spec(&installation, SandboxPersistence::Ephemeral);
    spec.env.insert("FROM_SPEC".into(), "it's \"so\"".into());
    let sandbox = make(&backend, &spec).await;
    let both = run(&sandbox, "echo \"$FROM_SPEC\"; echo two >&2; exit 42").await;
    assert_eq!(stdout(&both), "it's \"so\"\n");
    assert_eq!(both.stderr.clone().into_bytes(), b"two\n");
    assert_eq!(both.code(), 42);
    assert_eq!(run(&sandbox, "kill -TERM $$").await.code(), 128 + 15);
    assert_eq!(stdout(&in_shell(&sandbox, "echo shell").await), "shell\n");
    // What is left in the background does not hold the command up.
    assert_eq!(
        stdout(&run(&sandbox, "sleep 86472.5 & echo on").await),
        "on\n"
    );

    let mut command = Command::words(["sha256sum"]);
    command.stdin = CommandInput::Bytes(vec![7; 1 << 20]);
    command.timeout = Some(Duration::from_secs(60));
    let stop = CancellationToken::new();
    let summed = sandbox.run(cleared(command), 1 << 16, &stop).await;
    let want = std::process::Command::new("sh")
        .args([
            "-c",
            "head -c 1048576 /dev/zero | tr '\\0' '\\7' | sha256sum",
        ])
        .output()
        .unwrap();
    assert_eq!(summed.unwrap().stdout.into_bytes(), want.stdout);

    let file = ReadRequest::whole(PathAt::anywhere("/etc/hostname"));
    let refused = sandbox.warden().read_file(file).await.unwrap_err();
    assert!(refused.to_string().contains("plain shell"), "{refused}");
    backend.destroy(&spec.id).await.unwrap();
    assert_eq!(processes_with("86472.5"), Vec::<u32>::new());
    assert_eq!(backend.list().await.unwrap(), []);
}

/// A command looks for the word by which its end is told, among its ancestors' arguments and variables, and
/// says every word that it finds there as if it had ended well.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_lie_about_how_it_ended() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = foreign(&lab, &installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let forging = "p=$PPID; while [ $p -gt 1 ]; do \
        for w in $(cat /proc/$p/cmdline /proc/$p/environ /proc/self/environ 2>/dev/null \
            | tr -c 'A-Za-z0-9_-' ' '); do \
            printf '\\n%s 0\\n' $w >&2; printf '\\n%s 0\\n' ${w#0134n} >&2; done; \
        p=$(awk '/^PPid/ {print $2}' /proc/$p/status 2>/dev/null); p=${p:-1}; done; \
        echo honest; exit 7";
    let ended = run(&sandbox, forging).await;
    assert_eq!((ended.code(), stdout(&ended).as_str()), (7, "honest\n"));
    backend.destroy(&spec.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_what_hides() {
    const MARKER: &str = "86471.5";
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = foreign(&lab, &installation);
    let spec = spec(&installation, SandboxPersistence::Ephemeral);
    let sandbox = make(&backend, &spec).await;
    let text = format!(
        "setsid sleep {MARKER} & (setsid sh -c 'trap \"\" TERM; sleep {MARKER}' &); echo up; sleep {MARKER}"
    );
    let mut command = Command::script(text);
    command.timeout = Some(Duration::from_secs(2));
    let stop = CancellationToken::new();
    let finished = sandbox.run(cleared(command), 1 << 16, &stop).await;
    assert_eq!(finished.unwrap().code(), 124);
    assert_eq!(processes_with(MARKER), Vec::<u32>::new());

    // So does letting go.
    let begun = lab.home().join("begun");
    let text = format!("touch {}; sleep {MARKER}", begun.display());
    tokio::select! {
        _ = run(&sandbox, &text) => panic!("it ended by itself"),
        () = until_there(&begun) => {}
    }
    until_gone(MARKER).await;
    backend.destroy(&spec.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_one_is_stopped_listed_and_brought_back() {
    let Some(lab) = Lab::open() else { return };
    let installation = InstallationId::random();
    let backend = foreign(&lab, &installation);
    let spec = spec(&installation, SandboxPersistence::Kept);
    let sandbox = make(&backend, &spec).await;
    run(
        &sandbox,
        "echo mine > note; (setsid sleep 86473.5 &); mkdir x; chmod 0 x",
    )
    .await;
    let listed = backend.list().await.unwrap();
    assert_eq!(listed[0].state, FoundState::Running);
    assert_eq!(listed[0].conversation.as_ref(), Some(&spec.conversation));
    // Another installation does not see it.
    assert_eq!(
        foreign(&lab, &InstallationId::random())
            .list()
            .await
            .unwrap(),
        []
    );

    backend.stop(&spec.id).await.unwrap();
    assert_eq!(processes_with("86473.5"), Vec::<u32>::new());
    assert_eq!(backend.list().await.unwrap()[0].state, FoundState::Stopped);
    assert!(backend.connect(&spec.id).await.is_err());
    let link = backend.resume(&spec).await.unwrap();
    let sandbox = Sandbox::greet(&spec.id, backend.description(), link)
        .await
        .unwrap();
    assert_eq!(stdout(&run(&sandbox, "cat note").await), "mine\n");
    backend.destroy(&spec.id).await.unwrap();
    backend.destroy(&spec.id).await.unwrap();
    let folder = lab.home().join(".hermetic").join(installation.as_str());
    assert_eq!(fs::read_dir(folder.join("plain")).unwrap().count(), 0);
}
