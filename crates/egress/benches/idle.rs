//! Memory of many tunnels that stand and say nothing.

use std::sync::Arc;

use rustix::process::{Resource, getrlimit};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::load::Way;
use crate::roles::Child;

const WANTED: usize = 10_000;
/// Descriptors of the proxy that are not tunnels.
const SPARE: u64 = 64;

pub(crate) async fn run() -> String {
    let origin = Child::start("origin", &[]);
    // TLS tunnels, as they stand in real use: opened, checked, silent.
    let proxy = Child::start(
        "proxy",
        &[&format!("localhost:{} in 127.0.0.0/8,::1", origin.port)],
    );
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let count = WANTED.min(usize::try_from((files - SPARE) / 2).unwrap());
    let way = Way {
        origin: origin.port,
        proxy: Some(proxy.port),
    };
    let hello = client_hello();
    let before = proxy.memory();
    let mut open: Vec<TcpStream> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = way.open().await;
        stream.write_all(&hello).await.unwrap();
        stream.read_exact(&mut vec![0; hello.len()]).await.unwrap();
        open.push(stream);
    }
    let after = proxy.memory();
    let each = (after - before) * 1024 / count as u64;
    format!(
        "{count} TLS tunnels: {} MB resident ({} MB before, {each} bytes each)",
        after / 1024,
        before / 1024
    )
}

fn client_hello() -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}
