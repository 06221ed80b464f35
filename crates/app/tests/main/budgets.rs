//! What a day may cost.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use hermetic_testkit::model::Reply;
use serde_json::json;

use crate::lab::{ALICE, BOB, Lab, calls_terminal, calls_tool};

/// An answer that takes 24,500 tokens.
fn dear() -> Reply {
    Reply::events([json!({
        "choices": [{"delta": {"content": "dear"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 24_000, "completion_tokens": 500},
    })])
}

async fn lab(script: impl IntoIterator<Item = Reply>, budgets: &str) -> Lab {
    let config = format!("approvals: {{approvers: ['telegram:{ALICE}']}}\nbudgets: {budgets}\n");
    Lab::builder().script(script).config(&config).start().await
}

#[tokio::test]
async fn a_budget_is_kept_over_a_restart_lifted_once_and_new_the_next_day() {
    let mut lab = lab([dear(), dear(), dear()], "{person: {tokens: 25000}}").await;
    assert_eq!(lab.ask(BOB, "one").await, "dear");
    let lift = format!("/lift person telegram:{BOB}");
    let refused = lab.ask(BOB, "two").await;
    assert!(
        refused.contains("your budget for today is reached (24500 of 25000 tokens)"),
        "{refused}"
    );
    assert!(refused.contains(&lift), "{refused}");
    lab.restart().await;
    let refused = lab.ask(BOB, "three").await;
    assert!(refused.contains("is reached"), "{refused}");
    let own = lab.ask(BOB, &lift).await;
    assert_eq!(own, "Only somebody who may approve can lift a budget.");
    let lifted = lab.ask(ALICE, &lift).await;
    assert_eq!(lifted, "Lifted: for today it is twice what it was.");
    let again = lab.ask(ALICE, &lift).await;
    assert!(again.contains("lifted today already"), "{again}");
    let record = lab.audit("rule");
    assert!(
        record.contains(&format!("budget of person telegram:{BOB}")),
        "{record}"
    );
    assert_eq!(lab.ask(BOB, "four").await, "dear");
    let refused = lab.ask(BOB, "five").await;
    assert!(refused.contains("49000 of 50000"), "{refused}");
    assert_eq!(
        lab.asked().len(),
        2,
        "what is refused never reaches the model"
    );
    lab.pass(Duration::from_secs(25 * 3600)).await;
    let next_day = lab.ask(BOB, "six").await;
    assert!(next_day.ends_with("dear"), "{next_day}");
}

#[tokio::test]
async fn usage_tells_what_today_took() {
    let lab = lab(
        [calls_terminal("true"), dear()],
        "{conversation: {tokens: 90000}}",
    )
    .await;
    lab.ask(BOB, "one").await;
    let usage = lab.ask(BOB, "/usage").await;
    let lines: Vec<_> = usage.lines().collect();
    assert!(lines[1].starts_with("you, today: 2 requests, "), "{usage}");
    assert!(lines[2].contains(" of 90000 tokens, $0.00"), "{usage}");
    assert!(!usage.contains("everybody"), "{usage}");
    let all = lab.ask(ALICE, "/usage").await;
    assert!(all.contains("everybody, today: 2 requests"), "{all}");
    let model = lab.ask(BOB, "/model").await;
    assert!(model.contains("\nanswers: "), "{model}");
}

#[tokio::test]
async fn tools_stop_when_their_time_is_over_also_those_that_people_type() {
    let script = [calls_terminal("true"), Reply::streams(&["ok"])];
    let lab = lab(script, "{all: {tool_seconds: 0}}").await;
    let typed = lab.ask(BOB, "/sh true").await;
    assert!(typed.contains("of 0 seconds of tools"), "{typed}");
    assert_eq!(
        lab.ask(BOB, "one").await,
        "ok",
        "talk costs no time of tools"
    );
    let told = &lab.asked()[1];
    assert!(told.contains("not run: I stop here"), "{told}");
}

#[tokio::test]
async fn the_time_of_a_tool_is_counted_where_no_request_followed_it() {
    let lab = Lab::builder()
        .script([calls_terminal("sleep 1.1")])
        .config("agent: {max_turns: 1}\n")
        .start()
        .await;
    let ended = lab.ask(BOB, "one").await;
    assert!(ended.contains("I stopped after 1 steps"), "{ended}");
    let usage = lab.ask(BOB, "/usage").await;
    assert!(usage.contains("seconds of tools"), "{usage}");
    assert!(!usage.contains(" 0 seconds of tools"), "{usage}");
}

/// The model reads a page of this machine and answers.
fn reads(port: u16) -> [Reply; 2] {
    let url = format!("http://localhost:{port}/?pad={}", "x".repeat(300));
    let call = calls_tool("web_extract", &json!({"urls": [url]}));
    [call, Reply::streams(&["read"])]
}

#[tokio::test]
async fn what_leaves_on_a_day_is_bounded_over_a_restart_and_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/", get(async || "a page"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    // Enough for one request, and not for two.
    let config = format!(
        "gateway: {{egress: {{allow: ['localhost:{port} in 127.0.0.0/8']}}}}\n\
         budgets: {{person: {{bytes_out: 800}}}}\n"
    );
    let script = [
        reads(port),
        reads(port),
        reads(port),
        reads(port),
        reads(port),
    ];
    let lab = Lab::builder().script(script.into_iter().flatten());
    let config = format!("{config}approvals: {{approvers: ['telegram:{ALICE}']}}\n");
    let mut lab = lab.config(&config).start().await;
    let spent = "the budget of 800 bytes that may leave for one person on one day is used up";
    assert_eq!(lab.ask(BOB, "read").await, "read");
    let page = lab.tool_result(1)["results"][0].clone();
    assert_eq!(page["content"], "a page", "{page}");
    lab.ask(BOB, "again").await;
    let refused = lab.tool_result(3).to_string();
    assert!(refused.contains(spent), "{refused}");
    lab.restart().await;
    lab.ask(BOB, "and now").await;
    let refused = lab.tool_result(5).to_string();
    assert!(refused.contains(spent), "{refused}");
    lab.ask(ALICE, "mine").await;
    let page = lab.tool_result(7)["results"][0].clone();
    assert_eq!(
        page["content"], "a page",
        "somebody else has their own: {page}"
    );
    // Who was refused finds the command, and whoever may approve writes it.
    let command = format!("/lift person telegram:{BOB}");
    let usage = lab.ask(BOB, "/usage").await;
    assert!(
        usage.contains(" of 800 bytes left") && usage.contains(&command),
        "{usage}"
    );
    let lifted = lab.ask(ALICE, &command).await;
    assert!(lifted.contains("twice"), "{lifted}");
    lab.ask(BOB, "at last").await;
    let page = lab.tool_result(9)["results"][0].clone();
    assert_eq!(page["content"], "a page", "{page}");
}

#[tokio::test]
async fn a_fresh_subagent_sends_from_the_bytes_of_its_conversation() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/", get(async || "a page"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    // Enough for one request, and not for two.
    let config = format!(
        "gateway: {{egress: {{allow: ['localhost:{port} in 127.0.0.0/8']}}}}\n\
         budgets: {{conversation: {{bytes_out: 800}}}}\n"
    );
    let handed_on = || {
        let fresh = json!({"goal": "read it", "sandbox": "fresh"});
        let [reads, says] = reads(port);
        let done = Reply::streams(&["done"]);
        [calls_tool("delegate_task", &fresh), reads, says, done]
    };
    let script = [handed_on(), handed_on()].into_iter().flatten();
    let lab = Lab::builder().script(script).config(&config).start().await;
    assert_eq!(lab.ask(BOB, "read").await, "done");
    let page = lab.tool_result(2)["results"][0].clone();
    assert_eq!(page["content"], "a page", "{page}");
    assert_eq!(lab.ask(BOB, "again").await, "done");
    let refused = lab.tool_result(6).to_string();
    let spent = "that may leave this conversation on one day is used up";
    assert!(
        refused.contains(spent),
        "another sandbox has no other bytes: {refused}"
    );
    let usage = lab.ask(BOB, "/usage").await;
    assert!(usage.contains(" of 800 bytes left"), "{usage}");
}
