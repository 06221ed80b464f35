//! Leaving through a company's proxy: everything still judged here, and nothing of the login seen inside.

mod forwarded;
mod hostile;
mod squid;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermetic_egress::{NameCheck, UpstreamRoute};
use hermetic_upstream::{ProxyExceptions, UpstreamProxy};
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::lab::origin::{Origin, head};
use crate::lab::tls::{self, Identity};
use crate::lab::{Lab, Setup, local, read_all};

const LOGIN: &str = "clerk:correct-horse-battery";

/// A company's proxy: takes every CONNECT to one place, answers every other request by itself.
struct Company {
    origin: Origin,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Company {
    async fn leading_to(place: SocketAddr) -> Self {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = heads.clone();
        let origin = Origin::start(move |mut stream| {
            let seen = seen.clone();
            async move {
                while let Some(head) = head(&mut stream).await {
                    let tunnels = head.starts_with("CONNECT ");
                    seen.lock().unwrap().push(head.clone());
                    if !tunnels {
                        // Tells everything it was told, login and all.
                        let answer = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{head}",
                            head.len()
                        );
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                        continue;
                    }
                    let mut far = TcpStream::connect(place).await.unwrap();
                    let yes = b"HTTP/1.1 200 Connection established\r\nVia: company\r\n\r\n";
                    if stream.write_all(yes).await.is_ok() {
                        let _ = copy_bidirectional(&mut stream, &mut far).await;
                    }
                    return;
                }
            }
        })
        .await;
        Self { origin, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn route(at: SocketAddr, login: &str, names: NameCheck, except: &str) -> UpstreamRoute {
    let proxy = UpstreamProxy::parse(&format!("http://{login}{at}")).unwrap();
    UpstreamRoute::new(proxy.except(ProxyExceptions::parse(except)), names).unwrap()
}

fn lab(rules: &[&str], route: UpstreamRoute) -> Lab {
    let setup = Setup {
        rules: hermetic_egress::RulesText::allowing(rules.iter().copied()),
        ..Setup::default()
    };
    Lab::changed(setup, |proxy| proxy.leaving_through(route))
}

/// A request over TLS through our proxy and whatever stands behind it.
async fn over_tls(lab: &Lab, host: &str, port: u16, identity: &Identity) -> String {
    let tunnel = lab.tunnel(&format!("{host}:{port}")).await;
    let mut stream = tls::connect(tunnel, host, &identity.certificate)
        .await
        .unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    read_all(&mut stream).await
}

async fn tls_origin(host: &str) -> (Origin, Identity) {
    let identity = Identity::of(host);
    let origin = identity
        .serve(|mut stream| async move {
            if head(&mut stream).await.is_some() {
                let _ = stream
                    .write_all(
                        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfar\n",
                    )
                    .await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
    (origin, identity)
}

#[tokio::test]
async fn a_tunnel_goes_through_the_proxy_with_its_login_and_by_its_name() {
    let (origin, identity) = tls_origin("api.test").await;
    let company = Company::leading_to(origin.at).await;
    let port = origin.at.port();
    let route = route(
        company.origin.at,
        &format!("{LOGIN}@"),
        NameCheck::Checked,
        "",
    );
    let lab = lab(&[&local("api.test", origin.at)], route);
    let answer = over_tls(&lab, "api.test", port, &identity).await;
    assert!(answer.ends_with("far\n"), "{answer}");
    let heads = company.heads();
    assert_eq!(heads.len(), 1);
    assert!(
        heads[0].starts_with(&format!("CONNECT api.test:{port} HTTP/1.1\r\n")),
        "{heads:?}"
    );
    let token = STANDARD.encode(LOGIN);
    assert!(
        heads[0].contains(&format!("Proxy-Authorization: Basic {token}\r\n")),
        "{heads:?}"
    );
    assert_eq!(
        lab.resolver.asked(),
        ["api.test"],
        "resolved here as well, once"
    );
    let written = format!("{:?}", lab.finished().await);
    assert!(
        !written.contains("horse") && !written.contains(&token),
        "{written}"
    );
}

#[tokio::test]
async fn a_pinned_name_reaches_the_proxy_as_the_address_that_was_checked() {
    let (origin, identity) = tls_origin("api.test").await;
    let company = Company::leading_to(origin.at).await;
    let route = route(company.origin.at, "", NameCheck::Pinned, "");
    let lab = lab(&[&local("api.test", origin.at)], route);
    over_tls(&lab, "api.test", origin.at.port(), &identity).await;
    let wanted = format!("CONNECT {} HTTP/1.1\r\n", origin.at);
    assert!(
        company.heads()[0].starts_with(&wanted),
        "{:?}",
        company.heads()
    );
    let entries = lab.finished().await;
    assert_eq!(entries[0].address, Some(origin.at));
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_never_reaches_the_proxy() {
    let company = Company::leading_to("127.0.0.1:1".parse().unwrap()).await;
    for (names, answer) in [
        (NameCheck::Checked, "10.0.0.1"),
        (NameCheck::Checked, "169.254.169.254"),
        (NameCheck::Pinned, "127.0.0.1"),
    ] {
        let lab = lab(&["api.test"], route(company.origin.at, "", names, ""));
        lab.resolver.tell("api.test", &[&["1.1.1.1", answer]]);
        let refused = lab.ask("CONNECT api.test:443 HTTP/1.1\r\n\r\n").await;
        assert!(refused.contains("not a public address"), "{refused}");
    }
    // A name that nobody here can look up is not taken on trust either.
    let strict = lab(
        &["api.test"],
        route(company.origin.at, "", NameCheck::Checked, ""),
    );
    strict.resolver.tell("api.test", &[]);
    let refused = strict.ask("CONNECT api.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(
        refused.contains("gateway.egress.upstream_names: proxy"),
        "{refused}"
    );
    assert_eq!(company.origin.connections(), 0);
}

#[tokio::test]
async fn where_only_the_proxy_knows_addresses_names_are_all_that_is_checked() {
    let (origin, identity) = tls_origin("api.test").await;
    let company = Company::leading_to(origin.at).await;
    let rules = [
        &format!("api.test:{}", origin.at.port()),
        "metadata.google.internal",
        "printer",
        "db.test in 10.0.0.0/8",
    ];
    let lab = lab(&rules, route(company.origin.at, "", NameCheck::ByProxy, ""));
    let answer = over_tls(&lab, "api.test", origin.at.port(), &identity).await;
    assert!(answer.ends_with("far\n"), "{answer}");
    for (target, why) in [
        ("metadata.google.internal:443", "network of its own"),
        ("printer:443", "network of its own"),
        ("db.test:443", "cannot be compared with the rule's range"),
        ("169.254.169.254:443", "address"),
        ("[::1]:443", "address"),
        ("0x7f000001:443", "hermetic egress: refused"),
        ("other.test:443", "not on the allowlist"),
    ] {
        let refused = lab.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await;
        assert!(
            refused.starts_with("HTTP/1.1 403 ") && refused.contains(why),
            "{target}: {refused}"
        );
    }
    assert_eq!(
        company.heads().len(),
        1,
        "one tunnel, and nothing of what was refused"
    );
    assert_eq!(lab.resolver.asked(), [""; 0], "nothing was looked up here");
}

#[tokio::test]
async fn the_proxy_itself_is_no_target_whatever_a_rule_says() {
    let company = Company::leading_to("127.0.0.1:1".parse().unwrap()).await;
    let port = company.origin.at.port();
    let proxy = UpstreamProxy::parse(&format!("http://proxy.test:{port}")).unwrap();
    for names in [NameCheck::Checked, NameCheck::Pinned, NameCheck::ByProxy] {
        for except in ["", "proxy.test"] {
            let proxy = proxy.clone().except(ProxyExceptions::parse(except));
            let route = UpstreamRoute::new(proxy, names).unwrap();
            let open = [
                format!("tcp://proxy.test:{port} in 127.0.0.0/8"),
                format!("proxy.test:{port} in 127.0.0.0/8"),
            ];
            let lab = lab(&[&open[0], &open[1]], route);
            for request in [
                format!("CONNECT proxy.test:{port} HTTP/1.1\r\n\r\n"),
                format!(
                    "GET http://proxy.test:{port}/ HTTP/1.1\r\nHost: proxy.test:{port}\r\n\r\n"
                ),
            ] {
                let refused = lab.ask(request).await;
                assert!(
                    refused.contains("is the proxy that everything leaves through"),
                    "{refused}"
                );
            }
        }
    }
    assert_eq!(company.origin.connections(), 0);
}

#[tokio::test]
async fn what_is_excepted_is_dialled_directly_and_checked_as_ever() {
    let (origin, identity) = tls_origin("git.corp.test").await;
    let company = Company::leading_to("127.0.0.1:1".parse().unwrap()).await;
    let rule = local("git.corp.test", origin.at);
    let rules = [rule.as_str(), "wiki.corp.test"];
    let route = route(company.origin.at, "", NameCheck::ByProxy, ".corp.test");
    let lab = lab(&rules, route);
    let answer = over_tls(&lab, "git.corp.test", origin.at.port(), &identity).await;
    assert!(answer.ends_with("far\n"), "{answer}");
    let refused = lab.ask("CONNECT wiki.corp.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(refused.contains("not a public address"), "{refused}");
    assert_eq!(company.origin.connections(), 0);
}
