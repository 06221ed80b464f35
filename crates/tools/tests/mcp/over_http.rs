//! Servers over HTTP, through a conversation's egress.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use futures::future::{BoxFuture, FutureExt};
use hermetic_egress::{
    Egress, EgressLimits, EgressRules, HostName, LogRecorder, Proxy, Resolver, RulesText,
};
use hermetic_tools::{McpServerPlace, McpServerSettings};
use hermetic_types::Secret;
use serde_json::{Value, json};

use super::{Person, error, inside, text};
use crate::room::{Lab, Wishes};

/// A server that answers as its tools are called, and remembers what it heard.
#[derive(Default)]
struct Origin {
    heard: Mutex<Vec<(HeaderMap, Value)>>,
    ended: AtomicUsize,
}

/// Every name is this machine.
#[derive(Debug)]
pub(super) struct Here;

impl Resolver for Here {
    fn resolve<'a>(&'a self, _: &'a HostName) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        futures::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])).boxed()
    }
}

async fn answer(
    State(origin): State<Arc<Origin>>,
    headers: HeaderMap,
    body: String,
) -> Response<Body> {
    let request: Value = serde_json::from_str(&body).unwrap();
    origin
        .heard
        .lock()
        .unwrap()
        .push((headers, request.clone()));
    let respond = |kind: &str, body: String| {
        let response = Response::builder().header("content-type", kind);
        let response = response.header("mcp-session-id", "session-7");
        response.body(Body::from(body)).unwrap()
    };
    let status = |status: StatusCode| {
        let response = Response::builder().status(status);
        let response = response.header("location", "http://elsewhere.test/mcp");
        response.body(Body::from("not like this")).unwrap()
    };
    let Some(id) = request
        .get("id")
        .filter(|_| request.get("method").is_some())
    else {
        return status(StatusCode::ACCEPTED);
    };
    let whole = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    match request["method"].as_str().unwrap() {
        "initialize" => respond(
            "application/json",
            whole(json!({"protocolVersion": "2025-06-18", "capabilities": {}})),
        ),
        "tools/list" => {
            let tools: Vec<_> = ["say", "events", "login", "moved", "gone", "html", "cut"]
                .iter()
                .map(|name| json!({"name": name}))
                .collect();
            respond("application/json", whole(json!({"tools": tools})))
        }
        _ => match request["params"]["name"].as_str().unwrap() {
            "say" => respond(
                "application/json; charset=utf-8",
                whole(json!({"content": [{"type": "text", "text": "said"}]})),
            ),
            "events" => {
                let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
                let done = whole(json!({"content": [{"type": "text", "text": "after a while"}]}));
                let events =
                    format!(": hello\r\n\r\nevent: message\ndata: {ping}\n\ndata: {done}\n\n");
                respond("text/event-stream", events)
            }
            "cut" => respond("text/event-stream", "data: {\"jsonrpc\":".to_owned()),
            "html" => respond("text/html", "<html>welcome</html>".to_owned()),
            "login" => status(StatusCode::UNAUTHORIZED),
            "moved" => status(StatusCode::TEMPORARY_REDIRECT),
            _ => status(StatusCode::NOT_FOUND),
        },
    }
}

async fn serve() -> (u16, Arc<Origin>) {
    let origin = Arc::new(Origin::default());
    let ended = Arc::clone(&origin);
    let end = move || {
        ended.ended.fetch_add(1, Ordering::Relaxed);
        futures::future::ready(StatusCode::OK)
    };
    let router = Router::new().route("/mcp", post(answer).delete(end));
    let router = router.with_state(Arc::clone(&origin));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (port, origin)
}

fn server(name: &str, host: &str, port: u16) -> McpServerSettings {
    McpServerSettings {
        place: McpServerPlace::Http {
            url: format!("http://{host}:{port}/mcp"),
            headers: vec![(
                "Authorization".to_owned(),
                Secret::new("Bearer of-the-file"),
            )],
            login: None,
        },
        ..inside(name, &[])
    }
}

fn egress(port: u16) -> Arc<Egress> {
    let proxy = Proxy::new(
        EgressLimits::default(),
        Arc::new(Here),
        Arc::new(LogRecorder),
    );
    let rules = EgressRules {
        rules: RulesText::allowing([format!("mcp.test:{port} in 127.0.0.0/8")]),
        ..EgressRules::default()
    };
    Arc::new(Egress::new(proxy, rules).unwrap())
}

#[tokio::test]
async fn a_server_is_reached_by_the_rules_and_by_nothing_else() {
    const TEST: &str = "mcp::over_http::a_server_is_reached_by_the_rules_and_by_nothing_else";
    let (port, origin) = serve().await;
    let wishes = Wishes {
        mcp: vec![
            server("good", "mcp.test", port),
            server("other", "other.test", port),
        ],
        egress: Some(egress(port)),
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with(TEST, wishes).await else {
        return;
    };
    let person = Person::default();
    let told = lab.prepare(&person).await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("other.test") && told[0].contains("allowlist"),
        "{told:?}"
    );
    assert!(lab.offered().contains(&"mcp_good_say".to_owned()));
    let answer = lab.calls(&person, "mcp_good_say", json!({})).await;
    assert_eq!(text(&answer), "said");
    {
        let heard = origin.heard.lock().unwrap();
        assert!(heard.iter().all(|(headers, _)| {
            headers["authorization"] == "Bearer of-the-file"
                && headers["host"].to_str().unwrap().starts_with("mcp.test")
        }));
        let (last, _) = heard.last().unwrap();
        assert_eq!(last["mcp-session-id"], "session-7");
        assert_eq!(last["mcp-protocol-version"], "2025-06-18");
    }
    lab.kit.mcp.forget_all();
    lab.until("its session was ended", async || {
        origin.ended.load(Ordering::Relaxed) == 1
    })
    .await;
    lab.close().await;
}

#[tokio::test]
async fn a_server_that_nobody_asks_is_let_go_and_reached_again() {
    const TEST: &str = "mcp::over_http::a_server_that_nobody_asks_is_let_go_and_reached_again";
    let (port, origin) = serve().await;
    let wishes = Wishes {
        mcp: vec![server("good", "mcp.test", port)],
        egress: Some(egress(port)),
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with(TEST, wishes).await else {
        return;
    };
    let person = Person::default();
    assert_eq!(lab.prepare(&person).await, [""; 0]);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(31 * 60)).await;
    tokio::time::resume();
    lab.until("its session was ended", async || {
        origin.ended.load(Ordering::Relaxed) == 1
    })
    .await;
    let answer = lab.calls(&person, "mcp_good_say", json!({})).await;
    assert_eq!(text(&answer), "said");
    lab.close().await;
}

#[tokio::test]
async fn sessions_events_and_refusals_are_understood() {
    const TEST: &str = "mcp::over_http::sessions_events_and_refusals_are_understood";
    let (port, origin) = serve().await;
    let wishes = Wishes {
        mcp: vec![server("good", "mcp.test", port)],
        egress: Some(egress(port)),
        ..Wishes::default()
    };
    let Some(lab) = Lab::open_with(TEST, wishes).await else {
        return;
    };
    let person = Person::default();
    assert_eq!(lab.prepare(&person).await, [""; 0]);
    let answer = lab.calls(&person, "mcp_good_events", json!({})).await;
    assert_eq!(text(&answer), "after a while");
    let ponged = |heard: &[(HeaderMap, Value)]| heard.iter().any(|(_, said)| said["id"] == "p");
    assert!(
        ponged(&origin.heard.lock().unwrap()),
        "its question was answered"
    );
    for (tool, expected) in [
        ("login", "wants a login"),
        ("moved", "which is not followed: http://elsewhere.test/mcp"),
        ("html", "something else than MCP"),
        ("cut", "broke off"),
        ("gone", "404"),
    ] {
        let answer = lab
            .calls(&person, &format!("mcp_good_{tool}"), json!({}))
            .await;
        assert!(error(&answer).contains(expected), "{tool}: {answer}");
    }
    // A session that the server refused or forgot is begun anew.
    let answer = lab.calls(&person, "mcp_good_say", json!({})).await;
    assert_eq!(text(&answer), "said");
    let begun = {
        let heard = origin.heard.lock().unwrap();
        let begun = heard
            .iter()
            .filter(|(_, said)| said["method"] == "initialize");
        begun.count()
    };
    assert_eq!(begun, 3, "after the login, and after it was gone");
    lab.close().await;
}
