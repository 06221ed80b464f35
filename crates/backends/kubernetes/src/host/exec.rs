//! One exec in a container: a websocket whose messages begin with the number of their channel.
//!
//! The fifth version of the protocol and the fourth differ in how a client closes stdin, which nothing here
//! does. How an exec ended is not believed: the API server says `Success` when the node's kubelet dies under
//! it. So what has to be known is said on stdout by the program itself, and every end is the end of a link.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{Method, StatusCode, Upgraded};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::client::{ClusterClient, ObjectKind, read};
use super::trouble::{ClusterTrouble, StatusObject, one_line};

const PROTOCOLS: &str = "v5.channel.k8s.io, v4.channel.k8s.io";
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

/// What one message may carry towards us. The API server cuts at 32 KiB.
const LONGEST_MESSAGE: usize = 1 << 20;
/// The client's own buffers: with those of 1 KiB that others have, bulk is three times slower.
const BUFFER: usize = 256 << 10;
/// Nodes answer an exec within milliseconds; one under load takes longer.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(20);
/// What of a program's complaints is kept.
const MOST_WORDS: usize = 2000;

type Socket = WebSocketStream<Upgraded>;

/// One exec that was begun.
pub(crate) struct ExecStream {
    sink: ExecSink,
    source: ExecSource,
}

pub(crate) struct ExecSink(SplitSink<Socket, Message>);

pub(crate) struct ExecSource {
    stream: SplitStream<Socket>,
    /// What it said on stderr, and how the cluster says it ended.
    words: VecDeque<u8>,
}

/// What comes from an exec.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExecEvent {
    /// Bytes of stdout; none where it was a sign of life.
    Out(Bytes),
    Ended,
}

impl ExecStream {
    pub(crate) async fn begin(
        cluster: &ClusterClient,
        pod: &str,
        container: &str,
        words: &[String],
    ) -> Result<Self, ClusterTrouble> {
        let begun = timeout(
            UPGRADE_TIMEOUT,
            Self::upgrade(cluster, pod, container, words),
        )
        .await;
        begun.unwrap_or_else(|_| Err(ClusterTrouble::lost("the exec was not answered")))
    }

    async fn upgrade(
        cluster: &ClusterClient,
        pod: &str,
        container: &str,
        words: &[String],
    ) -> Result<Self, ClusterTrouble> {
        let mut url = cluster.url(ObjectKind::Pod, &[pod, "exec"]);
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("container", container);
            for stream in ["stdin", "stdout", "stderr"] {
                query.append_pair(stream, "true");
            }
            for word in words {
                query.append_pair("command", word);
            }
        }
        let key = generate_key();
        let request = cluster
            .request(Method::GET, url)
            .await?
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "websocket")
            .header(SEC_WEBSOCKET_VERSION, "13")
            .header(SEC_WEBSOCKET_PROTOCOL, PROTOCOLS)
            .header(SEC_WEBSOCKET_KEY, &key);
        let response = cluster.send(request).await?;
        let status = response.status();
        if status != StatusCode::SWITCHING_PROTOCOLS {
            let trouble = ClusterTrouble::of(status, &read(response).await?);
            if matches!(trouble, ClusterTrouble::Unauthenticated) {
                cluster.access.credential.forget().await;
            }
            return Err(trouble);
        }
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let accepted = header(SEC_WEBSOCKET_ACCEPT) == Some(&*derive_accept_key(key.as_bytes()));
        let spoken = header(SEC_WEBSOCKET_PROTOCOL).unwrap_or_default();
        if !accepted || !PROTOCOLS.split(", ").any(|known| known == spoken) {
            return Err(ClusterTrouble::Refused {
                said: format!("an exec of a kind that is not known ({})", one_line(spoken)),
            });
        }
        let stream = response
            .upgrade()
            .await
            .map_err(|error| ClusterTrouble::lost(error.without_url().to_string()))?;
        let bounds = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(0)
            .max_write_buffer_size(4 * BUFFER)
            .max_message_size(Some(LONGEST_MESSAGE))
            .max_frame_size(Some(LONGEST_MESSAGE));
        let socket = WebSocketStream::from_raw_socket(stream, Role::Client, Some(bounds)).await;
        let (sink, stream) = socket.split();
        Ok(Self {
            sink: ExecSink(sink),
            source: ExecSource {
                stream,
                words: VecDeque::new(),
            },
        })
    }

    pub(crate) fn split(self) -> (ExecSink, ExecSource) {
        (self.sink, self.source)
    }
}

impl ExecSink {
    /// To stdin; `false` where nobody takes it any more.
    pub(crate) async fn write(&mut self, pieces: &[&[u8]]) -> bool {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let mut message = Vec::with_capacity(1 + length);
        message.push(STDIN);
        for piece in pieces {
            message.extend_from_slice(piece);
        }
        self.0.send(Message::Binary(message.into())).await.is_ok()
    }

    /// Asks the API server for a sign of life.
    pub(crate) async fn ping(&mut self) -> bool {
        self.0.send(Message::Ping(Bytes::new())).await.is_ok()
    }

    pub(crate) async fn close(&mut self) {
        let _ = self.0.close().await;
    }
}

impl ExecSource {
    pub(crate) async fn next(&mut self) -> ExecEvent {
        loop {
            let mut bytes = match self.stream.next().await {
                Some(Ok(Message::Binary(bytes))) => bytes,
                Some(Ok(Message::Pong(_) | Message::Ping(_))) => {
                    return ExecEvent::Out(Bytes::new());
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return ExecEvent::Ended,
                Some(Ok(_)) => continue,
            };
            if bytes.is_empty() {
                continue;
            }
            let channel = bytes.split_to(1)[0];
            match channel {
                STDOUT => return ExecEvent::Out(bytes),
                STDERR => self.hear(&bytes),
                STATUS => {
                    let status: StatusObject = serde_json::from_slice(&bytes).unwrap_or_default();
                    if status.status != "Success" {
                        self.hear(b" ");
                        self.hear(status.message.as_bytes());
                    }
                    return ExecEvent::Ended;
                }
                _ => {}
            }
        }
    }

    fn hear(&mut self, words: &[u8]) {
        self.words.extend(words);
        let over = self.words.len().saturating_sub(MOST_WORDS);
        self.words.drain(..over);
    }

    /// What it said besides, in one line.
    pub(crate) fn words(&self) -> String {
        let words: Vec<u8> = self.words.iter().copied().collect();
        one_line(&String::from_utf8_lossy(&words))
    }
}
