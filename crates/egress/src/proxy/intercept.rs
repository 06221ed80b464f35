//! Tunnels to a host that has a credential: TLS ends here and begins anew.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_util::sync::CancellationToken;

use super::admit::{AdmittedTarget, CheckedTarget, ReachedPeer};
use super::requests::RequestSource;
use super::tunnel::{Tunnel, TunnelRefusal};
use super::{Proxy, TlsInterception};
use crate::audit::EgressMethod;
use crate::conversation::ConversationEgress;
use crate::credential::{Credential, CredentialRedactor};
use crate::refusal::ProxyRefusal;
use crate::rules::Authority;
use crate::stream::PeekedStream;
use crate::tls::alert::TlsAlert;

/// One tunnel whose TLS ended here.
pub(super) struct InterceptedTunnel {
    found: CheckedTarget,
    credentials: Vec<Credential>,
    upstream: Arc<rustls::ClientConfig>,
}

impl InterceptedTunnel {
    pub(super) fn target(&self) -> &Authority {
        self.found.admitted().target()
    }

    pub(super) fn admitted(&self) -> &AdmittedTarget {
        self.found.admitted()
    }

    pub(super) fn credentials(&self) -> &[Credential] {
        &self.credentials
    }

    pub(super) fn redactor(&self) -> CredentialRedactor {
        CredentialRedactor::new(self.credentials.iter().map(Credential::searched))
    }
}

impl Proxy {
    /// `client` has sent a ClientHello that names the host; it has not been consumed.
    pub(super) async fn intercept(
        &self,
        client: PeekedStream,
        found: CheckedTarget,
        interception: &TlsInterception,
        credentials: Vec<Credential>,
        conversation: &Arc<ConversationEgress>,
        stop: &CancellationToken,
    ) -> Option<Tunnel> {
        let target = found.admitted().target().clone();
        let config = match interception.authority.server_config(&target.host) {
            Ok(config) => config,
            Err(error) => {
                let turned = TunnelRefusal::away(error.to_string(), TlsAlert::InternalError);
                self.cut(
                    client,
                    &target,
                    EgressMethod::Credential,
                    conversation,
                    turned,
                )
                .await;
                return None;
            }
        };
        let handshake = TlsAcceptor::from(config).accept(client);
        let client = match timeout(self.0.limits.head_time, handshake).await {
            Ok(Ok(client)) => PeekedStream::new(client),
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
        let front = RequestSource::Intercepted(Box::new(InterceptedTunnel {
            found,
            credentials,
            upstream,
        }));
        self.requests(client, None, front, conversation, stop).await
    }

    /// A connection to the checked address, over TLS that proved to be the host's.
    pub(super) async fn reach_over_tls(
        &self,
        intercepted: &InterceptedTunnel,
    ) -> Result<(PeekedStream, ReachedPeer), ProxyRefusal> {
        let target = intercepted.target();
        let fail =
            |reason: String| ProxyRefusal::bad_gateway(target, format!("{target}: {reason}"));
        let (wire, peer) = self.reach(&intercepted.found).await?;
        // The name that was admitted, never one that the sandbox sends: the certificate has to be
        // that host's.
        let name = ServerName::try_from(target.host.to_string())
            .map_err(|_| fail("not a name TLS can verify".to_owned()))?;
        let handshake = TlsConnector::from(Arc::clone(&intercepted.upstream)).connect(name, wire);
        match timeout(self.0.limits.dial, handshake).await {
            Ok(Ok(stream)) => Ok((PeekedStream::new(stream), peer)),
            Ok(Err(error)) => Err(fail(format!("TLS failed, no credential was sent: {error}"))),
            Err(_) => Err(fail("TLS took too long, no credential was sent".to_owned())),
        }
    }

    fn note_failed_handshake(
        &self,
        conversation: &ConversationEgress,
        target: &Authority,
        error: &str,
    ) {
        let reason =
            format!("the client did not complete TLS with us (does it trust our CA?): {error}");
        self.note(
            conversation,
            EgressMethod::Credential,
            &ProxyRefusal::bad_gateway(target, reason),
        );
    }
}
