//! Proxies that refuse, hang, lie and talk nonsense.

use std::time::Duration;

use hermetic_egress::{EgressLimits, RulesText};

use super::*;

/// What a sandbox is told through a rule that dials first, so that the refusal is still in words.
async fn told(proxy: SocketAddr, limits: EgressLimits) -> String {
    let setup = Setup {
        rules: RulesText::allowing(["tcp://git.test:22"]),
        limits,
        ..Setup::default()
    };
    let route = route(proxy, &format!("{LOGIN}@"), NameCheck::ByProxy, "");
    let lab = Lab::changed(setup, |proxy| proxy.leaving_through(route));
    let answer = lab.ask("CONNECT git.test:22 HTTP/1.1\r\n\r\n").await;
    let written = format!("{answer}{:?}", lab.finished().await);
    let token = STANDARD.encode(LOGIN);
    assert!(
        !written.contains("horse") && !written.contains(&token),
        "{written}"
    );
    answer
}

#[tokio::test]
async fn its_refusal_is_told_by_its_number_and_never_in_its_words() {
    for (answer, said) in [
        (
            "HTTP/1.1 403 ERR_ACCESS_DENIED <b>clerk</b>\r\nContent-Length: 5\r\n\r\nsecret",
            "refuses it (403)",
        ),
        (
            "HTTP/1.1 407 no\r\n\r\n",
            "another user name or password (407)",
        ),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://login.corp/\r\n\r\n",
            "refuses it (302)",
        ),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "not HTTP"),
        ("SSH-2.0-OpenSSH_9\r\n\r\n", "not HTTP"),
        ("\u{0}\u{1}\u{2}\r\n\r\n", "not HTTP"),
        ("HTTP/1.1 200", "not HTTP"),
        ("", "not HTTP"),
    ] {
        let proxy = Origin::start(move |mut stream| async move {
            head(&mut stream).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        })
        .await;
        let told = told(proxy.at, EgressLimits::default()).await;
        assert!(
            told.starts_with("HTTP/1.1 502 ") && told.contains(said),
            "{answer:?}: {told}"
        );
        assert!(
            !told.contains("ERR_ACCESS")
                && !told.contains("secret")
                && !told.contains("login.corp"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn one_that_hangs_or_never_ends_its_answer_is_given_up() {
    let limits = || EgressLimits {
        dial: Duration::from_millis(300),
        head_bytes: 4096,
        ..EgressLimits::default()
    };
    let silent = Origin::start(|mut stream| async move {
        head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let answer = told(silent.at, limits()).await;
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(answer.contains("did not answer within"), "{answer}");

    let endless = Origin::start(|mut stream| async move {
        head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"X-More: and more\r\n").await.is_ok() {}
    })
    .await;
    let answer = told(endless.at, limits()).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");

    let gone = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let answer = told(gone, EgressLimits::default()).await;
    assert!(answer.contains("cannot be reached"), "{answer}");
}

#[tokio::test]
async fn what_it_says_right_behind_its_yes_is_the_other_ends() {
    let proxy = Origin::start(|mut stream| async move {
        head(&mut stream).await;
        let _ = stream
            .write_all(b"HTTP/1.1 100 Wait\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nSSH-2.0-far\r\n")
            .await;
        let _ = stream.shutdown().await;
    })
    .await;
    let answer = told(proxy.at, EgressLimits::default()).await;
    assert!(answer.ends_with("\r\n\r\nSSH-2.0-far\r\n"), "{answer}");
}

#[tokio::test]
async fn one_that_leads_to_another_host_gets_no_credential() {
    use hermetic_egress::{CertificateAuthority, Credential, TrustRoots};
    use hermetic_types::{Secret, SystemClock};
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let (known, stranger) = (Identity::of("api.test"), Identity::of("api.test"));
    let heads = Arc::new(Mutex::new(Vec::new()));
    for (identity, status, reaches) in [(&stranger, "502", false), (&known, "200", true)] {
        let seen = heads.clone();
        let far = identity
            .serve(move |mut stream| {
                let seen = seen.clone();
                async move {
                    while let Some(head) = head(&mut stream).await {
                        seen.lock().unwrap().push(head);
                        let _ = stream
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                            .await;
                    }
                }
            })
            .await;
        let company = Company::leading_to(far.at).await;
        let folder = tempfile::tempdir().unwrap();
        let authority =
            Arc::new(CertificateAuthority::open(folder.path(), SystemClock::shared()).unwrap());
        let ca = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
        let credential = Credential::new(
            "api.test",
            "authorization",
            "Bearer",
            Secret::new("ghp_realtoken123456"),
            "placeholder",
        );
        let setup = Setup {
            rules: RulesText::allowing(["api.test"]),
            credentials: vec![credential.unwrap()],
            interception: Some((authority, TrustRoots::Only(vec![known.certificate.clone()]))),
            ..Setup::default()
        };
        let route = route(company.origin.at, "", NameCheck::ByProxy, "");
        let lab = Lab::changed(setup, |proxy| proxy.leaving_through(route));
        let tunnel = lab.tunnel("api.test:443").await;
        let mut stream = tls::connect(tunnel, "api.test", &ca).await.unwrap();
        let request = "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert_eq!(heads.lock().unwrap().len(), usize::from(reaches));
    }
    let head = heads.lock().unwrap().remove(0);
    assert!(
        head.contains("Bearer ghp_realtoken123456"),
        "put in on our side: {head}"
    );
}
