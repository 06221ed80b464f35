//! Attempts to bring the header where it does not belong.

use std::sync::Arc;

use hermetic_egress::{CompiledRules, ConversationEgress, Credential, EgressLimits, RulesText};
use hermetic_types::{ConversationKey, Secret};
use tokio::io::AsyncWriteExt;

use super::{Bench, PLACEHOLDER, SECRET, bench};
use crate::lab::origin::Origin;
use crate::lab::tls::{self, Identity};
use crate::lab::{Lab, local, read_all, read_head};

const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn values<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .collect()
}

#[tokio::test]
async fn the_header_goes_out_once_whatever_was_sent() {
    for sent in [
        "Authorization: Bearer hermetic-placeholder-1\r\nAuthorization: Bearer mine\r\n",
        "AUTHORIZATION: a\r\nauthorization: b\r\nAuThOrIzAtIoN: c\r\n",
        "Authorization:\r\n",
        // A header that belongs to this hop does not travel; ours does.
        "Connection: close, authorization\r\nAuthorization: Bearer hermetic-placeholder-1\r\n",
        "Connection: host, accept-encoding\r\n",
        "",
    ] {
        let bench = bench(EMPTY).await;
        assert!(
            bench.get(sent).await.starts_with("HTTP/1.1 200"),
            "{sent:?}"
        );
        let head = bench.heads.lock().unwrap()[0].clone();
        assert_eq!(
            values(&head, "authorization"),
            [format!("Bearer {SECRET}")],
            "{sent:?}: {head}"
        );
        assert_eq!(values(&head, "host"), [bench.target()], "{sent:?}: {head}");
    }
}

#[tokio::test]
async fn a_header_in_a_shape_of_its_own_is_refused() {
    for sent in [
        "Authorization : Bearer mine\r\n",
        "Authorization\r\n",
        "X: a\r\n Authorization: b\r\n",
        "X: a\rAuthorization: b\r\n",
        "X: a\nAuthorization: b\r\n",
        "Authorization: a\0b\r\n",
    ] {
        let bench = bench(EMPTY).await;
        let answer = bench.get(sent).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{sent:?}: {answer}");
        assert!(bench.heads.lock().unwrap().is_empty(), "{sent:?}");
    }
}

/// Another host, end to end: what it is told, and by which certificate it is known.
async fn other_origin() -> (Identity, Origin, Arc<std::sync::Mutex<Vec<String>>>) {
    let identity = Identity::of("other.test");
    let heads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = heads.clone();
    let origin = identity
        .serve(move |mut stream| {
            let seen = seen.clone();
            async move {
                while let Some(head) = crate::lab::origin::head(&mut stream).await {
                    seen.lock().unwrap().push(head);
                    let _ = stream.write_all(EMPTY.as_bytes()).await;
                    let _ = stream.flush().await;
                }
            }
        })
        .await;
    (identity, origin, heads)
}

impl Bench {
    /// The same lab's conversation with a second host allowed, and the first one's credential.
    fn conversation_with(
        &self,
        other: &Origin,
        secret: &str,
        placeholder: &str,
    ) -> Arc<ConversationEgress> {
        let credential = Credential::new(
            &self.target(),
            "Authorization",
            "Bearer",
            Secret::new(secret),
            placeholder,
        )
        .unwrap();
        let rules = RulesText::allowing([
            local("api.test", self.origin.at),
            local("other.test", self.origin.at),
            local("other.test", other.at),
        ]);
        ConversationEgress::new(
            ConversationKey::new("agent:main:test:dm:2"),
            CompiledRules::compile(&rules).unwrap(),
            vec![credential],
            &EgressLimits::default(),
        )
    }
}

#[tokio::test]
async fn a_client_that_follows_a_redirect_takes_only_the_placeholder_along() {
    let bench = bench(
        "HTTP/1.1 307 Over there\r\nLocation: https://other.test/\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let (identity, origin, heads) = other_origin().await;
    let conversation = bench.conversation_with(&origin, SECRET, PLACEHOLDER);
    let sent = format!("Authorization: Bearer {PLACEHOLDER}\r\n");
    let answer = bench.get_as(&conversation, &sent).await;
    // It is passed on, not followed: the secret went to its own host and to nobody else.
    assert!(answer.starts_with("HTTP/1.1 307 "), "{answer}");
    assert!(heads.lock().unwrap().is_empty());

    let target = format!("other.test:{}", origin.at.port());
    let mut stream = tunnel(&bench.lab, &conversation, &target).await;
    let connected = tls::connect(&mut stream, "other.test", &identity.certificate).await;
    let mut stream = connected.expect("the other host is end to end");
    let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\n{sent}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));
    let head = heads.lock().unwrap()[0].clone();
    assert_eq!(
        values(&head, "authorization"),
        [format!("Bearer {PLACEHOLDER}")]
    );
}

async fn tunnel(
    lab: &Lab,
    conversation: &Arc<ConversationEgress>,
    target: &str,
) -> tokio::io::DuplexStream {
    let mut stream = lab.dial_as(conversation);
    let connect = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
    stream.write_all(connect.as_bytes()).await.unwrap();
    let granted = read_head(&mut stream).await;
    assert!(granted.starts_with("HTTP/1.1 200"), "{granted}");
    stream
}

#[tokio::test]
async fn anothers_placeholder_brings_only_ones_own_secret() {
    let bench = bench(EMPTY).await;
    let (_, origin, _) = other_origin().await;
    let second = bench.conversation_with(&origin, "second-users-secret", "hermetic-placeholder-2");
    let stolen = format!("Authorization: Bearer {PLACEHOLDER}\r\nX-Also: {PLACEHOLDER}\r\n");
    bench.get_as(&second, &stolen).await;
    bench.get("").await;
    let heads = bench.heads.lock().unwrap().clone();
    assert_eq!(
        values(&heads[0], "authorization"),
        ["Bearer second-users-secret"]
    );
    assert!(!heads[0].contains(SECRET), "{}", heads[0]);
    assert_eq!(
        values(&heads[1], "authorization"),
        [format!("Bearer {SECRET}")]
    );
}

#[tokio::test]
async fn another_port_of_the_host_is_another_host() {
    let bench = bench(EMPTY).await;
    let identity = Identity::of("api.test");
    let heads = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = heads.clone();
    let beside = identity
        .serve(move |mut stream| {
            let seen = seen.clone();
            async move {
                if let Some(head) = crate::lab::origin::head(&mut stream).await {
                    seen.lock().unwrap().push(head);
                    let _ = stream.write_all(EMPTY.as_bytes()).await;
                    let _ = stream.flush().await;
                }
            }
        })
        .await;
    let rules = RulesText::allowing([
        local("api.test", bench.origin.at),
        local("api.test", beside.at),
    ]);
    bench
        .lab
        .conversation
        .set_rules(CompiledRules::compile(&rules).unwrap());
    let target = format!("api.test:{}", beside.at.port());
    let stream = bench.lab.tunnel(&target).await;
    let mut stream = tls::connect(stream, "api.test", &identity.certificate)
        .await
        .expect("this port is end to end");
    let request =
        format!("GET / HTTP/1.1\r\nHost: {target}\r\nAuthorization: Bearer {PLACEHOLDER}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_head(&mut stream).await;
    let head = heads.lock().unwrap()[0].clone();
    assert_eq!(
        values(&head, "authorization"),
        [format!("Bearer {PLACEHOLDER}")]
    );
}

#[tokio::test]
async fn a_name_in_tls_that_is_another_ends_the_tunnel() {
    let bench = bench(EMPTY).await;
    for name in ["other.test", "a.api.test", "test"] {
        let tunnel = bench.lab.tunnel(&bench.target()).await;
        assert!(
            tls::connect(tunnel, name, &bench.ca).await.is_err(),
            "{name}"
        );
    }
    assert_eq!(bench.origin.connections(), 0);
}

#[tokio::test]
async fn who_speaks_only_http2_is_told_that_nobody_does() {
    let bench = bench(EMPTY).await;
    let tunnel = bench.lab.tunnel(&bench.target()).await;
    let spoken = tls::connect_speaking(tunnel, "api.test", &bench.ca, &["h2"]).await;
    assert!(spoken.is_err());
    assert_eq!(bench.origin.connections(), 0);

    let tunnel = bench.lab.tunnel(&bench.target()).await;
    let spoken = tls::connect_speaking(tunnel, "api.test", &bench.ca, &["h2", "http/1.1"]).await;
    let stream = spoken.expect("the older one is understood");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn an_upgrade_to_something_else_is_not_asked_for() {
    let bench = bench(EMPTY).await;
    bench
        .get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n")
        .await;
    let head = bench.heads.lock().unwrap()[0].to_lowercase();
    assert!(
        !head.contains("h2c") && !head.contains("http2-settings"),
        "{head}"
    );
}

#[tokio::test]
async fn a_request_behind_another_is_held_to_the_same_host() {
    let bench = bench(EMPTY).await;
    let tunnel = bench.lab.tunnel(&bench.target()).await;
    let mut stream = tls::connect(tunnel, "api.test", &bench.ca).await.unwrap();
    let both = format!(
        "GET /one HTTP/1.1\r\nHost: {}\r\n\r\nGET /two HTTP/1.1\r\nHost: other.test:{}\r\n\r\n",
        bench.target(),
        bench.origin.at.port(),
    );
    stream.write_all(both.as_bytes()).await.unwrap();
    let answers = read_all(&mut stream).await;
    assert!(answers.starts_with("HTTP/1.1 200"), "{answers}");
    assert!(answers.contains("HTTP/1.1 400 "), "{answers}");
    let heads = bench.heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 1, "{heads:?}");
}
