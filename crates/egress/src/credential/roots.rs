//! Whom we believe when we talk to the host a credential belongs to.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

use super::CertificateAuthority;

/// The authorities that vouch for origins.
#[derive(Clone, Debug)]
pub enum TrustRoots {
    /// The machine's own trust store: a company's private authority counts as it does for curl.
    System,
    /// These and no others.
    Only(Vec<CertificateDer<'static>>),
}

/// The error of authorities that cannot be loaded.
#[derive(Debug, Error)]
pub enum TrustRootsError {
    #[error("this machine has no trusted certificates; install its ca-certificates package")]
    None,
    #[error("cannot use a trusted certificate")]
    Tls(#[from] rustls::Error),
}

/// Whether this machine believes anybody: a small system may have no certificates of authorities.
pub fn has_authorities() -> bool {
    !rustls_native_certs::load_native_certs().certs.is_empty()
}

/// Everything this machine believes and `authority`, as one file for sandboxes.
pub fn trust_bundle(authority: &CertificateAuthority) -> String {
    let mut text = authority.certificate().to_owned();
    for certificate in rustls_native_certs::load_native_certs().certs {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(64) {
            text.extend(line.iter().map(|&byte| char::from(byte)));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

impl TrustRoots {
    pub(crate) fn client_config(&self) -> Result<Arc<ClientConfig>, TrustRootsError> {
        let mut store = RootCertStore::empty();
        match self {
            Self::System => {
                // Those that cannot be read are passed over: one odd certificate in a machine's
                // store must not close the whole way.
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            Self::Only(certificates) => {
                for certificate in certificates {
                    store.add(certificate.clone())?;
                }
            }
        }
        if store.is_empty() {
            return Err(TrustRootsError::None);
        }
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_root_certificates(store)
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
