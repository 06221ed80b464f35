//! Ending a command ends everything it started, however it hid.

use std::time::Duration;

use hermetic_types::Command;
use hermetic_warden::client::{RunEvent, RunningCommand};
use tokio_util::sync::CancellationToken;

use super::cleared;
use super::lab::{BackendCandidate, ConformanceLab, run, until_gone};

/// Starts children that leave their session, are orphaned twice over and ignore being asked.
fn hiding(marker: &str) -> String {
    format!(
        "setsid sh -c 'exec sleep {marker}' &
         (setsid sh -c '(sleep {marker} &)' &)
         sh -c \"trap '' TERM HUP INT; sleep {marker}; sleep {marker}\" &
         trap '' TERM
         echo ready
         sleep {marker}; sleep {marker}"
    )
}

pub async fn a_timeout_ends_the_whole_tree(candidate: BackendCandidate) {
    const MARKER: &str = "86411.5";
    let lab = ConformanceLab::open(candidate).await;
    let mut command = Command::script(hiding(MARKER));
    command.timeout = Some(Duration::from_secs(1));
    let finished = run(&lab.sandbox, command).await;
    assert_eq!(finished.code(), 124);
    assert_eq!(finished.stdout.into_bytes(), b"ready\n");
    until_gone(&lab.sandbox, MARKER).await;
    lab.close().await;
}

pub async fn an_interrupt_ends_the_whole_tree(candidate: BackendCandidate) {
    const MARKER: &str = "86412.5";
    let lab = ConformanceLab::open(candidate).await;
    let stop = CancellationToken::new();
    let command = cleared(Command::script(hiding(MARKER)));
    let mut running = Box::pin(lab.sandbox.run(command, 1 << 16, &stop));
    // Long enough on a quiet machine for the tree to stand; on a busy one the interrupt comes
    // earlier, which must end well too.
    tokio::select! {
        _ = &mut running => panic!("it ended by itself"),
        () = tokio::time::sleep(Duration::from_millis(300)) => stop.cancel(),
    }
    let finished = running.as_mut().await.unwrap();
    drop(running);
    assert_eq!((finished.code(), finished.interrupted), (130, true));
    until_gone(&lab.sandbox, MARKER).await;
    lab.close().await;
}

pub async fn letting_go_ends_the_command(candidate: BackendCandidate) {
    const MARKER: &str = "86413.5";
    let lab = ConformanceLab::open(candidate).await;
    let command = cleared(Command::script(hiding(MARKER)));
    let mut running = lab.sandbox.start(command).await.unwrap();
    ready(&mut running).await;
    drop(running);
    until_gone(&lab.sandbox, MARKER).await;
    lab.close().await;
}

async fn ready(running: &mut RunningCommand) {
    loop {
        match running.next().await.unwrap() {
            Some(RunEvent::Out(_)) => return,
            Some(_) => {}
            None => panic!("it ended by itself"),
        }
    }
}
