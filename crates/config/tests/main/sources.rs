//! Who wins, and that every value knows where it came from.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use hermetic_types::{AccountName, Secret};

use crate::lab::Lab;

#[test]
fn with_nothing_written_the_defaults_hold() {
    let lab = Lab::new();
    assert_eq!(lab.shown("gateway.sandbox_lifetime"), "3600 (default)");
    assert_eq!(lab.shown("terminal.container_memory"), "5GB (default)");
    assert_eq!(lab.shown("terminal.backend"), "- (default)");
    assert_eq!(lab.warnings(), "");
}

#[test]
fn the_file_overrules_a_terminal_variable() {
    let lab = Lab::with("terminal:\n  timeout: 60\n").variable("TERMINAL_TIMEOUT", "5");
    assert_eq!(
        lab.shown("terminal.timeout"),
        "60 (~/.hermes/config.yaml:2)"
    );
}

#[test]
fn a_variable_counts_where_the_file_is_silent() {
    let lab = Lab::with("terminal:\n  timeout:\n").variable("TERMINAL_TIMEOUT", "5");
    assert_eq!(
        lab.shown("terminal.timeout"),
        "5 (the variable TERMINAL_TIMEOUT)"
    );
}

#[test]
fn a_variable_overrules_the_file_for_platforms() {
    let lab = Lab::with("telegram:\n  allowed_users: [1]\n  require_mention: true\n")
        .variable("TELEGRAM_ALLOWED_USERS", "2, 3");
    assert_eq!(
        lab.shown("platforms.telegram.allowed_users"),
        "[2, 3] (the variable TELEGRAM_ALLOWED_USERS)"
    );
    assert_eq!(
        lab.shown("platforms.telegram.require_mention"),
        "true (~/.hermes/config.yaml:3)"
    );
}

#[test]
fn a_variable_overrules_the_file_for_the_connect_timeout() {
    let lab = Lab::with("gateway:\n  platform_connect_timeout: 5\n")
        .variable("HERMES_GATEWAY_PLATFORM_CONNECT_TIMEOUT", "0");
    assert_eq!(lab.config().gateway().platform_connect_timeout, None);
}

#[test]
fn dotenv_overrules_the_environment() {
    let lab = Lab::new()
        .dotenv("# tokens\nTELEGRAM_BOT_TOKEN=from-file\n")
        .variable("TELEGRAM_BOT_TOKEN", "from-shell");
    assert_eq!(
        lab.shown("platforms.telegram.token"),
        "[secret] (TELEGRAM_BOT_TOKEN in ~/.hermes/.env:2)"
    );
    let token = own_token(&lab);
    assert_eq!(token.expose(), "from-file");
}

#[test]
fn an_empty_variable_says_nothing() {
    let lab = Lab::with("telegram:\n  allowed_users: [1]\n").variable("TELEGRAM_ALLOWED_USERS", "");
    assert_eq!(
        lab.shown("platforms.telegram.allowed_users"),
        "[1] (~/.hermes/config.yaml:2)"
    );
}

#[test]
fn nothing_overrules_the_administrator() {
    let lab = Lab::with("security:\n  redact_secrets: false\n")
        .managed("security:\n  redact_secrets: true\n")
        .variable("HERMES_REDACT_SECRETS", "false");
    assert_eq!(
        lab.shown("security.redact_secrets"),
        "true (~/.hermes/managed.yaml:2 (managed))"
    );
}

#[test]
fn a_broken_file_of_the_administrator_is_not_passed_over() {
    let lab = Lab::new().managed("security: [");
    assert!(lab.errors().contains("managed.yaml:1"), "{}", lab.errors());
}

#[test]
fn the_legacy_file_is_below_everything() {
    let legacy = r#"{"platforms": {"telegram": {"token": "old", "reply_to_mode": "all"}},
                     "group_sessions_per_user": false, "always_log_local": true}"#;
    let lab = Lab::with("group_sessions_per_user: true\n")
        .file("gateway.json", legacy)
        .variable("TELEGRAM_BOT_TOKEN", "new");
    assert_eq!(
        lab.shown("group_sessions_per_user"),
        "true (~/.hermes/config.yaml:1)"
    );
    assert_eq!(
        lab.shown("platforms.telegram.token"),
        "[secret] (the variable TELEGRAM_BOT_TOKEN)"
    );
    assert_eq!(
        lab.shown("platforms.telegram.reply_to_mode"),
        "all (~/.hermes/gateway.json:1)"
    );
}

#[test]
fn the_top_beats_what_is_nested_under_gateway_and_says_so() {
    let lab = Lab::with(
        "group_sessions_per_user: false\ngateway:\n  group_sessions_per_user: true\n  thread_sessions_per_user: true\n",
    );
    assert_eq!(
        lab.shown("group_sessions_per_user"),
        "false (~/.hermes/config.yaml:1)"
    );
    assert_eq!(
        lab.shown("thread_sessions_per_user"),
        "true (~/.hermes/config.yaml:4)"
    );
    insta::assert_snapshot!(lab.warnings(), @r"
    warning: `group_sessions_per_user` says the same and wins
      --> ~/.hermes/config.yaml:3:28
       |
     3 |   group_sessions_per_user: true
       |                            ^^^^
      = key: gateway.group_sessions_per_user
      = keep one of them
    ");
}

#[test]
fn a_platform_may_stand_in_four_places() {
    for section in [
        "platforms: {signal: {account: '+1'}}",
        "signal: {account: '+1'}",
        "signal: {extra: {account: '+1'}}",
        "gateway: {platforms: {signal: {account: '+1'}}}",
        "gateway: {signal: {account: '+1'}}",
    ] {
        let lab = Lab::with(section).dotenv("SIGNAL_HTTP_URL=http://127.0.0.1:8080\n");
        let accounts = lab.config().platforms().signal.accounts.clone();
        let numbers: Vec<_> = accounts
            .into_values()
            .map(|account| account.number)
            .collect();
        assert_eq!(numbers, ["+1"], "{section}");
    }
}

#[test]
fn a_top_level_scalar_is_a_variable_that_nobody_set() {
    let text = "TELEGRAM_BOT_TOKEN: from-file\nOPENROUTER_API_KEY: k\n";
    let lab = Lab::with(text);
    assert!(lab.config().platforms().telegram.platform.enabled);
    assert_eq!(
        lab.shown("OPENROUTER_API_KEY"),
        "[secret] (~/.hermes/config.yaml:2)"
    );
    let lab = Lab::with(text).variable("TELEGRAM_BOT_TOKEN", "from-shell");
    let token = own_token(&lab);
    assert_eq!(token.expose(), "from-shell");
}

#[test]
fn variables_are_put_into_values_of_the_file() {
    let lab = Lab::with("terminal:\n  docker_image: ${REGISTRY}/box:${TAG:-latest}\n")
        .dotenv("REGISTRY=registry.local\n");
    assert_eq!(
        lab.config().terminal().docker.image,
        "registry.local/box:latest"
    );
}

#[test]
fn lists_and_maps_cross_the_environment_as_json() {
    let lab = Lab::new()
        .variable("TERMINAL_DOCKER_VOLUMES", r#"["/a:/b", "/c:/d"]"#)
        .variable("TERMINAL_DOCKER_ENV", r#"{"A": "b", "N": 1}"#);
    let docker = lab.config().terminal().docker.clone();
    assert_eq!(docker.volumes, ["/a:/b", "/c:/d"]);
    assert_eq!(docker.env["A"].expose(), "b");
    assert_eq!(docker.env["N"].expose(), "1");
}

#[test]
fn a_slip_in_dotenv_is_pointed_at() {
    let lab = Lab::new().dotenv("TELEGRAM_ALLOWED_USER=1\nXYZ_API_KEY=1\nMY_OWN=2\n");
    insta::assert_snapshot!(lab.warnings(), @r"
    warning: TELEGRAM_ALLOWED_USER is not a name we know
      --> ~/.hermes/.env:1
      = did you mean TELEGRAM_ALLOWED_USERS?
    ");
}

fn open_up(lab: &Lab, name: &str, mode: u32) {
    fs::set_permissions(lab.path(name), fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn secrets_that_others_can_read_are_warned_about() {
    let lab = Lab::with("telegram: {token: x}\n").dotenv("A=1\n");
    open_up(&lab, ".env", 0o644);
    open_up(&lab, "config.yaml", 0o640);
    insta::assert_snapshot!(lab.warnings(), @r"
    warning: other users of this machine can read the secrets in this file (mode 640)
      --> ~/.hermes/config.yaml
      = chmod 600 ~/.hermes/config.yaml

    warning: other users of this machine can read the secrets in this file (mode 644)
      --> ~/.hermes/.env
      = chmod 600 ~/.hermes/.env
    ");
}

#[test]
fn a_file_without_secrets_may_be_read_but_not_changed_by_others() {
    let lab = Lab::with("terminal: {timeout: 5}\n");
    open_up(&lab, "config.yaml", 0o644);
    assert_eq!(lab.warnings(), "");
    open_up(&lab, "config.yaml", 0o664);
    assert!(lab.warnings().contains("can change this file (mode 664)"));
}

/// Of the bot that has no other name.
fn own_token(lab: &Lab) -> Secret {
    let config = lab.config();
    let accounts = &config.platforms().telegram.accounts;
    accounts[&AccountName::default()].token.clone()
}
