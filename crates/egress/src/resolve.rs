//! One resolution per connection, made by us, and every address of it checked.
//!
//! [`CheckedAddresses`] can only be made by [`locate`], and the dialer accepts nothing else: an address that
//! was not checked cannot be dialled, and a name that answers differently the second time has no
//! second time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use ipnet::IpNet;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::address::{self, AddressRefused};
use crate::rules::{Authority, HostName};

/// Turns a name into addresses.
///
/// An implementer promises one answer per call and no caching beyond what DNS itself allows; the
/// caller checks every address and calls once per connection.
pub trait Resolver: Send + Sync {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The addresses of a host, all of which passed the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedAddresses {
    addresses: Vec<SocketAddr>,
}

/// The reason why a host has no address that may be dialled.
#[derive(Debug, Error)]
pub enum LocateError {
    #[error("the name does not resolve")]
    NotFound {
        #[source]
        source: io::Error,
    },
    #[error("the name resolves to no address")]
    NoAddress,
    #[error("the name did not resolve within {} s", after.as_secs())]
    TimedOut { after: Duration },
    #[error("the name resolves to {0}")]
    Address(#[from] AddressRefused),
}

/// Whose turn a look-up takes.
#[derive(Clone, Debug)]
pub(crate) struct LookupTurns {
    pub(crate) conversation: Arc<Semaphore>,
    /// Of all conversations of the same owner.
    pub(crate) owner: Arc<Semaphore>,
}

impl LookupTurns {
    async fn take(self) -> io::Result<[OwnedSemaphorePermit; 2]> {
        let closed = |_| io::Error::from(io::ErrorKind::Interrupted);
        // The conversation's own first: what waits behind its own bound holds no turn of the others.
        let own = self.conversation.acquire_owned().await.map_err(closed)?;
        let shared = self.owner.acquire_owned().await.map_err(closed)?;
        Ok([own, shared])
    }
}

/// The look-up takes its turns and keeps them until it has really ended, which may be long after
/// nobody waits for it any more.
pub(crate) async fn locate(
    resolver: &Arc<dyn Resolver>,
    turns: LookupTurns,
    target: &Authority,
    ranges: &[IpNet],
    within: Duration,
) -> Result<CheckedAddresses, LocateError> {
    let resolver = Arc::clone(resolver);
    let host = target.host.clone();
    let looking = async move {
        let turns = turns.take().await?;
        // In a task of its own, which the timeout below does not cut: the look-up goes on in its
        // thread in any case, and its turns with it.
        let looking = tokio::spawn(async move {
            let _turns = turns;
            resolver.resolve(&host).await
        });
        looking.await.map_err(io::Error::other)?
    };
    let answer = timeout(within, looking)
        .await
        .map_err(|_| LocateError::TimedOut { after: within })?
        .map_err(|source| LocateError::NotFound { source })?;
    CheckedAddresses::check(&answer, target.port, ranges)
}

impl CheckedAddresses {
    /// One bad address refuses the whole answer: a mixed answer is how rebinding begins.
    fn check(answer: &[IpAddr], port: u16, ranges: &[IpNet]) -> Result<Self, LocateError> {
        for &address in answer {
            address::permit(address, ranges)?;
        }
        if answer.is_empty() {
            return Err(LocateError::NoAddress);
        }
        let addresses = answer
            .iter()
            .map(|&address| SocketAddr::new(address, port))
            .collect();
        Ok(Self { addresses })
    }

    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// The machine's own resolver, hosts file included.
#[derive(Clone, Debug)]
pub struct SystemResolver {
    /// Look-ups block a thread each; a sandbox that asks for thousands of names waits its turn.
    at_once: Arc<Semaphore>,
}

/// Each holds a thread for as long as a name server is silent, of the 512 that everybody shares.
const LOOKUPS_AT_ONCE: usize = 256;

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            at_once: Arc::new(Semaphore::new(LOOKUPS_AT_ONCE)),
        }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = Arc::clone(&self.at_once).acquire_owned().await;
            let permit = permit.map_err(|_| io::ErrorKind::Interrupted)?;
            let name = host.as_str().to_owned();
            // The permit goes along: a caller that gave up has not freed the thread.
            let looking = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                look_up(&name)
            });
            looking.await.map_err(io::Error::other)?
        })
    }
}

fn look_up(name: &str) -> io::Result<Vec<IpAddr>> {
    use std::net::ToSocketAddrs;
    let found = (name, 0).to_socket_addrs()?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found.map(|socket| socket.ip()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &[&str]) -> Result<CheckedAddresses, LocateError> {
        let answer: Vec<IpAddr> = answer.iter().map(|text| text.parse().unwrap()).collect();
        CheckedAddresses::check(&answer, 443, &[])
    }

    #[test]
    fn one_private_address_spoils_the_answer() {
        assert!(check(&["1.1.1.1", "2606:4700::1"]).is_ok());
        assert!(matches!(
            check(&["1.1.1.1", "10.0.0.1"]),
            Err(LocateError::Address(_))
        ));
        assert!(matches!(
            check(&["::ffff:1.1.1.1"]),
            Err(LocateError::Address(_))
        ));
        assert!(matches!(check(&[]), Err(LocateError::NoAddress)));
    }
}
