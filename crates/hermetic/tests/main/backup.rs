//! `hermetic backup` and `hermetic restore`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hermetic_testkit::model::Reply;
use sha2::{Digest as _, Sha256};

use crate::flow::lab::{ALICE, Lab};
use crate::hermetic::Hermetic;

const CONFIG: &str = "model: {default: m, base_url: 'http://127.0.0.1:9/v1'}\n";

/// A home with something in everything that is packed.
fn used_home() -> Hermetic {
    let hermetic = Hermetic::with(CONFIG).file(".env", "OPENAI_API_KEY=sk-1\n");
    let approved = r#"{"11": {"user_name": "Ada", "approved_at": 1750000000.0}}"#;
    fs::create_dir(hermetic.path("pairing")).unwrap();
    fs::write(hermetic.path("pairing/telegram-approved.json"), approved).unwrap();
    assert_eq!(hermetic.run(&["migrate", "--apply"]).code, 0);
    assert_eq!(hermetic.run(&["egress", "allow", "pypi.org"]).code, 0);
    hermetic
}

fn backup(hermetic: &Hermetic, to: &Path) -> PathBuf {
    let file = to.join("backup.tar");
    let ended = hermetic.run(&["backup", file.to_str().unwrap()]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    file
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn installation(hermetic: &Hermetic) -> String {
    fs::read_to_string(hermetic.path("hermetic/installation")).unwrap()
}

#[test]
fn what_was_backed_up_is_there_in_another_home() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    let file = backup(&one, folder.path());
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(names_in(folder.path()), ["backup.tar"]);
    let name = installation(&one);
    // The first machine is gone.
    fs::rename(one.path("hermetic"), one.path("away")).unwrap();

    let other = Hermetic::new();
    let file = file.to_str().unwrap();
    let ended = other.run(&["restore", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(installation(&other), name);
    assert_eq!(
        fs::read_to_string(other.path("config.yaml")).unwrap(),
        CONFIG
    );
    for (path, mode) in [
        (".env", 0o600),
        ("hermetic", 0o700),
        ("hermetic/audit.key", 0o600),
    ] {
        let is = fs::metadata(other.path(path)).unwrap().permissions().mode();
        assert_eq!(is & 0o777, mode, "{path}");
    }
    assert!(other.run(&["pairing", "list"]).out.contains("11 (Ada)"));
    assert!(other.run(&["egress", "rules"]).out.contains("pypi.org"));
    let verified = other.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    assert_eq!(
        names_in(&other.path("")),
        [".env", "config.yaml", "hermetic"]
    );
}

/// Everything by which the bot is who it is, and not only what it did.
const WRITTEN_FOR_THE_AGENT: [(&str, &str); 8] = [
    ("SOUL.md", "You are a pirate.\n"),
    ("models.txt", "m 20000 - -\n"),
    ("modal_snapshots.json", "{}"),
    ("memories/MEMORY.md", "the server is in the cellar\n"),
    ("memories/USER.md", "is called Ada\n"),
    ("skills/dev/review/SKILL.md", "---\nname: review\n---\n"),
    ("hermetic/skills/notes/SKILL.md", "---\nname: notes\n---\n"),
    ("hermetic/mcp-logins/issues.json", "{\"token\": \"t\"}"),
];

#[test]
fn what_was_written_for_the_agent_goes_along() {
    let one = used_home();
    let put = |name: &str, text: &str| {
        fs::create_dir_all(one.path(name).parent().unwrap()).unwrap();
        fs::write(one.path(name), text).unwrap();
    };
    for (name, text) in WRITTEN_FOR_THE_AGENT {
        put(name, text);
    }
    let script = "skills/dev/review/scripts/run.sh";
    put(script, "#!/bin/sh\n");
    fs::set_permissions(one.path(script), fs::Permissions::from_mode(0o6775)).unwrap();
    let long = format!("skills/{}/{}", "l".repeat(120), "n".repeat(150));
    put(&long, "long");
    let outside = tempfile::tempdir().unwrap();
    let key = outside.path().join("id_ed25519");
    fs::write(&key, "PRIVATE").unwrap();
    std::os::unix::fs::symlink(&key, one.path("skills/dev/key")).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    let file = file.to_str().unwrap();
    let ended = one.run(&["backup", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let named = ended.out.lines().find(|line| line.contains("dev/key"));
    assert!(named.unwrap().ends_with("it is a link"), "{}", ended.out);

    let other = Hermetic::new();
    let ended = other.run(&["restore", "--copy", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("it is a link"), "{}", ended.out);
    for (name, text) in WRITTEN_FOR_THE_AGENT.into_iter().chain([(&*long, "long")]) {
        let restored = fs::read_to_string(other.path(name));
        assert_eq!(restored.unwrap(), text, "{name}");
    }
    let mode = |name| fs::metadata(other.path(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(script), mode("SOUL.md")), (0o755, 0o600));
    assert_eq!(mode("hermetic/mcp-logins"), 0o700);
    assert!(!other.path("skills/dev/key").exists());

    // A folder that is there is moved aside as a whole, and only if that is said.
    fs::write(other.path("skills/mine"), "mine").unwrap();
    assert_eq!(other.run(&["restore", "--copy", file]).code, 1);
    let ended = other.run(&["restore", "--copy", "--replace", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(!other.path("skills/mine").exists());
    let names = names_in(&other.path(""));
    let aside = names.iter().find(|name| name.starts_with("skills.before-"));
    let mine = other.path(aside.unwrap()).join("mine");
    assert_eq!(fs::read_to_string(mine).unwrap(), "mine");
}

#[test]
fn a_home_that_is_not_empty_is_left_alone_unless_it_is_said() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    let file = backup(&one, folder.path());
    let file = file.to_str().unwrap();
    let ended = one.run(&["restore", file]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("not empty") && ended.err.contains("--replace"),
        "{}",
        ended.err
    );

    fs::write(one.path("config.yaml"), "model: later\n").unwrap();
    let ended = one.run(&["restore", "--replace", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(fs::read_to_string(one.path("config.yaml")).unwrap(), CONFIG);
    // What was there is there, under another name.
    let names = names_in(&one.path(""));
    let moved: Vec<_> = names
        .iter()
        .filter(|name| name.contains(".before-"))
        .collect();
    assert_eq!(moved.len(), 3, "{names:?}");
    let old = moved
        .iter()
        .find(|name| name.starts_with("config.yaml"))
        .unwrap();
    assert_eq!(fs::read_to_string(one.path(old)).unwrap(), "model: later\n");
}

#[test]
fn two_installations_of_one_name_do_not_stand_on_one_machine() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    let file = backup(&one, folder.path());
    let file = file.to_str().unwrap();
    let other = Hermetic::new();
    let ended = other.run(&["restore", file]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("--copy"), "{}", ended.err);
    assert_eq!(names_in(&other.path("")), [""; 0]);
    assert_eq!(other.run(&["restore", "--copy", file]).code, 0);
    assert_ne!(installation(&other), installation(&one));
    assert!(other.run(&["pairing", "list"]).out.contains("11 (Ada)"));
}

/// Whoever names the wrong file does not read it on the screen.
#[test]
fn a_file_that_is_no_backup_is_not_quoted() {
    let home = Hermetic::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("env");
    let secret = "PASSWORD=Zu7pferdchen\n\u{1b}[2Jadmin:x:0:0\n";
    fs::write(&file, secret.repeat(40)).unwrap();
    let ended = home.run(&["restore", file.to_str().unwrap()]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(ended.err.contains("it is no backup"), "{}", ended.err);
    for quoted in ["Zu7pferd", "admin", "\u{1b}"] {
        assert!(!ended.err.contains(quoted), "{}", ended.err);
    }
}

#[test]
fn a_backup_with_one_other_byte_or_without_its_end_changes_nothing() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(backup(&one, folder.path())).unwrap();
    let other = Hermetic::new();
    let try_with = |bytes: &[u8]| {
        let file = folder.path().join("broken.tar");
        fs::write(&file, bytes).unwrap();
        let ended = other.run(&["restore", "--copy", file.to_str().unwrap()]);
        assert_eq!(ended.code, 1, "{}", ended.out);
        assert!(ended.err.contains("is not restored"), "{}", ended.err);
        assert_eq!(names_in(&other.path("")), [""; 0]);
    };
    // A byte in the middle of each file, and in the headers between them.
    for at in (0..whole.len() - 2048).step_by(whole.len() / 29) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        // Padding behind a file is nobody's.
        if is_padding(&whole, at) {
            continue;
        }
        try_with(&bytes);
    }
    for length in [0, 100, 512, whole.len() / 2, whole.len() - 4096] {
        try_with(&whole[..length]);
    }
    let ended = other.run(&[
        "restore",
        "--check",
        folder.path().join("backup.tar").to_str().unwrap(),
    ]);
    assert_eq!(ended.code, 0, "{}", ended.err);
}

/// Whether a byte lies behind a file's end, where tar fills up its block.
fn is_padding(tar: &[u8], at: usize) -> bool {
    let mut header = 0;
    loop {
        let size = &tar[header + 124..header + 135];
        let size = usize::from_str_radix(std::str::from_utf8(size).unwrap(), 8).unwrap();
        let end = header + 512 + size;
        let next = header + 512 + size.next_multiple_of(512);
        if at < next {
            return at >= end;
        }
        header = next;
    }
}

#[test]
fn an_archive_cannot_write_outside_of_a_home() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "state/../../escaped",
        "/tmp/escaped",
        "home/.bashrc",
        "state/gateway.lock",
        "workspaces/../escaped.tar",
        "workspaces/0123.tar",
        "home/skills",
        "home/skills/../../escaped",
        "home/skills/./escaped",
        "home/skills//escaped",
        "home/skills/bell\u{7}",
        "state/skills/../state.db",
        "state/other/escaped",
        "home/skills/1/2/3/4/5/6/7/8/9/10/11/12/13",
    ] {
        let file = folder.path().join("hostile.tar");
        let mut tar = tar_of(name, b"x");
        tar.extend([0; 1024]);
        fs::write(&file, tar).unwrap();
        let other = Hermetic::new();
        let ended = other.run(&["restore", file.to_str().unwrap()]);
        assert_eq!(ended.code, 1, "{name}");
        assert_eq!(names_in(&other.path("")), [""; 0], "{name}");
    }
}

/// One entry, with a header that is right.
fn tar_of(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000600");
    header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    header[136..147].copy_from_slice(b"00000000000");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut tar = header.to_vec();
    tar.extend(bytes);
    tar.resize(tar.len().next_multiple_of(512), 0);
    tar
}

#[test]
fn a_backup_of_a_newer_program_is_refused_in_words() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    let file = backup(&one, folder.path());
    let mut tar = fs::read(&file).unwrap();
    let header = tar
        .windows(16)
        .position(|words| words == b"manifest.sha256-")
        .unwrap();
    let text = String::from_utf8_lossy(&tar[header + 512..]).into_owned();
    let text = text.trim_end_matches('\0');
    let (before, after) = text.split_once("\"store_version\": ").unwrap();
    let later = format!("{before}\"store_version\": 9{after}");
    tar.truncate(header);
    let sum = Sha256::digest(&later);
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    tar.extend(tar_of(&format!("manifest.sha256-{sum}"), later.as_bytes()));
    tar.extend([0; 1024]);
    fs::write(&file, tar).unwrap();
    let ended = Hermetic::new().run(&["restore", "--copy", file.to_str().unwrap()]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("whose store this version"),
        "{}",
        ended.err
    );
}

#[test]
fn killed_at_any_moment_it_leaves_no_file_under_the_name() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    for attempt in 0..12 {
        let file = folder.path().join(format!("{attempt}.tar"));
        let mut command = one.command(&["backup", file.to_str().unwrap()]);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Later each time, until one is through.
        for _ in 0..attempt * 400 {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().unwrap();
        if file.exists() {
            let ended = one.run(&["restore", "--check", file.to_str().unwrap()]);
            assert_eq!(ended.code, 0, "{}", ended.err);
        }
    }
    // And the next one is not hindered by what they left.
    let file = backup(&one, folder.path());
    assert_eq!(
        one.run(&["restore", "--check", file.to_str().unwrap()])
            .code,
        0
    );
    let left: Vec<_> = names_in(folder.path());
    assert!(left.iter().all(|name| name.ends_with(".tar")), "{left:?}");
}

#[test]
fn a_backup_that_finds_no_room_leaves_nothing() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    // Not for the copy of the store; for the copy, and not for the archive.
    for kib in [64, 200] {
        let script = format!(
            "mount -t tmpfs -o size={kib}k none \"$1\" || exit 99; shift; \"$@\"; code=$?; ls -A \"$FOLDER\"; exit $code"
        );
        let program = one.command(&[]);
        let mut command = Command::new("unshare");
        command
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                &script,
                "sh",
            ])
            .arg(folder.path())
            .arg(program.get_program())
            .args(["backup", folder.path().join("b.tar").to_str().unwrap()])
            .env("HERMES_HOME", one.path(""))
            .env("FOLDER", folder.path());
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        if ended.status.code() == Some(99) || said.contains("unshare:") {
            eprintln!("SKIP: a_backup_that_finds_no_room_leaves_nothing: {said}");
            return;
        }
        assert_eq!(ended.status.code(), Some(1), "{kib}: {said}");
        assert!(said.contains("make room"), "{said}");
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "", "{kib}");
    }
}

#[test]
fn nothing_is_replaced_and_a_folder_gets_a_name_with_the_date() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    let file = backup(&one, folder.path());
    let ended = one.run(&["backup", file.to_str().unwrap()]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("nothing is replaced"), "{}", ended.err);
    let json = one
        .run(&["backup", "--json", folder.path().to_str().unwrap()])
        .json();
    let name = json["file"].as_str().unwrap();
    assert!(
        name.contains("/hermetic-20") && Path::new(name).is_file(),
        "{name}"
    );
    let elsewhere = one.run(&["backup", "/nonexistent/backup.tar"]);
    assert_eq!(elsewhere.code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_from_a_backup_that_was_made_while_it_ran() {
    let test = "a_conversation_goes_on_from_a_backup_that_was_made_while_it_ran";
    let replies = [
        Reply::streams(&["I will remember."]),
        Reply::streams(&["It was."]),
    ];
    let Some(mut lab) = Lab::start(test, replies).await else {
        return;
    };
    lab.ask(ALICE, "the bird on the roof is a heron").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    let file = file.to_str().unwrap();
    let ended = lab.run(&["backup", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let ended = lab.run(&["restore", "--replace", file]);
    assert!(ended.err.contains("gateway stop"), "{}", ended.err);

    // Everything is lost but the backup.
    lab.terminate();
    for name in ["hermetic", "config.yaml", ".env"] {
        fs::rename(lab.path(name), folder.path().join(name)).unwrap();
    }
    let ended = lab.run(&["restore", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    lab.restart();
    lab.ask(ALICE, "what bird was it?").await;
    let asked = lab.asked().pop().unwrap();
    assert!(asked.contains("heron"), "{asked}");
}

/// What is in a workspace, in words that are the same wherever it is.
const LOOK: &str = "cd /workspace && find . | sort && cat note deep/er/data && readlink way-out && stat -c %a tool && \
     cat ~/kept && find /workspace ~ -newermt 2001-01-01 -name old";
const FILL: &str = "cd /workspace && mkdir -p deep/er && echo one > note && seq 200000 > deep/er/data && \
     ln -s /etc/hostname way-out && echo '#!/bin/sh' > tool && chmod 750 tool && echo home > ~/kept && \
     echo x > ./-odd && touch -d 2000-01-01 old && mkdir .hermetic-undo && echo no > .hermetic-undo/copy";

#[test]
fn files_of_sandboxes_go_along_and_come_back() {
    let one = used_home();
    if !one.has_sandboxes("files_of_sandboxes_go_along_and_come_back") {
        return;
    }
    let inside = |home: &Hermetic, session: &str, script: &str| {
        let ended = home.run(&["exec", "--session", session, "--", "sh", "-c", script]);
        assert_eq!(ended.code, 0, "{session}: {}", ended.err);
        ended.out
    };
    for session in ["living", "stopped"] {
        inside(&one, session, FILL);
    }
    assert_eq!(one.run(&["sandbox", "stop", "stopped"]).code, 0);
    let wanted =
        inside(&one, "living", "rm -r .hermetic-undo; true") + &inside(&one, "living", LOOK);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    let file = file.to_str().unwrap();
    let ended = one.run(&["backup", "--workspaces", file]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for session in ["cli:living: 1", "cli:stopped: 1"] {
        assert!(
            ended.out.contains(&format!("files of {session}")),
            "{}",
            ended.out
        );
    }
    assert!(!ended.out.contains("NOT"), "{}", ended.out);
    assert_eq!(names_in(folder.path()), ["backup.tar"]);
    // One that was woken sleeps again, and the other was left alone.
    let states = |home: &Hermetic| {
        let rows = home.run(&["sandbox", "list", "--json"]).json();
        let mut rows: Vec<_> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}", row["conversation"], row["state"]).replace('"', ""))
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(states(&one), ["cli:living running", "cli:stopped stopped"]);
    let ended = one.run(&["restore", "--check", file]);
    assert!(ended.out.contains("those of 2 sandboxes"), "{}", ended.out);

    // Another home, whose sandboxes have names of their own.
    let other = Hermetic::new();
    let ended = other.run(&["restore", "--copy", file]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert_eq!(
        states(&other),
        ["cli:living stopped", "cli:stopped stopped"]
    );
    for session in ["living", "stopped"] {
        assert_eq!(inside(&other, session, LOOK), wanted, "{session}");
    }
    // Once more changes nothing: what is there may be newer.
    inside(&other, "living", "echo newer > note");
    let ended = other.run(&["restore", "--workspaces", file]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("stays as it is"), "{}", ended.out);
    assert_eq!(inside(&other, "living", "cat note"), "newer\n");
    // And what was destroyed is had again from the backup, if its conversation is still known.
    for home in [&one, &other] {
        assert_eq!(home.run(&["sandbox", "prune", "--stopped"]).code, 0);
        let destroyed = home.run(&["sandbox", "destroy", "living"]);
        assert_eq!(destroyed.code, 0, "{}", destroyed.err);
    }
    let ended = other.run(&["restore", "--workspaces", file]);
    assert_eq!(ended.code, 1, "{}", ended.out);
    assert!(
        ended
            .out
            .contains("NOT back: its conversation is not in the store"),
        "{}",
        ended.out
    );
    assert!(
        ended.err.contains("hermetic restore --workspaces"),
        "{}",
        ended.err
    );
}

#[test]
fn without_being_asked_for_files_of_sandboxes_are_named_as_missing() {
    let one = used_home();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.tar");
    let ended = one.run(&["backup", file.to_str().unwrap()]);
    assert!(
        ended.out.contains("not in it: --workspaces packs them"),
        "{}",
        ended.out
    );
    // As every program before wrote and reads it.
    let said = one
        .run(&["restore", "--check", "--json", file.to_str().unwrap()])
        .json();
    assert_eq!(said["form"], 1);
    assert!(said.get("workspaces").is_none(), "{said}");
}
