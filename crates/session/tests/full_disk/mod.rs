//! Ends that could not be written down, because the disk was full.

use std::process::Command;
use std::time::Duration;

use hermetic_sandbox::SandboxPersistence;
use hermetic_session::{LeaseError, LetGoError};
use hermetic_store::LedgerState;
use hermetic_types::ConversationKey;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::lab::Lab;

/// No file of this process grows while this is there.
struct FullDisk(Rlimit);

impl FullDisk {
    fn new() -> Self {
        let before = getrlimit(Resource::Fsize);
        let current = Some(0);
        setrlimit(Resource::Fsize, Rlimit { current, ..before }).unwrap();
        Self(before)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        setrlimit(Resource::Fsize, self.0).unwrap();
    }
}

/// Runs the test in a process of its own, in which a file that may not grow is an error: the kernel also
/// sends a signal, and what ignores that is inherited. `true` in that process.
fn survives_a_full_disk(test: &str) -> bool {
    const MARK: &str = "HERMETIC_TEST_SURVIVES_A_FULL_DISK";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let ran = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("full_disk::{test}"), "--nocapture"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let (said, complained) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    let passed = ran.status.success() && said.contains("1 passed");
    assert!(passed, "{said}{complained}");
    false
}

const A_MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_destroy_that_could_not_be_written_down_is_done_when_there_is_room() {
    if !survives_a_full_disk("a_destroy_that_could_not_be_written_down_is_done_when_there_is_room")
    {
        return;
    }
    for persistence in [SandboxPersistence::Ephemeral, SandboxPersistence::Kept] {
        let lab = Lab::new(persistence, 1).await;
        drop(lab.lease("alice").await.unwrap());
        let alice = ConversationKey::new("alice");
        let full = FullDisk::new();
        let refused = lab.sandboxes.reset(&alice).await.unwrap_err();
        assert!(matches!(refused, LetGoError::Ledger(_)), "{refused}");
        // Nobody is given what was to be destroyed.
        assert!(lab.lease("alice").await.is_err());
        assert_eq!(lab.backend.living(), 1);
        drop(full);
        lab.pass(A_MINUTE).await;
        assert_eq!(lab.backend.living(), 0);
        assert_eq!(lab.states().await, []);
        // Its place is free.
        lab.lease("bob").await.unwrap();
    }
}

#[tokio::test]
async fn a_destroyed_sandbox_is_not_given_back_with_its_files() {
    if !survives_a_full_disk("a_destroyed_sandbox_is_not_given_back_with_its_files") {
        return;
    }
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let before = lab.lease("alice").await.unwrap().id().clone();
    let full = FullDisk::new();
    let alice = ConversationKey::new("alice");
    assert!(lab.sandboxes.reset(&alice).await.is_err());
    drop(full);
    assert_ne!(lab.lease("alice").await.unwrap().id(), &before);
    assert_eq!(lab.backend.living(), 1);
}

#[tokio::test]
async fn what_was_made_and_could_not_be_written_down_is_destroyed() {
    if !survives_a_full_disk("what_was_made_and_could_not_be_written_down_is_destroyed") {
        return;
    }
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    lab.backend.hang_creates(true);
    let leasing = tokio::spawn({
        let sandboxes = lab.sandboxes.clone();
        async move { sandboxes.lease(&ConversationKey::new("alice")).await }
    });
    while lab.states().await != [("alice".to_owned(), LedgerState::Creating)] {
        tokio::task::yield_now().await;
    }
    let full = FullDisk::new();
    lab.backend.hang_creates(false);
    let refused = leasing.await.unwrap().unwrap_err();
    assert!(matches!(refused, LeaseError::Ledger(_)), "{refused}");
    drop(full);
    lab.pass(A_MINUTE).await;
    assert_eq!(lab.backend.living(), 0);
    assert_eq!(lab.states().await, []);
}
