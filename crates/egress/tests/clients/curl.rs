//! curl: the client everybody tries first.

use hermetic_egress::Credential;
use hermetic_types::Secret;
use tokio::io::AsyncWriteExt;

use super::{OK, find, listen, out, tls_origin};
use crate::lab::local;
use crate::lab::origin::{Origin, head};
use crate::lab::tls::Identity;

#[tokio::test]
async fn curl_reaches_what_is_allowed_and_reads_why_not() {
    let Some(curl) = find("curl_reaches_what_is_allowed_and_reads_why_not", "curl") else {
        return;
    };
    let (plain, _) = Origin::answering(OK).await;
    let identity = Identity::of("secure.test");
    let secure = tls_origin(&identity).await;
    let rules = [
        local("plain.test", plain.at),
        local("secure.test", secure.at),
    ];
    let proxy = listen(&rules, Vec::new(), Some(&identity)).await;

    let url = format!("http://plain.test:{}/", plain.at.port());
    assert_eq!(out(&proxy.run(&curl, &["-sS", &url]).await), "hello");
    let url = format!("https://secure.test:{}/", secure.at.port());
    assert_eq!(out(&proxy.run(&curl, &["-sS", &url]).await), "hello");
    // The same name by SOCKS.
    let socks = format!("socks5h://127.0.0.1:{}", proxy.at.port());
    assert_eq!(
        out(&proxy.run(&curl, &["-sS", "--proxy", &socks, &url]).await),
        "hello"
    );

    let refused = out(&proxy.run(&curl, &["-sS", "http://evil.test/"]).await);
    assert!(
        refused.contains("hermetic egress allow evil.test:80"),
        "{refused}"
    );
    let refused = out(&proxy.run(&curl, &["-sS", "https://evil.test/"]).await);
    assert!(refused.contains("403"), "{refused}");
    let literal = format!("http://127.0.0.1:{}/", plain.at.port());
    let refused = out(&proxy.run(&curl, &["-sS", "--noproxy", "", &literal]).await);
    assert!(
        refused.contains("literal addresses are refused"),
        "{refused}"
    );
}

#[tokio::test]
async fn curl_uses_a_credential_it_never_holds() {
    let Some(curl) = find("curl_uses_a_credential_it_never_holds", "curl") else {
        return;
    };
    let identity = Identity::of("api.test");
    let origin = identity
        .serve(|mut stream| async move {
            while let Some(head) = head(&mut stream).await {
                let known = head.contains("Authorization: Bearer real-secret-value\r\n");
                let answer = if known {
                    "HTTP/1.1 200 OK"
                } else {
                    "HTTP/1.1 401 Who"
                };
                let body = "you sent real-secret-value";
                let answer = format!("{answer}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.flush().await;
            }
        })
        .await;
    let host = format!("api.test:{}", origin.at.port());
    let credential = Credential::new(
        &host,
        "Authorization",
        "Bearer",
        Secret::new("real-secret-value"),
        "placeholder",
    )
    .unwrap();
    let proxy = listen(
        &[local("api.test", origin.at)],
        vec![credential],
        Some(&identity),
    )
    .await;
    let url = format!("https://{host}/user");
    let answer = out(&proxy
        .run(
            &curl,
            &["-sS", "-i", "-H", "Authorization: Bearer placeholder", &url],
        )
        .await);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("you sent *****************"), "{answer}");
}
