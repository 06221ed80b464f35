//! The official conformance suite against our client: each scenario is a server of the suite's own, which
//! starts a client and looks at what that says.
//!
//! The client that it starts is this test program again, with [`client_of_the_suite`] as its only test.

use std::fmt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use hermetic_egress::{
    Egress, EgressClient, EgressLimits, EgressRules, LogRecorder, Proxy, RulesText,
};
use hermetic_oauth::{
    AuthorityClient, BearerLogin, LoginAttempt, LoginFile, OAuthSettings, RedirectListener,
};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_testkit::npm;
use hermetic_tools::{
    Held, McpServerPlace, McpServerSettings, NoOneToAsk, NoSandbox, NoWayBack, ToolKit,
    ToolWorkplace,
};
use hermetic_types::{
    BackendDescription, BackendKind, ConversationKey, Secret, SharedClock, SystemClock,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::inside;
use super::over_http::Here;
use crate::room::{Wishes, kit};

const PACKAGE: &str = "@modelcontextprotocol/conformance";
const VERSION: &str = "0.1.16";
const CLIENT: &str = "mcp::conformance::client_of_the_suite";

/// Scenarios about what our client does not do, and why.
const NOT_OURS: [(&str, &str); 5] = [
    (
        "elicitation-sep1034-client-defaults",
        "a server can ask people nothing here",
    ),
    (
        "auth/2025-03-26-oauth-endpoint-fallback",
        "an authorization server that says nothing about itself cannot be seen to take PKCE",
    ),
    (
        "auth/client-credentials-jwt",
        "a login is a person's, not a machine's",
    ),
    (
        "auth/client-credentials-basic",
        "a login is a person's, not a machine's",
    ),
    (
        "auth/cross-app-access-complete-flow",
        "a login is at the server's own authority, not handed on from a company's",
    ),
];

/// A scenario that measures how punctually its client comes back, which is not asserted here.
const TIMED: &str = "sse-retry";

/// Logins that one scenario may take: its first, and one for more rights.
const MOST_LOGINS: usize = 2;

#[tokio::test]
async fn the_official_suite_finds_our_client_right() {
    const TEST: &str = "mcp::conformance::the_official_suite_finds_our_client_right";
    let folder = match npm::package(PACKAGE, VERSION).await {
        Ok(folder) => folder,
        Err(why) => return eprintln!("SKIP: {TEST}: {why}"),
    };
    let results = tempfile::tempdir().unwrap();
    let suite = run_suite(&folder, results.path()).await;
    let Some(said) = suite else {
        return eprintln!("SKIP: {TEST}: node is older than 20 and cannot run the suite");
    };
    let lines = said.lines().filter_map(|line| {
        let (mark, line) = line.split_once(' ')?;
        let (scenario, _) = line.split_once(": ")?;
        matches!(mark, "✓" | "✗").then(|| (scenario.to_owned(), mark == "✓"))
    });
    let verdicts: Vec<(String, bool)> = lines.collect();
    assert!(verdicts.len() > 20, "{said}");
    let is_ours = |scenario: &str| NOT_OURS.iter().all(|(other, _)| *other != scenario);
    for (scenario, _) in NOT_OURS {
        assert!(
            verdicts.iter().any(|(known, _)| known == scenario),
            "{scenario} is gone"
        );
    }
    let failed: Vec<_> = verdicts
        .iter()
        .filter(|(scenario, passed)| is_ours(scenario) && scenario != TIMED && !passed)
        .map(|(scenario, _)| scenario.as_str())
        .collect();
    assert!(failed.is_empty(), "{failed:?}\n{said}");
    comes_back_behind_the_last_event(results.path());
}

/// What the timed scenario says of anything but time.
fn comes_back_behind_the_last_event(results: &Path) {
    let folders = std::fs::read_dir(results).unwrap().map(Result::unwrap);
    let mut of_it =
        folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(TIMED));
    let checks = of_it.next().expect("it ran").path().join("checks.json");
    let checks: Value = serde_json::from_slice(&std::fs::read(checks).unwrap()).unwrap();
    for (check, is_timed) in [
        ("client-sse-graceful-reconnect", false),
        ("client-sse-last-event-id", false),
        ("client-sse-retry-timing", true),
    ] {
        let mut checks = checks.as_array().unwrap().iter();
        let found = checks.find(|known| known["id"] == check);
        let found = found.unwrap_or_else(|| panic!("{check} is gone"));
        // A busy machine makes anybody late; nothing makes us early.
        let is_late = is_timed && found["details"]["tooEarly"] == false;
        assert!(found["status"] == "SUCCESS" || is_late, "{found}");
    }
}

/// What the suite printed; `None` where node cannot run it.
async fn run_suite(folder: &Path, results: &Path) -> Option<String> {
    // Its other half, which looks through repositories, imports what node has since version 22.
    let shim = results.join("shim.mjs");
    std::fs::write(&shim, SHIM).unwrap();
    let program = folder
        .join("node_modules")
        .join(PACKAGE)
        .join("dist/index.js");
    let us = std::env::current_exe().unwrap();
    let client = format!("{} --ignored --nocapture --exact {CLIENT}", us.display());
    let output = Command::new("node")
        .arg("--import")
        .arg(&shim)
        .arg(program)
        .args([
            "client",
            "--suite",
            "all",
            "--verbose",
            "--timeout",
            "60000",
        ])
        .arg("--output-dir")
        .arg(results)
        .args(["--command", &client])
        .current_dir(results)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(240), output).await;
    let output = output.expect("the suite ends").unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    match complained.contains("ERR_UNKNOWN_BUILTIN_MODULE") || complained.contains("bad option") {
        true => None,
        false => {
            eprintln!("{complained}");
            Some(said)
        }
    }
}

const SHIM: &str = r#"
import { register } from "node:module";
const hooks = `
export async function resolve(specifier, context, next) {
  if (specifier === "fs" && context.parentURL?.includes("/conformance/dist/")) {
    const url = 'data:text/javascript,export * from "node:fs"; export const globSync = undefined;';
    return { url, shortCircuit: true };
  }
  return next(specifier, context);
}`;
register("data:text/javascript," + encodeURIComponent(hooks));
"#;

#[tokio::test]
#[ignore = "the suite starts it, with the address of a server"]
async fn client_of_the_suite() {
    let url = std::env::args().next_back().unwrap();
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap();
    if NOT_OURS.iter().any(|(other, _)| *other == scenario) {
        // It would wait in vain.
        return;
    }
    let client = SuiteClient::of(&url, &scenario);
    let mut logins = 0;
    while let Err(why) = client.use_server().await {
        assert!(
            why.contains("hermetic mcp login") && logins < MOST_LOGINS,
            "{why}"
        );
        logins += 1;
        client.log_in().await;
    }
}

/// One installation with one server.
struct SuiteClient {
    url: String,
    settings: OAuthSettings,
    file: LoginFile,
    http: AuthorityClient,
    clock: SharedClock,
    folder: tempfile::TempDir,
}

impl SuiteClient {
    fn of(url: &str, scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = OAuthSettings::default();
        if scenario == "auth/basic-cimd" {
            let document = "https://conformance-test.local/client-metadata.json";
            settings.client_metadata_url = Some(document.to_owned());
        }
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
        let context: Value = serde_json::from_str(&context).unwrap_or_default();
        settings.client_id = context["client_id"].as_str().map(str::to_owned);
        settings.client_secret = context["client_secret"].as_str().map(Secret::new);
        Self {
            url: url.to_owned(),
            settings,
            file: LoginFile::new(folder.path().join("logins"), "suite"),
            http: AuthorityClient::new(None).unwrap(),
            clock: SystemClock::shared(),
            folder,
        }
    }

    /// Learns the server's tools and calls each of them; the words of whatever fails.
    async fn use_server(&self) -> Result<(), String> {
        let place = Place::reaching(&self.url);
        let kit = self.kit();
        let toolbox = kit.toolbox(&place, &NoOneToAsk);
        let stop = CancellationToken::new();
        let notices = toolbox.prepare(&stop).await;
        if !notices.is_empty() {
            return Err(notices.join("\n"));
        }
        let tools = toolbox.described().into_iter();
        let names: Vec<_> = tools.map(|tool| tool.name.into_owned()).collect();
        for name in names.iter().filter(|name| name.starts_with("mcp_")) {
            let arguments = match name.as_str() {
                "mcp_suite_add_numbers" => json!({"a": 5, "b": 3}),
                _ => json!({}),
            };
            let arguments = arguments.as_object().unwrap();
            let called = toolbox.call(name, arguments, &stop).await;
            let answer = called.expect("a tool").json.into_inner();
            if let Some(why) = answer["error"].as_str() {
                return Err(why.to_owned());
            }
        }
        Ok(())
    }

    fn kit(&self) -> ToolKit {
        let redactor = Redactor::new([], RedactorSettings::default());
        let login = BearerLogin::new(
            "suite",
            &self.url,
            self.file.clone(),
            self.http.clone(),
            redactor,
            Arc::clone(&self.clock),
        );
        let server = McpServerSettings {
            place: McpServerPlace::Http {
                url: self.url.clone(),
                headers: Vec::new(),
                login: Some(login),
            },
            ..inside("suite", &[])
        };
        let wishes = Wishes {
            mcp: vec![server],
            ..Wishes::default()
        };
        let description = BackendDescription::sealed(BackendKind::Native);
        kit(
            &wishes,
            self.folder.path(),
            None,
            description,
            Arc::new(NoWayBack),
        )
    }

    /// As `hermetic mcp login` does it, with a browser that agrees to everything.
    async fn log_in(&self) {
        let listener = RedirectListener::open(&self.settings).await.unwrap();
        let attempt = LoginAttempt {
            server: &self.url,
            settings: &self.settings,
            file: &self.file,
            http: &self.http,
            clock: &self.clock,
        };
        let pending = attempt
            .begin(&listener)
            .await
            .unwrap_or_else(|why| panic!("{why}"));
        let (code, ()) = tokio::join!(pending.wait(&listener), agree(pending.address()));
        let code = code.unwrap_or_else(|why| panic!("{why}"));
        pending
            .finish(&code)
            .await
            .unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Opens an address, and the one that it points to.
async fn agree(address: &str) {
    let answer = get(address).await;
    let next = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    let next = next.unwrap_or_else(|| panic!("{answer}"));
    let answer = get(&next).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

async fn get(address: &str) -> String {
    let rest = address
        .strip_prefix("http://")
        .expect("an address of a test");
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A conversation without a sandbox that reaches one server.
pub(super) struct Place {
    conversation: ConversationKey,
    agreed_in: ConversationKey,
    egress: Arc<Egress>,
}

impl Place {
    pub(super) fn reaching(url: &str) -> Self {
        let host = url.strip_prefix("http://").expect("an address of a test");
        let host = host.split('/').next().unwrap();
        let proxy = Proxy::new(
            EgressLimits::default(),
            Arc::new(Here),
            Arc::new(LogRecorder),
        );
        let rules = EgressRules {
            rules: RulesText::allowing([format!("{host} in 127.0.0.0/8")]),
            ..EgressRules::default()
        };
        let conversation = ConversationKey::new("agent:main:test:dm:1");
        Self {
            agreed_in: conversation.clone(),
            conversation,
            egress: Arc::new(Egress::new(proxy, rules).unwrap()),
        }
    }
}

impl Place {
    /// Another conversation, in which holds what was agreed to in `agreed_in`; by itself what was agreed to there.
    pub(super) fn named(self, conversation: &str, agreed_in: &str) -> Self {
        Self {
            conversation: ConversationKey::new(conversation),
            agreed_in: ConversationKey::new(agreed_in),
            ..self
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

impl ToolWorkplace for Place {
    fn conversation(&self) -> &ConversationKey {
        &self.conversation
    }

    fn agreed_in(&self) -> &ConversationKey {
        &self.agreed_in
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>> {
        futures::future::ready(Err(NoSandbox("there is none"))).boxed()
    }

    fn egress(&self) -> BoxFuture<'_, Result<EgressClient, NoSandbox>> {
        let client = EgressClient::new(Arc::clone(&self.egress), &self.conversation);
        futures::future::ready(Ok(client)).boxed()
    }
}
