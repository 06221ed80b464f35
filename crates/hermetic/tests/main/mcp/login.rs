//! `hermetic mcp login`, with a browser of the test's and an authorization server of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};

use axum::Router;
use axum::body::Body;
use axum::http::{Response, Uri};
use serde_json::{Value, json};

use crate::hermetic::Hermetic;

const TOKEN: &str = "a-token-that-nobody-sees";

/// A server and its authority: whatever is posted to it is answered alike.
async fn serve() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    let answer = move |uri: Uri| {
        let url = own.clone();
        async move {
            let json = |json: Value| Response::new(Body::from(json.to_string()));
            match uri.path() {
                "/.well-known/oauth-protected-resource/mcp" => {
                    json(json!({"resource": url, "authorization_servers": [url]}))
                }
                "/.well-known/oauth-authorization-server" => json(json!({
                    "issuer": url,
                    "authorization_endpoint": format!("{url}/authorize"),
                    "token_endpoint": format!("{url}/token"),
                    "code_challenge_methods_supported": ["S256"],
                })),
                "/token" => {
                    json(json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 60}))
                }
                _ => Response::builder().status(404).body(Body::empty()).unwrap(),
            }
        }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    url
}

fn home(url: &str) -> Hermetic {
    let servers = json!({
        "tracker": {"url": format!("{url}/mcp"), "auth": "oauth", "oauth": {"client_id": "by-hand"}},
        "plain": {"url": "https://mcp.example.org/mcp"},
    });
    Hermetic::with(&format!("mcp_servers: {servers}\n"))
}

/// A login that has said what to open.
struct Login {
    child: Child,
    out: BufReader<Box<dyn Read>>,
    address: String,
}

impl Login {
    fn start(hermetic: &Hermetic) -> Self {
        let mut child = hermetic
            .command(&["mcp", "login", "tracker"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out: Box<dyn Read> = Box::new(child.stdout.take().unwrap());
        let mut out = BufReader::new(out);
        let address = loop {
            let mut line = String::new();
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "it ended early");
            if line.contains("/authorize?") {
                break line.trim().to_owned();
            }
        };
        Self {
            child,
            out,
            address,
        }
    }

    fn field(&self, name: &str) -> String {
        let url = reqwest::Url::parse(&self.address).unwrap();
        let found = url.query_pairs().find(|(known, _)| known == name);
        found.unwrap().1.into_owned()
    }

    fn ends(mut self) -> (bool, String) {
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().success(), said)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_logs_in_by_a_browser_here_or_by_pasting() {
    let url = serve().await;
    let hermetic = home(&url);
    let before = hermetic.run(&["mcp", "list"]).out;
    assert!(
        before.contains("nobody is logged in: hermetic mcp login tracker"),
        "{before}"
    );

    let login = Login::start(&hermetic);
    let back = format!(
        "{}?code=c&state={}",
        login.field("redirect_uri"),
        login.field("state")
    );
    let answer = reqwest::get(&back).await.unwrap();
    assert!(answer.status().is_success());
    let (succeeded, said) = login.ends();
    assert!(succeeded && said.contains("logged in at"), "{said}");
    assert!(!said.contains(TOKEN), "{said}");

    let path = hermetic.path("hermetic/mcp-logins/tracker.json");
    let about = path.metadata().unwrap();
    assert_eq!(about.mode() & 0o777, 0o600);
    assert_eq!(about.uid(), hermetic.path("").metadata().unwrap().uid());
    for command in [
        &["mcp", "list"][..],
        &["mcp", "list", "--json"],
        &["config", "show"],
    ] {
        let shown = hermetic.run(command);
        assert!(
            !shown.out.contains(TOKEN) && !shown.err.contains(TOKEN),
            "{command:?}"
        );
    }
    let listed = hermetic.run(&["mcp", "list", "--json"]).json();
    assert_eq!(listed[1]["login"]["works"], true, "{listed}");
    assert_eq!(listed[0].get("login"), None, "{listed}");

    let out = hermetic.run(&["mcp", "logout", "tracker"]);
    assert!(
        out.code == 0 && out.out.contains("logged out"),
        "{}",
        out.out
    );
    assert!(!path.exists());

    // Where the browser is elsewhere; a line that is something else ends nothing.
    let mut login = Login::start(&hermetic);
    let state = login.field("state");
    let mut keys = login.child.stdin.take().unwrap();
    writeln!(keys, "http://127.0.0.1:1/callback?code=c&state=another").unwrap();
    writeln!(keys, "http://127.0.0.1:1/callback?code=c&state={state}").unwrap();
    let (succeeded, said) = login.ends();
    assert!(succeeded && said.contains("logged in at"), "{said}");
}

#[test]
fn who_cannot_log_in_is_told_why() {
    let hermetic = home("http://127.0.0.1:9");
    for (name, expected) in [
        ("nobody", "no MCP server \"nobody\""),
        ("plain", "auth: oauth"),
        ("tracker", "cannot be reached"),
    ] {
        let ended = hermetic.run(&["mcp", "login", name]);
        assert_ne!(ended.code, 0, "{name}");
        assert!(ended.err.contains(expected), "{name}: {}", ended.err);
    }
    let out = hermetic.run(&["mcp", "logout", "tracker"]).out;
    assert!(out.contains("nobody was logged in"), "{out}");
}
