//! What waiting for the disk costs: the writes of a turn without tools, on a disk and in memory, turn by
//! turn in one run. In memory a sync costs nothing, so the difference is the disk's.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench that cannot go on has failed, and its result is what it prints"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::join_all;
use hermetic_store::{MessageEnd, Store};
use hermetic_types::{ConversationKey, SystemClock, Timestamp};

const ALONE: usize = 200;
const CHATS: usize = 50;
const EACH: usize = 20;
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() {
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for round in 0..ROUNDS {
        for (name, folder) in [("disk", disk.path()), ("memory", memory.path())] {
            let path = folder.join(format!("{round}.db"));
            let (alone, many) = measure(&path).await;
            println!(
                "{name}: a turn {:.2} ms (median of {ALONE}); {CHATS} chats at once {many:.0} turns a second",
                alone.as_secs_f64() * 1000.0
            );
        }
        println!(
            "disk: a sync of one page {:.2} ms",
            sync(disk.path()).as_secs_f64() * 1000.0
        );
    }
}

async fn measure(path: &Path) -> (Duration, f64) {
    let store = Store::open(path, SystemClock::shared()).await.unwrap();
    let mut times = Vec::new();
    for n in 0..ALONE {
        let begun = Instant::now();
        turn(&store, "alone", n).await;
        times.push(begun.elapsed());
    }
    times.sort();
    let begun = Instant::now();
    let chats = (0..CHATS).map(|chat| {
        let store = store.clone();
        tokio::spawn(async move {
            let name = chat.to_string();
            for n in 0..EACH {
                turn(&store, &name, n).await;
            }
        })
    });
    for ended in join_all(chats).await {
        ended.unwrap();
    }
    let turns = f64::from(u32::try_from(CHATS * EACH).unwrap());
    (times[ALONE / 2], turns / begun.elapsed().as_secs_f64())
}

/// As the gateway writes one.
async fn turn(store: &Store, chat: &str, n: usize) {
    let (key, now) = (ConversationKey::new(chat), Timestamp::from_millis(1));
    let (inbox, history, deliveries) = (store.inbox(), store.history(), store.deliveries());
    let update = format!("{chat}:{n}");
    let row = inbox
        .accept("t", &update, &key, "{}", now)
        .await
        .unwrap()
        .unwrap();
    inbox.begin(row).await.unwrap();
    history.recent(&key, 20).await.unwrap();
    history.append(&key, "question", now).await.unwrap();
    history.append(&key, "answer", now).await.unwrap();
    let reply = ("t", "{}", "answer");
    let queued = deliveries
        .queue_and_end(row, MessageEnd::Answered, reply, now)
        .await;
    let delivery = queued.unwrap();
    deliveries.begin(delivery).await.unwrap();
    deliveries.sent(delivery, now).await.unwrap();
}

fn sync(folder: &Path) -> Duration {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(folder.join("page")).unwrap();
    let mut times: Vec<_> = (0..100)
        .map(|n| {
            file.write_at(&[1; 4096], n * 4096).unwrap();
            let begun = Instant::now();
            file.sync_data().unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[50]
}
