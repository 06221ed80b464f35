//! What happens while it happens, in a real browser: output that grows, and what a sandbox uses.
//!
//! With `HERMETIC_PICTURES=<folder>` each look is also drawn there.

use std::time::Duration;

use hermetic_testkit::model::Reply;
use serde_json::json;
use tokio::time::sleep;

use super::browser::{ENTER, base, scripts, whole_link};
use super::live::{CommandGate, sandbox_of, working};
use crate::lab::{ALICE, Lab, calls_terminal};

/// Looks on without doing anything: figures change, lines come, and nothing else moves.
const LOOKS_ON: &str = r##"
const fs = require("fs");
const keys = encodeURIComponent("agent:main:telegram:dm:7");
const paths = [["sandboxes-live", "/sandboxes"], ["sandbox-live", "/sandbox?id=" + told.sandbox],
  ["conversation-live", "/conversation?key=" + keys], ["overview-live", "/"]];
const contexts = [];
for (const [colorScheme, width] of [["light", 1280], ["dark", 360]]) {
  const context = await browser.newContext({ colorScheme, baseURL: told.base, viewport: { width, height: 900 } });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (line) => { if (line.type() === "error") faults.push(line.text()); });
  await enter(page, told.links[colorScheme]);
  contexts.push({ colorScheme, width, context, page, faults });
}
for (const one of contexts) {
  const { page, colorScheme, width } = one;
  for (const [name, path] of paths) {
    await page.goto(path);
    await page.waitForSelector("#live.on");
    if (path.startsWith("/sandbox")) {
      // Two looks make a course, and a later one changes it, without a word from the person.
      await page.waitForSelector("svg.spark polyline");
      await page.evaluate(() => {
        globalThis.shifted = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) globalThis.shifted += entry.value;
        }).observe({ type: "layout-shift" });
        globalThis.before = document.querySelector("svg.spark polyline").getAttribute("points");
      });
      await page.waitForFunction(() =>
        document.querySelector("svg.spark polyline").getAttribute("points") !== globalThis.before);
      assert.equal(await page.evaluate(() => globalThis.shifted), 0, `${name} moves`);
    } else {
      await page.waitForFunction(() => document.querySelector(".tail")?.textContent.includes("line "));
      const seen = await page.evaluate(() => {
        globalThis.shifted = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) globalThis.shifted += entry.value;
        }).observe({ type: "layout-shift" });
        const lines = document.querySelector(".tail").textContent.match(/line \d+/g);
        return lines[lines.length - 1];
      });
      await page.waitForFunction((seen) => {
        const lines = document.querySelector(".tail").textContent.match(/line \d+/g);
        return lines && lines[lines.length - 1] !== seen;
      }, seen);
      assert.equal(await page.evaluate(() => globalThis.shifted), 0, `${name} moves`);
      // The newest line is in sight.
      const below = await page.evaluate(() => {
        const box = document.querySelector(".tail");
        return Math.abs(box.scrollTop);
      });
      assert.ok(below <= 1, `${name}: the end of the output is not in sight`);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${name} at ${width}: ${wide} pixels too wide`);
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })).violations.map((one) =>
        `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" ")}`));
    assert.deepEqual(found, [], `${name} at ${width}, ${colorScheme}`);
    if (told.pictures) {
      await page.screenshot({ path: `${told.pictures}/${name}-${width}-${colorScheme}.png`, fullPage: true });
    }
  }
  assert.equal(await page.evaluate(() => document.querySelectorAll("script:not([src])").length), 0);
  assert.deepEqual(one.faults, []);
}
// The call ends, and its page says so by itself.
const { page } = contexts[0];
await page.goto("/conversation?key=" + keys);
await page.waitForSelector(".tail");
fs.writeFileSync(told.ends, "");
await page.waitForSelector(".tail", { state: "detached" });
await page.waitForFunction(() => document.querySelector("#timeline").textContent.includes("all is built"));
// The sandbox is destroyed from the table, by keyboard and without a script; the other page sees it go.
const [table, phone] = contexts;
await table.page.goto("/sandboxes");
await table.page.waitForSelector("#live.on");
await table.page.waitForSelector("#sandboxes table");
const plain = await browser.newContext({ javaScriptEnabled: false, baseURL: told.base, viewport: { width: 360, height: 740 } });
await plain.addCookies(await phone.context.cookies());
const bare = await plain.newPage();
await bare.goto("/sandboxes");
await bare.click("text=Destroy…");
await bare.waitForURL("**/sandbox?id=*");
assert.ok(!(await bare.isVisible("text=Destroy sandbox and files")), "asked first");
await bare.focus("#destroy-act summary");
await bare.keyboard.press("Enter");
await bare.waitForSelector("#destroy-act[open]");
if (told.pictures) await bare.screenshot({ path: `${told.pictures}/sandbox-destroy-360.png`, fullPage: true });
await bare.keyboard.press("Tab");
await bare.keyboard.press("Enter");
await bare.waitForURL("**/sandboxes");
assert.ok((await bare.textContent("#sandboxes")).includes("There is no sandbox."));
await table.page.waitForFunction(() => document.querySelector("#sandboxes").textContent.includes("There is no sandbox."));
await plain.close();
for (const one of contexts) await one.context.close();
"##;

#[tokio::test(flavor = "multi_thread")]
async fn output_and_use_are_seen_as_they_change_and_nothing_else_moves() {
    let Some(scripts) =
        scripts("output_and_use_are_seen_as_they_change_and_nothing_else_moves").await
    else {
        return;
    };
    let gate = CommandGate::new();
    let command = format!(
        "n=0; while [ ! -e {} ]; do n=$((n+1)); echo \"line $n: compiling one more of the modules\"; \
         sleep 0.3; done",
        gate.path().display()
    );
    let script = [calls_terminal(&command), Reply::streams(&["all is built"])];
    let lab = Lab::builder().script(script).start().await;
    lab.says(ALICE, "Build it, please.");
    let id = sandbox_of(&lab).await;
    lab.backend().uses(&id, 1_700_000_000);
    let told = json!({
        "base": base(&lab),
        "links": { "light": whole_link(&lab, "ada"), "dark": whole_link(&lab, "ada") },
        "sandbox": id,
        "ends": gate.path(),
        "pictures": std::env::var("HERMETIC_PICTURES").ok(),
    });
    let work = async {
        for step in 1_u64.. {
            let (uses, processes) = working(step);
            lab.backend().works(&id, uses, processes);
            lab.clock().advance(Duration::from_secs(1));
            sleep(Duration::from_secs(1)).await;
        }
    };
    let looks_on = format!("{ENTER}{LOOKS_ON}");
    let seen = tokio::select! {
        seen = scripts.run(&looks_on, &told) => seen,
        () = work => unreachable!("it never ends"),
    };
    seen.unwrap_or_else(|why| panic!("{why}"));
}
