//! A listening socket that counts what it accepts.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::{ConnectionBounds, ConnectionTable, TrackedConnection};

/// The first wait when nothing can be accepted, and the longest: asking again at once would spin.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// How often the log says that connections are turned away.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Accepts connections and keeps them within bounds.
#[derive(Debug)]
pub struct BoundedListener {
    listener: TcpListener,
    table: Arc<ConnectionTable>,
    /// A descriptor for the moment when there is no other: with it one more connection can be accepted,
    /// whose place is then made by cutting an idle one.
    reserve: Option<File>,
    pause: Duration,
    last_said: Option<Instant>,
}

impl BoundedListener {
    pub fn new(listener: TcpListener, bounds: ConnectionBounds) -> Self {
        Self {
            listener,
            table: ConnectionTable::new(bounds),
            reserve: None,
            pause: FIRST_PAUSE,
            last_said: None,
        }
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub fn table(&self) -> &Arc<ConnectionTable> {
        &self.table
    }

    /// The next connection for which there is a place. Whatever fails on the way is waited out.
    ///
    /// May be dropped and called again without losing a connection.
    pub async fn accept(&mut self) -> (TcpStream, SocketAddr, TrackedConnection) {
        loop {
            self.keep_reserve().await;
            match self.listener.accept().await {
                Ok((stream, peer)) => match self.table.admit(peer.ip()) {
                    Ok(tracked) => {
                        self.pause = FIRST_PAUSE;
                        return (stream, peer, tracked);
                    }
                    Err(_) => self.say("every connection is in use; a new one was turned away"),
                },
                Err(error) if is_the_peers(&error) => {}
                Err(error) if is_exhaustion(&error) => {
                    self.say("no descriptor is left for a new connection");
                    self.table.make_room();
                    // With the reserve gone there is one descriptor, for whoever waits longest.
                    if self.reserve.take().is_none() {
                        self.rest().await;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    self.rest().await;
                }
            }
        }
    }

    /// Nothing is accepted without a reserve: the last descriptor is not for a stranger.
    async fn keep_reserve(&mut self) {
        let mut rested = false;
        while self.reserve.is_none() {
            match File::open("/dev/null") {
                Ok(reserve) => self.reserve = Some(reserve),
                // First a moment: whoever was accepted by the reserve is to be answered, not cut.
                Err(error) if is_exhaustion(&error) => {
                    if rested {
                        self.table.make_room();
                    }
                    rested = true;
                    self.rest().await;
                }
                // Without one it works as well, until descriptors run out.
                Err(_) => return,
            }
        }
    }

    async fn rest(&mut self) {
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_ACCEPT_PAUSE);
        sleep(pause).await;
    }

    /// One line for many: whoever comes a thousand times must not fill the log.
    fn say(&mut self, what: &'static str) {
        if self
            .last_said
            .is_none_or(|said| said.elapsed() >= SAY_EVERY)
        {
            self.last_said = Some(Instant::now());
            let port = self.local_addr().map_or(0, |address| address.port());
            tracing::warn!(port, connections = self.table.len(), "{what}");
        }
    }
}

/// The peer gave up before it was accepted.
fn is_the_peers(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

fn is_exhaustion(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| {
        [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].contains(&errno)
    })
}
