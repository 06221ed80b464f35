//! Simulated hours of a gateway's life: people come and go, everything around it fails in turn, the clock
//! jumps, and in the end nothing is left and nothing has grown.
//!
//! Each round is some hours: conversations begin, go on, start anew and are destroyed; one thing fails and
//! recovers; then nobody says anything until every sandbox was let go. `cargo xtask test --long` lives
//! through as many rounds as fit into some minutes; otherwise a few show that a round ends clean.

use std::fs;
use std::time::{Duration, Instant};

use hermetic_store::{RowOwner, Store};
use hermetic_testkit::telegram::Failure;
use hermetic_types::SystemClock;
use tokio::time::{sleep, timeout};

use super::clerk::Clerk;
use super::clock::MovableClock;
use super::faulty_disk::FaultyDisk;
use super::full_disk::until_status;
use super::lab::Lab;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// People in each round, half of whom come back in the next.
const PEOPLE: i64 = 6;
/// The first of those who come back.
const REGULARS: i64 = 100;
/// The first of those who come once.
const PASSERS_BY: i64 = 1000;

/// Each of the faults once, and a week that passes.
const A_FEW_ROUNDS: usize = FAULTS;
/// What happens in a round, by its number.
const FAULTS: usize = 6;
const MANY_ROUNDS: usize = 120;
/// A long soak begins no further round after this.
const LONGEST: Duration = Duration::from_secs(330);
/// Caches, pools and pages that were never touched before fill up in the first rounds.
const WARM_UP: usize = 4;

/// Longer than a sandbox is kept for somebody who is silent.
const SILENCE: Duration = Duration::from_secs(2 * 3600);
/// Longer than a model may be silent.
const STALL: Duration = Duration::from_secs(310);

#[tokio::test(flavor = "multi_thread")]
async fn hours_of_churn_and_faults_leave_nothing_behind() {
    let test = "flow::soak::hours_of_churn_and_faults_leave_nothing_behind";
    let Some(mut soak) = Soak::begin(test).await else {
        return;
    };
    let long = hermetic_testkit::long();
    let rounds = if long { MANY_ROUNDS } else { A_FEW_ROUNDS };
    let began = Instant::now();
    for round in 0..rounds {
        if began.elapsed() > LONGEST {
            break;
        }
        soak.live_through(round).await;
    }
    soak.end(long).await;
}

struct Soak {
    lab: Lab,
    disk: FaultyDisk,
    clock: MovableClock,
    _clerk: Clerk,
    samples: Vec<Sample>,
}

/// What the gateway holds while it has nothing to do.
#[derive(Clone, Copy, Debug)]
struct Sample {
    resident_kb: u64,
    descriptors: usize,
    children: usize,
}

impl Soak {
    async fn begin(test: &str) -> Option<Self> {
        let built = FaultyDisk::build().and_then(|disk| Ok((disk, MovableClock::build()?)));
        let (disk, clock) = match built {
            Ok(built) => built,
            Err(why) => {
                eprintln!("SKIP: {test}: {why}");
                return None;
            }
        };
        let access = "TELEGRAM_ALLOW_ALL_USERS=true";
        let mut lab = Lab::start_with(test, [], "", access).await?;
        let clerk = Clerk::start().await;
        lab.terminate();
        clerk.takes_the_place_of_the_model(&lab);
        let [(preload, faults), (orders, folder)] = disk.variables();
        let (library, added) = clock.variables();
        lab.restart_with(&[
            (preload, &format!("{faults}:{library}")),
            (orders, &folder),
            ("TEST_CLOCK", &added),
        ]);
        Some(Self {
            lab,
            disk,
            clock,
            _clerk: clerk,
            samples: Vec::new(),
        })
    }

    async fn live_through(&mut self, round: usize) {
        let people = people(round);
        for user in &people {
            self.works_for(*user).await;
        }
        let fresh = self.lab.ask(people[0], "/new").await;
        assert!(fresh.contains("fresh"), "{round}: {fresh}");
        self.lab.destroy(people[1]).await;
        match round % FAULTS {
            0 => self.disk_fills(people[2]).await,
            1 => self.platform_fails(people[2]).await,
            2 => self.model_stalls(people[2]).await,
            3 => self.sandbox_dies(people[2]).await,
            4 => self.clock_is_set(people[2]).await,
            _ => self.week_passes(people[2]).await,
        }
        self.everybody_is_silent().await;
        // What was stopped goes on where it was; the others never come back.
        for user in people.iter().filter(|user| **user >= PASSERS_BY) {
            self.lab.destroy(*user).await;
        }
        self.look().await;
    }

    /// A turn with a tool, and a command beside the model.
    async fn works_for(&self, user: i64) {
        self.is_told(user, "echo ran it", "It is done").await;
        self.is_told(user, "/sh echo $((6 * 7))", "42").await;
    }

    /// Asks and waits for that answer. After a fault an earlier one may come a second time, marked.
    async fn is_told(&self, user: i64, words: &str, wanted: &str) {
        let mut seen = self.lab.sent_to(user);
        self.lab.telegram.says(user, words);
        for _ in 0..10 {
            let replies = self.lab.replies(user, seen + 1).await;
            if replies[seen..].iter().any(|reply| reply.contains(wanted)) {
                return;
            }
            seen = replies.len();
        }
        panic!("{user}: nothing of ten answers to {words:?} says {wanted:?}");
    }

    async fn disk_fills(&self, user: i64) {
        let before = self.lab.sent_to(user);
        self.disk.is_full();
        self.lab.telegram.says(user, "/help");
        until_status(&self.lab, "degraded").await;
        self.disk.is_well();
        self.lab.replies(user, before + 1).await;
        until_status(&self.lab, "ok").await;
        self.works_for(user).await;
    }

    async fn platform_fails(&self, user: i64) {
        let telegram = &self.lab.telegram;
        for failure in [Failure::BadGateway, Failure::Drop, Failure::BadGateway] {
            telegram.fail_next("getUpdates", failure);
        }
        let slower = Failure::Refuse {
            code: 429,
            description: "Too Many Requests",
            retry_after: Some(1),
        };
        telegram.fail_next("sendMessage", slower);
        telegram.fail_next("sendMessage", Failure::Drop);
        let before = self.lab.sent_to(user);
        telegram.says(user, "/help");
        self.lab.replies(user, before + 1).await;
        telegram.wait_until_confirmed().await;
        self.works_for(user).await;
    }

    async fn model_stalls(&mut self, user: i64) {
        let before = self.lab.sent_to(user);
        self.lab.telegram.says(user, "never answer this");
        self.lab.telegram.wait_until_confirmed().await;
        // It is asked again some times before anybody is told.
        let told = async {
            while self.lab.sent_to(user) == before {
                self.clock.pass(STALL);
                sleep(LOOK_AGAIN).await;
            }
        };
        let told = timeout(PATIENCE, told).await;
        told.expect("nobody was told that the model says nothing");
        self.works_for(user).await;
    }

    /// Somebody at the machine takes it away while its conversation counts on it.
    async fn sandbox_dies(&self, user: i64) {
        self.works_for(user).await;
        let rows = self.lab.run(&["sandbox", "list", "--json"]).json();
        let own = format!(":{user}");
        let rows = rows.as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["conversation"].as_str().unwrap().ends_with(&own))
            .expect("a sandbox of theirs");
        let destroyed = self
            .lab
            .run(&["sandbox", "destroy", row["id"].as_str().unwrap()]);
        assert_eq!(destroyed.code, 0, "{}", destroyed.err);
        // The first word may find out that it is gone; the next finds another.
        self.lab.ask(user, "/sh echo $((6 * 7))").await;
        self.works_for(user).await;
    }

    /// Forward by a day and back by more, as when a machine learns the time.
    async fn clock_is_set(&mut self, user: i64) {
        const DAY: i64 = 24 * 3600;
        self.clock.set_wall(DAY);
        self.works_for(user).await;
        self.clock.set_wall(-DAY - 3 * 3600);
        self.works_for(user).await;
        self.clock.set_wall(3 * 3600);
        self.works_for(user).await;
    }

    /// Long enough for a platform to forget where we were.
    async fn week_passes(&mut self, user: i64) {
        self.clock.pass(Duration::from_secs(7 * 24 * 3600));
        self.works_for(user).await;
    }

    /// Until every sandbox was let go.
    async fn everybody_is_silent(&mut self) {
        self.lab.telegram.wait_until_confirmed().await;
        self.clock.pass(SILENCE);
        let listed = || self.lab.run(&["sandbox", "list"]).out;
        let quiet = async {
            while listed().contains("running") {
                sleep(LOOK_AGAIN).await;
            }
        };
        let quiet = timeout(PATIENCE, quiet).await;
        assert!(quiet.is_ok(), "left after {SILENCE:?}: {}", listed());
    }

    async fn look(&mut self) {
        until_status(&self.lab, "ok").await;
        let process = self.lab.process();
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        self.samples.push(Sample {
            resident_kb: resident.unwrap().trim().parse().unwrap(),
            descriptors: descriptors.count(),
            children: children(process),
        });
    }

    async fn end(mut self, long: bool) {
        for user in REGULARS..REGULARS + PEOPLE / 2 {
            self.lab.destroy(user).await;
        }
        self.look().await;
        report(&self.samples, self.clock.passed());
        let last = *self.samples.last().unwrap();
        // The first process of the next sandbox waits.
        assert!(last.children <= 1, "{last:?}");
        let warm = self.samples[WARM_UP.min(self.samples.len() - 1)];
        assert!(
            last.descriptors <= warm.descriptors + 4,
            "descriptors leak: {:?}",
            self.samples
        );
        if long {
            memory_is_flat(&self.samples[WARM_UP..]);
        }
        assert_eq!(self.lab.sandboxes(), [""; 0]);
        self.lab.terminate();
        let store = Store::open(&self.lab.path("hermetic/state.db"), SystemClock::shared()).await;
        let store = store.unwrap();
        assert_eq!(
            store.ledger().entries(RowOwner::AnyGateway).await.unwrap(),
            []
        );
        assert_eq!(store.inbox().open(RowOwner::AnyGateway).await.unwrap(), []);
        assert_eq!(
            store.deliveries().due(RowOwner::AnyGateway).await.unwrap(),
            []
        );
        let verified = self.lab.run(&["audit", "verify"]);
        assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    }
}

/// Half of them are the same each time.
fn people(round: usize) -> Vec<i64> {
    let passers_by = PASSERS_BY + i64::try_from(round).unwrap() * PEOPLE;
    (REGULARS..REGULARS + PEOPLE / 2)
        .chain(passers_by..passers_by + PEOPLE / 2)
        .collect()
}

/// How many processes this one started that are still there.
fn children(process: u32) -> usize {
    let parent = process.to_string();
    let is_child = |entry: fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // Its name, which may hold anything, stands in brackets before the state and the parent.
        let (_, rest) = stat.rsplit_once(") ")?;
        (rest.split(' ').nth(1)? == parent).then_some(())
    };
    let all = fs::read_dir("/proc").unwrap();
    all.filter_map(|entry| is_child(entry.ok()?)).count()
}

/// The last third of the samples against the first, by their medians.
fn memory_is_flat(samples: &[Sample]) {
    let third = samples.len() / 3;
    assert!(third > 0, "too few rounds to tell: {samples:?}");
    let first = median(&samples[..third]);
    let last = median(&samples[samples.len() - third..]);
    // A twentieth, and what a page cache of the store may take.
    let most = first + first / 20 + 2048;
    assert!(last <= most, "{first} kB became {last} kB: {samples:?}");
}

fn median(samples: &[Sample]) -> u64 {
    let mut all: Vec<u64> = samples.iter().map(|sample| sample.resident_kb).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

/// For `docs/performance.md`.
fn report(samples: &[Sample], passed: Duration) {
    let hours = passed.as_secs() / 3600;
    let third = (samples.len().saturating_sub(WARM_UP) / 3).max(1);
    let of = |part: &[Sample]| median(part);
    eprintln!(
        "{} rounds, {hours} simulated hours; resident kB of the first, of the first third after the \
         warm-up and of the last third: {}, {}, {}; descriptors {} and {}",
        samples.len(),
        samples[0].resident_kb,
        of(&samples[WARM_UP.min(samples.len() - third)..][..third]),
        of(&samples[samples.len() - third..]),
        samples[WARM_UP.min(samples.len() - 1)].descriptors,
        samples[samples.len() - 1].descriptors,
    );
}
