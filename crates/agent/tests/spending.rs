//! What is spent is asked about before and told afterwards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_agent::{
    Deltas, LanguageModel, ModelError, ModelRequest, ModelRetries, ReplyDelta, RequestEstimate,
    RetryingModel, SpendingMeter, SpendingRefused, SpentTokens, TokenUsage, TurnEnding, TurnInput,
};
use hermetic_testkit::model::{Line, ScriptedModel};
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, results};

/// Lets so many requests and tools through, and notes what it was told.
#[derive(Debug)]
struct Purse {
    requests: usize,
    tools: usize,
    told: Mutex<Vec<String>>,
}

impl Purse {
    fn new(requests: usize, tools: usize) -> Arc<Self> {
        Arc::new(Self {
            requests,
            tools,
            told: Mutex::default(),
        })
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().expect("no panic").clone()
    }

    fn ask(&self, what: &str, most: usize) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        let mut told = self.told.lock().expect("no panic");
        let before = told.iter().filter(|line| *line == what).count();
        if before >= most {
            let words = "the purse is empty".to_owned();
            return future::ready(Err(SpendingRefused { words })).boxed();
        }
        told.push(what.to_owned());
        future::ready(Ok(())).boxed()
    }

    fn note(&self, line: String) -> BoxFuture<'_, ()> {
        self.told.lock().expect("no panic").push(line);
        future::ready(()).boxed()
    }
}

impl SpendingMeter for Purse {
    fn before_request(
        &self,
        estimate: RequestEstimate,
    ) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        assert!(estimate.tokens > 1000, "an answer at least: {estimate:?}");
        self.ask("request", self.requests)
    }

    fn after_request(&self, estimate: RequestEstimate, spent: SpentTokens) -> BoxFuture<'_, ()> {
        self.note(match spent {
            SpentTokens::Nothing => "nothing".to_owned(),
            SpentTokens::Counted(usage) if usage.tokens() == estimate.tokens => {
                "as estimated".to_owned()
            }
            SpentTokens::Counted(usage) => format!("{} tokens", usage.tokens()),
        })
    }

    fn before_tool(&self) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        self.ask("tool", self.tools)
    }

    fn after_tool(&self, _: Duration) -> BoxFuture<'_, ()> {
        self.note("tool ended".to_owned())
    }
}

fn usage(input_tokens: u64) -> ReplyDelta {
    ReplyDelta::Usage(TokenUsage {
        input_tokens,
        ..TokenUsage::default()
    })
}

#[tokio::test]
async fn every_request_and_tool_is_asked_about_and_settled() {
    let mut lab = Lab::new([
        Line::calls(&[("echo", r#"{"text":"a"}"#)]),
        Line::deltas([ReplyDelta::Text("done".to_owned()), usage(42)]),
    ]);
    let purse = Purse::new(9, 9);
    lab.meter = Arc::clone(&purse) as _;
    lab.says("go").await.expect("an answer");
    assert_eq!(
        purse.told(),
        [
            "request",
            "as estimated",
            "tool",
            "tool ended",
            "request",
            "42 tokens"
        ]
    );
}

#[tokio::test]
async fn an_empty_purse_ends_the_turn_in_words_before_the_model_is_asked() {
    let mut lab = Lab::new([
        Line::calls(&[("echo", r#"{"text":"a"}"#)]),
        Line::says("never"),
    ]);
    lab.meter = Purse::new(1, 9);
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(
        (answer.text.as_str(), answer.ended),
        ("the purse is empty", TurnEnding::BudgetReached)
    );
    assert_eq!(lab.model.asked().len(), 1);
    assert_eq!(
        results(&answer.messages).len(),
        1,
        "what was called has ended"
    );
}

#[tokio::test]
async fn a_tool_without_time_left_is_not_run_and_the_model_is_told() {
    let mut lab = Lab::new([
        Line::calls(&[("echo", r#"{"text":"a"}"#), ("echo", r#"{"text":"b"}"#)]),
        Line::says("ok"),
    ]);
    lab.meter = Purse::new(9, 1);
    let answer = lab.says("go").await.expect("an answer");
    assert!(!lab.happened().contains(&"echo b".to_owned()));
    let results = results(&answer.messages);
    assert_eq!(results[1], "not run: the purse is empty");
}

fn cut() -> ModelError {
    ModelError::Cut {
        model: "m".to_owned(),
    }
}

#[tokio::test]
async fn a_failure_took_something_where_the_provider_worked_for_it() {
    let refused = ModelError::Refused {
        model: "m".to_owned(),
        status: 400,
        detail: String::new(),
    };
    for (error, told) in [(refused, "nothing"), (cut(), "as estimated")] {
        let mut lab = Lab::new([Line::fails(error)]);
        let purse = Purse::new(9, 9);
        lab.meter = Arc::clone(&purse) as _;
        lab.says("go").await.expect_err("it failed");
        assert_eq!(purse.told(), ["request", told]);
    }
}

/// Four attempts, each of them paid for once.
#[tokio::test(start_paused = true)]
async fn every_attempt_is_paid_for_also_where_nothing_was_said() {
    let model = Arc::new(ScriptedModel::new((0..4).map(|_| Line::fails(cut()))));
    let patient = RetryingModel::new(model as _, [], ModelRetries::default());
    let mut lab = Lab::new([]);
    let purse = Arc::new(SumPurse::default());
    lab.meter = Arc::clone(&purse) as _;
    let turn = lab.take_turn_with(Arc::new(patient), TurnInput::Says("go"));
    turn.await.expect_err("it never answers");
    let (estimated, counted) = *purse.sums.lock().expect("no panic");
    assert_eq!(counted, 4 * estimated);
}

/// Of 10,000 tokens or so, 1,000 were estimated.
#[tokio::test]
async fn an_interrupted_answer_took_what_was_seen_of_it() {
    let text = "x".repeat(30_000);
    let mut lab = Lab::new([Line::stalls_after(&text)]);
    let purse = Arc::new(SumPurse::default());
    lab.meter = Arc::clone(&purse) as _;
    let stop = lab.stop.clone();
    let (answer, ()) = tokio::join!(lab.says("go"), async {
        while lab.happened().len() < 2 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    });
    assert_eq!(answer.expect("an answer").ended, TurnEnding::Interrupted);
    let (estimated, counted) = *purse.sums.lock().expect("no panic");
    assert_eq!(counted, estimated + 9000);
}

/// Sums of what was estimated and of what was counted.
#[derive(Debug, Default)]
struct SumPurse {
    sums: Mutex<(u64, u64)>,
    models: Mutex<Vec<String>>,
}

/// A model under a name of its own.
#[derive(Debug)]
struct NamedModel(&'static str, ScriptedModel);

impl LanguageModel for NamedModel {
    fn name(&self) -> &str {
        self.0
    }

    fn complete<'a>(&'a self, ask: ModelRequest<'a>, stop: CancellationToken) -> Deltas<'a> {
        self.1.complete(ask, stop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_gave_way_is_not_the_one_that_is_told() {
    let rejected = ModelError::KeyRejected {
        model: "first".to_owned(),
        status: 401,
        detail: String::new(),
    };
    let first = NamedModel(
        "first",
        ScriptedModel::new([Line::says("one"), Line::fails(rejected)]),
    );
    let second = NamedModel("second", ScriptedModel::new([Line::says("two")]));
    let model: Arc<dyn LanguageModel> = Arc::new(RetryingModel::new(
        Arc::new(first),
        [Arc::new(second) as _],
        ModelRetries::default(),
    ));
    let mut lab = Lab::new([]);
    let purse = Arc::new(SumPurse::default());
    lab.meter = Arc::clone(&purse) as _;
    for answer in ["one", "two"] {
        let turn = lab.take_turn_with(Arc::clone(&model), TurnInput::Says("go"));
        assert_eq!(turn.await.expect("an answer").text, answer);
    }
    let told = purse.models.lock().expect("no panic").clone();
    assert_eq!(told, ["first", "second"]);
}

impl SpendingMeter for SumPurse {
    fn before_request(
        &self,
        estimate: RequestEstimate,
    ) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        self.sums.lock().expect("no panic").0 += estimate.tokens;
        future::ready(Ok(())).boxed()
    }

    fn answered_by(&self, model: &str) {
        let mut models = self.models.lock().expect("no panic");
        models.push(model.to_owned());
    }

    fn after_request(&self, _: RequestEstimate, spent: SpentTokens) -> BoxFuture<'_, ()> {
        if let SpentTokens::Counted(usage) = spent {
            self.sums.lock().expect("no panic").1 += usage.tokens();
        }
        future::ready(()).boxed()
    }

    fn before_tool(&self) -> BoxFuture<'_, Result<(), SpendingRefused>> {
        future::ready(Ok(())).boxed()
    }

    fn after_tool(&self, _: Duration) -> BoxFuture<'_, ()> {
        future::ready(()).boxed()
    }
}
