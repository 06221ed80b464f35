//! The pages in a real browser: each of them, at three widths, in light and dark, live, and for everybody.
//!
//! With `HERMETIC_PICTURES=<folder>` every page is also drawn there, to be looked at.

use std::sync::Arc;
use std::time::Duration;

use hermetic_dashboard::DashboardRole;
use hermetic_testkit::model::Reply;
use hermetic_testkit::npm::BrowserScripts;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::visitor::link;
use crate::approvals::{self, Deed};
use crate::lab::{ALICE, BOB, Lab, calls_terminal};

/// Follows a link and presses the button that is there.
pub(super) const ENTER: &str = r##"
const enter = async (page, link) => {
  await page.goto(link);
  assert.equal(await page.locator("#live").count(), 0, "nobody is in by looking at it");
  await page.click("main button");
  await page.waitForURL((url) => url.pathname === "/" && url.search === "");
};
"##;

/// Walks through every page: no mistake in the console, nothing wider than the screen, and nothing that axe
/// finds to keep people out.
const WALK: &str = r#"
const pages = [["overview", "/"], ["chat-empty", "/chat"], ["conversations", "/conversations"],
  ["conversation", "/conversation?key=agent%3Amain%3Atelegram%3Adm%3A8"], ["sandboxes", "/sandboxes"],
  ["approvals", "/approvals"], ["egress", "/egress"], ["audit", "/audit"], ["verified", "/audit/verify"],
  ["people", "/people"], ["configuration", "/configuration"], ["usage", "/usage"]];
for (const [colorScheme, widths] of [["light", [360, 1280, 1920]], ["dark", [1280]]]) {
  const context = await browser.newContext({ colorScheme, baseURL: told.base });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (line) => { if (line.type() === "error") faults.push(line.text()); });
  await enter(page, told.links[colorScheme]);
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    for (const [name, path] of pages) {
      const answer = await page.goto(path);
      assert.equal(answer.status(), 200, path);
      await page.waitForSelector("h1");
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${name} at ${width}: ${wide} pixels too wide`);
      if (told.pictures) {
        await page.screenshot({ path: `${told.pictures}/${name}-${width}-${colorScheme}.png`, fullPage: true });
      }
      if (width !== 1920) {
        await page.evaluate(axe);
        const found = await page.evaluate(async () => (await globalThis.axe.run(document, {
          runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })).violations.map((one) =>
            `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" ")}`));
        assert.deepEqual(found, [], `${name} at ${width}, ${colorScheme}`);
      }
    }
  }
  assert.deepEqual(faults, []);
  await context.close();
}
const plain = await browser.newContext({ javaScriptEnabled: false, baseURL: told.base });
const bare = await plain.newPage();
await enter(bare, told.links.bare);
for (const [name, path] of pages) {
  await bare.goto(path);
  assert.ok((await bare.textContent("main")).trim().length > 40, `${name} says something without a script`);
}
await plain.close();
"#;

/// Two people look; one answers by keyboard alone, and the other sees it without doing anything.
const TWO: &str = r##"
const people = [];
for (const link of told.links) {
  const context = await browser.newContext({ baseURL: told.base, viewport: { width: 390, height: 844 } });
  const page = await context.newPage();
  await enter(page, link);
  await page.goto("/approvals");
  await page.waitForSelector("#live.on");
  people.push(page);
}
const [ada, eve] = people;
// A name may begin with a digit, which no selector by `#` does.
const question = `[id="${told.id}"]`;
assert.ok(await ada.isVisible(question) && await eve.isVisible(question));
await eve.fill(`[id="reason-${told.id}"]`, "half a sen");
await ada.keyboard.press("Tab");
assert.equal(await ada.evaluate(() => document.activeElement.className), "skip");
for (let steps = 0; steps < 80; steps++) {
  const on = await ada.evaluate(() => document.activeElement.value);
  if (on === "once") break;
  await ada.keyboard.press("Tab");
}
assert.equal(await ada.evaluate(() => document.activeElement.value), "once");
await ada.keyboard.press("Enter");
await ada.waitForURL("**/approvals");
await eve.waitForSelector(question, { state: "detached" });
await eve.waitForFunction((id) => document.querySelector("#settled").textContent.includes(id), told.id);
assert.ok((await eve.textContent("#settled")).includes("dashboard:ada"));
"##;

/// A whole conversation on a phone: opened, written in by keyboard, answered while one looks on, a file up and one
/// down, a button pressed; then once more without a script.
const CHAT: &str = r##"
const context = await browser.newContext({ baseURL: told.base, viewport: { width: 360, height: 740 },
  colorScheme: told.scheme, acceptDownloads: true });
const page = await context.newPage();
const faults = [];
page.on("pageerror", (error) => faults.push(String(error)));
page.on("console", (line) => { if (line.type() === "error") faults.push(line.text()); });
page.on("dialog", () => faults.push("a script of somebody else's ran"));
const look = async (name) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })).violations.map((one) =>
      `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" ")}`));
  assert.deepEqual(found, [], name);
  if (told.pictures) await page.screenshot({ path: `${told.pictures}/${name}.png` });
};
const tabTo = async (reached, what) => {
  for (let steps = 0; steps < 60; steps++) {
    if (await page.evaluate(reached)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`the keyboard does not reach ${what}`);
};
await enter(page, told.link);
await page.goto("/chat");
await page.waitForSelector("#live.on");
await tabTo(() => document.activeElement.textContent === "New conversation", "the button");
await page.keyboard.press("Enter");
await page.waitForSelector("#composer");
await page.waitForSelector("#live.on");
await tabTo(() => document.activeElement.id === "text", "the field");
await page.keyboard.type("What is in the <b>workspace</b>?");
await page.keyboard.press("Control+Enter");
// Taken, and the field is free again, without leaving the page.
await page.waitForSelector("#messages li.mine");
await page.waitForFunction(() => document.getElementById("text").value === "");
assert.ok((await page.textContent("#messages li.mine")).includes("<b>workspace</b>"));
await page.waitForFunction(() => document.querySelector("#messages li.theirs")?.textContent.includes("begins to answer"));
assert.ok(!(await page.textContent("#messages")).includes("three files"), "it still grows");
await look(`chat-growing-360-${told.scheme}`);
require("fs").writeFileSync(told.seen, "");
await page.waitForFunction(() => document.querySelector("#messages").textContent.includes("three files"));
assert.equal(await page.locator("#messages li.theirs").count(), 1, "one answer that grew");
await page.setInputFiles("#files", { name: "<img src=x onerror=alert(1)>.txt", mimeType: "text/plain",
  buffer: Buffer.from("a note from the phone") });
await page.fill("#text", "do it");
await page.click("#composer button[type=submit]");
await page.waitForSelector("#messages li.mine .files a");
await page.waitForSelector("#messages .buttons button");
await look(`chat-360-${told.scheme}`);
const [file] = await Promise.all([page.waitForEvent("download"), page.click("#messages li.mine .files a")]);
assert.equal(require("fs").readFileSync(await file.path(), "utf8"), "a note from the phone");
await page.click("#messages .buttons button >> nth=0");
await page.waitForFunction(() => document.querySelector("#messages").textContent.includes("it is done"));
await page.setViewportSize({ width: 1280, height: 900 });
await look(`chat-1280-${told.scheme}`);
assert.deepEqual(faults, []);
const cookies = await context.cookies();
await context.close();

const plain = await browser.newContext({ javaScriptEnabled: false, baseURL: told.base });
await plain.addCookies(cookies);
const bare = await plain.newPage();
await bare.goto("/chat");
assert.ok((await bare.textContent("#messages")).includes("it is done"));
await bare.fill("#text", "and without a script");
await bare.click("#composer button[type=submit]");
await bare.waitForURL("**/chat?c=*");
assert.ok((await bare.textContent("#messages")).includes("and without a script"));
for (let tries = 0; !(await bare.textContent("#messages")).includes("plainly answered"); tries++) {
  assert.ok(tries < 200);
  await bare.waitForTimeout(50);
  await bare.click("text=Load again");
}
await plain.close();
"##;

pub(super) async fn scripts(test: &str) -> Option<BrowserScripts> {
    match BrowserScripts::install().await {
        Ok(scripts) => Some(scripts),
        Err(why) => {
            eprintln!("SKIP: {test}: {why}");
            None
        }
    }
}

pub(super) fn base(lab: &Lab) -> String {
    format!("http://{}", lab.health())
}

pub(super) fn whole_link(lab: &Lab, name: &str) -> String {
    format!("{}{}", base(lab), link(lab, DashboardRole::Operator, name))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_whole_at_every_width_and_keeps_nobody_out() {
    let Some(scripts) = scripts("every_page_is_whole_at_every_width_and_keeps_nobody_out").await
    else {
        return;
    };
    let deed = Deed::new();
    let script = [
        calls_terminal("ls -la && echo 'three files'"),
        Reply::streams(&[
            "There are three files in the workspace: a report, its figures and a note.",
        ]),
        Reply::streams(&["Hello Alice."]),
        calls_terminal(&deed.command()),
    ];
    let lab = approvals::lab(script, "").await;
    lab.ask(
        BOB,
        "What is in the workspace? Please list the files, and say what each of them is for.",
    )
    .await;
    lab.ask(ALICE, "hello").await;
    lab.ask_through(BOB, "now make the report readable for everybody", ALICE)
        .await;
    let told = json!({
        "base": base(&lab),
        "links": {
            "light": whole_link(&lab, "ada"),
            "dark": whole_link(&lab, "ada"),
            "bare": whole_link(&lab, "ada"),
        },
        "pictures": std::env::var("HERMETIC_PICTURES").ok(),
    });
    let walked = scripts.run(&format!("{ENTER}{WALK}"), &told).await;
    walked.unwrap_or_else(|why| panic!("{why}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_browsers_see_one_truth_and_a_keyboard_is_enough() {
    let Some(scripts) = scripts("two_browsers_see_one_truth_and_a_keyboard_is_enough").await else {
        return;
    };
    let deed = Deed::new();
    let script = [
        calls_terminal(&deed.command()),
        Reply::streams(&["it is done"]),
    ];
    let lab = approvals::lab(script, "").await;
    let question = lab.ask_through(BOB, "do it", ALICE).await;
    let told = json!({
        "base": base(&lab),
        "links": [whole_link(&lab, "ada"), whole_link(&lab, "eve")],
        "id": approvals::name(&question),
    });
    let seen = scripts.run(&format!("{ENTER}{TWO}"), &told).await;
    seen.unwrap_or_else(|why| panic!("{why}"));
    while deed.times() == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(deed.times(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_chats_by_touch_by_keyboard_and_without_a_script() {
    let Some(scripts) = scripts("a_phone_chats_by_touch_by_keyboard_and_without_a_script").await
    else {
        return;
    };
    for scheme in ["light", "dark"] {
        let (deed, gate) = (Deed::new(), Arc::new(Notify::new()));
        let script = [
            Reply::streams_through(
                &gate,
                &["It begins to answer with enough words to be **shown** while it grows."],
                &["\n\nThere are three files:\n\n- `report.md`\n- `figures.csv`\n- a note"],
            ),
            calls_terminal(&deed.command()),
            Reply::streams(&["it is done"]),
            Reply::streams(&["plainly answered"]),
        ];
        let lab = approvals::lab(script, "").await;
        let folder = tempfile::tempdir().unwrap();
        let has_seen = folder.path().join("seen");
        let told = json!({
            "base": base(&lab),
            "link": whole_link(&lab, "ada"),
            "seen": has_seen,
            "scheme": scheme,
            "pictures": std::env::var("HERMETIC_PICTURES").ok(),
        });
        // The answer goes on when the browser has seen its beginning.
        let release = async {
            while !has_seen.exists() {
                sleep(Duration::from_millis(20)).await;
            }
            gate.notify_one();
            std::future::pending::<()>().await;
        };
        let chat = format!("{ENTER}{CHAT}");
        let seen = tokio::select! {
            seen = scripts.run(&chat, &told) => seen,
            () = release => unreachable!("it never ends"),
        };
        seen.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(deed.times(), 1);
    }
}
