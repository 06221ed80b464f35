//! Connections that were made inside the sandbox and arrive here.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::warden::{ClientCall, ClientLink};
use super::{ProtocolBreach, WardenCallError};
use crate::mux::MuxStream;
use crate::protocol::frame::{FrameCollector, FrameKind};
use crate::protocol::{
    ListenEndpoint, ListenReply, ListenRequest, WardenReply, WardenRequest, decode,
};

/// Accepted connections nobody has taken yet; further ones are closed.
const BACKLOG: usize = 32;
/// How long a stream that the warden opened may take to say what it is.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// Listens inside the sandbox as long as it lives.
#[derive(Debug)]
pub struct InsideListener {
    /// Ends the listener at the warden's side when it goes.
    _call: ClientCall,
    _place: ListenerEntry,
    port: u16,
    incoming: mpsc::Receiver<RelayStream>,
}

/// The entry that leads a relay to its listener.
#[derive(Debug)]
struct ListenerEntry {
    link: Arc<ClientLink>,
    id: u32,
}

/// One connection. Dropping it closes both directions.
#[derive(Debug)]
pub struct RelayStream {
    stream: MuxStream,
    unread: Bytes,
}

impl InsideListener {
    pub(super) async fn open(
        link: &Arc<ClientLink>,
        endpoint: ListenEndpoint,
        concurrent: u16,
    ) -> Result<Self, WardenCallError> {
        let (give, incoming) = mpsc::channel(BACKLOG);
        let id = link.next_listener.fetch_add(1, Ordering::Relaxed);
        // Entered before it is asked for: a connection may overtake the answer, which is on another
        // stream.
        link.listeners().insert(id, give);
        let place = ListenerEntry {
            link: Arc::clone(link),
            id,
        };
        let request = WardenRequest::Listen(ListenRequest {
            listener: id,
            endpoint,
            concurrent,
        });
        let mut call = link.call(&request).await?;
        match call.reply().await? {
            WardenReply::Listening(ListenReply { port }) => Ok(Self {
                _call: call,
                _place: place,
                port,
                incoming,
            }),
            _ => Err(link.breach(ProtocolBreach::WrongReply)),
        }
    }

    /// The port, for a TCP listener.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The next connection; `None` when the link is gone.
    pub async fn accept(&mut self) -> Option<RelayStream> {
        self.incoming.recv().await
    }
}

impl Drop for ListenerEntry {
    fn drop(&mut self) {
        self.link.listeners().remove(&self.id);
    }
}

/// Finds out which listener a stream that the warden opened belongs to. What belongs to none is
/// closed: the listener may have been dropped a moment ago.
pub(super) async fn greet_relay(link: Arc<ClientLink>, stream: MuxStream) {
    let mut frames = FrameCollector::default();
    // A stream that never says what it is would hold one of the link's streams for ever.
    let Ok(Ok(Some(frame))) = timeout(INTRODUCTION, stream.receive(&mut frames)).await else {
        return;
    };
    if frame.kind != FrameKind::Accepted {
        link.breach(ProtocolBreach::Unexpected(frame.kind));
        return;
    }
    let Ok(listener) = decode::<u32>(&frame.payload, "listener") else {
        return;
    };
    // The first bytes of the connection may have come together with the introduction.
    let unread = frames.into_rest();
    stream.taken(unread.len());
    let relay = RelayStream { stream, unread };
    if let Some(listener) = link.listeners().get(&listener) {
        // Never waited for: a listener whose owner is slow must not keep this task, and its stream,
        // alive.
        let _ = listener.try_send(relay);
    }
}

impl AsyncRead for RelayStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let waiting = ready!(self.as_mut().poll_fill_buf(cx))?;
        let given = buffer.remaining().min(waiting.len());
        buffer.put_slice(&waiting[..given]);
        self.consume(given);
        Poll::Ready(Ok(()))
    }
}

impl AsyncBufRead for RelayStream {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        while this.unread.is_empty() {
            match ready!(this.stream.poll_chunk(cx)) {
                None => return Poll::Ready(Ok(&[])),
                Some(chunk) => this.unread = chunk?,
            }
        }
        Poll::Ready(Ok(&this.unread))
    }

    fn consume(self: Pin<&mut Self>, taken: usize) {
        self.get_mut().unread.advance(taken);
    }
}

impl AsyncWrite for RelayStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_close(cx)
    }
}
