use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use hermetic_egress::{
    Egress, EgressDecision, EgressLimits, EgressOwner, EgressRules, HostName, Proxy, Resolver,
    RulesText,
};
use hermetic_types::ConversationKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::lab::origin::Origin;
use crate::lab::{Lab, Setup, local, read_all};

/// Where real sockets are waited for the clock cannot be ours, so the limit is short.
const SOON: Duration = Duration::from_millis(50);

fn lab(rule: &str, limits: EgressLimits) -> Lab {
    Lab::new(Setup {
        rules: RulesText::allowing([rule]),
        limits,
        ..Setup::default()
    })
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_is_cut_off() {
    let lab = lab("origin.test", EgressLimits::default());
    let mut stream = lab.dial();
    let (mut reader, mut writer) = tokio::io::split(&mut stream);
    let drip = async {
        loop {
            if writer.write_all(b"X").await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    tokio::select! {
        () = drip => {}
        answer = read_all(&mut reader) => assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_speaks_is_let_go() {
    let lab = lab("origin.test", EgressLimits::default());
    let mut stream = lab.dial();
    assert_eq!(read_all(&mut stream).await, "");
    lab.finished().await;
    assert_eq!(lab.conversation.account().connections(), 0);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let lab = lab(
        "origin.test",
        EgressLimits {
            head_bytes: 4096,
            ..EgressLimits::default()
        },
    );
    let request = format!(
        "GET http://origin.test/ HTTP/1.1\r\nX: {}\r\n\r\n",
        "a".repeat(8000)
    );
    assert!(lab.ask(request).await.starts_with("HTTP/1.1 431 "));
}

#[tokio::test]
async fn connections_of_a_conversation_are_counted() {
    let lab = lab(
        "origin.test",
        EgressLimits {
            connections: 2,
            ..EgressLimits::default()
        },
    );
    let (mut one, _two) = (lab.dial(), lab.dial());
    one.write_all(b"G").await.unwrap();
    while lab.conversation.account().connections() < 2 {
        tokio::task::yield_now().await;
    }
    let mut three = lab.dial();
    assert!(read_all(&mut three).await.starts_with("HTTP/1.1 503 "));
    drop(one);
    while lab.conversation.account().connections() > 1 {
        tokio::task::yield_now().await;
    }
    assert!(
        lab.ask("GET /health HTTP/1.1\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 200 ")
    );
}

#[tokio::test]
async fn the_budget_ends_a_stream_in_the_middle() {
    const BUDGET: u64 = 100_000;
    let origin = Origin::start(|mut stream| async move {
        let block = vec![b'x'; 10_000];
        while stream.write_all(&block).await.is_ok() {}
    })
    .await;
    let rule = format!("tcp://{}", local("origin.test", origin.at));
    let lab = lab(
        &rule,
        EgressLimits {
            budget: Some(BUDGET),
            ..EgressLimits::default()
        },
    );
    let target = format!("origin.test:{}", origin.at.port());
    let mut tunnel = lab.tunnel(&target).await;
    let mut received = Vec::new();
    let _ = tunnel.read_to_end(&mut received).await;
    assert!(
        received.len() as u64 <= BUDGET,
        "{} bytes came through",
        received.len()
    );
    drop(tunnel);

    let answer = lab.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
    let spent = lab.conversation.account().bytes();
    if spent == BUDGET {
        assert!(answer.contains("budget"), "{answer}");
    }
    let entries = lab.finished().await;
    let fault = entries.iter().find_map(|entry| match &entry.verdict {
        EgressDecision::Closed { fault } => fault.clone(),
        _ => None,
    });
    assert!(
        fault.is_some_and(|fault| fault.contains("budget")),
        "{entries:?}"
    );
}

#[tokio::test]
async fn an_idle_tunnel_is_closed() {
    let origin = Origin::echo().await;
    let rule = format!("tcp://{}", local("origin.test", origin.at));
    let lab = lab(
        &rule,
        EgressLimits {
            idle: SOON,
            ..EgressLimits::default()
        },
    );
    let mut tunnel = lab
        .tunnel(&format!("origin.test:{}", origin.at.port()))
        .await;
    assert_eq!(read_all(&mut tunnel).await, "");
    let entries = lab.finished().await;
    let EgressDecision::Closed { fault: Some(fault) } = &entries.last().unwrap().verdict else {
        panic!("{entries:?}")
    };
    assert!(fault.starts_with("nothing was said for"), "{fault}");
}

#[tokio::test]
async fn an_origin_that_never_answers_is_given_up() {
    let origin = Origin::start(|stream| async move {
        let _held = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let lab = lab(
        &local("origin.test", origin.at),
        EgressLimits {
            first_byte: SOON,
            ..EgressLimits::default()
        },
    );
    let target = format!("origin.test:{}", origin.at.port());
    let answer = lab
        .ask(format!(
            "GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n"
        ))
        .await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_told_in_words() {
    let lab = lab(
        "tcp://origin.test:1 in 127.0.0.0/8",
        EgressLimits::default(),
    );
    let answer = lab.ask("CONNECT origin.test:1 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_let_go() {
    let origin = Origin::start(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        let block = vec![b'x'; 64 * 1024];
        while stream.write_all(&block).await.is_ok() {}
    })
    .await;
    let lab = lab(
        &local("origin.test", origin.at),
        EgressLimits {
            idle: SOON,
            ..EgressLimits::default()
        },
    );
    let target = format!("origin.test:{}", origin.at.port());
    let mut stream = lab.dial();
    let request = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    lab.finished().await;
    assert_eq!(lab.conversation.account().connections(), 0);
}

#[tokio::test]
async fn the_system_resolver_is_not_trusted_either() {
    use hermetic_egress::SystemResolver;
    let origin = Origin::echo().await;
    let port = origin.at.port();
    for (rule, status) in [
        (format!("tcp://localhost:{port}"), "403"),
        (format!("tcp://localhost:{port} in 127.0.0.0/8,::1"), "200"),
    ] {
        let journal = Arc::new(crate::lab::Journal::default());
        let setup = Setup {
            rules: RulesText::allowing([rule]),
            ..Setup::default()
        };
        let lab = Lab::changed(setup, |_| {
            Proxy::new(
                EgressLimits::default(),
                Arc::new(SystemResolver::default()),
                journal,
            )
        });
        let mut stream = lab.dial();
        let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = crate::lab::read_head(&mut stream).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    }
}

/// Has so many turns for everybody. Names that begin with `silent` are never answered.
struct FewTurns {
    free: tokio::sync::Semaphore,
    held: AtomicUsize,
}

impl Resolver for FewTurns {
    fn resolve<'a>(&'a self, host: &'a HostName) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let _turn = self.free.acquire().await;
            if host.as_str().starts_with("silent") {
                self.held.fetch_add(1, Ordering::SeqCst);
                std::future::pending::<()>().await;
            }
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        })
    }
}

#[tokio::test]
async fn one_person_of_many_topics_leaves_others_their_look_ups() {
    const TURNS: usize = 32;
    let origin = Origin::echo().await;
    let resolver = Arc::new(FewTurns {
        free: tokio::sync::Semaphore::new(TURNS),
        held: AtomicUsize::new(0),
    });
    let (told, journal) = (Arc::clone(&resolver), Arc::<crate::lab::Journal>::default());
    let lab = Lab::changed(Setup::default(), |_| {
        Proxy::new(EgressLimits::default(), told, journal)
    });
    let port = origin.at.port();
    let rules = EgressRules {
        rules: RulesText::allowing([format!("tcp://*.test:{port} in 127.0.0.0/8")]),
        ..EgressRules::default()
    };
    let egress = Egress::new(lab.proxy.clone(), rules).unwrap();
    let topic_of = |person: &str, topic: usize| {
        let conversation = egress.conversation(&ConversationKey::new(format!("{person}:{topic}")));
        egress.note_owner(&conversation, EgressOwner::named(person));
        conversation
    };

    let mut asked = Vec::new();
    for topic in 0..TURNS {
        let conversation = topic_of("ada", topic);
        for name in 0..8 {
            let mut stream = lab.dial_as(&conversation);
            let request = format!("CONNECT silent-{name}.test:{port} HTTP/1.1\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            asked.push(stream);
        }
    }
    let most = EgressLimits::default().lookups_of_owner;
    while resolver.held.load(Ordering::SeqCst) < most {
        tokio::task::yield_now().await;
    }

    let mut second = lab.dial_as(&topic_of("ben", 0));
    let request = format!("CONNECT origin.test:{port} HTTP/1.1\r\n\r\n");
    second.write_all(request.as_bytes()).await.unwrap();
    let head = crate::lab::read_head(&mut second).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(
        resolver.held.load(Ordering::SeqCst),
        most,
        "and none of them more"
    );
}
