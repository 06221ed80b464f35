//! No room, or a disk that answers with errors.

use std::fs;
use std::process::Command;
use std::time::Duration;

use hermetic_store::{RowOwner, Store};
use hermetic_types::{PartHealth, SystemClock};
use tokio::time::{sleep, timeout};

use crate::disk::{Disk, EIO, ENOSPC, on_a_disk};
use crate::every_write::{every_write, key, now, scene, told};

/// For something that happens by itself.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// More commits or syncs than any test here makes.
const ALL: u32 = 1_000_000;

/// Each write on a fresh store whose disk fails in this way, and again when it is well.
async fn each_write_fails_whole_and_works_later(disk: &Disk, fail: impl Fn(&Disk)) {
    for write in every_write() {
        let folder = tempfile::tempdir_in(disk.folder()).unwrap();
        let store = Store::open(&folder.path().join("state.db"), SystemClock::shared())
            .await
            .unwrap();
        let scene = scene(store).await;
        let before = told(&scene.store).await;
        fail(disk);
        let failed = (write.run)(&scene).await;
        assert!(failed.is_err(), "{}: it seemed to work", write.name);
        assert_eq!(told(&scene.store).await, before, "{}", write.name);
        let health = scene.store.health().health();
        assert!(matches!(health, PartHealth::Degraded { .. }), "{health:?}");
        disk.is_well();
        (write.run)(&scene).await.unwrap();
    }
}

#[test]
fn what_finds_no_room_is_an_error_and_changes_nothing() {
    let test = "full_disk::what_finds_no_room_is_an_error_and_changes_nothing";
    on_a_disk(test, async |disk| {
        each_write_fails_whole_and_works_later(&disk, |disk| {
            disk.fails_commits(ENOSPC, 1, ALL);
        })
        .await;
    });
}

#[test]
fn what_the_disk_refuses_is_an_error_and_changes_nothing() {
    let test = "full_disk::what_the_disk_refuses_is_an_error_and_changes_nothing";
    on_a_disk(test, async |disk| {
        each_write_fails_whole_and_works_later(&disk, |disk| disk.fails_commits(EIO, 1, ALL)).await;
    });
}

/// A sync that failed may have lost what was written before, and is not told again: the next commits go
/// on only after all of it is safe elsewhere.
#[test]
fn after_a_failed_sync_nothing_that_was_acknowledged_is_lost() {
    let test = "full_disk::after_a_failed_sync_nothing_that_was_acknowledged_is_lost";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        let (inbox, history) = (store.inbox(), store.history());
        history.append(&key("k"), "before", now()).await.unwrap();
        disk.fails_syncs(EIO, 1, 1);
        let refused = inbox.accept("t", "1", &key("k"), "{}", now()).await;
        assert!(refused.is_err(), "{refused:?}");
        let taken = inbox
            .accept("t", "1", &key("k"), "{}", now())
            .await
            .unwrap();
        assert!(taken.is_some(), "taken for one that was there already");
        // All of it is in the file itself: the log before the failure is not needed.
        let (copy, path) = disk.after_a_power_cut();
        let survived = Store::open(&path, SystemClock::shared()).await.unwrap();
        assert_eq!(
            survived
                .inbox()
                .open(RowOwner::ThisGateway)
                .await
                .unwrap()
                .len(),
            1
        );
        let said = survived.history().recent(&key("k"), 9).await.unwrap();
        assert_eq!(said, ["before"]);
        drop(copy);
    });
}

#[test]
fn trouble_has_a_reason_and_ends_by_itself() {
    let test = "full_disk::trouble_has_a_reason_and_ends_by_itself";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        assert_eq!(store.health().health(), PartHealth::Ok);
        disk.fails_commits(ENOSPC, 1, ALL);
        let refused = store.inbox().accept("t", "1", &key("k"), "{}", now()).await;
        assert!(refused.is_err());
        match store.health().health() {
            PartHealth::Degraded { why, .. } => assert!(why.contains("disk is full"), "{why}"),
            PartHealth::Ok => panic!("nobody was told"),
        }
        disk.is_well();
        // Nobody writes anything.
        let well = timeout(PATIENCE, async {
            while !store.health().health().is_ok() {
                sleep(LOOK_AGAIN).await;
            }
        });
        well.await.expect("never well again");
    });
}

#[test]
fn what_was_done_already_waits_for_room() {
    let test = "full_disk::what_was_done_already_waits_for_room";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        store.wait_for_room();
        let accepted = store.inbox().accept("t", "1", &key("k"), "{}", now()).await;
        let message = accepted.unwrap().unwrap();
        let reply = ("t", "{}", "the answer");
        let end = hermetic_store::MessageEnd::Answered;
        disk.fails_commits(ENOSPC, 1, ALL);
        let queued = {
            let deliveries = store.deliveries();
            tokio::spawn(async move { deliveries.queue_and_end(message, end, reply, now()).await })
        };
        let refused = store.inbox().accept("t", "2", &key("k"), "{}", now()).await;
        assert!(refused.is_err(), "a message was taken without room");
        assert!(!queued.is_finished(), "it did not wait");
        disk.is_well();
        timeout(PATIENCE, queued).await.unwrap().unwrap().unwrap();
        let due = store.deliveries().due(RowOwner::ThisGateway).await.unwrap();
        assert_eq!(due.len(), 1, "{due:?}");
        assert_eq!(store.inbox().open(RowOwner::ThisGateway).await.unwrap(), []);
    });
}

#[test]
fn a_waiting_write_ends_when_nobody_waits_any_more() {
    let test = "full_disk::a_waiting_write_ends_when_nobody_waits_any_more";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        store.wait_for_room();
        disk.fails_commits(ENOSPC, 1, ALL);
        let history = store.history();
        let waits = tokio::spawn(async move { history.append(&key("k"), "x", now()).await });
        store.stop_waiting_for_room();
        assert!(timeout(PATIENCE, waits).await.unwrap().unwrap().is_err());
    });
}

/// The real thing: a file system of two megabytes, in a mount namespace of its own.
#[test]
fn on_a_file_system_that_fills_nothing_is_taken_and_work_goes_on_with_room() {
    const INSIDE: &str = "STORE_ON_SMALL_DISK";
    let test = "full_disk::on_a_file_system_that_fills_nothing_is_taken_and_work_goes_on_with_room";
    if let Some(folder) = std::env::var_os(INSIDE) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        return runtime.block_on(fill(std::path::Path::new(&folder)));
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=2m none \"$STORE_ON_SMALL_DISK\" || exit 99; exec \"$@\"";
    let status = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, folder.path())
        .status();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => {}
        Ok(Some(1 | 99)) | Err(_) if !may_mount() => {
            eprintln!("SKIP: {test}: no file system can be mounted here");
        }
        other => panic!("{other:?}"),
    }
}

fn may_mount() -> bool {
    Command::new("unshare")
        .args([
            "--map-root-user",
            "--mount",
            "mount",
            "-t",
            "tmpfs",
            "none",
            "/mnt",
        ])
        .status()
        .is_ok_and(|status| status.success())
}

async fn fill(folder: &std::path::Path) {
    // Somebody else's file, that can be taken away again.
    let others = folder.join("others");
    fs::write(&others, vec![0; 300_000]).unwrap();
    let store = Store::open(&folder.join("state.db"), SystemClock::shared())
        .await
        .unwrap();
    let inbox = store.inbox();
    let payload = "x".repeat(10_000);
    let mut taken = Vec::new();
    // Bounded by the size of the file system.
    let refused = loop {
        let update = taken.len().to_string();
        match inbox.accept("t", &update, &key("k"), &payload, now()).await {
            Ok(row) => taken.push(row.expect("a new message")),
            Err(error) => break error,
        }
        assert!(taken.len() < 1000, "it never filled");
    };
    let health = store.health().health();
    assert!(!health.is_ok(), "{refused:?}");
    let open = inbox.open(RowOwner::ThisGateway).await.unwrap();
    assert_eq!(open.len(), taken.len(), "what was acknowledged is there");
    fs::remove_file(&others).unwrap();
    let update = taken.len().to_string();
    let row = inbox.accept("t", &update, &key("k"), &payload, now()).await;
    assert!(row.unwrap().is_some());
    assert!(fs::metadata(folder.join("state.db")).is_ok());
}
