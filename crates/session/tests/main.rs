//! The life of sandboxes, with a backend that only remembers and a clock that is ours; and the way out
//! of real ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod broken_off;
mod disk_guard;
mod full_disk;
mod holders;
mod kept_files;
mod lab;
mod way_out;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hermetic_sandbox::{FoundState, HostMount, MountMode, SandboxPersistence};
use hermetic_session::{InstalledMounts, LeaseError};
use hermetic_store::LedgerState;
use hermetic_types::{BackendKind, ConversationKey};
use lab::Lab;
use tokio_util::sync::CancellationToken;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn the_first_calls_of_a_conversation_make_one_sandbox() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let leases = join_all((0..20).map(|_| lab.lease("alice"))).await;
    let ids: Vec<_> = leases
        .iter()
        .map(|lease| lease.as_ref().unwrap().id().clone())
        .collect();
    assert!(ids.iter().all(|id| id == &ids[0]), "{ids:?}");
    assert_eq!(lab.backend.created(), 1);
}

#[tokio::test]
async fn two_conversations_have_two() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let (a, b) = (
        lab.lease("alice").await.unwrap(),
        lab.lease("bob").await.unwrap(),
    );
    assert_ne!(a.id(), b.id());
}

#[tokio::test]
async fn an_idle_sandbox_is_let_go_and_a_used_one_is_not() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let _held = lab.lease("alice").await.unwrap();
    drop(lab.lease("bob").await.unwrap());
    lab.pass(HOUR).await;
    assert_eq!(lab.backend.living(), 1);
    assert_eq!(
        lab.states().await,
        [("alice".to_owned(), LedgerState::Running)]
    );
}

#[tokio::test]
async fn a_kept_one_is_stopped_and_comes_back() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let id = lab.lease("alice").await.unwrap().id().clone();
    lab.pass(HOUR).await;
    assert_eq!(
        lab.states().await,
        [("alice".to_owned(), LedgerState::Stopped)]
    );
    assert_eq!(lab.lease("alice").await.unwrap().id(), &id);
    assert_eq!(lab.backend.created(), 1);
}

#[tokio::test]
async fn a_reset_destroys_whatever_runs() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let held = lab.lease("alice").await.unwrap();
    lab.sandboxes
        .reset(&ConversationKey::new("alice"))
        .await
        .unwrap();
    assert_eq!((lab.backend.living(), lab.states().await.len()), (0, 0));
    assert_ne!(lab.lease("alice").await.unwrap().id(), held.id());
}

#[tokio::test]
async fn the_longest_idle_one_makes_room_and_held_ones_do_not() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 2).await;
    drop(lab.lease("alice").await.unwrap());
    let _bob = lab.lease("bob").await.unwrap();
    let _carol = lab.lease("carol").await.unwrap();
    assert_eq!(lab.backend.living(), 2);
    let refused = lab.lease("dave").await.unwrap_err();
    assert!(matches!(refused, LeaseError::Full { most: 2 }), "{refused}");
}

#[tokio::test]
async fn the_bound_holds_when_all_come_at_once() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 3).await;
    let names: Vec<_> = (0..10).map(|n| format!("user{n}")).collect();
    let leases = join_all(names.iter().map(|name| lab.lease(name))).await;
    assert_eq!(leases.iter().filter(|lease| lease.is_ok()).count(), 3);
    assert_eq!(lab.backend.living(), 3);
}

#[tokio::test]
async fn one_person_with_hundreds_of_topics_takes_nobody_elses_place() {
    let lab = Lab::new(SandboxPersistence::Kept, 12)
        .await
        .with_most_each(4);
    let _bob = lab.lease_for("bob", "work").await.unwrap();
    drop(lab.lease_for("carol", "idle").await.unwrap());
    // One after the other: each makes room with her own longest idle one, whose files stay.
    for topic in 0..250 {
        drop(lab.lease_for("alice", &topic.to_string()).await.unwrap());
    }
    assert_eq!(
        lab.backend.living(),
        4 + 2,
        "Carol's idle one was left alone"
    );
    let states = lab.states().await;
    let of_alice = |state| {
        let whose = states.iter().filter(|(who, _)| who.starts_with("alice/"));
        whose.filter(|(_, found)| *found == state).count()
    };
    assert_eq!(of_alice(LedgerState::Running), 4);
    assert_eq!(of_alice(LedgerState::Stopped), 246, "nothing was destroyed");

    // All hers at work: she is told, and nobody else notices.
    let mut held = Vec::new();
    for topic in 246..250 {
        held.push(lab.lease_for("alice", &topic.to_string()).await.unwrap());
    }
    let refused = lab.lease_for("alice", "one more").await.unwrap_err();
    assert!(
        matches!(refused, LeaseError::FullForHolder { most: 4 }),
        "{refused}"
    );
    for person in ["dave", "erin", "frank"] {
        held.push(lab.lease_for(person, "first").await.unwrap());
    }
    drop(held.remove(0));
    assert!(lab.lease_for("alice", "one more").await.is_ok());
}

#[tokio::test]
async fn where_all_places_are_taken_whoever_has_most_idle_ones_gives_way() {
    let lab = Lab::new(SandboxPersistence::Kept, 5)
        .await
        .with_most_each(4);
    drop(lab.lease_for("bob", "only").await.unwrap());
    for topic in ["a", "b", "c", "d"] {
        drop(lab.lease_for("alice", topic).await.unwrap());
    }
    drop(lab.lease_for("carol", "first").await.unwrap());
    let mut living: Vec<_> = lab.states().await;
    living.retain(|(_, state)| *state == LedgerState::Running);
    let names: Vec<_> = living.iter().map(|(who, _)| who.as_str()).collect();
    assert!(names.contains(&"bob/only"), "{names:?}");
    assert!(!names.contains(&"alice/a"), "{names:?}");
}

#[tokio::test]
async fn a_create_that_fails_leaves_no_row() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    lab.backend.fail_creates(true);
    assert!(lab.lease("alice").await.is_err());
    assert_eq!(lab.states().await, []);
    lab.backend.fail_creates(false);
    assert!(lab.lease("alice").await.is_ok());
}

#[tokio::test]
async fn a_destroy_that_fails_stays_in_the_ledger_until_it_works() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    drop(lab.lease("alice").await.unwrap());
    lab.backend.fail_destroys(true);
    assert!(
        lab.sandboxes
            .reset(&ConversationKey::new("alice"))
            .await
            .is_err()
    );
    assert_eq!(
        lab.states().await,
        [("alice".to_owned(), LedgerState::Destroying)]
    );
    // The conversation goes on meanwhile, with a new one.
    let new = lab.lease("alice").await.unwrap();
    lab.pass(Duration::from_secs(60)).await;
    assert_eq!(lab.states().await.len(), 2);
    lab.backend.fail_destroys(false);
    lab.pass(Duration::from_secs(600)).await;
    assert_eq!(
        lab.states().await,
        [("alice".to_owned(), LedgerState::Running)]
    );
    assert_eq!(lab.backend.ids(), [new.id().clone()]);
}

#[tokio::test]
async fn a_caller_who_gives_up_cuts_no_create_in_the_middle() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    lab.backend.slow_creates(Duration::from_millis(50));
    let gave_up = tokio::time::timeout(Duration::from_millis(1), lab.lease("alice")).await;
    assert!(gave_up.is_err());
    lab.sandboxes.drain().await;
    assert_eq!(
        lab.states().await,
        [("alice".to_owned(), LedgerState::Running)]
    );
}

#[tokio::test]
async fn a_start_settles_what_a_crash_left() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let living = lab.lease("alice").await.unwrap().id().clone();
    // Named, and the crash came before it was made; made, and it came before it was noted.
    lab.name_only("bob").await;
    lab.backend.make_stray(FoundState::Running);
    let dead = lab.lease("carol").await.unwrap().id().clone();
    lab.backend.kill(&dead);

    let again = lab.restart();
    let settled = again.settle().await.unwrap();
    assert_eq!(
        (settled.adopted, settled.destroyed, settled.left),
        (1, 3, 0)
    );
    assert_eq!(lab.backend.ids(), std::slice::from_ref(&living));
    assert_eq!(
        lab.states().await,
        [("alice".to_owned(), LedgerState::Running)]
    );
    let lease = again.lease(&ConversationKey::new("alice")).await.unwrap();
    assert_eq!(lease.id(), &living);
}

#[tokio::test]
async fn a_start_leaves_what_another_gateway_has() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let ours = lab.lease("alice").await.unwrap().id().clone();
    let another = lab.another_gateway().await;
    let theirs = another.lease(&ConversationKey::new("bob")).await.unwrap();
    let settled = another.settle().await.unwrap();
    assert_eq!((settled.adopted, settled.destroyed), (1, 0));
    assert!(
        lab.backend.ids().contains(&ours),
        "it was taken for a stray"
    );
    let settled = lab.restart().settle().await.unwrap();
    assert_eq!((settled.adopted, settled.destroyed), (1, 0));
    assert!(lab.backend.ids().contains(theirs.id()));
}

#[tokio::test]
async fn what_comes_late_after_a_crash_is_seen_out() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let asked_for = lab.name_only("bob").await;
    assert_eq!(lab.sandboxes.settle().await.unwrap().destroyed, 1);
    // The backend goes on with what the dead process had asked for.
    lab.backend.kill(&asked_for);
    lab.pass(Duration::from_secs(70)).await;
    assert_eq!(lab.backend.ids(), []);
}

#[tokio::test]
async fn a_start_leaves_what_lives_by_its_creator_and_what_is_being_made() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    lab.backend.make_stray(FoundState::Busy);
    lab.backend.make_stray(FoundState::Broken);
    lab.backend.make_stray(FoundState::Running);
    lab.backend.tie_to_creator(true);
    let settled = lab.sandboxes.settle().await.unwrap();
    assert_eq!((settled.destroyed, lab.backend.ids().len()), (1, 2));
}

#[tokio::test]
async fn a_sandbox_whose_link_broke_is_reached_again_and_a_dead_one_replaced() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let lease = lab.lease("alice").await.unwrap();
    let id = lease.id().clone();
    lease.warden().close();
    lease.warden().closed().await;
    assert_eq!(lab.lease("alice").await.unwrap().id(), &id);
    lab.backend.kill(&id);
    lease.warden().close();
    let lease = lab.lease("alice").await.unwrap();
    lease.warden().close();
    lease.warden().closed().await;
    assert_ne!(lab.lease("alice").await.unwrap().id(), &id);
    assert_eq!(lab.states().await.len(), 1);
}

#[tokio::test]
async fn the_house_stops_when_told() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let stop = CancellationToken::new();
    let sandboxes = lab.sandboxes.clone();
    let reaper = tokio::spawn({
        let stop = stop.clone();
        async move { sandboxes.reap(stop).await }
    });
    drop(lab.lease("alice").await.unwrap());
    stop.cancel();
    reaper.await.unwrap();
    // What lives goes on living: the next start adopts it.
    assert_eq!(lab.backend.living(), 1);
}

#[tokio::test]
async fn a_kept_one_that_ended_behind_our_back_comes_back_with_its_files() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let lease = lab.lease("alice").await.unwrap();
    let id = lease.id().clone();
    lab.backend.halt(&id);
    lease.warden().close();
    lease.warden().closed().await;
    assert_eq!(lab.lease("alice").await.unwrap().id(), &id);
    assert_eq!(lab.backend.created(), 1);
}

#[tokio::test]
async fn a_kept_one_whose_warden_hangs_is_started_anew_with_its_files() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let lease = lab.lease("alice").await.unwrap();
    let id = lease.id().clone();
    lab.backend.freeze();
    lease.warden().close();
    lease.warden().closed().await;
    assert_eq!(lab.lease("alice").await.unwrap().id(), &id);
    assert_eq!(lab.backend.created(), 1);
}

#[tokio::test]
async fn a_backend_that_is_away_costs_nobody_his_files() {
    let lab = Lab::new(SandboxPersistence::Kept, 10).await;
    let lease = lab.lease("alice").await.unwrap();
    let id = lease.id().clone();
    lab.backend.halt(&id);
    lab.backend.go_down(true);
    lease.warden().close();
    lease.warden().closed().await;
    let refused = lab.lease("alice").await.unwrap_err();
    assert!(matches!(refused, LeaseError::Start(_)), "{refused}");
    lab.pass(Duration::from_secs(60)).await;
    lab.backend.go_down(false);
    assert_eq!(lab.lease("alice").await.unwrap().id(), &id);
}

#[tokio::test]
async fn a_new_conversation_takes_one_that_waits_and_another_takes_its_place() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10)
        .await
        .with_pool(2);
    lab.warm_up(2).await;
    let waiting = lab.backend.ids();
    let alice = lab.lease("alice").await.unwrap();
    assert!(waiting.contains(alice.id()));
    assert_eq!((lab.backend.created(), lab.waiting().await), (2, 1));
    // It is hers from now on: in the ledger, after a reset, and for nobody else.
    assert_ne!(lab.lease("bob").await.unwrap().id(), alice.id());
    assert_eq!(lab.lease("alice").await.unwrap().id(), alice.id());
    lab.warm_up(2).await;
    assert_eq!(lab.backend.created(), 4);
    lab.sandboxes.drain().await;
    assert_eq!(lab.backend.ids().len(), 2, "those that waited are gone");
}

/// What is installed at the moment.
#[derive(Debug, Default)]
struct Shelf(std::sync::Mutex<Vec<HostMount>>);

impl InstalledMounts for Shelf {
    fn mounts(&self, _: BackendKind) -> Vec<HostMount> {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn what_is_installed_meanwhile_is_in_the_next_sandbox_and_in_none_that_waited() {
    let shelf = Arc::new(Shelf::default());
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let lab = lab.with_pool(1).with_installed(Arc::clone(&shelf) as _);
    let alice = lab.lease("alice").await.unwrap().id().clone();
    lab.warm_up(1).await;
    let waiting = lab.backend.ids();
    shelf.0.lock().unwrap().push(HostMount {
        source: "/somewhere/tree".into(),
        target: "/agents/one".into(),
        mode: MountMode::ReadOnly,
    });
    let bob = lab.lease("bob").await.unwrap().id().clone();
    assert!(!waiting.contains(&bob), "that one does not have it");
    assert_eq!(
        lab.lease("alice").await.unwrap().id(),
        &alice,
        "hers goes on"
    );
    let ledger = lab.ledger();
    for (id, is_shown) in [(&bob, true), (&alice, false)] {
        let row = ledger.find(id).await.unwrap().unwrap();
        assert_eq!(row.spec.contains("/agents/one"), is_shown, "{}", row.spec);
    }
}

#[tokio::test]
async fn one_that_waits_and_died_is_not_handed_out() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10)
        .await
        .with_pool(1);
    lab.warm_up(1).await;
    lab.backend.hang_up().await;
    let dead = lab.backend.ids();
    let alice = lab.lease("alice").await.unwrap();
    assert!(!dead.contains(alice.id()));
    assert_eq!(lab.states().await.len(), 1);
}

#[tokio::test]
async fn those_that_wait_count_towards_the_bound_and_give_way() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 2)
        .await
        .with_pool(2);
    lab.warm_up(2).await;
    let _alice = lab.lease("alice").await.unwrap();
    let _bob = lab.lease("bob").await.unwrap();
    lab.pass(Duration::from_secs(60)).await;
    assert_eq!((lab.backend.living(), lab.waiting().await), (2, 0));
}

#[tokio::test]
async fn what_waited_for_a_process_that_died_is_destroyed_at_the_next_start() {
    for persistence in [SandboxPersistence::Ephemeral, SandboxPersistence::Kept] {
        let lab = Lab::new(persistence, 10).await.with_pool(2);
        lab.warm_up(2).await;
        let alice = lab.lease("alice").await.unwrap().id().clone();
        let settled = lab.restart().settle().await.unwrap();
        assert_eq!((settled.adopted, settled.destroyed), (1, 1));
        assert_eq!(lab.backend.ids(), [alice]);
    }
}

#[tokio::test]
async fn a_lease_on_what_lives_makes_nothing_and_holds_it() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let alice = ConversationKey::new("alice");
    let id = lab.lease("alice").await.unwrap().id().clone();
    let living = lab.sandboxes.lease_living(&alice, &id).await;
    assert!(living.is_some());
    lab.pass(HOUR).await;
    assert_eq!(lab.backend.living(), 1, "somebody has business with it");
    drop(living);
    lab.pass(HOUR).await;
    assert!(lab.sandboxes.lease_living(&alice, &id).await.is_none());
    assert_eq!(lab.backend.created(), 1);
}

#[tokio::test]
async fn a_platform_with_a_plan_of_its_own_follows_it() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    let telegram = ConversationKey::new("agent:main:telegram:dm:7");
    let webhook = ConversationKey::new("agent:main:webhook:dm:7");
    let here = elsewhere.sandboxes.lease(&telegram).await.unwrap();
    let there = elsewhere.sandboxes.lease(&webhook).await.unwrap();
    assert_eq!(lab.backend.ids(), [here.id().clone()]);
    assert_eq!(elsewhere.backend.ids(), [there.id().clone()]);
}

/// A command was judged for where the configuration says it runs. What an earlier one left elsewhere
/// must not get to run it.
#[tokio::test]
async fn what_an_earlier_configuration_put_elsewhere_is_not_used_any_more() {
    for persistence in [SandboxPersistence::Ephemeral, SandboxPersistence::Kept] {
        let lab = Lab::new(persistence, 10).await;
        let whose = "agent:main:webhook:dm:7";
        let old = lab.lease(whose).await.unwrap().id().clone();
        let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
        let settled = elsewhere.sandboxes.settle().await.unwrap();
        assert_eq!(settled.adopted, 1);
        let key = ConversationKey::new(whose);
        let new = elsewhere.sandboxes.lease(&key).await.unwrap();
        assert_ne!(new.id(), &old);
        assert_eq!(elsewhere.backend.ids(), [new.id().clone()]);
        assert_eq!(lab.backend.living(), 0);
        let files = match persistence {
            SandboxPersistence::Ephemeral => Vec::new(),
            SandboxPersistence::Kept => vec![old],
        };
        assert_eq!(lab.backend.ids(), files);
    }
}

#[tokio::test]
async fn what_is_let_go_is_let_go_where_it_is() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    drop(lab.lease("agent:main:webhook:dm:7").await.unwrap());
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    elsewhere.sandboxes.settle().await.unwrap();
    assert_eq!(lab.backend.living(), 1);
    elsewhere.pass(HOUR).await;
    assert_eq!((lab.backend.living(), lab.states().await), (0, vec![]));
}

#[tokio::test]
async fn a_backend_in_use_that_cannot_be_listed_stops_the_start() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let elsewhere = lab.with_webhooks_on(BackendKind::Docker);
    elsewhere.backend.go_down(true);
    assert!(elsewhere.sandboxes.settle().await.is_err());
}

#[tokio::test]
async fn a_link_that_is_away_for_a_moment_is_not_the_end_of_what_runs() {
    let lab = Lab::new(SandboxPersistence::Ephemeral, 10).await;
    let alice = ConversationKey::new("alice");
    let id = lab.lease("alice").await.unwrap().id().clone();
    lab.backend.go_down(true);
    lab.backend.hang_up().await;
    let looking = tokio::spawn({
        let (sandboxes, alice, id) = (lab.sandboxes.clone(), alice.clone(), id.clone());
        async move { sandboxes.lease_living(&alice, &id).await }
    });
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
    tokio::task::yield_now().await;
    assert!(!looking.is_finished(), "nobody knows that it is gone");
    lab.backend.go_down(false);
    let found = looking.await.unwrap().expect("it is there again");
    assert_eq!(found.id(), &id);
    drop(found);
    // One that is gone is gone at once.
    lab.backend.hide(&id);
    lab.backend.hang_up().await;
    assert!(lab.sandboxes.lease_living(&alice, &id).await.is_none());
}
