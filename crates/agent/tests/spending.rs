//! What is spent is asked about before and told afterwards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_agent::{
    ModelError, ReplyDelta, RequestEstimate, SpendingMeter, SpendingRefused, SpentTokens,
    TokenUsage, TurnEnding,
};
use hermetic_testkit::model::Line;

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

    fn after_request(&self, _: RequestEstimate, spent: SpentTokens) -> BoxFuture<'_, ()> {
        self.note(match spent {
            SpentTokens::Nothing => "nothing".to_owned(),
            SpentTokens::AsEstimated => "as estimated".to_owned(),
            SpentTokens::Exactly(usage) => format!("{} tokens", usage.tokens()),
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

#[tokio::test]
async fn a_request_that_failed_without_figures_took_nothing() {
    let cut = ModelError::Cut {
        model: "m".to_owned(),
    };
    let mut lab = Lab::new([Line::fails(cut)]);
    let purse = Purse::new(9, 9);
    lab.meter = Arc::clone(&purse) as _;
    lab.says("go").await.expect_err("it failed");
    assert_eq!(purse.told(), ["request", "nothing"]);
}
