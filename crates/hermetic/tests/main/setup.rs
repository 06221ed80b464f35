//! `hermetic setup`, `hermetic gateway setup`, and what `doctor` says about the account afterwards.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Child, Stdio};

use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::hermetic::{Ended, Hermetic};

const OTHERS: &str = "# mine\nOPENAI_API_KEY=sk-other\n";

fn home(server: &TelegramServer) -> Hermetic {
    home_at(&server.url())
}

fn home_at(url: &str) -> Hermetic {
    let config = format!("platforms: {{telegram: {{base_url: '{url}'}}}}\n");
    Hermetic::with(&config).file(".env", OTHERS)
}

fn dotenv(hermetic: &Hermetic) -> String {
    fs::read_to_string(hermetic.path(".env")).unwrap()
}

fn unasked(hermetic: &Hermetic, more: &[&str]) -> Ended {
    let arguments = ["gateway", "setup", "telegram", "--non-interactive"];
    hermetic.run(&[&arguments[..], more].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_platform_accepts_is_written_beside_what_was_there() {
    let server = TelegramServer::start().await.unwrap();
    let hermetic = home(&server).variable("TELEGRAM_BOT_TOKEN", TOKEN);
    let ended = unasked(&hermetic, &["--allow", "4711, 4712"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("@HermeticTestBot"), "{}", ended.out);
    let expected =
        format!("{OTHERS}TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS=4711,4712\n");
    assert_eq!(dotenv(&hermetic), expected);
    let mode = fs::metadata(hermetic.path(".env"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // Once more, without the variable: everything stays.
    let hermetic = hermetic.without_variables();
    let again = unasked(&hermetic, &[]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(dotenv(&hermetic), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_wrong_or_cannot_be_tried_is_not_written() {
    let server = TelegramServer::start().await.unwrap();
    let wrong = home(&server).variable("TELEGRAM_BOT_TOKEN", "42:another");
    let ended = unasked(&wrong, &[]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(!ended.out.contains("42:another") && !ended.err.contains("42:another"));
    assert!(ended.out.contains("not accepted"), "{}", ended.out);
    assert_eq!(dotenv(&wrong), OTHERS);

    // Nobody listens there any more.
    let url = server.url();
    drop(server);
    let unreachable = home_at(&url).variable("TELEGRAM_BOT_TOKEN", TOKEN);
    let ended = unasked(&unreachable, &[]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(ended.err.contains("--unchecked"), "{}", ended.err);
    assert_eq!(dotenv(&unreachable), OTHERS);
    assert_eq!(unasked(&unreachable, &["--unchecked"]).code, 0);
    assert!(dotenv(&unreachable).contains(TOKEN));

    let without = home_at(&url);
    let ended = unasked(&without, &[]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("TELEGRAM_BOT_TOKEN is not set"),
        "{}",
        ended.err
    );
    let piped = without.run(&["gateway", "setup"]);
    assert!(piped.err.contains("--non-interactive"), "{}", piped.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_at_a_terminal_is_asked_and_the_token_is_not_shown() {
    let server = TelegramServer::start().await.unwrap();
    let hermetic = home(&server);
    let mut person = AtTerminal::start(&hermetic, &["gateway", "setup"]);
    person.answer("number or name › ", "nonsense");
    person.answer("number or name › ", "1");
    person.answer("not shown) › ", "42:a-wrong-one");
    person.answer("not shown) › ", TOKEN);
    person.answer("TELEGRAM_ALLOWED_USERS › ", "4711");
    let shown = person.end();
    assert!(shown.contains("type one of: telegram"), "{shown}");
    assert!(shown.contains("@HermeticTestBot"), "{shown}");
    assert!(
        !shown.contains(TOKEN) && !shown.contains("a-wrong-one"),
        "{shown}"
    );
    let written = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS=4711\n");
    assert_eq!(dotenv(&hermetic), format!("{OTHERS}{written}"));

    // The second time what is there is offered, and stays.
    let mut person = AtTerminal::start(&hermetic, &["gateway", "setup", "telegram"]);
    person.answer("Keep it? [Y/n] › ", "");
    assert!(person.end().contains("stays as it is: 4711"));
    assert_eq!(dotenv(&hermetic), format!("{OTHERS}{written}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_meanwhile_stays_and_so_does_the_owner() {
    let server = TelegramServer::start().await.unwrap();
    let hermetic = home(&server).variable("TELEGRAM_BOT_TOKEN", TOKEN);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(hermetic.path(".env"), Some(65534), Some(65534)).unwrap();
    }
    let before = fs::metadata(hermetic.path(".env")).unwrap().uid();
    let mut person = AtTerminal::start(&hermetic, &["gateway", "setup", "telegram"]);
    person.until("TELEGRAM_BOT_TOKEN is set already");
    let mut other = File::options()
        .append(true)
        .open(hermetic.path(".env"))
        .unwrap();
    writeln!(other, "ADDED_MEANWHILE=1").unwrap();
    person.answer("Keep it? [Y/n] › ", "");
    person.answer("TELEGRAM_ALLOWED_USERS › ", "4711");
    person.end();
    let written = dotenv(&hermetic);
    assert!(written.contains("ADDED_MEANWHILE=1\n"), "{written}");
    assert!(
        written.contains("TELEGRAM_ALLOWED_USERS=4711\n"),
        "{written}"
    );
    assert_eq!(fs::metadata(hermetic.path(".env")).unwrap().uid(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_asks_the_platform_about_the_account() {
    let server = TelegramServer::start().await.unwrap();
    let known = home(&server).variable("TELEGRAM_BOT_TOKEN", TOKEN);
    let report = known.run(&["doctor", "--json"]).json();
    assert_eq!(report["chats"][0]["name"], "@HermeticTestBot");
    assert_eq!(report["chats"][0]["works"], true);
    let unknown = home(&server).variable("TELEGRAM_BOT_TOKEN", "42:another");
    let ended = unknown.run(&["doctor"]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(ended.out.contains("FAILS   telegram"), "{}", ended.out);
    assert!(!ended.out.contains("42:another"), "{}", ended.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn from_nothing_to_a_bot_that_answers() {
    let telegram = TelegramServer::start().await.unwrap();
    let model = ScriptedServer::start([Reply::streams(&["ready"]), Reply::streams(&["Hello."])])
        .await
        .unwrap();
    let config = format!(
        "platforms: {{telegram: {{base_url: '{}'}}}}\n",
        telegram.url()
    );
    let hermetic = Hermetic::with(&config);
    if !hermetic.has_sandboxes("from_nothing_to_a_bot_that_answers") {
        return;
    }
    let mut person = AtTerminal::start(&hermetic, &["setup"]);
    person.answer("number, name or address › ", "opnerouter");
    person.answer("number, name or address › ", &model.base_url());
    person.answer("model › ", "some/model");
    person.answer("Does it need a key? [y/N] › ", "y");
    person.answer("not shown) › ", "sk-of-ada");
    person.answer("number or name › ", "telegram");
    person.answer("not shown) › ", TOKEN);
    person.answer("TELEGRAM_ALLOWED_USERS › ", "7");
    person.answer("nothing for none › ", "node, pyhton");
    person.answer("nothing for none › ", "python");
    person.answer("[y/N] › ", "n");
    let shown = person.end();
    assert!(shown.contains("no provider \"opnerouter\""), "{shown}");
    assert!(shown.contains("no preset is called pyhton"), "{shown}");
    assert!(shown.contains("it answers: ready"), "{shown}");
    assert!(shown.contains("@HermeticTestBot"), "{shown}");
    assert!(
        !shown.contains("sk-of-ada") && !shown.contains(TOKEN),
        "{shown}"
    );
    let expected =
        format!("OPENAI_API_KEY=sk-of-ada\nTELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS=7\n");
    assert_eq!(dotenv(&hermetic), expected);
    let written = fs::read_to_string(hermetic.path("config.yaml")).unwrap();
    assert!(written.starts_with(&config), "{written}");
    let rules = hermetic.run(&["egress", "rules"]).out;
    assert!(
        rules.contains("pypi.org") && !rules.contains("npmjs"),
        "{rules}"
    );
    let record = hermetic.run(&["audit", "list"]).out;
    assert!(record.contains("egress: allow pypi.org"), "{record}");
    let asked = model.received().remove(0);
    assert_eq!(asked.body["model"], "some/model");

    let (_gateway, _) = hermetic.gateway(&[]);
    telegram.says(7, "hi");
    let answered = telegram.wait_for("sendMessage", 1).await.remove(0);
    assert!(answered.params["text"].as_str().unwrap().contains("Hello"));

    // What is there stays, and the gateway that runs has read it.
    model.will_reply([Reply::streams(&["ready"])]);
    let mut person = AtTerminal::start(&hermetic, &["setup"]);
    person.answer("nothing for none › ", "");
    let shown = person.end();
    assert!(shown.contains("has read all of this"), "{shown}");
    assert!(
        shown.contains("some/model is set already and stays"),
        "{shown}"
    );
    assert_eq!(dotenv(&hermetic), expected);
    assert_eq!(
        fs::read_to_string(hermetic.path("config.yaml")).unwrap(),
        written
    );
}

/// Whom Hermes let in would be a stranger to this bot, without a word.
#[tokio::test(flavor = "multi_thread")]
async fn people_of_hermes_are_offered_and_taken_over_once() {
    let telegram = TelegramServer::start().await.unwrap();
    let ready = || Reply::streams(&["ready"]);
    let model = ScriptedServer::start([ready(), ready(), ready()])
        .await
        .unwrap();
    let config = format!(
        "model: {{default: m, base_url: '{}'}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n",
        model.base_url(),
        telegram.url()
    );
    let approved = r#"{"11": {"user_name": "Ada", "approved_at": 1750000000.0}}"#;
    let hermetic = Hermetic::with(&config)
        .file(
            ".env",
            &format!("OPENAI_API_KEY=sk\nTELEGRAM_BOT_TOKEN={TOKEN}\n"),
        )
        .file("pairing/telegram-approved.json", approved);
    if !hermetic.has_sandboxes("people_of_hermes_are_offered_and_taken_over_once") {
        return;
    }
    let waits = "not here yet: 1 person let in by a code";
    let unasked = hermetic.run(&["setup", "--non-interactive"]);
    assert_eq!(unasked.code, 0, "{}", unasked.err);
    assert!(unasked.out.contains(waits), "{}", unasked.out);
    assert!(!hermetic.run(&["pairing", "list"]).out.contains("11 (Ada)"));

    let mut person = AtTerminal::start(&hermetic, &["setup"]);
    person.answer("Take them over? [y/N] › ", "y");
    person.answer("nothing for none › ", "");
    person.answer("[y/N] › ", "n");
    assert!(person.end().contains(waits));
    assert!(hermetic.run(&["pairing", "list"]).out.contains("11 (Ada)"));
    let again = hermetic.run(&["setup", "--non-interactive"]);
    assert!(!again.out.contains("not here yet"), "{}", again.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_answer_is_not_written() {
    let refusal = serde_json::json!({"error": {"message": "no such key"}});
    let model = ScriptedServer::start([Reply::json(401, &refusal)])
        .await
        .unwrap();
    let hermetic = Hermetic::new().variable("OPENAI_API_KEY", "sk-wrong");
    if !hermetic.has_sandboxes("a_model_that_does_not_answer_is_not_written") {
        return;
    }
    let url = model.base_url();
    let arguments = [
        "setup",
        "--non-interactive",
        "--model",
        "m",
        "--base-url",
        &url,
    ];
    let ended = hermetic.run(&arguments);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(ended.err.contains("--unchecked"), "{}", ended.err);
    assert!(!ended.err.contains("sk-wrong"), "{}", ended.err);
    assert!(!hermetic.path("config.yaml").exists() && !hermetic.path(".env").exists());
    // Nobody listens any more; the operator says that it is right all the same.
    drop(model);
    let ended = hermetic.run(&[&arguments[..], &["--unchecked"]].concat());
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(dotenv(&hermetic).contains("sk-wrong"));
    assert_eq!(hermetic.run(&["config", "check"]).code, 0);
}

/// A person whose terminal it is.
struct AtTerminal {
    child: Child,
    screen: File,
    shown: String,
    /// How much of it stood there when the last answer was typed.
    answered: usize,
}

impl AtTerminal {
    fn start(hermetic: &Hermetic, arguments: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let name = name.to_str().unwrap();
        let theirs = || Stdio::from(File::options().read(true).write(true).open(name).unwrap());
        let child = hermetic
            .command(arguments)
            .stdin(theirs())
            .stdout(theirs())
            .stderr(theirs())
            .spawn()
            .unwrap();
        Self {
            child,
            screen: File::from(keys),
            shown: String::new(),
            answered: 0,
        }
    }

    /// Types an answer when the question is on the screen.
    fn answer(&mut self, question: &str, answer: &str) {
        self.until(question);
        self.answered = self.shown.len();
        writeln!(self.screen, "{answer}").unwrap();
    }

    /// Waits until the words are on the screen.
    fn until(&mut self, words: &str) {
        while !self.shown[self.answered..].contains(words) {
            assert!(self.read(), "{}", self.shown);
        }
    }

    /// Everything that was on the screen.
    fn end(mut self) -> String {
        while self.read() {}
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.shown);
        std::mem::take(&mut self.shown)
    }

    /// Whether there was more; a terminal that everybody left answers with an error.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 1024];
        match self.screen.read(&mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.shown
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
                true
            }
        }
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
