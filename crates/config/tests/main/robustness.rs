//! Whatever the files are, we say so and go on living.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use hermetic_config::{ConfigInputs, HomeFolder, load};
use proptest::prelude::*;

use crate::lab::Lab;

proptest! {
    #[test]
    fn no_bytes_make_us_panic(config: Vec<u8>, dotenv: Vec<u8>, legacy: Vec<u8>) {
        let lab = Lab::with(config).file(".env", dotenv).file("gateway.json", legacy);
        let _ = lab.load().map_err(|problems| problems.to_string());
    }

    #[test]
    fn no_yaml_like_text_makes_us_panic(text in "[a-z:{}\\[\\]&*!|>'\"#%@,?~\\-\n\t $é.0-9]{0,200}") {
        let _ = Lab::with(text).load().map_err(|problems| problems.to_string());
    }

    #[test]
    fn no_value_of_a_known_key_makes_us_panic(
        key in prop::sample::select(vec![
            "gateway.terminal_backend", "gateway.sandbox_lifetime", "gateway.egress.allow",
            "gateway.egress.credentials", "terminal.container_cpu", "terminal.container_memory",
            "terminal.docker_env", "terminal.native_mounts", "approvals.mode", "model",
            "providers", "fallback_model", "platforms.telegram.home_channel", "streaming",
            "platforms.telegram.token", "session_reset.idle_minutes",
        ]),
        value in "\\PC{0,60}",
    ) {
        let value = serde_json::Value::from(value).to_string();
        for written in [value.clone(), format!("[{value}]"), format!("{{{value}: {value}}}")] {
            let text = key.split('.').rev().fold(written, |inner, name| format!("{{{name}: {inner}}}"));
            let _ = Lab::with(text).load().map_err(|problems| problems.to_string());
        }
    }

    #[test]
    fn no_number_makes_us_panic(number: f64, whole: i64) {
        for number in [number.to_string(), format!("{number:e}"), whole.to_string()] {
            let lab = Lab::with(format!(
                "terminal: {{container_cpu: {number}, container_memory: {number}, timeout: {number}, daemon_term_grace_seconds: {number}}}\n\
                 streaming: {{edit_interval: {number}}}\n\
                 gateway: {{platform_connect_timeout: {number}, max_inbound_media_bytes: {number}}}\n",
            ));
            let _ = lab.load().map_err(|problems| problems.to_string());
        }
    }
}

#[test]
fn a_billion_laughs_end_at_a_bound() {
    let mut text = "a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n".to_owned();
    for level in 1..20 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let errors = Lab::with(text).errors();
    assert!(errors.contains("more than 100000 values"), "{errors}");
}

#[test]
fn deep_nesting_ends_at_a_bound() {
    for text in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "? ".repeat(100_000),
    ] {
        let errors = Lab::with(text).errors();
        assert!(errors.starts_with("error: "), "{errors}");
    }
}

#[test]
fn ten_megabytes_are_refused() {
    let errors = Lab::with("# filler\n".repeat(1_200_000)).errors();
    insta::assert_snapshot!(errors, @r"
    error: the file is larger than 4 MiB
      --> ~/.hermes/config.yaml
      = a configuration is a few hundred lines; is this the right file?
    ");
}

#[test]
fn a_large_file_of_keys_is_read() {
    let mut text = "command_allowlist:\n".to_owned();
    for i in 0..50_000 {
        text.push_str(&format!("- cmd {i}\n"));
    }
    assert_eq!(Lab::with(text).config().approvals().allow.len(), 50_000);
}

#[test]
fn a_directory_is_no_file() {
    let lab = Lab::new();
    fs::create_dir(lab.path("config.yaml")).unwrap();
    insta::assert_snapshot!(lab.errors(), @r"
    error: this is a directory, not a file
      --> ~/.hermes/config.yaml
      = move it away; `hermetic config init` writes a starter file
    ");
}

/// As on a disk that is not mounted: what was forbidden there is not allowed because it is away.
#[test]
fn a_link_that_leads_nowhere_is_not_taken_for_missing() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("/nowhere/config.yaml", lab.path("config.yaml")).unwrap();
    insta::assert_snapshot!(lab.errors(), @r"
    error: this is a link to a file that is not there
      --> ~/.hermes/config.yaml
      = bring back what it points to (is its disk mounted?), or remove the link
    ");
}

#[test]
fn a_device_is_not_read() {
    let lab = Lab::new();
    std::os::unix::fs::symlink("/dev/zero", lab.path("config.yaml")).unwrap();
    insta::assert_snapshot!(lab.errors(), @r"
    error: this is not a regular file
      --> ~/.hermes/config.yaml
      = put an ordinary text file there
    ");
}

#[test]
fn a_file_that_cannot_be_read_is_not_taken_for_missing() {
    let lab = Lab::with("gateway:\n  terminal_backend: docker\n");
    fs::set_permissions(lab.path("config.yaml"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(lab.path("config.yaml")).is_ok() {
        eprintln!(
            "SKIP: a_file_that_cannot_be_read_is_not_taken_for_missing: root reads everything"
        );
        return;
    }
    insta::assert_snapshot!(lab.errors(), @r"
    error: the file cannot be read: permission denied
      --> ~/.hermes/config.yaml
      = make it readable for the user that runs hermetic (chmod u+r, or chown)
    ");
}

#[test]
fn a_link_in_a_circle_is_not_taken_for_missing() {
    let lab = Lab::new();
    std::os::unix::fs::symlink(lab.path("config.yaml"), lab.path("config.yaml")).unwrap();
    assert!(lab.errors().contains("cannot be read"), "{}", lab.errors());
}

#[test]
fn no_error_text_holds_a_secret() {
    let errors = [
        Lab::with("telegram:\n  token: hunter2: x\n").errors(),
        Lab::with("telegram:\n  token: [hunter2]\n").errors(),
        Lab::with("model: {api_key: hunter2, default: [}").errors(),
        Lab::with("providers: {x: {api_key: {a: hunter2}}}").errors(),
        Lab::with("terminal: {timeout: '${X}'}")
            .variable("X", "hunter2")
            .errors(),
        Lab::with("gateway: {terminal_backend: '${X}'}")
            .variable("X", "hunter2")
            .errors(),
        Lab::with("gateway: {egress: {allow: ['${X}/']}}")
            .variable("X", "hunter2")
            .errors(),
        Lab::with("terminal: {native_mounts: ['${X}']}")
            .variable("X", "hunter2")
            .errors(),
        Lab::new().dotenv("hunter2\nA=\"hunter2\n").errors(),
        Lab::new()
            .variable("TERMINAL_DOCKER_ENV", "{\"A\": \"hunter2\"")
            .errors(),
    ];
    for text in errors {
        assert!(text.starts_with("error: "), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn anchors_inside_anchors_end_at_a_bound() {
    let text = format!(
        "a: {}{}{}",
        "&a [".repeat(200),
        "x, ".repeat(20_000),
        "]".repeat(200)
    );
    let errors = Lab::with(text).errors();
    assert!(errors.contains("more than 100000 values"), "{errors}");
}

#[test]
fn a_file_of_strangers_is_refused_without_guessing_at_each() {
    let text: String = (0..40_000)
        .map(|i| format!("terminal_backnd_{i}: 1\n"))
        .collect();
    let errors = Lab::with(text).errors();
    assert!(
        errors.contains("more than 1000 keys that nobody knows"),
        "{errors}"
    );
}

#[test]
fn thousands_of_errors_are_cut_short() {
    let text = format!("command_allowlist: [{}]", "{}, ".repeat(20_000));
    let errors = Lab::with(text).errors();
    assert!(
        errors.ends_with("error: and 19900 more"),
        "{}",
        errors.len()
    );
}

#[test]
fn names_of_keys_cannot_play_with_the_terminal() {
    let config = Lab::with("\"x\\e[2Jy\": 1\n").config();
    assert_eq!(config.unused()[0].key, "x\u{fffd}[2Jy");
    let errors = Lab::with("terminal:\n  \"bac\\e[2Jkend\": {}\n  \"time\\aout\": 5\n").errors();
    assert!(
        !errors.contains('\u{1b}') && !errors.contains('\u{7}'),
        "{errors:?}"
    );
}

#[test]
fn a_home_that_is_a_file_is_one_error() {
    let lab = Lab::with("");
    let inputs = ConfigInputs {
        home: HomeFolder::at(lab.path("config.yaml")),
        managed: lab.path("none"),
        variables: BTreeMap::new(),
        unreadable: Vec::new(),
    };
    let problems = load(&inputs).unwrap_err();
    assert_eq!(problems.count(), 1);
}

#[test]
fn a_variable_that_is_not_text_is_not_taken_for_unset() {
    let lab = Lab::new();
    let inputs = ConfigInputs {
        home: HomeFolder::at(lab.root()),
        managed: lab.path("none"),
        variables: BTreeMap::new(),
        unreadable: vec!["TERMINAL_ENV".to_owned(), "SOMETHING_ELSE".to_owned()],
    };
    insta::assert_snapshot!(load(&inputs).unwrap_err(), @r"
    error: its value is not UTF-8 text
      --> the variable TERMINAL_ENV
      = key: terminal.backend
    ");
}
