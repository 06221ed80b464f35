//! Bytes from one connection to the other and back, until both have said all they had.
//!
//! One future for both directions, on the thread's shared buffer or its pipes: an idle tunnel holds its
//! two sockets, one timer and nothing else.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::account::BudgetSpent;
use crate::audit::ByteMeter;
use crate::credential::{FrameRedactor, UnsearchableFrames};
use crate::splice::SplicePipe;
use crate::stream::{BufferedStream, PeekedStream, with_scratch};

/// The reason why a relay ended before both sides were done.
#[derive(Debug, Error)]
pub(crate) enum RelayError {
    #[error("nothing was said for {} s", after.as_secs())]
    Idle { after: Duration },
    #[error(transparent)]
    Budget(#[from] BudgetSpent),
    #[error(transparent)]
    Unsearchable(#[from] UnsearchableFrames),
    #[error("the connection broke")]
    Broken(#[from] io::Error),
}

/// Relays until both sides have closed their writing end.
pub(crate) async fn relay(
    client: PeekedStream,
    upstream: PeekedStream,
    meter: &ByteMeter,
    idle: Duration,
    redactor: Option<FrameRedactor>,
) -> Result<(), RelayError> {
    ByteRelay {
        client,
        upstream,
        up: RelayFlow::default(),
        down: RelayFlow {
            redactor,
            ..RelayFlow::default()
        },
        meter,
        idle,
        timer: Box::pin(sleep(idle)),
        active: Instant::now(),
        answered: false,
    }
    .await
}

/// The future that relays both directions of a tunnel.
struct ByteRelay<'a> {
    client: PeekedStream,
    upstream: PeekedStream,
    up: RelayFlow,
    down: RelayFlow,
    meter: &'a ByteMeter,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    active: Instant,
    /// Something has come back: the client's port is told so, once.
    answered: bool,
}

/// The state of one direction.
#[derive(Default)]
struct RelayFlow {
    /// Read and not yet written: only while the receiver is slower than the sender.
    left: Vec<u8>,
    written: usize,
    /// Of what lies ready at the sender: what the meter knows of already.
    counted: usize,
    redactor: Option<FrameRedactor>,
    state: FlowState,
    needs_flush: bool,
    /// Much came at once: worth a pipe, where both ends are sockets.
    bulky: bool,
    /// With bytes in it that the receiver has not taken yet.
    channel: Option<SplicePipe>,
}

/// Whether a direction still carries bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FlowState {
    #[default]
    Open,
    Closing,
    Closed,
}

/// The direction of a flow, seen from the sandbox.
#[derive(Clone, Copy)]
enum FlowDirection {
    Up,
    Down,
}

/// A read of this size says that more will follow; one that moved less says that it did not.
const MUCH: usize = 64 * 1024;
const LITTLE: usize = 16 * 1024;

/// Rounds in one poll before others get their turn.
const ROUNDS: usize = 16;

impl Future for ByteRelay<'_> {
    type Output = Result<(), RelayError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let before = this.meter.total();
        let up = this.up.poll(
            cx,
            &mut this.client,
            &mut this.upstream,
            this.meter,
            FlowDirection::Up,
        )?;
        let down = this.down.poll(
            cx,
            &mut this.upstream,
            &mut this.client,
            this.meter,
            FlowDirection::Down,
        )?;
        // Both: one who has closed its writing end may still be waiting for a long answer.
        if up.is_ready() && down.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if this.meter.total() != before {
            this.active = Instant::now();
            if !this.answered && this.meter.has_come_down() {
                this.answered = true;
                this.client.request_came();
            }
        }
        this.poll_idle(cx)
    }
}

impl ByteRelay<'_> {
    /// The timer is only moved when it fires: traffic costs no timer work.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RelayError>> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let deadline = self.active + self.idle;
            if deadline <= Instant::now() {
                return Poll::Ready(Err(RelayError::Idle { after: self.idle }));
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

impl RelayFlow {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut PeekedStream,
        to: &mut PeekedStream,
        meter: &ByteMeter,
        direction: FlowDirection,
    ) -> Poll<Result<(), RelayError>> {
        for _ in 0..ROUNDS {
            // First, and nothing is read before it is gone: a slow receiver holds back its sender,
            // and at most one read lies with us.
            ready!(self.poll_left(cx, to))?;
            match self.state {
                FlowState::Closed => return Poll::Ready(Ok(())),
                FlowState::Closing => {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx)).or_else(not_connected)?;
                    self.state = FlowState::Closed;
                    return Poll::Ready(Ok(()));
                }
                FlowState::Open => {}
            }
            match self.poll_step(cx, from, to, meter, direction) {
                Poll::Ready(result) => result?,
                Poll::Pending => {
                    // Flushed only when there is nothing more to pass on: TLS would make a record,
                    // and a packet, of every piece.
                    if self.needs_flush {
                        self.needs_flush = Pin::new(&mut *to).poll_flush(cx)?.is_pending();
                    }
                    return Poll::Pending;
                }
            }
        }
        // Not at its end, and nobody else would wake it: a fast pair gives the others of this
        // thread their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_step(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut PeekedStream,
        to: &mut PeekedStream,
        meter: &ByteMeter,
        direction: FlowDirection,
    ) -> Poll<Result<(), RelayError>> {
        // Only where nobody has to see the bytes: no credential to be taken out, nothing read
        // ahead, and the meter is told by the kernel's count.
        if self.bulky
            && self.redactor.is_none()
            && from.ahead().is_empty()
            && let (Some(from), Some(to)) = (from.tcp(), to.tcp())
            && let Some(channel) = SplicePipe::take()
        {
            return self.poll_moved(cx, from, to, channel, meter, direction);
        }
        if self.redactor.is_none()
            && let Some(from) = from.buffered()
        {
            return self.poll_handed(cx, from, to, meter, direction);
        }
        self.poll_once(cx, from, to, meter, direction)
    }

    /// What lies ready in memory, from where it is; what the receiver does not take stays there.
    fn poll_handed(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut dyn BufferedStream,
        to: &mut PeekedStream,
        meter: &ByteMeter,
        direction: FlowDirection,
    ) -> Poll<Result<(), RelayError>> {
        let mut from = Pin::new(from);
        let ready = ready!(from.as_mut().poll_fill_buf(cx))?;
        if ready.is_empty() {
            self.state = FlowState::Closing;
            return Poll::Ready(Ok(()));
        }
        // What was counted and not taken is offered again, and must not be paid for twice.
        direction.count(meter, ready.len() - self.counted)?;
        self.counted = ready.len();
        let written = ready!(Pin::new(to).poll_write(cx, ready))?;
        if written == 0 {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into()));
        }
        from.consume(written);
        self.counted -= written;
        self.needs_flush = true;
        Poll::Ready(Ok(()))
    }

    /// What there is, through a pipe.
    fn poll_moved(
        &mut self,
        cx: &mut Context<'_>,
        from: &TcpStream,
        to: &TcpStream,
        mut channel: SplicePipe,
        meter: &ByteMeter,
        direction: FlowDirection,
    ) -> Poll<Result<(), RelayError>> {
        let moved = match channel.poll_fill(cx, from) {
            Poll::Ready(moved) => moved?,
            Poll::Pending => {
                channel.give_back();
                return Poll::Pending;
            }
        };
        self.bulky = moved >= LITTLE;
        if moved == 0 {
            channel.give_back();
            self.state = FlowState::Closing;
            return Poll::Ready(Ok(()));
        }
        // They are in our pipe and not yet with the receiver, so that a budget that ends here lets
        // none of them out.
        direction.count(meter, moved)?;
        match channel.poll_drain(cx, to) {
            Poll::Ready(drained) => {
                drained?;
                channel.give_back();
            }
            Poll::Pending => self.channel = Some(channel),
        }
        Poll::Ready(Ok(()))
    }

    /// One read, and as much of it written as the receiver takes at once.
    fn poll_once(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut PeekedStream,
        to: &mut PeekedStream,
        meter: &ByteMeter,
        direction: FlowDirection,
    ) -> Poll<Result<(), RelayError>> {
        with_scratch(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(from).poll_read(cx, &mut buffer))?;
            let read = buffer.filled();
            direction.count(meter, read.len())?;
            self.bulky = read.len() >= MUCH;
            if let Some(redactor) = &mut self.redactor {
                // All of it by way of `left`: what the search holds back comes out later, and not
                // as it came in.
                self.left = if read.is_empty() {
                    redactor.finish()
                } else {
                    redactor.push(read)?
                };
                if read.is_empty() {
                    self.state = FlowState::Closing;
                }
                return Poll::Ready(Ok(()));
            }
            if read.is_empty() {
                self.state = FlowState::Closing;
                return Poll::Ready(Ok(()));
            }
            self.needs_flush = true;
            // A receiver may take it in several pieces; only what it does not take now is kept.
            let mut rest = read;
            while !rest.is_empty() {
                match Pin::new(&mut *to).poll_write(cx, rest)? {
                    Poll::Ready(0) => {
                        return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into()));
                    }
                    Poll::Ready(written) => rest = &rest[written..],
                    Poll::Pending => {
                        self.left = rest.to_vec();
                        break;
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    fn poll_left(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut PeekedStream,
    ) -> Poll<Result<(), RelayError>> {
        if let (Some(mut channel), Some(socket)) = (self.channel.take(), to.tcp()) {
            if channel.poll_drain(cx, socket)?.is_pending() {
                self.channel = Some(channel);
                return Poll::Pending;
            }
            channel.give_back();
        }
        while self.written < self.left.len() {
            let part = &self.left[self.written..];
            let written = ready!(Pin::new(&mut *to).poll_write(cx, part))?;
            if written == 0 {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::WriteZero).into()));
            }
            self.written += written;
            self.needs_flush = true;
        }
        if !self.left.is_empty() {
            self.left = Vec::new();
            self.written = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl FlowDirection {
    /// Before the bytes are passed on, so that not one too many is.
    fn count(self, meter: &ByteMeter, bytes: usize) -> Result<(), BudgetSpent> {
        match self {
            Self::Up => meter.up(bytes),
            Self::Down => meter.down(bytes),
        }
    }
}

/// A peer that is already gone has been told.
fn not_connected(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotConnected {
        Ok(())
    } else {
        Err(error)
    }
}
