//! `hermetic sandbox exec|cp|list`: a living sandbox, by hand.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::hermetic::Hermetic;

/// A home with a session called `work` whose sandbox lives.
fn home(test: &str) -> Option<Hermetic> {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes(test) {
        return None;
    }
    let made = hermetic.run(&[
        "exec",
        "--session",
        "work",
        "--",
        "sh",
        "-c",
        "echo kept > note",
    ]);
    assert_eq!(made.code, 0, "{}", made.err);
    Some(hermetic)
}

#[test]
fn a_command_runs_in_a_sandbox_that_lives() {
    let Some(hermetic) = home("a_command_runs_in_a_sandbox_that_lives") else {
        return;
    };
    let exec = |words: &[&str]| hermetic.run(&[&["sandbox", "exec"], words].concat());
    let read = exec(&["work", "--", "cat", "note"]);
    assert_eq!(
        (read.code, read.out.as_str()),
        (0, "kept\n"),
        "{}",
        read.err
    );
    let ended = exec(&[
        "work",
        "-e",
        "CODE=7",
        "-w",
        "/tmp",
        "--",
        "sh",
        "-c",
        "pwd; exit $CODE",
    ]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (7, "/tmp\n"),
        "{}",
        ended.err
    );
    let missing = exec(&["work", "--", "nosuchprogram"]);
    assert_eq!(missing.code, 127);
    assert!(
        missing.err.contains("no program `nosuchprogram`"),
        "{}",
        missing.err
    );
    let late = exec(&["work", "--timeout", "1", "--", "sleep", "600"]);
    assert_eq!(late.code, 124, "{}", late.err);

    // No other way in than to one that lives: nothing is made or brought back for it.
    assert_eq!(exec(&["nobody", "--", "true"]).code, 125);
    assert_eq!(hermetic.run(&["sandbox", "stop", "work"]).code, 0);
    let stopped = exec(&["work", "--", "true"]);
    assert_eq!(stopped.code, 125);
    assert!(
        stopped.err.contains("is stopped")
            || stopped.err.contains("is gone")
            || stopped.err.contains("no sandbox"),
        "{}",
        stopped.err
    );
    hermetic.run(&["sandbox", "prune", "--stopped"]);
}

#[test]
fn files_go_in_and_come_out_and_nothing_is_replaced() {
    let Some(hermetic) = home("files_go_in_and_come_out_and_nothing_is_replaced") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir_all(folder.path().join("tree/deep")).unwrap();
    let bytes: Vec<u8> = (0..300_000u32).map(|n| n.to_le_bytes()[0]).collect();
    fs::write(at("tree/deep/bytes"), &bytes).unwrap();
    fs::write(at("tree/run.sh"), "echo ran\n").unwrap();
    fs::set_permissions(at("tree/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("secret"), "not named\n").unwrap();
    symlink(at("secret"), at("tree/link")).unwrap();
    let cp = |from: &str, to: &str| hermetic.run(&["sandbox", "cp", from, to]);

    let sent = cp(&at("tree"), "work:");
    assert_eq!(sent.code, 0, "{}", sent.err);
    assert_eq!(
        sent.out,
        "2 files, 300 kB\nleft out: 1 links, sockets or devices\n"
    );
    let ran = hermetic.run(&[
        "sandbox",
        "exec",
        "work",
        "--",
        "sh",
        "-c",
        "./tree/run.sh; ls tree",
    ]);
    assert_eq!(ran.out, "ran\ndeep\nrun.sh\n", "{}", ran.err);

    let again = cp(&at("tree"), "work:");
    assert_eq!(again.code, 1);
    assert!(
        again.err.contains("is there already, in the sandbox"),
        "{}",
        again.err
    );
    let over = cp(&at("secret"), "work:note");
    assert!(over.err.contains("is there already"), "{}", over.err);

    // Out of it, where a link leads to a file of ours that has the same path outside.
    let link = format!(
        "ln -s {} tree/stolen; mkfifo tree/pipe; chmod 4755 tree/run.sh",
        at("secret")
    );
    assert_eq!(
        hermetic
            .run(&["sandbox", "exec", "work", "--", "sh", "-c", &link])
            .code,
        0
    );
    let fetched = cp("work:tree", &at("back"));
    assert_eq!(fetched.code, 0, "{}", fetched.err);
    assert_eq!(
        fetched.out,
        "2 files, 300 kB\nleft out: 2 links, sockets or devices\n"
    );
    assert_eq!(fs::read(at("back/deep/bytes")).unwrap(), bytes);
    let mode = fs::metadata(at("back/run.sh"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(
        mode & 0o7000,
        0,
        "a bit that lends rights came out: {mode:o}"
    );
    assert!(!folder.path().join("back/stolen").exists());

    assert_eq!(cp("work:note", folder.path().to_str().unwrap()).code, 0);
    assert_eq!(fs::read_to_string(at("note")).unwrap(), "kept\n");
    fs::write(at("note"), "mine\n").unwrap();
    assert_eq!(cp("work:note", &at("note")).code, 1);
    assert_eq!(fs::read_to_string(at("note")).unwrap(), "mine\n");

    // A file without end fills nobody's disk, and leaves no half of itself.
    let sparse = hermetic.run(&[
        "sandbox", "exec", "work", "--", "truncate", "-s", "3M", "big",
    ]);
    assert_eq!(sparse.code, 0, "{}", sparse.err);
    let bounded = hermetic.run(&["sandbox", "cp", "--most", "1", "work:big", &at("big")]);
    assert_eq!(bounded.code, 1);
    assert!(
        bounded.err.contains("more than --most allows"),
        "{}",
        bounded.err
    );
    assert!(!folder.path().join("big").exists());
    for (from, to) in [
        ("work:a", "work:b"),
        ("/etc/hostname", "/tmp/x"),
        ("work:nothing", "."),
    ] {
        assert_eq!(cp(from, to).code, 1, "{from} {to}");
    }
    assert_eq!(hermetic.run(&["sandbox", "destroy", "work"]).code, 0);
}

#[test]
fn a_list_says_what_each_takes() {
    let Some(hermetic) = home("a_list_says_what_each_takes") else {
        return;
    };
    let listed = hermetic.run(&["sandbox", "list"]);
    assert!(listed.out.contains("SIZE"), "{}", listed.out);
    let json = hermetic.run(&["sandbox", "list", "--json"]).out;
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1, "{json}");
    assert_eq!(hermetic.run(&["sandbox", "destroy", "work"]).code, 0);
}
