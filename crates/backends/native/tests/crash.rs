//! The creator is killed at a bad moment, many times over.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hermetic_native::{EarlyStart, NativeBackend};
use hermetic_sandbox::{Backend, FoundState, SandboxLifeline};
use hermetic_types::{InstallationId, SandboxId};
use hermetic_warden::client::Warden;

use crate::lab::{
    Lab, TEST_TIMEOUT, finished, greet, holders, open, open_starting, sh, spec, stories, until,
};

const STATE: &str = "HERMETIC_TEST_CRASH_STATE";
const INSTALLATION: &str = "HERMETIC_TEST_CRASH_INSTALLATION";
const TIED: &str = "HERMETIC_TEST_CRASH_TIED";
const ROUNDS: u64 = 15;

/// Not a test of its own: the process that is killed. Creates and destroys until then.
#[test]
fn creator() {
    let (Ok(state), Ok(installation)) = (std::env::var(STATE), std::env::var(INSTALLATION)) else {
        return;
    };
    let installation: InstallationId = installation.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        // As a gateway has it.
        let native = open_starting(Path::new(&state), &installation, EarlyStart::Always);
        for _ in 0..1000 {
            let mut spec = spec(&installation);
            if std::env::var_os(TIED).is_some() {
                spec.lifeline = SandboxLifeline::Creator;
            }
            let warden = greet(native.create(&spec).await.unwrap()).await;
            sh(&warden, "(setsid sleep 1000 &); true").await;
            native.destroy(&spec.id).await.unwrap();
        }
    });
}

async fn crash_and_count(lab: &Lab, tied: bool) {
    let native = open(lab.state.path(), &lab.installation);
    for round in 0..ROUNDS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "crash::creator", "--nocapture"])
            .env(STATE, lab.state.path())
            .env(INSTALLATION, lab.installation.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if tied {
            command.env(TIED, "1");
        }
        let mut creator = command.spawn().unwrap();
        // It has begun; what follows is the spread of moments at which it dies.
        until("the creator is at work", || {
            sandboxes(lab.state.path()) > 0 || creator.try_wait().unwrap().is_some()
        })
        .await;
        tokio::time::sleep(Duration::from_micros(round * 1_700 % 25_000)).await;
        creator.kill().unwrap();
        creator.wait().unwrap();

        if tied {
            until("what was tied is dead", || {
                holders(lab.state.path()).is_empty()
            })
            .await;
        }
        // Set-up that was under way ends by itself; what was confirmed is found and answers.
        until("nothing is half-alive", || {
            let living = living(lab.state.path());
            holders(lab.state.path())
                .iter()
                .all(|pid| !is_first(*pid) || living.contains(pid))
        })
        .await;
        for found in native.list().await.unwrap() {
            if found.state == FoundState::Running {
                answers_or_dies(&native, &found.id).await;
            }
            native.destroy(&found.id).await.unwrap();
        }
        until("nothing is left", || holders(lab.state.path()).is_empty()).await;
        assert_eq!(sandboxes(lab.state.path()), 0);
    }
}

/// One that was written down but never told to go on may be dying as we look.
async fn answers_or_dies(native: &NativeBackend, id: &SandboxId) {
    let settled = async {
        loop {
            if let Ok(link) = native.connect(id).await
                && let Ok(warden) = Warden::greet(link.into_stream(), TEST_TIMEOUT).await
            {
                assert_eq!(sh(&warden, "echo alive").await.text, "alive\n");
                return;
            }
            let found = native.list().await.unwrap();
            if !found
                .iter()
                .any(|f| &f.id == id && f.state == FoundState::Running)
            {
                return;
            }
        }
    };
    finished(settled).await;
}

fn sandboxes(state: &Path) -> usize {
    std::fs::read_dir(state.join("sandboxes")).map_or(0, Iterator::count)
}

/// Pids that a sandbox's folder speaks of.
fn living(state: &Path) -> Vec<u32> {
    let folders = std::fs::read_dir(state.join("sandboxes"))
        .unwrap()
        .flatten();
    let lives: Vec<PathBuf> = folders
        .map(|folder| folder.path().join("sandbox.json"))
        .collect();
    lives
        .iter()
        .filter_map(|life| std::fs::read_to_string(life).ok())
        .filter_map(|text| {
            let digits: String = text
                .rsplit("\"pid\":")
                .next()?
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse().ok()
        })
        .collect()
}

/// Whether it is the first process of its own pid namespace.
fn is_first(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| {
        status
            .lines()
            .any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"))
    })
}

stories! {
    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        crash_and_count(lab, false).await;
    }

    async fn a_killed_creator_takes_its_tied_sandbox_along(lab: &Lab) {
        crash_and_count(lab, true).await;
    }
}
