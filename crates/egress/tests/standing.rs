//! Connections that stand while somebody takes back what they stand on.

use hermetic_egress::{CompiledRules, EgressDecision, RulesText};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lab::origin::{Origin, head};
use crate::lab::tls::{Identity, connect};
use crate::lab::{Lab, local, read_head};

fn denying(lab: &Lab, host: &str) {
    let mut text = RulesText::default();
    text.deny.push(host.into());
    lab.conversation
        .set_rules(CompiledRules::compile(&text).unwrap());
}

async fn faults(lab: &Lab) -> Vec<String> {
    let entries = lab.finished().await.into_iter();
    let faults = entries.filter_map(|entry| match entry.verdict {
        EgressDecision::Closed { fault } => fault,
        _ => None,
    });
    faults.collect()
}

#[tokio::test]
async fn a_host_that_is_denied_loses_its_tunnels() {
    let origin = Origin::echo().await;
    let rule = format!("tcp://{}", local("origin.test", origin.at));
    let lab = Lab::allowing(&[&rule]);
    let mut tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    tunnel.write_all(b"before").await.unwrap();
    tunnel.read_exact(&mut [0; 6]).await.unwrap();

    // A change that says nothing about it leaves it standing.
    let text = RulesText::allowing([rule.as_str(), "other.test"]);
    lab.conversation
        .set_rules(CompiledRules::compile(&text).unwrap());
    tunnel.write_all(b"between").await.unwrap();
    tunnel.read_exact(&mut [0; 7]).await.unwrap();

    denying(&lab, "origin.test");
    assert_eq!(tunnel.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(faults(&lab).await, ["a rule has come to forbid it"]);
}

#[tokio::test]
async fn a_rule_that_is_taken_back_takes_tls_tunnels_with_it() {
    let identity = Identity::of("secure.test");
    let origin = identity
        .serve(|mut stream| async move {
            while head(&mut stream).await.is_some() {
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    .await;
                let _ = stream.flush().await;
            }
        })
        .await;
    let lab = Lab::allowing(&[&local("secure.test", origin.at)]);
    let tunnel = lab
        .tunnel(&format!("secure.test:{}", origin.at.port()))
        .await;
    let mut tls = connect(tunnel, "secure.test", &identity.certificate)
        .await
        .unwrap();
    tls.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(read_head(&mut tls).await.starts_with("HTTP/1.1 200 "));
    lab.conversation.set_rules(CompiledRules::default());
    // An end without TLS's own goodbye: nobody can take it for a whole answer.
    assert!(tls.read(&mut [0; 8]).await.is_err());
    assert_eq!(faults(&lab).await, ["the rule was taken back"]);
}

#[tokio::test]
async fn an_answer_under_way_is_cut_too() {
    let origin = Origin::start(|mut stream| async move {
        head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart")
            .await;
        // The rest never comes; the connection ends when the proxy ends it.
        let _ = stream.read(&mut [0; 8]).await;
    })
    .await;
    let lab = Lab::allowing(&[&local("origin.test", origin.at)]);
    let authority = format!("origin.test:{}", origin.at.port());
    let mut stream = lab.dial();
    let request = format!("GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(read_head(&mut stream).await.starts_with("HTTP/1.1 200 "));
    stream.read_exact(&mut [0; 4]).await.unwrap();
    denying(&lab, "*.test");
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(faults(&lab).await, ["a rule has come to forbid it"]);
}
