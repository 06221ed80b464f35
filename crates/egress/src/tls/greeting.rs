//! The first bytes of a TLS client, for trials that want to see whether they arrive.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// What a client says that wants to talk to `host`; nothing where `host` is no name.
pub fn client_hello(host: &str) -> Vec<u8> {
    let mut hello = Vec::new();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map(|config| config.with_root_certificates(RootCertStore::empty()));
    let name = ServerName::try_from(host.to_owned());
    if let (Ok(config), Ok(name)) = (config, name)
        && let Ok(mut client) = ClientConnection::new(Arc::new(config.with_no_client_auth()), name)
    {
        // Writing into memory does not fail.
        let _ = client.write_tls(&mut hello);
    }
    hello
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::hello::{self, ClientHello};

    #[test]
    fn it_is_read_back_as_that_name() {
        let bytes = client_hello("a.test");
        let Ok(ClientHello::Complete { server_name, .. }) = hello::read(&bytes) else {
            panic!("{bytes:?}");
        };
        assert_eq!(server_name.as_str(), "a.test");
        assert!(client_hello("").is_empty());
    }
}
