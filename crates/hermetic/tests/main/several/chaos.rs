//! Three gateways, a chat, a model and a remote host; gateways are killed and put to sleep at random under load,
//! where one serves and where all of them do.
//!
//! `cargo xtask test --long` goes on for minutes and restarts the database as well. The short form has one of
//! each: one that sleeps through its end and wakes up late, one that is killed, and where all serve, one that is
//! stopped.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::cluster::{Cluster, LONG, Member};
use crate::flow::lab::{calls_tool, text};
use crate::ssh_lab::Lab as Remote;

/// Longer than a holder that is not heard believes in itself, by its own clock.
const ASLEEP: Duration = Duration::from_secs(11);
/// Longer than anybody does, by the database's.
const SILENT: Duration = Duration::from_secs(17);
const LONG_CHAOS: Duration = Duration::from_secs(180);
const FIRST_USER: i64 = 100;

#[tokio::test(flavor = "multi_thread")]
async fn of_three_gateways_killed_and_put_to_sleep_nothing_is_lost_doubled_or_left() {
    let test =
        "several::chaos::of_three_gateways_killed_and_put_to_sleep_nothing_is_lost_doubled_or_left";
    nothing_is_lost_doubled_or_left(test, Serving::One).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_that_share_the_work_nothing_is_lost_doubled_or_left() {
    let test = "several::chaos::of_three_that_share_the_work_nothing_is_lost_doubled_or_left";
    nothing_is_lost_doubled_or_left(test, Serving::All).await;
}

#[derive(Clone, Copy)]
enum Serving {
    One,
    All,
}

async fn nothing_is_lost_doubled_or_left(test: &str, serving: Serving) {
    let long = hermetic_testkit::long();
    let Some(mut story) = Story::begin(test, serving).await else {
        return;
    };
    let (users, each) = if long { (8, 60) } else { (4, 6) };
    let talking = story.talk(users, each);
    match (long, serving) {
        (true, _) => story.live_through_chaos(&talking).await,
        (false, Serving::One) => story.sleeper_and_victim().await,
        (false, Serving::All) => story.sleeper_victim_and_stopped().await,
    }
    story.heal().await;
    for user in talking {
        let ended = timeout(LONG, user).await;
        let ended = ended.unwrap_or_else(|_| panic!("unanswered: {}", story.cluster.logs()));
        ended.unwrap();
    }
    story.judge(users, each).await;
}

struct Story {
    cluster: Cluster,
    telegram: Arc<TelegramServer>,
    _model: ScriptedServer,
    remote: Remote,
    serving: Serving,
    dice: u64,
}

impl Story {
    async fn begin(test: &str, serving: Serving) -> Option<Self> {
        let remote = Remote::open()?;
        let log = remote.at("ran");
        fs::write(&log, "").unwrap();
        fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
        let telegram = TelegramServer::start().await.unwrap();
        let model = ScriptedServer::answering(answer).await.unwrap();
        let config = format!(
            "model: {{default: scripted, base_url: '{}'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n\
             display: {{busy_input_mode: queue, busy_ack_enabled: false}}\napprovals: {{mode: 'off'}}\n\
             terminal: {{ssh_host: 127.0.0.1, ssh_user: {}, ssh_port: {}, ssh_key: {}, ssh_config: {}}}\n",
            model.base_url(),
            telegram.url(),
            remote.user,
            remote.port,
            remote.at("key").display(),
            remote.at("ssh_config").display(),
        );
        let env = format!(
            "TELEGRAM_BOT_TOKEN={TOKEN}\nOPENAI_API_KEY=k\nTELEGRAM_ALLOW_ALL_USERS=true\n"
        );
        let mut cluster = match serving {
            Serving::One => Cluster::new(test, 3, ("ssh", &config, &env)).await?,
            Serving::All => Cluster::sharing(test, 3, (&config, &env)).await?,
        };
        for member in &mut cluster.members {
            member.start();
        }
        match serving {
            Serving::One => drop(cluster.next_holder(&[]).await),
            Serving::All => cluster.all_serve(&[0, 1, 2]).await,
        }
        let dice = u64::from(std::process::id()) + 1;
        eprintln!("{test}: dice {dice}");
        Some(Self {
            cluster,
            telegram: Arc::new(telegram),
            _model: model,
            remote,
            serving,
            dice,
        })
    }

    /// Each says two things at once, waits for both answers, and goes on.
    fn talk(&self, users: i64, each: usize) -> Vec<JoinHandle<()>> {
        let log = self.remote.at("ran").display().to_string();
        let users = FIRST_USER..FIRST_USER + users;
        let talk = |user| {
            let (telegram, log) = (Arc::clone(&self.telegram), log.clone());
            async move {
                for count in (0..each).step_by(2) {
                    for count in [count, count + 1] {
                        telegram.says(user, &format!("echo {user}.{count}. >> {log}; echo ran it"));
                    }
                    while answered(&replies(&telegram, user)) < count + 2 {
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        };
        users.map(|user| tokio::spawn(talk(user))).collect()
    }

    /// Whoever serves falls asleep, and the one that takes over is killed; then the first wakes up.
    async fn sleeper_and_victim(&mut self) {
        let sleeper = self.cluster.next_holder(&[]).await;
        self.cluster.members[sleeper].says(" ready").await;
        sleep(Duration::from_millis(300 + self.below(1200))).await;
        self.cluster.members[sleeper].signal(Signal::STOP);
        let asleep = Instant::now();
        self.cluster.age_holder().await;
        let victim = self.cluster.next_holder(&[sleeper]).await;
        sleep(Duration::from_millis(500 + self.below(1500))).await;
        self.cluster.members[victim].kill();
        self.cluster.age_holder().await;
        let last = self.cluster.next_holder(&[sleeper, victim]).await;
        self.cluster.members[victim].start();
        // Until then it may believe that it serves; later it may not, whatever it was doing.
        sleep(ASLEEP.saturating_sub(asleep.elapsed())).await;
        self.cluster.members[sleeper].signal(Signal::CONT);
        let ended = self.cluster.members[sleeper].end().await;
        assert!(!ended.success(), "it goes on as if nothing had happened");
        assert_eq!(self.cluster.holder().await, Some(last));
    }

    /// One falls asleep, one of those that serve on is killed, and the last is stopped in good order with work
    /// waiting; then the first wakes up.
    async fn sleeper_victim_and_stopped(&mut self) {
        let sleeper = usize::try_from(self.below(3)).unwrap();
        let (victim, last) = ((sleeper + 1) % 3, (sleeper + 2) % 3);
        sleep(Duration::from_millis(300 + self.below(1200))).await;
        self.cluster.members[sleeper].signal(Signal::STOP);
        let asleep = Instant::now();
        self.cluster.age(sleeper).await;
        sleep(Duration::from_millis(500 + self.below(1500))).await;
        self.cluster.members[victim].kill();
        self.cluster.age(victim).await;
        sleep(Duration::from_millis(300 + self.below(700))).await;
        self.cluster.members[victim].start();
        self.serve_again(&[victim, last]).await;
        self.cluster.members[last].signal(Signal::TERM);
        let stopped = self.cluster.members[last].end().await;
        assert!(stopped.success(), "{}", self.cluster.members[last].log());
        self.cluster.members[last].start();
        self.serve_again(&[victim, last]).await;
        // Until then it may believe that it serves; later it may not, whatever it was doing.
        sleep(ASLEEP.saturating_sub(asleep.elapsed())).await;
        self.cluster.members[sleeper].signal(Signal::CONT);
        let ended = self.cluster.members[sleeper].end().await;
        assert!(!ended.success(), "it goes on as if nothing had happened");
        let mut serving = [victim, last];
        serving.sort_unstable();
        assert_eq!(self.cluster.serving().await, serving);
    }

    async fn live_through_chaos(&mut self, talking: &[JoinHandle<()>]) {
        let began = Instant::now();
        let mut round = 0;
        while began.elapsed() < LONG_CHAOS && !talking.iter().all(JoinHandle::is_finished) {
            round += 1;
            sleep(Duration::from_millis(self.below(4000))).await;
            self.bring_back().await;
            let holder = self.cluster.holder().await;
            let any = usize::try_from(self.below(3)).unwrap();
            let who = if self.below(3) == 0 {
                any
            } else {
                holder.unwrap_or(any)
            };
            match self.below(5) {
                0 => {
                    eprintln!("round {round}: the database is killed");
                    self.cluster.server.kill();
                    sleep(Duration::from_millis(self.below(3000))).await;
                    self.cluster.server.start().unwrap();
                }
                1 | 2 => {
                    eprintln!("round {round}: {who} of {holder:?} is killed");
                    self.cluster.members[who].kill();
                }
                _ => {
                    let longest = if self.below(2) == 0 { 3000 } else { 17_000 };
                    let nap = Duration::from_millis(self.below(longest));
                    eprintln!("round {round}: {who} of {holder:?} sleeps for {nap:?}");
                    self.cluster.members[who].signal(Signal::STOP);
                    sleep(nap).await;
                    self.cluster.members[who].signal(Signal::CONT);
                }
            }
        }
    }

    /// As a service manager would.
    async fn bring_back(&mut self) {
        for member in &mut self.cluster.members {
            member.ended();
            if !member.is_there() {
                member.start();
            }
        }
    }

    /// One that begins while the sleeper's transaction stands in the way of everybody who joins ends by itself.
    async fn serve_again(&mut self, who: &[usize]) {
        let began = Instant::now();
        while self
            .cluster
            .serving()
            .await
            .iter()
            .filter(|one| who.contains(*one))
            .count()
            < who.len()
        {
            assert!(began.elapsed() < LONG, "{}", self.cluster.logs());
            self.bring_back().await;
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn heal(&mut self) {
        let began = Instant::now();
        while began.elapsed() < SILENT {
            self.bring_back().await;
            if self.cluster.holder().await.is_some() {
                break;
            }
            sleep(Duration::from_millis(200)).await;
        }
        match self.serving {
            Serving::One => drop(self.cluster.next_holder(&[]).await),
            // One that has just begun would not hear yet that it is to end, and one that slept may end still.
            Serving::All => {
                while self.cluster.serving().await != [0, 1, 2] {
                    assert!(began.elapsed() < LONG, "{}", self.cluster.logs());
                    self.bring_back().await;
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    async fn judge(&mut self, users: i64, each: usize) {
        let ran = fs::read_to_string(self.remote.at("ran")).unwrap();
        let mut times = BTreeMap::<&str, usize>::new();
        for line in ran.lines() {
            *times.entry(line).or_default() += 1;
        }
        let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "ran twice: {twice:?}");
        for user in FIRST_USER..FIRST_USER + users {
            judge_replies(user, each, &replies(&self.telegram, user), &times);
        }
        for member in &mut self.cluster.members {
            member.ended();
            if member.is_there() {
                member.signal(Signal::TERM);
                let ended = member.end().await;
                // One that has just begun does not hear it yet, and has nothing to give back.
                let is_too_early = ended.signal() == Some(Signal::TERM.as_raw());
                assert!(
                    ended.success() || is_too_early,
                    "{ended:?}: {}",
                    member.log()
                );
            }
        }
        self.judge_what_is_left().await;
        self.judge_records();
    }

    /// Each by itself, and by what the others saw of it, however it was killed.
    fn judge_records(&self) {
        let members = &self.cluster.members;
        let record = |member: &Member| member.home.path("hermetic/audit.jsonl");
        for member in members {
            let mut words = vec!["audit".to_owned(), "verify".to_owned()];
            for other in members.iter().map(record).filter(|other| other.exists()) {
                if other != record(member) {
                    words.extend(["--also".to_owned(), other.display().to_string()]);
                }
            }
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let verified = member.home.run(&words);
            assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
            assert!(
                !verified.out.contains("not its own word"),
                "{}",
                verified.out
            );
        }
    }

    /// The ledger names what is on the remote host and nothing else, and all of that can be removed.
    async fn judge_what_is_left(&self) {
        let home = &self.cluster.members[0].home;
        let listed = home.run(&["sandbox", "list", "--json"]).json();
        let mut named: Vec<_> = listed
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect();
        named.sort();
        let backend = self.remote.backend(&"several-gateways".parse().unwrap());
        let found = async || {
            let found = backend.list().await.unwrap().into_iter();
            let mut found: Vec<_> = found.map(|one| one.id.as_str().to_owned()).collect();
            found.sort();
            found
        };
        let there = found().await;
        assert!(
            there.iter().all(|id| named.contains(id)),
            "{there:?} beside {named:?}"
        );
        for id in &named {
            let destroyed = home.run(&["sandbox", "destroy", id]);
            assert_eq!(destroyed.code, 0, "{}", destroyed.err);
        }
        assert_eq!(found().await, [""; 0]);
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.dice >> 33) % bound
    }
}

/// Has what was said run as a command, once, and then says what came of it, and of which message.
fn answer(asked: &Value) -> Reply {
    let messages = asked["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "user" {
        let said = last["content"].as_str().unwrap_or_default();
        let command = said.split_once("echo ").map_or(said, |(_, rest)| rest);
        return calls_tool("terminal", &json!({"command": format!("echo {command}")}));
    }
    // After a restart, words of the gateway's own may stand behind them.
    let said = messages.iter().rev().filter(|one| one["role"] == "user");
    let mut said = said.filter_map(|one| one["content"].as_str());
    let said = said.find(|said| said.contains("echo ")).unwrap_or_default();
    let named = said.split_once("echo ").map_or("?", |(_, rest)| {
        rest.split_whitespace().next().unwrap_or("?")
    });
    let seen = last["content"].as_str().unwrap_or_default();
    let done = if seen.contains("ran it") {
        "done"
    } else {
        "not known"
    };
    Reply::streams(&[&format!("<{named}> is {done}")])
}

fn replies(telegram: &TelegramServer, user: i64) -> Vec<String> {
    let calls = telegram.calls("sendMessage");
    let own = calls
        .iter()
        .filter(|call| call.params["chat_id"] == json!(user));
    own.map(|call| text(&call.params)).collect()
}

/// Which message a reply is about, if it says so.
fn number(reply: &str) -> Option<usize> {
    let (_, after) = reply.split_once('<')?;
    let (named, _) = after.split_once(".>")?;
    named.split_once('.')?.1.parse().ok()
}

fn is_given_up(reply: &str) -> bool {
    reply.contains("given it up")
}

/// How many messages have a first answer.
fn answered(replies: &[String]) -> usize {
    let mut numbers: Vec<_> = replies.iter().filter_map(|reply| number(reply)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len() + replies.iter().filter(|reply| is_given_up(reply)).count()
}

fn judge_replies(user: i64, each: usize, replies: &[String], times: &BTreeMap<&str, usize>) {
    assert!(answered(replies) >= each, "{user}: {replies:#?}");
    let mut seen = Vec::new();
    for reply in replies {
        let Some(number) = number(reply) else {
            continue;
        };
        if seen.contains(&number) {
            assert!(reply.contains("Possible duplicate"), "{user}: {replies:#?}");
            continue;
        }
        assert!(
            seen.iter().all(|before| *before < number),
            "{user}: {replies:#?}"
        );
        seen.push(number);
        if reply.contains("is done") {
            let line = format!("{user}.{number}.");
            assert_eq!(times.get(line.as_str()), Some(&1), "{user}: {replies:#?}");
        }
    }
}
