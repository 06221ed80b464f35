//! Our client against a server that behaves, and one that does not.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hermetic_agent::endpoint::{EndpointSettings, ModelEndpoint};
use hermetic_agent::{
    CallFragment, FinishReason, LanguageModel, Message, ModelError, ModelRequest, NoModel,
    ReplyDelta, TokenUsage, TurnInput,
};
use hermetic_testkit::model::{Piece, Reply, ScriptedServer};
use hermetic_types::{Secret, SystemClock};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::lab::{Lab, results};

const KEY: &str = "key-for-the-test-4711";

fn settings(server: &ScriptedServer) -> EndpointSettings {
    EndpointSettings::new(server.base_url(), Some(Secret::new(KEY)), "test-model")
}

async fn ask_with(
    reply: Reply,
    change: impl FnOnce(&mut EndpointSettings),
) -> Vec<Result<ReplyDelta, ModelError>> {
    let server = ScriptedServer::start([reply]).await.expect("loopback");
    let mut settings = settings(&server);
    change(&mut settings);
    let model = ModelEndpoint::new(settings, SystemClock::shared()).expect("settings");
    let messages = [Message::user("hi")];
    let ask = ModelRequest {
        messages: &messages,
        tools: &[],
    };
    model
        .complete(ask, CancellationToken::new())
        .collect()
        .await
}

async fn ask(reply: Reply) -> Vec<Result<ReplyDelta, ModelError>> {
    ask_with(reply, |_| {}).await
}

async fn error(reply: Reply) -> ModelError {
    let last = ask(reply).await.pop();
    last.expect("something").expect_err("an error")
}

fn text(text: &str) -> Result<ReplyDelta, ModelError> {
    Ok(ReplyDelta::Text(text.to_owned()))
}

fn done() -> Result<ReplyDelta, ModelError> {
    Ok(ReplyDelta::Finish(FinishReason::Done))
}

#[tokio::test]
async fn a_streamed_answer() {
    assert_eq!(
        ask(Reply::streams(&["Hel", "lo"])).await,
        [text("Hel"), text("lo"), done()]
    );
}

#[tokio::test]
async fn what_is_sent() {
    let server = ScriptedServer::start([Reply::streams(&["ok"])])
        .await
        .expect("loopback");
    let mut settings = settings(&server);
    settings
        .headers
        .push(("x-team".to_owned(), Secret::new("blue")));
    let model: Arc<dyn LanguageModel> =
        Arc::new(ModelEndpoint::new(settings, SystemClock::shared()).expect("settings"));
    let lab = Lab::new([]);
    lab.take_turn_with(model, TurnInput::Says("hi"))
        .await
        .expect("an answer");
    let received = &server.received()[0];
    assert_eq!(received.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(received.headers["x-team"], "blue");
    assert_eq!(received.body["model"], "test-model");
    assert_eq!(received.body["stream"], true);
    assert_eq!(
        received.body["messages"][1],
        json!({"role": "user", "content": "hi"})
    );
    assert_eq!(received.body["tools"][0]["function"]["name"], "echo");
}

#[tokio::test]
async fn parallel_calls_over_the_wire_and_back() {
    let call = |index: usize, id: &str, name: &str, arguments: &str| {
        json!({"choices": [{"delta": {"tool_calls": [
            {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
        ]}}]})
    };
    let more = |index: usize, arguments: &str| json!({"choices": [{"delta": {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}}]});
    let calls = Reply::events([
        call(0, "a", "echo", ""),
        call(1, "b", "echo", "{\"te"),
        more(0, "{\"text\":\"one\"}"),
        more(1, "xt\":\"two\"}"),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ]);
    let server = ScriptedServer::start([calls, Reply::streams(&["fine"])])
        .await
        .expect("loopback");
    let model: Arc<dyn LanguageModel> =
        Arc::new(ModelEndpoint::new(settings(&server), SystemClock::shared()).expect("settings"));
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(model, TurnInput::Says("go"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "fine");
    assert_eq!(results(&answer.messages).len(), 2);
    let sent = &server.received()[1].body["messages"];
    assert_eq!(
        sent[2]["tool_calls"][1]["function"]["arguments"],
        "{\"text\":\"two\"}"
    );
    assert_eq!(
        (&sent[3]["tool_call_id"], &sent[4]["tool_call_id"]),
        (&json!("a"), &json!("b"))
    );
}

#[tokio::test]
async fn dialects() {
    let plain = json!({
        "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    });
    let usage = Ok(ReplyDelta::Usage(TokenUsage {
        input_tokens: 3,
        output_tokens: 1,
        ..TokenUsage::default()
    }));
    assert_eq!(
        ask(Reply::json(200, &plain)).await,
        [usage.clone(), text("Hi"), done()]
    );

    let mislabelled = Reply::raw(format!("\n {plain}"));
    assert_eq!(ask(mislabelled).await, [usage.clone(), text("Hi"), done()]);

    let raw = |body: &str| Reply::raw(body.to_owned());
    let a = r#"data: {"choices":[{"delta":{"content":"a"}}]}"#;
    let end = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    let late = r#"data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let table = [
        (format!("{a}\r\n\r\n{end}\r\n\r\ndata: [DONE]\r\n\r\n"), vec![text("a"), done()]),
        (format!(": hello\n\n{a}\n\n: still here\n\n{end}\n\n"), vec![text("a"), done()]),
        (format!("{a}\n\n{end}\n\n{late}\n\ndata: [DONE]\n\n"), vec![text("a"), usage, done()]),
        (format!("{a}\n\ndata: [DONE]\n\n{a}\n\n"), vec![text("a"), done()]),
        (format!("event: message\nid: 7\n{a}\n\n{end}"), vec![text("a"), done()]),
        ("data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n".to_owned(), vec![text("a"), done()]),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}]}\n\ndata: [DONE]\n\n".to_owned(),
            vec![text("a"), done()],
        ),
        (format!("{a}\n\ndata: {{\"choices\":[{{\"delta\":null,\"finish_reason\":\"length\"}}]}}\n\n"), vec![text("a"), Ok(ReplyDelta::Finish(FinishReason::Length))]),
        ("data: {\"choices\":[{\"delta\":{\"content\":null}}]}\n\ndata: {}\n\ndata: [DONE]\n\n".to_owned(), vec![done()]),
    ];
    for (body, expected) in table {
        assert_eq!(ask(raw(&body)).await, expected, "{body}");
    }
}

#[tokio::test]
async fn calls_without_an_index() {
    let call = |id: Option<&str>, name: Option<&str>, arguments: &str| json!({"choices": [{"delta": {"tool_calls": [{"id": id, "function": {"name": name, "arguments": arguments}}]}}]});
    let deltas = ask(Reply::events([
        call(Some("a"), Some("one"), "{"),
        call(None, None, "}"),
        call(Some("b"), Some("two"), "{}"),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ]))
    .await;
    let indices: Vec<_> = deltas
        .into_iter()
        .filter_map(|delta| match delta {
            Ok(ReplyDelta::ToolCall(CallFragment {
                index, arguments, ..
            })) => Some((index, arguments)),
            _ => None,
        })
        .collect();
    assert_eq!(
        indices,
        [
            (0, "{".to_owned()),
            (0, "}".to_owned()),
            (1, "{}".to_owned())
        ]
    );
}

#[tokio::test]
async fn failures_are_told_apart() {
    let said = |status: u16, text: &str| Reply::json(status, &json!({"error": {"message": text}}));
    assert!(matches!(
        error(said(401, "bad key")).await,
        ModelError::KeyRejected { status: 401, .. }
    ));
    assert!(matches!(
        error(said(400, "no such field")).await,
        ModelError::Refused { status: 400, .. }
    ));
    assert!(matches!(
        error(said(
            400,
            "This model's maximum context length is 8192 tokens"
        ))
        .await,
        ModelError::ContextTooLong { .. }
    ));
    assert!(matches!(
        error(said(503, "later")).await,
        ModelError::Busy { status: 503, .. }
    ));
    assert!(matches!(
        error(said(302, "elsewhere").header("location", "http://127.0.0.1:9/")).await,
        ModelError::Refused { status: 302, .. }
    ));
    let limited = error(said(429, "slow down").header("retry-after", "17")).await;
    assert_eq!(limited.retry_after(), Some(Duration::from_secs(17)));
    let page = Reply::json(502, &json!("<html>".repeat(10_000)));
    assert!(error(page).await.to_string().len() < 1000);
}

#[tokio::test]
async fn an_error_within_a_good_answer() {
    let events = Reply::events([
        json!({"choices": [{"delta": {"content": "a"}}]}),
        json!({"error": {"message": "upstream fell over", "code": 502}}),
    ]);
    let deltas = ask(events).await;
    assert_eq!(deltas[0], text("a"));
    assert!(
        matches!(&deltas[1], Err(ModelError::Busy { status: 502, detail, .. }) if detail == "upstream fell over")
    );
    let whole = Reply::json(200, &json!({"error": "no credits"}));
    assert!(matches!(error(whole).await, ModelError::Busy { .. }));
}

#[tokio::test]
async fn answers_that_break_off() {
    let a = json!({"choices": [{"delta": {"content": "a"}}]});
    for reply in [
        Reply::events([a.clone()]),
        Reply::events([a]).then(Piece::Cut),
    ] {
        let deltas = ask(reply).await;
        assert_eq!(deltas[0], text("a"));
        assert!(
            matches!(deltas[1], Err(ModelError::Cut { .. })),
            "{deltas:?}"
        );
    }
}

#[tokio::test]
async fn answers_that_cannot_be_read() {
    for reply in [
        Reply::raw("data: {broken\n\n"),
        Reply::raw("<html>welcome to our proxy</html>"),
        Reply::raw(""),
        Reply::json(200, &json!({"hello": 1})),
        Reply::json(200, &json!([])),
    ] {
        assert!(matches!(error(reply).await, ModelError::Unreadable { .. }));
    }
}

#[tokio::test]
async fn sizes_are_bounded_both_ways() {
    let endless = Reply::raw("data: ".to_owned() + &"x".repeat(100_000));
    let deltas = ask_with(endless, |settings| settings.max_response_bytes = 10_000).await;
    assert!(
        matches!(
            deltas[..],
            [Err(ModelError::TooLarge { limit: 10_000, .. })]
        ),
        "{deltas:?}"
    );
    let deltas = ask_with(Reply::streams(&["a"]), |settings| {
        settings.max_request_bytes = 10;
    })
    .await;
    assert!(
        matches!(deltas[..], [Err(ModelError::AskTooLarge { limit: 10, .. })]),
        "{deltas:?}"
    );
}

#[tokio::test]
async fn silence_has_an_end() {
    let stalled =
        Reply::events([json!({"choices": [{"delta": {"content": "a"}}]})]).then(Piece::Stall);
    let deltas = ask_with(stalled, |settings| {
        settings.silence = Duration::from_millis(50);
    })
    .await;
    assert_eq!(deltas[0], text("a"));
    assert!(
        matches!(deltas[1], Err(ModelError::Silent { .. })),
        "{deltas:?}"
    );
}

/// Without a bound it would end when the server has nothing left, as a cut.
#[tokio::test]
async fn an_answer_that_is_only_kept_alive_has_an_end() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let begun = Reply::events([json!({"choices": [{"delta": {"content": "a"}}]})]);
    let kept_alive = (0..100).fold(begun, |reply, _| {
        let alive = Piece::Bytes(": still here\n\ndata: {\"usage\":{}}\n\n".into());
        reply.then(Piece::Gate(Arc::clone(&gate))).then(alive)
    });
    let asked = ask_with(kept_alive.then(Piece::Cut), |settings| {
        settings.silence = Duration::from_millis(200);
    });
    let ticking = async {
        loop {
            gate.notify_one();
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    };
    let deltas = tokio::select! {
        deltas = asked => deltas,
        () = ticking => unreachable!("it ticks for ever"),
    };
    assert!(
        matches!(deltas.last(), Some(Err(ModelError::Silent { .. }))),
        "{deltas:?}"
    );
}

#[tokio::test]
async fn stopping_in_the_middle_of_a_stream() {
    let stalled =
        Reply::events([json!({"choices": [{"delta": {"content": "a"}}]})]).then(Piece::Stall);
    let server = ScriptedServer::start([stalled]).await.expect("loopback");
    let model = ModelEndpoint::new(settings(&server), SystemClock::shared()).expect("settings");
    let messages = [Message::user("hi")];
    let ask = ModelRequest {
        messages: &messages,
        tools: &[],
    };
    let stop = CancellationToken::new();
    let mut deltas = model.complete(ask, stop.clone());
    assert_eq!(deltas.next().await, Some(text("a")));
    stop.cancel();
    assert_eq!(deltas.next().await, Some(Err(ModelError::Stopped)));
    assert_eq!(deltas.next().await, None);
}

#[tokio::test]
async fn nobody_there() {
    let server = ScriptedServer::start([]).await.expect("loopback");
    let settings = settings(&server);
    drop(server);
    let closed = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .expect("loopback");
    let address = closed.local_addr().expect("bound");
    drop(closed);
    let model = ModelEndpoint::new(
        EndpointSettings {
            base_url: format!("http://{address}/v1"),
            ..settings
        },
        SystemClock::shared(),
    )
    .expect("settings");
    let messages = [Message::user("hi")];
    let ask = ModelRequest {
        messages: &messages,
        tools: &[],
    };
    let deltas: Vec<_> = model
        .complete(ask, CancellationToken::new())
        .collect()
        .await;
    assert!(
        matches!(&deltas[..], [Err(ModelError::Unreachable { what, .. })] if what.contains("no connection")),
        "{deltas:?}"
    );
}

#[tokio::test]
async fn the_key_is_in_no_error_and_no_debug_text() {
    let echo = Reply::json(
        401,
        &json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}}),
    );
    let shown = format!("{:?}", error(echo).await);
    assert!(
        !shown.contains(KEY) && shown.contains("[redacted]"),
        "{shown}"
    );
    let within =
        Reply::events([json!({"error": {"message": format!("bad key {KEY}"), "code": 401}})]);
    assert!(!format!("{:?}", error(within).await).contains(KEY));
    let settings = EndpointSettings::new("http://127.0.0.1:1/v1", Some(Secret::new(KEY)), "m");
    let model = ModelEndpoint::new(settings.clone(), SystemClock::shared()).expect("settings");
    assert!(!format!("{model:?} {settings:?}").contains(KEY));
}

#[test]
fn addresses_that_are_none() {
    for url in [
        "",
        "localhost:1",
        "ftp://h/v1",
        "https://user:pw@h/v1",
        "http://",
    ] {
        let error =
            ModelEndpoint::new(EndpointSettings::new(url, None, "m"), SystemClock::shared())
                .expect_err(url);
        assert!(!error.to_string().contains("pw"), "{error}");
    }
    let newline = EndpointSettings::new("http://127.0.0.1:1", Some(Secret::new("a\nb")), "m");
    assert!(ModelEndpoint::new(newline, SystemClock::shared()).is_err());
}

#[tokio::test]
async fn what_a_model_made_up_does_not_spoil_the_next_request() {
    let call = |name: &str, arguments: &str| {
        json!({"choices": [
            {"delta": {"tool_calls": [{"index": 0, "id": "x".repeat(500), "function": {"name": name, "arguments": arguments}}]}, "finish_reason": "tool_calls"}
        ]})
    };
    let server = ScriptedServer::start([
        Reply::events([call("rm -rf /", "{broken")]),
        Reply::events([call("", "[]")]),
        Reply::streams(&["ok"]),
    ])
    .await
    .expect("loopback");
    let model: Arc<dyn LanguageModel> =
        Arc::new(ModelEndpoint::new(settings(&server), SystemClock::shared()).expect("settings"));
    Lab::new([])
        .take_turn_with(model, TurnInput::Says("go"))
        .await
        .expect("an answer");
    let sent = &server.received()[2].body["messages"];
    assert_eq!(
        sent[2]["tool_calls"][0]["function"],
        json!({"name": "rm-rf", "arguments": "{}"})
    );
    assert_eq!(
        sent[4]["tool_calls"][0]["function"],
        json!({"name": "unknown", "arguments": "{}"})
    );
    assert_ne!(
        sent[2]["tool_calls"][0]["id"],
        sent[4]["tool_calls"][0]["id"]
    );
}

#[tokio::test]
async fn without_a_model_the_answer_says_what_to_do() {
    let answer = Lab::new([])
        .take_turn_with(Arc::new(NoModel), TurnInput::Says("hi"))
        .await
        .expect("an answer");
    for word in ["config.yaml", "base_url", "/sh", "/py"] {
        assert!(answer.text.contains(word), "{}", answer.text);
    }
}
