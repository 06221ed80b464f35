use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::lab::origin::Origin;
use crate::lab::{Lab, read_all};

async fn greeted(lab: &Lab) -> DuplexStream {
    let mut stream = lab.dial();
    stream.write_all(&[5, 1, 0]).await.unwrap();
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, [5, 0]);
    stream
}

fn by_name(name: &str, port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
    bytes.extend(name.as_bytes());
    bytes.extend(port.to_be_bytes());
    bytes
}

async fn reply(stream: &mut DuplexStream) -> u8 {
    let mut answer = [0; 10];
    stream.read_exact(&mut answer).await.unwrap();
    answer[1]
}

#[tokio::test]
async fn a_name_gets_through() {
    let origin = Origin::echo().await;
    let port = origin.at.port();
    let lab = Lab::allowing(&[&format!("tcp://origin.test:{port} in 127.0.0.0/8")]);
    let mut stream = greeted(&lab).await;
    stream
        .write_all(&by_name("origin.test", port))
        .await
        .unwrap();
    assert_eq!(reply(&mut stream).await, 0);
    stream.write_all(b"hello").await.unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"hello");
}

#[tokio::test]
async fn each_refusal_has_its_code() {
    let lab = Lab::allowing(&[
        "origin.test",
        "private.test",
        "nowhere.test",
        "tcp://shut.test:1 in 127.0.0.0/8",
    ]);
    lab.resolver.tell("private.test", &[&["10.0.0.1"]]);
    lab.resolver.tell("nowhere.test", &[]);
    for (request, code) in [
        (by_name("evil.test", 443), 2),
        (by_name("origin.test", 80), 2),
        (by_name("127.0.0.1", 443), 2),
        (by_name("0x7f.1", 443), 2),
        (by_name("[::1]", 443), 2),
        (by_name("a..b", 443), 2),
        (by_name("private.test", 443), 2),
        (by_name("nowhere.test", 443), 4),
        (by_name("shut.test", 1), 5),
        (by_name("origin.test", 0), 2),
        (vec![5, 1, 0, 1, 127, 0, 0, 1, 1, 187], 8),
        ([&[5, 1, 0, 4][..], &[0; 16], &[1, 187]].concat(), 8),
        (vec![5, 2, 0, 3, 1, b'a', 1, 187], 7),
        (vec![5, 3, 0, 3, 1, b'a', 1, 187], 7),
        (vec![5, 1, 0, 9, 1, 187], 8),
    ] {
        let mut stream = greeted(&lab).await;
        stream.write_all(&request).await.unwrap();
        assert_eq!(reply(&mut stream).await, code, "{request:?}");
    }
}

#[tokio::test]
async fn authentication_is_not_spoken() {
    let lab = Lab::allowing(&[]);
    let mut stream = lab.dial();
    stream.write_all(&[5, 1, 2]).await.unwrap();
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, [5, 0xff]);
}

#[tokio::test]
async fn socks4_is_refused_in_its_own_words() {
    let lab = Lab::allowing(&[]);
    let mut stream = lab.dial();
    stream
        .write_all(&[4, 1, 1, 187, 0, 0, 0, 1, 0])
        .await
        .unwrap();
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, [0, 0x5b, 0, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn tls_rules_hold_for_socks_too() {
    let origin = Origin::echo().await;
    let port = origin.at.port();
    let lab = Lab::allowing(&[&format!("origin.test:{port} in 127.0.0.0/8")]);
    let mut stream = greeted(&lab).await;
    stream
        .write_all(&by_name("origin.test", port))
        .await
        .unwrap();
    assert_eq!(reply(&mut stream).await, 0);
    stream.write_all(b"not tls").await.unwrap();
    stream.shutdown().await.unwrap();
    read_all(&mut stream).await;
    lab.finished().await;
    assert_eq!(origin.connections(), 0);
}
