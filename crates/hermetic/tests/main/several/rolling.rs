//! What people notice while gateways that serve side by side are stopped and started one after the other.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use futures::future::join_all;
use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use super::cluster::LONG;
use super::shared::{FIRST_USER, Story};

const NO_QUESTIONS: &str = "approvals: {mode: 'off'}\n";

/// Enough that each gateway has some of them, whatever its name is.
const TALKERS: i64 = 36;

/// Of those, the ones that have a sandbox, which keeps a conversation at work.
const WITH_SANDBOX: i64 = 12;

impl Story {
    async fn restart(&mut self, member: usize) {
        self.cluster.members[member].signal(Signal::TERM);
        let ended = self.cluster.members[member].end().await;
        assert!(ended.success(), "{}", self.cluster.members[member].log());
        self.cluster.members[member].start();
        self.cluster.all_serve(&[0, 1, 2]).await;
    }

    async fn holders_of(&self, users: impl Iterator<Item = i64>) -> BTreeSet<usize> {
        let holders = join_all(users.map(|user| self.cluster.holder_of(user)));
        holders.await.into_iter().flatten().collect()
    }

    /// Somebody whose conversation the gateway has that listens to the account, and that one.
    async fn served_by_listener(&self) -> (i64, usize) {
        for user in FIRST_USER..FIRST_USER + TALKERS {
            self.ask(user, "hello").await;
            let listener = self.cluster.listener().await.expect("somebody listens");
            if self.cluster.holder_of(user).await == Some(listener) {
                return (user, listener);
            }
        }
        panic!("it has none: {}", self.cluster.logs());
    }

    async fn listens_instead_of(&self, member: usize) {
        let waiting = async {
            while self
                .cluster
                .listener()
                .await
                .is_none_or(|listener| listener == member)
            {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("nobody else listens: {}", self.cluster.logs()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_all_were_restarted_each_gateway_has_conversations() {
    let test = "several::rolling::after_all_were_restarted_each_gateway_has_conversations";
    let Some(mut story) = Story::begin_with(test, NO_QUESTIONS).await else {
        return;
    };
    let all = FIRST_USER..FIRST_USER + TALKERS;
    let with_sandbox = FIRST_USER..FIRST_USER + WITH_SANDBOX;
    let words = |user: i64| match with_sandbox.contains(&user) {
        true => "run true",
        false => "hello",
    };
    join_all(all.clone().map(|user| story.ask(user, words(user)))).await;
    for member in 0..3 {
        story.restart(member).await;
    }
    join_all(all.clone().map(|user| story.ask(user, words(user)))).await;
    assert_eq!(story.holders_of(all).await, BTreeSet::from([0, 1, 2]));
    let holders = story.holders_of(with_sandbox).await;
    assert!(
        holders.len() > 1,
        "one has all that were at work: {holders:?}"
    );
    story.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_runs_when_its_gateway_is_stopped_goes_on_at_another() {
    let test = "several::rolling::a_turn_that_runs_when_its_gateway_is_stopped_goes_on_at_another";
    let Some(mut story) = Story::begin_with(test, NO_QUESTIONS).await else {
        return;
    };
    let (user, holder) = story.served_elsewhere().await;
    let go = story.remote.home().join("go").display().to_string();
    let before = story.sent(user).len();
    let command = format!("run touch {go}.{user}; until test -e {go}; do sleep 0.1; done");
    story.telegram.says(user, &command);
    story.begun(&go, user).await;
    let stopped = Instant::now();
    story.cluster.members[holder].signal(Signal::TERM);
    let ended = story.cluster.members[holder].end().await;
    assert!(ended.success(), "{}", story.cluster.members[holder].log());
    fs::write(&go, "").unwrap();
    let reply = story.next_after(user, before).await;
    eprintln!("answered {:?} after the stop", stopped.elapsed());
    assert!(reply.contains("it ran"), "{reply}");
    assert_eq!(story.sent(user).len(), before + 1, "{:?}", story.sent(user));
    let next = story.cluster.holder_of(user).await;
    assert!(next.is_some_and(|next| next != holder), "{next:?}");
    story.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_for_its_turns_is_reached_and_others_listen() {
    let test = "several::rolling::one_that_waits_for_its_turns_is_reached_and_others_listen";
    let more = format!("{NO_QUESTIONS}agent: {{restart_drain_timeout: 90}}\n");
    let Some(mut story) = Story::begin_with(test, &more).await else {
        return;
    };
    let (user, holder) = story.served_by_listener().await;
    let log = story.remote.at("ran").display().to_string();
    let before = story.sent(user).len();
    story
        .telegram
        .says(user, &format!("run echo begun >> {log}; sleep 600"));
    story.ran_line("begun").await;
    let stopped = Instant::now();
    story.cluster.members[holder].signal(Signal::TERM);
    story.listens_instead_of(holder).await;
    // Somebody new is served by one that stays.
    let stranger = FIRST_USER + TALKERS;
    story.ask(stranger, "hello").await;
    assert_ne!(story.cluster.holder_of(stranger).await, Some(holder));
    story.telegram.says(user, "/stop");
    story.next_after(user, before).await;
    let ended = story.cluster.members[holder].end().await;
    assert!(ended.success(), "{}", story.cluster.members[holder].log());
    let took = stopped.elapsed();
    assert!(
        took < Duration::from_secs(60),
        "it heard no /stop: {took:?}"
    );
    story.stop_all().await;
}
