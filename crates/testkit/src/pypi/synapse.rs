//! PyPI `matrix-synapse`: the homeserver that most of Matrix runs on.
//!
//! Starting one takes some seconds, so those who run many tests start one for all of them and say where it
//! is (`HERMETIC_TEST_SYNAPSE`). A test that stops its homeserver, or wants its limits, starts its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::install;

const NAME: &str = "matrix-synapse";
const VERSION: &str = "1.163.2";
const MODULE: &str = "synapse";
/// Says where the one is that all tests share.
const SHARED: &str = "HERMETIC_TEST_SYNAPSE";
const LONGEST_START: Duration = Duration::from_secs(120);
/// Between two looks whether it listens.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A homeserver on loopback; it ends when dropped.
#[derive(Debug)]
pub struct Synapse {
    url: String,
    own: Option<OwnSynapse>,
}

#[derive(Debug)]
struct OwnSynapse {
    packages: PathBuf,
    folder: TempDir,
    child: Option<Child>,
}

/// How much it lets somebody send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynapseLimits {
    /// As it comes: ten messages, then one in five seconds.
    Stock,
    /// So much that no test meets them.
    None,
}

impl Synapse {
    /// The one that all tests share, or one of our own. An error says why there is none.
    pub async fn shared() -> Result<Self, String> {
        match std::env::var(SHARED) {
            Ok(url) => Ok(Self { url, own: None }),
            Err(_) => Self::start(SynapseLimits::None).await,
        }
    }

    pub async fn start(limits: SynapseLimits) -> Result<Self, String> {
        let packages = install(NAME, VERSION, MODULE).await?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let port = listener.and_then(|listener| listener.local_addr());
        let port = port.map_err(|error| error.to_string())?.port();
        write_configuration(folder.path(), port, limits).map_err(|error| error.to_string())?;
        let mut synapse = Self {
            url: format!("http://127.0.0.1:{port}"),
            own: Some(OwnSynapse {
                packages,
                folder,
                child: None,
            }),
        };
        synapse.go_on().await?;
        Ok(synapse)
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts it again, with everything it knew. The shared one runs already.
    pub async fn go_on(&mut self) -> Result<(), String> {
        let Some(own) = &mut self.own else {
            return Ok(());
        };
        let child = Command::new("python3")
            .args(["-m", "synapse.app.homeserver", "--config-path"])
            .arg(own.folder.path().join("homeserver.yaml"))
            .env("PYTHONPATH", &own.packages)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(own.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("python3 does not start: {error}"))?;
        own.child = Some(child);
        let answers = self.wait_until_it_answers();
        timeout(LONGEST_START, answers)
            .await
            .unwrap_or_else(|_| Err("Synapse does not start in time".to_owned()))
    }

    /// Ends it, as whoever restarts a service does.
    pub async fn stop(&mut self) {
        let child = self.own.as_mut().and_then(|own| own.child.take());
        let Some(mut child) = child else { return };
        let pid = child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = child.wait().await;
    }

    async fn wait_until_it_answers(&mut self) -> Result<(), String> {
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.map_err(|error| error.to_string())?;
        loop {
            let asked = client.get(format!("{}/_matrix/client/versions", self.url));
            if asked
                .send()
                .await
                .is_ok_and(|answer| answer.status().is_success())
            {
                return Ok(());
            }
            let child = self.own.as_mut().and_then(|own| own.child.as_mut());
            if child.is_none_or(|child| !matches!(child.try_wait(), Ok(None))) {
                return Err("Synapse ended early".to_owned());
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

fn write_configuration(folder: &Path, port: u16, limits: SynapseLimits) -> std::io::Result<()> {
    let at = |name: &str| folder.join(name).display().to_string();
    let (database, media, key, log) = (
        at("homeserver.db"),
        at("media"),
        at("signing.key"),
        at("log.yaml"),
    );
    // Nobody else is spoken to: neither homeservers nor those who hold their keys.
    let mut text = format!(
        r#"server_name: "hermetic.test"
public_baseurl: "http://127.0.0.1:{port}/"
listeners:
  - {{port: {port}, type: http, bind_addresses: ["127.0.0.1"], resources: [{{names: [client]}}]}}
database: {{name: sqlite3, args: {{database: "{database}"}}}}
media_store_path: "{media}"
signing_key_path: "{key}"
log_config: "{log}"
report_stats: false
trusted_key_servers: []
federation_domain_whitelist: []
macaroon_secret_key: "only-for-tests"
form_secret: "only-for-tests"
enable_registration: true
enable_registration_without_verification: true
bcrypt_rounds: 4
presence: {{enabled: false}}
"#
    );
    let many = "{per_second: 10000, burst_count: 10000}";
    let open = [
        ("rc_registration", many.to_owned()),
        (
            "rc_login",
            format!("{{address: {many}, account: {many}, failed_attempts: {many}}}"),
        ),
        ("rc_joins", format!("{{local: {many}, remote: {many}}}")),
        ("rc_joins_per_room", many.to_owned()),
        (
            "rc_invites",
            format!("{{per_room: {many}, per_user: {many}, per_issuer: {many}}}"),
        ),
        ("rc_room_creation", many.to_owned()),
    ];
    for (name, limit) in open {
        text.push_str(&format!("{name}: {limit}\n"));
    }
    if limits == SynapseLimits::None {
        text.push_str(&format!("rc_message: {many}\n"));
    }
    fs::write(folder.join("homeserver.yaml"), text)?;
    fs::write(
        folder.join("signing.key"),
        format!("ed25519 a_test {}\n", "A".repeat(43)),
    )?;
    fs::write(
        folder.join("log.yaml"),
        "version: 1\nroot: {level: CRITICAL, handlers: []}\ndisable_existing_loggers: false\n",
    )
}
