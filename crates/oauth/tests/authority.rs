//! An MCP server and its authorization server on one port, whose words a test chooses.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use hermetic_oauth::{
    AuthorityClient, BearerLogin, LoginAttempt, LoginError, LoginFile, OAuthSettings,
    RedirectListener,
};
use hermetic_redact::{Redactor, RedactorSettings};
use hermetic_types::{Clock, SharedClock, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What the server is told to say otherwise than usual.
#[derive(Default)]
pub(crate) struct Lies {
    /// Put over what the documents say, by name.
    pub(crate) resource: Value,
    pub(crate) metadata: Value,
    /// Seconds that tokens hold.
    pub(crate) expires_in: Option<u64>,
    /// Refresh tokens are good for one use, and a second use ends the login.
    pub(crate) rotates: bool,
    /// Where the token endpoint sends whoever asks.
    pub(crate) moved: Option<String>,
    /// What the endpoint for devices answers, instead of a code; it is not there where nothing is written.
    pub(crate) device: Value,
    /// Questions about a device that come too early, and what is said then.
    pub(crate) waits: Vec<&'static str>,
    /// The token endpoint sends a megabyte.
    pub(crate) floods: bool,
}

pub(crate) struct Authority {
    pub(crate) url: String,
    pub(crate) lies: Mutex<Lies>,
    /// What was posted to the token endpoint, in order.
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) registered: AtomicUsize,
    given: AtomicUsize,
    /// The one refresh token that is good now.
    good: Mutex<String>,
    /// Where a test wants to hold the token endpoint, and is told that somebody is there.
    pub(crate) hold: Mutex<Option<(Arc<Notify>, Arc<Notify>)>>,
}

impl Authority {
    pub(crate) async fn serve(lies: Lies) -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let authority = Arc::new(Self {
            url,
            lies: Mutex::new(lies),
            asked: Mutex::default(),
            registered: AtomicUsize::new(0),
            given: AtomicUsize::new(0),
            good: Mutex::default(),
            hold: Mutex::default(),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&authority));
        tokio::spawn(async move { axum::serve(listener, router).await });
        authority
    }

    pub(crate) fn server(&self) -> String {
        format!("{}/mcp", self.url)
    }

    fn documents(&self, path: &str) -> Option<Value> {
        let url = &self.url;
        let lies = self.lies.lock().unwrap();
        let (mut document, lies) = match path {
            "/.well-known/oauth-protected-resource/mcp" => {
                let document = json!({
                    "resource": format!("{url}/mcp"),
                    "authorization_servers": [url],
                    "scopes_supported": ["read"],
                });
                (document, &lies.resource)
            }
            "/.well-known/oauth-authorization-server" => {
                let document = json!({
                    "issuer": url,
                    "authorization_endpoint": format!("{url}/authorize"),
                    "token_endpoint": format!("{url}/token"),
                    "registration_endpoint": format!("{url}/register"),
                    "code_challenge_methods_supported": ["S256"],
                });
                let mut document = document;
                if !lies.device.is_null() {
                    document["device_authorization_endpoint"] = format!("{url}/device").into();
                }
                (document, &lies.metadata)
            }
            _ => return None,
        };
        for (name, value) in lies.as_object().into_iter().flatten() {
            document[name] = value.clone();
        }
        Some(document)
    }

    async fn token(&self, form: &str) -> Response<Body> {
        let held = self.hold.lock().unwrap().clone();
        if let Some((there, go_on)) = held {
            there.notify_one();
            go_on.notified().await;
        }
        self.asked.lock().unwrap().push(form.to_owned());
        if form.contains("device_code=") {
            let mut lies = self.lies.lock().unwrap();
            if !lies.waits.is_empty() {
                let why = lies.waits.remove(0);
                return respond(400, &json!({"error": why}));
            }
        }
        let lies = self.lies.lock().unwrap();
        if let Some(to) = &lies.moved {
            let moved = Response::builder().status(StatusCode::TEMPORARY_REDIRECT);
            return moved.header("location", to).body(Body::empty()).unwrap();
        }
        if lies.floods {
            return Response::new(Body::from(vec![b' '; 1024 * 1024]));
        }
        let mut good = self.good.lock().unwrap();
        let spent = form.contains("refresh_token=") && !form.contains(&format!("={}", *good));
        if lies.rotates && spent {
            *good = "none".to_owned();
            return respond(400, &json!({"error": "invalid_grant"}));
        }
        let number = self.given.fetch_add(1, Ordering::SeqCst) + 1;
        *good = format!("refresh-number-{number}");
        respond(
            200,
            &json!({
                "access_token": format!("access-number-{number}"),
                "refresh_token": *good,
                "token_type": "Bearer",
                "expires_in": lies.expires_in,
            }),
        )
    }
}

fn respond(status: u16, json: &Value) -> Response<Body> {
    let response = Response::builder().status(status);
    response.body(Body::from(json.to_string())).unwrap()
}

async fn answer(State(authority): State<Arc<Authority>>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    match head.uri.path() {
        "/mcp" => {
            let response = Response::builder().status(StatusCode::UNAUTHORIZED);
            let response = response.header("www-authenticate", "Bearer");
            response.body(Body::empty()).unwrap()
        }
        "/authorize" => {
            let query = head.uri.query().unwrap_or_default();
            let fields: Vec<(String, String)> = serde_urlencoded::from_str(query).unwrap();
            let field = |name: &str| &fields.iter().find(|(known, _)| known == name).unwrap().1;
            let to = format!(
                "{}?code=a-code&state={}",
                field("redirect_uri"),
                field("state")
            );
            let response = Response::builder().status(StatusCode::FOUND);
            response.header("location", to).body(Body::empty()).unwrap()
        }
        "/register" => {
            authority.registered.fetch_add(1, Ordering::SeqCst);
            respond(201, &json!({"client_id": "registered"}))
        }
        "/token" => authority.token(&body).await,
        "/device" => {
            let mut answer = json!({
                "device_code": "of-the-device",
                "user_code": "WDJB-MJHT",
                "verification_uri": format!("{}/activate", authority.url),
                "interval": 1,
                "expires_in": 600,
            });
            let lies = authority.lies.lock().unwrap();
            for (name, value) in lies.device.as_object().into_iter().flatten() {
                answer[name] = value.clone();
            }
            respond(200, &answer)
        }
        path => match authority.documents(path) {
            Some(document) => respond(200, &document),
            None => respond(404, &Value::Null),
        },
    }
}

/// A clock that a test moves.
#[derive(Debug, Default)]
pub(crate) struct TestClock(Mutex<i64>);

impl TestClock {
    pub(crate) fn pass(&self, seconds: i64) {
        *self.0.lock().unwrap() += seconds;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(1_800_000_000 + *self.0.lock().unwrap())
    }
}

/// One installation whose server is that of the authority.
pub(crate) struct Installation {
    pub(crate) authority: Arc<Authority>,
    pub(crate) settings: OAuthSettings,
    pub(crate) file: LoginFile,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) redactor: Redactor,
    pub(crate) folder: tempfile::TempDir,
    http: AuthorityClient,
}

impl Installation {
    pub(crate) async fn with(lies: Lies) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            authority: Authority::serve(lies).await,
            settings: OAuthSettings::default(),
            file: LoginFile::new(folder.path().join("logins"), "tracker"),
            clock: Arc::default(),
            redactor: Redactor::new([], RedactorSettings::default()),
            folder,
            http: AuthorityClient::new(None).unwrap(),
        }
    }

    /// As one gateway has it.
    pub(crate) fn bearer(&self) -> BearerLogin {
        let clock: SharedClock = Arc::clone(&self.clock) as _;
        let (file, http) = (self.file.clone(), self.http.clone());
        let server = self.authority.server();
        BearerLogin::new("tracker", &server, file, http, self.redactor.clone(), clock)
    }

    /// Logs in with a browser that comes back with `answer` of where it was sent.
    pub(crate) async fn log_in(
        &self,
        answer: impl FnOnce(&str) -> String,
    ) -> Result<String, LoginError> {
        let clock: SharedClock = Arc::clone(&self.clock) as _;
        let listener = RedirectListener::open(&self.settings).await?;
        let server = self.authority.server();
        let attempt = LoginAttempt {
            server: &server,
            settings: &self.settings,
            file: &self.file,
            http: &self.http,
            clock: &clock,
        };
        let pending = attempt.begin(&listener).await?;
        let address = pending.address().to_owned();
        let code = pending.code(&answer(&address))?;
        pending.finish(&code).await?;
        Ok(address)
    }

    /// Logs in by a code; the page and the code.
    pub(crate) async fn log_in_on_device(&self) -> Result<(String, String), LoginError> {
        let clock: SharedClock = Arc::clone(&self.clock) as _;
        let server = self.authority.server();
        let attempt = LoginAttempt {
            server: &server,
            settings: &self.settings,
            file: &self.file,
            http: &self.http,
            clock: &clock,
        };
        let pending = attempt.begin_on_device().await?;
        let shown = (pending.page().to_owned(), pending.code().to_owned());
        pending.finish().await?;
        Ok(shown)
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("logins/tracker.json")
    }
}

/// What an honest browser comes back with.
pub(crate) fn honest(address: &str) -> String {
    format!("?code=a-code&state={}", field(address, "state"))
}

pub(crate) fn field(address: &str, name: &str) -> String {
    let (_, query) = address.split_once('?').unwrap();
    let fields: Vec<(String, String)> = serde_urlencoded::from_str(query).unwrap();
    let found = fields.into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no {name} in {address}")).1
}
