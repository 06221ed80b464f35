use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hermetic_egress::{
    CompiledRules, ConversationEgress, EgressLimits, Proxy, RulesText, ServeOutcome, serve,
};
use hermetic_listen::{BoundedListener, ConnectionBounds};
use hermetic_types::ConversationKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lab::origin::Origin;
use crate::lab::{Journal, Liar, local, read_head};

struct Listening {
    at: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<ServeOutcome>,
}

async fn listen(rule: &str, grace: Duration) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let listener = BoundedListener::new(listener, ConnectionBounds::of(64));
    let limits = EgressLimits::default();
    let proxy = Proxy::new(
        limits.clone(),
        Arc::new(Liar::default()),
        Arc::new(Journal::default()),
    );
    let rules = CompiledRules::compile(&RulesText::allowing([rule])).unwrap();
    let conversation = ConversationEgress::new(
        ConversationKey::new("standalone"),
        rules,
        Vec::new(),
        &limits,
    );
    let stop = CancellationToken::new();
    let serving = tokio::spawn(serve(listener, proxy, conversation, stop.clone(), grace));
    Listening { at, stop, serving }
}

async fn tunnel(proxy: SocketAddr, origin: &Origin) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request = format!("CONNECT origin.test:{} HTTP/1.1\r\n\r\n", origin.at.port());
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));
    stream
}

#[tokio::test]
async fn what_is_open_may_finish() {
    let origin = Origin::echo().await;
    let rule = format!("tcp://{}", local("origin.test", origin.at));
    let listening = listen(&rule, Duration::from_secs(60)).await;
    let mut open = tunnel(listening.at, &origin).await;
    listening.stop.cancel();
    open.write_all(b"still").await.unwrap();
    open.read_exact(&mut [0; 5]).await.unwrap();
    drop(open);
    assert_eq!(listening.serving.await.unwrap(), ServeOutcome::Clean);
    assert!(
        TcpStream::connect(listening.at).await.is_err(),
        "the door is shut"
    );
}

#[tokio::test]
async fn what_does_not_finish_is_cut() {
    let origin = Origin::echo().await;
    let rule = format!("tcp://{}", local("origin.test", origin.at));
    let listening = listen(&rule, Duration::ZERO).await;
    let mut open = tunnel(listening.at, &origin).await;
    listening.stop.cancel();
    assert_eq!(
        listening.serving.await.unwrap(),
        ServeOutcome::CutShort { connections: 1 }
    );
    assert_eq!(open.read(&mut [0; 1]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn a_kept_connection_that_waits_is_closed_at_once() {
    let (origin, _) = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let listening = listen(&local("origin.test", origin.at), Duration::from_secs(60)).await;
    let mut stream = TcpStream::connect(listening.at).await.unwrap();
    let target = format!("origin.test:{}", origin.at.port());
    stream
        .write_all(format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    read_head(&mut stream).await;
    listening.stop.cancel();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(listening.serving.await.unwrap(), ServeOutcome::Clean);
}

#[tokio::test]
async fn a_published_port_leads_to_one_place() {
    use hermetic_egress::{Authority, probe, publish};
    let (origin, _) = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let url = format!("http://{at}/health");
    let listener = BoundedListener::new(listener, ConnectionBounds::of(16));
    let inside = Authority::parse(&format!("localhost:{}", origin.at.port())).unwrap();
    let stop = CancellationToken::new();
    let carrying = tokio::spawn(publish(listener, inside, stop.clone()));
    probe(&url, crate::lab::TEST_TIMEOUT).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..100 {
        let mut half = TcpStream::connect(at).await.unwrap();
        // It may have been cut already, for those that came after it.
        let _ = half.write_all(b"GET / HT").await;
        silent.push(half);
    }
    probe(&url, crate::lab::TEST_TIMEOUT).await.unwrap();
    stop.cancel();
    carrying.await.unwrap();
    assert!(
        probe(&url, crate::lab::TEST_TIMEOUT).await.is_err(),
        "the door is shut"
    );
}

#[tokio::test]
async fn a_listening_proxy_is_well() {
    let listening = listen("origin.test", Duration::ZERO).await;
    let url = |path: &str| format!("http://{}{path}", listening.at);
    hermetic_egress::probe(&url("/health"), crate::lab::TEST_TIMEOUT)
        .await
        .unwrap();
    assert!(
        hermetic_egress::probe(&url("/other"), crate::lab::TEST_TIMEOUT)
            .await
            .is_err()
    );
    assert!(
        hermetic_egress::probe("https://x/", crate::lab::TEST_TIMEOUT)
            .await
            .is_err()
    );
    listening.stop.cancel();
    listening.serving.await.unwrap();
}

#[tokio::test]
async fn half_open_clients_keep_no_honest_one_out() {
    let origin = Origin::echo().await;
    let rule = format!("tcp://{}", local("origin.test", origin.at));
    let listening = listen(&rule, Duration::ZERO).await;
    let mut standing = tunnel(listening.at, &origin).await;
    // Some say nothing, some half a request, some half a greeting.
    let mut halves = Vec::new();
    for words in ["", "CONNECT origin.t", "\x05\x02"]
        .iter()
        .cycle()
        .take(900)
    {
        let mut half = TcpStream::connect(listening.at).await.unwrap();
        // It may have been cut already, for those that came after it.
        let _ = half.write_all(words.as_bytes()).await;
        halves.push(half);
    }
    let mut honest = tunnel(listening.at, &origin).await;
    for stream in [&mut honest, &mut standing] {
        stream.write_all(b"hello").await.unwrap();
        stream.read_exact(&mut [0; 5]).await.unwrap();
    }
    drop(halves);
    listening.stop.cancel();
    listening.serving.await.unwrap();
}
