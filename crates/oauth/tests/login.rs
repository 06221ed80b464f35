//! Logging in, honestly and otherwise.

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hermetic_oauth::{LoginAttempt, LoginError, LoginFileError, RedirectListener};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::authority::{Installation, Lies, field, honest};

#[tokio::test]
async fn a_login_is_kept_for_its_owner_only() {
    let own = Installation::with(Lies::default()).await;
    let address = own.log_in(honest).await.unwrap();
    assert_eq!(field(&address, "code_challenge_method"), "S256");
    assert_eq!(field(&address, "resource"), own.authority.server());
    assert_eq!(field(&address, "scope"), "read");
    let asked = own.authority.asked.lock().unwrap()[0].clone();
    for wanted in [
        "code=a-code",
        "code_verifier=",
        "resource=http",
        "client_id=registered",
    ] {
        assert!(asked.contains(wanted), "{asked}");
    }
    let summary = own.file.summary().unwrap().expect("somebody is logged in");
    assert_eq!(summary.issuer, own.authority.url);
    assert!(summary.is_renewed);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&own.path()), 0o600);
    assert_eq!(mode(own.path().parent().unwrap()), 0o700);
    assert_eq!(
        own.bearer().token().await.unwrap().expose(),
        "access-number-1"
    );
    let said = own
        .redactor
        .redact("access-number-1 refresh-number-1")
        .into_inner();
    assert!(!said.contains("number"), "{said}");
    // Nothing is left aside.
    let names = std::fs::read_dir(own.path().parent().unwrap()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["tracker.json", "tracker.lock"]);
    assert!(own.file.forget().await.unwrap());
    assert!(
        own.bearer()
            .token()
            .await
            .unwrap_err()
            .to_string()
            .contains("hermetic mcp login tracker")
    );
    assert!(!own.file.forget().await.unwrap());
}

#[tokio::test]
async fn a_file_that_others_can_read_is_not_used() {
    let own = Installation::with(Lies::default()).await;
    own.log_in(honest).await.unwrap();
    std::fs::set_permissions(own.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(
        own.file.summary(),
        Err(LoginFileError::Shared { .. })
    ));
    assert!(own.bearer().token().await.is_err());
    std::fs::set_permissions(own.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    for garbage in [&b"{"[..], b"[]", &[0xff; 100], &vec![b' '; 70_000]] {
        std::fs::write(own.path(), garbage).unwrap();
        assert!(matches!(
            own.file.summary(),
            Err(LoginFileError::NotALogin { .. })
        ));
    }
}

#[tokio::test]
async fn servers_that_lie_about_who_protects_them_get_no_login() {
    let resource = |lie| Lies {
        resource: lie,
        ..Lies::default()
    };
    let metadata = |lie| Lies {
        metadata: lie,
        ..Lies::default()
    };
    for (lies, expected) in [
        (
            resource(json!({"resource": "https://other.test/mcp"})),
            "not this server",
        ),
        (
            resource(json!({"authorization_servers": []})),
            "name of an authorization server",
        ),
        (
            resource(json!({"authorization_servers": ["http://login.example.org"]})),
            "https://",
        ),
        (
            resource(json!({"authorization_servers": ["file:///etc/passwd"]})),
            "no host",
        ),
        (
            metadata(json!({"issuer": "https://login.example.org"})),
            "was expected",
        ),
        (
            metadata(json!({"token_endpoint": "http://login.example.org/t"})),
            "https://",
        ),
        (
            metadata(json!({"authorization_endpoint": "https://honest.example.org/authorize"})),
            "which is not its own",
        ),
        (
            metadata(json!({"code_challenge_methods_supported": ["plain"]})),
            "PKCE",
        ),
        (
            metadata(json!({"code_challenge_methods_supported": null})),
            "PKCE",
        ),
        (
            metadata(json!({"registration_endpoint": null})),
            "client_id",
        ),
    ] {
        let own = Installation::with(lies).await;
        let error = own.log_in(honest).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(
            own.authority.asked.lock().unwrap().is_empty(),
            "{expected}: a code was sent"
        );
    }
}

#[tokio::test]
async fn answers_of_other_attempts_and_other_issuers_get_no_login() {
    let own = Installation::with(Lies::default()).await;
    let foreign = own
        .log_in(|_| "?code=a-code&state=guessed".to_owned())
        .await;
    assert!(matches!(foreign, Err(LoginError::OtherState)));
    let mixed = own
        .log_in(|address| honest(address) + "&iss=https%3A%2F%2Fevil.test")
        .await;
    assert!(matches!(mixed, Err(LoginError::MixedUp { .. })));
    let denied =
        own.log_in(|address| honest(address).replace("code=a-code", "error=access_denied"));
    assert!(matches!(denied.await, Err(LoginError::Denied(_))));
    assert!(own.authority.asked.lock().unwrap().is_empty());
    assert!(own.file.summary().unwrap().is_none());
}

#[tokio::test]
async fn a_code_follows_no_redirection_and_an_answer_has_a_bound() {
    let moved = Lies {
        moved: Some("http://127.0.0.1:9/".to_owned()),
        ..Lies::default()
    };
    let own = Installation::with(moved).await;
    assert!(matches!(
        own.log_in(honest).await,
        Err(LoginError::Redirected { .. })
    ));
    let own = Installation::with(Lies {
        floods: true,
        ..Lies::default()
    })
    .await;
    assert!(matches!(
        own.log_in(honest).await,
        Err(LoginError::TooLarge { .. })
    ));
    assert!(own.file.summary().unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_names_another_issuer_gets_no_login() {
    let mut own = Installation::with(Lies::default()).await;
    own.log_in(honest).await.unwrap();
    // The file says where people logged in before.
    let kept = std::fs::read_to_string(own.path()).unwrap();
    let issuer = format!("\"{}\"", own.authority.url);
    assert!(kept.contains(&issuer), "the issuer is kept");
    let other = kept.replace(&issuer, "\"https://login.example.org\"");
    std::fs::write(own.path(), other).unwrap();
    let error = own.log_in(honest).await.unwrap_err().to_string();
    assert!(error.contains("and now names"), "{error}");
    // The operator's word counts, either way.
    own.settings.issuer = Some(own.authority.url.clone());
    own.log_in(honest).await.unwrap();
    own.settings.issuer = Some("https://login.example.org".to_owned());
    let error = own.log_in(honest).await.unwrap_err().to_string();
    assert!(
        error.contains("allows https://login.example.org only"),
        "{error}"
    );
    assert_eq!(
        own.authority.asked.lock().unwrap().len(),
        2,
        "no other code was sent"
    );
}

#[tokio::test]
async fn a_registered_client_is_used_again_for_the_same_way_back() {
    let mut own = Installation::with(Lies::default()).await;
    own.log_in(honest).await.unwrap();
    own.log_in(honest).await.unwrap();
    assert_eq!(
        own.authority.registered.load(Ordering::SeqCst),
        2,
        "its port is another"
    );
    own.settings.redirect_uri = Some("https://here.example.org/callback".to_owned());
    own.log_in(honest).await.unwrap();
    own.log_in(honest).await.unwrap();
    assert_eq!(own.authority.registered.load(Ordering::SeqCst), 3);
    own.settings.client_id = Some("by-hand".to_owned());
    let address = own.log_in(honest).await.unwrap();
    assert_eq!(field(&address, "client_id"), "by-hand");
    assert_eq!(own.authority.registered.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn strangers_at_the_port_do_not_end_the_wait() {
    let own = Installation::with(Lies::default()).await;
    let listener = RedirectListener::open(&own.settings).await.unwrap();
    let port = listener.port();
    let (server, clock) = (own.authority.server(), own.clock.clone() as _);
    let http = hermetic_oauth::AuthorityClient::new(None).unwrap();
    let attempt = LoginAttempt {
        server: &server,
        settings: &own.settings,
        file: &own.file,
        http: &http,
        clock: &clock,
    };
    let pending = attempt.begin(&listener).await.unwrap();
    let honest = honest(pending.address());
    let visits = async {
        // One that says nothing holds nobody up.
        let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        for (request, expected) in [
            (
                "GET /callback?code=x&state=guessed HTTP/1.1\r\n\r\n".to_owned(),
                "400",
            ),
            ("GET /other HTTP/1.1\r\n\r\n".to_owned(), "404"),
            (format!("POST /callback{honest} HTTP/1.1\r\n\r\n"), "404"),
            (format!("GET /callback{honest} HTTP/1.1\r\n\r\n"), "200"),
        ] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {expected}")),
                "{answer}"
            );
        }
    };
    let (code, ()) = tokio::join!(pending.wait(&listener), visits);
    assert_eq!(code.unwrap().expose(), "a-code");
}

#[tokio::test]
async fn half_open_connections_keep_no_browser_out() {
    // Less than any of them is waited for, and far more than an answer takes.
    const SOON: Duration = Duration::from_secs(8);
    let own = Installation::with(Lies::default()).await;
    let listener = RedirectListener::open(&own.settings).await.unwrap();
    let port = listener.port();
    let (server, clock) = (own.authority.server(), own.clock.clone() as _);
    let http = hermetic_oauth::AuthorityClient::new(None).unwrap();
    let attempt = LoginAttempt {
        server: &server,
        settings: &own.settings,
        file: &own.file,
        http: &http,
        clock: &clock,
    };
    let pending = attempt.begin(&listener).await.unwrap();
    let honest = honest(pending.address());
    let visits = async {
        let mut half_open = Vec::new();
        for _ in 0..100 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let _ = stream.write_all(b"GET /callback?").await;
            half_open.push(stream);
        }
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = format!("GET /callback{honest} HTTP/1.1\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    let both = async { tokio::join!(pending.wait(&listener), visits) };
    let (code, ()) = tokio::time::timeout(SOON, both)
        .await
        .expect("the browser waits");
    assert_eq!(code.unwrap().expose(), "a-code");
}

#[tokio::test]
async fn a_code_typed_in_elsewhere_is_a_login_too() {
    let own = Installation::with(Lies {
        device: json!({}),
        waits: vec!["authorization_pending"],
        ..Lies::default()
    })
    .await;
    let (page, code) = own.log_in_on_device().await.unwrap();
    assert_eq!(page, format!("{}/activate", own.authority.url));
    assert_eq!(code, "WDJB-MJHT");
    let asked = own.authority.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 2, "once too early");
    for wanted in ["device_code=of-the-device", "device_code&", "resource=http"] {
        assert!(asked[1].contains(wanted), "{asked:?}");
    }
    assert_eq!(
        own.bearer().token().await.unwrap().expose(),
        "access-number-1"
    );
}

#[tokio::test]
async fn a_code_is_not_had_where_it_would_be_typed_in_elsewhere_or_cannot_be() {
    for (device, waits, expected) in [
        (json!(null), vec![], "gives no codes for devices"),
        (
            json!({"verification_uri": "https://honest.example.org/device"}),
            vec![],
            "which is not its own",
        ),
        (json!({"user_code": "\u{1b}[2J"}), vec![], "can be typed"),
        (json!({"user_code": ""}), vec![], "can be typed"),
        (json!({"device_code": 7}), vec![], "a code for the device"),
        (json!({"expires_in": 0}), vec![], "nobody logged in within"),
        (json!({}), vec!["access_denied"], "access_denied"),
        (json!({}), vec!["expired_token"], "expired_token"),
    ] {
        let own = Installation::with(Lies {
            device: device.clone(),
            waits,
            ..Lies::default()
        });
        let own = own.await;
        let failed = own.log_in_on_device().await.unwrap_err().to_string();
        assert!(failed.contains(expected), "{device}: {failed}");
        assert!(own.file.summary().unwrap().is_none());
    }
}
