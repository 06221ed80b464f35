//! Many streams over one, by yamux. Nothing outside this module knows which multiplexer it is.

mod plug;
mod received;
mod stream;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use yamux::{Config, Connection, ConnectionError, Mode};

use crate::protocol::MAX_DATA;
use crate::protocol::frame::HEADER;
use plug::CountedIo;
use received::ReceiveBudget;
pub(crate) use stream::{MuxStream, StreamError};

/// Streams on one link, both directions together. yamux ends the whole link beyond it, so callers
/// keep well below: see [`MAX_CALLS`] and [`MAX_RELAYS`].
const MAX_STREAMS: usize = 1024;
/// Calls the gateway has open at once on one link.
#[cfg(feature = "client")]
pub(crate) const MAX_CALLS: usize = 384;
/// Accepted connections the warden relays at once on one link.
#[cfg(feature = "serve")]
pub(crate) const MAX_RELAYS: usize = 384;
/// What fast streams may get beyond the 256 KiB that each is entitled to.
const SPARE_WINDOW: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkSide {
    #[cfg(feature = "client")]
    Gateway,
    #[cfg(any(feature = "serve", feature = "stand-in"))]
    Warden,
}

#[derive(Debug, Error)]
#[error("the multiplexed link failed")]
pub(crate) struct MuxError(#[from] ConnectionError);

/// Asks the driver for new streams.
#[derive(Clone, Debug)]
pub(crate) struct StreamOpener(mpsc::Sender<oneshot::Sender<MuxStream>>);

/// Moves the bytes; must be polled for anything to happen.
pub(crate) struct MuxDriver<T> {
    connection: Connection<CountedIo<T>>,
    asked: mpsc::Receiver<oneshot::Sender<MuxStream>>,
    waiting: Option<oneshot::Sender<MuxStream>>,
    received: Arc<ReceiveBudget>,
}

pub(crate) fn over<T: AsyncRead + AsyncWrite + Unpin>(
    io: T,
    side: LinkSide,
) -> (StreamOpener, MuxDriver<T>) {
    let mut config = Config::default();
    // More than is ever held: what a link may leave with us is counted, see [`received`].
    config.set_max_connection_receive_window(None);
    config.set_max_num_streams(MAX_STREAMS);
    config.set_max_connection_receive_window(Some(
        MAX_STREAMS * yamux::DEFAULT_CREDIT as usize + SPARE_WINDOW,
    ));
    config.set_split_send_size(MAX_DATA + HEADER);
    let mode = match side {
        #[cfg(feature = "client")]
        LinkSide::Gateway => Mode::Client,
        #[cfg(any(feature = "serve", feature = "stand-in"))]
        LinkSide::Warden => Mode::Server,
    };
    let (ask, asked) = mpsc::channel(16);
    let received = Arc::new(ReceiveBudget::default());
    let driver = MuxDriver {
        connection: Connection::new(CountedIo::new(io, Arc::clone(&received)), config, mode),
        asked,
        waiting: None,
        received,
    };
    (StreamOpener(ask), driver)
}

impl StreamOpener {
    /// `None` when the link is gone.
    pub(crate) async fn open(&self) -> Option<MuxStream> {
        let (give, take) = oneshot::channel();
        self.0.send(give).await.ok()?;
        take.await.ok()
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> MuxDriver<T> {
    #[cfg(test)]
    pub(crate) fn received(&self) -> &Arc<ReceiveBudget> {
        &self.received
    }

    /// Runs until the link ends, handing over each stream that the other side opens.
    pub(crate) async fn run(mut self, inbound: impl FnMut(MuxStream)) -> Result<(), MuxError> {
        self.drive(inbound).await
    }

    /// The same for who has something to say afterwards.
    pub(crate) async fn drive(
        &mut self,
        mut inbound: impl FnMut(MuxStream),
    ) -> Result<(), MuxError> {
        poll_fn(|cx| self.poll(cx, &mut inbound)).await
    }

    /// Tells the other side that the link is over. Bytes may lie in a pipe that somebody else keeps open, as an
    /// engine does with a container's; the end of the stream alone would then never arrive.
    #[cfg(feature = "serve")]
    pub(crate) async fn say_goodbye(&mut self) -> Result<(), MuxError> {
        Ok(poll_fn(|cx| self.connection.poll_close(cx)).await?)
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        inbound: &mut impl FnMut(MuxStream),
    ) -> Poll<Result<(), MuxError>> {
        loop {
            // Polled even when nobody expects a stream: this is also what moves the bytes of all
            // others.
            match self.connection.poll_next_inbound(cx) {
                Poll::Ready(Some(Ok(stream))) => {
                    inbound(MuxStream::new(stream, &self.received));
                    continue;
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending => {}
            }
            // One request at a time. Taken out of the queue while the connection is not ready, it
            // is kept and not lost.
            if self.waiting.is_none() {
                match self.asked.poll_recv(cx) {
                    Poll::Ready(Some(give)) => self.waiting = Some(give),
                    // Every handle is gone; streams that are still open live on.
                    Poll::Ready(None) | Poll::Pending => return Poll::Pending,
                }
            }
            match self.connection.poll_new_outbound(cx) {
                Poll::Ready(Ok(stream)) => {
                    if let Some(give) = self.waiting.take() {
                        // A caller that lost interest drops the stream, which resets it.
                        let _ = give.send(MuxStream::new(stream, &self.received));
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
