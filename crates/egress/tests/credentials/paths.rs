//! A credential that is for some paths of its host only.

use std::sync::Arc;

use hermetic_egress::{
    CompiledRules, ConversationEgress, Credential, EgressDecision, EgressLimits, RulesText,
};
use hermetic_types::{ConversationKey, Secret};
use tokio::io::AsyncWriteExt;

use super::{Bench, PLACEHOLDER, SECRET, bench};
use crate::lab::{local, read_all, read_head, tls};

const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A conversation whose credential is for `/v1/messages`.
fn limited(bench: &Bench) -> Arc<ConversationEgress> {
    let credential = Credential::new(
        &bench.target(),
        "Authorization",
        "Bearer",
        Secret::new(SECRET),
        PLACEHOLDER,
    );
    let credential = credential.unwrap().limited_to(&["/v1/messages".to_owned()]);
    let rules = RulesText::allowing([local("api.test", bench.origin.at)]);
    ConversationEgress::new(
        ConversationKey::new("agent:main:test:dm:limited"),
        CompiledRules::compile(&rules).unwrap(),
        vec![credential.unwrap()],
        &EgressLimits::default(),
    )
}

async fn post(bench: &Bench, conversation: &Arc<ConversationEgress>, path: &str) -> String {
    let mut stream = bench.lab.dial_as(conversation);
    let connect = format!("CONNECT {} HTTP/1.1\r\n\r\n", bench.target());
    stream.write_all(connect.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));
    let mut stream = tls::connect(stream, "api.test", &bench.ca).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer somebody-elses-key\r\n\
         X-Api-Key: somebody-elses-key\r\nCookie: session=somebody-elses-key\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n",
        bench.target()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

/// Not even with a key of the sandbox's own: the host would be a way to carry files out.
#[tokio::test]
async fn a_request_outside_the_paths_is_refused_and_never_sent() {
    let bench = bench(PLAIN).await;
    let conversation = limited(&bench);
    let asked = post(&bench, &conversation, "/v1/messages?beta=true").await;
    assert!(asked.ends_with("ok"), "{asked}");
    let below = post(&bench, &conversation, "/v1/messages/count_tokens").await;
    assert!(below.ends_with("ok"), "{below}");
    for path in [
        "/v1/files",
        "/",
        "/v1/messages/../files",
        "/v1/messages/%2e%2e/files",
        "/v1/messagesx",
    ] {
        let refused = post(&bench, &conversation, path).await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{path}: {refused}");
        assert!(refused.contains("gateway.egress.credentials"), "{refused}");
    }
    let heads = bench.heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 2, "{heads:?}");
    for head in heads {
        assert!(head.contains(&format!("Bearer {SECRET}\r\n")), "{head}");
        assert!(!head.contains("somebody-elses-key"), "{head}");
    }
    let refusals = bench.lab.finished().await.into_iter();
    let refused = refusals.filter(|entry| matches!(entry.verdict, EgressDecision::Refused { .. }));
    assert_eq!(refused.count(), 5);
}

/// Whoever has one without a limit for the same host may ask for everything there.
#[tokio::test]
async fn a_credential_without_paths_opens_the_rest() {
    let bench = bench(PLAIN).await;
    let asked = post(&bench, &bench.lab.conversation, "/v1/files").await;
    assert!(asked.ends_with("ok"), "{asked}");
}
