//! HTTP/2, from the client to the origin and past us.

use bytes::Bytes;

use super::{find, listen, out};
use crate::lab::local;
use crate::lab::tls::Identity;

/// Answers each request with the version it came in and its path.
async fn origin(identity: &Identity) -> crate::lab::origin::Origin {
    identity
        .serve(|stream| async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else {
                return;
            };
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let said = format!("{:?} {}\n", request.version(), request.uri().path());
                let Ok(mut body) = respond.send_response(http::Response::new(()), false) else {
                    return;
                };
                let _ = body.send_data(Bytes::from(said), true);
            }
        })
        .await
}

#[tokio::test]
async fn curl_speaks_http2_end_to_end() {
    let Some(curl) = find("curl_speaks_http2_end_to_end", "curl") else {
        return;
    };
    let identity = Identity::of("two.test").speaking(&["h2"]);
    let origin = origin(&identity).await;
    let proxy = listen(&[local("two.test", origin.at)], Vec::new(), Some(&identity)).await;
    let able = out(&proxy.run(&curl, &["--version"]).await);
    if !able.contains("HTTP2") {
        eprintln!("SKIP: curl_speaks_http2_end_to_end: this curl does not speak HTTP/2");
        return;
    }
    let at = format!("https://two.test:{}", origin.at.port());
    let urls = [format!("{at}/one"), format!("{at}/two")];
    let said = proxy
        .run(&curl, &["-sS", "--http2", &urls[0], &urls[1]])
        .await;
    assert_eq!(out(&said), "HTTP/2.0 /one\nHTTP/2.0 /two\n");
    assert_eq!(origin.connections(), 1);
}

#[tokio::test]
async fn curl_falls_back_where_a_credential_is_put_in() {
    use hermetic_egress::Credential;
    use hermetic_types::Secret;

    let Some(curl) = find("curl_falls_back_where_a_credential_is_put_in", "curl") else {
        return;
    };
    let identity = Identity::of("api.test");
    let origin = super::tls_origin(&identity).await;
    let host = format!("api.test:{}", origin.at.port());
    let secret = Secret::new("real-secret-value");
    let credential = Credential::new(&host, "X-Api-Key", "", secret, "placeholder").unwrap();
    let rules = [local("api.test", origin.at)];
    let proxy = listen(&rules, vec![credential], Some(&identity)).await;
    let url = format!("https://{host}/");
    let words = [
        "-sS",
        "--http2",
        "-o",
        "/dev/null",
        "-w",
        "%{http_version}",
        &url,
    ];
    assert_eq!(out(&proxy.run(&curl, &words).await), "1.1");
}
