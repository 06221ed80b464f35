//! A web server with a certificate, whose files are a folder.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub(crate) struct Origin {
    pub(crate) at: SocketAddr,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    heads: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Origin {
    /// `/echo` answers with the request's own head, `/forever` with the beginning of something, every
    /// other path with the file of that name.
    pub(crate) async fn serve(names: &[&str], folder: PathBuf) -> Self {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let der = CertificateDer::from(certificate.der().to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![der.clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let accepting = tokio::spawn(accept(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            folder,
            Arc::clone(&heads),
        ));
        Self {
            at,
            certificate: der,
            pem: certificate.pem(),
            heads,
            accepting,
        }
    }

    /// Every request's head, in the order they came.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    folder: PathBuf,
    heads: Arc<Mutex<Vec<String>>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, folder, heads) = (tls.clone(), folder.clone(), Arc::clone(&heads));
        tokio::spawn(async move {
            let Ok(mut stream) = tls.accept(stream).await else {
                return;
            };
            while let Some(head) = head(&mut stream).await {
                heads.lock().unwrap().push(head.clone());
                let path = head.split(' ').nth(1).unwrap_or_default();
                let path = path.split('?').next().unwrap_or_default();
                let body = match path {
                    "/echo" => Some(head.clone().into_bytes()),
                    "/forever" => {
                        let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegun\n";
                        let _ = stream.write_all(begun).await;
                        let _ = stream.flush().await;
                        let _ = stream.read(&mut [0; 1]).await;
                        return;
                    }
                    path => {
                        let index = if path.ends_with('/') {
                            "index.html"
                        } else {
                            ""
                        };
                        let file = format!("{}{index}", path.trim_start_matches('/'));
                        std::fs::read(folder.join(file)).ok()
                    }
                };
                let answer = match body {
                    Some(body) => {
                        let kind = if path.ends_with('/') {
                            "text/html"
                        } else {
                            "application/octet-stream"
                        };
                        let head = format!(
                            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
                            body.len()
                        );
                        [head.into_bytes(), body].concat()
                    }
                    None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
                };
                if stream.write_all(&answer).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn head(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
