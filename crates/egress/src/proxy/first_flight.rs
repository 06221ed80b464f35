//! The names a TLS client gives, checked before they leave.
//!
//! One hello is not always all. A server may answer it with a HelloRetryRequest, upon which the client
//! sends a second hello, in the open, and a front end may go by the name in that one. So after the first
//! hello nothing of the client is passed on until the server's answer has been seen, and where that asks
//! for another hello, that one is held to the same name.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::tunnel::TunnelRefusal;
use crate::account::BudgetSpent;
use crate::audit::ByteMeter;
use crate::rules::HostName;
use crate::stream::PeekedStream;
use crate::tls::alert::TlsAlert;
use crate::tls::hello::{ClientHello, ClientHelloError, read};
use crate::tls::retry::{HelloRetry, RECORD_HEAD, answer, next_record};

/// Reads until the hello at the front of what `client` sent is complete, and compares its name.
/// Returns its length; nothing is consumed.
pub(super) async fn check_hello(
    client: &mut PeekedStream,
    host: &HostName,
    within: Duration,
) -> Result<usize, TunnelRefusal> {
    let late = |_| {
        TunnelRefusal::away(
            "the client sent no TLS ClientHello in time",
            TlsAlert::DecodeError,
        )
    };
    timeout(within, hello_for(client, host))
        .await
        .map_err(late)?
}

/// The connections between which the first TLS messages go.
pub(super) struct FirstFlight<'a> {
    pub(super) client: &'a mut PeekedStream,
    pub(super) upstream: &'a mut PeekedStream,
    pub(super) meter: &'a ByteMeter,
}

impl FirstFlight<'_> {
    /// Passes the checked hello on, and whatever follows until the names are settled.
    pub(super) async fn pass_on(
        mut self,
        length: usize,
        host: &HostName,
        within: Duration,
    ) -> Result<(), TunnelRefusal> {
        let late = |_| {
            TunnelRefusal::away(
                "the first TLS messages took too long",
                TlsAlert::InternalError,
            )
        };
        timeout(within, self.settle(length, host))
            .await
            .map_err(late)?
    }

    async fn settle(&mut self, length: usize, host: &HostName) -> Result<(), TunnelRefusal> {
        self.send(length).await?;
        loop {
            match answer(self.upstream.ahead()) {
                HelloRetry::Partial => {
                    more(self.upstream, "the server left before it answered").await?;
                }
                HelloRetry::Settled => return Ok(()),
                HelloRetry::Retry => break,
            }
        }
        // The client has to see the request for another hello before it can send one.
        let request = self.upstream.take_ahead(self.upstream.ahead().len());
        self.meter.down(request.len()).map_err(spent)?;
        write(self.client, &request).await?;
        self.second_hello(host).await
    }

    async fn second_hello(&mut self, host: &HostName) -> Result<(), TunnelRefusal> {
        loop {
            match next_record(self.client.ahead()) {
                None => more(self.client, "the client left before its second ClientHello").await?,
                // Early data and the like: not a name. Bounded by the time all of this may take.
                Some(record) if !record.is_handshake => {
                    while self.client.ahead().len() < RECORD_HEAD + record.length {
                        more(self.client, "the client left within a TLS record").await?;
                    }
                    self.send(RECORD_HEAD + record.length).await?;
                }
                Some(_) => {
                    let length = hello_for(self.client, host).await?;
                    return self.send(length).await;
                }
            }
        }
    }

    async fn send(&mut self, length: usize) -> Result<(), TunnelRefusal> {
        let bytes = self.client.take_ahead(length);
        self.meter.up(bytes.len()).map_err(spent)?;
        write(self.upstream, &bytes).await
    }
}

async fn hello_for(client: &mut PeekedStream, host: &HostName) -> Result<usize, TunnelRefusal> {
    loop {
        match read(client.ahead()) {
            Ok(ClientHello::Complete {
                server_name,
                length,
            }) if server_name == *host => return Ok(length),
            Ok(ClientHello::Complete { server_name, .. }) => {
                let reason =
                    format!("the ClientHello asks for {server_name}, the tunnel for {host}");
                return Err(TunnelRefusal::away(reason, TlsAlert::UnrecognizedName));
            }
            Ok(ClientHello::Partial) => {
                more(
                    client,
                    "the client left before its ClientHello was complete",
                )
                .await?;
            }
            Err(error) => return Err(turned(error)),
        }
    }
}

async fn write(to: &mut PeekedStream, bytes: &[u8]) -> Result<(), TunnelRefusal> {
    let broken = |_| TunnelRefusal::away("the connection broke", TlsAlert::InternalError);
    to.write_all(bytes).await.map_err(broken)?;
    to.flush().await.map_err(broken)
}

async fn more(from: &mut PeekedStream, gone: &str) -> Result<(), TunnelRefusal> {
    match from.read_more().await {
        Ok(1..) => Ok(()),
        Ok(0) | Err(_) => Err(TunnelRefusal::away(gone, TlsAlert::DecodeError)),
    }
}

fn turned(error: ClientHelloError) -> TunnelRefusal {
    let alert = match error {
        ClientHelloError::NoServerName
        | ClientHelloError::SeveralNames
        | ClientHelloError::BadServerName
        | ClientHelloError::Encrypted => TlsAlert::UnrecognizedName,
        ClientHelloError::NotTls | ClientHelloError::NotClientHello => TlsAlert::AccessDenied,
        ClientHelloError::Malformed | ClientHelloError::TooLarge => TlsAlert::DecodeError,
    };
    TunnelRefusal::away(error.to_string(), alert)
}

fn spent(error: BudgetSpent) -> TunnelRefusal {
    TunnelRefusal::away(error.to_string(), TlsAlert::AccessDenied)
}
