//! Plain HTTP: the proxy reads the request and passes it on.

use super::*;

fn request(host: &str, more: &str) -> String {
    format!("GET http://{host}/a?b=c HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n")
}

#[tokio::test]
async fn a_plain_request_is_passed_on_whole_and_its_login_does_not_come_back() {
    let company = Company::leading_to("127.0.0.1:1".parse().unwrap()).await;
    let route = route(
        company.origin.at,
        &format!("{LOGIN}@"),
        NameCheck::ByProxy,
        "",
    );
    let lab = lab(&["deb.test:80"], route);
    let spoof =
        "Proxy-Authorization: Basic c3Bvb2Y6c3Bvb2Y=\r\nAccept-Encoding: gzip\r\nX-Own: 1\r\n";
    let answer = lab.ask(request("deb.test", spoof)).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let token = STANDARD.encode(LOGIN);
    let head = company.heads().remove(0);
    assert!(
        head.starts_with("GET http://deb.test/a?b=c HTTP/1.1\r\nHost: deb.test\r\n"),
        "{head}"
    );
    assert!(
        head.contains(&format!("Proxy-Authorization: Basic {token}\r\n")),
        "{head}"
    );
    assert!(
        !head.contains("c3Bvb2Y"),
        "the sandbox's own login stayed behind: {head}"
    );
    assert!(
        answer.contains("X-Own: 1"),
        "it echoes what it was sent: {answer}"
    );
    assert!(
        !answer.contains(&token) && !answer.contains("horse"),
        "{answer}"
    );
}

#[tokio::test]
async fn one_connection_serves_one_target_and_a_websocket_gets_a_tunnel() {
    let (far, heads) = Origin::answering(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    )
    .await;
    let company = Company::leading_to(far.at).await;
    let lab = lab(
        &["a.test:80", "b.test:80"],
        route(company.origin.at, "", NameCheck::ByProxy, ""),
    );
    let mut stream = lab.dial();
    for host in ["a.test", "a.test", "b.test"] {
        let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = crate::lab::read_head(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let length = company.heads().last().unwrap().len();
        let mut body = vec![0; length];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut body)
            .await
            .unwrap();
    }
    assert_eq!(company.origin.connections(), 2, "a.test twice over one");
    let upgrade = "GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\nConnection: Upgrade\r\n\
                   Upgrade: websocket\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let answer = crate::lab::read_head(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    assert!(
        company
            .heads()
            .last()
            .unwrap()
            .starts_with("CONNECT b.test:80 ")
    );
    assert!(heads.lock().unwrap()[0].starts_with("GET / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_question_for_the_login_is_answered_by_us_and_not_by_the_sandbox() {
    let (company, _) = Origin::answering(
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"in here\"\r\n\
         Content-Length: 0\r\n\r\n",
    )
    .await;
    let lab = lab(
        &["deb.test:80"],
        route(company.at, "", NameCheck::ByProxy, ""),
    );
    let answer = lab.ask(request("deb.test", "")).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(
        answer.contains("wants another user name or password (407)"),
        "{answer}"
    );
    assert!(!answer.contains("in here"), "{answer}");
}
