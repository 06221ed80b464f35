//! A credential that a conversation has no longer goes nowhere, on a connection that stands either.

use std::collections::BTreeMap;

use hermetic_egress::{Credential, CredentialGrant, Egress, EgressRules, RulesText};
use hermetic_types::{ConversationKey, Secret};
use tokio::io::AsyncWriteExt;

use super::{PLACEHOLDER, SECRET, bench};
use crate::lab::{local, read_head, tls};

const PLAIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn what_was_an_agents_is_not_put_in_after_it_has_gone() {
    let bench = bench(PLAIN).await;
    let host = local("api.test", bench.origin.at);
    let credential = Credential::new(
        &bench.target(),
        "Authorization",
        "Bearer",
        Secret::new(SECRET),
        PLACEHOLDER,
    );
    // The host is everybody's, so that no rule cuts the connection when the agent goes.
    let rules = EgressRules {
        rules: RulesText::allowing([host]),
        credentials: vec![CredentialGrant {
            credential: credential.unwrap(),
            scope: None,
            variable: None,
            agent: Some("claude".to_owned()),
        }],
        agents: BTreeMap::from([("claude".to_owned(), RulesText::default())]),
        ..EgressRules::default()
    };
    let egress = Egress::new(bench.lab.proxy.clone(), rules).unwrap();
    let key = ConversationKey::new("agent:main:test:dm:1");
    let conversation = egress.conversation(&key);
    egress.choose_agent(&key, Some("claude"));

    let mut stream = bench.lab.dial_as(&conversation);
    let connect = format!("CONNECT {} HTTP/1.1\r\n\r\n", bench.target());
    stream.write_all(connect.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));
    let mut stream = tls::connect(stream, "api.test", &bench.ca).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", bench.target());
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200"));

    egress.choose_agent(&key, None);
    stream.write_all(request.as_bytes()).await.unwrap();
    let refused = read_head(&mut stream).await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert_eq!(bench.heads.lock().unwrap().len(), 1);
}
