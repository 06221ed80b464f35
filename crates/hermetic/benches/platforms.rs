//! What a gateway on all its platforms at once costs and bears, with the real program against stand-ins
//! of each platform and of a model on loopback.
//!
//! `cargo bench -p hermetic --bench platforms`
//!
//! Matrix is connected too where there is a Synapse, so that memory is that of six. Under load nobody writes there,
//! because it would be Synapse that is measured; in storms somebody does, and its connection is lost like the
//! others.
//!
//! The shares of the platforms are what each lets one bot send: our adapters keep to Discord's fifty
//! requests a second and to Slack's one message a second in a channel, here as everywhere.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a bench reports on the terminal")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hermetic_testkit::discord::{self, DiscordServer};
use hermetic_testkit::matrix::{MatrixPerson, MatrixProxy, ProxyFault, ShownMessage};
use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::pypi::Synapse;
use hermetic_testkit::signal_server::{self, ReceiveMode, SignalServer};
use hermetic_testkit::slack::{self, SlackServer, direct_channel};
use hermetic_testkit::telegram::{self, Failure, TelegramServer};
use hermetic_testkit::whatsapp::{self, WhatsAppServer};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{interval, sleep, timeout};

type Done<T> = Result<T, Box<dyn Error>>;

/// Messages of one second at full speed, platform by platform.
const SHARES: [(Platform, u32); 5] = [
    (Platform::Telegram, 220),
    (Platform::Discord, 20),
    (Platform::Slack, 60),
    (Platform::WhatsApp, 100),
    (Platform::Signal, 100),
];
/// Seconds of traffic.
const SECONDS: u32 = 5;
/// People on each platform: everybody writes again when the one before is answered.
const PEOPLE: u32 = 100;
const STORMS: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(120);
/// As exact as an answer's time is told.
const LOOK_AGAIN: Duration = Duration::from_millis(4);
const LOOKS: u32 = 250;
/// Names another build of the program, to be measured instead of the one that was built with this.
const PROGRAM: &str = "HERMETIC_BENCH_PROGRAM";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Platform {
    Telegram,
    Discord,
    Slack,
    WhatsApp,
    Signal,
}

#[tokio::main]
async fn main() -> Done<()> {
    let stage = Stage::start().await?;
    println!(
        "idle on {} platforms: {} kB resident",
        stage.connected(),
        stage.resident()?
    );
    let full: u32 = SHARES.iter().map(|(_, share)| share).sum();
    let mut traffic = Traffic::new(&stage);
    for (what, percent) in [("at full speed", 100), ("at half of that", 50)] {
        let begun = Instant::now();
        let worked = stage.processor_time()?;
        let times = traffic.run(percent).await?;
        let took = begun.elapsed();
        let worked = (stage.processor_time()? - worked) / u32::try_from(times.len())?;
        println!(
            "{what} ({} a second wanted): {} answered in {took:?}, {:.0} a second; the gateway worked {worked:?} for \
             each; from the message to its answer: {}",
            full * percent / 100,
            times.len(),
            times.len() as f64 / took.as_secs_f64(),
            spread(times.iter().map(|(_, time)| *time)),
        );
        for (platform, _) in SHARES {
            let own = times.iter().filter(|(of, _)| *of == platform);
            println!("  {platform:?}: {}", spread(own.map(|(_, time)| *time)));
        }
    }
    traffic.storms().await?;
    println!("after the traffic: {} kB resident", stage.resident()?);
    Ok(())
}

/// The half and the hundredth part.
fn spread(times: impl Iterator<Item = Duration>) -> String {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    let at = |part: usize| times.get(times.len().saturating_sub(1) * part / 100);
    format!("median {:?}, p99 {:?}", at(50), at(99))
}

/// What was said, and when it was answered.
struct Traffic<'a> {
    stage: &'a Stage,
    said: u32,
    /// Of each platform by itself, so that its people take turns: counted over all of them, the same dozen of
    /// Slack's people would say all that is said there, and each may be answered once a second.
    said_on: BTreeMap<Platform, u32>,
    waiting: BTreeMap<String, (Platform, Instant)>,
}

impl<'a> Traffic<'a> {
    fn new(stage: &'a Stage) -> Self {
        Self {
            stage,
            said: 0,
            said_on: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    /// The time of each answer.
    async fn run(&mut self, percent: u32) -> Done<Vec<(Platform, Duration)>> {
        let mut times = Vec::new();
        let mut step = interval(LOOK_AGAIN);
        let mut looked = Instant::now();
        for tick in 1..=SECONDS * LOOKS {
            step.tick().await;
            for (platform, share) in SHARES {
                let due = |tick: u32| tick * share * percent / (100 * LOOKS);
                for _ in due(tick - 1)..due(tick) {
                    self.say(platform);
                }
            }
            // To look is work for the processors that are measured: behind its time, it is not made up for.
            if looked.elapsed() >= LOOK_AGAIN {
                self.collect(&mut times);
                looked = Instant::now();
            }
        }
        self.until_answered(&mut times).await?;
        Ok(times)
    }

    /// Every connection ends at once, again and again, and somebody writes on each platform.
    async fn storms(&mut self) -> Done<()> {
        let begun = Instant::now();
        let (mut times, mut settled) = (Vec::new(), Vec::new());
        let attempts = self.stage.attempts();
        for storm in 1..=STORMS {
            self.say_everywhere().await;
            let cut = Instant::now();
            self.stage.cut_everything();
            self.say_everywhere().await;
            self.until_answered(&mut times).await?;
            if let Some(matrix) = &self.stage.matrix {
                matrix.until_answered(2 * storm).await?;
            }
            settled.push(cut.elapsed());
        }
        println!(
            "{STORMS} times every connection lost at once: {} messages, and Matrix' where it is connected, all \
             answered, in {:?}; from the loss to the last answer: {}",
            times.len(),
            begun.elapsed(),
            spread(settled.into_iter()),
        );
        for (what, count) in self.stage.attempts() {
            println!("  {what}: {}", count - attempts[what]);
        }
        Ok(())
    }

    async fn say_everywhere(&mut self) {
        for (platform, _) in SHARES {
            self.say(platform);
        }
        if let Some(matrix) = &self.stage.matrix {
            self.said += 1;
            let words = format!("note w{:07}", self.said);
            matrix.person.says(&matrix.room, &words).await;
        }
    }

    fn say(&mut self, platform: Platform) {
        self.said += 1;
        let word = format!("w{:07}", self.said);
        self.waiting
            .insert(word.clone(), (platform, Instant::now()));
        let said = self.said_on.entry(platform).or_default();
        *said += 1;
        self.stage
            .say(platform, *said % PEOPLE, &format!("note {word}"));
    }

    fn collect(&mut self, times: &mut Vec<(Platform, Duration)>) {
        let shown = self.stage.shown();
        self.waiting.retain(|word, (platform, since)| {
            let is_answered = shown.contains(word.as_str());
            if is_answered {
                times.push((*platform, since.elapsed()));
            }
            !is_answered
        });
    }

    async fn until_answered(&mut self, times: &mut Vec<(Platform, Duration)>) -> Done<()> {
        let all = async {
            while !self.waiting.is_empty() {
                sleep(LOOK_AGAIN).await;
                self.collect(times);
            }
        };
        if timeout(PATIENCE, all).await.is_err() {
            let lost = self.waiting.values().map(|(platform, _)| platform);
            return Err(format!("not answered: {:?}", lost.collect::<Vec<_>>()).into());
        }
        Ok(())
    }
}

/// Everything that is outside, and the program.
struct Stage {
    telegram: TelegramServer,
    discord: DiscordServer,
    slack: SlackServer,
    whatsapp: WhatsAppServer,
    signal: SignalServer,
    matrix: Option<MatrixSide>,
    gateway: Gateway,
    _model: ScriptedServer,
    _home: TempDir,
}

struct Gateway(Child);

/// A homeserver, and somebody who talks to the gateway's account in private.
struct MatrixSide {
    proxy: MatrixProxy,
    bot: MatrixPerson,
    person: MatrixPerson,
    room: String,
    _synapse: Synapse,
}

impl MatrixSide {
    /// With the account, and nobody who writes yet.
    async fn start() -> Done<Option<Self>> {
        let synapse = match Synapse::shared().await {
            Ok(synapse) => synapse,
            Err(why) => {
                println!("without Matrix: {why}");
                return Ok(None);
            }
        };
        Ok(Some(Self {
            proxy: MatrixProxy::start(synapse.url()).await?,
            bot: MatrixPerson::register(synapse.url(), "bot").await?,
            person: MatrixPerson::register(synapse.url(), "somebody").await?,
            room: String::new(),
            _synapse: synapse,
        }))
    }

    /// Once the gateway is there to be invited.
    async fn open_room(&mut self) -> Done<()> {
        self.room = self.person.opens_private(&self.bot).await;
        let (person, bot) = (&self.person, self.bot.user());
        person.waits_until_member(&self.room, bot, "join").await;
        Ok(())
    }

    async fn until_answered(&self, messages: u32) -> Done<()> {
        let wanted = usize::try_from(messages)?;
        let (person, bot) = (&self.person, self.bot.user());
        let answers = |shown: &[ShownMessage]| {
            let answers = shown.iter().filter(|one| one.text.contains("heard"));
            answers.count()
        };
        let shown = person.waits_for(&self.room, bot, |shown| answers(shown) >= wanted);
        match answers(&shown.await) {
            answered if answered >= wanted => Ok(()),
            answered => Err(format!("matrix answered {answered} of {wanted}").into()),
        }
    }
}

impl Stage {
    async fn start() -> Done<Self> {
        let (telegram, discord) = (
            TelegramServer::start().await?,
            DiscordServer::start().await?,
        );
        let (slack, whatsapp) = (SlackServer::start().await?, WhatsAppServer::start().await?);
        let signal = SignalServer::start(ReceiveMode::OnConnection).await?;
        let mut matrix = MatrixSide::start().await?;
        let matrix_env = matrix.as_ref().map_or_else(String::new, |matrix| {
            let (url, token) = (matrix.proxy.url(), matrix.bot.token());
            format!("MATRIX_HOMESERVER={url}\nMATRIX_ACCESS_TOKEN={token}\n")
        });
        let model = ScriptedServer::answering(answer).await?;
        let home = tempfile::tempdir()?;
        // Not asked for twice: nobody else listens on loopback ports of this range meanwhile.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let config = format!(
            "model: {{default: m, base_url: '{}'}}\ndisplay: {{busy_input_mode: queue, streaming: false}}\n\
             gateway: {{max_turns_per_user: 1000}}\ndiscord: {{base_url: '{}'}}\nplatforms:\n  \
             telegram: {{base_url: '{}', typing_indicator: false}}\n  \
             slack: {{base_url: '{}', typing_indicator: false}}\n  \
             signal: {{typing_indicator: false}}\n  \
             whatsapp_cloud: {{base_url: '{}', webhook_host: 127.0.0.1, webhook_port: {port}, \
             typing_indicator: false}}\n",
            model.base_url(),
            discord.url(),
            telegram.url(),
            slack.url(),
            whatsapp.url(),
        );
        fs::write(home.path().join("config.yaml"), config)?;
        let env = format!(
            "GATEWAY_ALLOW_ALL_USERS=true\nTELEGRAM_BOT_TOKEN={}\nDISCORD_BOT_TOKEN={}\n\
             SLACK_BOT_TOKEN={}\nSLACK_APP_TOKEN={}\nSIGNAL_HTTP_URL={}\nSIGNAL_ACCOUNT={}\n\
             WHATSAPP_CLOUD_PHONE_NUMBER_ID={}\nWHATSAPP_CLOUD_ACCESS_TOKEN={}\n\
             WHATSAPP_CLOUD_APP_SECRET={}\nWHATSAPP_CLOUD_VERIFY_TOKEN={}\n{matrix_env}",
            telegram::TOKEN,
            discord::TOKEN,
            slack::BOT_TOKEN,
            slack::APP_TOKEN,
            signal.url(),
            signal_server::NUMBER,
            whatsapp::PHONE_NUMBER_ID,
            whatsapp::TOKEN,
            whatsapp::APP_SECRET,
            whatsapp::VERIFY_TOKEN,
        );
        let path = home.path().join(".env");
        fs::write(&path, env)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let gateway = Gateway::start(&home)?;
        discord.wait_for_bot().await;
        slack.wait_for_open_sockets(1).await;
        signal.wait_for_listeners(1).await;
        if let Some(matrix) = &mut matrix {
            matrix.open_room().await?;
        }
        let webhook = format!("http://127.0.0.1:{port}/whatsapp/webhook");
        let (status, _) = whatsapp.subscribe(&webhook).await;
        if status != 200 {
            return Err(format!("the webhook answered {status}").into());
        }
        // Statuses are another POST for each message, which Meta batches and our server does not.
        whatsapp.tell_statuses(false);
        sleep(Duration::from_secs(2)).await;
        Ok(Self {
            telegram,
            discord,
            slack,
            whatsapp,
            signal,
            matrix,
            gateway,
            _model: model,
            _home: home,
        })
    }

    fn connected(&self) -> usize {
        SHARES.len() + usize::from(self.matrix.is_some())
    }

    fn say(&self, platform: Platform, person: u32, words: &str) {
        match platform {
            Platform::Telegram => drop(self.telegram.says(1000 + i64::from(person), words)),
            Platform::Discord => drop(self.discord.says(1000 + u64::from(person), words)),
            Platform::Slack => drop(self.slack.says(&slack_user(person), words)),
            Platform::WhatsApp => drop(self.whatsapp.says(whatsapp_user(person), words)),
            Platform::Signal => drop(self.signal.says(signal_user(person), words)),
        }
    }

    /// Every text that people see, in one.
    fn shown(&self) -> String {
        let mut all = String::new();
        for person in 0..PEOPLE {
            all.extend(self.telegram.shown(1000 + i64::from(person)));
            let channel = direct_channel(&slack_user(person));
            all.extend(self.slack.shown(&channel));
        }
        all.extend(self.discord.shown_anywhere());
        all.extend(self.whatsapp.sent().iter().map(|sent| sent.text()));
        let sent = self.signal.calls("send");
        all.extend(
            sent.iter()
                .filter_map(|call| call.params["message"].as_str()),
        );
        all
    }

    fn cut_everything(&self) {
        self.discord.cut();
        self.slack.cut_sockets();
        self.signal.hang_up();
        self.telegram.fail_next("getUpdates", Failure::Drop);
        if let Some(matrix) = &self.matrix {
            matrix.proxy.spoil(ProxyFault::BreakSyncs(1));
        }
    }

    /// How often each platform was asked for what a connection begins with.
    fn attempts(&self) -> BTreeMap<&'static str, usize> {
        let matrix = self.matrix.as_ref();
        BTreeMap::from([
            (
                "sessions of Discord begun",
                self.discord.identifies() as usize,
            ),
            ("sessions of Discord resumed", self.discord.resumes().len()),
            (
                "sockets asked of Slack",
                self.slack.tries("apps.connections.open"),
            ),
            ("streams asked of signal-cli", self.signal.tries("events")),
            ("polls of Telegram", self.telegram.tries("getUpdates")),
            (
                "syncs of Matrix",
                matrix.map_or(0, |matrix| matrix.proxy.sync_count()),
            ),
        ])
    }

    /// What the gateway's own process has used of processors.
    fn processor_time(&self) -> Done<Duration> {
        // Of a hundredth of a second, on every Linux there is.
        const TICK: Duration = Duration::from_millis(10);
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.gateway.0.id()))?;
        let (_, after_name) = stat.rsplit_once(')').ok_or("no name in stat")?;
        let mut fields = after_name.split_whitespace().skip(11);
        let mut ticks = || -> Done<u32> { Ok(fields.next().ok_or("a short stat")?.parse()?) };
        Ok(TICK * (ticks()? + ticks()?))
    }

    fn resident(&self) -> Done<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.gateway.0.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let size = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(size.ok_or("no VmRSS")?.parse()?)
    }
}

/// Few, and named for as long as the bench runs.
fn whatsapp_user(person: u32) -> whatsapp::Person {
    whatsapp::Person {
        id: String::leak(format!("US.134912086553027{person:05}")),
        number: None,
        name: "somebody",
    }
}

fn signal_user(person: u32) -> signal_server::Person {
    signal_server::Person {
        uuid: String::leak(format!("dddddddd-0000-4000-8000-{person:012}")),
        number: None,
        name: "somebody",
    }
}

fn slack_user(person: u32) -> String {
    format!("U0PERSON{person}")
}

impl Gateway {
    fn start(home: &TempDir) -> Done<Self> {
        let program = std::env::var_os(PROGRAM);
        let program = program.unwrap_or_else(|| env!("CARGO_BIN_EXE_hermetic").into());
        let mut child = Command::new(program)
            .args(["gateway", "run"])
            .env("HERMES_HOME", home.path())
            .env("HERMETIC_DASHBOARD_PORT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = child.stderr.take().ok_or("no stderr")?;
        let gateway = Self(child);
        let mut lines = BufReader::new(said);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            if line.contains("ready") {
                // Read on, or it would wait for us.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return Ok(gateway);
            }
            line.clear();
        }
        Err("the gateway did not start".into())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let id = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

/// The model says every word back that it was not asked about before.
fn answer(question: &Value) -> Reply {
    let messages = question["messages"].as_array();
    let messages = messages.map_or(&[][..], Vec::as_slice);
    let said = messages.iter().rfind(|message| message["role"] == "user");
    let text = said.map(|said| said["content"].to_string());
    let text = text.unwrap_or_default();
    let word = text.rsplit("note ").next().unwrap_or_default();
    let word: String = word
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    Reply::streams(&["heard ", &word])
}
