//! Arguments, help, colours, exit codes.

use std::process::Stdio;

use crate::hermetic::Hermetic;

#[test]
fn the_version_is_the_packages() {
    let ended = Hermetic::new().run(&["--version"]);
    assert_eq!(
        ended.out,
        format!("hermetic {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn help_and_version_are_commands_too() {
    let hermetic = Hermetic::new();
    assert_eq!(
        hermetic.run(&["version"]).out,
        hermetic.run(&["--version"]).out
    );
    let ended = hermetic.run(&["help", "gateway", "run"]);
    assert!(
        ended.out.contains("Serve the chats in the foreground"),
        "{}",
        ended.out
    );
}

#[test]
fn exec_names_what_it_cannot_find() {
    let hermetic = Hermetic::new();
    if !hermetic.has_sandboxes("exec_names_what_it_cannot_find") {
        return;
    }
    let ended = hermetic.run(&["exec", "nosuchprogram", "x"]);
    assert_eq!(ended.code, 127);
    assert!(
        ended.err.contains("no program `nosuchprogram`"),
        "{}",
        ended.err
    );
    let ended = hermetic.run(&["exec", "echo a | wc -l"]);
    assert_eq!(ended.code, 127);
    assert!(ended.err.contains("bash -c"), "{}", ended.err);
    // One that the command itself could not find is its own.
    let ended = hermetic.run(&["exec", "--timeout", "1m", "sh", "-c", "nosuchprogram"]);
    assert_eq!(ended.code, 127);
    assert!(!ended.err.contains("no program `sh`"), "{}", ended.err);
}

#[test]
fn nonsense_ends_with_2() {
    let hermetic = Hermetic::new();
    for arguments in [
        &[][..],
        &["bogus"],
        &["status", "--josn"],
        &["config"],
        &["completions", "tcsh"],
        &["--log-format", "xml", "status"],
    ] {
        let ended = hermetic.run(arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.err);
        assert_eq!(ended.out, "", "{arguments:?}");
    }
}

#[test]
fn a_command_may_stand_without_dashes_and_keeps_its_own_options() {
    let hermetic = Hermetic::new();
    let local = ["exec", "--backend", "local"];
    let ran = |words: &[&str]| hermetic.run(&[&local, words].concat());
    assert_eq!(ran(&["echo", "-n", "--backend", "x"]).out, "--backend x");
    assert_eq!(ran(&["--", "echo", "-n", "--", "x"]).out, "-- x");
    // An option that is misspelt is no command.
    assert_eq!(ran(&["--sesion", "s", "echo", "x"]).code, 2);
}

/// What is typed for the host itself is held to the floor, and dangerous things need a yes.
#[test]
fn exec_on_the_host_is_judged_first() {
    let hermetic = Hermetic::new();
    let folder = hermetic.path("victim");
    std::fs::create_dir_all(folder.join("inside")).unwrap();
    let victim = folder.display().to_string();
    let local = |more: &[&str]| hermetic.run(&[&["exec", "--backend", "local"], more].concat());

    // The floor, under another program: nothing here starts if the judge fails.
    let floor = local(&["--yes", "--", "sh", "-c", "false && rm -rf /"]);
    assert_eq!(floor.code, 126, "{}", floor.err);
    assert!(
        floor.err.contains("nothing allows it here"),
        "{}",
        floor.err
    );

    let asked = local(&["--", "rm", "-r", &victim]);
    assert_eq!(asked.code, 126, "{}", asked.err);
    assert!(asked.err.contains("--yes"), "{}", asked.err);
    assert!(folder.join("inside").exists());

    let yes = local(&["--yes", "--", "rm", "-r", &victim]);
    assert_eq!(yes.code, 0, "{}", yes.err);
    assert!(!folder.exists());

    assert_eq!(local(&["--", "echo", "fine"]).out, "fine\n");
}

/// A yes beforehand is for a script that nobody has seen yet: what the pipe brings is held to the floor.
#[test]
fn a_script_in_a_pipe_is_read_before_it_runs_on_the_host() {
    use std::io::Write as _;
    let hermetic = Hermetic::new();
    let piped = |words: &[&str], script: &str| {
        let mut started = hermetic
            .command(&[&["exec", "--backend", "local", "--yes", "--"], words].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = started.stdin.take().unwrap();
        // It may have refused before it has read all.
        let _ = input.write_all(script.as_bytes());
        drop(input);
        let ended = started.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            ended.status.code(),
            text(&ended.stdout),
            text(&ended.stderr),
        )
    };
    for words in [&["sh"][..], &["bash", "-s"], &["env", "sh"]] {
        let (code, out, err) = piped(words, "false && rm -rf /\n");
        assert_eq!(code, Some(126), "{words:?}: {out}{err}");
        assert!(err.contains("nothing allows it here"), "{words:?}: {err}");
    }
    // Padding moves nothing out of sight, in a pipe or in a word.
    let padded = format!("{}false && rm -rf /\n", ":;".repeat(900));
    for (words, script) in [(&["sh"][..], &*padded), (&["sh", "-c", &padded], "")] {
        let (code, out, err) = piped(words, script);
        assert_eq!(code, Some(126), "{out}{err}");
        assert!(err.contains("nothing allows it here"), "{err}");
    }
    let (code, _, err) = piped(&["sh"], &"# nothing\n".repeat(110_000));
    assert_eq!(code, Some(126), "{err}");
    assert!(err.contains("longer than 1 MiB"), "{err}");
    // What was read to judge it reaches the command, whole and once.
    let long = format!("echo {}\n", "x".repeat(200_000));
    let (code, out, err) = piped(&["sh"], &long);
    assert_eq!((code, out.len()), (Some(0), 200_001), "{err}");
    let (_, out, _) = piped(&["cat"], "as it is\n");
    assert_eq!(out, "as it is\n");
}

/// A caller that sends the next line after the last answer is not kept waiting.
#[test]
fn judging_answers_each_line_at_once() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let hermetic = Hermetic::new();
    let mut judge = hermetic
        .command(&["policy", "judge", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut asks = judge.stdin.take().unwrap();
    let mut answers = BufReader::new(judge.stdout.take().unwrap()).lines();
    for (command, verdict) in [("ls", "safe"), ("rm -rf /", "hardline"), ("ls", "safe")] {
        writeln!(asks, "{}", serde_json::json!({ "cmd": command })).unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.contains(verdict), "{answer}");
    }
    drop(asks);
    assert!(judge.wait().unwrap().success());
}

#[test]
fn the_long_help_has_examples_and_exit_codes() {
    let help = Hermetic::new().run(&["--help"]).out;
    assert!(help.contains("Examples:"), "{help}");
    assert!(help.contains("78   the configuration has errors"), "{help}");
}

#[test]
fn completions_are_there_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = Hermetic::new().run(&["completions", shell]);
        assert!(ended.out.contains("gateway"), "{shell}");
    }
}

#[test]
fn manual_pages_are_written() {
    let hermetic = Hermetic::new();
    let folder = hermetic.path("man");
    assert_eq!(hermetic.run(&["man", folder.to_str().unwrap()]).code, 0);
    assert!(folder.join("hermetic.1").exists());
    assert!(folder.join("hermetic-config-show.1").exists());
}

#[test]
fn nothing_is_coloured_where_nobody_sees_it() {
    let hermetic = Hermetic::with("terminal: {backend: docer}\n");
    for arguments in [&["status"][..], &["config", "check"], &["--help"]] {
        let ended = hermetic.run(arguments);
        assert!(!ended.out.contains('\u{1b}') && !ended.err.contains('\u{1b}'));
    }
}

#[test]
fn a_reader_who_goes_away_is_no_failure() {
    let mut child = Hermetic::new()
        .command(&["config", "show"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn without_any_home_it_says_what_to_set() {
    let hermetic = Hermetic::new();
    let output = hermetic
        .command(&["status"])
        .env_remove("HOME")
        .env_remove("HERMES_HOME")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @r"
    error: neither HERMES_HOME nor HOME says where the configuration is
      = set HERMES_HOME, or pass --home
    ");
}

#[test]
fn a_log_filter_that_makes_no_sense_is_refused() {
    let ended = Hermetic::new()
        .variable("HERMETIC_LOG", "a=b=c")
        .run(&["status"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .err
            .starts_with("error: HERMETIC_LOG is not a log filter"),
        "{}",
        ended.err
    );
}
