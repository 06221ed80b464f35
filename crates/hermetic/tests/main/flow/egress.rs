//! A conversation's sandbox leaves by the rules of now, as the command line changes them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use super::lab::{ALICE, BOB, Lab};

/// A web server on loopback that answers everything with one word.
fn origin() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nreached\n");
        }
    });
    port
}

/// This machine's own name is never proxied by itself, so curl is told.
fn asks(port: u16) -> String {
    format!(
        "/sh curl -sS -m 50 --noproxy '' --proxy http://127.0.0.1:3128 http://localhost:{port}/"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_gateway_takes_up_a_rule_for_one_conversation() {
    let test = "a_running_gateway_takes_up_a_rule_for_one_conversation";
    let Some(lab) = Lab::start(test, []).await else {
        return;
    };
    let port = origin();
    let before = lab.ask(ALICE, &asks(port)).await;
    assert!(before.contains("is not on the allowlist"), "{before}");

    let rule = format!("localhost:{port} in 127.0.0.0/8,::1/128");
    let whom = format!("telegram:dm:{ALICE}");
    assert_eq!(lab.run(&["egress", "allow", &rule, "--for", &whom]).code, 0);
    let after = lab.ask(ALICE, &asks(port)).await;
    assert!(after.contains("reached"), "{after}");
    let bobs = lab.ask(BOB, &asks(port)).await;
    assert!(bobs.contains("is not on the allowlist"), "{bobs}");

    let log = lab.run(&["egress", "log", "--for", &whom]).out;
    assert!(log.contains("refused") && log.contains("opened"), "{log}");
    let audit = lab.run(&["audit", "show", "--json"]).out;
    assert!(audit.contains("\"egress\""), "{audit}");
    assert_eq!(lab.run(&["audit", "verify"]).code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_denied_loses_the_connections_it_has() {
    let test = "a_host_that_is_denied_loses_the_connections_it_has";
    let Some(lab) = Lab::start(test, []).await else {
        return;
    };
    let (port, begun) = endless_origin();
    let rule = format!("localhost:{port} in 127.0.0.0/8,::1/128");
    assert_eq!(lab.run(&["egress", "allow", &rule]).code, 0);
    let before = lab.sent_to(ALICE);
    lab.telegram.says(ALICE, &asks(port));
    tokio::task::spawn_blocking(move || begun.recv().unwrap())
        .await
        .unwrap();
    let denied = format!("localhost:{port}");
    assert_eq!(lab.run(&["egress", "deny", &denied]).code, 0);
    // Nothing else ends it: the origin never does, and the command has most of a minute left.
    let told = lab.replies(ALICE, before + 1).await.join("\n");
    assert!(told.contains("transfer closed"), "{told}");
    let log = lab.run(&["egress", "log"]).out;
    assert!(log.contains("a rule has come to forbid it"), "{log}");
}

/// Answers with a part of what it promises and no more, and tells when that has happened.
fn endless_origin() -> (u16, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, begun) = mpsc::channel();
    std::thread::spawn(move || {
        let Ok((mut stream, _)) = listener.accept() else {
            return;
        };
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 80\r\n\r\npart");
        let _ = tell.send(());
        // Returns when the proxy has let go.
        let _ = stream.read(&mut [0; 8]);
    });
    (port, begun)
}
