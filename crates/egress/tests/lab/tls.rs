//! Real TLS origins and clients.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::origin::Origin;
use hermetic_egress::ByteStream;

/// A self-signed certificate that clients are told to trust.
pub(crate) struct Identity {
    pub certificate: CertificateDer<'static>,
    pub pem: String,
    config: Arc<ServerConfig>,
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

impl Identity {
    pub(crate) fn of(host: &str) -> Self {
        Self::changed(host, |_| ())
    }

    /// A certificate with something about it that is not as usual.
    pub(crate) fn changed(host: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        change(&mut params);
        let certificate = params.self_signed(&key).unwrap();
        let pem = certificate.pem();
        let certificate = CertificateDer::from(certificate.der().to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        Self {
            certificate,
            pem,
            config: Arc::new(config),
        }
    }

    /// Offers these protocols to its clients.
    pub(crate) fn speaking(mut self, protocols: &[&str]) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        self.config = Arc::new(config);
        self
    }

    pub(crate) async fn serve<F, Fut>(&self, handle: F) -> Origin
    where
        F: Fn(server::TlsStream<TcpStream>) -> Fut + Send + Sync + Clone + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(self.config.clone());
        Origin::start(move |stream| {
            let (acceptor, handle) = (acceptor.clone(), handle.clone());
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    handle(stream).await;
                }
            }
        })
        .await
    }
}

/// TLS over an open tunnel, believing this one certificate.
pub(crate) async fn connect<S: ByteStream>(
    stream: S,
    name: &str,
    trusted: &CertificateDer<'static>,
) -> std::io::Result<client::TlsStream<S>> {
    connect_speaking(stream, name, trusted, &["http/1.1"]).await
}

/// The same, offering these protocols.
pub(crate) async fn connect_speaking<S: ByteStream>(
    stream: S,
    name: &str,
    trusted: &CertificateDer<'static>,
    protocols: &[&str],
) -> std::io::Result<client::TlsStream<S>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = config;
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}
