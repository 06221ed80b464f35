//! `hermetic migrate`: a whole Hermes home, read and never written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::hermetic::Hermetic;

const CONFIG: &str = "\
_config_version: 33
model: {default: some/model, provider: auto, base_url: 'http://127.0.0.1:9/v1'}
terminal: {backend: local, timeout: 180}
compression: {enabled: true, threshold: 0.5}
memory: {memory_enabled: true, user_profile_enabled: true}
hooks: {}
voice: {enabled: false}
mcp_servers: {files: {command: npx}, issues: {url: 'http://127.0.0.1:9'}}
quick_commands: {}
command_allowlist: ['recursive delete']
telegram: {reactions: true}
email: {enabled: true}
";

const DOTENV: &str = "\
OPENAI_API_KEY=sk-of-hermes
TELEGRAM_BOT_TOKEN=42:of-hermes
TELEGRAM_ALLOWED_USERS=11,22
MATTERMOST_URL=https://chat.example
FAL_KEY=x
";

/// A home that Hermes was used in, without a line of ours.
fn hermes_home() -> Hermetic {
    let home = Hermetic::with(CONFIG).file(".env", DOTENV);
    let put = |name: &str, text: &str| {
        let path = home.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let approved = json!({
        "11": {"user_name": "Ada", "approved_at": 1_750_000_000.5},
        "33": {"user_name": "Eve\u{1b}[2J", "approved_at": 1_750_000_001.0},
    });
    put("pairing/telegram-approved.json", &approved.to_string());
    put(
        "pairing/telegram-pending.json",
        &json!({"hash": {"user_id": "44", "created_at": 1.0}}).to_string(),
    );
    put("pairing/_rate_limits.json", "{}");
    put(
        "platforms/pairing/discord-approved.json",
        &json!({"55": {"user_name": "Bob", "approved_at": 1_750_000_002.0}}).to_string(),
    );
    put("pairing/slack-approved.json", "{ this is cut of");
    put("pairing/mattermost-approved.json", "{\"x\": {}}");
    put("SOUL.md", "You are a pirate.\n");
    put(
        "memories/MEMORY.md",
        "the server is in the cellar\n§\nit is loud\n",
    );
    put("memories/USER.md", "is called Ada\n");
    put("skills/dev/review/SKILL.md", "---\nname: review\n---\n");
    put("skills/notes/SKILL.md", "---\nname: notes\n---\n");
    put(
        "cron/jobs.json",
        &json!({"jobs": [
            {"id": "1", "name": "morning", "enabled": true, "prompt": "news", "deliver": "origin",
             "schedule": {"kind": "cron", "expr": "0 9 * * *"},
             "origin": {"platform": "telegram", "chat_id": "11"}},
            {"id": "2", "name": "evening", "enabled": false, "prompt": "news",
             "schedule": {"kind": "interval", "minutes": 60}},
        ]})
        .to_string(),
    );
    put("hooks/greet/HOOK.yaml", "events: [session:start]\n");
    put("auth.json", "{\"providers\": {\"nous\": {}}}");
    put("state.db", "");
    put("profiles/work/config.yaml", "");
    home
}

/// Every file with what is in it, but for what is ours.
fn all_files(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path == root.join("hermetic") {
                continue;
            }
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let mode = entry.metadata().unwrap().permissions().mode();
                    files.insert(path.clone(), (fs::read(&path).unwrap(), mode));
                }
            }
        }
    }
    files
}

/// The job of a private chat came along, and can be seen, paused and removed.
fn has_the_job_once(hermetic: &Hermetic) {
    let listed = hermetic.run(&["cron", "list", "--json"]).json();
    let jobs = listed["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1, "{listed}");
    assert_eq!(jobs[0]["job_id"], "hermes-1");
    assert_eq!(jobs[0]["person"], "telegram:11");
    assert_eq!(jobs[0]["state"], "scheduled");
    for (arguments, code, said) in [
        ("pause morning", 0, "paused"),
        ("run morning", 1, "is paused or has ended"),
        ("resume herm", 0, "resumed"),
        ("show morning", 0, "0 9 * * *"),
        ("create --for telegram:99 1h look", 1, "has not written"),
        ("create --for telegram:11 soon look", 1, "is no schedule"),
        ("remove nothing", 1, "there is no job"),
        ("remove morning", 0, "removed"),
    ] {
        let words: Vec<_> = std::iter::once("cron")
            .chain(arguments.split(' '))
            .collect();
        let ended = hermetic.run(&words);
        assert_eq!(
            ended.code, code,
            "{arguments:?}: {}{}",
            ended.out, ended.err
        );
        let all = format!("{}{}", ended.out, ended.err);
        assert!(all.contains(said), "{arguments:?}: {all}");
    }
    assert!(
        hermetic
            .run(&["cron", "list"])
            .out
            .contains("nobody has a job")
    );
}

fn paired(hermetic: &Hermetic) -> Value {
    let json = hermetic.run(&["pairing", "list", "--json"]).json();
    let ids = |platform: &str| {
        let approved = json[platform]["approved"].as_array().unwrap().clone();
        let ids = approved.iter().map(|one| one["user"].clone());
        ids.collect::<Vec<_>>()
    };
    json!({"telegram": ids("telegram"), "discord": ids("discord")})
}

#[test]
fn a_whole_home_is_told_what_works_differs_and_is_lost() {
    let hermetic = hermes_home();
    let before = all_files(&hermetic.path(""));
    let ended = hermetic.run(&["migrate"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    insta::assert_snapshot!(ended.out);
    assert_eq!(before, all_files(&hermetic.path("")));
    assert!(
        !hermetic.path("hermetic").exists(),
        "looking makes no installation"
    );
}

#[test]
fn applying_copies_people_once_and_writes_nothing_of_hermes() {
    let hermetic = hermes_home();
    let before = all_files(&hermetic.path(""));
    let ended = hermetic.run(&["migrate", "--apply"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("Nothing of Hermes' was changed"));
    let people = json!({"telegram": ["11", "33"], "discord": ["55"]});
    assert_eq!(paired(&hermetic), people);
    let list = hermetic.run(&["pairing", "list"]).out;
    assert!(list.contains("Eve") && !list.contains('\u{1b}'), "{list:?}");
    assert_eq!(before, all_files(&hermetic.path("")));
    // What happened is on record, and once.
    let recorded = || {
        let record = hermetic.run(&["audit", "show", "--json"]).out;
        record.matches("hermetic migrate").count()
    };
    assert_eq!(recorded(), 3);
    assert_eq!(hermetic.run(&["migrate", "--apply"]).code, 0);
    has_the_job_once(&hermetic);
    assert_eq!((recorded(), paired(&hermetic)), (3, people));
}

#[test]
fn a_home_of_ones_own_is_given_the_configuration_and_keeps_what_it_has() {
    let theirs = hermes_home();
    let before = all_files(&theirs.path(""));
    let ours = Hermetic::new();
    let from = theirs.path("");
    let arguments = ["migrate", "--from", from.to_str().unwrap(), "--apply"];
    let ended = ours.run(&arguments);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(
        fs::read_to_string(ours.path("config.yaml")).unwrap(),
        CONFIG
    );
    assert_eq!(fs::read_to_string(ours.path(".env")).unwrap(), DOTENV);
    let mode = fs::metadata(ours.path(".env"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(paired(&ours)["telegram"], json!(["11", "33"]));
    let copied = [
        "SOUL.md",
        "memories/MEMORY.md",
        "memories/USER.md",
        "skills/dev/review/SKILL.md",
        "skills/notes/SKILL.md",
    ];
    for name in copied {
        let ours = fs::read(ours.path(name)).unwrap();
        assert_eq!(ours, fs::read(theirs.path(name)).unwrap(), "{name}");
    }
    // Ours now: a second time changes nothing.
    fs::write(ours.path("config.yaml"), "model: mine\n").unwrap();
    fs::write(ours.path("SOUL.md"), "You are a parrot.\n").unwrap();
    fs::remove_dir_all(ours.path("skills/dev")).unwrap();
    let ended = ours.run(&arguments);
    for name in ["config.yaml", "SOUL.md", "memories", "skills"] {
        let line = format!("~/.hermes/{name} is there already and stays as it is");
        assert!(ended.out.contains(&line), "{name}: {}", ended.out);
    }
    assert!(!ended.out.contains("is the head of what"), "{}", ended.out);
    let soul = fs::read_to_string(ours.path("SOUL.md")).unwrap();
    assert_eq!(soul, "You are a parrot.\n");
    assert!(!ours.path("skills/dev").exists());
    assert_eq!(
        fs::read_to_string(ours.path("config.yaml")).unwrap(),
        "model: mine\n"
    );
    assert_eq!(before, all_files(&theirs.path("")));
}

/// The user of a package, and a person whose folder nobody else may read.
const BOT: u32 = 65534;
const ADA: u32 = 54321;

fn give(path: &Path, to: u32) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            give(&entry.path(), to);
        }
    }
    std::os::unix::fs::lchown(path, Some(to), Some(to)).unwrap();
}

#[test]
fn root_takes_a_persons_home_over_into_that_of_a_package() {
    let test = "root_takes_a_persons_home_over_into_that_of_a_package";
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIP: {test}: only root works for somebody else");
        return;
    }
    let theirs = hermes_home();
    give(&theirs.path(""), ADA);
    // What root can read and she cannot.
    let secret = theirs.path("skills/notes/shadow");
    fs::write(&secret, "of root").unwrap();
    std::os::unix::fs::symlink("/etc/shadow", theirs.path("skills/notes/link")).unwrap();
    let before = all_files(&theirs.path(""));
    let moment = tempfile::tempdir().unwrap();
    fs::set_permissions(moment.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let ours = Hermetic::new().variable("TMPDIR", moment.path().to_str().unwrap());
    // As the package leaves it.
    assert_eq!(ours.run(&["config", "init"]).code, 0);
    give(&ours.path(""), BOT);

    let from = theirs.path("");
    let arguments = ["migrate", "--from", from.to_str().unwrap(), "--apply"];
    let ended = ours.run(&arguments);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    for why in ["shadow: it belongs to somebody else", "link: it is a link"] {
        assert!(ended.out.contains(why), "{why}: {}", ended.out);
    }
    let config = fs::read_to_string(ours.path("config.yaml")).unwrap();
    assert_eq!(config, CONFIG);
    assert!(ours.path("skills/notes/SKILL.md").is_file());
    let skill = fs::read_dir(ours.path("skills/notes")).unwrap();
    assert_eq!(skill.count(), 1);
    for path in all_files(&ours.path("")).into_keys() {
        let owner = fs::metadata(&path).unwrap().uid();
        assert_eq!(owner, BOT, "{}", path.display());
    }
    let mut list = ours.command(&["pairing", "list"]);
    let list = list.uid(BOT).gid(BOT).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("33"), "{list}");
    assert_eq!(before, all_files(&theirs.path("")));
    assert_eq!(fs::read_dir(moment.path()).unwrap().count(), 0);
    // It is that user's from now on, and a second time changes nothing.
    let again = ours.run(&arguments);
    assert_eq!(again.code, 0, "{}", again.err);
    assert!(
        again.out.contains("config.yaml is there already"),
        "{}",
        again.out
    );
}

/// Something that lives, for a test to write down as a gateway.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("600").stdin(Stdio::null()).spawn().unwrap())
    }

    /// As Hermes writes of itself.
    fn record(&self) -> Value {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let since = stat.split_whitespace().nth(21).unwrap();
        json!({
            "pid": self.0.id(),
            "kind": "hermes-gateway",
            "argv": ["hermes", "gateway", "run"],
            "start_time": since.parse::<u64>().unwrap(),
        })
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_gateway_of_hermes_that_runs_is_named() {
    let hermetic = hermes_home();
    let mut gateway = Sleeper::start();
    let record = gateway.record().to_string();
    fs::write(hermetic.path("gateway.pid"), &record).unwrap();
    fs::write(hermetic.path("gateway_state.json"), &record).unwrap();
    let ended = hermetic.run(&["migrate", "--json"]);
    assert_eq!(ended.code, 1);
    let gateways = ended.json()["gateways"].clone();
    assert_eq!(gateways, json!([{"pid": gateway.0.id(), "platform": null}]));
    let first = ended.json()["findings"][0].clone();
    assert_eq!(first["verdict"], "first");
    assert!(
        first["remedy"]
            .as_str()
            .unwrap()
            .contains("hermes gateway stop")
    );
    // The files stay when it is gone, and then mean nothing.
    gateway.0.kill().unwrap();
    gateway.0.wait().unwrap();
    assert_eq!(hermetic.run(&["migrate"]).code, 0);
}

#[test]
fn a_gateway_elsewhere_that_holds_our_token_is_named() {
    let locks = tempfile::tempdir().unwrap();
    let folder = locks.path().to_str().unwrap();
    let hermetic = hermes_home().variable("HERMES_GATEWAY_LOCK_DIR", folder);
    let gateway = Sleeper::start();
    // The first half of the SHA-256 of the token in `DOTENV`.
    let lock = locks
        .path()
        .join("telegram-bot-token-d25479f54f535807.lock");
    fs::write(lock, gateway.record().to_string()).unwrap();
    let ended = hermetic.run(&["migrate", "--json"]);
    let gateways = ended.json()["gateways"].clone();
    assert_eq!(
        gateways,
        json!([{"pid": gateway.0.id(), "platform": "telegram"}])
    );
    assert!(!ended.out.contains("of-hermes"), "{}", ended.out);
}

/// Of WhatsApp by a bridge nobody has a token: it is the session's folder that two must not share.
#[test]
fn a_gateway_that_holds_our_whatsapp_session_is_named() {
    let locks = tempfile::tempdir().unwrap();
    let folder = locks.path().to_str().unwrap();
    let config = "platforms: {whatsapp: {enabled: true}}\n";
    let hermetic = hermes_home()
        .file("config.yaml", config)
        .variable("HERMES_GATEWAY_LOCK_DIR", folder);
    let gateway = Sleeper::start();
    let session = hermetic.path("platforms/whatsapp/session");
    let hash = Sha256::digest(session.to_str().unwrap());
    let hash: String = hash
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let lock = locks.path().join(format!("whatsapp-session-{hash}.lock"));
    fs::write(lock, gateway.record().to_string()).unwrap();
    let gateways = hermetic.run(&["migrate", "--json"]).json()["gateways"].clone();
    let named = json!([{"pid": gateway.0.id(), "platform": "whatsapp"}]);
    assert_eq!(gateways, named);
}

#[test]
fn a_configuration_with_mistakes_is_told_and_the_rest_is_looked_at() {
    let hermetic = hermes_home().file("config.yaml", "terminal: {bakend: docker}\n");
    let ended = hermetic.run(&["migrate"]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(ended.out.contains("config check"), "{}", ended.out);
    assert!(
        ended.out.contains("jobs on a schedule: 1 (morning)"),
        "{}",
        ended.out
    );
    // Nobody is let in by a configuration that nobody can read.
    assert_eq!(hermetic.run(&["migrate", "--apply"]).code, 78);
}

#[test]
fn a_folder_of_somebody_else_is_no_hermes_home() {
    let ended = Hermetic::new().run(&["migrate"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("holds nothing of Hermes"),
        "{}",
        ended.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_was_paired_with_hermes_is_let_in_at_once() {
    let server = TelegramServer::start().await.unwrap();
    let config = format!(
        "platforms: {{telegram: {{base_url: '{}'}}}}\n",
        server.url()
    );
    let hermetic = hermes_home()
        .file("config.yaml", &config)
        .file(".env", &format!("TELEGRAM_BOT_TOKEN={TOKEN}\n"));
    if !hermetic.has_sandboxes("somebody_who_was_paired_with_hermes_is_let_in_at_once") {
        return;
    }
    assert_eq!(hermetic.run(&["migrate", "--apply"]).code, 0);
    let (_gateway, _) = hermetic.gateway(&[]);
    server.says(33, "/sh echo let in");
    let answered = server.wait_for("sendMessage", 1).await.remove(0);
    let text = answered.params["text"].as_str().unwrap();
    assert!(text.contains("let in"), "{text}");
}
