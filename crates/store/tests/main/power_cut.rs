//! What is left after the power went: at least what was synced, and nothing of it out of order.

use std::time::Duration;

use futures::future::join_all;
use hermetic_store::{RowOwner, Store};
use hermetic_types::SystemClock;
use tokio::time::{sleep, timeout};

use crate::disk::{Disk, on_a_disk};
use crate::every_write::{every_write, key, now, scene, told};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[test]
fn what_was_written_before_an_act_is_there_after_a_power_cut() {
    let test = "power_cut::what_was_written_before_an_act_is_there_after_a_power_cut";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        let scene = scene(store).await;
        // In one store, one after the other: what was written without waiting comes along with the next
        // that waits.
        let order = [
            "history.append",
            "history.compact",
            "sessions.begin_anew",
            "sessions.resume",
            "history.take_back",
            "conversation_models.choose",
            "conversation_models.forget",
            "inbox.accept",
            "scheduled_jobs.add",
            "scheduled_jobs.claim",
            "inbox.rewrite",
            "inbox.begin",
            "tool_calls.begin",
            "tool_calls.end",
            "inbox.begin_once",
            "approvals.open",
            "approvals.spend",
            "approvals.answer",
            "approvals.showing",
            "approvals.shown",
            "approvals.add_button",
            "approvals.revoke",
            "approvals.close",
            "ledger.name",
            "ledger.mark running",
            "ledger.mark",
            "ledger.give",
            "ledger.set_aside",
            "ledger.take_back",
            "processes.name",
            "documents.put",
            "documents.replace",
            "account_state.save_soon",
            "account_state.save",
            "account_state.remove",
            "inbox.note_draft",
            "deliveries.queue_and_end",
            "deliveries.begin",
            "deliveries.put_back",
            "deliveries.hand_over",
            "deliveries.lost",
            "browser_chat.open",
            "browser_chat.show",
            "browser_chat.say",
            "browser_chat.forget",
            "memories.replace",
            "memories.ask",
            "memories.settle",
            "memories.forget",
            "skill_drafts.put",
            "skill_drafts.settle",
        ];
        let writes = every_write();
        let mut tried = 0;
        for name in order {
            let write = writes.iter().find(|write| write.name == name).unwrap();
            (write.run)(&scene).await.unwrap();
            if !write.is_on_disk {
                continue;
            }
            let (copy, path) = disk.after_a_power_cut();
            let survived = Store::open(&path, SystemClock::shared()).await.unwrap();
            assert_eq!(
                told(&survived).await,
                told(&scene.store).await,
                "after {name}"
            );
            drop(copy);
            tried += 1;
        }
        let all = writes.iter().filter(|write| write.is_on_disk).count();
        assert_eq!(tried, all, "one was left out");
    });
}

#[test]
fn what_nobody_waits_for_is_on_the_disk_a_moment_later() {
    let test = "power_cut::what_nobody_waits_for_is_on_the_disk_a_moment_later";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        store.history().append(&key("k"), "x", now()).await.unwrap();
        until_on_the_disk(&disk, "x").await;
    });
}

#[test]
fn a_write_that_changes_nothing_takes_nobodys_sync() {
    let test = "power_cut::a_write_that_changes_nothing_takes_nobodys_sync";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        let accept = || async { store.inbox().accept("t", "1", &key("k"), "{}", now()).await };
        assert!(accept().await.unwrap().is_some());
        store.history().append(&key("k"), "x", now()).await.unwrap();
        assert!(accept().await.unwrap().is_none(), "it is there already");
        until_on_the_disk(&disk, "x").await;
    });
}

#[test]
fn many_messages_at_once_cost_one_sync() {
    let test = "power_cut::many_messages_at_once_cost_one_sync";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        let inbox = store.inbox();
        // The first frames of a new log are synced for themselves.
        let first = inbox.accept("t", "first", &key("k"), "{}", now()).await;
        first.unwrap();
        disk.syncs();
        let names: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        let key = key("k");
        let accepts = names
            .iter()
            .map(|name| inbox.accept("t", name, &key, "{}", now()));
        let rows = join_all(accepts).await;
        assert!(rows.into_iter().all(|row| row.unwrap().is_some()));
        assert_eq!(disk.syncs(), 1);
        let (_copy, path) = disk.after_a_power_cut();
        let survived = Store::open(&path, SystemClock::shared()).await.unwrap();
        assert_eq!(
            survived
                .inbox()
                .open(RowOwner::ThisGateway)
                .await
                .unwrap()
                .len(),
            101
        );
    });
}

/// A turn without tools, as the gateway writes it: two syncs.
#[test]
fn a_turn_waits_twice_for_the_disk() {
    let test = "power_cut::a_turn_waits_twice_for_the_disk";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        let first = store
            .inbox()
            .accept("t", "first", &key("k"), "{}", now())
            .await;
        first.unwrap();
        disk.syncs();
        let accepted = store.inbox().accept("t", "1", &key("k"), "{}", now()).await;
        let row = accepted.unwrap().unwrap();
        assert_eq!(disk.syncs(), 1, "accepted");
        store.inbox().begin(row).await.unwrap();
        for line in ["question", "answer"] {
            store
                .history()
                .append(&key("k"), line, now())
                .await
                .unwrap();
        }
        let deliveries = store.deliveries();
        let reply = ("t", "{}", "hi");
        let end = hermetic_store::MessageEnd::Answered;
        let queued = deliveries.queue_and_end(row, end, reply, now()).await;
        let delivery = queued.unwrap();
        deliveries.begin(delivery).await.unwrap();
        // A slow machine may have settled something in between.
        assert!((1..=2).contains(&disk.syncs()), "begun to send");
        let due = deliveries.due(RowOwner::ThisGateway).await.unwrap();
        assert!(due[0].maybe_sent);
    });
}

/// A turn with one call, as the gateway writes it: one sync more, before the call runs.
#[test]
fn a_call_waits_once_more_for_the_disk() {
    let test = "power_cut::a_call_waits_once_more_for_the_disk";
    on_a_disk(test, async |disk| {
        let store = Store::open(&disk.store(), SystemClock::shared())
            .await
            .unwrap();
        let accepted = store.inbox().accept("t", "1", &key("k"), "{}", now()).await;
        let row = accepted.unwrap().unwrap();
        store.inbox().begin(row).await.unwrap();
        let history = store.history();
        history.append(&key("k"), "a call", now()).await.unwrap();
        disk.syncs();
        let calls = store.tool_calls();
        calls
            .begin(row, "c", "terminal", "{}", now())
            .await
            .unwrap();
        assert_eq!(disk.syncs(), 1, "before it runs");
        let (_copy, path) = disk.after_a_power_cut();
        let survived = Store::open(&path, SystemClock::shared()).await.unwrap();
        assert_eq!(survived.tool_calls().of(row).await.unwrap().len(), 1);
        disk.syncs();
        let line = (&key("k"), "its result");
        calls.end((row, "c"), "done", line, now()).await.unwrap();
        history.append(&key("k"), "answer", now()).await.unwrap();
        // Nobody waits for these. A slow machine may have settled something by now.
        assert!(disk.syncs() <= 1, "after it");
    });
}

/// Waits until a power cut would spare what was said in `k`.
async fn until_on_the_disk(disk: &Disk, said: &str) {
    let settled = timeout(PATIENCE, async {
        loop {
            let (_copy, path) = disk.after_a_power_cut();
            let survived = Store::open(&path, SystemClock::shared()).await.unwrap();
            if survived.history().recent(&key("k"), 9).await.unwrap() == [said] {
                return;
            }
            sleep(LOOK_AGAIN).await;
        }
    });
    settled.await.expect("never on the disk");
}
