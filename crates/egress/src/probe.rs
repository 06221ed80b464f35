//! Is a server there and well? What a container's health check runs, without a shell or curl in the image.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The reason why a server is not taken to be well.
#[derive(Debug, Error)]
pub enum ProbeError {
    #[error("expected an address such as http://127.0.0.1:9119/health")]
    Url,
    #[error("no answer within {} s", after.as_secs())]
    TimedOut { after: Duration },
    #[error("no connection")]
    Broken(#[from] io::Error),
    #[error("the answer was {status_line:?}")]
    Unwell { status_line: String },
}

/// `Ok` where a plain GET of `url` is answered with a 2xx. Addresses are fine here: it is our own server.
pub async fn probe(url: &str, within: Duration) -> Result<(), ProbeError> {
    let rest = url.strip_prefix("http://").ok_or(ProbeError::Url)?;
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_graphic());
    if server.is_empty() || !plain(server) || !plain(path) {
        return Err(ProbeError::Url);
    }
    let server = if server.contains(':') {
        server.to_owned()
    } else {
        format!("{server}:80")
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    let asking = async {
        let mut stream = TcpStream::connect(&server).await?;
        stream.write_all(request.as_bytes()).await?;
        status_line(&mut stream).await
    };
    let status_line = timeout(within, asking)
        .await
        .map_err(|_| ProbeError::TimedOut { after: within })??;
    if status_line.starts_with("HTTP/1.1 2") {
        Ok(())
    } else {
        Err(ProbeError::Unwell { status_line })
    }
}

async fn status_line(stream: &mut TcpStream) -> io::Result<String> {
    const LONGEST_STATUS_LINE: usize = 256;
    let mut line = Vec::new();
    while line.len() < LONGEST_STATUS_LINE {
        match stream.read_u8().await {
            Ok(b'\r' | b'\n') => break,
            Ok(byte) => line.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}
