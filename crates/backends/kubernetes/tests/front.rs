//! A door by TLS before the cluster, as real ones have it: it wants a client certificate.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use hermetic_kubernetes::ClusterSource;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::lab::kubeconfig;

/// Lets in who has the bearer token and a client certificate, and hands the bytes on in clear.
pub(crate) struct TlsFront {
    port: u16,
    pub(crate) authority: String,
    identity: (String, String),
}

impl TlsFront {
    pub(crate) async fn open(behind: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            (params.signed_by(&key, &authority).unwrap(), key)
        };
        let (server, server_key) = signed("127.0.0.1");
        let (person, person_key) = signed("somebody");
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let people =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(people.build().unwrap())
            .with_single_cert(vec![server.der().clone()], key)
            .unwrap();
        // An exec takes over its connection, which HTTP/2 has no way for.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let behind = behind.trim_start_matches("http://").to_owned();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, behind) = (acceptor.clone(), behind.clone());
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    let Ok(mut near) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut far = TcpStream::connect(behind).await.unwrap();
                    let _ = far.set_nodelay(true);
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Self {
            port,
            authority: authority.pem(),
            identity: (person.pem(), person_key.serialize_pem()),
        }
    }

    /// A kubeconfig whose parts are files beside it.
    pub(crate) fn source(&self, home: &Path, with_identity: bool) -> ClusterSource {
        fs::write(home.join("ca.pem"), &self.authority).unwrap();
        fs::write(home.join("cert.pem"), &self.identity.0).unwrap();
        fs::write(home.join("key.pem"), &self.identity.1).unwrap();
        let path = kubeconfig(&format!("https://127.0.0.1:{}", self.port), home);
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replace("server: ", "certificate-authority: ca.pem, server: ");
        let text = match with_identity {
            true => text.replace(
                "token: ",
                "client-certificate: cert.pem, client-key: key.pem, token: ",
            ),
            false => text,
        };
        fs::write(&path, text).unwrap();
        ClusterSource {
            kubeconfig: Some(path),
            ..ClusterSource::default()
        }
    }
}
