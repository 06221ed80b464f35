//! How much a warden may leave with us.
//!
//! yamux grants every stream a window, and a link has room for a thousand streams: a warden that fills
//! them all would have a quarter of a gigabyte of the gateway, and so would each of the others. Here the
//! bytes that have come and that nobody has taken are counted, for each link and for all. A link that
//! holds its share is not read any more until some of it was taken, which holds up that sandbox alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use super::MAX_STREAMS;

/// What one link may hold at most: many times what callers leave unread.
const LINK: usize = 16 << 20;
/// What every link may hold, whatever others hold: the longest answer fits in, so that nobody is held up
/// by what others do.
const ALWAYS: usize = 2 << 20;
/// What all links of this process may hold together, beyond that. No link gets more than a quarter of
/// what is left of it.
const ALL: usize = 256 << 20;

static HELD_BY_ALL: AtomicUsize = AtomicUsize::new(0);

/// The bytes of one link that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBudget {
    state: Mutex<ReceiveState>,
}

#[derive(Debug, Default)]
struct ReceiveState {
    held: usize,
    streams: HashMap<u32, usize>,
    position: FramePosition,
    /// Whoever reads the link, while it holds too much.
    paused: Option<Waker>,
}

/// Where in yamux's framing the next byte of the link belongs.
#[derive(Debug)]
enum FramePosition {
    Header { bytes: [u8; HEADER], filled: usize },
    Body { stream: u32, left: usize },
}

impl Default for FramePosition {
    fn default() -> Self {
        Self::Header {
            bytes: [0; HEADER],
            filled: 0,
        }
    }
}

/// Version, type, two of flags, four of stream, four of length.
const HEADER: usize = 12;
const DATA: u8 = 0;
const WINDOW_UPDATE: u8 = 1;
/// The flag by which a stream begins.
const SYN: u8 = 1;
/// The flag by which it is reset.
const RST: u8 = 8;

/// One stream's part; what is left of it is given up when dropped.
#[derive(Debug)]
pub(super) struct StreamShare {
    received: Arc<ReceiveBudget>,
    stream: u32,
}

impl ReceiveBudget {
    /// False where the link holds its share; then whoever asked is woken when some was taken.
    pub(super) fn has_room(&self, cx: &Context<'_>) -> bool {
        let mut state = self.state();
        let left = ALL.saturating_sub(HELD_BY_ALL.load(Ordering::Relaxed));
        let room = state.held < (left / 4).clamp(ALWAYS, LINK);
        // Noted under the lock under which it was found full, so that nothing can be taken in
        // between unseen.
        state.paused = (!room).then(|| cx.waker().clone());
        room
    }

    /// These bytes of the link are handed to yamux.
    pub(super) fn note(&self, bytes: &[u8]) {
        self.state().note(bytes);
    }

    /// From now on what comes on this stream counts.
    pub(super) fn share(self: &Arc<Self>, stream: u32) -> StreamShare {
        self.state().streams.entry(stream).or_default();
        StreamShare {
            received: Arc::clone(self),
            stream,
        }
    }

    fn give_back(&self, stream: u32, bytes: Option<usize>) {
        let mut state = self.state();
        let bytes = match (bytes, state.streams.get_mut(&stream)) {
            (Some(bytes), Some(held)) => {
                let bytes = bytes.min(*held);
                *held -= bytes;
                bytes
            }
            (None, _) => state.streams.remove(&stream).unwrap_or_default(),
            (Some(_), None) => 0,
        };
        state.held -= bytes;
        HELD_BY_ALL.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(paused) = state.paused.take() {
            // Woken without the lock, which whoever wakes up takes at once.
            drop(state);
            paused.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, ReceiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReceiveState {
    fn note(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // Read along with yamux: it tells nobody how much it has put by for a stream.
            match &mut self.position {
                FramePosition::Header {
                    bytes: header,
                    filled,
                } => {
                    let more = bytes.len().min(HEADER - *filled);
                    header[*filled..*filled + more].copy_from_slice(&bytes[..more]);
                    *filled += more;
                    bytes = &bytes[more..];
                    if *filled == HEADER {
                        let header = *header;
                        self.begin(header);
                    }
                }
                FramePosition::Body { stream, left } => {
                    let more = bytes.len().min(*left);
                    let stream = *stream;
                    *left -= more;
                    bytes = &bytes[more..];
                    if *left == 0 {
                        self.position = FramePosition::default();
                    }
                    self.hold(stream, more);
                }
            }
        }
    }

    fn begin(&mut self, header: [u8; HEADER]) {
        let [_, kind, _, flags, a, b, c, d, length @ ..] = header;
        let stream = u32::from_be_bytes([a, b, c, d]);
        let left = u32::from_be_bytes(length) as usize;
        // Only what begins a stream for yamux too: any other stream never comes to anybody here, and
        // what is noted for it would stay noted. Where yamux has all the streams it takes, it ends
        // the link.
        let begins = matches!(kind, DATA | WINDOW_UPDATE) && flags & (SYN | RST) == SYN;
        if begins && self.streams.len() < MAX_STREAMS {
            // Before anybody here knows of it: its first bytes may come with its first frame.
            self.streams.entry(stream).or_default();
        }
        self.position = match (kind, left) {
            (DATA, 1..) => FramePosition::Body { stream, left },
            _ => FramePosition::default(),
        };
    }

    /// What comes for a stream that is no more is thrown away by yamux.
    fn hold(&mut self, stream: u32, bytes: usize) {
        if let Some(held) = self.streams.get_mut(&stream) {
            *held += bytes;
            self.held += bytes;
            HELD_BY_ALL.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl StreamShare {
    /// So many bytes were taken by whoever they are for.
    pub(super) fn taken(&self, bytes: usize) {
        self.received.give_back(self.stream, Some(bytes));
    }
}

impl Drop for StreamShare {
    fn drop(&mut self) {
        self.received.give_back(self.stream, None);
    }
}

impl Drop for ReceiveBudget {
    fn drop(&mut self) {
        // Streams that began and that nobody here came to know of.
        HELD_BY_ALL.fetch_sub(self.state().held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::time::timeout;

    use super::*;
    use crate::mux::{LinkSide, MuxStream, over};

    const WINDOW: usize = yamux::DEFAULT_CREDIT as usize;

    fn frame(stream: u32, flags: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![0, DATA, 0, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        frame.extend(body);
        frame
    }

    /// A warden that opens every stream it may and fills every window it is given; how many bytes of
    /// that were taken before the link was read no more.
    async fn fill(link: &mut DuplexStream) -> usize {
        let mut written = 0;
        for number in 1..=1000_u32 {
            let bytes = frame(number * 2, SYN, &vec![7; WINDOW]);
            let sent = timeout(Duration::from_secs(60), link.write_all(&bytes)).await;
            match sent {
                Ok(sent) => sent.unwrap(),
                Err(_) => return written,
            }
            written += bytes.len();
        }
        written
    }

    #[tokio::test(start_paused = true)]
    async fn a_warden_that_fills_every_stream_has_a_bounded_part_of_us() {
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let (_opener, driver) = over(ours, LinkSide::Gateway);
        let received = Arc::clone(driver.received());
        let streams: Arc<Mutex<Vec<MuxStream>>> = Arc::default();
        let kept = Arc::clone(&streams);
        let driving = tokio::spawn(driver.run(move |stream| kept.lock().unwrap().push(stream)));
        let written = fill(&mut theirs).await;
        let held = received.state().held;
        assert!(held >= LINK / 2, "{held}: it was read as far as it may be");
        assert!(held <= LINK + WINDOW, "{held} bytes are held");
        assert!(written <= LINK + 2 * WINDOW, "{written} bytes were taken");
        assert!(HELD_BY_ALL.load(Ordering::Relaxed) >= held);

        // What is taken, and what nobody wants any more, makes room again.
        let first = streams.lock().unwrap().remove(0);
        let mut taken = 0;
        while taken < WINDOW {
            let chunk = std::future::poll_fn(|cx| first.poll_chunk(cx)).await;
            taken += chunk.unwrap().unwrap().len();
        }
        let before = received.state().held;
        streams.lock().unwrap().truncate(10);
        assert!(received.state().held < before / 4);
        // A frame was cut in the middle; its rest comes first.
        let mut some = [0; 1024];
        let _ = timeout(Duration::from_secs(1), theirs.read(&mut some)).await;
        drop((theirs, first, streams));
        let _ = driving.await.unwrap();
        // All but the beginning of the frame that was cut in the middle.
        let rest = received.state().held;
        assert!(rest < WINDOW, "{rest} bytes are held for nobody");
    }

    /// yamux makes a stream of none of these, so nobody ever drops one.
    #[tokio::test(start_paused = true)]
    async fn streams_that_never_begin_are_not_noted() {
        const PING: u8 = 2;
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let (opener, driver) = over(ours, LinkSide::Gateway);
        let received = Arc::clone(driver.received());
        let driving = tokio::spawn(driver.run(|_| {}));
        for number in 1..=2000_u32 {
            let mut bytes = frame(number * 2, SYN | RST, &[7; 10]);
            for (kind, flags) in [(WINDOW_UPDATE, SYN | RST), (PING, SYN)] {
                bytes.extend([0, kind, 0, flags]);
                bytes.extend((number * 2).to_be_bytes());
                bytes.extend([0; 4]);
            }
            theirs.write_all(&bytes).await.unwrap();
        }
        // Whatever was sent is read before the link is seen to end.
        drop((theirs, opener));
        let _ = driving.await.unwrap();
        assert_eq!(received.state().streams.len(), 0);
        assert_eq!(received.state().held, 0);
    }

    #[test]
    fn a_link_notes_no_more_streams_than_yamux_takes() {
        let received = ReceiveBudget::default();
        for number in 1..=5000_u32 {
            received.note(&frame(number * 2, SYN, &[]));
        }
        assert_eq!(received.state().streams.len(), MAX_STREAMS);
    }

    /// Links that take whatever they are given, in turn, until none is read any more.
    fn fill_all(links: &[Arc<ReceiveBudget>]) {
        let cx = Context::from_waker(Waker::noop());
        let body = vec![7; WINDOW];
        for number in 1_u32.. {
            let mut open = links.iter().filter(|link| link.has_room(&cx)).peekable();
            if open.peek().is_none() {
                return;
            }
            for link in open {
                link.note(&frame(number * 2, SYN, &body));
            }
        }
    }

    #[test]
    fn all_links_together_have_a_bounded_part_of_us() {
        let cx = Context::from_waker(Waker::noop());
        let links: Vec<Arc<ReceiveBudget>> = (0..300).map(|_| Arc::default()).collect();
        let before = HELD_BY_ALL.load(Ordering::Relaxed);
        // The first of them have all they may have before the others come.
        for link in &links[..30] {
            fill_all(std::slice::from_ref(link));
        }
        let held = HELD_BY_ALL.load(Ordering::Relaxed) - before;
        assert!(held >= ALL / 2, "{held}: there was room for more");
        fill_all(&links);
        let held = HELD_BY_ALL.load(Ordering::Relaxed) - before;
        assert!(
            held <= ALL + links.len() * (ALWAYS + WINDOW),
            "{held} bytes of {} links are held",
            links.len()
        );
        for link in &links {
            assert!(link.state().held >= ALWAYS, "one was held up by the others");
        }
        // Who comes last and holds nothing is read all the same.
        assert!(ReceiveBudget::default().has_room(&cx));
        drop(links);
        assert_eq!(HELD_BY_ALL.load(Ordering::Relaxed), before);
    }

    #[test]
    fn bytes_are_counted_however_they_are_cut() {
        let mut link = frame(1, 0, &[1; 100]);
        link.extend(frame(2, SYN, &[2; 50]));
        link.extend([0, 1, 0, 0, 0, 0, 0, 1, 0, 4, 0, 0]);
        link.extend(frame(3, 0, &[3; 70]));
        link.extend(frame(1, 0, &[1; 5]));
        for size in 1..link.len() {
            let received = Arc::new(ReceiveBudget::default());
            let one = received.share(1);
            for piece in link.chunks(size) {
                received.note(piece);
            }
            assert_eq!(received.state().held, 155, "nobody has stream 3");
            one.taken(100);
            assert_eq!(received.state().held, 55);
            drop(one);
            assert_eq!(received.state().held, 50);
        }
    }
}
