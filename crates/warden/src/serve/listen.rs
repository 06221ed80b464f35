//! Sockets inside the sandbox whose connections come out elsewhere.

use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileTypeExt;
use std::rc::Rc;
use std::sync::Arc;

use rustix::fs::Mode;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::client::OpenCall;
use super::state::{WardenState, system};
use crate::mux::{MAX_RELAYS, MuxStream, StreamOpener};
use crate::protocol::frame::FrameKind;
use crate::protocol::{ListenEndpoint, ListenReply, ListenRequest, WardenReply, encode};

/// What an idle connection costs in buffers; a busy one gets more.
const SMALL: usize = 4 << 10;
const LARGE: usize = 64 << 10;

/// A connection of either kind.
trait RelayedSocket: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> RelayedSocket for T {}

/// A socket inside the sandbox whose connections are relayed out.
enum BoundSocket {
    /// The second only for what it does when it goes.
    Unix(
        UnixListener,
        #[expect(dead_code, reason = "removes the socket file on drop")] UnlinkOnDrop,
    ),
    Tcp(TcpListener),
}

/// Removes the socket file when dropped.
struct UnlinkOnDrop(std::path::PathBuf);

/// Listens until the caller closes the call.
pub(crate) async fn listen(
    warden: &Rc<WardenState>,
    opener: StreamOpener,
    mut call: OpenCall,
    request: ListenRequest,
) {
    let door = match BoundSocket::open(&request.endpoint) {
        Ok(door) => door,
        Err(error) => return call.fail(&system("listen", &error)).await,
    };
    let port = door.port();
    let reply = encode(&WardenReply::Listening(ListenReply { port }));
    if call.stream.send(FrameKind::Reply, &reply).await.is_err() {
        return;
    }
    let _counted = CountedListener::new(warden);
    let accepting = std::pin::pin!(accept(warden, &door, opener, &request));
    let closed = std::pin::pin!(call.stream.receive(&mut call.frames));
    futures::future::select(accepting, closed).await;
}

/// One more that listens, as long as this lives: the link may be cut while it does.
struct CountedListener<'a>(&'a WardenState);

impl<'a> CountedListener<'a> {
    fn new(warden: &'a WardenState) -> Self {
        warden.listeners.set(warden.listeners.get() + 1);
        Self(warden)
    }
}

impl Drop for CountedListener<'_> {
    fn drop(&mut self) {
        self.0.listeners.set(self.0.listeners.get() - 1);
    }
}

async fn accept(
    warden: &Rc<WardenState>,
    door: &BoundSocket,
    opener: StreamOpener,
    request: &ListenRequest,
) {
    let slots = Arc::new(Semaphore::new(usize::from(request.concurrent.max(1))));
    // They end with the listening: a connection that nobody took outside would stay for ever.
    let mut relays = JoinSet::new();
    loop {
        while relays.try_join_next().is_some() {}
        // The slot before the connection: what has no slot waits in the kernel's queue, as the
        // request promises.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let Ok(socket) = door.accept().await else {
            // Out of descriptors most likely; asking again at once would only burn the one thread.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        };
        let Some(place) = RelayPermit::take(warden) else {
            // The link as a whole is full; this one is turned away.
            continue;
        };
        let (opener, listener) = (opener.clone(), request.listener);
        relays.spawn_local(async move {
            relay(opener, listener, socket).await;
            drop((slot, place));
        });
    }
}

/// The right to relay one of the connections that the link can carry; dropping it gives it back.
struct RelayPermit(Rc<WardenState>);

impl RelayPermit {
    fn take(warden: &Rc<WardenState>) -> Option<Self> {
        let relays = warden.relays.get();
        (relays < MAX_RELAYS).then(|| {
            warden.relays.set(relays + 1);
            Self(Rc::clone(warden))
        })
    }
}

impl Drop for RelayPermit {
    fn drop(&mut self) {
        self.0.relays.set(self.0.relays.get() - 1);
    }
}

async fn relay(opener: StreamOpener, listener: u32, socket: Box<dyn RelayedSocket>) {
    let Some(stream) = opener.open().await else {
        return;
    };
    if stream
        .send(FrameKind::Accepted, &encode(&listener))
        .await
        .is_err()
    {
        return;
    }
    let (from_inside, to_inside) = tokio::io::split(socket);
    let out = std::pin::pin!(carry_out(from_inside, &stream));
    let back = std::pin::pin!(carry_back(&stream, to_inside));
    // Each direction ends by itself; a failure of one ends both.
    let _ = futures::future::try_join(out, back).await;
}

async fn carry_out(mut from: impl AsyncRead + Unpin, to: &MuxStream) -> io::Result<()> {
    let mut buffer = vec![0; SMALL];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return poll_fn(|cx| to.poll_close(cx)).await;
        }
        to.write_all(&buffer[..read])
            .await
            .map_err(io::Error::other)?;
        if read == buffer.len() {
            buffer.resize(LARGE, 0);
        } else if read < SMALL && buffer.len() > SMALL {
            buffer = vec![0; SMALL];
        }
    }
}

async fn carry_back(from: &MuxStream, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(chunk) = poll_fn(|cx| from.poll_chunk(cx)).await {
        to.write_all(&chunk?).await?;
    }
    to.shutdown().await
}

impl BoundSocket {
    fn open(endpoint: &ListenEndpoint) -> io::Result<Self> {
        match endpoint {
            ListenEndpoint::Tcp(port) => {
                let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, *port))?;
                listener.set_nonblocking(true)?;
                Ok(Self::Tcp(TcpListener::from_std(listener)?))
            }
            ListenEndpoint::Unix(path) => {
                let path = path.as_path();
                // What an earlier listener left; anything but a socket stays and is an error.
                if std::fs::symlink_metadata(path).is_ok_and(|old| old.file_type().is_socket()) {
                    std::fs::remove_file(path)?;
                }
                // The mode is right from the first moment.
                let before = rustix::process::umask(Mode::from_raw_mode(0o177));
                let bound = UnixListener::bind(path);
                rustix::process::umask(before);
                Ok(Self::Unix(bound?, UnlinkOnDrop(path.to_owned())))
            }
        }
    }

    fn port(&self) -> u16 {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or(0, |address| address.port()),
            Self::Unix(..) => 0,
        }
    }

    async fn accept(&self) -> io::Result<Box<dyn RelayedSocket>> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (socket, _) = listener.accept().await?;
                socket.set_nodelay(true)?;
                Box::new(socket)
            }
            Self::Unix(listener, _) => Box::new(listener.accept().await?.0),
        })
    }
}

impl Drop for UnlinkOnDrop {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
