use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hermetic_agent::{NanoDollars, RequestEstimate, SpendingMeter, SpentTokens, TokenUsage};
use hermetic_approvals::ApprovalWaits;
use hermetic_store::{SpendingScope, Store};
use hermetic_tools::ServiceUse;
use hermetic_types::{Clock, Timestamp};
use tempfile::TempDir;

use super::book::LiftOutcome;
use super::*;

#[derive(Debug)]
struct MovedClock(AtomicI64);

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

struct SpendingLab {
    folder: TempDir,
    clock: Arc<MovedClock>,
    limits: SpendingLimits,
}

impl SpendingLab {
    fn new(limits: SpendingLimits) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            // A noon, whatever the time zone makes of it.
            clock: Arc::new(MovedClock(AtomicI64::new(1_800_014_400_000))),
            limits,
        }
    }

    /// A gateway's book, as after a start.
    async fn book(&self) -> SpendingBook {
        let store = Store::open(
            &self.folder.path().join("s.db"),
            Arc::clone(&self.clock) as _,
        )
        .await
        .unwrap();
        SpendingBook::new(store.spending(), self.limits, Arc::clone(&self.clock) as _)
    }
}

fn of_person(limits: DayLimits) -> SpendingLimits {
    SpendingLimits {
        person: limits,
        ..SpendingLimits::default()
    }
}

fn tokens(tokens: u64) -> DayLimits {
    DayLimits {
        tokens: Some(tokens),
        ..DayLimits::default()
    }
}

fn estimate(tokens: u64) -> RequestEstimate {
    RequestEstimate { tokens, cost: None }
}

fn took(tokens: u64) -> SpentTokens {
    SpentTokens::Counted(TokenUsage {
        input_tokens: tokens,
        ..TokenUsage::default()
    })
}

fn ada<'a>(book: &'a SpendingBook, conversation: &str) -> TurnMeter<'a> {
    TurnMeter::new(book, "telegram:1".to_owned(), conversation.to_owned())
}

async fn spent(book: &SpendingBook) -> i64 {
    let scope = SpendingScope::Person("telegram:1".to_owned());
    book.day(&scope).await.unwrap().spent.tokens
}

/// Each thinks it takes 100 tokens and takes 150. So twenty fit at once, and each of those may take 50 more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_turns_at_once_overrun_by_no_more_than_what_was_in_flight() {
    const LIMIT: u64 = 2000;
    let lab = SpendingLab::new(of_person(tokens(LIMIT)));
    let book = Arc::new(lab.book().await);
    let turns = (0..50).map(|number| {
        let book = Arc::clone(&book);
        tokio::spawn(async move {
            let meter = ada(&book, &format!("conversation {number}"));
            let mut asked = 0_u64;
            while meter.before_request(estimate(100)).await.is_ok() {
                tokio::task::yield_now().await;
                meter.after_request(estimate(100), took(150)).await;
                asked += 1;
            }
            asked
        })
    });
    let asked = futures::future::join_all(turns).await.into_iter();
    let asked: u64 = asked.map(Result::unwrap).sum();
    let spent = spent(&book).await.unsigned_abs();
    assert_eq!(spent, asked * 150, "everything is counted once");
    let in_flight = LIMIT / 100;
    assert!(spent <= LIMIT + in_flight * 50, "{spent}");
    assert!(spent + 100 > LIMIT, "{spent}: nobody was refused too early");
}

#[tokio::test]
async fn what_another_gateway_spent_counts() {
    let lab = SpendingLab::new(of_person(tokens(250)));
    let (mut one, mut two) = (lab.book().await, lab.book().await);
    one.counted_by_others(true);
    two.counted_by_others(true);
    // Both know the day by now.
    let (ones, twos) = (ada(&one, "c"), ada(&two, "d"));
    ones.before_request(estimate(10)).await.unwrap();
    twos.before_request(estimate(10)).await.unwrap();
    ones.before_request(estimate(200)).await.unwrap();
    assert!(twos.before_request(estimate(100)).await.is_err());
    twos.before_request(estimate(20)).await.unwrap();
    assert_eq!(spent(&two).await, 240, "what was refused is not counted");
    // Of many that want the last of it at once, it is never more than there is.
    let lab = SpendingLab::new(of_person(tokens(500)));
    let (mut one, mut two) = (lab.book().await, lab.book().await);
    one.counted_by_others(true);
    two.counted_by_others(true);
    let (ones, twos) = (ada(&one, "c"), ada(&two, "d"));
    let asked = (0..20).map(|number| {
        let meter = if number % 2 == 0 { &ones } else { &twos };
        meter.before_request(estimate(100))
    });
    let let_through = futures::future::join_all(asked).await;
    let let_through = let_through.iter().filter(|asked| asked.is_ok()).count();
    assert!(let_through <= 5, "{let_through}");
    assert_eq!(spent(&one).await, 100 * i64::try_from(let_through).unwrap());
}

#[tokio::test]
async fn what_was_in_flight_when_the_gateway_was_killed_stays_counted() {
    let lab = SpendingLab::new(of_person(tokens(250)));
    let killed = lab.book().await;
    let meter = ada(&killed, "c");
    meter.before_request(estimate(100)).await.unwrap();
    meter.after_request(estimate(100), took(120)).await;
    meter.before_request(estimate(100)).await.unwrap();
    drop(meter);
    drop(killed);
    let book = lab.book().await;
    assert_eq!(spent(&book).await, 220);
    let refused = ada(&book, "c").before_request(estimate(100)).await;
    let words = refused.unwrap_err().words;
    assert_eq!(
        words,
        "I stop here: your budget for today is reached (220 of 250 tokens). It begins anew at midnight. Somebody \
         who may approve can lift it once for today: /lift person telegram:1"
    );
}

#[tokio::test]
async fn a_budget_is_lifted_once_also_by_somebody_elses_process_and_begins_anew_the_next_day() {
    let lab = SpendingLab::new(of_person(tokens(100)));
    let (book, elsewhere) = (lab.book().await, lab.book().await);
    let meter = ada(&book, "c");
    meter.before_request(estimate(100)).await.unwrap();
    meter.before_request(estimate(100)).await.unwrap_err();
    let scope = SpendingScope::Person("telegram:1".to_owned());
    let lift = async || elsewhere.lift(&scope).await.unwrap();
    assert_eq!(lift().await, LiftOutcome::Lifted);
    assert_eq!(lift().await, LiftOutcome::Already);
    meter.before_request(estimate(100)).await.unwrap();
    meter.before_request(estimate(100)).await.unwrap_err();
    lab.clock.0.fetch_add(86_400_000, Ordering::SeqCst);
    meter.before_request(estimate(100)).await.unwrap();
}

#[tokio::test]
async fn money_needs_a_price_and_tools_stop_when_their_time_is_over() {
    let lab = SpendingLab::new(SpendingLimits {
        conversation: DayLimits {
            dollars: NanoDollars::from_dollars(1.0),
            tool_seconds: Some(10),
            ..DayLimits::default()
        },
        ..SpendingLimits::default()
    });
    let book = lab.book().await;
    let meter = ada(&book, "c");
    let unknown = meter.before_request(estimate(1)).await.unwrap_err();
    assert!(unknown.words.contains("models.txt"), "{unknown}");
    let dear = RequestEstimate {
        tokens: 1,
        cost: NanoDollars::from_dollars(0.6),
    };
    meter.before_request(dear).await.unwrap();
    let refused = meter.before_request(dear).await.unwrap_err();
    assert!(refused.words.contains("$0.60 of $1.00"), "{refused}");
    meter.before_tool().await.unwrap();
    meter.after_tool(Duration::from_secs(11)).await;
    let refused = meter.before_tool().await.unwrap_err();
    assert!(refused.words.contains("10 seconds of tools"), "{refused}");
    ada(&book, "another").before_tool().await.unwrap();
}

#[tokio::test]
async fn without_bounds_everything_is_counted_and_nothing_refused() {
    let lab = SpendingLab::new(SpendingLimits::default());
    let book = lab.book().await;
    let meter = ada(&book, "c");
    meter.before_request(estimate(100)).await.unwrap();
    meter.after_request(estimate(100), took(100)).await;
    meter.before_tool().await.unwrap();
    meter.after_tool(Duration::from_secs(2)).await;
    meter.before_request(estimate(100)).await.unwrap();
    meter.after_request(estimate(100), took(7)).await;
    meter.before_request(estimate(100)).await.unwrap();
    meter
        .after_request(estimate(100), SpentTokens::Nothing)
        .await;
    let all = book.day(&SpendingScope::All).await.unwrap().spent;
    assert_eq!((all.requests, all.tokens, all.tool_ms), (3, 107, 2000));
}

#[tokio::test]
async fn a_name_that_nobody_has_is_not_lifted_and_one_that_was_refused_at_once_is() {
    let lab = SpendingLab::new(of_person(tokens(100)));
    let book = lab.book().await;
    let ada_scope = SpendingScope::Person("telegram:1".to_owned());
    let lift = async |scope: &SpendingScope| book.lift(scope).await.unwrap();
    assert_eq!(lift(&ada_scope).await, LiftOutcome::Unknown);
    let day = book.day(&ada_scope).await.unwrap();
    assert_eq!(day.lifts, 0);
    // More than the whole bound, so nothing was ever counted.
    let meter = ada(&book, "c");
    meter.before_request(estimate(150)).await.unwrap_err();
    assert_eq!(lift(&ada_scope).await, LiftOutcome::Lifted);
    meter.before_request(estimate(150)).await.unwrap();
}

#[tokio::test]
async fn figures_that_cannot_be_leave_the_book_open_to_others() {
    let lab = SpendingLab::new(of_person(tokens(1000)));
    let book = lab.book().await;
    for conversation in ["a", "b", "c", "d"] {
        let person = format!("telegram:{conversation}");
        let meter = TurnMeter::new(&book, person, conversation.to_owned());
        meter.before_request(estimate(100)).await.unwrap();
        meter.after_request(estimate(100), took(u64::MAX)).await;
    }
    ada(&book, "e").before_request(estimate(100)).await.unwrap();
    let all = book.day(&SpendingScope::All).await.unwrap();
    assert_eq!(all.spent.tokens, 4 * 1_000_000_000_000_000 + 100);
}

#[tokio::test]
async fn a_service_is_counted_before_it_is_asked_and_not_asked_without_a_price() {
    let lab = SpendingLab::new(of_person(DayLimits {
        dollars: NanoDollars::from_dollars(1.0),
        ..DayLimits::default()
    }));
    let book = lab.book().await;
    let meter = ServiceMeter {
        book: &book,
        scopes: ada(&book, "c").scopes(),
        prices: ServicePrices {
            speech: NanoDollars::from_dollars(0.3),
            ..ServicePrices::default()
        },
    };
    let unknown = meter.charge(ServiceUse::Search).await.unwrap_err();
    assert!(unknown.contains("budgets.prices.search"), "{unknown}");
    let speech = ServiceUse::Speech { characters: 1500 };
    let spent = async || {
        let scope = SpendingScope::Person("telegram:1".to_owned());
        book.day(&scope).await.unwrap().spent.nanodollars
    };
    meter.charge(speech).await.unwrap();
    let second = meter.charge(speech).await.unwrap();
    assert_eq!(spent().await, 900_000_000);
    let refused = meter.charge(speech).await.unwrap_err();
    assert!(refused.contains("$0.90 of $1.00"), "{refused}");
    meter.give_back(second).await;
    assert_eq!(spent().await, 450_000_000);
    meter.charge(speech).await.unwrap();
    // Where nobody bounds money, what has no price is asked for.
    let lab = SpendingLab::new(of_person(tokens(100)));
    let book = lab.book().await;
    let free = ServiceMeter {
        book: &book,
        scopes: ada(&book, "c").scopes(),
        prices: ServicePrices::default(),
    };
    free.charge(ServiceUse::Picture).await.unwrap();
}

/// The clock moves while somebody waits for the book.
#[tokio::test]
async fn who_waits_over_midnight_is_counted_for_the_new_day() {
    let lab = SpendingLab::new(of_person(tokens(100)));
    let book = lab.book().await;
    let before = book.date().await;
    let held = book.today().await;
    let waiting = book.date();
    tokio::pin!(waiting);
    assert!(futures::poll!(&mut waiting).is_pending());
    lab.clock.0.fetch_add(86_400_000, Ordering::SeqCst);
    drop(held);
    assert_ne!(waiting.await, before);
}

/// `vision_analyze` asks a model of its own.
#[tokio::test]
async fn a_tool_that_asks_a_model_is_counted_with_its_time() {
    let lab = SpendingLab::new(of_person(DayLimits {
        tool_seconds: Some(10),
        ..DayLimits::default()
    }));
    let book = lab.book().await;
    let meter = ada(&book, "c");
    meter.before_tool().await.unwrap();
    meter.before_request(estimate(10)).await.unwrap();
    meter.after_request(estimate(10), took(10)).await;
    meter.after_tool(Duration::from_secs(7)).await;
    let all = book.day(&SpendingScope::All).await.unwrap().spent;
    assert_eq!((all.tokens, all.tool_ms), (10, 7000));
    meter.before_tool().await.unwrap();
    meter.after_tool(Duration::from_secs(4)).await;
    assert!(meter.before_tool().await.is_err());
}

#[tokio::test]
async fn waiting_for_a_person_is_no_time_of_tools() {
    let lab = SpendingLab::new(SpendingLimits::default());
    let book = lab.book().await;
    let waits = ApprovalWaits::default();
    let meter = ada(&book, "c").without(waits.clone());
    // Not while the store works: its own timers would be over at once.
    tokio::time::pause();
    let waited = waits.begin();
    tokio::time::advance(Duration::from_secs(50)).await;
    drop(waited);
    tokio::time::resume();
    meter.after_tool(Duration::from_secs(53)).await;
    meter.after_tool(Duration::from_secs(2)).await;
    meter.close().await;
    let all = book.day(&SpendingScope::All).await.unwrap().spent;
    assert_eq!(all.tool_ms, 5000);
}
