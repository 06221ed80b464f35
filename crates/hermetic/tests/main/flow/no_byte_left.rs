//! A start on a disk without a byte: whatever is opened first waits for room, and everybody can see why.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::path::PathBuf;

use super::full_disk::{WAITS, on_a_small_disk, part, until_status};
use super::lab::{ALICE, Lab};

#[test]
fn a_start_without_a_byte_left_waits_and_works_with_room() {
    let test = "flow::no_byte_left::a_start_without_a_byte_left_waits_and_works_with_room";
    on_a_small_disk(test, async || {
        let Some(mut lab) = stopped_lab(test).await else {
            return;
        };
        let filler = Filler::of_bytes();
        lab.restart_until(WAITS, &[]);
        waits(&lab).await;
        let status = lab.run(&["status"]).out;
        assert!(status.contains("the disk is full"), "{status}");
        filler.remove();
        works(&mut lab).await;
    });
}

/// Nothing of ours is there yet: folder, lock, installation, store and the copy of `/etc` all lack room.
#[test]
fn a_first_start_without_a_byte_left_waits_and_works_with_room() {
    let test = "flow::no_byte_left::a_first_start_without_a_byte_left_waits_and_works_with_room";
    on_a_small_disk(test, async || {
        let Some(mut lab) = stopped_lab(test).await else {
            return;
        };
        fs::remove_dir_all(lab.path("hermetic")).unwrap();
        let filler = Filler::of_bytes();
        lab.restart_until(WAITS, &[]);
        waits(&lab).await;
        filler.remove();
        works(&mut lab).await;
        let left = fs::read_dir(lab.path("hermetic")).unwrap().flatten();
        let names = left.map(|entry| entry.file_name().into_string().unwrap());
        let drafts: Vec<_> = names
            .filter(|name| name.contains("partial") || name.starts_with("installation."))
            .collect();
        assert!(drafts.is_empty(), "{drafts:?}");
    });
}

/// Bytes are there, and no file can be made: not even the lock.
#[test]
fn a_first_start_without_a_name_left_waits_and_works_with_room() {
    let test = "flow::no_byte_left::a_first_start_without_a_name_left_waits_and_works_with_room";
    on_a_small_disk(test, async || {
        let Some(mut lab) = stopped_lab(test).await else {
            return;
        };
        fs::remove_dir_all(lab.path("hermetic")).unwrap();
        let filler = Filler::of_names();
        lab.restart_until(WAITS, &[]);
        waits(&lab).await;
        filler.remove();
        works(&mut lab).await;
    });
}

/// Its log is on that disk too, and loses its lines.
#[test]
fn a_daemon_whose_log_has_no_room_waits_and_works_with_room() {
    let test = "flow::no_byte_left::a_daemon_whose_log_has_no_room_waits_and_works_with_room";
    on_a_small_disk(test, async || {
        let Some(lab) = stopped_lab(test).await else {
            return;
        };
        // Ends after the filler is gone: without room it could not say which process it is.
        let daemon = Daemon(&lab);
        let filler = Filler::of_bytes();
        let started = lab.run(&["gateway", "start", "--timeout", "3"]);
        assert!(started.err.contains("goes on trying"), "{}", started.err);
        waits(&lab).await;
        filler.remove();
        until_status(&lab, "ok").await;
        assert!(lab.ask(ALICE, "/sh echo fine").await.contains("fine"));
        drop(daemon);
        let status = lab.run(&["gateway", "status"]);
        assert!(status.out.contains("not running"), "{}", status.out);
    });
}

#[test]
fn a_start_without_a_byte_left_ends_when_it_is_told_to() {
    let test = "flow::no_byte_left::a_start_without_a_byte_left_ends_when_it_is_told_to";
    on_a_small_disk(test, async || {
        let Some(mut lab) = stopped_lab(test).await else {
            return;
        };
        let filler = Filler::of_bytes();
        lab.restart_until(WAITS, &[]);
        lab.terminate();
        filler.remove();
    });
}

/// A lab whose gateway ran once, on a port of health that everybody knows, and is stopped.
async fn stopped_lab(test: &str) -> Option<Lab> {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let known = [("HERMETIC_DASHBOARD_PORT", port.as_str())];
    let mut lab = Lab::start_in(test, [], "", "TELEGRAM_ALLOWED_USERS=7", &known).await?;
    lab.terminate();
    Some(lab)
}

async fn waits(lab: &Lab) {
    let (number, told) = until_status(lab, "degraded").await;
    assert_eq!(number, 503, "{told}");
    let why = part(&told, "store")["why"].as_str().unwrap();
    assert!(why.contains("disk is full"), "{told}");
}

async fn works(lab: &mut Lab) {
    let (number, told) = until_status(lab, "ok").await;
    assert_eq!(number, 200, "{told}");
    assert!(lab.ask(ALICE, "/sh echo fine").await.contains("fine"));
    lab.terminate();
}

/// A gateway that is no child of the test, and ends with it all the same.
struct Daemon<'a>(&'a Lab);

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.0.run(&["gateway", "stop"]);
    }
}

/// Whatever takes the room of the small disk.
struct Filler(PathBuf);

impl Filler {
    /// To the last byte.
    fn of_bytes() -> Self {
        let folder = Self::folder();
        let mut file = File::create(folder.join("bytes")).unwrap();
        for piece in [1 << 20, 4096, 1] {
            let bytes = vec![1; piece];
            while file.write(&bytes).is_ok_and(|written| written > 0) {}
        }
        let full = file.write(&[1]).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        Self(folder)
    }

    /// To the last name.
    fn of_names() -> Self {
        let folder = Self::folder();
        let made =
            (0..).map_while(|number: u32| File::create(folder.join(number.to_string())).ok());
        assert!(made.count() > 0);
        Self(folder)
    }

    fn remove(self) {
        drop(self);
    }

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join("filler");
        fs::create_dir(&folder).unwrap();
        folder
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
