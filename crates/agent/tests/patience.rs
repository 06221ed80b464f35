use std::sync::Arc;
use std::time::Duration;

use hermetic_agent::{
    LanguageModel, MediaPart, MessagePart, ModelError, ModelRetries, RetryingModel, TurnEnding,
    TurnError, TurnInput,
};
use hermetic_testkit::model::{Line, ScriptedModel};
use tokio::time::Instant;

use crate::lab::Lab;

fn busy(retry_after: Option<Duration>) -> ModelError {
    ModelError::Busy {
        model: "m".to_owned(),
        status: 429,
        detail: String::new(),
        retry_after,
    }
}

fn rejected() -> ModelError {
    ModelError::KeyRejected {
        model: "m".to_owned(),
        status: 401,
        detail: String::new(),
    }
}

fn patient(models: &[&Arc<ScriptedModel>]) -> Arc<RetryingModel> {
    let mut models = models
        .iter()
        .map(|model| Arc::clone(model) as Arc<dyn LanguageModel>);
    let first = models.next().expect("a model");
    Arc::new(RetryingModel::new(first, models, ModelRetries::default()))
}

fn script(lines: impl IntoIterator<Item = Line>) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::new(lines))
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_passes_is_tried_again() {
    let model = script([
        Line::fails(busy(None)),
        Line::fails(busy(None)),
        Line::says("at last"),
    ]);
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(patient(&[&model]), TurnInput::Says("hi"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "at last");
}

#[tokio::test(start_paused = true)]
async fn we_wait_as_long_as_we_were_asked_to() {
    let model = script([
        Line::fails(busy(Some(Duration::from_secs(77)))),
        Line::says("now"),
    ]);
    let started = Instant::now();
    let lab = Lab::new([]);
    lab.take_turn_with(patient(&[&model]), TurnInput::Says("hi"))
        .await
        .expect("an answer");
    // The clock is paused: this is what was waited for, not what passed.
    assert_eq!(started.elapsed().as_secs(), 77);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_asks_for_no_pause_is_not_asked_at_full_speed() {
    for retry_after in [Some(Duration::ZERO), None] {
        let model = script((0..9).map(|_| Line::fails(busy(retry_after))));
        let started = Instant::now();
        let lab = Lab::new([]);
        let turn = lab.take_turn_with(patient(&[&model]), TurnInput::Says("hi"));
        turn.await.expect_err("it never answers");
        let asked = u32::try_from(model.asked().len()).expect("a few times");
        assert!(asked > 1, "it was never asked again");
        let least = Duration::from_millis(100) * (asked - 1);
        assert!(
            started.elapsed() >= least,
            "{asked} times in {:?}",
            started.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_broke_off_begins_anew() {
    let cut = ModelError::Cut {
        model: "m".to_owned(),
    };
    let model = script([Line::breaks_after("half", cut), Line::says("whole")]);
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(patient(&[&model]), TurnInput::Says("hi"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "whole");
    assert_eq!(lab.happened()[1..4], ["text half", "restarted", "text wh"]);
}

#[tokio::test(start_paused = true)]
async fn the_fallback_is_asked_after_the_retries() {
    let first = script((0..4).map(|_| Line::fails(busy(None))));
    let second = script([Line::says("from the second")]);
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(patient(&[&first, &second]), TurnInput::Says("hi"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "from the second");
    assert_eq!(first.asked().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_key_is_not_tried_again_but_the_fallback_is() {
    let first = script([Line::fails(rejected())]);
    let second = script([Line::says("ok")]);
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(patient(&[&first, &second]), TurnInput::Says("hi"))
        .await
        .expect("an answer");
    assert_eq!((answer.text.as_str(), first.asked().len()), ("ok", 1));

    let alone = script([Line::fails(rejected()), Line::says("never")]);
    let error = lab
        .take_turn_with(patient(&[&alone]), TurnInput::Says("hi"))
        .await
        .expect_err("rejected");
    assert!(matches!(
        error,
        TurnError::Model(ModelError::KeyRejected { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_all_patience_goes_to_the_fallback() {
    let first = script([Line::fails(busy(Some(Duration::from_secs(3600))))]);
    let second = script([Line::says("ok")]);
    let started = Instant::now();
    let lab = Lab::new([]);
    lab.take_turn_with(patient(&[&first, &second]), TurnInput::Says("hi"))
        .await
        .expect("an answer");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn it_gives_up_in_the_end() {
    let model = script((0..10).map(|_| Line::fails(busy(None))));
    let lab = Lab::new([]);
    let error = lab
        .take_turn_with(patient(&[&model]), TurnInput::Says("hi"))
        .await
        .expect_err("busy");
    assert!(matches!(error, TurnError::Model(ModelError::Busy { .. })));
    assert_eq!(model.asked().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_pause_can_be_interrupted() {
    let model = script([Line::fails(busy(Some(Duration::from_secs(100))))]);
    let lab = Lab::new([]);
    let stop = lab.stop.clone();
    let (answer, ()) = tokio::join!(
        lab.take_turn_with(patient(&[&model]), TurnInput::Says("hi")),
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stop.cancel();
        }
    );
    assert_eq!(answer.expect("an answer").ended, TurnEnding::Interrupted);
}

fn refused() -> Line {
    Line::fails(ModelError::Refused {
        model: "m".to_owned(),
        status: 400,
        detail: "unknown part".to_owned(),
    })
}

fn shows(model: &ScriptedModel) -> Vec<bool> {
    let asked = model.asked();
    let shows = asked
        .iter()
        .map(|asked| format!("{asked:?}").contains("Image("));
    shows.collect()
}

#[tokio::test(start_paused = true)]
async fn a_first_model_that_sees_nothing_answers_by_itself_before_a_fallback() {
    let first = script([refused(), Line::says("blind"), Line::says("still")]);
    let second = script([]);
    let mut lab = Lab::new([]);
    lab.media = vec![MessagePart::Image(
        MediaPart::inline("image/png", b"png").unwrap(),
    )];
    let agent = lab.agent(patient(&[&first, &second]));
    for expected in ["blind", "still"] {
        let answer = lab.take_turn_by(&agent, TurnInput::Says("look")).await;
        assert_eq!(answer.unwrap().text, expected);
    }
    assert_eq!(shows(&first), [true, false, false], "it is known by now");
    assert_eq!(second.asked().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_first_model_that_refuses_words_too_gives_way_and_the_fallback_sees() {
    let first = script([refused(), refused(), refused()]);
    let second = script([
        Line::says("hello"),
        Line::says("a cat"),
        Line::says("a dog"),
    ]);
    let mut lab = Lab::new([]);
    let agent = lab.agent(patient(&[&first, &second]));
    let said = lab.take_turn_by(&agent, TurnInput::Says("hi")).await;
    assert_eq!(said.unwrap().text, "hello");
    lab.media = vec![MessagePart::Image(
        MediaPart::inline("image/png", b"png").unwrap(),
    )];
    for expected in ["a cat", "a dog"] {
        let answer = lab.take_turn_by(&agent, TurnInput::Says("look")).await;
        assert_eq!(answer.unwrap().text, expected);
    }
    assert_eq!(shows(&first), [false, true, true], "each is asked once");
    assert_eq!(shows(&second), [false, true, true]);
}
