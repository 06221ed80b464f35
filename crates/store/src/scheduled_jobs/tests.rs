use hermetic_types::{ConversationKey, JobId};

use super::*;
use crate::test_databases::TestDatabase;
use crate::{MessageEnd, MessageRow, Store};

const BOUNDS: JobBounds = JobBounds {
    of_person: 2,
    of_all: 3,
};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn id(text: &str) -> JobId {
    text.parse().unwrap()
}

fn new_job(id: &str, person: &str) -> ScheduledJob {
    ScheduledJob {
        id: id.parse().unwrap(),
        person: person.to_owned(),
        name: "n".to_owned(),
        prompt: "p".to_owned(),
        terms: JobTerms::default(),
        schedule: "every 60".to_owned(),
        origin: "{}".to_owned(),
        deliver: "origin".to_owned(),
        runs_left: None,
        state: JobState::Scheduled,
        why: None,
        next_at: Some(at(100)),
        requested: None,
        failures: 0,
        made_at: at(1),
    }
}

async fn store(database: TestDatabase) -> (TestDatabase, Store) {
    let store = database.open().await.unwrap();
    (database, store)
}

async fn claim(jobs: &ScheduledJobs, tick: i64, next: Option<i64>) -> Option<MessageRow> {
    claim_as(jobs, tick, next, RunKind::Schedule).await
}

async fn claim_as(
    jobs: &ScheduledJobs,
    tick: i64,
    next: Option<i64>,
    how: RunKind,
) -> Option<MessageRow> {
    let claim = TickClaim {
        job: &id("a"),
        tick: at(tick),
        how,
        next_at: next.map(at),
        account: "telegram",
        update: &format!("cron:a:{tick}:{}", how.name()),
        conversation: &ConversationKey::new("agent:main:telegram:cron:a"),
        payload: "{}",
        most_open: 4,
    };
    jobs.claim(claim, at(tick)).await.unwrap()
}

#[tokio::test]
async fn bounds_hold_however_many_add_at_once() {
    for database in TestDatabase::each().await {
        let (_folder, store) = store(database).await;
        let jobs = store.scheduled_jobs();
        let adding = (0..8).map(|number| {
            let jobs = jobs.clone();
            async move { jobs.add(&new_job(&format!("j{number}"), "p"), BOUNDS).await }
        });
        let outcomes: Vec<_> = futures::future::join_all(adding).await;
        let added = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Ok(AddOutcome::Added)));
        assert_eq!(added.count(), 2);
        let other = jobs.add(&new_job("x", "q"), BOUNDS).await.unwrap();
        assert_eq!(other, AddOutcome::Added);
        let more = jobs.add(&new_job("y", "r"), BOUNDS).await.unwrap();
        assert_eq!(more, AddOutcome::TooManyOfAll);
        assert!(jobs.remove(&id("x")).await.unwrap());
        assert_eq!(jobs.of_person("q").await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_moment_is_claimed_once_and_its_message_is_open() {
    for database in TestDatabase::each().await {
        let (_folder, store) = store(database).await;
        let jobs = store.scheduled_jobs();
        jobs.add(&new_job("a", "p"), BOUNDS).await.unwrap();
        assert_eq!(jobs.due(at(99), 9).await.unwrap(), []);
        assert_eq!(jobs.due(at(100), 9).await.unwrap().len(), 1);
        let message = claim(&jobs, 100, Some(200)).await.unwrap();
        assert_eq!(claim(&jobs, 100, Some(200)).await, None, "claimed twice");
        let open = store.inbox().open(RowOwner::ThisGateway).await.unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!(open[0].row, message);
        assert_eq!(jobs.next_moment().await.unwrap(), Some(at(200)));
        // The next one waits for the end of this, and is not lost meanwhile.
        assert_eq!(claim(&jobs, 200, Some(300)).await, None);
        assert_eq!(jobs.next_moment().await.unwrap(), Some(at(200)));
        assert_eq!(jobs.settle(at(201)).await.unwrap(), []);
        let inbox = store.inbox();
        let ended = inbox.end(message, MessageEnd::Answered, None, at(201));
        ended.await.unwrap();
        let settled = jobs.settle(at(202)).await.unwrap();
        assert_eq!(settled[0].end, RunEnd::Answered);
        assert_eq!(jobs.settle(at(203)).await.unwrap(), []);
        assert!(claim(&jobs, 200, Some(300)).await.is_some());
    }
}

#[tokio::test]
async fn a_moment_that_comes_again_after_a_clock_was_set_back_is_left_behind() {
    for database in TestDatabase::each().await {
        let (_folder, store) = store(database).await;
        let jobs = store.scheduled_jobs();
        jobs.add(&new_job("a", "p"), BOUNDS).await.unwrap();
        let message = claim(&jobs, 100, Some(200)).await.unwrap();
        let inbox = store.inbox();
        let ended = inbox.end(message, MessageEnd::Failed, None, at(101));
        ended.await.unwrap();
        jobs.settle(at(102)).await.unwrap();
        assert!(jobs.reschedule(&id("a"), at(200), at(100)).await.unwrap());
        assert_eq!(claim(&jobs, 100, Some(200)).await, None);
        assert_eq!(jobs.next_moment().await.unwrap(), Some(at(200)));
        assert_eq!(jobs.find(&id("a")).await.unwrap().unwrap().failures, 1);
        assert!(jobs.knows_tick(&id("a"), at(100)).await.unwrap());
        assert!(!jobs.knows_tick(&id("a"), at(200)).await.unwrap());
    }
}

#[tokio::test]
async fn the_last_run_ends_the_job_and_a_run_that_was_asked_for_does_not_count() {
    for database in TestDatabase::each().await {
        let (_folder, store) = store(database).await;
        let jobs = store.scheduled_jobs();
        let job = ScheduledJob {
            runs_left: Some(1),
            ..new_job("a", "p")
        };
        jobs.add(&job, BOUNDS).await.unwrap();
        assert!(jobs.request_run(&id("a"), at(50)).await.unwrap());
        assert!(jobs.request_run(&id("a"), at(60)).await.unwrap());
        assert_eq!(jobs.due(at(60), 9).await.unwrap().len(), 1);
        let asked = claim_as(&jobs, 50, None, RunKind::Asked).await.unwrap();
        assert_eq!(claim_as(&jobs, 50, None, RunKind::Asked).await, None);
        assert_eq!(
            jobs.due(at(60), 9).await.unwrap(),
            [],
            "two wishes are one run"
        );
        let silent = Some(RunEnd::SILENT_NOTE);
        let inbox = store.inbox();
        inbox
            .end(asked, MessageEnd::Answered, silent, at(70))
            .await
            .unwrap();
        jobs.note_answer(&id("a"), "[SILENT]").await.unwrap();
        assert_eq!(jobs.settle(at(71)).await.unwrap()[0].end, RunEnd::Silent);
        assert!(claim(&jobs, 100, Some(200)).await.is_some());
        let job = jobs.find(&id("a")).await.unwrap().unwrap();
        assert_eq!((job.state, job.next_at), (JobState::Ended, None));
        assert!(!jobs.request_run(&id("a"), at(300)).await.unwrap());
        let runs = jobs.runs(&id("a"), 9).await.unwrap();
        assert_eq!(runs.len(), 2);
        assert_eq!(runs[1].answer.as_deref(), Some("[SILENT]"));
    }
}

#[tokio::test]
async fn a_moment_that_is_skipped_is_not_claimed_and_a_paused_job_is_not_due() {
    for database in TestDatabase::each().await {
        let (_folder, store) = store(database).await;
        let jobs = store.scheduled_jobs();
        jobs.add(&new_job("a", "p"), BOUNDS).await.unwrap();
        let job = id("a");
        let skipped = |tick, next: Option<i64>| SkippedTick {
            job: &job,
            tick: at(tick),
            next_at: next.map(at),
            note: "nobody was there",
        };
        assert!(jobs.skip(skipped(100, Some(200)), at(150)).await.unwrap());
        assert!(!jobs.skip(skipped(100, Some(200)), at(150)).await.unwrap());
        assert_eq!(claim(&jobs, 100, Some(200)).await, None);
        assert!(jobs.pause(&id("a"), Some("a reason")).await.unwrap());
        assert_eq!(jobs.due(at(1000), 9).await.unwrap(), []);
        assert_eq!(claim(&jobs, 200, Some(300)).await, None);
        assert!(jobs.resume(&id("a"), at(300)).await.unwrap());
        assert!(!jobs.resume(&id("a"), at(400)).await.unwrap());
        assert!(jobs.skip(skipped(300, None), at(400)).await.unwrap());
        let job = jobs.find(&id("a")).await.unwrap().unwrap();
        assert_eq!(
            (job.state, job.why.as_deref()),
            (JobState::Ended, Some("missed"))
        );
        jobs.prune(at(10_000), 1).await.unwrap();
        assert_eq!(jobs.find(&id("a")).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_withdrawn_job_is_gone_for_all_but_whoever_has_its_sandbox() {
    for database in TestDatabase::each().await {
        let (_folder, store) = store(database).await;
        let jobs = store.scheduled_jobs();
        jobs.add(&new_job("a", "x"), BOUNDS).await.unwrap();
        assert!(jobs.withdraw(&id("a")).await.unwrap());
        assert!(!jobs.withdraw(&id("a")).await.unwrap());
        assert_eq!(jobs.find(&id("a")).await.unwrap(), None);
        assert_eq!(jobs.of_person("x").await.unwrap(), []);
        assert_eq!(jobs.all(RowOwner::AnyGateway).await.unwrap(), []);
        assert_eq!(jobs.due(at(1000), 9).await.unwrap(), []);
        assert_eq!(claim(&jobs, 100, None).await, None);
        jobs.prune(at(10_000), 1).await.unwrap();
        let left = jobs.withdrawn().await.unwrap();
        assert_eq!(left.len(), 1, "it waits for its sandbox");
        assert!(jobs.remove(&id("a")).await.unwrap());
        assert_eq!(jobs.withdrawn().await.unwrap(), []);
    }
}

#[tokio::test]
async fn ended_jobs_of_a_person_are_bounded_in_number() {
    for database in TestDatabase::each().await {
        let (_folder, store) = store(database).await;
        let jobs = store.scheduled_jobs();
        let more = 5;
        for number in 0..i64::from(ENDED_KEPT) + more {
            let name = format!("j{number:03}");
            let mut made = new_job(&name, "x");
            made.made_at = at(number);
            jobs.add(&made, BOUNDS).await.unwrap();
            let missed = SkippedTick {
                job: &id(&name),
                tick: at(100),
                next_at: None,
                note: "nobody was there",
            };
            assert!(jobs.skip(missed, at(200)).await.unwrap());
        }
        jobs.add(&new_job("last", "x"), BOUNDS).await.unwrap();
        let ended = jobs.of_person("x").await.unwrap();
        let ended = ended.iter().filter(|job| job.state == JobState::Ended);
        assert_eq!(ended.count(), ENDED_KEPT as usize);
        let gone = jobs.withdrawn().await.unwrap();
        let gone: Vec<_> = gone.iter().map(|job| job.id.as_str()).collect();
        assert_eq!(gone, ["j000", "j001", "j002", "j003", "j004"]);
    }
}

/// Each gateway looks whether there is room, and several may look at once.
#[tokio::test]
async fn no_more_runs_are_open_than_may_be_whoever_claims_them() {
    for database in TestDatabase::each().await {
        let (one, two) = (
            database.open_as("one".parse().unwrap()).await.unwrap(),
            database.open_as("two".parse().unwrap()).await.unwrap(),
        );
        let claims = [(&one, "a"), (&two, "b"), (&one, "c"), (&two, "d")];
        let wide = JobBounds {
            of_person: 9,
            of_all: 9,
        };
        for (store, name) in claims {
            let added = store.scheduled_jobs().add(&new_job(name, "p"), wide).await;
            assert_eq!(added.unwrap(), AddOutcome::Added);
        }
        let claiming = claims.map(|(store, name)| {
            let jobs = store.scheduled_jobs();
            async move {
                let claim = TickClaim {
                    job: &id(name),
                    tick: at(100),
                    how: RunKind::Schedule,
                    next_at: None,
                    account: "telegram",
                    update: &format!("cron:{name}"),
                    conversation: &ConversationKey::new(format!("agent:main:telegram:cron:{name}")),
                    payload: "{}",
                    most_open: 3,
                };
                jobs.claim(claim, at(100)).await.unwrap()
            }
        });
        let claimed = futures::future::join_all(claiming).await;
        assert_eq!(claimed.iter().flatten().count(), 3);
        assert_eq!(one.scheduled_jobs().running().await.unwrap(), 3);
    }
}
