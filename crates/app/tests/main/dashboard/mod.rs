//! The dashboard of a gateway that runs: who gets in, what is shown, what can be done.

mod answers;
mod browser;
mod browser_live;
mod chat;
mod front;
mod live;
mod rows;
mod terminal;
mod visitor;

use std::time::Duration;

use hermetic_dashboard::DashboardRole;
use hermetic_store::{LedgerState, MessageEnd};
use hermetic_testkit::model::Reply;
use hermetic_types::{BackendKind, Clock as _, ConversationKey, SandboxId};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::approvals::{self, Deed};
use crate::egress;
use crate::lab::{ALICE, BOB, KEY, Lab, calls_terminal, has_sandboxes};
use visitor::{Visitor, link, token};

/// Every page.
const PAGES: [&str; 10] = [
    "/",
    "/chat",
    "/conversations",
    "/sandboxes",
    "/approvals",
    "/egress",
    "/audit",
    "/people",
    "/configuration?all=1",
    "/usage",
];

const HOUR: Duration = Duration::from_secs(3600);
const ALICES: &str = "/conversation?key=agent%3Amain%3Atelegram%3Adm%3A7";

#[tokio::test]
async fn a_link_lets_in_once_and_leaves_no_trace_in_the_address() {
    let mut lab = Lab::builder().start().await;
    let path = link(&lab, DashboardRole::Operator, "ada");
    let mut ada = Visitor::stranger(&lab);
    // Whoever only looks whether it is there does not use it up.
    let looked = ada
        .send(&format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n"), "")
        .await;
    assert_eq!(looked.status, 200);
    let asked = ada.get(&path).await;
    assert!(asked.body.contains("dashboard:ada") && asked.header("set-cookie").is_none());
    assert!(!asked.body.contains(&path[11..40]), "its key is in no page");
    let entered = ada.enter(&path).await;
    assert_eq!(entered.header("location"), Some("/"));
    let cookie = entered.header("set-cookie").unwrap().to_owned();
    for said in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(said), "{cookie}");
    }
    let page = ada.get("/").await;
    assert_eq!(page.status, 200);
    for page in PAGES {
        let page = ada.get(page).await;
        assert_eq!(page.status, 200, "{page:?}");
        for secret in [&path[11..40], KEY, cookie.split(['=', ';']).nth(1).unwrap()] {
            assert!(!page.body.contains(secret), "a secret is shown");
        }
        let policy = page.header("content-security-policy").unwrap();
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(!page.body.contains(" style="), "an inline style");
        assert!(!page.body.contains("<script>"), "an inline script");
        assert_eq!(page.header("cache-control"), Some("no-store"));
    }
    let again = Visitor::stranger(&lab).get(&path).await;
    assert_eq!(again.status, 401, "used twice");
    let again = Visitor::stranger(&lab).post(&path, "").await;
    assert_eq!(again.status, 401, "used twice");
    lab.restart().await;
    ada.address = lab.health();
    assert_eq!(ada.get("/").await.status, 200, "a restart signs nobody out");
    let again = Visitor::stranger(&lab).post(&path, "").await;
    assert_eq!(again.status, 401, "used before the restart");
    lab.clock().advance(HOUR * 13);
    assert_eq!(ada.get("/").await.status, 401, "the session is over");
    let signed_in = lab.audit("dashboard");
    assert!(signed_in.contains("signed_in") && signed_in.contains("dashboard:ada"));
}

#[tokio::test]
async fn nobodys_page_signs_a_browser_in_as_somebody_else() {
    let lab = Lab::builder().start().await;
    let eves = link(&lab, DashboardRole::Viewer, "eve");
    let ada = Visitor::operator(&lab).await;
    // A foreign page leads the browser to its own link, and may send a form there.
    let led = ada.get(&eves).await;
    assert_eq!(led.status, 200);
    assert!(led.header("set-cookie").is_none(), "{led:?}");
    assert!(led.body.contains("dashboard:eve"), "it says as whom");
    for origin in ["Origin: http://evil.example\r\n", "Origin: null\r\n", ""] {
        let sent = ada.post_from(&eves, "", origin).await;
        assert_eq!(sent.status, 403, "{origin}");
        assert!(sent.header("set-cookie").is_none(), "{sent:?}");
    }
    let page = ada.get("/").await.body;
    assert!(page.contains("dashboard:ada") && !page.contains("dashboard:eve"));

    // Whoever signs in carries no session on that was put there before: it ends, and the new one is another.
    let mut fixed = ada.clone();
    let entered = fixed.enter(&eves).await;
    assert_eq!(entered.status, 303);
    assert_ne!(fixed.cookie, ada.cookie);
    assert!(fixed.get("/").await.body.contains("dashboard:eve"));
    assert_eq!(
        ada.get("/").await.status,
        401,
        "what was there before is over"
    );
    let mut planted = Visitor::stranger(&lab);
    planted.cookie = Some("hermetic_dashboard=chosen-by-somebody-else".to_owned());
    let before = planted.clone();
    planted
        .enter(&link(&lab, DashboardRole::Operator, "ada"))
        .await;
    assert_eq!(
        before.get("/").await.status,
        401,
        "nobody's choice becomes a session"
    );
    assert_eq!(planted.get("/").await.status, 200);
}

#[tokio::test]
async fn what_is_taken_out_as_a_secret_cannot_be_searched_for() {
    let lab = Lab::builder()
        .script([Reply::streams(&["noted"])])
        .start()
        .await;
    lab.ask(ALICE, &format!("Please remember {KEY} for me"))
        .await;
    let eve = Visitor::entered(&lab, DashboardRole::Viewer, "eve").await;
    let found = async |words: &str| {
        let words: String = form_urlencoded(words);
        let page = eve.get(&format!("/conversations?q={words}")).await.body;
        let api = eve
            .get(&format!("/api/v1/conversations?q={words}"))
            .await
            .body;
        let is_found = page.contains("telegram:dm:7</a>");
        assert_eq!(is_found, api.contains("telegram:dm:7\""), "{page} {api}");
        is_found
    };
    assert!(found("please remember").await && found("DM:7").await && found("[redacted]").await);
    for length in 4..=KEY.len() {
        assert!(
            !found(&KEY[..length]).await,
            "the first {length} characters are found"
        );
    }
    // Nor is what the platform's crate wrote around it.
    for word in ["attachments", "is_bot", "\"text\"", "received_at"] {
        assert!(!found(word).await, "{word}");
    }
    assert!(!found("nobody wrote this").await);
}

/// As a browser writes the words of a search.
fn form_urlencoded(words: &str) -> String {
    let bytes = words.bytes().map(|byte| format!("%{byte:02X}"));
    bytes.collect()
}

#[tokio::test]
async fn whoever_is_not_in_sees_nothing_and_does_nothing() {
    let lab = Lab::builder().start().await;
    let stranger = Visitor::stranger(&lab);
    for page in PAGES
        .into_iter()
        .chain([ALICES, "/events", "/audit/export", "/no-such-page"])
    {
        let refused = stranger.get(page).await;
        assert_eq!(refused.status, 401, "{page}");
        assert!(refused.body.contains("hermetic dashboard link"), "{page}");
        let forged = Visitor {
            cookie: Some("hermetic_dashboard=guess".to_owned()),
            ..stranger.clone()
        };
        assert_eq!(forged.get(page).await.status, 401, "{page}");
    }
    let api = stranger.get("/api/v1/overview").await;
    assert_eq!(api.status, 401);
    assert!(api.body.contains("\"error\""), "{api:?}");
    let posted = stranger.post("/conversation/stop", "key=x").await;
    assert_eq!(posted.status, 401);
    for path in [
        "/assets/../../../../etc/passwd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/assets/dashboard.css/../../x",
    ] {
        let refused = stranger.get(path).await;
        assert!(matches!(refused.status, 401 | 404), "{path}: {refused:?}");
        assert!(!refused.body.contains("root:"), "{path}");
    }
    let style = stranger.get("/assets/dashboard.css").await;
    assert_eq!(style.status, 200);
    assert_eq!(stranger.get("/health").await.status, 200);
    assert_eq!(stranger.get("/metrics").await.status, 200);
}

#[tokio::test]
async fn another_name_another_origin_and_a_form_without_its_token_do_nothing() {
    let lab = Lab::builder()
        .script([Reply::streams(&["hello"])])
        .start()
        .await;
    assert_eq!(lab.ask(ALICE, "hi").await, "hello");
    let ada = Visitor::operator(&lab).await;
    for host in [
        "evil.example",
        "evil.example:9119",
        "127.0.0.1.evil.example",
        "",
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n");
        let refused = ada.send(&head, "").await;
        assert_ne!(refused.status, 200, "{host}");
        assert!(!refused.body.contains("At work"), "{host}");
    }
    let none = ada.send("GET / HTTP/1.0\r\n", "").await;
    assert_eq!(none.status, 421);
    let csrf = ada.get(ALICES).await.csrf();
    let form = "key=agent%3Amain%3Atelegram%3Adm%3A7&sure=yes";
    let good = format!("csrf={csrf}&{form}");
    let bob = Visitor::entered(&lab, DashboardRole::Operator, "bob").await;
    let bobs = format!("csrf={}&{form}", bob.get(ALICES).await.csrf());
    let host = format!("Origin: http://{}\r\n", ada.address);
    for (headers, form) in [
        ("", good.as_str()),
        ("Origin: null\r\n", &good),
        ("Origin: http://evil.example\r\n", &good),
        ("Origin: http://127.0.0.1.evil.example\r\n", &good),
        (&host, form),
        (&host, &bobs),
        (&host, &format!("csrf=&{form}")),
        (&host, &format!("csrf=x&csrf={csrf}&{form}")),
    ] {
        let refused = ada.post_from("/conversation/reset", form, headers).await;
        assert!(
            matches!(refused.status, 400 | 403),
            "{headers} {form} {refused:?}"
        );
    }
    let viewer = Visitor::entered(&lab, DashboardRole::Viewer, "eve").await;
    let page = viewer.get(ALICES).await;
    assert_eq!(page.status, 200);
    assert!(!page.body.contains("/conversation/reset"));
    let refused = viewer.act("/", "/conversation/reset", form).await;
    assert_eq!(refused.status, 403);
    let unsure = ada
        .post("/conversation/reset", &format!("csrf={csrf}&key=x"))
        .await;
    assert_eq!(unsure.status, 400);
    assert!(
        !lab.audit("dashboard").contains("reset"),
        "nothing was done"
    );
    let done = ada.post("/conversation/reset", &good).await;
    assert_eq!(done.status, 303, "{done:?}");
    let noted = lab.audit("dashboard");
    assert!(
        noted.contains("\"act\":\"reset\"") && noted.contains("dashboard:ada"),
        "{noted}"
    );
    let left = ada.post("/leave", &format!("csrf={csrf}")).await;
    assert_eq!(left.status, 303);
    assert_eq!(ada.get("/").await.status, 401);
}

#[tokio::test]
async fn an_address_that_others_reach_is_locked_until_there_is_a_password() {
    let open = "gateway: {dashboard: {host: 0.0.0.0}}\n";
    let lab = Lab::builder().config(open).start().await;
    let path = link(&lab, DashboardRole::Operator, "ada");
    let refused = Visitor::stranger(&lab).get(&path).await;
    assert_eq!(refused.status, 403);
    assert!(
        refused.body.contains("gateway.dashboard.password"),
        "{refused:?}"
    );
    drop(lab);

    let open = "gateway: {dashboard: {host: 0.0.0.0, names: [dash.example]}}\n";
    let access = "TELEGRAM_ALLOWED_USERS=7\nHERMETIC_DASHBOARD_PASSWORD=open-sesame-42\n\
                  HERMETIC_DASHBOARD_PROXY_SECRET=between-us-two";
    let lab = Lab::builder().config(open).access(access).start().await;
    let stranger = Visitor::stranger(&lab);
    let page = stranger.get("/").await;
    assert!(page.status == 401 && page.body.contains("type=\"password\""));
    let right = stranger.post("/enter", "password=open-sesame-42").await;
    assert_eq!(right.status, 303, "{right:?}");
    let foreign = stranger
        .post_from(
            "/enter",
            "password=open-sesame-42",
            "Origin: http://evil.example\r\n",
        )
        .await;
    assert_eq!(foreign.status, 403);
    for _ in 0..10 {
        let wrong = stranger.post("/enter", "password=guess").await;
        assert_eq!(wrong.status, 401);
    }
    let right = stranger.post("/enter", "password=open-sesame-42").await;
    assert_eq!(right.status, 429, "guessed too often");
    lab.clock().advance(Duration::from_secs(61));
    let right = stranger.post("/enter", "password=open-sesame-42").await;
    assert_eq!(right.status, 303);
    let by_name = |more: &str| format!("GET / HTTP/1.1\r\nHost: dash.example\r\n{more}");
    let proxied = by_name("X-Hermetic-Proxy-Secret: between-us-two\r\nX-Forwarded-User: ada\r\n");
    let proxied = stranger.send(&proxied, "").await;
    assert_eq!(proxied.status, 200);
    assert!(proxied.body.contains("proxy:ada") && proxied.body.contains("viewer"));
    for forged in [
        "X-Forwarded-User: ada\r\n",
        "X-Hermetic-Proxy-Secret: guess\r\nX-Forwarded-User: ada\r\n",
        "X-Hermetic-Proxy-Secret: between-us-two\r\n",
        "X-Hermetic-Proxy-Secret: between-us-two\r\nX-Forwarded-User: a\r\nX-Forwarded-User: b\r\n",
    ] {
        assert_eq!(
            stranger.send(&by_name(forged), "").await.status,
            401,
            "{forged}"
        );
    }
}

#[tokio::test]
async fn what_strangers_and_sandboxes_write_is_text_and_nothing_else() {
    let evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{1b}[31m\u{202e}";
    let script = [
        calls_terminal("printf '<script>alert(3)</script>\\033[2J'"),
        Reply::streams(&["</div><script>alert(4)</script> done"]),
    ];
    let lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, evil).await;
    let ada = Visitor::entered(&lab, DashboardRole::Operator, "<b>ada</b>").await;
    let mut pages: Vec<_> = PAGES.into_iter().map(str::to_owned).collect();
    pages.push(ALICES.to_owned());
    pages.push("/conversations?q=%3Cscript%3Ealert(9)%3C/script%3E".to_owned());
    pages.push("/audit?q=%22%3E%3Cscript%3Ealert(9)%3C/script%3E&kind=%3Cb%3E".to_owned());
    pages.push("/conversation?key=%3Cscript%3Ealert(9)%3C/script%3E".to_owned());
    pages.push("/%3Cscript%3Ealert(9)%3C/script%3E".to_owned());
    pages.push("/egress/rule?host=%3Cscript%3Ealert(9)%3C/script%3E".to_owned());
    pages.push("/egress?key=%3Cscript%3Ealert(9)%3C/script%3E".to_owned());
    for page in pages {
        let shown = ada.get(&page).await;
        assert!(
            !shown.body.contains("<script>alert"),
            "{page}: {}",
            shown.body
        );
        assert!(!shown.body.contains("<img src=x"), "{page}");
        assert!(!shown.body.contains("<b>ada"), "{page}");
        assert!(!shown.body.contains('\u{1b}'), "{page}: an escape");
        assert!(
            !shown.body.contains('\u{202e}'),
            "{page}: a turned direction"
        );
    }
    let told = ada.get(ALICES).await.body;
    for shown in [
        "&lt;script&gt;alert(1)",
        "alert(3)",
        "alert(4)",
        "⟦202E⟧",
        "terminal",
    ] {
        assert!(told.contains(shown), "{shown} in {told}");
    }
}

#[tokio::test]
async fn of_two_who_answer_at_once_one_is_heard_and_it_runs_once() {
    let deed = Deed::new();
    let script = [
        calls_terminal(&deed.command()),
        Reply::streams(&["it is done"]),
    ];
    let lab = approvals::lab(script, "").await;
    let question = lab.ask_through(BOB, "do it", ALICE).await;
    let id = approvals::name(&question);
    let (ada, eve) = (
        Visitor::operator(&lab).await,
        Visitor::entered(&lab, DashboardRole::Operator, "eve").await,
    );
    let page = ada.get("/approvals").await;
    assert!(
        page.body.contains(&id) && page.body.contains("chmod"),
        "{}",
        page.body
    );
    assert!(page.body.contains("What it comes down to"), "{}", page.body);
    let form = |csrf: &str, answer: &str| format!("csrf={csrf}&id={id}&answer={answer}");
    let never = ada
        .post("/approvals/answer", &form(&page.csrf(), "always"))
        .await;
    assert_eq!(
        never.status, 400,
        "a rule for commands is not written by a button"
    );
    let (adas, eves) = (page.csrf(), eve.get("/approvals").await.csrf());
    let (adas, eves) = (form(&adas, "once"), form(&eves, "once"));
    let (one, other) = tokio::join!(
        ada.post("/approvals/answer", &adas),
        eve.post("/approvals/answer", &eves),
    );
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 409], "{one:?} {other:?}");
    assert!(
        lab.replies(BOB, 2)
            .await
            .last()
            .unwrap()
            .contains("it is done")
    );
    assert_eq!(deed.times(), 1);
    let answered = lab.audit("answered");
    assert!(answered.contains("\"via\":\"dashboard\""), "{answered}");
}

#[tokio::test]
async fn an_operator_stops_and_destroys_and_the_record_says_who() {
    let script = [
        calls_terminal("echo hi > kept; sleep 600"),
        Reply::streams(&["never"]),
    ];
    let lab = Lab::builder().script(script).start().await;
    lab.says(ALICE, "go");
    lab.model_asked(1).await;
    let ada = Visitor::operator(&lab).await;
    while lab.sandboxes().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let seen = ada.get("/api/v1/overview").await;
    assert!(seen.body.contains("\"running\":[{"), "{}", seen.body);
    let form = "key=agent%3Amain%3Atelegram%3Adm%3A7";
    let unknown = ada
        .act("/", "/conversation/stop", "key=agent%3Amain%3Anobody")
        .await;
    assert_eq!(unknown.status, 404);
    let stopped = ada.act("/", "/conversation/stop", form).await;
    assert_eq!(stopped.status, 303, "{stopped:?}");
    assert_eq!(lab.replies(ALICE, 1).await.len(), 1, "she is told");
    let destroyed = ada
        .act("/", "/conversation/destroy", &format!("{form}&sure=yes"))
        .await;
    assert_eq!(destroyed.status, 303, "{destroyed:?}");
    assert_eq!(lab.sandboxes().await, [""; 0]);
    let noted = lab.audit("dashboard");
    for act in [
        "\"act\":\"stop\"",
        "\"act\":\"destroy\"",
        "dashboard:ada",
        "operator",
    ] {
        assert!(noted.contains(act), "{act} in {noted}");
    }
}

#[tokio::test]
async fn a_sandbox_is_destroyed_from_its_own_page_and_its_conversation_goes_on() {
    let script = [
        calls_terminal("echo hi > kept"),
        Reply::streams(&["it is written"]),
        calls_terminal("sleep 600"),
        calls_terminal("ls"),
        Reply::streams(&["another room"]),
    ];
    let lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, "write something down").await;
    let id = live::sandbox_of(&lab).await;
    lab.says(ALICE, "and go on");
    lab.model_asked(3).await;
    let ada = Visitor::operator(&lab).await;
    let own = format!("/sandbox?id={id}");
    let listed = ada.get("/sandboxes").await.body;
    assert!(listed.contains(&format!("{own}#destroy-act")), "{listed}");
    assert!(
        ada.get(&own)
            .await
            .body
            .contains("Destroy sandbox and files")
    );

    let eve = Visitor::entered(&lab, DashboardRole::Viewer, "eve").await;
    assert!(!eve.get(&own).await.body.contains("/sandbox/destroy"));
    let sure = format!("id={id}&sure=yes");
    let refused = eve.act(&own, "/sandbox/destroy", &sure).await;
    assert_eq!(refused.status, 403);
    assert_eq!(
        ada.post("/sandbox/destroy", &sure).await.status,
        403,
        "no token"
    );
    let unsure = ada.act(&own, "/sandbox/destroy", &format!("id={id}")).await;
    assert_eq!(unsure.status, 400);
    let unknown = "id=sb-nobody&sure=yes";
    assert_eq!(ada.act(&own, "/sandbox/destroy", unknown).await.status, 404);
    assert!(!lab.audit("dashboard").contains("destroy_sandbox"));
    assert_eq!(lab.sandboxes().await.len(), 1, "nothing was done");

    let gone = ada.act(&own, "/sandbox/destroy", &sure).await;
    assert_eq!(
        (gone.status, gone.header("location")),
        (303, Some("/sandboxes"))
    );
    assert_eq!(lab.sandboxes().await, [""; 0]);
    assert_eq!(lab.replies(ALICE, 2).await.len(), 2, "she is told");
    let noted = lab.audit("dashboard");
    assert!(noted.contains("\"act\":\"destroy_sandbox\"") && noted.contains("dashboard:ada"));
    assert!(noted.contains(id.as_str()), "{noted}");

    lab.ask(ALICE, "what is there?").await;
    let asked = lab.asked().pop().unwrap();
    assert!(
        asked.contains("write something down"),
        "what was said stays"
    );
    let again = live::sandbox_of(&lab).await;
    assert_ne!(again, id);
    let bearer = token(&lab, DashboardRole::Operator);
    let head = format!(
        "POST /api/v1/sandbox/destroy HTTP/1.1\r\nHost: localhost\r\n\
         Authorization: Bearer {bearer}\r\nContent-Type: application/json\r\n"
    );
    let body = format!("{{\"id\":\"{again}\",\"sure\":\"yes\"}}");
    let done = Visitor::stranger(&lab).send(&head, &body).await;
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(lab.sandboxes().await, [""; 0]);
}

#[tokio::test]
async fn a_host_that_is_asked_about_is_shown_where_connections_are() {
    if !has_sandboxes("a_host_that_is_asked_about_is_shown_where_connections_are").await {
        return;
    }
    let config = "gateway: {egress: {ask: true}}\napprovals: {approvers: ['telegram:7']}\n";
    let lab = Lab::builder().configured_backends().config(config);
    let lab = lab.start().await;
    let port = egress::origin();
    let question = lab.ask(ALICE, &egress::asks(port)).await;
    let (id, host) = (approvals::name(&question), format!("localhost:{port}"));
    let ada = Visitor::operator(&lab).await;
    let page = ada.get("/egress").await.body;
    let asked = page.split_once("id=\"hosts\"").unwrap().0;
    assert!(
        asked.contains(&host) && asked.contains(&format!("/approvals#{id}")),
        "{asked}"
    );
    let others = ada
        .get("/egress?key=agent%3Amain%3Atelegram%3Adm%3A8")
        .await;
    assert!(!others.body.contains(&id), "{}", others.body);
    let api = ada.get("/api/v1/egress").await.body;
    let api: serde_json::Value = serde_json::from_str(&api).unwrap();
    assert_eq!(api["asked"][0]["id"], id.as_str(), "{api}");
    let denied = format!("id={id}&answer=deny");
    let answered = ada.act("/approvals", "/approvals/answer", &denied).await;
    assert_eq!(answered.status, 303, "{answered:?}");
    assert!(!ada.get("/egress").await.body.contains(&id));
}

#[tokio::test]
async fn programs_use_a_token_and_a_rule_is_written_as_it_was_shown() {
    let lab = Lab::builder()
        .config("gateway: {egress: {mode: allowlist}}\n")
        .start()
        .await;
    let stranger = Visitor::stranger(&lab);
    let token = token(&lab, DashboardRole::Operator);
    let bearer = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\n{bearer}");
    for page in [
        "overview",
        "conversations",
        "sandboxes",
        "approvals",
        "egress",
        "audit",
        "audit/verify",
        "people",
        "configuration",
        "usage",
    ] {
        let answer = stranger.send(&get(&format!("/api/v1/{page}")), "").await;
        assert_eq!(answer.status, 200, "{page}: {answer:?}");
        let read: Result<serde_json::Value, _> = serde_json::from_str(&answer.body);
        assert!(read.is_ok(), "{page}: {}", answer.body);
        assert!(!answer.body.contains(KEY), "{page}");
    }
    assert_eq!(
        stranger.send(&get("/"), "").await.status,
        401,
        "pages are for people"
    );
    let link_as_token = link(&lab, DashboardRole::Operator, "x");
    let wrong = format!(
        "GET /api/v1/overview HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n",
        &link_as_token[11..]
    );
    assert_eq!(stranger.send(&wrong, "").await.status, 401);

    let ada = Visitor::operator(&lab).await;
    let shown = ada
        .get("/egress/rule?host=pypi.org:443&key=agent%3Amain%3Atelegram%3Adm%3A7")
        .await;
    let line = "allow pypi.org:443 for telegram:dm:7";
    assert!(shown.body.contains(line), "{}", shown.body);
    let rules = lab.config().home().state().join("egress.rules");
    assert!(!rules.exists(), "only shown");
    let form = format!("csrf={}&rule={}", shown.csrf(), line.replace(' ', "+"));
    assert_eq!(ada.post("/egress/rule", &form).await.status, 303);
    assert!(
        std::fs::read_to_string(&rules)
            .unwrap()
            .lines()
            .any(|one| one == line)
    );
    let two_lines = form.replace("pypi", "a.example%0Aallow+evil");
    assert_eq!(ada.post("/egress/rule", &two_lines).await.status, 400);
    let removed = ada.post("/egress/rule/remove", &form).await;
    assert_eq!(removed.status, 303, "{removed:?}");
    assert!(!std::fs::read_to_string(&rules).unwrap().contains("pypi"));
    let noted = lab.audit("rule");
    assert!(
        noted.contains("added") && noted.contains("removed") && noted.contains("dashboard:ada")
    );
}

/// An open stream of events.
struct Heard(BufReader<TcpStream>);

impl Heard {
    async fn open(visitor: &Visitor, last: &str) -> Self {
        let head = format!(
            "GET /events HTTP/1.1\r\nHost: {}\r\n{last}",
            visitor.address
        );
        Self(BufReader::new(visitor.open(&head, "").await))
    }

    /// The number of the next event of this name.
    async fn next(&mut self, name: &str) -> String {
        let mut id = String::new();
        loop {
            let mut line = String::new();
            let read = timeout(Duration::from_secs(60), self.0.read_line(&mut line));
            assert_ne!(
                read.await.expect("an event").unwrap(),
                0,
                "the stream ended"
            );
            if let Some(number) = line.strip_prefix("id: ") {
                number.trim().clone_into(&mut id);
            }
            if line.trim() == format!("event: {name}") {
                return id;
            }
        }
    }
}

#[tokio::test]
async fn what_happens_is_heard_and_whoever_was_away_is_told_what_he_missed() {
    let script = [Reply::streams(&["one"]), Reply::streams(&["two"])];
    let lab = Lab::builder().script(script).start().await;
    let ada = Visitor::operator(&lab).await;
    let mut heard = Heard::open(&ada, "").await;
    heard.next("reset").await;
    lab.says(ALICE, "hello");
    let last = heard.next("activity").await;
    drop(heard);
    lab.replies(ALICE, 1).await;
    lab.ask(ALICE, "again").await;
    let mut heard = Heard::open(&ada, &format!("Last-Event-ID: {last}\r\n")).await;
    let next = heard.next("activity").await;
    let number = |id: &str| id.rsplit('-').next().unwrap().parse::<u64>().unwrap();
    assert_eq!(number(&next), number(&last) + 1, "nothing is left out");
    let mut lost = Heard::open(&ada, "Last-Event-ID: another-run-7\r\n").await;
    lost.next("reset").await;
}

#[tokio::test]
async fn two_hundred_streams_are_bounded_and_keep_nobody_out() {
    let mut lab = Lab::builder().start().await;
    let ada = Visitor::operator(&lab).await;
    let mut streams = Vec::new();
    let mut refused = 0;
    for _ in 0..200 {
        let head = format!("GET /events HTTP/1.1\r\nHost: {}\r\n", ada.address);
        let mut stream = ada.open(&head, "").await;
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        match &first {
            b"HTTP/1.1 200" => streams.push(stream),
            b"HTTP/1.1 503" => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(
        !streams.is_empty() && streams.len() <= 16,
        "{}",
        streams.len()
    );
    assert_eq!(refused, 200 - streams.len());
    assert_eq!(ada.get("/").await.status, 200);
    assert_eq!(Visitor::stranger(&lab).get("/health").await.status, 200);
    drop(streams);
    // Nobody reads this one; the stop does not wait for it.
    let _open = Heard::open(&ada, "").await;
    lab.stop().await;
}

#[tokio::test]
async fn the_first_page_is_small_also_with_a_thousand_conversations() {
    let lab = Lab::builder()
        .script([Reply::streams(&["hello"])])
        .start()
        .await;
    lab.ask(ALICE, "hi").await;
    let store = lab.store().await;
    let (activity, inbox, ledger) = (store.activity(), store.inbox(), store.ledger());
    let said = activity
        .conversations("2026-01-01", (1, 0))
        .await
        .unwrap()
        .remove(0);
    let now = lab.clock().now();
    for number in 0..1000_i64 {
        let key = ConversationKey::new(format!("agent:main:telegram:dm:{}", 10_000 + number));
        let update = format!("many-{number}");
        let at = now.minus(Duration::from_secs(number.unsigned_abs() * 60));
        let row = inbox
            .accept("telegram", &update, &key, &said.payload, at)
            .await
            .unwrap()
            .unwrap();
        inbox
            .end(row, MessageEnd::Answered, None, now)
            .await
            .unwrap();
        if number < 100 {
            let id = SandboxId::random();
            ledger
                .name(&id, &key, BackendKind::Native, "{}", now)
                .await
                .unwrap();
            ledger.mark(&id, LedgerState::Running).await.unwrap();
        }
    }
    let ada = Visitor::operator(&lab).await;
    let mut bytes = 0;
    for path in [
        "/",
        "/assets/dashboard.css",
        "/assets/dashboard.js",
        "/assets/icon.svg",
    ] {
        let answer = ada.get(path).await;
        assert_eq!(answer.status, 200);
        bytes += answer.head.len() + answer.body.len();
    }
    assert!(bytes <= 150_000, "{bytes} bytes");
    let rounds = 50_u32;
    let started = std::time::Instant::now();
    for _ in 0..rounds {
        let page = ada.get("/").await;
        assert!(
            page.body.contains("1\u{202f}001"),
            "all of them are counted"
        );
    }
    eprintln!(
        "first page: {bytes} bytes; overview: {} µs each, connection included",
        started.elapsed().as_micros() / u128::from(rounds)
    );
    let listed = ada.get("/conversations").await;
    assert!(listed.body.contains("Earlier conversations"));
    let searched = ada.get("/conversations?q=10999").await;
    assert!(searched.body.contains("dm:10999") && !searched.body.contains("dm:10998"));
}
