//! A server over HTTP whose list of tools grows, and which shows pictures.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use hermetic_store::Store;
use hermetic_tools::{McpServerPlace, McpServerSettings, NoWayBack, ToolAnswer, ToolKit};
use hermetic_types::{BackendDescription, BackendKind, SystemClock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::conformance::Place;
use super::{Person, inside};
use crate::room::{Wishes, kit};

/// How many tools there are.
type Tools = Arc<AtomicUsize>;

async fn answer(State(tools): State<Tools>, Json(asked): Json<Value>) -> Response {
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}),
        "tools/list" => {
            let named = |number| json!({"name": format!("tool{number}"), "inputSchema": {"type": "object"}});
            let tools = 0..tools.load(Ordering::SeqCst);
            json!({"tools": tools.map(named).collect::<Vec<_>>()})
        }
        "tools/call" => json!({"content": [
            {"type": "text", "text": "a dot"},
            // "GIF89a"
            {"type": "image", "mimeType": "image/gif", "data": "R0lGODlh"},
        ]}),
        _ => return axum::http::StatusCode::ACCEPTED.into_response(),
    };
    Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).into_response()
}

struct Visit {
    tools: Tools,
    kit: ToolKit,
    url: String,
    _folder: tempfile::TempDir,
}

impl Visit {
    async fn new() -> Self {
        let tools = Tools::new(AtomicUsize::new(1));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&tools));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let url = format!("http://localhost:{port}/mcp");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let store = Store::open(&path, SystemClock::shared());
        let store = store.await.unwrap();
        let server = McpServerSettings {
            place: McpServerPlace::Http {
                url: url.clone(),
                headers: Vec::new(),
                login: None,
            },
            ..inside("growing", &[])
        };
        let wishes = Wishes {
            mcp: vec![server],
            ..Wishes::default()
        };
        let kit = kit(
            &wishes,
            folder.path(),
            Some(&store),
            BackendDescription::sealed(BackendKind::Native),
            Arc::new(NoWayBack),
        );
        Self {
            tools,
            kit,
            url,
            _folder: folder,
        }
    }

    async fn prepare(&self, place: &Place, person: &Person) -> Vec<String> {
        let stop = CancellationToken::new();
        self.kit.toolbox(place, person).prepare(&stop).await
    }

    async fn call(&self, place: &Place) -> ToolAnswer {
        let person = Person::default();
        let stop = CancellationToken::new();
        let toolbox = self.kit.toolbox(place, &person);
        let nothing = serde_json::Map::new();
        let called = toolbox.call("mcp_growing_tool0", &nothing, &stop);
        called.await.expect("a tool")
    }
}

const CHAT: &str = "agent:main:test:dm:1";

#[tokio::test]
async fn who_works_for_a_conversation_agrees_to_nothing_that_it_did_not() {
    let visit = Visit::new().await;
    let person = Person::default();
    let chat = Place::reaching(&visit.url);
    assert_eq!(visit.prepare(&chat, &person).await, [""; 0]);
    visit.tools.store(2, Ordering::SeqCst);
    // A fresh sandbox has a key that nobody has seen.
    let subagent = Place::reaching(&visit.url).named("agent:main:test:work:1", CHAT);
    let told = visit.prepare(&subagent, &person).await;
    assert!(told[0].contains("offers other tools"), "{told:?}");
    assert_eq!(person.asked().len(), 1);
    let stranger = "agent:main:test:dm:2";
    let stranger = Place::reaching(&visit.url).named(stranger, stranger);
    assert_eq!(visit.prepare(&stranger, &person).await, [""; 0]);
}

#[tokio::test]
async fn pictures_of_a_result_are_handed_on() {
    let visit = Visit::new().await;
    let chat = Place::reaching(&visit.url);
    assert_eq!(visit.prepare(&chat, &Person::default()).await, [""; 0]);
    let answered = visit.call(&chat).await;
    let kinds: Vec<_> = answered.media.iter().map(|it| it.media_type).collect();
    assert_eq!(kinds, ["image/gif"]);
    let told = answered.json.into_inner();
    assert_eq!(
        told["result"],
        "a dot\n[picture 1 of type image/gif, shown beside this]"
    );
}
