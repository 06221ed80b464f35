//! Connections of our own tools, on a conversation's behalf.
//!
//! A tool that runs in the gateway and not in the sandbox reaches exactly what its conversation may reach:
//! it speaks to the same proxy, over a stream in memory instead of a socket. Rules, questions to people,
//! credentials, the journal and the budget hold for it as they do for a program inside.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hermetic_types::ConversationKey;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::credential::TrustRoots;
use crate::stream::ByteStream;
use crate::{Egress, TrustRootsError};

/// What is on its way between a tool and the proxy, at most.
const PIPE_BYTES: usize = 64 * 1024;

/// The proxy's answer to CONNECT, at most. A refusal says its reasons in the body.
const MOST_ANSWER_BYTES: usize = 16 * 1024;

/// A person may be asked about the host, so the proxy's own patience comes first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Connects where one conversation may connect.
#[derive(Clone)]
pub struct EgressClient {
    egress: Arc<Egress>,
    conversation: ConversationKey,
}

/// A connection by the proxy. Dropping it ends it.
pub struct EgressStream {
    stream: Box<dyn ByteStream>,
    /// Ends the proxy's half.
    _serving: DropGuard,
}

#[derive(Debug, Error)]
pub enum EgressClientError {
    /// The proxy's own words: what was refused, why, and what a person can do.
    #[error("{0}")]
    Refused(String),
    #[error("{0} is no host name that can be connected to")]
    Name(String),
    #[error("{host} did not answer in time")]
    Slow { host: String },
    #[error("the connection to {host} broke: {source}")]
    Broken {
        host: String,
        source: std::io::Error,
    },
    #[error("no certificates to believe")]
    Roots(#[from] TrustRootsError),
}

impl EgressClient {
    pub fn new(egress: Arc<Egress>, conversation: &ConversationKey) -> Self {
        Self {
            egress,
            conversation: conversation.clone(),
        }
    }

    /// How long a person may take to answer whether a host may be reached.
    pub fn longest_question(&self) -> Duration {
        self.egress.proxy().limits().ask
    }

    /// A connection for requests in absolute form, as a proxy takes them for `http://`.
    pub fn plain(&self) -> EgressStream {
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let serving = CancellationToken::new();
        let cut = serving.clone();
        let conversation = self.egress.conversation(&self.conversation);
        let proxy = self.egress.proxy().clone();
        // In a task of its own, as whoever has the near end only reads and writes; it is cut when
        // that end is dropped.
        tokio::spawn(async move {
            let handled = proxy.handle(far, conversation, cut.clone());
            cut.run_until_cancelled(handled).await;
        });
        EgressStream {
            stream: Box::new(near),
            _serving: serving.drop_guard(),
        }
    }

    /// A connection through to the host, with TLS that believes what programs in the sandbox believe.
    pub async fn secure(&self, host: &str, port: u16) -> Result<EgressStream, EgressClientError> {
        let limits = self.egress.proxy().limits();
        let patience = CONNECT_TIMEOUT + limits.ask;
        let slow = || EgressClientError::Slow {
            host: host.to_owned(),
        };
        timeout(patience, self.connect(host, port))
            .await
            .map_err(|_| slow())?
    }

    async fn connect(&self, host: &str, port: u16) -> Result<EgressStream, EgressClientError> {
        let unusable = || EgressClientError::Name(host.chars().take(256).collect());
        let name = ServerName::try_from(host.to_owned()).map_err(|_| unusable())?;
        let broken = |source| EgressClientError::Broken {
            host: host.to_owned(),
            source,
        };
        let EgressStream {
            mut stream,
            _serving,
        } = self.plain();
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.map_err(broken)?;
        let head = read_head(&mut stream).await.map_err(broken)?;
        if !is_success(&head) {
            let mut body = Vec::new();
            let rest = stream.take(MOST_ANSWER_BYTES as u64);
            // What came before it broke says enough.
            let _ = tokio::io::copy(&mut { rest }, &mut body).await;
            return Err(EgressClientError::Refused(refusal(&body)));
        }
        let tls = TlsConnector::from(self.egress.client_tls()?);
        let stream = tls.connect(name, stream).await.map_err(broken)?;
        Ok(EgressStream {
            stream: Box::new(stream),
            _serving,
        })
    }
}

/// Read byte by byte: what follows belongs to TLS.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > MOST_ANSWER_BYTES {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

fn is_success(head: &[u8]) -> bool {
    let status = head.split(|byte| *byte == b' ').nth(1);
    status.is_some_and(|status| status.starts_with(b"2"))
}

fn refusal(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match text.trim() {
        "" => "the proxy refused the connection without a word".to_owned(),
        text => text.to_owned(),
    }
}

/// The certificates of a bundle; one that cannot be read is as good as none.
pub(crate) fn roots(pem: Option<&str>) -> TrustRoots {
    match pem {
        None => TrustRoots::System,
        Some(pem) => {
            let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
            TrustRoots::Only(certificates.flatten().collect())
        }
    }
}

impl AsyncRead for EgressStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for EgressStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.get_mut().stream).poll_shutdown(cx)
    }
}

impl fmt::Debug for EgressClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressClient")
            .field("conversation", &self.conversation)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for EgressStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EgressStream")
    }
}
