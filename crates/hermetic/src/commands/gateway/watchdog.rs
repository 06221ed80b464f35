//! systemd is told that the gateway lives for as long as it answers its own `/health`.
//!
//! A task that only slept and told would do so while everything else stands still.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::{Instrument as _, debug, warn};

use super::state_recorder::tell_systemd;

/// Nothing where systemd does not wait for it.
pub(super) fn start(health: &TcpListener) -> Option<JoinHandle<()>> {
    let every = sd_notify::watchdog_enabled()?;
    let address = reachable(health.local_addr().ok()?);
    let told = || tell_systemd(NotifyState::Watchdog);
    Some(tokio::spawn(watch(every, address, told).in_current_span()))
}

/// Several times within each period, so that one slow answer is not the end.
async fn watch(every: Duration, address: SocketAddr, tell: impl Fn()) {
    let mut answered = false;
    loop {
        // A quarter to ask and a quarter to sleep: at the worst two rounds fit into one period.
        match timeout(every / 4, ask(address)).await {
            Ok(Ok(())) => {
                answered = true;
                tell();
            }
            // Nobody answers before it is ready, and systemd does not count before that.
            _ if !answered => debug!("health is not answered yet"),
            Ok(Err(error)) => {
                warn!(%error, "health is not answered; systemd is not told that we live");
            }
            Err(_) => warn!("health is answered too late; systemd is not told that we live"),
        }
        sleep(every / 4).await;
    }
}

/// Any answer counts: what is degraded is not mended by a restart.
async fn ask(address: SocketAddr) -> io::Result<()> {
    const REQUEST: &[u8] = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(REQUEST).await?;
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await?;
    if &answer == b"HTTP/" {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// One that listens everywhere is reached on the loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    const EVERY: Duration = Duration::from_millis(400);

    #[tokio::test]
    async fn who_answers_is_told_alive_and_who_only_listens_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (told, mut hear) = mpsc::unbounded_channel();
        let watching = tokio::spawn(watch(EVERY, address, move || {
            let _ = told.send(());
        }));
        // Two connections that nobody answers: each is given up, and nothing was told.
        let (first, _) = listener.accept().await.unwrap();
        let (second, _) = listener.accept().await.unwrap();
        assert!(hear.try_recv().is_err());
        drop((first, second));

        let answering = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = b"HTTP/1.1 503 Service Unavailable\r\n\r\n";
                let _ = stream.write_all(answer).await;
            }
        });
        hear.recv().await.unwrap();
        watching.abort();
        answering.abort();
    }

    #[test]
    fn a_listener_on_every_address_is_asked_on_the_loopback() {
        let asked = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(asked("0.0.0.0:80"), "127.0.0.1:80");
        assert_eq!(asked("[::]:80"), "[::1]:80");
        assert_eq!(asked("10.0.0.1:80"), "10.0.0.1:80");
    }
}
