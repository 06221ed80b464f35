//! Real programs through the stand-alone listener, to origins on loopback.

mod apt;
mod curl;
mod git;
mod http2;
mod java;
mod python;
mod squid;
mod websocket;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hermetic_egress::{
    CertificateAuthority, CertificateTrust, CompiledRules, ConversationEgress, Credential,
    EgressLimits, Proxy, RulesText, TrustRoots, sandbox_env, serve,
};
use hermetic_listen::{BoundedListener, ConnectionBounds};
use hermetic_types::{ConversationKey, SystemClock};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lab::origin::{Origin, head};
use crate::lab::tls::Identity;
use crate::lab::{Journal, Liar, TEST_TIMEOUT};

/// For programs that take long to get going.
const LONG: Duration = Duration::from_secs(120);

struct Listening {
    at: SocketAddr,
    stop: CancellationToken,
    folder: tempfile::TempDir,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn listen(
    rules: &[String],
    credentials: Vec<Credential>,
    trusted: Option<&Identity>,
) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let listener = BoundedListener::new(listener, ConnectionBounds::of(64));
    let limits = EgressLimits::default();
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = Proxy::new(
        limits.clone(),
        Arc::new(Liar::default()),
        Arc::new(Journal::default()),
    );
    let mut bundle = String::new();
    if let Some(identity) = trusted {
        let authority =
            Arc::new(CertificateAuthority::open(folder.path(), SystemClock::shared()).unwrap());
        bundle = format!("{}{}", authority.certificate(), identity.pem);
        let roots = TrustRoots::Only(vec![identity.certificate.clone()]);
        proxy = proxy.intercepting(authority, &roots).unwrap();
    }
    std::fs::write(folder.path().join("bundle.pem"), bundle).unwrap();
    let rules = CompiledRules::compile(&RulesText::allowing(rules.iter().cloned())).unwrap();
    let conversation = ConversationEgress::new(
        ConversationKey::new("standalone"),
        rules,
        credentials,
        &limits,
    );
    let stop = CancellationToken::new();
    tokio::spawn(serve(
        listener,
        proxy,
        conversation,
        stop.clone(),
        Duration::ZERO,
    ));
    Listening { at, stop, folder }
}

impl Listening {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with exactly the environment a sandbox would have.
    async fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        self.run_for(TEST_TIMEOUT, program, arguments).await
    }

    async fn run_for(&self, patience: Duration, program: &Path, arguments: &[&str]) -> Output {
        self.run_with(&[], patience, program, arguments).await
    }

    async fn run_with(
        &self,
        variables: &[(&str, &str)],
        patience: Duration,
        program: &Path,
        arguments: &[&str],
    ) -> Output {
        let bundle = self.path("bundle.pem");
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .envs(sandbox_env(
                self.at.port(),
                CertificateTrust::Bundle(&bundle.to_string_lossy()),
            ))
            .envs(variables.iter().copied())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        timeout(patience, command.output())
            .await
            .expect("the program hangs")
            .unwrap()
    }
}

/// Where a program is, or a skip said aloud.
fn find(test: &str, program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file());
    if found.is_none() {
        eprintln!("SKIP: {test}: {program} is not installed");
    }
    found
}

/// The folder a Python library is in, installed there by the first who wants it, or a skip said aloud.
async fn library(test: &str, python: &Path, name: &str) -> Option<String> {
    let folder = target_folder().join("pip").join(name);
    if !folder.is_dir() && !install(python, name, &folder).await {
        eprintln!("SKIP: {test}: {name} cannot be installed");
        return None;
    }
    Some(folder.display().to_string())
}

/// Installed aside and moved, so that tests which start together do not see half of it.
async fn install(python: &Path, name: &str, folder: &Path) -> bool {
    let beside = folder.parent().unwrap();
    let aside = std::fs::create_dir_all(beside).and_then(|()| tempfile::tempdir_in(beside));
    let Ok(aside) = aside else {
        return false;
    };
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--target"])
        .arg(aside.path().join("all"))
        .arg(name)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let installed = timeout(LONG, pip.status()).await;
    matches!(installed, Ok(Ok(status)) if status.success())
        && (std::fs::rename(aside.path().join("all"), folder).is_ok() || folder.is_dir())
}

fn target_folder() -> PathBuf {
    // target/<profile>/deps/<binary>
    let binary = std::env::current_exe().unwrap();
    binary.ancestors().nth(3).unwrap().to_owned()
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

async fn tls_origin(identity: &Identity) -> Origin {
    identity
        .serve(|mut stream| async move {
            while head(&mut stream).await.is_some() {
                if stream.write_all(OK.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
        })
        .await
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
