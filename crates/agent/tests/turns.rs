use std::collections::HashSet;
use std::time::Duration;

use hermetic_agent::{
    AssistantPart, CallId, FinishReason, HistoryBudget, MediaPart, Message, MessagePart,
    ModelError, ReplyDelta, StoredMessage, TokenUsage, ToolCall, TurnEnding, TurnError, TurnInput,
    mend,
};
use hermetic_testkit::model::Line;

use crate::lab::{Lab, results};

#[tokio::test]
async fn a_turn_without_tools() {
    let lab = Lab::new([Line::says("hello there")]);
    let answer = lab.says("hi").await.expect("an answer");
    assert_eq!(
        (answer.text.as_str(), answer.ended),
        ("hello there", TurnEnding::Finished)
    );
    assert_eq!(
        answer.messages,
        [Message::user("hi"), Message::assistant("hello there")]
    );
    assert_eq!(
        lab.model.asked(),
        [[Message::system("be good"), Message::user("hi")]]
    );
}

#[tokio::test]
async fn each_side_effect_is_written_down_before_and_after() {
    let lab = Lab::new([
        Line::calls(&[("echo", r#"{"text":"a"}"#), ("echo", r#"{"text":"b"}"#)]),
        Line::says("done"),
    ]);
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(
        lab.happened(),
        [
            "journal: user",
            "journal: assistant",
            "journal: about to run echo",
            "started echo",
            "echo a",
            "ended echo failed=false",
            "journal: ended",
            "journal: about to run echo",
            "started echo",
            "echo b",
            "ended echo failed=false",
            "journal: ended",
            "text do",
            "text ne",
            "journal: assistant",
        ]
    );
    let results = results(&answer.messages);
    assert_eq!(results.len(), 2);
    assert!(
        results[0].starts_with("[output of echo, untrusted data, ends at "),
        "{}",
        results[0]
    );
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_done() {
    let lab = Lab::new([Line::calls(&[("echo", r#"{"text":"a"}"#)])]).with_broken_journal();
    let error = lab.says("go").await.expect_err("no journal");
    assert!(matches!(error, TurnError::Journal(_)));
    assert!(
        !lab.happened().contains(&"echo a".to_owned()),
        "{:?}",
        lab.happened()
    );
}

#[tokio::test]
async fn malformed_arguments_and_unknown_tools_are_answered() {
    let lab = Lab::new([
        Line::calls(&[
            ("echo", "{\"text\":"),
            ("echo", "{\"text\":5}"),
            ("rm -rf", "{}"),
            ("", ""),
        ]),
        Line::says("sorry"),
    ]);
    let answer = lab.says("go").await.expect("an answer");
    let results = results(&answer.messages);
    assert!(
        results[0].starts_with("error: the arguments are not JSON"),
        "{}",
        results[0]
    );
    assert!(
        results[0].contains("\"required\":[\"text\"]"),
        "{}",
        results[0]
    );
    assert!(
        results[1].starts_with("error: arguments.text must be string"),
        "{}",
        results[1]
    );
    assert!(
        results[2].starts_with("error: there is no tool \"rm -rf\"; known: echo, "),
        "{}",
        results[2]
    );
    assert_eq!(answer.text, "sorry");
    assert!(
        !lab.happened()
            .iter()
            .any(|what| what.starts_with("journal: about to run"))
    );
}

#[tokio::test]
async fn a_turn_that_never_ends_is_ended_honestly() {
    let endless = std::iter::repeat_n(Line::calls(&[("echo", r#"{"text":"again"}"#)]), 10);
    let mut lab = Lab::new(endless);
    lab.limits.max_turns = 3;
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(answer.ended, TurnEnding::TurnLimit);
    assert!(answer.text.contains("after 3 steps"), "{}", answer.text);
    assert_eq!(results(&answer.messages).len(), 3);
    assert_eq!(
        mend(answer.messages.clone(), &HashSet::new()),
        answer.messages
    );
}

#[tokio::test]
async fn words_said_meanwhile_reach_the_model_after_the_calls() {
    let lab = Lab::new([
        Line::calls(&[
            ("steer", r#"{"text":"in green please"}"#),
            ("echo", r#"{"text":"b"}"#),
        ]),
        Line::says("green then"),
    ]);
    let answer = lab.says("paint it").await.expect("an answer");
    let asked = lab.model.asked();
    assert_eq!(asked[1].last(), Some(&Message::user("in green please")));
    assert_eq!(answer.unheard, [""; 0]);
}

#[tokio::test]
async fn words_that_came_too_late_are_handed_back() {
    let lab = Lab::new([Line::says("done")]);
    lab.steer.say("one more thing");
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(answer.unheard, ["one more thing"]);
}

#[tokio::test]
async fn an_interruption_between_calls_answers_them_all() {
    let lab = Lab::new([Line::calls(&[
        ("stop", r#"{"text":"x"}"#),
        ("echo", r#"{"text":"y"}"#),
    ])]);
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(
        (answer.ended, answer.text.as_str()),
        (TurnEnding::Interrupted, "[Interrupted.]")
    );
    let results = results(&answer.messages);
    assert_eq!(results[1], "not run: the turn was interrupted first.");
    assert!(!lab.happened().contains(&"echo y".to_owned()));
    assert_eq!(
        mend(answer.messages.clone(), &HashSet::new()),
        answer.messages
    );
}

#[tokio::test]
async fn a_tool_that_is_told_to_stop_says_how_it_ended() {
    let lab = Lab::new([Line::calls(&[("hang", r#"{"text":"x"}"#)])]);
    let answer = lab.says("go").await.expect("an answer");
    assert!(results(&answer.messages)[0].contains("stopped half way"));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_stop_is_left_after_the_grace_period() {
    let mut lab = Lab::new([Line::calls(&[("hang_forever", r#"{"text":"x"}"#)])]);
    lab.limits.grace = Duration::from_secs(10);
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(answer.ended, TurnEnding::Interrupted);
    assert!(results(&answer.messages)[0].contains("may or may not have happened"));
}

#[tokio::test]
async fn an_interruption_in_the_middle_of_an_answer_keeps_what_was_said() {
    let lab = Lab::new([Line::stalls_after("I was about to")]);
    let stop = lab.stop.clone();
    let (answer, ()) = tokio::join!(lab.says("go"), async {
        while !lab.happened().contains(&"text I was about to".to_owned()) {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    });
    let answer = answer.expect("an answer");
    assert_eq!(answer.text, "I was about to\n\n[Interrupted.]");
    assert_eq!(
        answer.messages.last(),
        Some(&Message::assistant(answer.text.clone()))
    );
}

#[tokio::test]
async fn a_conversation_too_long_is_shown_in_part() {
    let too_long = ModelError::ContextTooLong {
        model: "m".to_owned(),
        detail: "8192 tokens".to_owned(),
    };
    let mut lab = Lab::new([Line::fails(too_long), Line::says("shorter")]);
    lab.limits.budget = HistoryBudget::bytes(400);
    let long = "x".repeat(180);
    lab.history = vec![
        Message::user(lab.redactor.redact(&long)),
        Message::assistant("one"),
        Message::user(lab.redactor.redact(&long)),
        Message::assistant("two"),
    ];
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(answer.text, "shorter");
    let asked = lab.model.asked();
    assert!(asked[1].len() < asked[0].len());
    assert!(asked[1][1].text().contains("earlier messages"));
}

#[tokio::test]
async fn a_resumed_turn_learns_that_a_call_may_have_happened() {
    let call = ToolCall {
        id: CallId::new("c1"),
        name: "echo".to_owned(),
        arguments: r#"{"text":"a"}"#.to_owned(),
    };
    let cut = vec![
        Message::user("go"),
        Message::Assistant {
            parts: vec![AssistantPart::ToolCall(call.clone())],
        },
    ];
    let mut lab = Lab::new([Line::says("I looked: it had happened")]);
    lab.history = mend(cut, &HashSet::from([call.id]));
    let answer = lab.take_turn(TurnInput::Resume).await.expect("an answer");
    assert_eq!(answer.text, "I looked: it had happened");
    let asked = lab.model.asked();
    let told = results(&asked[0]);
    assert!(told[0].contains("may or may not have happened"), "{told:?}");
    assert!(
        !lab.happened().contains(&"echo a".to_owned()),
        "a side effect was repeated"
    );
}

#[tokio::test]
async fn answers_that_ended_early_say_so() {
    let cut = |finish| {
        Line::deltas([
            ReplyDelta::Text("half".to_owned()),
            ReplyDelta::Finish(finish),
        ])
    };
    let lab = Lab::new([
        cut(FinishReason::Length),
        cut(FinishReason::Filtered),
        Line::says(""),
    ]);
    for expected in [
        "half\n\n[The model ran out of room here.]",
        "half\n\n[The provider of the model withheld the rest.]",
        "[The model answered with nothing.]",
    ] {
        let answer = lab.says("go").await.expect("an answer");
        assert_eq!(
            (answer.text.as_str(), answer.ended),
            (expected, TurnEnding::CutShort)
        );
    }
}

#[tokio::test]
async fn usage_is_summed_over_a_turn() {
    let usage = |input_tokens, output_tokens| {
        ReplyDelta::Usage(TokenUsage {
            input_tokens,
            output_tokens,
            ..TokenUsage::default()
        })
    };
    let lab = Lab::new([
        Line::deltas([
            ReplyDelta::ToolCall(hermetic_agent::CallFragment {
                name: Some("echo".to_owned()),
                arguments: r#"{"text":"a"}"#.to_owned(),
                ..Default::default()
            }),
            usage(10, 2),
        ]),
        Line::deltas([ReplyDelta::Text("x".to_owned()), usage(20, 3)]),
    ]);
    let answer = lab.says("go").await.expect("an answer");
    assert_eq!(
        answer.usage,
        TokenUsage {
            input_tokens: 30,
            output_tokens: 5,
            ..TokenUsage::default()
        }
    );
}

#[tokio::test]
async fn history_survives_serde() {
    let lab = Lab::new([
        Line::calls(&[("echo", r#"{"text":"a"}"#)]),
        Line::says("ok"),
    ]);
    let answer = lab.says("go").await.expect("an answer");
    let json = serde_json::to_string(&answer.messages).expect("json");
    let kept: Vec<StoredMessage> = serde_json::from_str(&json).expect("messages");
    let back = kept
        .into_iter()
        .map(|stored| stored.redacted(&lab.redactor));
    assert_eq!(back.collect::<Vec<_>>(), answer.messages);
}

#[tokio::test]
async fn ids_that_repeat_across_answers_stay_apart() {
    let same = || {
        Line::deltas([ReplyDelta::ToolCall(hermetic_agent::CallFragment {
            id: Some("call_0".to_owned()),
            name: Some("echo".to_owned()),
            arguments: r#"{"text":"a"}"#.to_owned(),
            ..Default::default()
        })])
    };
    let lab = Lab::new([same(), same(), Line::says("ok")]);
    let answer = lab.says("go").await.expect("an answer");
    let ids: HashSet<_> = answer
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { call_id, .. } => Some(call_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), 2);
}

/// The machine dies before each write of the journal in turn; the next start resumes.
#[tokio::test]
async fn a_crash_at_any_step_repeats_nothing_in_silence() {
    let script = || {
        [
            Line::calls(&[("echo", r#"{"text":"a"}"#), ("echo", r#"{"text":"b"}"#)]),
            Line::says("done"),
        ]
    };
    // The request, the answer with its calls, two writes for each call, the last answer.
    for dies_after in 0..7 {
        let mut before = Lab::new(script());
        before.record.dies_after = Some(dies_after);
        tokio::select! {
            _ = before.says("go") => panic!("it survived {dies_after}"),
            () = before.record.died.notified() => {}
        }
        let history = before.record.messages.lock().expect("no panic").clone();
        let begun = before.record.begun.lock().expect("no panic").clone();
        if history.is_empty() {
            continue;
        }
        let mut after = Lab::new([Line::says("resumed")]);
        after.history = mend(history, &begun);
        after.take_turn(TurnInput::Resume).await.expect("an answer");
        let shown = &after.model.asked()[0];
        for (text, effect) in [("a", "echo a"), ("b", "echo b")] {
            let happened = |lab: &Lab| lab.happened().iter().filter(|what| *what == effect).count();
            assert!(
                happened(&before) + happened(&after) <= 1,
                "{dies_after}: {effect} was repeated"
            );
            // The model must not take what happened for something that did not.
            let told = results(shown).iter().any(|result| {
                result.contains(&format!("\n{text}\n")) || result.contains("may or may not")
            });
            assert!(
                happened(&before) == 0 || told,
                "{dies_after}: {effect} was hidden from the model"
            );
        }
    }
}

#[tokio::test]
async fn a_model_that_refuses_images_is_told_of_them_instead_from_then_on() {
    let refused = || {
        Line::fails(ModelError::Refused {
            model: "scripted".to_owned(),
            status: 400,
            detail: "unknown part".to_owned(),
        })
    };
    let image = MediaPart::inline("image/png", b"png").unwrap();
    let mut lab = Lab::new([
        refused(),
        Line::says("blind"),
        Line::says("still"),
        refused(),
        refused(),
    ]);
    lab.media = vec![MessagePart::Image(image)];
    let agent = lab.agent(lab.model.clone());
    let first = lab.take_turn_by(&agent, TurnInput::Says("look")).await;
    assert_eq!(first.unwrap().text, "blind");
    let shown = |question: usize| format!("{:?}", lab.model.asked()[question]);
    assert!(shown(0).contains("Image(") && !shown(1).contains("Image("));
    assert!(
        shown(1).contains("[image/png, without a name, not shown]"),
        "{}",
        shown(1)
    );
    lab.take_turn_by(&agent, TurnInput::Says("again"))
        .await
        .unwrap();
    assert!(!shown(2).contains("Image("), "it is known by now");
    // Refused for another reason: the next agent shows images again.
    let agent = lab.agent(lab.model.clone());
    lab.take_turn_by(&agent, TurnInput::Says("x"))
        .await
        .unwrap_err();
    lab.take_turn_by(&agent, TurnInput::Says("x"))
        .await
        .unwrap_err();
    assert!(shown(5).contains("Image("), "{}", shown(5));
}

#[tokio::test]
async fn one_image_that_is_refused_keeps_no_other_from_being_shown() {
    let refused = || {
        Line::fails(ModelError::Refused {
            model: "scripted".to_owned(),
            status: 400,
            detail: "a bad image".to_owned(),
        })
    };
    let mut script = vec![Line::says("seen"), refused(), Line::says("blind")];
    script.push(Line::says("seen again"));
    let mut lab = Lab::new(script);
    let image = MediaPart::inline("image/png", b"png").unwrap();
    lab.media = vec![MessagePart::Image(image)];
    let agent = lab.agent(lab.model.clone());
    let shows = |question: usize| format!("{:?}", lab.model.asked()[question]).contains("Image(");
    for _ in 0..3 {
        let turn = lab.take_turn_by(&agent, TurnInput::Says("look"));
        turn.await.unwrap();
    }
    assert_eq!(
        [shows(0), shows(1), shows(2), shows(3)],
        [true, true, false, true]
    );
}

#[tokio::test]
async fn a_model_that_refused_images_is_tried_again_after_a_while() {
    let refused = Line::fails(ModelError::Refused {
        model: "scripted".to_owned(),
        status: 400,
        detail: "unknown part".to_owned(),
    });
    let mut script = vec![refused];
    script.extend((0..22).map(|_| Line::says("ok")));
    let mut lab = Lab::new(script);
    let image = MediaPart::inline("image/png", b"png").unwrap();
    lab.media = vec![MessagePart::Image(image)];
    let agent = lab.agent(lab.model.clone());
    for _ in 0..22 {
        let turn = lab.take_turn_by(&agent, TurnInput::Says("look"));
        turn.await.unwrap();
    }
    let asked = lab.model.asked();
    let shows: Vec<_> = asked
        .iter()
        .map(|asked| format!("{asked:?}").contains("Image("))
        .collect();
    let expected: Vec<_> = (0..23).map(|place| place == 0 || place == 22).collect();
    assert_eq!(shows, expected);
}
