//! What the gateway costs beyond the model's own time, with the real program against stand-ins of
//! Telegram and of a model on loopback.
//!
//! `cargo bench -p hermetic --bench gateway`; with names behind `--`, only those parts (`starts`, `turns`,
//! `piece`, `throughput`, `at-once`, `summary`, `memory`, `dashboard`)
//!
//! The peer in the same run is the bare minimum of a turn: the very same requests to the model's
//! stand-in and one to Telegram's, from a client without a gateway.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermetic_testkit::model::{Piece, Reply, ScriptedServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Notify;

type Done<T> = Result<T, Box<dyn Error>>;

const STARTS: usize = 11;
const TURNS: usize = 200;
const PIECES: usize = 30;
const USERS: i64 = 50;
const EACH: usize = 20;
const AT_ONCE: usize = 1000;
/// Who says as much as everybody else.
const FLOODS: i64 = 99;
/// Names another build of the program, to be measured instead of the one that was built with this.
const PROGRAM: &str = "HERMETIC_BENCH_PROGRAM";

#[tokio::main]
async fn main() -> Done<()> {
    if !Command::new(program())
        .args(["doctor", "--backend", "native"])
        .stdout(Stdio::null())
        .status()?
        .success()
    {
        println!("SKIP: no native sandbox can be had here");
        return Ok(());
    }
    // Cargo hands over `--bench` besides what was asked for.
    let mut wanted: Vec<_> = std::env::args().skip(1).collect();
    wanted.retain(|word| !word.starts_with("--"));
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|word| word == part);
    if is_wanted("starts") {
        starts().await?;
    }
    if is_wanted("turns") {
        turns("a turn without tools", || vec![says()]).await?;
        turns("a turn with one native tool call", || vec![calls(), says()]).await?;
    }
    if is_wanted("piece") {
        first_piece().await?;
    }
    if is_wanted("throughput") {
        throughput().await?;
    }
    if is_wanted("at-once") {
        at_once().await?;
    }
    if is_wanted("summary") {
        while_another_is_summarised().await?;
    }
    if is_wanted("memory") {
        memory().await?;
    }
    if is_wanted("dashboard") {
        looked_at().await?;
    }
    Ok(())
}

/// From exec to ready, the first start of a home apart from the later ones.
async fn starts() -> Done<()> {
    let mut first = Vec::new();
    let mut later = Vec::new();
    // Kept to the end: ext4 hands out inodes slowly for a while after others were deleted, and a new
    // home is not made where another was removed a moment ago.
    let mut homes = Vec::new();
    for _ in 0..STARTS {
        let stage = Stage::new([]).await?;
        first.push(stage.start()?.1);
        later.push(stage.start()?.1);
        homes.push(stage);
    }
    println!("ready after exec, a new home: {:?}", median(first));
    println!("ready after exec, a home in use: {:?}", median(later));
    Ok(())
}

/// The same requests, byte by byte as long as those the gateway sent, without a gateway.
async fn floor(asked: Vec<Vec<u8>>, script: fn() -> Vec<Reply>) -> Done<Duration> {
    let stage = Stage::new((0..=TURNS).flat_map(|_| script())).await?;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut times = Vec::new();
    for turn in asked.chunks(script().len()) {
        let bodies = turn.to_vec();
        let begun = Instant::now();
        for body in bodies {
            let asked = client
                .post(format!("{}/chat/completions", stage.model.base_url()))
                .header("content-type", "application/json")
                .body(body);
            asked.send().await?.bytes().await?;
        }
        let sent = client
            .post(format!("{}/bot{TOKEN}/sendMessage", stage.telegram.url()))
            .json(&json!({"chat_id": 7, "text": "hi"}));
        sent.send().await?.bytes().await?;
        times.push(begun.elapsed());
    }
    Ok(median(times))
}

async fn turns(what: &str, script: fn() -> Vec<Reply>) -> Done<()> {
    let stage = Stage::new((0..=TURNS).flat_map(|_| script())).await?;
    let (gateway, _) = stage.start()?;
    // The first one makes the sandbox.
    stage.ask(7, 1).await;
    let mut times = Vec::new();
    let worked = processor_time(&gateway)?;
    for turn in 0..TURNS {
        let begun = Instant::now();
        stage.ask(7, turn + 2).await;
        times.push(begun.elapsed());
    }
    let whole = median(times);
    let worked = (processor_time(&gateway)? - worked) / u32::try_from(TURNS)?;
    let asked = stage.model.received();
    let asked = asked
        .iter()
        .map(|asked| asked.body.to_string().into_bytes());
    let floor = floor(asked.collect(), script).await?;
    println!(
        "{what}: {whole:?}, of which the stand-ins {floor:?}: {:?} beyond them ({:.1} times the peer); the gateway \
         worked {worked:?}",
        whole.saturating_sub(floor),
        whole.as_secs_f64() / floor.as_secs_f64()
    );
    Ok(())
}

/// From the moment at which the model lets the first piece of an answer go to the message that shows it.
async fn first_piece() -> Done<()> {
    let event = |event: serde_json::Value| Piece::Bytes(format!("data: {event}\n\n").into());
    let says = |text: &str| event(json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
    let gates: Vec<_> = (0..PIECES)
        .map(|_| [(); 2].map(|()| Arc::new(Notify::new())))
        .collect();
    let replies = gates.iter().map(|[first, rest]| {
        Reply::events([])
            .then(Piece::Gate(Arc::clone(first)))
            .then(says(
                "the first piece of an answer that is long enough to be shown",
            ))
            .then(Piece::Gate(Arc::clone(rest)))
            .then(says(", and the rest of it"))
            .then(event(
                json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            ))
            .then(Piece::Bytes("data: [DONE]\n\n".into()))
    });
    let stage = Stage::new(replies).await?;
    let (_gateway, _) = stage.start()?;
    let mut times = Vec::new();
    for (turn, [first, rest]) in gates.iter().enumerate() {
        stage.telegram.says(7, "hello");
        stage.model.wait_for(turn + 1).await;
        let begun = Instant::now();
        first.notify_one();
        stage.telegram.wait_for("sendMessage", turn + 1).await;
        times.push(begun.elapsed());
        rest.notify_one();
        // The rest comes into the same message.
        stage.telegram.wait_for("editMessageText", turn + 1).await;
    }
    println!(
        "the first piece of an answer, passed on: {:?}",
        median(times)
    );
    Ok(())
}

async fn throughput() -> Done<()> {
    let all = usize::try_from(USERS)? * EACH;
    let stage = Stage::new((0..all).map(|_| says())).await?;
    let (gateway, _) = stage.start()?;
    let worked = processor_time(&gateway)?;
    let begun = Instant::now();
    for round in 0..EACH {
        for user in 0..USERS {
            stage.telegram.says(100 + user, &format!("hello {round}"));
        }
    }
    stage.telegram.wait_for("sendMessage", all).await;
    let rate = all as f64 / begun.elapsed().as_secs_f64();
    let worked = (processor_time(&gateway)? - worked) / u32::try_from(all)?;
    println!(
        "{USERS} chats at once, {all} turns: {rate:.0} turns a second; the gateway worked {worked:?} for each"
    );
    Ok(())
}

/// A turn of everybody's at the same moment: the model answers none before all have asked. One person says as
/// much as all others together, before them.
async fn at_once() -> Done<()> {
    let gates: Vec<_> = (0..2 * AT_ONCE).map(|_| Arc::new(Notify::new())).collect();
    let replies = gates
        .iter()
        .map(|gate| Reply::streams_through(gate, &[], &["an ", "answer"]));
    let stage = Stage::new(replies).await?;
    let (gateway, _) = stage.start()?;
    for number in 0..AT_ONCE {
        stage.telegram.says(FLOODS, &format!("and {number}"));
    }
    for user in 0..AT_ONCE {
        stage.telegram.says(1000 + i64::try_from(user)?, "hello");
    }
    // Each of the others, and those that one person may have at work.
    let asked = Instant::now();
    stage.model.wait_for(AT_ONCE + 1).await;
    let all_at_work = asked.elapsed();
    let at_work = stage.model.received().len();
    let now = resident(&gateway)?;
    let let_go = Instant::now();
    gates.iter().for_each(|gate| gate.notify_one());
    let mut others = Vec::new();
    while others.len() < AT_ONCE {
        let answered = stage.answered(|chat| chat != FLOODS);
        others.resize(answered, let_go.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let flood = stage.answered(|chat| chat == FLOODS);
    println!(
        "{AT_ONCE} people at once beside one who says {AT_ONCE} things: {at_work} turns at work after \
         {all_at_work:?}, {now} kB resident; after the model answered, half of the people had theirs in {:?}, \
         all in {:?} (by then {flood} of the one's); at most {} kB",
        others[AT_ONCE / 2],
        others[AT_ONCE - 1],
        peak(&gateway)?
    );
    Ok(())
}

/// Turns of one conversation, alone and while the summary of another is being written.
async fn while_another_is_summarised() -> Done<()> {
    let stage = Stage::with(ScriptedServer::answering(summarises_for_ever).await?).await?;
    fs::write(stage.home.path().join("models.txt"), "m 20000 - -\n")?;
    let (_gateway, _) = stage.start()?;
    let alone = own_turns(&stage, 7).await;
    let is_summarised = |stage: &Stage| {
        stage
            .model
            .received()
            .iter()
            .any(|asked| is_task(&asked.body))
    };
    let long = "long ago ".repeat(1300);
    while !is_summarised(&stage) {
        stage.telegram.says(8, &long);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let beside = own_turns(&stage, 7).await;
    println!(
        "a turn without tools, alone: {alone:?}; while another conversation is summarised: {beside:?}"
    );
    Ok(())
}

async fn own_turns(stage: &Stage, user: i64) -> Duration {
    let mut times = Vec::new();
    for _ in 0..TURNS / 4 {
        let answered = stage.answered(|chat| chat == user);
        let begun = Instant::now();
        stage.telegram.says(user, "hello");
        while stage.answered(|chat| chat == user) == answered {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        times.push(begun.elapsed());
    }
    median(times)
}

fn summarises_for_ever(asked: &serde_json::Value) -> Reply {
    match is_task(asked) {
        true => Reply::events([]).then(Piece::Stall),
        false => says(),
    }
}

fn is_task(asked: &serde_json::Value) -> bool {
    let system = asked["messages"][0]["content"].to_string();
    system.contains("You keep the notes of a conversation")
}

/// The first ones bring back the code that turns need, which is nobody's in particular; what a
/// conversation costs is told by those after them.
async fn memory() -> Done<()> {
    let half = 200;
    let stage = Stage::new((0..2 * half).map(|_| says())).await?;
    let (gateway, _) = stage.start()?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    println!("idle: {} kB resident", resident(&gateway)?);
    let mut held = Vec::new();
    for round in 0..2 {
        for user in 0..half {
            let user = 1000 + i64::try_from(round * half + user)?;
            stage.telegram.says(user, "hello");
        }
        let sent = (round + 1) * half;
        stage.telegram.wait_for("sendMessage", sent).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = resident(&gateway)?;
        println!("with {sent} idle conversations: {now} kB resident");
        held.push(now);
    }
    println!(
        "each idle conversation: {} kB",
        held[1].saturating_sub(held[0]) / half as u64
    );
    Ok(())
}

/// What it costs that somebody has the dashboard open: turns with and without, in turns, and memory. And what a
/// look of Prometheus takes.
async fn looked_at() -> Done<()> {
    const ROUNDS: usize = 8;
    let mut stage = Stage::new((0..=2 * TURNS).map(|_| says())).await?;
    // Not asked for twice: nobody else listens on loopback ports of this range meanwhile.
    let free = std::net::TcpListener::bind("127.0.0.1:0")?;
    stage.port = free.local_addr()?.port();
    drop(free);
    let (gateway, _) = stage.start()?;
    let browser = OpenBrowser::enter(&stage).await?;
    stage.ask(7, 1).await;
    let mut said = 1;
    let (mut alone, mut watched, mut resting) = (Vec::new(), Vec::new(), 0);
    for round in 0..2 * ROUNDS {
        let is_watched = round % 2 == 1;
        if round == 1 {
            resting = resident(&gateway)?;
        }
        let open = is_watched.then(|| tokio::spawn(browser.clone().watch()));
        for _ in 0..TURNS / ROUNDS {
            said += 1;
            let begun = Instant::now();
            stage.ask(7, said).await;
            let times = if is_watched { &mut watched } else { &mut alone };
            times.push(begun.elapsed());
        }
        if let Some(open) = open {
            open.abort();
        }
    }
    let added = resident(&gateway)?.saturating_sub(resting);
    let (alone, watched) = (median(alone), median(watched));
    println!(
        "a turn without tools: {alone:?}; with the overview open in a browser {watched:?}, {:.1} % more; \
         after it {added} kB more resident",
        100.0 * (watched.as_secs_f64() / alone.as_secs_f64() - 1.0)
    );
    let mut looks = Vec::new();
    for _ in 0..TURNS {
        let begun = Instant::now();
        browser.get("/metrics").await?;
        looks.push(begun.elapsed());
    }
    println!("/metrics: {:?}", median(looks));
    Ok(())
}

/// Somebody with a session, who does what the pages' script does.
#[derive(Clone)]
struct OpenBrowser {
    client: reqwest::Client,
    address: String,
    cookie: String,
}

impl OpenBrowser {
    async fn enter(stage: &Stage) -> Done<Self> {
        let mut asked = stage.command(&["dashboard", "link"]);
        let link = asked.stdout(Stdio::piped()).output()?;
        let link = String::from_utf8(link.stdout)?;
        let redirect = reqwest::redirect::Policy::none();
        let client = reqwest::Client::builder().no_proxy().redirect(redirect);
        let client = client.build()?;
        let entered = client.get(link.trim()).send().await?;
        let cookie = entered.headers().get("set-cookie");
        let cookie = cookie.ok_or("nobody was let in")?.to_str()?.split(';');
        Ok(Self {
            address: format!("http://127.0.0.1:{}", stage.port),
            cookie: cookie.take(1).collect(),
            client,
        })
    }

    async fn get(&self, path: &str) -> Done<usize> {
        let asked = self.client.get(format!("{}{path}", self.address));
        let answer = asked.header("cookie", &self.cookie).send().await?;
        Ok(answer.error_for_status()?.bytes().await?.len())
    }

    /// Fetches the page again whenever something is told, at most four times a second.
    async fn watch(self) -> Result<(), String> {
        let told = |error: Box<dyn Error>| error.to_string();
        self.get("/").await.map_err(told)?;
        let asked = self.client.get(format!("{}/events", self.address));
        let asked = asked.header("cookie", &self.cookie).send().await;
        let mut events = asked.map_err(|error| error.to_string())?;
        while let Ok(Some(_)) = events.chunk().await {
            self.get("/").await.map_err(told)?;
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(())
    }
}

struct Stage {
    telegram: TelegramServer,
    model: ScriptedServer,
    home: TempDir,
    /// The dashboard's; 0 for any.
    port: u16,
}

struct Gateway(Child);

fn program() -> OsString {
    std::env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_hermetic").into())
}

impl Stage {
    async fn new(script: impl IntoIterator<Item = Reply>) -> Done<Self> {
        Self::with(ScriptedServer::start(script).await?).await
    }

    async fn with(model: ScriptedServer) -> Done<Self> {
        let telegram = TelegramServer::start().await?;
        let home = tempfile::tempdir()?;
        let config = format!(
            "model: {{default: m, base_url: '{}'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n\
             display: {{busy_input_mode: queue}}\n",
            model.base_url(),
            telegram.url()
        );
        fs::write(home.path().join("config.yaml"), config)?;
        let env = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOW_ALL_USERS=true\n");
        let path = home.path().join(".env");
        fs::write(&path, env)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        Ok(Self {
            telegram,
            model,
            home,
            port: 0,
        })
    }

    fn start(&self) -> Done<(Gateway, Duration)> {
        let begun = Instant::now();
        let mut child = self
            .command(&["gateway", "run"])
            .stderr(Stdio::piped())
            .spawn()?;
        let said = child.stderr.take().ok_or("no stderr")?;
        let mut gateway = Gateway(child);
        let mut lines = BufReader::new(said);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if line.contains("ready") {
                let took = begun.elapsed();
                // Read on, or it would wait for us.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return Ok((gateway, took));
            }
            line.clear();
        }
        gateway.0.kill()?;
        Err("the gateway did not start".into())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env("HERMES_HOME", self.home.path())
            .env("HERMETIC_DASHBOARD_PORT", self.port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Replies so far in chats like this.
    fn answered(&self, wanted: impl Fn(i64) -> bool) -> usize {
        let calls = self.telegram.calls("sendMessage");
        let chats = calls
            .iter()
            .filter_map(|call| call.params["chat_id"].as_i64());
        chats.filter(|chat| wanted(*chat)).count()
    }

    /// Says something and waits until so many replies have come.
    async fn ask(&self, user: i64, replies: usize) {
        self.telegram.says(user, "hello");
        self.telegram.wait_for("sendMessage", replies).await;
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let listed = self
            .command(&["sandbox", "list", "--json"])
            .stdout(Stdio::piped())
            .output();
        let rows = listed
            .ok()
            .and_then(|listed| serde_json::from_slice(&listed.stdout).ok());
        let rows: Vec<serde_json::Value> = rows.unwrap_or_default();
        for id in rows.iter().filter_map(|row| row["id"].as_str()) {
            let _ = self.command(&["sandbox", "destroy", id]).status();
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

fn says() -> Reply {
    Reply::streams(&["a ", "short ", "answer"])
}

fn calls() -> Reply {
    let call = json!({"index": 0, "id": "call_1", "type": "function",
        "function": {"name": "terminal", "arguments": "{\"command\": \"true\"}"}});
    Reply::events([
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
    ])
}

fn resident(gateway: &Gateway) -> Done<u64> {
    memory_of(gateway, "VmRSS:")
}

/// What the gateway's own process has used of processors, which other work on the machine does not change much.
fn processor_time(gateway: &Gateway) -> Done<Duration> {
    // Of a hundredth of a second, on every Linux there is.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{}/stat", gateway.0.id()))?;
    let (_, after_name) = stat.rsplit_once(')').ok_or("no name in stat")?;
    let mut fields = after_name.split_whitespace().skip(11);
    let mut ticks = || -> Done<u32> { Ok(fields.next().ok_or("a short stat")?.parse()?) };
    Ok(TICK * (ticks()? + ticks()?))
}

/// The most that was resident at once.
fn peak(gateway: &Gateway) -> Done<u64> {
    memory_of(gateway, "VmHWM:")
}

fn memory_of(gateway: &Gateway, which: &str) -> Done<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", gateway.0.id()))?;
    let line = status.lines().find(|line| line.starts_with(which));
    let size = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(size.ok_or(which)?.parse()?)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
