use std::sync::Arc;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lab::origin::{Origin, head};
use crate::lab::{Lab, local, read_all, read_head};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

fn get(origin: &Origin, extra: &str) -> String {
    let target = format!("origin.test:{}", origin.at.port());
    format!("GET http://{target}/path?q HTTP/1.1\r\nHost: {target}\r\n{extra}\r\n")
}

#[tokio::test]
async fn a_plain_request_arrives_without_this_hop() {
    let (origin, heads) = Origin::answering(OK).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let extra = "Connection: close, X-Hop\r\nX-Hop: 1\r\nProxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\n\
                 TE: trailers\r\nX-End: 2\r\n";
    let answer = lab.ask(get(&origin, extra)).await;
    assert_eq!(
        answer,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    );
    let expected = format!(
        "GET /path?q HTTP/1.1\r\nHost: origin.test:{}\r\nX-End: 2\r\n\r\n",
        origin.at.port()
    );
    assert_eq!(*heads.lock().unwrap(), [expected]);
}

#[tokio::test]
async fn a_kept_connection_is_judged_at_every_request() {
    let (origin, heads) = Origin::answering(OK).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut stream = lab.dial();
    for _ in 0..3 {
        stream.write_all(get(&origin, "").as_bytes()).await.unwrap();
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
        stream.read_exact(&mut [0; 2]).await.unwrap();
    }
    assert_eq!(heads.lock().unwrap().len(), 3);
    assert_eq!(
        origin.connections(),
        1,
        "the connection to the origin is kept as well"
    );
    assert_eq!(lab.resolver.asked().len(), 1);

    lab.conversation
        .set_rules(hermetic_egress::CompiledRules::default());
    stream.write_all(get(&origin, "").as_bytes()).await.unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 403 "));
    assert_eq!(heads.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_second_target_on_a_kept_connection_is_a_new_decision() {
    let (origin, heads) = Origin::answering(OK).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut stream = lab.dial();
    let both = get(&origin, "") + "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    stream.write_all(both.as_bytes()).await.unwrap();
    let answers = read_all(&mut stream).await;
    assert!(answers.starts_with("HTTP/1.1 200 OK"), "{answers}");
    assert!(answers.contains("HTTP/1.1 403 "), "{answers}");
    assert_eq!(heads.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn bodies_are_framed_anew() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let origin = Origin::start(move |mut stream| {
        let seen = seen.clone();
        async move {
            let head = head(&mut stream).await.unwrap();
            let mut body = vec![0; 64];
            let read = stream.read(&mut body).await.unwrap();
            body.truncate(read);
            seen.lock().unwrap().push((head.contains("Transfer-Encoding: chunked"), body));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n").await;
        }
    })
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let target = format!("origin.test:{}", origin.at.port());
    let head = format!("POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n");
    let answer = lab
        .ask(format!("{head}Content-Length: 5\r\n\r\nhello"))
        .await;
    assert!(
        answer.ends_with("\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "{answer}"
    );
    let answer = lab
        .ask(format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let bodies = bodies.lock().unwrap();
    assert_eq!(bodies[0], (false, b"hello".to_vec()));
    assert!(bodies[1].0);
    assert!(
        bodies[1].1.starts_with(b"5\r\nhello\r\n"),
        "{:?}",
        bodies[1]
    );
}

#[tokio::test]
async fn an_old_client_gets_a_plain_body() {
    let (origin, _) = Origin::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    )
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let request = format!(
        "GET http://origin.test:{}/ HTTP/1.0\r\n\r\n",
        origin.at.port()
    );
    assert_eq!(
        lab.ask(request).await,
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"
    );
}

#[tokio::test]
async fn an_answer_streams_as_it_comes() {
    let (let_go, held) = tokio::sync::oneshot::channel::<()>();
    let held = Arc::new(Mutex::new(Some(held)));
    let origin = Origin::start(move |mut stream| {
        let held = held.lock().unwrap().take();
        async move {
            head(&mut stream).await.unwrap();
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n")
                .await;
            held.unwrap().await.unwrap();
            let _ = stream.write_all(b"5\r\nlast\n\r\n0\r\n\r\n").await;
        }
    })
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut stream = lab.dial();
    stream
        .write_all(get(&origin, "Connection: close\r\n").as_bytes())
        .await
        .unwrap();
    read_head(&mut stream).await;
    let mut first = [0; 11];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(
        &first, b"6\r\nfirst\n\r\n",
        "arrived while the origin still holds back"
    );
    let_go.send(()).unwrap();
    assert_eq!(read_all(&mut stream).await, "5\r\nlast\n\r\n0\r\n\r\n");
}

#[tokio::test]
async fn expect_continue_is_answered_by_the_origin() {
    let origin = Origin::start(|mut stream| async move {
        let head = head(&mut stream).await.unwrap();
        assert!(head.contains("Expect: 100-continue"));
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        let mut body = [0; 4];
        let _ = stream.read_exact(&mut body).await;
        let _ = stream
            .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
            .await;
    })
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let target = format!("origin.test:{}", origin.at.port());
    let mut stream = lab.dial();
    let head = format!(
        "PUT http://{target}/ HTTP/1.1\r\nHost: {target}\r\nExpect: 100-continue\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 100 "));
    stream.write_all(b"body").await.unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 201 "));
}

#[tokio::test]
async fn an_early_answer_ends_a_long_upload() {
    let origin = Origin::start(|mut stream| async move {
        head(&mut stream).await.unwrap();
        let _ = stream
            .write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
        let _ = stream.shutdown().await;
    })
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let target = format!("origin.test:{}", origin.at.port());
    let mut stream = lab.dial();
    let head = format!(
        "PUT http://{target}/ HTTP/1.1\r\nHost: {target}\r\nContent-Length: 1000000000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 413 "));
}

#[tokio::test]
async fn websockets_pass() {
    let origin = Origin::start(|mut stream| async move {
        let head = head(&mut stream).await.unwrap();
        assert!(head.contains("Connection: Upgrade\r\nUpgrade: websocket\r\n"), "{head}");
        let _ = stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: x\r\n\r\nearly")
            .await;
        let (mut reader, mut writer) = stream.split();
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
    })
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let mut stream = lab.dial();
    let extra = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n";
    stream
        .write_all(get(&origin, extra).as_bytes())
        .await
        .unwrap();
    let head = read_head(&mut stream).await;
    assert!(
        head.starts_with("HTTP/1.1 101 ") && head.contains("Sec-WebSocket-Accept: x"),
        "{head}"
    );
    stream.write_all(b"frames").await.unwrap();
    let mut answer = [0; 11];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"earlyframes");
}

#[tokio::test]
async fn an_unasked_switch_of_protocols_is_refused() {
    let (origin, _) =
        Origin::answering("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n").await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    assert!(lab.ask(get(&origin, "")).await.starts_with("HTTP/1.1 502 "));
    let h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n";
    assert!(
        lab.ask(get(&origin, h2c))
            .await
            .starts_with("HTTP/1.1 502 ")
    );
}

#[tokio::test]
async fn doubtful_answers_are_not_passed_on() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ] {
        let (origin, _) = Origin::answering(answer).await;
        let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
        let told = lab.ask(get(&origin, "")).await;
        assert!(
            told.starts_with("HTTP/1.1 502 "),
            "{answer:?} became {told:?}"
        );
    }
}

#[tokio::test]
async fn a_health_check_is_answered_and_nothing_else_in_origin_form() {
    let lab = Lab::allowing(&[]);
    assert!(
        lab.ask("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .ends_with("ok\n")
    );
    assert!(
        lab.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 400 ")
    );
}

#[tokio::test]
async fn trace_is_not_passed_on() {
    let (origin, heads) = Origin::answering(OK).await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let answer = lab.ask(get(&origin, "").replace("GET", "TRACE")).await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(heads.lock().unwrap().is_empty());
}
