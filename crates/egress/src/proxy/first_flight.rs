//! The names a TLS client gives, checked before they leave.
//!
//! One hello is not always all. A server may answer it with a HelloRetryRequest, upon which the client
//! sends a second hello, in the open, and a front end may go by the name in that one. So after the first
//! hello nothing of the client is passed on until the server's answer has been seen, and where that asks
//! for another hello, that one is held to the same name.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use super::tunnel::Turned;
use crate::account::BudgetSpent;
use crate::audit::Meter;
use crate::rules::Host;
use crate::stream::Wire;
use crate::tls::alert::Alert;
use crate::tls::hello::{Hello, HelloError, read};
use crate::tls::retry::{Answer, RECORD_HEAD, answer, next_record};

/// Reads until the hello at the front of what `client` sent is complete, and compares its name.
/// Returns its length; nothing is consumed.
pub(super) async fn check_hello(
    client: &mut Wire,
    host: &Host,
    within: Duration,
) -> Result<usize, Turned> {
    let late = |_| {
        Turned::away(
            "the client sent no TLS ClientHello in time",
            Alert::DecodeError,
        )
    };
    timeout(within, hello_for(client, host))
        .await
        .map_err(late)?
}

/// The connections between which the first TLS messages go.
pub(super) struct FirstFlight<'a> {
    pub(super) client: &'a mut Wire,
    pub(super) upstream: &'a mut Wire,
    pub(super) meter: &'a Meter,
}

impl FirstFlight<'_> {
    /// Passes the checked hello on, and whatever follows until the names are settled.
    pub(super) async fn pass_on(
        mut self,
        length: usize,
        host: &Host,
        within: Duration,
    ) -> Result<(), Turned> {
        let late = |_| Turned::away("the first TLS messages took too long", Alert::InternalError);
        timeout(within, self.settle(length, host))
            .await
            .map_err(late)?
    }

    async fn settle(&mut self, length: usize, host: &Host) -> Result<(), Turned> {
        self.send(length).await?;
        loop {
            match answer(self.upstream.ahead()) {
                Answer::Partial => {
                    more(self.upstream, "the server left before it answered").await?;
                }
                Answer::Settled => return Ok(()),
                Answer::Retry => break,
            }
        }
        // The client has to see the request for another hello before it can send one.
        let request = self.upstream.take_ahead(self.upstream.ahead().len());
        self.meter.down(request.len()).map_err(spent)?;
        write(self.client, &request).await?;
        self.second_hello(host).await
    }

    async fn second_hello(&mut self, host: &Host) -> Result<(), Turned> {
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

    async fn send(&mut self, length: usize) -> Result<(), Turned> {
        let bytes = self.client.take_ahead(length);
        self.meter.up(bytes.len()).map_err(spent)?;
        write(self.upstream, &bytes).await
    }
}

async fn hello_for(client: &mut Wire, host: &Host) -> Result<usize, Turned> {
    loop {
        match read(client.ahead()) {
            Ok(Hello::Complete {
                server_name,
                length,
            }) if server_name == *host => return Ok(length),
            Ok(Hello::Complete { server_name, .. }) => {
                let reason =
                    format!("the ClientHello asks for {server_name}, the tunnel for {host}");
                return Err(Turned::away(reason, Alert::UnrecognizedName));
            }
            Ok(Hello::Partial) => {
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

async fn write(to: &mut Wire, bytes: &[u8]) -> Result<(), Turned> {
    let broken = |_| Turned::away("the connection broke", Alert::InternalError);
    to.write_all(bytes).await.map_err(broken)?;
    to.flush().await.map_err(broken)
}

async fn more(from: &mut Wire, gone: &str) -> Result<(), Turned> {
    match from.read_more().await {
        Ok(1..) => Ok(()),
        Ok(0) | Err(_) => Err(Turned::away(gone, Alert::DecodeError)),
    }
}

fn turned(error: HelloError) -> Turned {
    let alert = match error {
        HelloError::NoServerName
        | HelloError::SeveralNames
        | HelloError::BadServerName
        | HelloError::Encrypted => Alert::UnrecognizedName,
        HelloError::NotTls | HelloError::NotClientHello => Alert::AccessDenied,
        HelloError::Malformed | HelloError::TooLarge => Alert::DecodeError,
    };
    Turned::away(error.to_string(), alert)
}

fn spent(error: BudgetSpent) -> Turned {
    Turned::away(error.to_string(), Alert::AccessDenied)
}
