//! A full disk: nothing is taken that could be lost, everybody can see why, and room is all it needs.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::answers::stalls;
use super::faulty_disk::FaultyDisk;
use super::lab::{ALICE, BOB, Lab};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_nothing_is_acknowledged_and_work_goes_on_with_room() {
    let test = "on_a_full_disk_nothing_is_acknowledged_and_work_goes_on_with_room";
    let disk = match FaultyDisk::build() {
        Ok(disk) => disk,
        Err(why) => return eprintln!("SKIP: {test}: {why}"),
    };
    let Some(mut lab) = Lab::start(test, []).await else {
        return;
    };
    lab.terminate();
    disk.start(&mut lab);
    assert!(lab.ask(ALICE, "/help").await.contains("/reset"));
    let (number, well) = health(&lab).await;
    assert_eq!((number, well["status"].as_str()), (200, Some("ok")));
    lab.telegram.wait_until_confirmed().await;

    disk.is_full();
    let said = [
        lab.telegram.says(ALICE, "/help"),
        lab.telegram.says(BOB, "/help"),
    ];
    let (number, told) = until_status(&lab, "degraded").await;
    assert_eq!(number, 503, "{told}");
    let store = part(&told, "store");
    let why = store["why"].as_str().unwrap();
    assert!(why.contains("disk is full"), "{told}");
    assert!(store["since"].is_i64(), "{told}");
    let said_by_status = timeout(PATIENCE, async {
        while !lab
            .run(&["status"])
            .out
            .contains("degraded: store: the disk is full")
        {
            sleep(LOOK_AGAIN).await;
        }
    });
    said_by_status.await.expect("status never said so");
    assert_eq!(lab.telegram.unconfirmed().len(), said.len());

    disk.is_well();
    for user in [ALICE, BOB] {
        let before = usize::from(user == ALICE);
        let replies = lab.replies(user, before + 1).await;
        assert!(replies[before].contains("/reset"), "{replies:?}");
    }
    let (number, told) = until_status(&lab, "ok").await;
    assert_eq!(number, 200, "{told}");
    lab.telegram.wait_until_confirmed().await;
    let said = lab.terminate();
    assert!(
        said.contains("degraded") && said.contains("well again"),
        "{said}"
    );
    assert_eq!((lab.sent_to(ALICE), lab.sent_to(BOB)), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_on_a_full_disk_waits_and_says_so_and_works_with_room() {
    let test = "a_start_on_a_full_disk_waits_and_says_so_and_works_with_room";
    let Some((disk, mut lab)) = stopped_lab(test).await else {
        return;
    };
    // A sandbox is named in the ledger before it exists, so none can be tried out.
    disk.start_full(&mut lab, WAITS);
    let (number, told) = until_status(&lab, "degraded").await;
    assert_eq!(number, 503, "{told}");
    let why = part(&told, "store")["why"].as_str().unwrap();
    assert!(why.contains("disk is full"), "{told}");
    let said_by_status = timeout(PATIENCE, async {
        while !lab.run(&["status"]).out.contains("the disk is full") {
            sleep(LOOK_AGAIN).await;
        }
    });
    said_by_status.await.expect("status never said so");
    lab.telegram.says(ALICE, "/help");

    disk.is_well();
    assert!(lab.replies(ALICE, 1).await[0].contains("/reset"));
    let (number, told) = until_status(&lab, "ok").await;
    assert_eq!(number, 200, "{told}");
    assert!(lab.ask(ALICE, "/sh echo fine").await.contains("fine"));
    lab.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_waits_for_room_ends_when_it_is_told_to() {
    let test = "a_start_that_waits_for_room_ends_when_it_is_told_to";
    let Some((disk, mut lab)) = stopped_lab(test).await else {
        return;
    };
    disk.start_full(&mut lab, WAITS);
    lab.terminate();
    disk.is_well();
    lab.restart();
    assert!(lab.ask(ALICE, "/help").await.contains("/reset"));
    lab.terminate();
}

/// The store has its reserve, so that only sandboxes have to wait.
#[test]
fn a_start_below_the_reserve_serves_what_needs_no_sandbox() {
    let test = "flow::full_disk::a_start_below_the_reserve_serves_what_needs_no_sandbox";
    on_a_small_disk(test, async || {
        // The reserve is a twentieth of the disk, some 13 MB; half of it is left.
        let filler = std::env::temp_dir().join("filler");
        std::fs::write(&filler, vec![1; 250_000_000]).unwrap();
        let Some(mut lab) = Lab::start(test, []).await else {
            return;
        };
        assert!(lab.ask(BOB, "/help").await.contains("/sh"));
        let refused = lab.ask(BOB, "/sh echo fine").await;
        assert!(refused.contains("disk is nearly full"), "{refused}");
        std::fs::remove_file(&filler).unwrap();
        until_status(&lab, "ok").await;
        assert!(lab.ask(BOB, "/sh echo fine").await.contains("fine"));
        lab.terminate();
    });
}

/// Who fills the disk is stopped though nobody can write that down, and is told when somebody can.
#[tokio::test(flavor = "multi_thread")]
async fn who_fills_the_disk_is_stopped_though_the_ledger_has_no_room() {
    let test = "who_fills_the_disk_is_stopped_though_the_ledger_has_no_room";
    let disk = match FaultyDisk::build() {
        Ok(disk) => disk,
        Err(why) => return eprintln!("SKIP: {test}: {why}"),
    };
    let (more, access) = (
        "gateway: {sandboxes_disk: 40}\n",
        "TELEGRAM_ALLOWED_USERS=7,8",
    );
    let Some(mut lab) = Lab::start_with(test, [], more, access).await else {
        return;
    };
    lab.terminate();
    disk.start(&mut lab);
    assert!(lab.ask(ALICE, "/sh echo fine").await.contains("fine"));
    // The sleep is ended from here when the ledger can be written no more.
    let seconds = unlikely_seconds();
    let greedy = format!(
        "/sh echo begun; sleep {seconds}; head -c 60000000 /dev/zero > big; sleep 1000; echo over"
    );
    lab.telegram.says(ALICE, &greedy);
    let sleeper = until_there(&seconds).await;
    let shell = parent_of(sleeper);
    disk.is_full();
    rustix::process::kill_process(sleeper, Signal::KILL).unwrap();
    let gone = timeout(PATIENCE, async {
        while rustix::process::test_kill_process(shell).is_ok() {
            sleep(LOOK_AGAIN).await;
        }
    });
    gone.await.expect("it was never stopped");

    disk.is_well();
    let told = lab.replies(ALICE, 2).await.remove(1);
    assert!(told.contains("stopped") && told.contains("disk"), "{told}");
    // What had been read is delivered.
    assert!(told.contains("begun") && !told.contains("over"), "{told}");
    assert!(lab.ask(BOB, "/sh echo fine").await.contains("fine"));
    let made_room = lab.ask(ALICE, "/sh rm big && echo made room").await;
    assert!(made_room.contains("made room"), "{made_room}");
    until_status(&lab, "ok").await;
    lab.terminate();
}

/// What the log says of a start that has no room.
pub(super) const WAITS: &str = "waits until the disk has room";

/// A time to sleep that names the sleeper.
fn unlikely_seconds() -> String {
    let digits = RandomState::new().hash_one(0) % 1_000_000_000;
    format!("1000.{digits}")
}

fn parent_of(pid: rustix::process::Pid) -> rustix::process::Pid {
    let pid = pid.as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    rustix::process::Pid::from_raw(parent.unwrap().trim().parse().unwrap()).unwrap()
}

/// The process that sleeps for so long, once it is there.
async fn until_there(seconds: &str) -> rustix::process::Pid {
    let wanted = format!("sleep\0{seconds}\0");
    let is_it = |pid: &i32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words == wanted.as_bytes()
    };
    let looking = async {
        loop {
            let pids = std::fs::read_dir("/proc").unwrap().flatten();
            let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            if let Some(pid) = pids.find(is_it) {
                return rustix::process::Pid::from_raw(pid).unwrap();
            }
            sleep(LOOK_AGAIN).await;
        }
    };
    timeout(PATIENCE, looking)
        .await
        .expect("it never was there")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_conversation_without_room_keeps_nobody_from_being_heard() {
    let test = "a_new_conversation_without_room_keeps_nobody_from_being_heard";
    let disk = match FaultyDisk::build() {
        Ok(disk) => disk,
        Err(why) => return eprintln!("SKIP: {test}: {why}"),
    };
    let queueing = "display: {busy_input_mode: queue, busy_ack_enabled: false}\n";
    let access = "TELEGRAM_ALLOWED_USERS=7,8";
    let Some(mut lab) = Lab::start_with(test, [stalls()], queueing, access).await else {
        return;
    };
    lab.terminate();
    disk.start(&mut lab);
    lab.telegram.says(ALICE, "first");
    lab.model_asked(1).await;
    lab.telegram.says(ALICE, "second, which waits");
    lab.telegram.wait_until_confirmed().await;

    // Room for this word itself, and none to write down that the one which waits is dropped.
    disk.is_full_after(1);
    lab.telegram.says(ALICE, "/new");
    lab.telegram.wait_until_confirmed().await;
    let polls = lab.telegram.tries("getUpdates");
    lab.telegram.says(BOB, "/help");
    // He is heard, and as nothing can be kept he is asked for again.
    lab.telegram.wait_for_tries("getUpdates", polls + 2).await;

    disk.is_well();
    assert!(lab.replies(BOB, 1).await[0].contains("/reset"));
    let replies = lab.replies(ALICE, 1).await;
    let fresh = |reply: &String| reply.contains("fresh") || reply.contains("Interrupted");
    assert!(replies.iter().all(fresh), "{replies:?}");
    lab.telegram.wait_until_confirmed().await;
}

/// A lab whose gateway ran once and is stopped, and the disk it will be started on.
async fn stopped_lab(test: &str) -> Option<(FaultyDisk, Lab)> {
    let disk = match FaultyDisk::build() {
        Ok(disk) => disk,
        Err(why) => {
            eprintln!("SKIP: {test}: {why}");
            return None;
        }
    };
    let mut lab = Lab::start(test, []).await?;
    assert!(lab.ask(BOB, "/help").await.contains("/reset"));
    lab.terminate();
    Some((disk, lab))
}

/// A disk of 256 MB that one chat fills, slowly enough to be stopped in time.
#[test]
fn whoever_fills_the_disk_is_stopped_and_told_and_others_go_on() {
    let test = "flow::full_disk::whoever_fills_the_disk_is_stopped_and_told_and_others_go_on";
    on_a_small_disk(test, async || {
        // Together they may have more than there is, so that the reserve is what is reached.
        let (more, access) = (
            "gateway: {sandboxes_disk: 1000}\n",
            "TELEGRAM_ALLOWED_USERS=7,8",
        );
        let Some(lab) = Lab::start_with(test, [], more, access).await else {
            return;
        };
        assert!(lab.ask(BOB, "/sh echo fine").await.contains("fine"));
        let greedy = "head -c 200000000 /dev/zero > base; \
                      while head -c 1000000 /dev/zero >> more; do sleep 0.02; done";
        let told = lab.ask(ALICE, &format!("/sh {greedy}")).await;
        assert!(told.contains("stopped") && told.contains("disk"), "{told}");
        // No command can make room below the reserve.
        assert!(told.contains("/destroy"), "{told}");
        // Whoever needs no disk of the sandboxes' notices nothing; who does is told why not.
        assert!(lab.ask(BOB, "/help").await.contains("/sh"));
        let refused = lab.ask(BOB, "/sh echo fine").await;
        assert!(refused.contains("disk is nearly full"), "{refused}");
        let (number, health) = health(&lab).await;
        assert_eq!(number, 200, "{health}");
        assert_eq!(part(&health, "disk")["state"], "degraded", "{health}");
        let rows = lab.run(&["sandbox", "list", "--json"]).json();
        let rows = rows.as_array().unwrap();
        let row = |user: i64| {
            let own = |row: &&Value| {
                row["conversation"]
                    .to_string()
                    .contains(&format!(":{user}"))
            };
            rows.iter().find(own).expect("a sandbox of theirs")
        };
        let id = row(ALICE)["id"].as_str().unwrap();
        assert_eq!(lab.run(&["sandbox", "destroy", id]).code, 0);
        until_status(&lab, "ok").await;
        assert!(lab.ask(BOB, "/sh echo fine").await.contains("fine"));
    });
}

/// The same as fast as it goes, so that nothing is left for a moment: the store has its own.
#[test]
fn a_disk_that_one_chat_fills_at_once_silences_nobody() {
    let test = "flow::full_disk::a_disk_that_one_chat_fills_at_once_silences_nobody";
    on_a_small_disk(test, async || {
        let Some(lab) = Lab::start(test, []).await else {
            return;
        };
        assert!(lab.ask(BOB, "/sh echo fine").await.contains("fine"));
        let told = lab
            .ask(ALICE, "/sh dd if=/dev/zero of=big bs=1M; sync")
            .await;
        assert!(
            told.contains("No space left") || told.contains("stopped"),
            "{told}"
        );
        for question in 0..20 {
            let answer = lab.ask(BOB, "/help").await;
            assert!(answer.contains("/sh"), "{question}: {answer}");
        }
        assert_eq!(lab.sent_to(ALICE), 1);
    });
}

/// Runs the body in a mount namespace whose temporary files are on a file system of 256 MB and 20,000 names.
pub(super) fn on_a_small_disk<F: Future<Output = ()>>(test: &str, body: impl FnOnce() -> F) {
    const INSIDE: &str = "HERMETIC_TEST_SMALL_DISK";
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        return runtime.block_on(body());
    }
    if !rustix::process::geteuid().is_root() {
        return eprintln!("SKIP: {test}: only root mounts a file system that sandboxes can use");
    }
    let folder = tempfile::tempdir().unwrap();
    let script =
        "mount -t tmpfs -o size=256m,nr_inodes=20000,mode=1777 none \"$TMPDIR\" && exec \"$@\"";
    let status = std::process::Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("TMPDIR", folder.path())
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed on a small disk");
}

pub(super) fn part<'a>(health: &'a Value, name: &str) -> &'a Value {
    let parts = health["parts"].as_array().unwrap();
    parts.iter().find(|part| part["name"] == name).unwrap()
}

pub(crate) async fn until_status(lab: &Lab, status: &str) -> (u16, Value) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let (number, health) = health(lab).await;
        if health["status"] == status {
            return (number, health);
        }
        let in_time = tokio::time::Instant::now() < deadline;
        assert!(in_time, "it never was {status}: {health}");
        sleep(LOOK_AGAIN).await;
    }
}

/// Asks again where a connection was open when the port changed hands: then nobody answers it.
async fn health(lab: &Lab) -> (u16, Value) {
    for _ in 0..100 {
        let answer = asked(lab).await;
        if let Some((head, body)) = answer.split_once("\r\n\r\n") {
            let number = head.split_whitespace().nth(1).unwrap().parse().unwrap();
            return (number, serde_json::from_str(body).unwrap());
        }
        sleep(LOOK_AGAIN).await;
    }
    panic!("health is not answered");
}

async fn asked(lab: &Lab) -> String {
    let mut stream = TcpStream::connect(lab.health()).await.unwrap();
    let request = b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    // Reset or closed: no answer either way.
    let _ = stream.read_to_string(&mut answer).await;
    answer
}
