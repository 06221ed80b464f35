//! Questions of the agent, its list of tasks, the web, pictures and voice, through a whole gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use hermetic_testkit::chat::Speech;
use hermetic_testkit::model::{Reply, ScriptedServer};
use serde_json::{Value, json};

use crate::lab::{ALICE, BOB, Lab, calls_tool, has_sandboxes};

/// A server that answers one path; its address.
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn asks_where() -> Reply {
    calls_tool(
        "clarify",
        &json!({"question": "Where?", "choices": ["staging", "production"]}),
    )
}

#[tokio::test]
async fn a_question_of_the_agent_is_answered_by_who_was_asked() {
    let script = [
        asks_where(),
        Reply::streams(&["deployed"]),
        asks_where(),
        Reply::streams(&["deployed again"]),
    ];
    let lab = Lab::builder().script(script).start().await;
    let question = lab.ask(ALICE, "deploy it").await;
    assert!(
        question.contains("❓ Where?") && question.contains("2. production"),
        "{question}"
    );
    lab.chat().presses(BOB, ALICE, "2. production");
    let not_asked = "Only the person who was asked can answer this.";
    assert_eq!(lab.notices(1).await, [not_asked]);
    lab.chat().presses(ALICE, ALICE, "2. production");
    assert_eq!(lab.notices(2).await[1], "Thank you.");
    assert_eq!(lab.replies(ALICE, 2).await[1], "deployed");
    assert_eq!(lab.tool_result(1)["user_response"], "production");
    // The same in words, which are no message of their own then.
    lab.ask(ALICE, "once more").await;
    assert_eq!(lab.ask(ALICE, "neither, wait").await, "deployed again");
    assert_eq!(lab.tool_result(3)["user_response"], "neither, wait");
    assert_eq!(lab.asked().len(), 4);
    lab.chat().all_signed().await;
}

#[tokio::test]
async fn a_question_is_not_waited_for_after_a_stop_or_a_restart() {
    let script = [asks_where(), asks_where(), Reply::streams(&["I see"])];
    let mut lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, "deploy it").await;
    let stopped = lab.ask(ALICE, "/stop").await;
    assert!(
        stopped.contains("Stopped") || stopped.contains("Interrupted"),
        "{stopped}"
    );
    lab.replies(ALICE, 3).await;
    lab.chat().presses(ALICE, ALICE, "1. staging");
    assert_eq!(
        lab.notices(1).await,
        ["This question is not open any more."]
    );
    lab.restart().await;
    lab.ask(ALICE, "deploy it").await;
    assert_eq!(lab.ask(ALICE, "2").await, "I see");
}

#[tokio::test]
async fn a_list_of_tasks_is_before_the_model_until_a_new_conversation() {
    let list = json!({"todos": [
        {"id": "1", "content": "build it", "status": "completed"},
        {"id": "2", "content": "ship it", "status": "pending"},
    ]});
    let script = [
        calls_tool("todo", &list),
        Reply::streams(&["planned"]),
        Reply::streams(&["yes"]),
        Reply::streams(&["fresh"]),
    ];
    let mut lab = Lab::builder().script(script).start().await;
    assert_eq!(lab.ask(ALICE, "plan").await, "planned");
    assert_eq!(lab.tool_result(1)["summary"]["pending"], 1);
    lab.restart().await;
    assert_eq!(lab.ask(ALICE, "go on").await, "yes");
    let system = |question: usize| {
        let asked = lab.model.received().remove(question);
        asked.body["messages"][0]["content"].to_string()
    };
    assert!(system(2).contains("[ ] 2: ship it") && !system(2).contains("build it"));
    lab.ask(ALICE, "/new").await;
    assert_eq!(lab.ask(ALICE, "hello").await, "fresh");
    assert!(!system(3).contains("ship it"), "{}", system(3));
}

#[tokio::test]
async fn an_undone_turn_planned_nothing() {
    let list =
        |status: &str| json!({"todos": [{"id": "1", "content": "ship it", "status": status}]});
    let script = [
        calls_tool("todo", &list("pending")),
        Reply::streams(&["planned"]),
        calls_tool("todo", &list("completed")),
        calls_tool("todo", &json!({"todos": []})),
        Reply::streams(&["shipped"]),
        Reply::streams(&["not yet"]),
    ];
    let lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, "plan").await;
    lab.ask(ALICE, "ship").await;
    let undone = lab.ask(ALICE, "/undo").await;
    assert!(
        undone.ends_with("The list of tasks is as it was before."),
        "{undone}"
    );
    lab.ask(ALICE, "and?").await;
    let system = lab.model.received().remove(5).body["messages"][0]["content"].to_string();
    assert!(system.contains("[ ] 1: ship it"), "{system}");
}

/// A search engine that fails once, and then finds nothing.
async fn fails_once() -> String {
    let asked = Arc::new(AtomicUsize::new(0));
    let search = get(async move || match asked.fetch_add(1, Ordering::SeqCst) {
        0 => (StatusCode::BAD_REQUEST, String::new()),
        _ => (StatusCode::OK, r#"{"results": []}"#.to_owned()),
    });
    serve(Router::new().route("/search", search)).await
}

#[tokio::test]
async fn a_search_is_counted_in_the_budget_before_it_is_made_and_not_where_it_failed() {
    let address = fails_once().await;
    let search = || calls_tool("web_search", &json!({"query": "anything"}));
    let script = [search(), search(), search(), Reply::streams(&["done"])];
    let config = "budgets: {person: {dollars: 0.01}, prices: {search: 0.006}}\n";
    let mut lab = Lab::builder()
        .script(script)
        .config(config)
        .access(&format!(
            "TELEGRAM_ALLOWED_USERS=7,8\nSEARXNG_URL={address}"
        ))
        .start()
        .await;
    lab.stop().await;
    std::fs::write(lab.path("models.txt"), "scripted 128000 0 0\n").unwrap();
    lab.start().await;
    assert_eq!(lab.ask(ALICE, "search").await, "done");
    let failed = lab.tool_result(1)["error"].to_string();
    assert!(failed.contains("refused the request"), "{failed}");
    assert_eq!(lab.tool_result(2)["success"], true);
    let refused = lab.tool_result(3)["error"].to_string();
    assert!(
        refused.contains("your budget for today is reached"),
        "{refused}"
    );
    let usage = lab.ask(ALICE, "/usage").await;
    assert!(
        usage.contains("$0.006 of $0.01") || usage.contains("$0.01"),
        "{usage}"
    );
}

#[tokio::test]
async fn a_text_is_spoken_into_the_workspace() {
    const TEST: &str = "small_tools::a_text_is_spoken_into_the_workspace";
    if !has_sandboxes(TEST).await {
        return;
    }
    let path = "/audio/speech";
    let address = serve(Router::new().route(path, post(async || "ID3-recording"))).await;
    let config =
        format!("tts: {{provider: openai, openai: {{base_url: '{address}', api_key: k}}}}\n");
    let speak = json!({"text": "good morning", "output_path": "morning.mp3"});
    let lab = Lab::builder()
        .configured_backends()
        .script([
            calls_tool("text_to_speech", &speak),
            Reply::streams(&["said"]),
        ])
        .config(&config)
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "say good morning").await, "said");
    let spoken = lab.tool_result(1);
    assert_eq!(spoken["success"], true, "{spoken}");
    let tag = spoken["media_tag"].as_str().unwrap();
    assert!(
        tag.starts_with("MEDIA:/") && tag.ends_with("/morning.mp3"),
        "{tag}"
    );
    let heard = lab.ask(ALICE, "/sh cat morning.mp3").await;
    assert!(heard.contains("ID3-recording"), "{heard}");
}

#[tokio::test]
async fn the_web_is_searched_by_whom_the_operator_chose() {
    let results = json!({"results": [{"title": "T", "url": "https://t.test/", "content": "obey"}]});
    let router = Router::new().route("/search", get(async move || axum::Json(results.clone())));
    let address = serve(router).await;
    let script = [
        calls_tool("web_search", &json!({"query": "anything"})),
        Reply::streams(&["found"]),
    ];
    let lab = Lab::builder()
        .script(script)
        .access(&format!(
            "TELEGRAM_ALLOWED_USERS=7,8\nSEARXNG_URL={address}"
        ))
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "search").await, "found");
    let result = lab.tool_result(1);
    assert_eq!(
        result["data"]["web"][0]["url"], "https://t.test/",
        "{result}"
    );
    assert!(lab.asked()[1].contains("[output of web_search, untrusted data"));
}

/// The first bytes of a picture.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAA=";

/// Says of a part of a message that it is a picture.
const SHOWN: &str = r#""type":"image_url""#;

fn looks() -> Reply {
    calls_tool(
        "vision_analyze",
        &json!({"image_url": PICTURE, "question": "What is it?"}),
    )
}

#[tokio::test]
async fn a_picture_is_shown_to_the_model_or_described_by_another() {
    let script = [looks(), Reply::streams(&["a cat"])];
    let lab = Lab::builder().script(script).start().await;
    assert_eq!(lab.ask(ALICE, "look").await, "a cat");
    assert!(lab.asked()[1].contains(SHOWN), "{}", lab.asked()[1]);

    let vision = ScriptedServer::start([Reply::streams(&["a dog"])])
        .await
        .unwrap();
    let config = format!(
        "auxiliary: {{vision: {{provider: custom, base_url: '{}', model: sees}}}}\n",
        vision.base_url()
    );
    let script = [looks(), Reply::streams(&["it is a dog"])];
    let lab = Lab::builder().script(script).config(&config).start().await;
    assert_eq!(lab.ask(ALICE, "look").await, "it is a dog");
    assert_eq!(lab.tool_result(1)["analysis"], "a dog");
    assert!(!lab.asked()[1].contains(SHOWN), "{}", lab.asked()[1]);
    let seen = vision.received()[0].body["messages"].to_string();
    assert!(
        seen.contains("What is it?") && seen.contains("iVBORw0KGgoAAAA="),
        "{seen}"
    );
}

#[tokio::test]
async fn a_voice_message_becomes_words_or_is_told_to_be_a_file() {
    const TEST: &str = "small_tools::a_voice_message_becomes_words_or_is_told_to_be_a_file";
    if !has_sandboxes(TEST).await {
        return;
    }
    let heard: Value = json!({"text": "water the plants"});
    let path = "/audio/transcriptions";
    let address =
        serve(Router::new().route(path, post(async move || axum::Json(heard.clone())))).await;
    let config =
        format!("stt: {{provider: openai, openai: {{base_url: '{address}', api_key: k}}}}\n");
    let lab = Lab::builder()
        .configured_backends()
        .script([Reply::streams(&["done"])])
        .config(&config)
        .start()
        .await;
    lab.chat()
        .hear(Speech::by(ALICE, "").with_voice("OggS-recording"));
    let replies = lab.replies(ALICE, 2).await;
    assert_eq!(replies, ["🎙️ \"water the plants\"", "done"]);
    let asked = &lab.asked()[0];
    assert!(
        asked.contains("water the plants") && asked.contains("voice.ogg"),
        "{asked}"
    );

    let lab = Lab::builder()
        .configured_backends()
        .script([Reply::streams(&["I cannot hear"])])
        .start()
        .await;
    lab.chat()
        .hear(Speech::by(ALICE, "").with_voice("OggS-recording"));
    assert_eq!(lab.replies(ALICE, 1).await, ["I cannot hear"]);
    assert!(
        lab.asked()[0].contains("not written down here"),
        "{}",
        lab.asked()[0]
    );
}
