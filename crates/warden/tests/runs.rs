//! One-shot commands.

use hermetic_warden::client::{RunEvent, WardenCallError};
use hermetic_warden::protocol::{ExitState, FailureKind, RunRequest, StdinMode};

use crate::lab::{Lab, run, sh, told};

#[tokio::test]
async fn a_command_says_what_it_says_and_ends_as_it_ends() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let told = run(&warden, sh("echo out; echo err >&2; exit 7")).await;
    assert_eq!(told.out, b"out\n");
    assert_eq!(told.err, b"err\n");
    assert_eq!(told.ended.status, ExitState::Exited(7));
    assert_eq!(told.ended.leftovers, 0);
}

#[tokio::test]
async fn a_signal_is_reported_as_one() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let told = run(&warden, sh("kill -SEGV $$")).await;
    assert_eq!(told.ended.status, ExitState::Signalled(11));
    assert!(!told.ended.killed_for_memory);
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let mut missing = RunRequest::new(["no-such-program"]);
    assert_eq!(
        kind(told(warden.run(missing.clone()).await.unwrap()).await),
        FailureKind::ProgramNotFound
    );
    missing = RunRequest::new(["/etc/passwd"]);
    assert_eq!(
        kind(told(warden.run(missing.clone()).await.unwrap()).await),
        FailureKind::ProgramNotStarted
    );
    missing = RunRequest::new(["true"]);
    missing.cwd = Some("/no/such/folder".into());
    assert_eq!(
        kind(told(warden.run(missing).await.unwrap()).await),
        FailureKind::WorkingDirectory
    );
}

fn kind<T: std::fmt::Debug>(result: Result<T, WardenCallError>) -> FailureKind {
    match result {
        Err(WardenCallError::Failed(failure)) => failure.kind,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn stdin_goes_in_however_much_it_is() {
    let lab = Lab::new().await;
    let warden = lab.warden().await;
    let mut request = RunRequest::new(["sha256sum"]);
    request.stdin = StdinMode::Open;
    let mut running = warden.run(request).await.unwrap();
    let stdin = running.stdin();
    let bytes: Vec<u8> = (0..5_000_000u32).map(|i| (i % 251) as u8).collect();
    let expected = hex(&bytes);
    let feeding = tokio::spawn(async move {
        stdin.write(&bytes).await.unwrap();
        stdin.end().await.unwrap();
    });
    let mut out = Vec::new();
    while let Some(event) = running.next().await.unwrap() {
        if let RunEvent::Out(bytes) = event {
            out.extend_from_slice(&bytes);
        }
    }
    feeding.await.unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap().split(' ').next(),
        Some(&*expected)
    );
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
