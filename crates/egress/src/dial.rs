//! Connecting to a checked address: the next one is tried when one is slow or fails.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::nearby::unpaced;
use crate::resolve::CheckedAddresses;

/// The error of a host that could not be reached.
#[derive(Debug, Error)]
pub(crate) enum DialError {
    #[error("no connection within {} s", after.as_secs())]
    TimedOut { after: Duration },
    #[error("cannot connect to {address}")]
    Failed {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

/// How long an attempt may stay unanswered before the next address is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);
/// No answer is worth more attempts than this.
const DIAL_ATTEMPTS: usize = 8;

pub(crate) async fn dial(
    located: &CheckedAddresses,
    within: Duration,
) -> Result<(TcpStream, SocketAddr), DialError> {
    let attempts = race(alternating(located.addresses()));
    timeout(within, attempts)
        .await
        .map_err(|_| DialError::TimedOut { after: within })?
}

async fn race(addresses: Vec<SocketAddr>) -> Result<(TcpStream, SocketAddr), DialError> {
    let mut waiting = addresses.into_iter();
    let mut running = FuturesUnordered::new();
    let mut last = None;
    loop {
        // One more at each round, so that a failure begins the next attempt at once and silence
        // does so after the head start.
        match waiting.next() {
            Some(address) => running.push(connect(address)),
            None if running.is_empty() => break,
            None => {}
        }
        let more = waiting.len() > 0;
        tokio::select! {
            Some(result) = running.next() => match result {
                Ok(connected) => return Ok(connected),
                Err(error) => last = Some(error),
            },
            () = sleep(HEAD_START), if more => {}
        }
    }
    Err(last.expect("`Located` holds at least one address, and each failure is kept"))
}

async fn connect(address: SocketAddr) -> Result<(TcpStream, SocketAddr), DialError> {
    let failed = |source| DialError::Failed { address, source };
    let stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    unpaced(&stream);
    Ok((stream, address))
}

/// The answer's order, the families taking turns, so that one broken family costs one head start.
fn alternating(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (same, other): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses
        .iter()
        .copied()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let mut same = same.into_iter();
    let mut other = other.into_iter();
    let mut order = Vec::with_capacity(addresses.len());
    loop {
        let pair = [same.next(), other.next()];
        if pair == [None, None] {
            break;
        }
        order.extend(pair.into_iter().flatten());
    }
    // After the families were mixed, or one that does not work could take all the attempts.
    order.truncate(DIAL_ATTEMPTS);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let all: Vec<SocketAddr> = ["[2::1]:1", "[2::2]:1", "1.0.0.1:1", "1.0.0.2:1"]
            .map(|text| text.parse().unwrap())
            .into();
        let order: Vec<String> = alternating(&all).iter().map(ToString::to_string).collect();
        assert_eq!(order, ["[2::1]:1", "1.0.0.1:1", "[2::2]:1", "1.0.0.2:1"]);
    }
}
