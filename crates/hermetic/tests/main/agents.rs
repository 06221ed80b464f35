//! Somebody else's agents: installed, checked, removed, and driven in a sandbox.

mod chat;
mod driver;
mod model;
mod real;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, Signal, kill_process};

use crate::hermetic::Hermetic;

/// Where the preset looks for its program.
const PROGRAM: &str = "node_modules/opencode-linux-x64-baseline/bin/opencode";

/// An agent that says no more than hello, and nothing if it could change itself.
const SMALL_AGENT: &str = r#"#!/bin/sh
if touch "$0" 2>/dev/null; then exit 7; fi
if [ "$OPENCODE_DISABLE_AUTOUPDATE" != 1 ]; then exit 8; fi
read -r question
echo 'not a message'
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
cat > /dev/null
"#;

/// A home, with an npm that does this in the folder it is started in.
fn with_npm(script: &str) -> Hermetic {
    let hermetic = Hermetic::new();
    let tools = hermetic.path("tools");
    fs::create_dir(&tools).unwrap();
    let npm = tools.join("npm");
    fs::write(&npm, format!("#!/bin/sh\nset -e\n{script}\n")).unwrap();
    fs::set_permissions(&npm, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", tools.display());
    hermetic.variable("PATH", &path)
}

fn fetching(agent: &str) -> String {
    format!(
        "mkdir -p $(dirname {PROGRAM}); cat > {PROGRAM} <<'AGENT'\n{agent}AGENT\nchmod +x {PROGRAM}"
    )
}

#[test]
fn an_agent_is_installed_checked_in_a_sandbox_and_removed() {
    let hermetic = with_npm(&fetching(SMALL_AGENT));
    if !hermetic.has_sandboxes("an_agent_is_installed_checked_in_a_sandbox_and_removed") {
        return;
    }
    let run = |words: &[&str]| hermetic.run(&[&["agents"], words].concat());
    let installed = run(&["install", "opencode"]);
    assert_eq!(installed.code, 0, "{}", installed.err);
    assert!(
        installed.out.starts_with("opencode 1.18.33: "),
        "{}",
        installed.out
    );
    let listed = run(&["list", "--json"]).json();
    let row = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "opencode");
    let row = row.unwrap();
    assert_eq!(row["installed"]["version"], "1.18.33", "{listed}");
    assert!(
        row["missing"].as_str().unwrap().contains("A subscription"),
        "{listed}"
    );

    // It sees its folder, and cannot write there.
    let checked = run(&["check"]);
    assert_eq!(checked.code, 0, "{} {}", checked.out, checked.err);
    assert!(
        checked.out.contains("version 1 of the protocol"),
        "{}",
        checked.out
    );
    assert!(
        hermetic
            .run(&["sandbox", "list", "--json"])
            .json()
            .as_array()
            .unwrap()
            .is_empty()
    );

    // One that somebody changed is not even started.
    let program = hermetic.path("hermetic/agents/opencode/tree").join(PROGRAM);
    let agent = fs::read_to_string(&program).unwrap();
    fs::write(&program, agent + "# changed\n").unwrap();
    let checked = run(&["check", "opencode"]);
    assert_eq!(checked.code, 1, "{}", checked.out);
    assert!(
        checked.out.contains("1 changed") && !checked.out.contains("start"),
        "{}",
        checked.out
    );
    assert_eq!(run(&["update"]).code, 0);
    assert_eq!(run(&["check", "--no-start"]).code, 0);

    assert_eq!(run(&["remove", "opencode"]).out, "opencode removed\n");
    assert_eq!(run(&["check", "opencode"]).code, 1);
    assert!(!hermetic.path("hermetic/agents/opencode").exists());
}

#[test]
fn one_that_does_not_answer_fails_its_check() {
    let agent = "#!/bin/sh\necho 'I need a library' >&2\nexit 3\n";
    let hermetic = with_npm(&fetching(agent));
    if !hermetic.has_sandboxes("one_that_does_not_answer_fails_its_check") {
        return;
    }
    assert_eq!(hermetic.run(&["agents", "install", "opencode"]).code, 0);
    let checked = hermetic.run(&["agents", "check", "opencode"]);
    assert_eq!(checked.code, 1, "{}", checked.out);
    assert!(checked.out.contains("I need a library"), "{}", checked.out);
}

#[test]
fn without_npm_it_says_what_to_type() {
    let hermetic = Hermetic::new().variable("PATH", "/nonexistent");
    let ended = hermetic.run(&["agents", "install", "claude"]);
    assert_eq!(ended.code, 1);
    insta::assert_snapshot!(ended.err, @r"
    error: claude was not installed: npm is not on this machine
      = install it: `apt install npm`, `dnf install nodejs-npm` or `apk add npm`; it is needed for installing and for nothing else
    ");
    let unknown = hermetic.run(&["agents", "install", "clade"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("claude, codex"), "{}", unknown.err);
}

/// What npm still writes is nobody's, and the next one waits until it has ended.
#[test]
fn who_is_killed_leaves_nothing_that_is_used() {
    let hermetic = with_npm(
        "if [ -e $HOME/first ]; then rm $HOME/first; echo begun > $HOME/begun; cat $HOME/go; exit 0; fi\n\
         mkdir -p $(dirname PROGRAM); echo second > PROGRAM"
            .replace("PROGRAM", PROGRAM)
            .as_str(),
    );
    let home = hermetic.path("tools").display().to_string();
    let hermetic = hermetic.variable("HOME", &home);
    let at = |name: &str| hermetic.path("tools").join(name);
    fs::write(at("first"), "").unwrap();
    for name in ["begun", "go"] {
        mkfifoat(CWD, at(name), Mode::from_raw_mode(0o600)).unwrap();
    }
    let install = || {
        let mut command = hermetic.command(&["agents", "install", "opencode"]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut first = install();
    BufReader::new(File::open(at("begun")).unwrap())
        .read_line(&mut String::new())
        .unwrap();
    kill_process(Pid::from_child(&first), Signal::KILL).unwrap();
    first.wait().unwrap();

    let lock = File::open(hermetic.path("hermetic/agents/lock")).unwrap();
    assert!(lock.try_lock().is_err(), "npm lives, and the lock is free");
    assert!(!hermetic.path("hermetic/agents/opencode").exists());
    let mut second = install();
    // It waits for the lock; nothing but the end of the first one's npm frees that.
    fs::write(at("go"), "").unwrap();
    let mut said = String::new();
    second
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(second.wait().unwrap().success(), "{said}");
    let program = hermetic.path("hermetic/agents/opencode/tree").join(PROGRAM);
    assert_eq!(fs::read_to_string(program).unwrap(), "second\n");
    assert!(!hermetic.path("hermetic/agents/.staging-opencode").exists());
}
