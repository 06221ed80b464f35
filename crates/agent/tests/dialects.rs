//! What every dialect keeps, whatever it is called on its wire.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hermetic_agent::endpoint::{ApiDialect, EndpointSettings, ModelEndpoint};
use hermetic_agent::{
    FinishReason, LanguageModel, Message, ModelError, ModelRequest, ModelRetries, NanoDollars,
    ReplyDelta, RetryingModel, TokenPrice, TokenUsage, TurnInput,
};
use hermetic_testkit::model::{Piece, Reply, ScriptedServer};
use hermetic_types::{Secret, SystemClock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::lab::Lab;

const KEY: &str = "key-for-the-test-4711";

fn settings(server: &ScriptedServer, dialect: ApiDialect) -> EndpointSettings {
    EndpointSettings::speaking(
        dialect,
        server.base_url(),
        Some(Secret::new(KEY)),
        "test-model",
    )
}

/// The first piece of an answer.
fn says(dialect: ApiDialect, text: &str) -> Value {
    match dialect {
        ApiDialect::ChatCompletions => json!({"choices": [{"delta": {"content": text}}]}),
        ApiDialect::Responses => json!({"type": "response.output_text.delta", "delta": text}),
        ApiDialect::AnthropicMessages => {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        }
        ApiDialect::Gemini => json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
    }
}

/// The last piece, with figures: 1,000 tokens read, 10 written.
fn ends(dialect: ApiDialect) -> Vec<Value> {
    match dialect {
        ApiDialect::ChatCompletions => vec![json!({
            "choices": [{"delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 10},
        })],
        ApiDialect::Responses => vec![json!({
            "type": "response.completed",
            "response": {"usage": {"input_tokens": 1000, "output_tokens": 10}},
        })],
        ApiDialect::AnthropicMessages => vec![
            json!({
                "type": "message_delta", "delta": {"stop_reason": "end_turn"},
                "usage": {"input_tokens": 1000, "output_tokens": 10},
            }),
            json!({"type": "message_stop"}),
        ],
        ApiDialect::Gemini => vec![json!({
            "candidates": [{"content": {"parts": []}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 1000, "candidatesTokenCount": 10},
        })],
    }
}

fn answers(dialect: ApiDialect, text: &str) -> Reply {
    Reply::events(std::iter::once(says(dialect, text)).chain(ends(dialect)))
}

async fn ask(
    reply: Reply,
    settings: impl Fn(&ScriptedServer) -> EndpointSettings,
) -> Vec<Result<ReplyDelta, ModelError>> {
    let server = ScriptedServer::start([reply]).await.expect("loopback");
    let model = ModelEndpoint::new(settings(&server), SystemClock::shared()).expect("settings");
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

async fn error(dialect: ApiDialect, reply: Reply) -> ModelError {
    let deltas = ask(reply, |server| settings(server, dialect)).await;
    let last = deltas.into_iter().last();
    last.expect("something").expect_err("an error")
}

#[tokio::test]
async fn each_goes_to_its_own_path_with_the_key_in_its_own_header() {
    let table = [
        (
            ApiDialect::ChatCompletions,
            "/v1/chat/completions",
            "authorization",
        ),
        (ApiDialect::Responses, "/v1/responses", "authorization"),
        (ApiDialect::AnthropicMessages, "/v1/messages", "x-api-key"),
        (
            ApiDialect::Gemini,
            "/v1/models/test-model:streamGenerateContent?alt=sse",
            "x-goog-api-key",
        ),
    ];
    for (dialect, path, header) in table {
        let server = ScriptedServer::start([answers(dialect, "ok")])
            .await
            .expect("loopback");
        let model = ModelEndpoint::new(settings(&server, dialect), SystemClock::shared())
            .expect("settings");
        let lab = Lab::new([]);
        let answer = lab
            .take_turn_with(Arc::new(model), TurnInput::Says("hi"))
            .await;
        assert_eq!(answer.expect("an answer").text, "ok", "{dialect:?}");
        let received = &server.received()[0];
        assert_eq!(received.path, path, "{dialect:?}");
        let value = received.headers[header].to_str().expect("text");
        assert_eq!(value.trim_start_matches("Bearer "), KEY, "{dialect:?}");
        let version = received.headers.get("anthropic-version");
        assert_eq!(version.is_some(), dialect == ApiDialect::AnthropicMessages);
    }
}

#[tokio::test]
async fn usage_has_a_price_where_the_provider_names_none() {
    let dollars = |amount| NanoDollars::from_dollars(amount).expect("an amount");
    let price = TokenPrice {
        input: dollars(2.0),
        output: dollars(10.0),
        cached_input: None,
        cache_write: None,
    };
    for dialect in ApiDialect::ALL {
        let priced = |server: &ScriptedServer| EndpointSettings {
            price: Some(price),
            ..settings(server, dialect)
        };
        let deltas = ask(answers(dialect, "ok"), priced).await;
        let usage = TokenUsage {
            input_tokens: 1000,
            output_tokens: 10,
            cost: Some(dollars(0.0021)),
            ..TokenUsage::default()
        };
        assert!(deltas.contains(&Ok(ReplyDelta::Usage(usage))), "{deltas:?}");
        assert_eq!(
            deltas.last(),
            Some(&Ok(ReplyDelta::Finish(FinishReason::Done)))
        );
    }
    let openrouter = json!({
        "choices": [{"delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 10, "cost": 0.5},
    });
    let priced = |server: &ScriptedServer| EndpointSettings {
        price: Some(price),
        ..settings(server, ApiDialect::ChatCompletions)
    };
    let deltas = ask(Reply::events([openrouter]), priced).await;
    let Ok(ReplyDelta::Usage(usage)) = deltas[0] else {
        panic!("{deltas:?}");
    };
    assert_eq!(usage.cost, Some(dollars(0.5)));
}

#[tokio::test]
async fn an_answer_that_stalls_or_breaks_off_is_an_error_in_every_dialect() {
    for dialect in ApiDialect::ALL {
        let begun = || Reply::events([says(dialect, "a")]);
        let impatient = |server: &ScriptedServer| EndpointSettings {
            silence: Duration::from_millis(50),
            ..settings(server, dialect)
        };
        // On a busy machine the first word may be late too.
        let stalled = ask(begun().then(Piece::Stall), impatient).await;
        assert!(
            matches!(stalled.last(), Some(Err(ModelError::Silent { .. }))),
            "{stalled:?}"
        );
        for reply in [begun(), begun().then(Piece::Cut)] {
            let cut = error(dialect, reply).await;
            assert!(
                matches!(cut, ModelError::Cut { .. }),
                "{dialect:?}: {cut:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_and_a_key_that_is_repeated() {
    for dialect in ApiDialect::ALL {
        for body in [
            "data: {broken\n\n",
            "<html>welcome</html>",
            "",
            "{\"hello\":1}",
            "[]",
        ] {
            let error = error(dialect, Reply::raw(body)).await;
            assert!(
                matches!(error, ModelError::Unreadable { .. }),
                "{dialect:?} {body:?}: {error:?}"
            );
        }
        let said = json!({"error": {"message": format!("bad key {KEY}"), "code": 401}});
        for reply in [Reply::json(401, &said), Reply::events([said])] {
            let error = error(dialect, reply).await;
            assert!(
                matches!(error, ModelError::KeyRejected { .. })
                    && !format!("{error:?}").contains(KEY),
                "{dialect:?}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_fallback_may_speak_another_dialect_and_sees_no_thoughts_of_the_first() {
    let thinks = Reply::events([
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "echo", "input": {"text": "a"}}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ]);
    let overloaded = || {
        Reply::json(
            529,
            &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        )
    };
    let first = ScriptedServer::start([thinks, overloaded()])
        .await
        .expect("loopback");
    let second = ScriptedServer::start([answers(ApiDialect::Gemini, "from the second")])
        .await
        .expect("loopback");
    let model = |server: &ScriptedServer, dialect| -> Arc<dyn LanguageModel> {
        Arc::new(
            ModelEndpoint::new(settings(server, dialect), SystemClock::shared()).expect("settings"),
        )
    };
    let patience = ModelRetries {
        attempts: 1,
        ..ModelRetries::default()
    };
    let patient = RetryingModel::new(
        model(&first, ApiDialect::AnthropicMessages),
        [model(&second, ApiDialect::Gemini)],
        patience,
    );
    let lab = Lab::new([]);
    let answer = lab
        .take_turn_with(Arc::new(patient), TurnInput::Says("go"))
        .await
        .expect("an answer");
    assert_eq!(answer.text, "from the second");
    let again = first.received()[1].body.to_string();
    assert!(again.contains("c2lnbmVk"), "its own thoughts: {again}");
    let sent = second.received()[0].body.to_string();
    assert!(!sent.contains("c2lnbmVk"), "{sent}");
    assert!(sent.contains("functionResponse"), "{sent}");
}
