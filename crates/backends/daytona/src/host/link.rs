//! The link: bytes through the terminal, for as long as somebody holds the other end.

use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use hermetic_sandbox::{BackendError, WardenLink};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::terminal::{self, DaytonaTerminalLink, ReachError, TerminalSocket, message};
use super::toolbox::DaytonaToolbox;
use crate::frame::{
    self, BEAT_INTERVAL, CREDIT, FrameReader, LONGEST_FRAME, LONGEST_SILENCE, LinkFrame,
};

/// How much waits on its way through this process.
const CAPACITY: usize = 256 << 10;
/// How long a terminal's end is waited for when the link is over.
const FAREWELL: Duration = Duration::from_secs(20);
/// Also of a sandbox that may be idle for hours.
const LONGEST_TOUCH_PAUSE: Duration = Duration::from_secs(300);

/// `auto_stop` is the provider's own idle time: it counts requests, and a link is none.
pub(crate) async fn reach(
    toolbox: &DaytonaToolbox,
    auto_stop: Duration,
) -> Result<WardenLink, ReachError> {
    let terminal = terminal::open(toolbox).await?;
    let (ours, theirs) = tokio::io::duplex(CAPACITY);
    tokio::spawn(hold(toolbox.clone(), terminal, ours, auto_stop));
    Ok(WardenLink::new(theirs))
}

impl ReachError {
    pub(crate) fn at(self, step: &str) -> BackendError {
        match self {
            Self::Trouble(trouble) => trouble.at(step),
            nobody @ Self::Nobody { .. } => BackendError::failed(step, nobody),
        }
    }
}

/// Ends with whichever side ends first, and takes the terminal along.
async fn hold(
    toolbox: DaytonaToolbox,
    terminal: DaytonaTerminalLink,
    pipe: DuplexStream,
    auto_stop: Duration,
) {
    let DaytonaTerminalLink { socket, id, rest } = terminal;
    let (sink, stream) = socket.split();
    let (from_us, to_us) = tokio::io::split(pipe);
    // As many as may be on their way: whoever reports one as arrived never waits for room.
    let (arrived, arrivals) = mpsc::channel(usize::from(CREDIT));
    // Whichever ends takes the others along: half a link is of no use to anybody.
    tokio::select! {
        () = hear(stream, rest, to_us, arrived) => {}
        () = tell(sink, from_us, arrivals) => {}
        () = stay_in_use(&toolbox, auto_stop) => {}
    }
    // Our program there would notice by itself, a minute later.
    let _ = timeout(FAREWELL, toolbox.end_terminal(&id)).await;
}

/// From the terminal to whoever holds the link. Each piece is acknowledged when it was taken.
async fn hear(
    mut stream: SplitStream<TerminalSocket>,
    rest: Vec<u8>,
    mut pipe: WriteHalf<DuplexStream>,
    arrived: mpsc::Sender<()>,
) {
    let mut frames = FrameReader::default();
    // What came together with the greeting belongs to the link.
    frames.push(&rest);
    loop {
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some(LinkFrame::Data(bytes))) => {
                    // Acknowledged only when it was taken here: that is what holds back a warden
                    // with a slow reader.
                    let taken = pipe.write_all(&bytes).await;
                    if taken.is_err() || arrived.send(()).await.is_err() {
                        return;
                    }
                }
                Ok(Some(LinkFrame::Beat | LinkFrame::Ack(_))) => {}
                Err(error) => return tracing::warn!(%error, "a link to Daytona is cut"),
            }
        }
        match timeout(LONGEST_SILENCE, stream.next()).await {
            Ok(Some(Ok(Message::Binary(bytes)))) => frames.push(&bytes),
            Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) | Err(_) => return,
            Ok(Some(Ok(_))) => {}
        }
    }
}

/// From whoever holds the link to the terminal.
async fn tell(
    mut sink: SplitSink<TerminalSocket, Message>,
    mut pipe: ReadHalf<DuplexStream>,
    mut arrivals: mpsc::Receiver<()>,
) {
    let mut beat = interval(BEAT_INTERVAL);
    // After a wait one beat is enough, and not all that were missed at once.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut buffer = vec![0; LONGEST_FRAME];
    loop {
        // Each of them loses nothing when it is dropped for another: a read takes nothing before it
        // is ready.
        let bytes = tokio::select! {
            read = pipe.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return drop(sink.close().await),
                Ok(read) => frame::data(&buffer[..read]),
            },
            Some(()) = arrivals.recv() => {
                let mut count = 1;
                while arrivals.try_recv().is_ok() {
                    count += 1;
                }
                LinkFrame::Ack(count).to_bytes()
            }
            _ = beat.tick() => LinkFrame::Beat.to_bytes(),
        };
        if sink.send(message(bytes)).await.is_err() {
            return;
        }
    }
}

/// While the link holds, the provider does not take the sandbox for idle.
async fn stay_in_use(toolbox: &DaytonaToolbox, auto_stop: Duration) {
    // A third of the time, so that two that are lost do not stop the sandbox.
    let pause = (auto_stop / 3).min(LONGEST_TOUCH_PAUSE);
    loop {
        sleep(pause).await;
        if let Err(trouble) = toolbox.host.service.touch(&toolbox.sandbox).await {
            tracing::debug!(%trouble, "Daytona was not told that a sandbox is in use");
        }
    }
}
