//! A server that wants a login, through a conversation's egress.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use hermetic_oauth::{AuthorityClient, BearerLogin, LoginFile};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_tools::{McpServerPlace, McpServerSettings, NoWayBack, ToolKit};
use hermetic_types::{BackendDescription, BackendKind, SystemClock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::conformance::Place;
use super::{Person, inside};
use crate::room::{Wishes, kit};

/// Tokens as the server has given them out, the last of which it takes.
#[derive(Default)]
struct Origin {
    tokens: Mutex<Vec<&'static str>>,
    refreshed: Mutex<usize>,
    /// What a call wants besides.
    scope: Mutex<Option<&'static str>>,
}

const FIRST: &str = "the-first-token-of-all";
const SECOND: &str = "the-second-token-of-all";

async fn answer(State(origin): State<Arc<Origin>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    if head.uri.path() == "/token" {
        *origin.refreshed.lock().unwrap() += 1;
        *origin.tokens.lock().unwrap() = vec![SECOND];
        let given =
            json!({"access_token": SECOND, "refresh_token": "r2-r2-r2", "token_type": "bearer"});
        return Response::new(Body::from(given.to_string()));
    }
    let sent = head.headers.get("authorization");
    let sent = sent
        .map(|value| value.to_str().unwrap().to_owned())
        .unwrap_or_default();
    let is_good = origin
        .tokens
        .lock()
        .unwrap()
        .iter()
        .any(|token| sent == format!("Bearer {token}"));
    let refused = |status: StatusCode, challenge: String| {
        let response = Response::builder().status(status);
        response
            .header("www-authenticate", challenge)
            .body(Body::empty())
            .unwrap()
    };
    if !is_good {
        return refused(StatusCode::UNAUTHORIZED, "Bearer scope=\"read\"".to_owned());
    }
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            if let Some(scope) = *origin.scope.lock().unwrap() {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
                return refused(StatusCode::FORBIDDEN, challenge);
            }
            // It shows the model what it was sent.
            json!({"content": [{"type": "text", "text": format!("you sent {sent}")}]})
        }
        _ => return Response::builder().status(202).body(Body::empty()).unwrap(),
    };
    let json = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    let response = Response::builder().header("content-type", "application/json");
    response.body(Body::from(json.to_string())).unwrap()
}

/// One conversation, and the file with the login.
struct Visit {
    origin: Arc<Origin>,
    kit: ToolKit,
    place: Place,
    folder: tempfile::TempDir,
    url: String,
}

impl Visit {
    async fn new() -> Self {
        let origin = Arc::new(Origin::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&origin));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let url = format!("http://localhost:{port}/mcp");
        let folder = tempfile::tempdir().unwrap();
        // The redactor of the lab is another one: what hides the token is that of the login.
        let redactor = Redactor::new([], RedactorSettings::default());
        let login = BearerLogin::new(
            "tracker",
            &url,
            LoginFile::new(folder.path().join("logins"), "tracker"),
            AuthorityClient::new(None).unwrap(),
            redactor.clone(),
            SystemClock::shared(),
        );
        let server = McpServerSettings {
            place: McpServerPlace::Http {
                url: url.clone(),
                headers: Vec::new(),
                login: Some(login),
            },
            ..inside("tracker", &[])
        };
        let wishes = Wishes {
            mcp: vec![server],
            redactor: Some(redactor),
            ..Wishes::default()
        };
        let description = BackendDescription::sealed(BackendKind::Native);
        let kit = kit(
            &wishes,
            folder.path(),
            None,
            description,
            Arc::new(NoWayBack),
        );
        let place = Place::reaching(&url);
        Self {
            origin,
            kit,
            place,
            folder,
            url,
        }
    }

    /// As `hermetic mcp login` leaves it.
    fn log_in(&self) {
        let at = self.url.trim_end_matches("/mcp");
        let login = json!({
            "challenge": null,
            "login": {
                "server": self.url, "resource": self.url, "issuer": at,
                "token_endpoint": format!("{at}/token"),
                "client": {"id": "us", "auth": "none"}, "is_registered": false,
                "redirect": "http://127.0.0.1:1/callback",
                "access": FIRST, "refresh": "r1-r1-r1",
                "since_seconds": 0, "expires_seconds": null, "scope": null,
            },
        });
        let folder = self.folder.path().join("logins");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tracker.json");
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        let mut file = options.open(path).unwrap();
        file.write_all(login.to_string().as_bytes()).unwrap();
    }

    async fn prepare(&self, person: &Person) -> Vec<String> {
        let stop = CancellationToken::new();
        self.kit.toolbox(&self.place, person).prepare(&stop).await
    }

    async fn echo(&self, person: &Person) -> Value {
        let stop = CancellationToken::new();
        let toolbox = self.kit.toolbox(&self.place, person);
        let called = toolbox
            .call("mcp_tracker_echo", &serde_json::Map::new(), &stop)
            .await;
        called.expect("a tool").json.into_inner()
    }
}

#[tokio::test]
async fn who_is_not_logged_in_is_told_how_to() {
    let visit = Visit::new().await;
    let told = visit.prepare(&Person::default()).await;
    assert!(told[0].contains("hermetic mcp login tracker"), "{told:?}");
}

#[tokio::test]
async fn a_token_is_renewed_where_it_is_refused_and_no_model_sees_it() {
    let visit = Visit::new().await;
    visit.log_in();
    *visit.origin.tokens.lock().unwrap() = vec![FIRST];
    let person = Person::default();
    assert_eq!(visit.prepare(&person).await, [""; 0]);
    let answer = visit.echo(&person).await.to_string();
    assert!(
        answer.contains("you sent Bearer") && !answer.contains(FIRST),
        "{answer}"
    );
    // The server forgets it: the next call is made all the same, with another.
    visit.origin.tokens.lock().unwrap().clear();
    let answer = visit.echo(&person).await.to_string();
    assert!(
        answer.contains("you sent Bearer") && !answer.contains(SECOND),
        "{answer}"
    );
    assert_eq!(*visit.origin.refreshed.lock().unwrap(), 1);
    let decided = person.decided().join("\n");
    assert!(decided.contains("mcp_tracker_echo"), "{decided}");
    assert!(
        !decided.contains(FIRST) && !decided.contains(SECOND),
        "{decided}"
    );
}

#[tokio::test]
async fn a_call_that_wants_more_rights_says_which_and_who_gives_them() {
    let visit = Visit::new().await;
    visit.log_in();
    *visit.origin.tokens.lock().unwrap() = vec![FIRST];
    let person = Person::default();
    assert_eq!(visit.prepare(&person).await, [""; 0]);
    *visit.origin.scope.lock().unwrap() = Some("write");
    let answer = visit.echo(&person).await.to_string();
    assert!(
        answer.contains("write") && answer.contains("hermetic mcp login tracker"),
        "{answer}"
    );
    assert_eq!(
        *visit.origin.refreshed.lock().unwrap(),
        0,
        "another token helps nobody"
    );
    // It breaks that call and no other.
    *visit.origin.scope.lock().unwrap() = None;
    let answer = visit.echo(&person).await.to_string();
    assert!(answer.contains("you sent"), "{answer}");
}
