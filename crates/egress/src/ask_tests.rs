use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::sync::Semaphore;

use super::*;

/// Answers as told, once let go, and counts the questions.
struct Person {
    answer: HostAnswer,
    asked: AtomicUsize,
    free: Arc<Semaphore>,
}

impl Person {
    fn who_says(answer: HostAnswer) -> Arc<Self> {
        Self::who_waits(answer, Semaphore::MAX_PERMITS)
    }

    fn who_waits(answer: HostAnswer, permits: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(permits));
        Arc::new(Self {
            answer,
            asked: AtomicUsize::new(0),
            free,
        })
    }
}

impl HostApprover for Person {
    fn ask(&self, _: HostQuestion) -> BoxFuture<'static, HostAnswer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (free, answer) = (Arc::clone(&self.free), self.answer);
        Box::pin(async move {
            free.acquire().await.unwrap().forget();
            answer
        })
    }

    fn still_holds(&self, _: HostQuestion) -> BoxFuture<'static, bool> {
        Box::pin(async { false })
    }
}

const GRANTED: QuestionOutcome = QuestionOutcome::Granted(GrantLifetime::ForThisConnection);
const WAIT: Duration = Duration::from_secs(60);

fn question(target: &str) -> HostQuestion {
    HostQuestion {
        conversation: ConversationKey::new("test"),
        target: Authority::parse(target).unwrap(),
    }
}

async fn ask(questions: &OpenQuestions, person: &Arc<Person>, target: &str) -> QuestionOutcome {
    let asker: Arc<dyn HostApprover> = Arc::clone(person) as _;
    questions.ask(&asker, question(target), WAIT).await
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_elsewhere_is_asked_for_there() {
    let (questions, person) = (OpenQuestions::default(), Person::who_says(HostAnswer::Kept));
    for asked in 1..=3 {
        let granted = ask(&questions, &person, "a.test:443").await;
        assert_eq!(
            granted,
            QuestionOutcome::Granted(GrantLifetime::WhileItHolds)
        );
        assert_eq!(person.asked.load(Ordering::SeqCst), asked);
    }
}

#[tokio::test(start_paused = true)]
async fn once_is_for_those_who_wait() {
    let (questions, person) = (OpenQuestions::default(), Person::who_says(HostAnswer::Once));
    ask(&questions, &person, "a.test:443").await;
    ask(&questions, &person, "a.test:443").await;
    assert_eq!(person.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_no_is_for_that_host_and_port() {
    let (questions, person) = (OpenQuestions::default(), Person::who_says(HostAnswer::Deny));
    for target in ["a.test:443", "a.test:80", "b.test:443", "a.test:443"] {
        ask(&questions, &person, target).await;
    }
    assert_eq!(person.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_share_one_question() {
    let (questions, person) = (
        OpenQuestions::default(),
        Person::who_waits(HostAnswer::Once, 0),
    );
    let waiting = join_all((0..20).map(|_| ask(&questions, &person, "a.test:443")));
    let (answers, ()) = tokio::join!(waiting, async {
        tokio::task::yield_now().await;
        person.free.add_permits(1);
    });
    assert!(answers.iter().all(|asked| *asked == GRANTED));
    assert_eq!(person.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn silence_is_no() {
    let (questions, person) = (
        OpenQuestions::default(),
        Person::who_waits(HostAnswer::Once, 0),
    );
    assert_eq!(
        ask(&questions, &person, "a.test:443").await,
        QuestionOutcome::NoAnswer
    );
}

#[tokio::test(start_paused = true)]
async fn a_no_is_remembered() {
    let (questions, person) = (OpenQuestions::default(), Person::who_says(HostAnswer::Deny));
    assert_eq!(
        ask(&questions, &person, "a.test:443").await,
        QuestionOutcome::Denied
    );
    assert_eq!(
        ask(&questions, &person, "a.test:443").await,
        QuestionOutcome::Denied
    );
    assert_eq!(person.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_hosts_is_not_a_flood_of_questions() {
    let (questions, person) = (
        OpenQuestions::default(),
        Person::who_waits(HostAnswer::Once, 0),
    );
    let targets: Vec<String> = (0..50).map(|n| format!("h{n}.test:443")).collect();
    let answers = join_all(
        targets
            .iter()
            .map(|target| ask(&questions, &person, target)),
    )
    .await;
    let refused = answers
        .iter()
        .filter(|asked| **asked == QuestionOutcome::TooManyQuestions)
        .count();
    assert_eq!(
        (person.asked.load(Ordering::SeqCst), refused),
        (MOST_QUESTIONS, 50 - MOST_QUESTIONS)
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_nobody_waits_for_can_be_put_again() {
    let (questions, person) = (
        OpenQuestions::default(),
        Person::who_waits(HostAnswer::Once, 0),
    );
    {
        let gone = ask(&questions, &person, "a.test:443");
        tokio::pin!(gone);
        assert!(futures::poll!(gone.as_mut()).is_pending());
    }
    person.free.add_permits(1);
    assert_eq!(ask(&questions, &person, "a.test:443").await, GRANTED);
}
