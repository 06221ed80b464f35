//! Gateways that serve side by side, as people in a chat meet them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use hermetic_sandbox::Sandbox;
use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use hermetic_types::HolderEpoch;
use hermetic_warden::client::WardenCallError;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::cluster::{Cluster, LONG};
use crate::flow::lab::{calls_tool, text};
use crate::ssh_lab::Lab as Remote;

pub(super) const FIRST_USER: i64 = 200;
const USERS: i64 = 8;

pub(super) struct Story {
    pub(super) cluster: Cluster,
    pub(super) telegram: TelegramServer,
    _model: ScriptedServer,
    pub(super) remote: Remote,
}

impl Story {
    async fn begin(test: &str, approvals: &str) -> Option<Self> {
        Self::begin_with(test, &format!("approvals: {{{approvals}}}\n")).await
    }

    /// With more lines in the configuration of every gateway.
    pub(super) async fn begin_with(test: &str, more: &str) -> Option<Self> {
        let remote = Remote::open()?;
        let log = remote.at("ran");
        fs::write(&log, "").unwrap();
        fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
        let telegram = TelegramServer::start().await.unwrap();
        let model = ScriptedServer::answering(answer).await.unwrap();
        let config = format!(
            "model: {{default: scripted, base_url: '{}'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n\
             {more}display: {{busy_input_mode: queue, busy_ack_enabled: false}}\n\
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
        let mut cluster = Cluster::sharing(test, 3, (&config, &env)).await?;
        for member in &mut cluster.members {
            member.start();
        }
        cluster.all_serve(&[0, 1, 2]).await;
        Some(Self {
            cluster,
            telegram,
            _model: model,
            remote,
        })
    }

    /// Somebody whose conversation is served by one that does not listen to the account, and that one.
    pub(super) async fn served_elsewhere(&self) -> (i64, usize) {
        for user in FIRST_USER..FIRST_USER + USERS {
            self.ask(user, "hello").await;
        }
        let listener = self.cluster.listener().await.expect("somebody listens");
        for user in FIRST_USER..FIRST_USER + USERS {
            match self.cluster.holder_of(user).await {
                Some(holder) if holder != listener => return (user, holder),
                _ => {}
            }
        }
        panic!("all are served by one: {}", self.cluster.logs());
    }

    pub(super) async fn ask(&self, user: i64, words: &str) -> String {
        let before = self.sent(user).len();
        self.telegram.says(user, words);
        self.next_after(user, before).await
    }

    pub(super) async fn next_after(&self, user: i64, before: usize) -> String {
        let waiting = async {
            loop {
                match self.sent(user).get(before) {
                    Some(reply) => return reply.clone(),
                    None => sleep(Duration::from_millis(20)).await,
                }
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("no answer: {}", self.cluster.logs()))
    }

    pub(super) fn sent(&self, user: i64) -> Vec<String> {
        let calls = self.telegram.calls("sendMessage");
        let own = calls
            .iter()
            .filter(|call| call.params["chat_id"] == json!(user));
        own.map(|call| text(&call.params)).collect()
    }

    fn ran(&self) -> String {
        fs::read_to_string(self.remote.at("ran")).unwrap()
    }

    /// Waits until this one's command runs.
    pub(super) async fn begun(&self, go: &str, user: i64) {
        let begun = std::path::PathBuf::from(format!("{go}.{user}"));
        let waiting = async {
            while !begun.exists() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("{user}'s is not run: {}", self.cluster.logs()));
    }

    pub(super) async fn ran_line(&self, line: &str) {
        let waiting = async {
            while !self.ran().contains(line) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let waiting = timeout(LONG, waiting).await;
        waiting.unwrap_or_else(|_| panic!("{line:?} is not run: {}", self.cluster.logs()));
    }

    pub(super) async fn stop_all(&mut self) {
        for member in &mut self.cluster.members {
            member.ended();
            if member.is_there() {
                member.signal(Signal::TERM);
                let ended = member.end().await;
                assert!(ended.success(), "{ended:?}: {}", member.log());
            }
            let verified = member.home.run(&["audit", "verify"]);
            assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
        }
    }

    /// Each user's messages are answered, in their order, once or marked.
    async fn answered_in_order(&self, users: &[i64], each: usize) {
        for user in users {
            let waiting = async {
                while numbers(&self.sent(*user)).len() < each {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            let waited = timeout(LONG, waiting).await;
            let sent = self.sent(*user);
            assert!(waited.is_ok(), "{user}: {sent:#?}: {}", self.cluster.logs());
            let expected: Vec<_> = (0..each).collect();
            assert_eq!(numbers(&sent), expected, "{user}: {sent:#?}");
        }
    }

    fn serves(&self) -> Vec<i64> {
        (FIRST_USER..FIRST_USER + USERS).collect()
    }

    /// Each has a conversation; whose is whose.
    async fn holders(&self) -> Vec<(i64, usize)> {
        let mut holders = Vec::new();
        for user in self.serves() {
            let holder = self.cluster.holder_of(user).await;
            holders.push((user, holder.expect("somebody has it")));
        }
        holders
    }

    /// How many sandboxes refuse whoever had their conversation first.
    async fn later_holders(&self) -> usize {
        let backend = self.remote.backend(&"several-gateways".parse().unwrap());
        let mut later = 0;
        for found in backend.list().await.unwrap() {
            let link = backend.connect(&found.id).await.unwrap();
            let sandbox = Sandbox::greet(&found.id, backend.description(), link).await;
            match sandbox.unwrap().hold(FIRST_HOLDER).await {
                Ok(_) => {}
                Err(WardenCallError::HeldElsewhere { .. }) => later += 1,
                Err(error) => panic!("{error}"),
            }
        }
        later
    }

    /// Everybody says something that takes until `go` is there, and behind it something that does not.
    fn all_ask(&self, go: &str) {
        for user in self.serves() {
            self.telegram.says(
                user,
                &format!("<0> run touch {go}.{user}; until test -e {go}; do sleep 0.1; done"),
            );
            self.telegram.says(user, "<1> and then?");
        }
    }
}

/// Who has a conversation first, under the first lease on serving.
const FIRST_HOLDER: HolderEpoch = HolderEpoch::new((1 << 20) + 1);

/// Which messages were answered, in the order of their first answers. One that comes once more has to say so.
fn numbers(replies: &[String]) -> Vec<usize> {
    let mut seen = Vec::new();
    for reply in replies {
        let Some((_, after)) = reply.split_once('<') else {
            continue;
        };
        let Some(number) = after
            .split_once('>')
            .and_then(|(number, _)| number.parse().ok())
        else {
            continue;
        };
        match seen.contains(&number) {
            true => assert!(reply.contains("Possible duplicate"), "{replies:#?}"),
            false => seen.push(number),
        }
    }
    seen
}

/// Runs what stands behind `run `, and says what came of it, and of which message if that has a number.
fn answer(asked: &Value) -> Reply {
    let messages = asked["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let said = last["content"].as_str().unwrap_or_default();
    let asks = messages.iter().rev().filter(|one| one["role"] == "user");
    let mut asks = asks.filter_map(|one| one["content"].as_str());
    let number = asks
        .find_map(|text| text.split_once('<')?.1.split_once('>'))
        .map_or(String::new(), |(number, _)| format!("<{number}> "));
    match (last["role"] == "user", said.split_once("run ")) {
        (true, Some((_, command))) => calls_tool("terminal", &json!({"command": command})),
        (true, None) => Reply::streams(&[&format!("{number}hello")]),
        (false, _) => Reply::streams(&[&format!("{number}it ran")]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_reaches_whoever_has_the_conversation_and_what_a_stopped_gateway_had_goes_on() {
    let test = "several::shared::a_stop_reaches_whoever_has_the_conversation_and_what_a_stopped_gateway_had_goes_on";
    let Some(mut story) = Story::begin(test, "mode: 'off'").await else {
        return;
    };
    let (user, holder) = story.served_elsewhere().await;
    let log = story.remote.at("ran").display().to_string();
    let before = story.sent(user).len();
    story
        .telegram
        .says(user, &format!("run echo begun >> {log}; sleep 600"));
    story.ran_line("begun").await;
    let asked = Instant::now();
    story.telegram.says(user, "/stop");
    story.next_after(user, before).await;
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "{:?}",
        story.sent(user)
    );
    // Stopped in good order, with nothing at work: the next message is answered by another, at once.
    story.cluster.members[holder].signal(Signal::TERM);
    let ended = story.cluster.members[holder].end().await;
    assert!(ended.success(), "{}", story.cluster.members[holder].log());
    let asked = Instant::now();
    story.ask(user, "still there?").await;
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    let next = story.cluster.holder_of(user).await;
    assert!(next.is_some_and(|next| next != holder), "{next:?}");
    // One that joins serves beside them.
    story.cluster.members[holder].start();
    story.cluster.all_serve(&[0, 1, 2]).await;
    // Whoever speaks again has somebody again.
    for user in story.serves() {
        story.ask(user, "hello").await;
    }
    let status = story.cluster.members[holder]
        .home
        .run(&["status", "--json"])
        .json();
    let gateways = status["gateways"].as_array().unwrap();
    assert_eq!(gateways.len(), 3, "{gateways:?}");
    assert!(
        gateways.iter().all(|one| one["condition"] == "serving"),
        "{gateways:?}"
    );
    let held = gateways
        .iter()
        .map(|one| one["conversations"].as_u64().unwrap());
    assert_eq!(held.sum::<u64>(), USERS.unsigned_abs(), "{gateways:?}");
    story.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_another_gateway_hears_is_heard_by_the_one_that_asked() {
    let test =
        "several::shared::an_answer_that_another_gateway_hears_is_heard_by_the_one_that_asked";
    let approvers: Vec<_> = (FIRST_USER..FIRST_USER + USERS)
        .map(|user| format!("'telegram:{user}'"))
        .collect();
    let approvals = format!("mode: manual, approvers: [{}]", approvers.join(", "));
    let Some(mut story) = Story::begin(test, &approvals).await else {
        return;
    };
    let (user, _) = story.served_elsewhere().await;
    let log = story.remote.at("ran").display().to_string();
    let before = story.sent(user).len();
    story
        .telegram
        .says(user, &format!("run echo allowed >> {log}; chmod 777 {log}"));
    story.next_after(user, before).await;
    let calls = story.telegram.calls("sendMessage");
    let asked = calls
        .iter()
        .rfind(|call| call.params["chat_id"] == user && call.params["reply_markup"].is_object());
    let asked = asked.unwrap_or_else(|| panic!("nobody is asked: {:?}", story.sent(user)));
    let button = &asked.params["reply_markup"]["inline_keyboard"][0][0]["callback_data"];
    let before = story.sent(user).len();
    story
        .telegram
        .presses(user, asked.message, button.as_str().unwrap());
    story.next_after(user, before).await;
    assert_eq!(story.ran(), "allowed\n");
    story.stop_all().await;
}

/// Messages of many are served by more than one, and one that is killed while its turns run is followed by the others.
#[tokio::test(flavor = "multi_thread")]
async fn what_one_had_that_is_killed_is_answered_by_the_others() {
    let test = "several::shared::what_one_had_that_is_killed_is_answered_by_the_others";
    let Some(mut story) = Story::begin(test, "mode: 'off'").await else {
        return;
    };
    let go = story.remote.home().join("go").display().to_string();
    story.all_ask(&go);
    for user in story.serves() {
        story.begun(&go, user).await;
    }
    let holders = story.holders().await;
    let victim = story.cluster.listener().await.expect("somebody listens");
    assert!(
        holders.iter().any(|(_, holder)| *holder == victim),
        "{holders:?}"
    );
    assert!(
        holders.iter().any(|(_, holder)| *holder != victim),
        "{holders:?}"
    );
    story.cluster.members[victim].kill();
    let killed = Instant::now();
    fs::write(&go, "").unwrap();
    // Said to an account to which nobody listens at that moment.
    for user in story.serves() {
        story.telegram.says(user, "<2> run true");
    }
    story.answered_in_order(&story.serves(), 3).await;
    let took = killed.elapsed();
    eprintln!("all answered {took:?} after the kill");
    assert!(took < Duration::from_secs(25), "{took:?}");
    for (_, holder) in story.holders().await {
        assert_ne!(holder, victim);
    }
    let passed = holders.iter().filter(|(_, holder)| *holder == victim);
    assert_eq!(story.later_holders().await, passed.count());
    story.stop_all().await;
}

/// One that sleeps through its end and wakes up in the middle of its turns says nothing of them.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_wakes_up_late_says_nothing_twice() {
    let test = "several::shared::one_that_wakes_up_late_says_nothing_twice";
    let Some(mut story) = Story::begin(test, "mode: 'off'").await else {
        return;
    };
    let go = story.remote.home().join("go").display().to_string();
    story.all_ask(&go);
    for user in story.serves() {
        story.begun(&go, user).await;
    }
    let holders = story.holders().await;
    let sleeper = holders[0].1;
    story.cluster.members[sleeper].signal(Signal::STOP);
    let asleep = Instant::now();
    fs::write(&go, "").unwrap();
    story.answered_in_order(&story.serves(), 2).await;
    eprintln!("all answered {:?} after it fell asleep", asleep.elapsed());
    sleep(Duration::from_secs(20).saturating_sub(asleep.elapsed())).await;
    let before: Vec<_> = story
        .serves()
        .iter()
        .map(|user| story.sent(*user))
        .collect();
    story.cluster.members[sleeper].signal(Signal::CONT);
    let ended = story.cluster.members[sleeper].end().await;
    assert!(!ended.success(), "it goes on as if nothing had happened");
    let after: Vec<_> = story
        .serves()
        .iter()
        .map(|user| story.sent(*user))
        .collect();
    assert_eq!(before, after);
    story.stop_all().await;
}

/// A command beside gateways that share would have its sandbox taken up under it.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_needs_a_row_is_refused_beside_them() {
    let test = "several::shared::a_command_that_needs_a_row_is_refused_beside_them";
    let Some(mut story) = Story::begin(test, "mode: 'off'").await else {
        return;
    };
    let home = &story.cluster.members[0].home;
    for words in [
        &[
            "exec",
            "--yes",
            "--backend",
            "ssh",
            "--session",
            "work",
            "--",
            "true",
        ][..],
        &["chat", "--backend", "ssh", "-q", "hello"],
        &["sandbox", "prune"],
    ] {
        let refused = home.run(words);
        assert_ne!(refused.code, 0, "{words:?}: {}", refused.out);
        assert!(
            refused.err.contains("share the work"),
            "{words:?}: {}",
            refused.err
        );
    }
    let passing = home.run(&["exec", "--yes", "--backend", "ssh", "--", "true"]);
    assert_eq!(passing.code, 0, "{}", passing.err);
    assert_eq!(home.run(&["sandbox", "list", "--json"]).json(), json!([]));
    story.stop_all().await;
}
