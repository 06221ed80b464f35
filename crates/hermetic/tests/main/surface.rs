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
