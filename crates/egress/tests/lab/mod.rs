//! A proxy with a lying resolver, and everything a test wants to see of it.

pub(crate) mod origin;
pub(crate) mod tls;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_egress::{
    CertificateAuthority, CompiledRules, ConversationEgress, Credential, EgressEntry, EgressLimits,
    EgressRecorder, HostName, Proxy, Resolver, RulesText, TrustRoots,
};
use hermetic_types::ConversationKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Far more than anything here takes; only a hang reaches it.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Lab {
    pub proxy: Proxy,
    pub conversation: Arc<ConversationEgress>,
    pub resolver: Arc<Liar>,
    pub journal: Arc<Journal>,
    pub stop: CancellationToken,
    tasks: TaskTracker,
    panicked: Arc<AtomicBool>,
}

#[derive(Default)]
pub(crate) struct Setup {
    pub rules: RulesText,
    pub limits: EgressLimits,
    pub credentials: Vec<Credential>,
    pub interception: Option<(Arc<CertificateAuthority>, TrustRoots)>,
}

impl Lab {
    pub(crate) fn allowing(rules: &[&str]) -> Self {
        Self::new(Setup {
            rules: RulesText::allowing(rules.iter().copied()),
            ..Setup::default()
        })
    }

    pub(crate) fn new(setup: Setup) -> Self {
        Self::changed(setup, |proxy| proxy)
    }

    pub(crate) fn changed(setup: Setup, change: impl FnOnce(Proxy) -> Proxy) -> Self {
        let (resolver, journal) = (Arc::new(Liar::default()), Arc::new(Journal::default()));
        let mut proxy = Proxy::new(setup.limits.clone(), resolver.clone(), journal.clone());
        if let Some((authority, roots)) = setup.interception {
            proxy = proxy.intercepting(authority, &roots).unwrap();
        }
        let conversation = ConversationEgress::new(
            ConversationKey::new("agent:main:test:dm:1"),
            CompiledRules::compile(&setup.rules).unwrap(),
            setup.credentials,
            &setup.limits,
        );
        let proxy = change(proxy);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        Self {
            proxy,
            conversation,
            resolver,
            journal,
            stop,
            tasks,
            panicked: Arc::default(),
        }
    }

    /// A connection as a warden would relay it.
    pub(crate) fn dial(&self) -> DuplexStream {
        self.dial_as(&self.conversation)
    }

    pub(crate) fn dial_as(&self, conversation: &Arc<ConversationEgress>) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (proxy, conversation, stop) =
            (self.proxy.clone(), conversation.clone(), self.stop.clone());
        let watch = Watch(self.panicked.clone());
        self.tasks.spawn(async move {
            let _watch = watch;
            proxy.handle(theirs, conversation, stop).await;
        });
        ours
    }

    /// Sends a whole request and reads until the proxy closes.
    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> String {
        let mut stream = self.dial();
        stream.write_all(request.as_ref()).await.unwrap();
        read_all(&mut stream).await
    }

    /// Opens a tunnel that must be granted.
    pub(crate) async fn tunnel(&self, target: &str) -> DuplexStream {
        let mut stream = self.dial();
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        stream
    }

    /// Waits until every connection has ended, and tells what was written down.
    pub(crate) async fn finished(&self) -> Vec<EgressEntry> {
        self.tasks.close();
        timeout(TEST_TIMEOUT, self.tasks.wait())
            .await
            .expect("a connection never ended");
        self.tasks.reopen();
        self.journal.entries()
    }
}

/// Notices a panic that would otherwise die quietly with its task.
struct Watch(Arc<AtomicBool>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(
                !self.panicked.load(Ordering::SeqCst),
                "a connection panicked"
            );
        }
    }
}

pub(crate) async fn read_all(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes))
        .await
        .expect("the proxy hangs")
        .unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let byte = timeout(TEST_TIMEOUT, stream.read_u8())
            .await
            .expect("the proxy hangs");
        match byte {
            Ok(byte) => bytes.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Answers as told, one answer after the other, the last one for ever; loopback for the rest.
#[derive(Default)]
pub(crate) struct Liar {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Liar {
    pub(crate) fn tell(&self, host: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        let answers = answers.iter().map(parse).collect();
        self.answers
            .lock()
            .unwrap()
            .insert(host.to_owned(), answers);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Liar {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(host.to_string());
            let mut answers = self.answers.lock().unwrap();
            match answers.get_mut(host.as_str()) {
                None => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
                Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
                Some(answers) => match answers.first() {
                    Some(answer) => Ok(answer.clone()),
                    None => Err(io::Error::other("no such name")),
                },
            }
        })
    }
}

#[derive(Default)]
pub(crate) struct Journal(Mutex<Vec<EgressEntry>>);

impl Journal {
    pub(crate) fn entries(&self) -> Vec<EgressEntry> {
        self.0.lock().unwrap().clone()
    }
}

impl EgressRecorder for Journal {
    fn write(&self, entry: &EgressEntry) {
        self.0.lock().unwrap().push(entry.clone());
    }
}

/// A rule that lets `host` live on loopback at this port.
pub(crate) fn local(host: &str, at: SocketAddr) -> String {
    format!("{host}:{} in 127.0.0.0/8", at.port())
}
