//! A terminal in the browser: who gets one, what it does, and how it ends.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hermetic_dashboard::DashboardRole;
use hermetic_testkit::npm::BrowserScripts;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::browser::ENTER;
use super::visitor::{Visitor, link, token};
use crate::lab::{ALICE, Lab, has_sandboxes};

const ALICES: &str = "key=agent%3Amain%3Atelegram%3Adm%3A7";
const PAGE: &str = "/terminal?key=agent%3Amain%3Atelegram%3Adm%3A7";

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// An answer that goes on while the shell lives.
struct OpenTerminal {
    stream: BufReader<TcpStream>,
    /// What is left of the chunk that is being read.
    chunk: usize,
    id: String,
    seen: String,
}

impl OpenTerminal {
    async fn open(visitor: &Visitor, csrf: &str) -> Self {
        let body = format!("csrf={csrf}&{ALICES}&columns=80&rows=24");
        let head = format!(
            "POST /terminal/open HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n",
            visitor.address
        );
        let mut stream = BufReader::new(visitor.open(&head, &body).await);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).await.unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let mut this = Self {
            stream,
            chunk: 0,
            id: String::new(),
            seen: String::new(),
        };
        let (kind, id) = this.frame().await.unwrap();
        assert_eq!(kind, b'o');
        this.id = String::from_utf8(id).unwrap();
        this
    }

    async fn byte(&mut self) -> Option<u8> {
        if self.chunk == 0 {
            let mut line = String::new();
            while line.trim().is_empty() {
                line.clear();
                if self.stream.read_line(&mut line).await.unwrap() == 0 {
                    return None;
                }
            }
            self.chunk = usize::from_str_radix(line.trim(), 16).unwrap();
            if self.chunk == 0 {
                return None;
            }
        }
        self.chunk -= 1;
        self.stream.read_u8().await.ok()
    }

    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let kind = self.byte().await?;
        let mut length = 0_usize;
        for _ in 0..4 {
            length = (length << 8) | usize::from(self.byte().await?);
        }
        let mut payload = Vec::new();
        for _ in 0..length {
            payload.push(self.byte().await?);
        }
        Some((kind, payload))
    }

    /// Reads on until the shell has written this.
    async fn until(&mut self, text: &str) {
        let reading = async {
            while !self.seen.contains(text) {
                let (kind, payload) = self.frame().await.expect("it goes on");
                assert!(matches!(kind, b'd' | b'p'), "{}", self.seen);
                self.seen.push_str(&String::from_utf8_lossy(&payload));
            }
        };
        let read = timeout(LONG, reading).await;
        assert!(read.is_ok(), "{text:?} never came: {}", self.seen);
    }

    /// Reads on to its end, and gives back why it is over.
    async fn end(&mut self) -> Option<String> {
        let reading = async {
            loop {
                match self.frame().await {
                    Some((b'e', why)) => return Some(String::from_utf8(why).unwrap()),
                    Some(_) => {}
                    None => return None,
                }
            }
        };
        timeout(LONG, reading).await.expect("it ends")
    }

    fn typing(&self, csrf: &str, text: &str) -> String {
        typing(&self.id, csrf, text)
    }
}

/// The form that types this into that terminal.
fn typing(id: &str, csrf: &str, text: &str) -> String {
    let keys = URL_SAFE_NO_PAD.encode(text);
    format!("csrf={csrf}&id={id}&keys={keys}")
}

async fn sandboxed() -> Lab {
    let lab = Lab::builder().configured_backends().start().await;
    let said = lab.ask(ALICE, "/sh echo begun > here; echo begun").await;
    assert_eq!(said.trim(), "begun");
    lab
}

#[tokio::test]
async fn an_operator_types_into_a_sandbox_and_the_record_says_who_and_where() {
    if !has_sandboxes("an_operator_types_into_a_sandbox_and_the_record_says_who_and_where").await {
        return;
    }
    let lab = sandboxed().await;
    let ada = Visitor::operator(&lab).await;
    let csrf = ada.get(PAGE).await.csrf();
    let mut terminal = OpenTerminal::open(&ada, &csrf).await;
    let id = terminal.id.clone();
    let press = |text: &str| {
        let form = typing(&id, &csrf, text);
        let ada = ada.clone();
        async move { assert_eq!(ada.post("/terminal/keys", &form).await.status, 204) }
    };
    press("stty size; test -t 0 && echo a-$((6*7))-terminal; cat here; echo $TERM\r").await;
    terminal.until("xterm-256color").await;
    for wanted in ["24 80", "a-42-terminal", "begun"] {
        assert!(terminal.seen.contains(wanted), "{}", terminal.seen);
    }
    let size = format!("csrf={csrf}&id={}&columns=101&rows=31", terminal.id);
    assert_eq!(ada.post("/terminal/resize", &size).await.status, 204);
    press("until stty size | grep -q '31 101'; do :; done; echo re-$((1+1))-sized\r").await;
    terminal.until("re-2-sized").await;
    press("exit 3\r").await;
    assert_eq!(terminal.end().await.unwrap(), "The shell ended with 3.");
    let late = ada
        .post("/terminal/keys", &terminal.typing(&csrf, "x"))
        .await;
    assert_eq!(late.status, 404);
    while !lab.audit("dashboard").contains("close_terminal") {
        sleep(Duration::from_millis(10)).await;
    }
    let store = lab.store().await;
    let key = hermetic_types::ConversationKey::new("agent:main:telegram:dm:7");
    let sandbox = store.ledger().of(&key).await.unwrap().unwrap().id;
    let noted = lab.audit("dashboard");
    for wanted in [
        format!("\"what\":\"{key} {sandbox}\""),
        format!("\"what\":\"{key} {sandbox} exited\""),
        "\"act\":\"open_terminal\"".to_owned(),
        "\"by\":\"dashboard:ada\"".to_owned(),
    ] {
        assert!(noted.contains(&wanted), "{wanted}: {noted}");
    }
    assert!(
        !noted.contains("re-$((1+1))-sized"),
        "what was typed is nobody's business"
    );
}

#[tokio::test]
async fn whoever_leaves_or_is_put_out_takes_the_shell_along() {
    if !has_sandboxes("whoever_leaves_or_is_put_out_takes_the_shell_along").await {
        return;
    }
    let lab = sandboxed().await;
    let ada = Visitor::operator(&lab).await;
    let csrf = ada.get(PAGE).await.csrf();
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(OpenTerminal::open(&ada, &csrf).await);
    }
    let fifth = format!("csrf={csrf}&{ALICES}&columns=80&rows=24");
    let refused = ada.post("/terminal/open", &fifth).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    let mut first = open.remove(0);
    let keys = first.typing(&csrf, "exec -a left-behind sleep 3600\r");
    assert_eq!(ada.post("/terminal/keys", &keys).await.status, 204);
    let count = "/sh echo $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'left-[b]ehind' | wc -l)";
    while lab.ask(ALICE, count).await.trim() != "1" {}
    first.until("left-behind").await;
    // The browser goes away without a word.
    drop(first);
    while lab.ask(ALICE, count).await.trim() != "0" {}
    open.push(OpenTerminal::open(&ada, &csrf).await);
    // What is open ends with a word, whoever ends it.
    let mut second = open.remove(0);
    let close = format!("csrf={csrf}&id={}", second.id);
    assert_eq!(ada.post("/terminal/close", &close).await.status, 204);
    assert_eq!(second.end().await.unwrap(), "Closed.");
    let mut third = open.remove(0);
    lab.destroy(ALICE).await;
    assert_eq!(third.end().await.unwrap(), "The sandbox ended.");
    drop(open);
    while lab.audit("dashboard").matches("close_terminal").count() < 5 {
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn nobody_but_an_operator_on_their_own_page_gets_a_terminal() {
    let lab = Lab::builder().start().await;
    lab.ask(ALICE, "/sh echo hello").await;
    let ada = Visitor::operator(&lab).await;
    let csrf = ada.get(PAGE).await.csrf();
    let form = format!("{ALICES}&columns=80&rows=24");
    let good = format!("csrf={csrf}&{form}");
    let stranger = Visitor::stranger(&lab);
    assert_eq!(stranger.get(PAGE).await.status, 401);
    assert_eq!(stranger.post("/terminal/open", &form).await.status, 401);
    let eve = Visitor::entered(&lab, DashboardRole::Viewer, "eve").await;
    assert_eq!(eve.get(PAGE).await.status, 403);
    assert!(!eve.get("/sandboxes").await.body.contains("/terminal?"));
    assert_eq!(eve.act("/", "/terminal/open", &form).await.status, 403);
    let host = format!("Origin: http://{}\r\n", ada.address);
    for (origin, form) in [
        ("", good.as_str()),
        ("Origin: null\r\n", &good),
        ("Origin: http://evil.example\r\n", &good),
        (&host, &form),
        (&host, &format!("csrf=x&{form}")),
    ] {
        let refused = ada.post_from("/terminal/open", form, origin).await;
        assert_eq!(refused.status, 403, "{origin} {form}");
    }
    let bearer = format!(
        "Authorization: Bearer {}\r\n",
        token(&lab, DashboardRole::Operator)
    );
    for path in ["/terminal/open", "/api/v1/terminal/open"] {
        let refused = stranger.post_from(path, &form, &bearer).await;
        assert!(matches!(refused.status, 401 | 404), "{path}: {refused:?}");
    }
    let unknown = format!("csrf={csrf}&key=nobody&columns=80&rows=24");
    assert_eq!(ada.post("/terminal/open", &unknown).await.status, 404);
    for form in ["id=x&keys=YQ", "id=&keys=YQ"] {
        let keys = format!("csrf={csrf}&{form}");
        assert_eq!(ada.post("/terminal/keys", &keys).await.status, 404);
    }
    assert!(!lab.audit("dashboard").contains("open_terminal"));
    assert!(ada.get("/sandboxes").await.body.contains("/terminal?"));
    assert!(ada.get(PAGE).await.body.contains("hermetic sandbox exec "));
}

#[tokio::test]
async fn a_machine_that_is_no_sandbox_gives_no_shell_to_a_browser() {
    let host = "terminal: {backend: local}\ngateway: {terminal_backend: local}\n";
    let lab = Lab::builder().config(host).start().await;
    lab.ask(ALICE, "/sh echo hello").await;
    let ada = Visitor::operator(&lab).await;
    let form = format!("{ALICES}&columns=80&rows=24");
    let refused = ada.act("/", "/terminal/open", &form).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("hermetic sandbox exec"));
}

#[tokio::test]
async fn one_persons_terminal_is_not_anothers() {
    if !has_sandboxes("one_persons_terminal_is_not_anothers").await {
        return;
    }
    let lab = sandboxed().await;
    let ada = Visitor::operator(&lab).await;
    let terminal = OpenTerminal::open(&ada, &ada.get(PAGE).await.csrf()).await;
    let bob = Visitor::entered(&lab, DashboardRole::Operator, "bob").await;
    let bobs = bob.get(PAGE).await.csrf();
    for (path, form) in [
        ("/terminal/keys", terminal.typing(&bobs, "id\r")),
        (
            "/terminal/resize",
            format!("csrf={bobs}&id={}&columns=9&rows=9", terminal.id),
        ),
        ("/terminal/close", format!("csrf={bobs}&id={}", terminal.id)),
    ] {
        assert_eq!(bob.post(path, &form).await.status, 404, "{path}");
    }
    let csrf = ada.get(PAGE).await.csrf();
    let long = terminal.typing(&csrf, &"x".repeat(8193));
    assert_eq!(ada.post("/terminal/keys", &long).await.status, 400);
    let wrong = format!("csrf={csrf}&id={}&keys=%2A", terminal.id);
    assert_eq!(ada.post("/terminal/keys", &wrong).await.status, 400);
}

/// Types, reads, resizes, leaves by keyboard, on a telephone too; and what a sandbox writes only draws.
const TERMINAL: &str = r##"
const context = await browser.newContext({ baseURL: told.base, viewport: { width: 1280, height: 900 },
  permissions: ["clipboard-read", "clipboard-write"] });
const page = await context.newPage();
const faults = [];
page.on("pageerror", (error) => faults.push(String(error)));
page.on("console", (line) => { if (line.type() === "error") faults.push(line.text()); });
page.on("dialog", () => faults.push("a script of somebody else's ran"));
page.on("popup", () => faults.push("a window opened"));
const look = async (name) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name}: ${wide} pixels too wide`);
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })).violations.map((one) =>
      `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" ")}`));
  assert.equal(found.join("\n"), "", name);
  if (told.pictures) await page.screenshot({ path: `${told.pictures}/${name}.png` });
};
const rows = () => page.evaluate(() => [...document.querySelectorAll("#terminal-grid div")].map((row) => row.textContent.trimEnd()));
const shows = (text) => page.waitForFunction((wanted) =>
  [...document.querySelectorAll("#terminal-grid div")].some((row) => row.textContent.includes(wanted)), text);
const line = async (text) => { await page.keyboard.type(text); await page.keyboard.press("Enter"); };

await enter(page, told.link);
await page.goto("/sandboxes");
await page.click("text=Terminal");
await page.waitForFunction(() => document.getElementById("terminal-state").textContent === "Open.");
assert.equal(await page.evaluate(() => document.activeElement.id), "terminal-keys");
await line("PS1='> '; clear; stty size; echo six-$((2*3))");
await shows("six-6");
const [before] = (await rows()).filter((row) => /^\d+ \d+$/.test(row));
// Keys that are no letters: a line is begun, taken back, and another one edited with arrows.
await page.keyboard.type("nonsense");
await page.keyboard.press("Control+u");
await page.keyboard.type("eho arrows-$((4+5))");
for (let steps = 0; steps < 18; steps++) await page.keyboard.press("ArrowLeft");
await page.keyboard.type("c");
await page.keyboard.press("Enter");
await shows("arrows-9");
// Not before it runs: a shell that is still reading its line has nothing to interrupt.
await line("echo slee-$((2+2))ping; sleep 3600");
await shows("slee-4ping");
await page.keyboard.press("Control+c");
await line("echo back-$((1+1))");
await shows("back-2");
// Colours, and a program that takes the whole screen.
await line(`printf '\\e[31mred\\e[0m \\e[1;38;5;214mamber\\e[0m \\e[44;97mblue\\e[0m \\u8868\\u793a e\\u0301 \\e(0qqq\\e(B\\n'; echo col-$((3+3))ours`);
await shows("col-6ours");
assert.equal(await page.evaluate(() => [...document.querySelectorAll("#terminal-grid .fg-1")].some((one) => one.textContent === "red")), true);
assert.ok((await rows()).some((row) => row.includes("───")), "lines are drawn");
await look("terminal-1280");
await line("printf '\\e[?1049h\\e[2J\\e[5;10Hwhole-%s' screen");
await shows("whole-screen");
assert.ok(!(await rows()).some((row) => row.includes("six-6")));
await line("printf '\\e[?1049l'");
await shows("six-6");

// What is inside may draw, and nothing else.
const title = await page.title();
await page.evaluate(() => navigator.clipboard.writeText("mine"));
await page.focus("#terminal-keys");
await line("clear; " + [
  "printf '\\e]0;<b>stolen title</b>\\a\\e]2;stolen\\e\\\\'",
  "printf '\\e]52;c;aGFja2Vk\\a\\e]8;;javascript:alert(1)\\e\\\\click-me\\e]8;;\\e\\\\'",
  "printf '\\eP+q544e\\e\\\\\\e_G...\\e\\\\\\e[21t\\e[0x\\e[?1000h\\e[?1004h\\005'",
  "printf '<img src=x onerror=alert(1)><script>alert(2)</script>\\n'",
  "printf '\\u202egnp.exe\\u202c\\n'; printf '\\e[999999999999;99999999999H\\e[99999b\\e[99999S\\e[99999L\\e[99999@\\e[3J'",
  "printf '\\e[1;1Hstill-%s' drawing",
].join("; "));
await shows("still-drawing");
await line("clear; echo alive-$((5+5))");
await shows("alive-10");
assert.equal(await page.title(), title);
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "mine");
assert.equal(await page.evaluate(() => document.querySelectorAll("#terminal a, #terminal img, #terminal script").length), 0);
assert.equal(await page.evaluate(() => document.querySelectorAll("#terminal-view [style*=url], #terminal-view iframe").length), 0);
// Far more than a screen: what is kept has a bound, and the page stays alive.
await line("clear; seq 1 30000; echo coun-$((7*7))ted");
await shows("coun-49ted");
assert.ok(await page.evaluate(() => document.querySelectorAll("#terminal-history div").length) <= 2000);
// A paste cannot press Enter by an escape, nor end itself.
await page.evaluate(() => navigator.clipboard.writeText("echo pas\x1b[201~ted-$((1+2))\x03"));
await page.focus("#terminal-keys");
await page.keyboard.press("Control+v");
await page.keyboard.press("Enter");
await shows("pas[201~ted-3");
// Said aloud for whoever does not see it.
await page.waitForFunction(() => document.getElementById("terminal-said").textContent.includes("ted-3")).catch(async () =>
  assert.fail("said: " + (await page.textContent("#terminal-said")).slice(-300)));
assert.ok(!(await page.isVisible("#terminal-again")));

// The keyboard leads out, and back in.
await page.keyboard.press("F6");
assert.equal(await page.evaluate(() => document.activeElement.id), "terminal-close");
await page.keyboard.press("Tab");
assert.equal(await page.evaluate(() => document.activeElement.id), "terminal-keys");
await page.setViewportSize({ width: 360, height: 740 });
await line("clear; until [ \"$(stty size)\" != '" + before + "' ]; do :; done; stty size; echo siz-$((8+8))ed");
await shows("siz-16ed");
const columns = Number((await rows()).find((row) => /^\d+ \d+$/.test(row)).split(" ")[1]);
assert.ok(columns >= 30 && columns < 60, `${columns} columns on a phone`);
await page.click("#terminal-control");
await page.keyboard.type("a");
await page.click("button[data-key=ArrowUp]");
await look("terminal-360");
await page.keyboard.press("Control+c");
await page.click("#terminal-close");
await page.waitForFunction(() => document.getElementById("terminal-state").textContent === "Closed.");
await page.click("#terminal-again");
await page.waitForFunction(() => document.getElementById("terminal-state").textContent === "Open.");
await page.focus("#terminal-keys");
await line("exit");
await page.waitForFunction(() => document.getElementById("terminal-state").textContent.startsWith("The shell ended"));
assert.deepEqual(faults, []);

const plain = await browser.newContext({ javaScriptEnabled: false, baseURL: told.base });
await plain.addCookies(await context.cookies());
const bare = await plain.newPage();
await bare.goto(told.page);
assert.ok((await bare.textContent("main")).includes("hermetic sandbox exec"));
assert.ok(!(await bare.isVisible("#terminal")));
await plain.close();
"##;

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_in_a_browser_is_typed_into_and_only_draws() {
    let test = "a_terminal_in_a_browser_is_typed_into_and_only_draws";
    let scripts = match BrowserScripts::install().await {
        Ok(scripts) => scripts,
        Err(why) => {
            eprintln!("SKIP: {test}: {why}");
            return;
        }
    };
    if !has_sandboxes(test).await {
        return;
    }
    let lab = sandboxed().await;
    let base = format!("http://{}", lab.health());
    let told = json!({
        "base": base,
        "link": format!("{base}{}", link(&lab, DashboardRole::Operator, "ada")),
        "page": PAGE,
        "pictures": std::env::var("HERMETIC_PICTURES").ok(),
    });
    let seen = scripts.run(&format!("{ENTER}{TERMINAL}"), &told).await;
    seen.unwrap_or_else(|why| panic!("{why}"));
}
