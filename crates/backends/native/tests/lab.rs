//! One sandbox on a bench: made, spoken to, and gone when the test is over.

use std::collections::BTreeMap;
use std::time::Duration;

use hermetic_native::{Config, Native};
use hermetic_sandbox::{
    Backend, BackendError, Lifeline, Link, Network, Persistence, Spec, SystemView,
};
use hermetic_types::{ConversationKey, InstallationId, Limits, SandboxId};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

pub(crate) struct Lab {
    pub(crate) native: Native,
    pub(crate) installation: InstallationId,
    _state: tempfile::TempDir,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) text: String,
}

impl Lab {
    pub(crate) fn open() -> Self {
        let state = tempfile::tempdir().unwrap();
        let installation = InstallationId::random();
        let native = Native::open(Config {
            state: state.path().to_owned(),
            installation: installation.clone(),
            program: hermetic_embedded::WARDEN,
            require: Vec::new(),
        })
        .unwrap();
        Self {
            native,
            installation,
            _state: state,
        }
    }

    pub(crate) fn spec(&self) -> Spec {
        Spec {
            installation: self.installation.clone(),
            conversation: ConversationKey::new("agent:main:test:dm:1"),
            id: SandboxId::random(),
            system: SystemView::Host,
            limits: Limits::default(),
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: Network::Closed,
            persistence: Persistence::Ephemeral,
            lifeline: Lifeline::Ledger,
            lifetime: Duration::from_secs(60),
        }
    }

    pub(crate) async fn create(&self, spec: &Spec) -> Result<Box_, BackendError> {
        Ok(Box_::new(self.native.create(spec).await?))
    }

    /// One command in a fresh sandbox.
    pub(crate) async fn run(&self, command: &str) -> Output {
        let spec = self.spec();
        let mut sandbox = self.create(&spec).await.unwrap();
        let output = sandbox.run(command).await;
        self.native.destroy(&spec.id).await.unwrap();
        output
    }
}

/// A live sandbox.
pub(crate) struct Box_(BufReader<Box<dyn Stream>>);

trait Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin {}
impl<T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin> Stream for T {}

impl Box_ {
    pub(crate) fn new(link: Link) -> Self {
        Self(BufReader::new(Box::new(link.into_stream())))
    }

    pub(crate) async fn run(&mut self, command: &str) -> Output {
        let line = format!("{}\n", command.replace('\n', "\u{1}"));
        self.0.get_mut().write_all(line.as_bytes()).await.unwrap();
        let mut header = String::new();
        self.0.read_line(&mut header).await.unwrap();
        let (length, code) = header.trim().split_once(' ').expect("the sandbox died");
        let mut text = vec![0; length.parse().unwrap()];
        self.0.read_exact(&mut text).await.unwrap();
        Output {
            code: code.parse().unwrap(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }
}
