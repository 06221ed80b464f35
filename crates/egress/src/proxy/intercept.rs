//! Tunnels to a host that has a credential: TLS ends here and begins anew.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::sync::CancellationToken;

use super::admit::{Admitted, Found};
use super::requests::Front;
use super::tunnel::{Tunnel, Turned};
use super::{Interception, Proxy};
use crate::audit::How;
use crate::conversation::Conversation;
use crate::credential::{Credential, Redactor};
use crate::refusal::Refusal;
use crate::rules::Authority;
use crate::stream::Wire;
use crate::tls::alert::Alert;

/// One tunnel whose TLS ended here.
pub(super) struct Intercepted {
    found: Found,
    credentials: Vec<Credential>,
    upstream: Arc<rustls::ClientConfig>,
}

impl Intercepted {
    pub(super) fn target(&self) -> &Authority {
        self.found.admitted().target()
    }

    pub(super) fn admitted(&self) -> &Admitted {
        self.found.admitted()
    }

    pub(super) fn credentials(&self) -> &[Credential] {
        &self.credentials
    }

    pub(super) fn redactor(&self) -> Redactor {
        Redactor::new(self.credentials.iter().map(Credential::spellings))
    }
}

impl Proxy {
    /// `client` has sent a ClientHello that names the host; it has not been consumed.
    pub(super) async fn intercept(
        &self,
        client: Wire,
        found: Found,
        interception: &Interception,
        credentials: Vec<Credential>,
        conversation: &Arc<Conversation>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let target = found.admitted().target().clone();
        let config = match interception.authority.server_config(&target.host) {
            Ok(config) => config,
            Err(error) => {
                let turned = Turned::away(error.to_string(), Alert::InternalError);
                self.cut(client, &target, How::Credential, conversation, turned)
                    .await;
                return None;
            }
        };
        let handshake = TlsAcceptor::from(config).accept(client);
        let client = match timeout(self.0.limits.head_time, handshake).await {
            Ok(Ok(client)) => Wire::new(client),
            Ok(Err(error)) => {
                self.note_failed_handshake(conversation, &target, &error.to_string());
                return None;
            }
            Err(_) => {
                self.note_failed_handshake(conversation, &target, "it took too long");
                return None;
            }
        };
        let upstream = Arc::clone(&interception.upstream);
        let front = Front::Intercepted(Box::new(Intercepted {
            found,
            credentials,
            upstream,
        }));
        self.requests(client, None, front, conversation, stop).await
    }

    /// A connection to the checked address, over TLS that proved to be the host's.
    pub(super) async fn reach_over_tls(
        &self,
        intercepted: &Intercepted,
    ) -> Result<(Wire, SocketAddr), Refusal> {
        let target = intercepted.target();
        let fail = |reason: String| Refusal::bad_gateway(target, format!("{target}: {reason}"));
        let (wire, address) = self.reach(&intercepted.found).await?;
        let name = ServerName::try_from(target.host.to_string())
            .map_err(|_| fail("not a name TLS can verify".to_owned()))?;
        let handshake = TlsConnector::from(Arc::clone(&intercepted.upstream)).connect(name, wire);
        match timeout(self.0.limits.dial, handshake).await {
            Ok(Ok(stream)) => Ok((Wire::new(stream), address)),
            Ok(Err(error)) => Err(fail(format!("TLS failed, no credential was sent: {error}"))),
            Err(_) => Err(fail("TLS took too long, no credential was sent".to_owned())),
        }
    }

    fn note_failed_handshake(&self, conversation: &Conversation, target: &Authority, error: &str) {
        let reason =
            format!("the client did not complete TLS with us (does it trust our CA?): {error}");
        self.note(
            conversation,
            How::Credential,
            &Refusal::bad_gateway(target, reason),
        );
    }
}
