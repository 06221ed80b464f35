//! The whole flow between servers that others wrote: npm `telegram-test-api` for the chat and npm
//! `@copilotkit/aimock` for the model.

use std::time::{Duration, Instant};

use hermetic_testkit::npm::{Aimock, TelegramTestApi};
use hermetic_testkit::telegram::TOKEN;
use serde_json::{Value, json};

use super::lab::{ALICE, KEY, STRANGER};
use crate::hermetic::Hermetic;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread")]
async fn message_model_tool_sandbox_and_a_redacted_reply_with_servers_of_others() {
    let test = "message_model_tool_sandbox_and_a_redacted_reply_with_servers_of_others";
    let (model, chat) = match (Aimock::start(&fixtures()).await, Chat::start().await) {
        (Ok(model), Ok(chat)) => (model, chat),
        (Err(why), _) | (_, Err(why)) => return eprintln!("SKIP: {test}: {why}"),
    };
    let config = format!(
        "model: {{default: gpt-4o, base_url: '{}'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n",
        model.base_url(),
        chat.server.url()
    );
    let env = format!(
        "TELEGRAM_BOT_TOKEN={TOKEN}\nOPENAI_API_KEY={KEY}\nTELEGRAM_ALLOWED_USERS={ALICE}\n"
    );
    let hermetic = Hermetic::with(&config).file(".env", &env);
    if !hermetic.has_sandboxes(test) {
        return;
    }
    let (gateway, said) = hermetic.gateway(&[]);
    assert!(said.contains("ready"), "{said}");

    chat.says(STRANGER, "ask the machine").await;
    chat.says(ALICE, "ask the machine").await;
    let reply = chat.hears(ALICE, "The machine was asked").await;
    assert!(!reply.contains(KEY), "{reply}");
    // What the model had run, ran in this conversation's sandbox.
    chat.says(ALICE, "/sh cat asked").await;
    let reply = chat.hears(ALICE, "forty-two is 42").await;
    assert!(!reply.contains(KEY), "{reply}");
    assert_eq!(chat.sent_to(STRANGER).await, "");

    chat.says(ALICE, "/destroy").await;
    chat.hears(ALICE, "/destroy yes").await;
    chat.says(ALICE, "/destroy yes").await;
    chat.hears(ALICE, "The sandbox and its files are gone")
        .await;
    drop(gateway);
    assert_eq!(
        hermetic.run(&["sandbox", "list", "--json"]).json(),
        json!([])
    );
}

/// The model calls the terminal, and then tells a secret.
fn fixtures() -> Value {
    let command = json!({"command": "echo forty-two is $((6 * 7)) | tee asked"}).to_string();
    json!([
        {
            "match": {"userMessage": "ask the machine", "hasToolResult": false},
            "response": {"toolCalls": [{"name": "terminal", "arguments": command}]},
        },
        {
            "match": {"userMessage": "ask the machine", "hasToolResult": true},
            "response": {"content": format!("The machine was asked. By the way: {KEY}")},
        },
    ])
}

/// The chat as the people in it see it.
struct Chat {
    server: TelegramTestApi,
    client: reqwest::Client,
}

impl Chat {
    async fn start() -> Result<Self, String> {
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE);
        Ok(Self {
            server: TelegramTestApi::start().await?,
            client: client.build().map_err(|error| error.to_string())?,
        })
    }

    async fn says(&self, user: i64, text: &str) {
        let message = json!({
            "botToken": TOKEN,
            "from": {"id": user, "first_name": "Ann", "username": "ann"},
            "chat": {"id": user, "first_name": "Ann", "username": "ann", "type": "private"},
            "date": 1_700_000_000,
            "text": text,
        });
        self.post("sendMessage", &message).await;
    }

    /// What the bot wrote into this chat, once it has these words in it.
    async fn hears(&self, user: i64, words: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let all = self.sent_to(user).await;
            if all.contains(words) {
                return all;
            }
            assert!(Instant::now() < until, "{words:?} was not heard: {all}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// As it stands now: the server applies edits to what was sent.
    async fn sent_to(&self, user: i64) -> String {
        let history = self
            .post("getUpdatesHistory", &json!({"token": TOKEN}))
            .await;
        let said = history["result"].as_array().unwrap().iter();
        let texts = said
            .map(|update| &update["message"])
            // What a person says has a `chat`, what the bot sends has the `chat_id` it named.
            .filter(|message| message["chat_id"] == json!(user))
            .filter_map(|message| message["text"].as_str());
        texts.collect::<Vec<_>>().join("\n---\n")
    }

    async fn post(&self, method: &str, body: &Value) -> Value {
        let url = format!("{}/{method}", self.server.url());
        let answered = self.client.post(url).json(body).send().await.unwrap();
        assert!(answered.status().is_success(), "{}", answered.status());
        answered.json().await.unwrap()
    }
}
