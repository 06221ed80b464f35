//! `hermetic setup` where a package is installed, and what it asks of systemd, which is a stand-in here.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hermetic_testkit::model::{Reply, ScriptedServer};
use hermetic_testkit::telegram::{TOKEN, TelegramServer};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hermetic");

/// A folder with programs that only write down what they were asked.
struct StandIns {
    folder: TempDir,
}

impl StandIns {
    fn of(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let all = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), all.clone()).unwrap();
        let asked = folder.path().join("asked");
        fs::write(&asked, "").unwrap();
        fs::set_permissions(&asked, fs::Permissions::from_mode(0o666)).unwrap();
        for name in names {
            let path = folder.path().join(name);
            let text = format!("#!/bin/sh\necho {name} \"$@\" >>{}\n", asked.display());
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, all.clone()).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> String {
        format!(
            "{}:/usr/sbin:/usr/bin:/sbin:/bin",
            self.folder.path().display()
        )
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.folder.path().join("asked")).unwrap()
    }
}

/// A machine with the package, in a mount namespace: its unit, its user and its home.
const PACKAGED: &str = r#"
mount --make-rprivate /
mount -t tmpfs none /usr/lib/systemd/system
cp "$LAB/units/"* /usr/lib/systemd/system/
mount -t tmpfs none /var/lib
mount --bind "$LAB/passwd" /etc/passwd
install -d -m 700 -o 54321 -g 54321 /var/lib/hermetic /var/lib/hermetic/.hermes
install -m 600 -o 54321 -g 54321 "$LAB/config.yaml" /var/lib/hermetic/.hermes/config.yaml
"$@"
echo "ended with $?"
find /var/lib/hermetic -not -uid 54321 -printf 'of somebody else: %p\n'
cat /var/lib/hermetic/.hermes/.env
"#;

/// Commands run on the host here: what a sandbox needs is no part of this.
fn config(telegram: &TelegramServer) -> String {
    format!(
        "gateway: {{terminal_backend: local}}\nplatforms: {{telegram: {{base_url: '{}'}}}}\n",
        telegram.url()
    )
}

struct PackagedMachine {
    lab: TempDir,
    home_of_root: TempDir,
    systemd: StandIns,
}

impl PackagedMachine {
    fn with(config: &str) -> Self {
        let lab = tempfile::tempdir().unwrap();
        let users = "root:x:0:0:root:/root:/bin/sh\n\
                     hermetic:x:54321:54321::/var/lib/hermetic:/usr/sbin/nologin\n";
        fs::write(lab.path().join("passwd"), users).unwrap();
        fs::set_permissions(lab.path().join("passwd"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(lab.path().join("config.yaml"), config).unwrap();
        let home_of_root = tempfile::tempdir().unwrap();
        let units = Command::new(PROGRAM)
            .args(["gateway", "packaged-units"])
            .arg(lab.path().join("units"))
            .env_clear()
            .env("HOME", lab.path())
            .output()
            .unwrap();
        assert!(units.status.success(), "{units:?}");
        Self {
            lab,
            home_of_root,
            systemd: StandIns::of(&["systemctl"]),
        }
    }

    fn run(&self, arguments: &[&str]) -> (String, Output) {
        self.run_all(&[&[PROGRAM], arguments].concat())
    }

    /// A script there, to which the program is `$0`.
    fn run_script(&self, script: &str) -> (String, Output) {
        self.run_all(&["sh", "-uc", script, PROGRAM])
    }

    fn run_all(&self, words: &[&str]) -> (String, Output) {
        let ended = Command::new("unshare")
            .args(["--mount", "sh", "-uc", PACKAGED, "sh"])
            .args(words)
            .env_clear()
            .env("LAB", self.lab.path())
            .env("PATH", self.systemd.path())
            .env("HOME", self.home_of_root.path())
            .env("TELEGRAM_BOT_TOKEN", TOKEN)
            .env("OPENAI_API_KEY", "sk-of-ada")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (String::from_utf8_lossy(&ended.stdout).into_owned(), ended)
    }
}

fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!(
            "SKIP: {test}: a machine with the package needs a mount namespace, and that needs root"
        );
    }
    is_root
}

#[tokio::test(flavor = "multi_thread")]
async fn roots_setup_is_that_of_the_packages_user() {
    if !is_root("roots_setup_is_that_of_the_packages_user") {
        return;
    }
    let telegram = TelegramServer::start().await.unwrap();
    let model = ScriptedServer::start([Reply::streams(&["ready"])])
        .await
        .unwrap();
    let machine = PackagedMachine::with(&config(&telegram));
    let url = model.base_url();
    let (said, ended) = machine.run(&[
        "setup",
        "--non-interactive",
        "--model",
        "m",
        "--base-url",
        &url,
        "--platform",
        "telegram",
        "--allow",
        "7",
        "--start",
    ]);
    assert!(said.contains("ended with 0"), "{said}\n{ended:?}");
    assert!(said.contains("is the user hermetic"), "{said}");
    assert!(!said.contains("of somebody else"), "{said}");
    let written =
        format!("OPENAI_API_KEY=sk-of-ada\nTELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOWED_USERS=7\n");
    assert!(said.ends_with(&written), "{said}");
    // One way to run it is told, and it is the package's.
    assert!(
        said.contains("Write to your bot.") && !said.contains("gateway start"),
        "{said}"
    );
    let asked = machine.systemd.asked();
    for words in [
        "enable hermetic-gateway.service",
        "restart hermetic-gateway.service",
    ] {
        assert!(asked.contains(words), "{asked}");
    }
    assert_eq!(
        fs::read_dir(machine.home_of_root.path()).unwrap().count(),
        0
    );
}

/// Asked as the package's user, who starts nothing: one way is told, and it is root's.
#[tokio::test(flavor = "multi_thread")]
async fn the_packages_user_is_told_what_root_does() {
    if !is_root("the_packages_user_is_told_what_root_does") {
        return;
    }
    let telegram = TelegramServer::start().await.unwrap();
    let machine = PackagedMachine::with(&config(&telegram));
    let setup = "exec setpriv --reuid 54321 --regid 54321 --clear-groups \"$0\" \
                 --home /var/lib/hermetic/.hermes setup --non-interactive --platform telegram --start";
    let (said, ended) = machine.run_script(setup);
    assert!(said.contains("ended with 0"), "{said}\n{ended:?}");
    assert!(
        said.contains("sudo systemctl enable --now hermetic-gateway"),
        "{said}"
    );
    assert!(!said.contains("gateway start"), "{said}");
    assert!(
        !machine.systemd.asked().contains("enable"),
        "{}",
        machine.systemd.asked()
    );
}

#[test]
fn roots_migration_goes_into_the_packages_home() {
    if !is_root("roots_migration_goes_into_the_packages_home") {
        return;
    }
    let machine = PackagedMachine::with("gateway: {terminal_backend: local}\n");
    let theirs = tempfile::tempdir().unwrap();
    let text = "TELEGRAM_BOT_TOKEN=1:of-hermes\n";
    for (name, text) in [(".env", text), ("SOUL.md", "You are a pirate.\n")] {
        fs::write(theirs.path().join(name), text).unwrap();
        give(&theirs.path().join(name), 1000);
    }
    give(theirs.path(), 1000);
    let from = theirs.path().to_str().unwrap();
    let (said, ended) = machine.run(&["migrate", "--from", from, "--apply"]);
    assert!(said.contains("ended with 0"), "{said}\n{ended:?}");
    assert!(
        said.contains("to /var/lib/hermetic/.hermes/SOUL.md"),
        "{said}"
    );
    assert!(
        said.contains("sudo systemctl enable --now hermetic-gateway"),
        "{said}"
    );
    assert!(!said.contains("of somebody else"), "{said}");
    assert!(said.ends_with(text), "{said}");
    assert_eq!(
        fs::read_dir(machine.home_of_root.path()).unwrap().count(),
        0
    );
}

/// A unit in `/etc` under the package's name would be read in place of the package's.
#[test]
fn a_gateway_of_roots_own_does_not_hide_the_packages() {
    if !is_root("a_gateway_of_roots_own_does_not_hide_the_packages") {
        return;
    }
    let machine = PackagedMachine::with("gateway: {terminal_backend: local}\n");
    fs::create_dir(machine.home_of_root.path().join(".hermes")).unwrap();
    let (said, ended) = machine.run(&["gateway", "install", "--dry-run"]);
    assert!(said.contains("# hermetic-gateway-"), "{said}\n{ended:?}");
    assert!(!said.contains("# hermetic-gateway.service"), "{said}");
}

fn give(path: &Path, to: u32) -> PathBuf {
    chown(path, Some(to), Some(to)).unwrap();
    path.to_owned()
}

/// Whether the user table has a name for us, and systemd keeps nothing of ours running yet.
fn may_be_offered(user: u32) -> bool {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(user)).then(|| fields[0].to_owned())
    });
    name.is_some_and(|name| !Path::new("/var/lib/systemd/linger").join(name).exists())
}

/// A user's own systemd ends with the last session, and the bot with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_of_ones_own_goes_on_when_one_logs_out() {
    let test = "a_service_of_ones_own_goes_on_when_one_logs_out";
    let own = rustix::process::geteuid();
    // Root's would be a unit of the machine.
    let user = match own.is_root() {
        true => 65534,
        false => own.as_raw(),
    };
    if !may_be_offered(user) {
        eprintln!("SKIP: {test}: user {user} has no name, or goes on already");
        return;
    }
    let telegram = TelegramServer::start().await.unwrap();
    let model = ScriptedServer::start([Reply::streams(&["ready"])])
        .await
        .unwrap();
    let programs = StandIns::of(&["systemctl", "loginctl"]);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("config.yaml"), config(&telegram)).unwrap();
    let url = model.base_url();
    let mut setup = Command::new(PROGRAM);
    setup
        .args([
            "setup",
            "--non-interactive",
            "--model",
            "m",
            "--base-url",
            &url,
        ])
        .args(["--platform", "telegram", "--start"])
        .env_clear()
        .env("PATH", programs.path())
        .env("HOME", folder.path())
        .env("HERMES_HOME", &home)
        .env("TELEGRAM_BOT_TOKEN", TOKEN)
        .env("OPENAI_API_KEY", "sk")
        .stdin(Stdio::null());
    if own.is_root() {
        give(folder.path(), user);
        give(&give(&home, user).join("config.yaml"), user);
        setup.uid(user).gid(user);
    }
    let ended = setup.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{said}\n{ended:?}");
    assert!(said.contains("it goes on when you log out"), "{said}");
    let asked = programs.asked();
    assert!(asked.contains("loginctl enable-linger"), "{asked}");
    assert!(asked.contains("--user start hermetic-gateway"), "{asked}");
}
