//! Rows of pages that move: each stays about one thing, and a page that does not come is not called live.

use std::time::Duration;

use hermetic_access::{PairedRole, PairedUser};
use hermetic_store::{LedgerState, MessageEnd};
use hermetic_testkit::model::Reply;
use hermetic_types::{BackendKind, Clock as _, Platform, SandboxId, UserId};
use serde_json::json;

use super::ALICES;
use super::browser::{ENTER, base, scripts, whole_link};
use super::live::sandbox_of;
use super::visitor::Visitor;
use crate::lab::{ALICE, Lab, calls_terminal};

/// People who were let in, in this order.
async fn paired(lab: &Lab, people: &[(&str, &str)]) {
    let people = people.iter().map(|(user, display)| PairedUser {
        user: UserId::new(*user).unwrap(),
        display: (*display).to_owned(),
        approved_at: lab.clock().now(),
        role: PairedRole::User,
        untold: None,
    });
    let people: Vec<_> = people.collect();
    let pairing = hermetic_app::pairing(&lab.store().await);
    pairing.adopt(Platform::Telegram, &people).await.unwrap();
}

#[tokio::test]
async fn somebody_is_put_out_only_by_a_button_about_them() {
    let lab = Lab::builder().start().await;
    paired(&lab, &[("41", "Ann"), ("42", "Ben")]).await;
    let ada = Visitor::operator(&lab).await;
    let page = ada.get("/people").await.body;
    assert!(
        page.contains("value=\"telegram:42\"") && page.contains("Put out Ben"),
        "{page}"
    );
    assert!(page.contains("May</th>"), "{page}");
    for unsure in [
        "platform=telegram&user=42",
        "platform=telegram&user=42&sure=yes",
        // A row that became somebody else's: the form is about the one, and the button about the other.
        "platform=telegram&user=42&sure=telegram:41",
    ] {
        let refused = ada.act("/people", "/people/revoke", unsure).await;
        assert_eq!(refused.status, 400, "{unsure}");
    }
    assert!(!lab.audit("pairing").contains("revoked"));
    let sure = "platform=telegram&user=42&sure=telegram:42";
    assert_eq!(ada.act("/people", "/people/revoke", sure).await.status, 303);
    let left = ada.get("/api/v1/people").await.body;
    assert!(left.contains("Ann") && !left.contains("Ben"), "{left}");
}

#[tokio::test]
async fn replies_that_were_given_up_their_files_and_the_life_of_a_sandbox_are_shown() {
    let script = [calls_terminal("true"), Reply::streams(&["done"])];
    let lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, "go").await;
    lab.all_done().await;
    let (id, store, now) = (sandbox_of(&lab).await, lab.store().await, lab.clock().now());
    let key = hermetic_types::ConversationKey::new("agent:main:telegram:dm:7");
    let (inbox, deliveries) = (store.inbox(), store.deliveries());
    let payload = store
        .activity()
        .messages(&key, None, 1)
        .await
        .unwrap()
        .remove(0)
        .payload;
    let row = inbox
        .accept("telegram", "late", &key, &payload, now)
        .await
        .unwrap()
        .unwrap();
    let address = json!({ "files": ["out/report <1>.pdf"] }).to_string();
    let reply = ("telegram", address.as_str(), "Here it is.");
    let queued = deliveries
        .queue_and_end(row, MessageEnd::Answered, reply, now)
        .await
        .unwrap();
    deliveries
        .failed(queued, "the bot was blocked")
        .await
        .unwrap();
    let ada = Visitor::operator(&lab).await;
    let overview = ada.get("/").await.body;
    assert!(
        overview.contains("Replies that were given up"),
        "{overview}"
    );
    assert!(overview.contains("the bot was blocked"), "{overview}");
    let page = ada.get(ALICES).await.body;
    assert!(page.contains("file: report &lt;1&gt;.pdf"), "{page}");
    assert!(
        page.contains("/egress?key=agent%3Amain%3Atelegram%3Adm%3A7"),
        "{page}"
    );
    for became in ["is being made", "is ready"] {
        assert!(page.contains(became), "{became}: {page}");
    }
    // No two entries under one name: a row would take over what is open in another.
    let keys: Vec<_> = page.split("data-key=\"").skip(1).collect();
    let keys: Vec<_> = keys
        .iter()
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let mut once = keys.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), keys.len(), "{keys:?}");

    let destroyed = ada
        .act(ALICES, "/sandbox/destroy", &format!("id={id}&sure=yes"))
        .await;
    assert_eq!(destroyed.status, 303, "{destroyed:?}");
    let page = ada.get(ALICES).await.body;
    assert!(
        page.contains("is gone, with what was in it") && page.contains(id.as_str()),
        "{page}"
    );
}

#[tokio::test]
async fn what_became_of_sandboxes_is_forgotten_after_a_month() {
    let mut lab = Lab::builder().start().await;
    let key = hermetic_types::ConversationKey::new("old");
    let (ledger, now) = (lab.store().await.ledger(), lab.clock().now());
    for days in [40, 2] {
        let at = now.minus(Duration::from_secs(days * 86_400));
        let id = SandboxId::random();
        ledger
            .name(&id, &key, BackendKind::Native, "{}", at)
            .await
            .unwrap();
        ledger.forget(&id).await.unwrap();
    }
    let told = async |lab: &Lab| {
        let since = now.minus(Duration::from_secs(100 * 86_400));
        let ledger = lab.store().await.ledger();
        ledger.events(&key, since, 99).await.unwrap()
    };
    assert_eq!(told(&lab).await.len(), 4);
    lab.restart().await;
    while told(&lab).await.len() > 3 {
        tokio::task::yield_now().await;
    }
    let left = told(&lab).await;
    let is_old = |at| now.since(at) > Duration::from_secs(30 * 86_400);
    assert!(
        left.len() == 3 && left.iter().all(|one| !is_old(one.at)),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_terminal_is_offered_only_where_one_is_opened() {
    let lab = Lab::builder().start().await;
    let ledger = lab.store().await.ledger();
    let mut ids = Vec::new();
    for (name, kind) in [
        ("sealed", BackendKind::Docker),
        ("judged", BackendKind::Local),
    ] {
        let (id, key) = (
            SandboxId::random(),
            hermetic_types::ConversationKey::new(name),
        );
        ledger
            .name(&id, &key, kind, "{}", lab.clock().now())
            .await
            .unwrap();
        ledger.mark(&id, LedgerState::Running).await.unwrap();
        ids.push(id);
    }
    let ada = Visitor::operator(&lab).await;
    let listed = ada.get("/sandboxes").await.body;
    assert!(listed.contains("/terminal?key=sealed"), "{listed}");
    assert!(!listed.contains("/terminal?key=judged"), "{listed}");
    for (id, is_offered) in ids.iter().zip([true, false]) {
        let page = ada.get(&format!("/sandbox?id={id}")).await.body;
        assert_eq!(page.contains("/terminal?key="), is_offered, "{page}");
    }
}

#[tokio::test]
async fn the_number_of_questions_is_in_every_title_and_told_by_itself() {
    let deed = crate::approvals::Deed::new();
    let script = [calls_terminal(&deed.command()), Reply::streams(&["done"])];
    let lab = crate::approvals::lab(script, "").await;
    let ada = Visitor::operator(&lab).await;
    assert_eq!(ada.get("/waiting").await.body, "{\"waiting\":0}");
    assert!(
        ada.get("/configuration")
            .await
            .body
            .contains("<title>Configuration")
    );
    let mut heard = super::Heard::open(&ada, "").await;
    heard.next("reset").await;
    lab.ask_through(crate::lab::BOB, "do it", ALICE).await;
    heard.next("waiting").await;
    assert_eq!(ada.get("/waiting").await.body, "{\"waiting\":1}");
    for path in ["/", "/configuration", "/audit?before=1", "/chat"] {
        let page = ada.get(path).await.body;
        assert!(page.contains("<title>(1) "), "{path}: {page}");
        assert!(page.contains("data-waiting=\"1\""), "{path}");
    }
    assert_eq!(Visitor::stranger(&lab).get("/waiting").await.status, 401);
}

/// One looks on while another acts: what is open stays with its row, and a page that is gone says so.
const ROWS: &str = r##"
const context = await browser.newContext({ baseURL: told.base });
const [looker, actor] = [await context.newPage(), await context.newPage()];
await enter(looker, told.link);
await looker.goto("/people");
await looker.waitForSelector("#live.on");
const row = (user) => `tr[data-key="telegram:${user}"]`;
await looker.click(`${row(42)} summary`);
await actor.goto("/people");
await actor.click(`${row(41)} summary`);
await actor.click(`${row(41)} button[name=sure]`);
await actor.waitForURL("**/people");
await looker.waitForSelector(row(41), { state: "detached" });
assert.equal(await looker.locator("#paired details[open]").count(), 1, "what was open stays open");
const open = looker.locator("#paired details[open] button[name=sure]");
assert.equal(await open.getAttribute("value"), "telegram:42", "and is about whom it was about");
assert.ok((await open.textContent()).includes("Ben"));

const sandbox = "/sandbox?id=" + told.sandbox;
await looker.goto(sandbox);
await looker.waitForSelector("#live.on");
await actor.goto(sandbox);
await actor.click("#destroy-act summary");
await actor.click("#destroy-act button[name=sure]");
await actor.waitForURL("**/sandboxes");
await looker.waitForFunction(() => document.getElementById("live").textContent.includes("not there any more"));
assert.ok(!(await looker.getAttribute("#live", "class")).split(" ").includes("on"), "old figures are not called live");
// A server that breaks is said, too, and what comes again is live again.
await looker.goto("/sandboxes");
await looker.waitForSelector("#live.on");
await looker.route("**/sandboxes", (route) => route.fulfill({ status: 503, body: "no" }));
await looker.evaluate(() => document.dispatchEvent(new Event("hermetic-refresh")));
await looker.waitForFunction(() => document.getElementById("live").textContent.includes("503"));
await looker.unroute("**/sandboxes");
await looker.evaluate(() => document.dispatchEvent(new Event("hermetic-refresh")));
await looker.waitForSelector("#live.on");
await context.close();
"##;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_stays_with_its_row_and_a_page_that_is_gone_is_not_live() {
    let test = "what_is_open_stays_with_its_row_and_a_page_that_is_gone_is_not_live";
    let Some(scripts) = scripts(test).await else {
        return;
    };
    let script = [calls_terminal("true"), Reply::streams(&["done"])];
    let lab = Lab::builder().script(script).start().await;
    lab.ask(ALICE, "go").await;
    paired(&lab, &[("41", "Ann"), ("42", "Ben"), ("43", "Cid")]).await;
    let told = json!({
        "base": base(&lab),
        "link": whole_link(&lab, "ada"),
        "sandbox": sandbox_of(&lab).await,
    });
    let seen = scripts.run(&format!("{ENTER}{ROWS}"), &told).await;
    seen.unwrap_or_else(|why| panic!("{why}"));
}
