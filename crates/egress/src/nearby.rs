//! Connections that never leave this machine.
//!
//! Where the system's congestion control paces what it sends (BBR does), every burst waits for a timer.
//! That is right on a network and dear on loopback, where nothing can be congested.

use rustix::net::sockopt::set_tcp_congestion;
use tokio::net::TcpStream;

/// In every kernel, allowed to everybody, and without a pace of its own.
const UNPACED: &str = "reno";

/// Sends at once what goes to this machine itself. Elsewhere the system's choice stays.
pub(crate) fn unpaced(stream: &TcpStream) {
    let is_nearby = |peer: std::net::SocketAddr| peer.ip().to_canonical().is_loopback();
    if stream.peer_addr().is_ok_and(is_nearby) {
        // Without it, it is only slower.
        let _ = set_tcp_congestion(stream, UNPACED);
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::tcp_congestion;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn loopback_has_no_pace() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else {
                eprintln!("SKIP: loopback_has_no_pace: no {address} here");
                continue;
            };
            let stream = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            unpaced(&stream);
            assert_eq!(tcp_congestion(&stream).unwrap(), UNPACED);
        }
    }
}
