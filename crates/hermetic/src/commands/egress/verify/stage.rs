//! What stands outside while a sandbox is tried: an origin on this machine's loopback and a resolver
//! that knows two names. Nothing is asked of a real DNS server and nothing is dialled but the origin.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use hermetic_egress::{
    Egress, EgressLimits, EgressRules, HostName, LogRecorder, Proxy, Resolver, RulesText,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::failure::CommandFailure;

pub(super) const ALLOWED: &str = "allowed.hermetic.invalid";
/// Never resolved: it stands in a hello where another was promised.
pub(super) const ELSEWHERE: &str = "elsewhere.hermetic.invalid";
const PRIVATE: &str = "private.hermetic.invalid";

pub(super) struct VerifyStage {
    pub(super) port: u16,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    accepting: JoinHandle<()>,
}

impl VerifyStage {
    pub(super) async fn build() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&seen)));
        Ok(Self {
            port,
            seen,
            accepting,
        })
    }

    /// The configured rules and those that the stage needs, with a proxy that knows no other names.
    pub(super) fn gate(&self, rules: RulesText) -> Result<Arc<Egress>, CommandFailure> {
        let port = self.port;
        let staged = RulesText::allowing([
            format!("{ALLOWED}:{port} in 127.0.0.0/8"),
            format!("{PRIVATE}:{port}"),
        ]);
        let proxy = Proxy::new(
            EgressLimits::default(),
            Arc::new(TwoNames),
            Arc::new(LogRecorder),
        );
        let charter = EgressRules {
            rules: rules.and(&staged),
            ..EgressRules::default()
        };
        let gate = Egress::new(proxy, charter)
            .map_err(|error| CommandFailure::new(error.to_string(), "mend gateway.egress"))?;
        Ok(Arc::new(gate))
    }

    /// Whether a hello with this name ever arrived.
    pub(super) fn saw(&self, name: &str) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |first: &Vec<u8>| first.windows(name.len()).any(|w| w == name.as_bytes());
        seen.iter().any(holds)
    }
}

impl Drop for VerifyStage {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, seen: Arc<Mutex<Vec<Vec<u8>>>>) {
    /// A fatal alert: enough of an answer for whoever only wants to know that somebody is there.
    const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut first = vec![0; 4096];
        if let Ok(read) = stream.read(&mut first).await {
            first.truncate(read);
            seen.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(first);
        }
        let _ = stream.write_all(&ALERT).await;
    }
}

struct TwoNames;

impl Resolver for TwoNames {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let answer = match host.as_str() {
            ALLOWED => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
            PRIVATE => Ok(vec![Ipv4Addr::new(10, 0, 0, 1).into()]),
            _ => Err(io::Error::other("this name is not part of the trial")),
        };
        Box::pin(async { answer })
    }
}
