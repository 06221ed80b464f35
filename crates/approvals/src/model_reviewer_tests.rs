use std::time::Duration;

use futures::stream::{self, StreamExt};
use hermetic_agent::Deltas;
use hermetic_policy::{JudgementContext, Policy, PolicyMode, PolicyRules, Verdict};
use hermetic_redact::RedactorSettings;
use hermetic_types::{BackendDescription, BackendKind, Command};
use tokio::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
enum Odd {
    /// Nothing, ever.
    Silent,
    /// The word, and never an end.
    Unending,
    /// A letter a second.
    Slow,
    /// The word, and ends.
    Sure,
}

impl LanguageModel for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn complete<'a>(&'a self, ask: ModelRequest<'a>, _: CancellationToken) -> Deltas<'a> {
        let Some(Message::System { text }) = ask.messages.first() else {
            panic!("instructions come first");
        };
        let text = text.as_str();
        let at = text.find("HARMLESS-").expect("the word is among them");
        let word = text[at..].split_whitespace().next().unwrap_or_default();
        let word = Ok(ReplyDelta::Text(word.to_owned()));
        match self {
            Self::Silent => stream::pending().boxed(),
            Self::Unending => stream::iter([word]).chain(stream::pending()).boxed(),
            Self::Slow => stream::repeat("H")
                .then(async |letter| {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    Ok(ReplyDelta::Text(letter.to_owned()))
                })
                .boxed(),
            Self::Sure => stream::iter([word, Ok(ReplyDelta::Finish(FinishReason::Done))]).boxed(),
        }
    }
}

async fn finds_harmless(model: Odd) -> (bool, Duration) {
    let rules = PolicyRules {
        mode: PolicyMode::Smart,
        ..PolicyRules::default()
    };
    let context = JudgementContext::new(
        BackendDescription::judged(BackendKind::Local),
        "/home/user/project",
        "/home/user",
    );
    let command = Command::script("chmod 777 /etc/hosts");
    let Verdict::Ask(question) = Policy::new(rules).judge(command, &context) else {
        panic!("this is a question");
    };
    let redactor = Redactor::new([], RedactorSettings::default());
    let started = Instant::now();
    let reviewer = ModelReviewer::new(Arc::new(model), PATIENCE);
    let found = reviewer
        .finds_harmless(&question, &redactor, &CancellationToken::new())
        .await;
    (found, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_answer_leaves_it_to_a_person_in_time() {
    for model in [Odd::Silent, Odd::Unending, Odd::Slow] {
        let told = format!("{model:?}");
        let (harmless, waited) = finds_harmless(model).await;
        assert!(!harmless, "{told}");
        assert!(
            waited <= PATIENCE + Duration::from_millis(2),
            "{told}: {waited:?}"
        );
    }
    assert!(finds_harmless(Odd::Sure).await.0);
}
