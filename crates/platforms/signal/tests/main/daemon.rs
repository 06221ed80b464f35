//! The ways in which a daemon is spoken to, and those in which it goes silent.

use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use hermetic_chat::{Chat, ChatReply, ChatState, CheckError};
use hermetic_signal::{SignalAdapter, SignalConfig, SignalConfigError};
use hermetic_testkit::signal_server::{ALICE, Failure, NUMBER, ReceiveMode, SignalServer};
use hermetic_types::SystemClock;
use tokio_util::sync::CancellationToken;

use crate::lab::{Inbox, Lab, config, next_message, outgoing, private};

async fn answer(signal: &SignalAdapter, server: &SignalServer, inbox: &mut Inbox<'_>, text: &str) {
    server.says(ALICE, text);
    let heard = next_message(inbox).await;
    assert_eq!(heard.text, text);
    let reply = ChatReply::text(outgoing(format!("re: {text}")));
    signal.send(&heard.place, &reply).await.unwrap();
    let last = server.calls("send").pop().unwrap();
    assert_eq!(last.params["message"], format!("re: {text}"));
}

#[tokio::test]
async fn a_socket_carries_calls_and_events_and_is_opened_again() {
    for mode in [
        ReceiveMode::OnConnection,
        ReceiveMode::OnStart,
        ReceiveMode::Manual,
    ] {
        let server = SignalServer::start(mode).await.unwrap();
        let signal = SignalAdapter::new(config(&server.socket_url())).unwrap();
        let mut inbox = signal.receive(CancellationToken::new());
        // What comes before anybody listens is lost in one of the modes.
        let listening = async {
            let _ = futures::StreamExt::next(&mut inbox).await;
        };
        tokio::select! {
            () = server.wait_for_listeners(1) => {}
            () = listening => panic!("nobody wrote"),
        }
        answer(&signal, &server, &mut inbox, "one").await;
        assert_eq!(server.listeners(), 1, "{mode:?}: one connection for both");
        server.hang_up();
        if mode != ReceiveMode::OnStart {
            answer(&signal, &server, &mut inbox, "two").await;
        }
    }
}

#[tokio::test]
async fn a_unix_socket_does_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let url = server.listen_at(&path).unwrap();
    let signal = SignalAdapter::new(config(&url)).unwrap();
    let mut inbox = signal.receive(CancellationToken::new());
    answer(&signal, &server, &mut inbox, "hello").await;
}

#[tokio::test]
async fn a_check_over_a_socket_takes_no_message() {
    let server = SignalServer::start(ReceiveMode::OnConnection)
        .await
        .unwrap();
    let signal = SignalAdapter::new(config(&server.socket_url())).unwrap();
    let check = signal.check().await.unwrap();
    assert!(check.shortcomings[0].problem.contains("socket"));
    assert_eq!(server.listeners() + server.tries("version"), 0);
}

#[tokio::test]
async fn a_stream_that_fell_silent_is_opened_again() {
    let lab = Lab::with(|config| config.timing.silence = Duration::from_millis(50)).await;
    let mut inbox = lab.listen();
    let again = || (lab.server.tries("events") >= 3).then_some(());
    tokio::select! {
        () = lab.server.wait_until("streams", again) => {}
        _ = futures::StreamExt::next(&mut inbox) => panic!("nobody wrote"),
    }
    lab.server.says(ALICE, "hello");
    assert_eq!(next_message(&mut inbox).await.text, "hello");
}

#[tokio::test]
async fn a_stream_that_ends_at_once_is_not_opened_at_full_speed() {
    const PAUSE: Duration = Duration::from_millis(100);
    const TIMES: u32 = 5;
    let lab = Lab::with(|config| config.timing.retry = (PAUSE, PAUSE)).await;
    let mut inbox = lab.listen();
    let ended = async {
        let mut opened = Instant::now();
        for time in 0..=TIMES {
            lab.server.wait_for_listeners(1).await;
            // A wait is shortened by chance, by a half at most.
            assert!(
                time == 0 || opened.elapsed() >= PAUSE / 2,
                "opened again at once"
            );
            opened = Instant::now();
            lab.server.hang_up();
        }
    };
    tokio::select! {
        () = ended => {}
        _ = futures::StreamExt::next(&mut inbox) => panic!("nobody wrote"),
    }
}

#[tokio::test]
async fn the_wrapper_of_another_protocol_is_named() {
    let about = r#"{"versions":["v1","v2"],"build":2,"mode":"json-rpc","version":"0.94"}"#;
    let router = Router::new().route("/v1/about", get(async move || about));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let error = SignalAdapter::new(config(&url))
        .unwrap()
        .check()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("signal-cli-rest-api"), "{error}");
    serving.abort();
}

#[tokio::test]
async fn a_name_that_the_daemon_does_not_go_by_is_said() {
    let lab = Lab::new().await;
    lab.server.fail_next("version", Failure::Status(421));
    let error = lab.signal.check().await.unwrap_err();
    assert!(error.to_string().contains("421"), "{error}");
}

#[tokio::test]
async fn an_account_that_the_daemon_has_not_is_no_credential() {
    let lab = Lab::with(|config| config.number = "+4915100000009".to_owned()).await;
    let error = lab.signal.check().await.unwrap_err();
    assert!(matches!(error, CheckError::Unauthorized { .. }), "{error}");
}

#[tokio::test]
async fn a_daemon_that_is_not_there_is_waited_for() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = gone.local_addr().unwrap();
    drop(gone);
    for url in [format!("http://{address}"), format!("tcp://{address}")] {
        let signal = SignalAdapter::new(config(&url)).unwrap();
        let sent = signal
            .send(&private(ALICE), &ChatReply::text(outgoing("x")))
            .await;
        let failure = sent.unwrap_err().failure;
        assert!(failure.is_safe_to_repeat(), "{failure:?}");
        assert_eq!(signal.state(), ChatState::Starting);
    }
}

#[test]
fn what_is_no_number_is_no_account() {
    let state = || std::sync::Arc::new(hermetic_chat::InMemoryState::default());
    let endpoint = || "http://127.0.0.1:8080".parse().unwrap();
    for number in [
        "",
        "4915100000001",
        "+49 151",
        "+",
        "alice",
        "+123456789012345678",
    ] {
        let refused = SignalAdapter::new(SignalConfig::new(
            number,
            endpoint(),
            state(),
            SystemClock::shared(),
        ));
        assert_eq!(refused.err(), Some(SignalConfigError::Number), "{number:?}");
    }
    assert!(
        SignalAdapter::new(SignalConfig::new(
            NUMBER,
            endpoint(),
            state(),
            SystemClock::shared()
        ))
        .is_ok()
    );
}
