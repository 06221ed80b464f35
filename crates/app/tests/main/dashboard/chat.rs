//! The chat in the browser, by HTTP: taken before it is acknowledged, answered, kept, and nobody else's.

use std::sync::Arc;
use std::time::Duration;

use hermetic_dashboard::DashboardRole;
use hermetic_testkit::model::Reply;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::visitor::{Answer, Visitor, token};
use crate::approvals::{self, Deed};
use crate::lab::{Lab, calls_terminal, has_sandboxes};

const EVIL: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";

/// Opens a conversation; its number.
async fn opens(visitor: &Visitor) -> String {
    let opened = visitor.act("/chat", "/chat/open", "").await;
    assert_eq!(opened.status, 303, "{opened:?}");
    let place = opened.header("location").unwrap();
    place.strip_prefix("/chat?c=").unwrap().to_owned()
}

/// Waits until the page shows this.
async fn shows(visitor: &Visitor, path: &str, words: &str) -> Answer {
    loop {
        let page = visitor.get(path).await;
        if page.body.contains(words) {
            return page;
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// A form with a file, as browsers write it.
async fn uploads(visitor: &Visitor, fields: &[(&str, &str)], file: (&str, &str)) -> Answer {
    let mut body = String::new();
    for (name, value) in fields {
        body.push_str(&format!(
            "--xyz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        ));
    }
    let (name, bytes) = file;
    body.push_str(&format!(
        "--xyz\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\
         Content-Type: text/html\r\n\r\n{bytes}\r\n--xyz--\r\n"
    ));
    let head = format!(
        "POST /chat/say HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\n\
         Content-Type: multipart/form-data; boundary=xyz\r\n",
        visitor.address
    );
    visitor.send(&head, &body).await
}

#[tokio::test]
async fn what_is_said_in_the_browser_is_answered_and_kept_over_a_restart() {
    let gate = Arc::new(Notify::new());
    let growing = Reply::streams_through(
        &gate,
        &["It **begins** with so many words that it is shown while it grows"],
        &[" and then it ends."],
    );
    let mut lab = Lab::builder()
        .script([growing, Reply::streams(&["again"])])
        .start()
        .await;
    let mut ada = Visitor::operator(&lab).await;
    let page = ada.get("/chat").await;
    assert!(
        page.body.contains("no conversation here yet"),
        "{}",
        page.body
    );
    let id = opens(&ada).await;
    let chat = format!("/chat?c={id}");
    let said = ada
        .act(
            "/chat",
            "/chat/say",
            &format!("c={id}&text=hello+there&once=form-0001"),
        )
        .await;
    assert_eq!(said.status, 303, "{said:?}");
    // Acknowledged, so it is in the inbox.
    let key = format!("agent:main:browser:dm:dashboard%3Aada:{id}");
    let known = lab.store().await.activity();
    let known = known.conversations("2000-01-01", (9, 0)).await.unwrap();
    assert_eq!(known[0].conversation.as_str(), key);
    let grows = shows(&ada, &chat, "<strong>begins</strong>").await;
    assert!(!grows.body.contains("then it ends"), "{}", grows.body);
    assert!(grows.body.contains("hello there"));
    gate.notify_one();
    shows(&ada, &chat, "and then it ends.").await;
    // The form that was sent twice is one message.
    let again = ada
        .act(
            "/chat",
            "/chat/say",
            &format!("c={id}&text=hello+there&once=form-0001"),
        )
        .await;
    assert_eq!(again.status, 303);

    lab.restart().await;
    ada.address = lab.health();
    let page = ada.get(&chat).await;
    assert!(page.body.contains("and then it ends."), "{}", page.body);
    assert_eq!(
        page.body.matches("class=\"mine\"").count(),
        1,
        "{}",
        page.body
    );
    let said = ada
        .act(
            "/chat",
            "/chat/say",
            &format!("c={id}&text=more&once=form-0002"),
        )
        .await;
    assert_eq!(said.status, 303);
    shows(&ada, &chat, "again").await;
    let condition = ada.get("/api/v1/overview").await.body;
    assert!(condition.contains("\"account\":\"browser\""), "{condition}");
    let admitted = lab.audit("access");
    assert!(admitted.contains("dashboard:ada"), "{admitted}");

    let unsure = ada.act(&chat, "/chat/delete", &format!("c={id}")).await;
    assert_eq!(unsure.status, 400);
    let gone = ada
        .act(&chat, "/chat/delete", &format!("c={id}&sure=yes"))
        .await;
    assert_eq!(gone.status, 303, "{gone:?}");
    assert_eq!(ada.get(&chat).await.status, 404);
    assert!(lab.audit("dashboard").contains("chat_deleted"));
}

#[tokio::test]
async fn files_go_up_into_the_sandbox_and_come_down_as_they_are() {
    if !has_sandboxes("files_go_up_into_the_sandbox_and_come_down_as_they_are").await {
        return;
    }
    let script = [
        calls_terminal("cat uploads/*; printf 'a page: <b>hi</b>' > report.html"),
        Reply::streams(&["Here it is.\nMEDIA:report.html"]),
    ];
    let lab = Lab::builder()
        .configured_backends()
        .script(script)
        .start()
        .await;
    let ada = Visitor::operator(&lab).await;
    let id = opens(&ada).await;
    let csrf = ada.get("/chat").await.csrf();
    let fields = [("csrf", csrf.as_str()), ("c", &id), ("text", "read this")];
    let name = "<img src=x onerror=alert(7)>.html";
    let said = uploads(&ada, &fields, (name, "<script>alert(8)</script> in a file")).await;
    assert_eq!(said.status, 303, "{said:?}");
    let chat = format!("/chat?c={id}");
    let page = shows(&ada, &chat, "report.html").await;
    assert!(!page.body.contains("<img src=x"), "{}", page.body);
    assert!(
        page.body
            .contains("&lt;img src=x onerror=alert(7)&gt;.html")
    );
    assert!(lab.tool_result(1).to_string().contains("in a file"));
    let links: Vec<&str> = page.body.split("href=\"/chat/file?id=").skip(1).collect();
    let numbers: Vec<&str> = links
        .iter()
        .map(|it| it.split('"').next().unwrap())
        .collect();
    assert_eq!(numbers.len(), 2, "{numbers:?}");
    let eve = Visitor::entered(&lab, DashboardRole::Operator, "eve").await;
    for (number, content) in numbers
        .iter()
        .zip(["<script>alert(8)</script> in a file", "a page: <b>hi</b>"])
    {
        let path = format!("/chat/file?id={number}");
        let file = ada.get(&path).await;
        assert_eq!((file.status, file.body.as_str()), (200, content));
        assert_eq!(
            file.header("content-type"),
            Some("application/octet-stream")
        );
        let disposition = file.header("content-disposition").unwrap();
        assert!(
            disposition.starts_with("attachment; filename*=UTF-8''"),
            "{disposition}"
        );
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(eve.get(&path).await.status, 404, "another's file");
    }
    let huge = "x".repeat((8 << 20) + 4096);
    let refused = uploads(&ada, &fields, ("huge", &huge)).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("too much"), "{}", refused.body);
}

#[tokio::test]
async fn an_operator_is_asked_in_the_browser_and_a_button_is_pressed_once() {
    let deed = Deed::new();
    let script = [
        calls_terminal(&deed.command()),
        Reply::streams(&["it is done"]),
    ];
    // Alice is the approver of the configuration; whoever signed in as an operator may answer too.
    let lab = approvals::lab(script, "").await;
    let ada = Visitor::operator(&lab).await;
    let eve = Visitor::entered(&lab, DashboardRole::Operator, "eve").await;
    let id = opens(&ada).await;
    let chat = format!("/chat?c={id}");
    ada.act("/chat", "/chat/say", &format!("c={id}&text=do+it"))
        .await;
    let page = shows(&ada, &chat, "may I run this?").await;
    let (_, buttons) = page.body.split_once("action=\"/chat/press\"").unwrap();
    let value = |name: &str| {
        let (_, rest) = buttons
            .split_once(&format!("name=\"{name}\" value=\""))
            .unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let data = value("data").replace(':', "%3A");
    let form = format!("c={id}&message={}&data={data}", value("message"));
    let forged = eve.act("/chat", "/chat/press", &form).await;
    assert_eq!(forged.status, 400, "{forged:?}");
    assert_eq!(deed.times(), 0);
    let pressed = ada.act(&chat, "/chat/press", &form).await;
    assert_eq!(pressed.status, 303, "{pressed:?}");
    let page = shows(&ada, &chat, "it is done").await;
    assert_eq!(deed.times(), 1);
    assert!(!page.body.contains("/chat/press"), "answered");
    let late = ada.act(&chat, "/chat/press", &form).await;
    assert_eq!(late.status, 400, "{late:?}");
    let answered = lab.audit("answered");
    assert!(answered.contains("dashboard:ada"), "{answered}");
    let help = ada
        .act("/chat", "/chat/say", &format!("c={id}&text=%2Fhelp"))
        .await;
    assert_eq!(help.status, 303);
    shows(&ada, &chat, "/stop").await;
}

#[tokio::test]
async fn nobody_writes_who_may_only_look_and_nobody_reaches_anothers_conversation() {
    let lab = Lab::builder()
        .script([Reply::streams(&[
            EVIL,
            " [x](javascript:alert(3)) \u{1b}]0;t\u{7}\u{202e}",
        ])])
        .start()
        .await;
    let ada = Visitor::entered(&lab, DashboardRole::Operator, "<b>ada</b>").await;
    let id = opens(&ada).await;
    let chat = format!("/chat?c={id}");
    let csrf = ada.get(&chat).await.csrf();
    let evil = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%1B%5D0%3Bt%07";
    let said = ada
        .post("/chat/say", &format!("csrf={csrf}&c={id}&text={evil}"))
        .await;
    assert_eq!(said.status, 303, "{said:?}");
    let page = shows(&ada, &chat, "alert(2)").await;
    for bad in [
        "<script>alert",
        "<img src=x",
        "<b>ada",
        "href=\"javascript",
        "\u{1b}",
        "\u{202e}",
        "\u{7}",
    ] {
        assert!(!page.body.contains(bad), "{bad:?} in {}", page.body);
    }
    let (eve, viewer, stranger) = (
        Visitor::entered(&lab, DashboardRole::Operator, "eve").await,
        Visitor::entered(&lab, DashboardRole::Viewer, "<b>ada</b>").await,
        Visitor::stranger(&lab),
    );
    // Another operator: neither to be read nor to be written to.
    assert_eq!(eve.get(&chat).await.status, 404);
    assert!(!eve.get("/chat").await.body.contains("alert"));
    let api = eve.get(&format!("/api/v1/chat?c={id}")).await;
    assert_eq!(api.status, 404, "{api:?}");
    for (path, form) in [
        ("/chat/say", format!("c={id}&text=mine")),
        ("/chat/delete", format!("c={id}&sure=yes")),
    ] {
        let refused = eve.act("/chat", path, &form).await;
        assert!(matches!(refused.status, 400 | 404), "{refused:?}");
    }
    // The same person with fewer rights reads, and does nothing.
    let seen = viewer.get(&chat).await;
    assert!(seen.status == 200 && seen.body.contains("alert(2)"));
    assert!(!seen.body.contains("/chat/say") && seen.body.contains("not write"));
    let csrf = seen.csrf();
    let fields = [("csrf", csrf.as_str()), ("c", &id), ("text", "mine")];
    assert_eq!(uploads(&viewer, &fields, ("a", "b")).await.status, 403);
    for path in ["/chat/say", "/chat/open", "/chat/press", "/chat/delete"] {
        let form = format!("c={id}&text=x&message=1&data=x&sure=yes");
        assert_eq!(viewer.act("/", path, &form).await.status, 403, "{path}");
        assert_eq!(stranger.post(path, &form).await.status, 401, "{path}");
        // No token, another's token, another origin.
        assert_eq!(ada.post(path, &form).await.status, 403, "{path}");
        let token = eve.get("/chat").await.csrf();
        let others = format!("csrf={token}&{form}");
        assert_eq!(ada.post(path, &others).await.status, 403, "{path}");
        let own = format!("csrf={}&{form}", ada.get("/chat").await.csrf());
        let from = ada
            .post_from(path, &own, "Origin: http://evil.example\r\n")
            .await;
        assert_eq!(from.status, 403, "{path}");
    }
    for token in ["", "guess"] {
        let fields = [("csrf", token), ("c", &id), ("text", "forged")];
        assert_eq!(uploads(&ada, &fields, ("a", "b")).await.status, 403);
    }
    let page = ada.get(&chat).await;
    assert_eq!(
        page.body.matches("class=\"mine\"").count(),
        1,
        "nothing was done"
    );
}

#[tokio::test]
async fn a_program_chats_by_its_token_under_its_own_name() {
    let lab = Lab::builder()
        .script([Reply::streams(&["hello program"])])
        .start()
        .await;
    let program = Visitor::stranger(&lab);
    let token = token(&lab, DashboardRole::Operator);
    let bearer = format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n");
    let json = format!("{bearer}Content-Type: application/json\r\n");
    let post = |path: &str| format!("POST /api/v1/chat/{path} HTTP/1.1\r\n{json}");
    let opened = program.send(&post("open"), "{}").await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let opened: serde_json::Value = serde_json::from_str(&opened.body).unwrap();
    let id = opened["c"].as_i64().unwrap();
    let said = format!("{{\"c\":{id},\"text\":\"hi\"}}");
    let said = program.send(&post("say"), &said).await;
    assert_eq!(said.status, 200, "{said:?}");
    loop {
        let get = format!("GET /api/v1/chat?c={id} HTTP/1.1\r\n{bearer}");
        let page = program.send(&get, "").await;
        if page.body.contains("hello program") {
            let page: serde_json::Value = serde_json::from_str(&page.body).unwrap();
            assert_eq!(page["open"]["messages"][0]["state"], "taken");
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert!(lab.audit("access").contains("token:cron"));
}
