//! `hermetic models`.

use hermetic_testkit::model::{Reply, ScriptedServer};
use serde_json::json;

use crate::hermetic::Hermetic;

const CONFIG: &str = "\
model: {default: claude-opus-4-6, provider: anthropic}
fallback_model: {provider: gemini, model: gemini-2.5-flash}
";

#[test]
fn models_are_listed_without_their_keys() {
    let hermetic = Hermetic::with(CONFIG).file(".env", "ANTHROPIC_API_KEY=sk-ant-not-to-be-seen\n");
    let listed = hermetic.run(&["models"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    insta::assert_snapshot!(listed.out, @r"
    answers              claude-opus-4-6  (anthropic, anthropic_messages)
                         https://api.anthropic.com, a key
                         sees 200000 tokens; $5 in and $25 out for a million
    fallback 1           gemini-2.5-flash  (gemini, gemini)
                         https://generativelanguage.googleapis.com/v1beta, no key
                         sees 1048576 tokens; $0.3 in and $2.5 out for a million
    ");
    let json = hermetic.run(&["models", "--json"]);
    assert!(!json.out.contains("not-to-be-seen"), "{}", json.out);
    let rows = json.json();
    assert_eq!(rows[0]["dialect"], "anthropic_messages");
    assert_eq!(rows[0]["key"], true);
    assert_eq!(rows[1]["key"], false);
}

#[test]
fn a_password_in_an_address_is_not_shown() {
    let config = "model: {default: m, base_url: 'https://ada:hunter22@h/v1'}\n";
    let listed = Hermetic::with(config).run(&["models"]);
    assert!(!listed.out.contains("hunter22"), "{}", listed.out);
    assert!(listed.out.contains("https://…@h/v1"), "{}", listed.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_asks_each_model_and_says_what_came_back() {
    let says = json!({
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 2},
    });
    let good = ScriptedServer::start([Reply::json(200, &says)])
        .await
        .unwrap();
    let refused = json!({"error": {"message": "bad key sk-secret-of-the-second"}});
    let bad = ScriptedServer::start([Reply::json(401, &refused)])
        .await
        .unwrap();
    let config = format!(
        "model: {{default: claude-haiku-4-5, provider: anthropic, base_url: '{}'}}\n\
         fallback_model: {{model: m, base_url: '{}', api_key: sk-secret-of-the-second, api_mode: responses}}\n",
        good.base_url(),
        bad.base_url()
    );
    let hermetic = Hermetic::with(&config).file(".env", "ANTHROPIC_API_KEY=some-key\n");
    let checked =
        tokio::task::spawn_blocking(move || hermetic.run(&["models", "--check", "--json"]))
            .await
            .unwrap();
    assert_eq!(checked.code, 1, "{}", checked.out);
    assert!(!checked.out.contains("sk-secret"), "{}", checked.out);
    let rows = checked.json();
    assert_eq!(rows[0]["check"]["ok"], true);
    assert_eq!(rows[0]["check"]["said"], "ok");
    assert_eq!(rows[0]["check"]["usage"]["cost"], 20_000);
    assert_eq!(rows[1]["check"]["ok"], false);
    let said = rows[1]["check"]["said"].as_str().unwrap();
    assert!(said.contains("did not accept the key"), "{said}");
}
