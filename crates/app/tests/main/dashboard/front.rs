//! The dashboard as a process of its own: with the gateway, without it, and with it again.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use hermetic_dashboard::DashboardRole;
use hermetic_listen::{BoundedListener, ConnectionBounds, serve_http};
use hermetic_testkit::model::Reply;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::visitor::{Visitor, link, token};
use crate::lab::{ALICE, Lab};

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(60);

const ALICES: &str = "/conversation?key=agent%3Amain%3Atelegram%3Adm%3A7";

/// The other process, in this one. It ends with what comes back.
async fn front(lab: &Lab) -> (SocketAddr, DropGuard) {
    front_on(lab, "127.0.0.1").await
}

/// The same, which believes that it is reached by this address.
async fn front_on(lab: &Lab, host: &str) -> (SocketAddr, DropGuard) {
    let stop = CancellationToken::new();
    let pages = hermetic_app::dashboard_front(&lab.config(), host, &stop)
        .await
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = BoundedListener::new(listener, ConnectionBounds::of(64));
    tokio::spawn(serve_http(listener, pages, stop.clone(), Duration::ZERO));
    (address, stop.drop_guard())
}

#[tokio::test]
async fn another_process_shows_the_same_and_says_when_the_gateway_is_away() {
    let mut lab = Lab::builder()
        .script([Reply::streams(&["hello"]), Reply::streams(&["again"])])
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "hi").await, "hello");
    let (address, _stop) = front(&lab).await;
    let mut ada = Visitor {
        address,
        cookie: None,
    };
    assert_eq!(ada.get("/").await.status, 401, "nobody is in yet");
    assert!(ada.get("/health").await.body.contains("reachable"));
    assert!(
        ada.get("/metrics")
            .await
            .body
            .contains("hermetic_turns_total")
    );
    ada.enter(&link(&lab, DashboardRole::Operator, "ada")).await;
    let page = ada.get("/").await;
    assert!(page.body.contains("telegram") && !page.body.contains("is not running"));
    assert!(page.header("content-security-policy").is_some());
    // The act is done in the gateway, and only from a page of this address.
    let csrf = ada.get(ALICES).await.csrf();
    let form = format!("csrf={csrf}&key=agent%3Amain%3Atelegram%3Adm%3A7&sure=yes");
    let evil = ada
        .post_from(
            "/conversation/reset",
            &form,
            "Origin: http://evil.example\r\n",
        )
        .await;
    assert_eq!(evil.status, 403);
    let head = "GET / HTTP/1.1\r\nHost: evil.example\r\n";
    assert_eq!(ada.send(head, "").await.status, 421);
    assert_eq!(ada.post("/conversation/reset", &form).await.status, 303);
    assert!(lab.audit("dashboard").contains("\"act\":\"reset\""));
    // A change is heard through it.
    let head = format!("GET /events HTTP/1.1\r\nHost: {address}\r\n");
    let mut events = BufReader::new(ada.open(&head, "").await).lines();
    assert_eq!(lab.ask(ALICE, "hi").await, "again");
    let heard = async {
        while let Ok(Some(line)) = events.next_line().await {
            if line == "event: activity" {
                return true;
            }
        }
        false
    };
    assert!(timeout(LONG, heard).await.unwrap());

    lab.stop().await;
    let rest = async { while let Ok(Some(_)) = events.next_line().await {} };
    timeout(LONG, rest)
        .await
        .expect("the stream ends with the gateway");
    assert!(ada.get("/health").await.body.contains("away"));
    for page in [
        "/",
        "/conversations",
        "/sandboxes",
        "/approvals",
        "/audit",
        "/usage",
        "/configuration",
    ] {
        assert_eq!(ada.get(page).await.status, 200, "{page}");
    }
    let away = ada.get("/").await.body;
    assert!(away.contains("The gateway is not running"));
    assert!(
        !away.contains("panel seal good"),
        "nobody looked at the seal"
    );
    assert!(
        ada.get(ALICES).await.body.contains("again"),
        "what the store has"
    );
    let refused = ada
        .act(
            ALICES,
            "/conversation/stop",
            "key=agent%3Amain%3Atelegram%3Adm%3A7",
        )
        .await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("hermetic gateway start"));
    let stranger = Visitor {
        address,
        cookie: None,
    };
    assert_eq!(stranger.get("/").await.status, 401, "away or not");
    let mut away = BufReader::new(ada.open(&head, "").await).lines();
    assert!(away.next_line().await.unwrap().unwrap().contains("200"));

    lab.start().await;
    let back = async { while let Ok(Some(_)) = away.next_line().await {} };
    timeout(LONG, back)
        .await
        .expect("the stream ends when it is back");
    let page = ada.get("/").await;
    assert!(page.status == 200 && !page.body.contains("is not running"));
    let bearer = format!(
        "Authorization: Bearer {}\r\n",
        token(&lab, DashboardRole::Viewer)
    );
    let head = format!("GET /api/v1/overview HTTP/1.1\r\nHost: {address}\r\n{bearer}");
    assert_eq!(stranger.send(&head, "").await.status, 200);
}

#[tokio::test]
async fn the_socket_is_the_operators_own_and_survives_a_crash() {
    let mut lab = Lab::builder().start().await;
    let path = lab.config().home().state().join("dashboard.sock");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    lab.crash_and_start().await;
    assert_eq!(mode(), 0o600);
    let (address, _stop) = front(&lab).await;
    let somebody = Visitor {
        address,
        cookie: None,
    };
    assert!(somebody.get("/health").await.body.contains("reachable"));
}

#[tokio::test]
async fn an_address_that_others_reach_is_locked_whatever_the_gateway_would_say() {
    let lab = Lab::builder().start().await;
    let (address, _stop) = front_on(&lab, "0.0.0.0").await;
    let somebody = Visitor {
        address,
        cookie: None,
    };
    let refused = somebody
        .get(&link(&lab, DashboardRole::Operator, "ada"))
        .await;
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("gateway.dashboard.password"));
    assert!(somebody.get("/health").await.body.contains("reachable"));
    assert!(
        somebody
            .get("/metrics")
            .await
            .body
            .contains("hermetic_turns")
    );
}
