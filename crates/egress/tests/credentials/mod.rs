//! Credentials: put in for one host, seen by nobody else.

mod attacks;
mod echoes;
mod guesses;
mod paths;
mod taken_back;
mod upstream;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermetic_egress::{
    CertificateAuthority, CertificateBundle, CompiledRules, ConversationEgress, Credential,
    CredentialGrant, Egress, EgressClient, EgressLimits, EgressMethod, EgressRules, RulesText,
    TrustRoots,
};
use hermetic_types::{ConversationKey, Secret, SystemClock};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncWriteExt;

use crate::lab::origin::{Origin, head};
use crate::lab::tls::{self, Identity};
use crate::lab::{Lab, Setup, local, read_all};

const SECRET: &str = "ghp_realtoken123456";
const PLACEHOLDER: &str = "hermetic-placeholder-1";

struct Bench {
    lab: Lab,
    origin: Origin,
    heads: Arc<Mutex<Vec<String>>>,
    ca: CertificateDer<'static>,
}

/// An origin that echoes the head it was sent, secret and all.
async fn bench(answer: &'static str) -> Bench {
    bench_with("api.test", answer, "api.test").await
}

async fn bench_with(certificate_name: &str, answer: &'static str, credential_host: &str) -> Bench {
    let identity = Identity::of(certificate_name);
    let trusted = identity.certificate.clone();
    bench_of(&identity, trusted, answer, credential_host).await
}

/// An origin that proves itself by `identity`, where the proxy believes `trusted`.
async fn bench_of(
    identity: &Identity,
    trusted: CertificateDer<'static>,
    answer: &'static str,
    credential_host: &str,
) -> Bench {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let origin = identity
        .serve(move |mut stream| {
            let seen = seen.clone();
            async move {
                while let Some(head) = head(&mut stream).await {
                    let answer = answer
                        .replace("{head}", &head)
                        .replace("{length}", &head.len().to_string());
                    seen.lock().unwrap().push(head);
                    // In small pieces, so that the secret is cut somewhere.
                    for piece in answer.as_bytes().chunks(7) {
                        if stream.write_all(piece).await.is_err() || stream.flush().await.is_err() {
                            return;
                        }
                    }
                }
            }
        })
        .await;
    let authority = Arc::new(CertificateAuthority::ephemeral(SystemClock::shared()).unwrap());
    let ca = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
    let host = format!("{credential_host}:{}", origin.at.port());
    let credential = Credential::new(
        &host,
        "Authorization",
        "Bearer",
        Secret::new(SECRET),
        PLACEHOLDER,
    )
    .unwrap();
    let lab = Lab::new(Setup {
        rules: RulesText::allowing([local("api.test", origin.at), local("other.test", origin.at)]),
        credentials: vec![credential],
        interception: Some((authority, TrustRoots::Only(vec![trusted]))),
        ..Setup::default()
    });
    Bench {
        lab,
        origin,
        heads,
        ca,
    }
}

impl Bench {
    fn target(&self) -> String {
        format!("api.test:{}", self.origin.at.port())
    }

    async fn get(&self, extra: &str) -> String {
        self.get_as(&self.lab.conversation, extra).await
    }

    async fn get_as(&self, conversation: &Arc<ConversationEgress>, extra: &str) -> String {
        let mut stream = self.lab.dial_as(conversation);
        let connect = format!("CONNECT {} HTTP/1.1\r\n\r\n", self.target());
        stream.write_all(connect.as_bytes()).await.unwrap();
        let granted = crate::lab::read_head(&mut stream).await;
        assert!(granted.starts_with("HTTP/1.1 200"), "{granted}");
        let mut stream = tls::connect(stream, "api.test", &self.ca).await.unwrap();
        let request = format!(
            "GET /user HTTP/1.1\r\nHost: {}\r\n{extra}Connection: close\r\n\r\n",
            self.target()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        read_all(&mut stream).await
    }
}

const ECHO: &str = "HTTP/1.1 200 OK\r\nX-Echo: Bearer ghp_realtoken123456\r\nContent-Length: {length}\r\n\r\n{head}";

#[tokio::test]
async fn the_header_is_put_in_and_its_echo_taken_out() {
    let bench = bench(ECHO).await;
    let answer = bench.get(&format!("Authorization: Bearer {PLACEHOLDER}\r\nX-Other: {PLACEHOLDER}\r\nAccept-Encoding: gzip\r\nRange: bytes=0-3\r\n")).await;
    let head = bench.heads.lock().unwrap()[0].clone();
    assert!(
        head.contains(&format!("Authorization: Bearer {SECRET}\r\n")),
        "{head}"
    );
    assert!(
        head.contains(&format!("X-Other: {PLACEHOLDER}\r\n")),
        "elsewhere a placeholder stays one: {head}"
    );
    assert!(
        head.contains("Accept-Encoding: identity\r\n") && !head.contains("Range"),
        "{head}"
    );
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(!answer.contains("realtoken"), "{answer}");
    assert_eq!(
        answer.matches(&"*".repeat(SECRET.len())).count(),
        2,
        "{answer}"
    );
    let entries = bench.lab.finished().await;
    assert_eq!(entries[0].how, EgressMethod::Credential);
    assert!(!format!("{entries:?}").contains("realtoken"));
}

#[tokio::test]
async fn an_echo_in_chunks_is_taken_out() {
    let bench = bench("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nxghp_rea\r\nc\r\nltoken123456\r\n0\r\n\r\n").await;
    let answer = bench.get("").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        !answer.contains("ghp_") && !answer.contains("ltoken"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_compressed_answer_is_refused() {
    let bench =
        bench("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhi").await;
    assert!(bench.get("").await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn another_conversation_does_not_get_it() {
    let bench = bench(ECHO).await;
    let stranger = ConversationEgress::new(
        ConversationKey::new("agent:main:test:dm:2"),
        CompiledRules::compile(&RulesText::allowing([local("api.test", bench.origin.at)])).unwrap(),
        Vec::new(),
        &EgressLimits::default(),
    );
    // For it the tunnel is end to end: our certificate is not what it sees.
    let mut stream = bench.lab.dial_as(&stranger);
    stream
        .write_all(format!("CONNECT {} HTTP/1.1\r\n\r\n", bench.target()).as_bytes())
        .await
        .unwrap();
    crate::lab::read_head(&mut stream).await;
    assert!(tls::connect(stream, "api.test", &bench.ca).await.is_err());
    assert!(bench.heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_origin_that_cannot_prove_itself_gets_nothing() {
    let bench = bench_with("impostor.test", ECHO, "api.test").await;
    let answer = bench.get("").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("no credential was sent"), "{answer}");
    assert!(bench.heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_host_inside_must_be_the_host_outside() {
    let bench = bench(ECHO).await;
    for request in [
        "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
        "GET https://other.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n",
    ] {
        let tunnel = bench.lab.tunnel(&bench.target()).await;
        let mut stream = tls::connect(tunnel, "api.test", &bench.ca).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 40"), "{request}: {answer}");
    }
    assert!(bench.heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn requests_follow_each_other_on_one_connection() {
    use crate::lab::read_head;
    let bench = bench("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let tunnel = bench.lab.tunnel(&bench.target()).await;
    let mut stream = tls::connect(tunnel, "api.test", &bench.ca).await.unwrap();
    for _ in 0..3 {
        let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", bench.target());
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(bench.origin.connections(), 1);
    assert_eq!(bench.lab.resolver.asked().len(), 1);
    assert!(
        bench
            .heads
            .lock()
            .unwrap()
            .iter()
            .all(|head| head.contains(SECRET))
    );
}

#[tokio::test]
async fn plain_http_never_carries_the_secret() {
    let (origin, heads) = Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let authority = Arc::new(CertificateAuthority::ephemeral(SystemClock::shared()).unwrap());
    let host = format!("api.test:{}", origin.at.port());
    let lab = Lab::new(Setup {
        rules: RulesText::allowing([local("api.test", origin.at)]),
        credentials: vec![
            Credential::new(
                &host,
                "Authorization",
                "Bearer",
                Secret::new(SECRET),
                PLACEHOLDER,
            )
            .unwrap(),
        ],
        interception: Some((
            authority,
            TrustRoots::Only(vec![Identity::of("x.test").certificate]),
        )),
        ..Setup::default()
    });
    let request = format!(
        "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {PLACEHOLDER}\r\nConnection: close\r\n\r\n"
    );
    assert!(lab.ask(request).await.starts_with("HTTP/1.1 200"));
    let head = heads.lock().unwrap()[0].clone();
    assert!(
        head.contains(PLACEHOLDER) && !head.contains(SECRET),
        "{head}"
    );
}

#[tokio::test]
async fn a_cut_answer_does_not_look_whole() {
    use tokio::io::AsyncReadExt;
    let identity = Identity::of("api.test");
    let origin = identity
        .serve(|mut stream| async move {
            head(&mut stream).await.unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").await;
            let _ = stream.flush().await;
            // No goodbye: the connection just ends.
        })
        .await;
    let authority = Arc::new(CertificateAuthority::ephemeral(SystemClock::shared()).unwrap());
    let ca = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
    let host = format!("api.test:{}", origin.at.port());
    let credential =
        Credential::new(&host, "X-Api-Key", "", Secret::new(SECRET), PLACEHOLDER).unwrap();
    let lab = Lab::new(Setup {
        rules: RulesText::allowing([local("api.test", origin.at)]),
        credentials: vec![credential],
        interception: Some((
            authority,
            TrustRoots::Only(vec![identity.certificate.clone()]),
        )),
        ..Setup::default()
    });
    let tunnel = lab.tunnel(&host).await;
    let mut stream = tls::connect(tunnel, "api.test", &ca).await.unwrap();
    stream
        .write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut all = Vec::new();
    let error = stream.read_to_end(&mut all).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(all.ends_with(b"half"), "{}", String::from_utf8_lossy(&all));
}

#[tokio::test]
async fn a_websocket_that_echoes_the_secret_is_redacted() {
    use tokio::io::AsyncReadExt;
    // Two frames of one text.
    const FRAMES: &str = "\x01\x0b<ghp_realto\x00\x0aken123456>";
    let bench = bench(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x01\x0b<ghp_realto\x00\x0aken123456>",
    )
    .await;
    let tunnel = bench.lab.tunnel(&bench.target()).await;
    let mut stream = tls::connect(tunnel, "api.test", &bench.ca).await.unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
        bench.target()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(
        crate::lab::read_head(&mut stream)
            .await
            .starts_with("HTTP/1.1 101 ")
    );
    let mut echoed = vec![0; FRAMES.len()];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(
        String::from_utf8(echoed).unwrap(),
        "\x01\x0b<**********\x00\x0a*********>"
    );
    assert!(
        !bench.heads.lock().unwrap()[0].contains("deflate"),
        "a compressed echo could not be searched"
    );
}

#[tokio::test]
async fn http2_is_not_taken_for_a_request() {
    let bench = bench(ECHO).await;
    let tunnel = bench.lab.tunnel(&bench.target()).await;
    let mut stream = tls::connect(tunnel, "api.test", &bench.ca).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 400 "));
    assert!(bench.heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_tool_beside_the_sandbox_has_the_same_way_out() {
    let bench = bench("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{head}").await;
    let port = bench.origin.at.port();
    let host = format!("api.test:{port}");
    let secret = Secret::new(SECRET);
    let credential = Credential::new(&host, "Authorization", "Bearer", secret, PLACEHOLDER);
    let rules = EgressRules {
        rules: RulesText::allowing([local("api.test", bench.origin.at)]),
        credentials: vec![CredentialGrant {
            credential: credential.unwrap(),
            scope: None,
            variable: None,
            agent: None,
        }],
        ..EgressRules::default()
    };
    let pem = STANDARD.encode(&bench.ca);
    let bundle = CertificateBundle {
        path: "/nowhere".to_owned(),
        pem: format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n"),
    };
    let egress = Egress::new(bench.lab.proxy.clone(), rules).unwrap();
    let egress = Arc::new(egress.trusting(bundle));
    let client = EgressClient::new(egress, &ConversationKey::new("telegram:dm:1"));

    let mut stream = client.secure("api.test", port).await.unwrap();
    let get = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {PLACEHOLDER}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(get.as_bytes()).await.unwrap();
    let answer = read_all(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains(SECRET), "{answer}");
    assert!(
        bench.heads.lock().unwrap()[0].contains(SECRET),
        "it was put in"
    );

    for elsewhere in ["other.test", "127.0.0.1", "localhost"] {
        let refused = client.secure(elsewhere, port).await.unwrap_err();
        assert!(!refused.to_string().is_empty(), "{elsewhere}");
    }
    assert_eq!(
        bench.heads.lock().unwrap().len(),
        1,
        "nothing else came through"
    );
}
