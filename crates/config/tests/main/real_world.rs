//! Files as Hermes users have them.

use std::time::Duration;

use hermetic_config::{ApprovalMode, BusyInput, EgressMode, ResetMode, StrangerPolicy};
use hermetic_types::BackendKind;

use crate::lab::Lab;

const TYPICAL: &str = include_str!("typical.yaml");

#[test]
fn a_typical_file_works_unchanged() {
    let lab = Lab::with(TYPICAL).dotenv(
        "TELEGRAM_BOT_TOKEN=123:abc\nTELEGRAM_ALLOWED_USERS=11,22\nOPENROUTER_API_KEY=sk-or-1\nFAL_KEY=x\n",
    );
    let config = lab.config();
    // What has no effect is said, once each, and nothing else.
    let warnings = lab.warnings();
    let told: Vec<_> = warnings
        .lines()
        .filter_map(|line| line.strip_prefix("warning: "))
        .collect();
    assert_eq!(
        told,
        [
            "platforms.telegram.channel_overrides has no effect yet: all channels have one model and one prompt",
        ]
    );
    assert_eq!(config.terminal().backend, Some(BackendKind::Local));
    assert_eq!(config.terminal().cwd, None);
    assert_eq!(config.approvals().mode, ApprovalMode::Off);
    assert_eq!(config.agent().busy_input, BusyInput::Queue);
    assert_eq!(config.sessions().reset, ResetMode::Both);
    assert_eq!(
        config.model().name.as_deref(),
        Some("anthropic/claude-opus-4.6")
    );
    assert_eq!(
        config.model().fallbacks[0].model.as_deref(),
        Some("other/model")
    );
    assert_eq!(
        config.model().providers["anthropic"].request_timeout,
        Some(Duration::from_secs(30))
    );
    assert!(config.agent().compression.enabled);
    let telegram = &config.platforms().telegram;
    assert!(telegram.platform.enabled);
    assert_eq!(telegram.platform.allowed_users, ["11", "22"]);
    assert_eq!(telegram.platform.home_channel.as_deref(), Some("42"));
    assert_eq!(telegram.platform.stranger, StrangerPolicy::Pair);
    assert!(!config.platforms().whatsapp.platform.enabled);
    let unused: Vec<&str> = config.unused().iter().map(|key| key.key.as_str()).collect();
    for key in [
        "_config_version",
        "agent.personalities",
        "platforms.mattermost",
        "telegram.channel_prompts",
    ] {
        assert!(unused.contains(&key), "{key} is not in {unused:?}");
    }
}

#[test]
fn a_model_may_be_one_word_and_its_relatives_may_stand_at_the_top() {
    let lab =
        Lab::with("model: openai/gpt-5\nprovider: openrouter\napi_base: http://127.0.0.1:1/v1\n");
    let model = lab.config().model().clone();
    assert_eq!(model.name.as_deref(), Some("openai/gpt-5"));
    assert_eq!(model.provider, "openrouter");
    assert_eq!(model.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    let lab = Lab::with("model: {name: a, api_base: b}\nfallback_model: c\n");
    let model = lab.config().model().clone();
    assert_eq!(model.name.as_deref(), Some("a"));
    assert_eq!(model.base_url.as_deref(), Some("b"));
    assert_eq!(model.fallbacks[0].model.as_deref(), Some("c"));
}

#[test]
fn the_file_of_the_pull_request_works() {
    let lab = Lab::with(
        "gateway:\n  terminal_backend: docker          # docker, modal, daytona\n  sandbox_image: python:3.11\n  sandbox_lifetime: 3600\n",
    );
    assert_eq!(
        lab.config().gateway().terminal_backend,
        Some(BackendKind::Docker)
    );
}

#[test]
fn flags_are_read_as_yaml_and_python_write_them() {
    for (text, flag) in [
        ("true", true),
        ("True", true),
        ("yes", true),
        ("on", true),
        ("1", true),
        ("\"true\"", true),
        ("false", false),
        ("no", false),
        ("off", false),
        ("0", false),
        ("'False'", false),
    ] {
        let lab = Lab::with(format!("terminal:\n  docker_network: {text}\n"));
        assert_eq!(lab.config().terminal().docker.network, flag, "{text}");
    }
}

#[test]
fn a_bare_off_switches_approvals_off_and_nothing_else_does() {
    for text in ["off", "false", "'off'", "Off", "no"] {
        let lab = Lab::with(format!("approvals:\n  mode: {text}\n"));
        assert_eq!(lab.config().approvals().mode, ApprovalMode::Off, "{text}");
    }
    assert_eq!(
        Lab::with("approvals: {mode: }").config().approvals().mode,
        ApprovalMode::Manual
    );
}

#[test]
fn sizes_are_megabytes_or_spelled() {
    for text in ["5120", "'5120'", "5GB", "5 GiB", "5120MB", "5120.0"] {
        let lab = Lab::with(format!("terminal:\n  container_memory: {text}\n"));
        assert_eq!(
            lab.config().terminal().limits.memory_bytes,
            5120 << 20,
            "{text}"
        );
    }
}

#[test]
fn anchors_and_merges_work() {
    let lab = Lab::with(
        "x-base: &base {timeout: 7, backend: docker}\nterminal:\n  <<: *base\n  backend: native\n",
    );
    assert_eq!(lab.config().terminal().timeout, Duration::from_secs(7));
    assert_eq!(lab.config().terminal().backend, Some(BackendKind::Native));
}

#[test]
fn egress_is_read_as_a_whole() {
    let lab = Lab::with(
        "gateway:\n  egress:\n    mode: allowlist\n    allow: [pypi.org, '*.github.com', 'box.local:8443']\n    ask: true\n    budget_bytes: 1GB\n    credentials:\n      - {host: api.github.com, value_env: GITHUB_TOKEN, placeholder_env: GITHUB_TOKEN}\n      - {host: x.local, header: x-api-key, scheme: '', value_file: ~/key}\n",
    )
    .dotenv("GITHUB_TOKEN=ghp_1\n");
    let egress = lab.config().egress().clone();
    assert_eq!(egress.mode, EgressMode::Allowlist);
    assert_eq!(egress.budget_bytes, Some(1 << 30));
    assert_eq!(egress.credentials.len(), 2);
    assert_eq!(egress.credentials[0].header, "authorization");
    assert_eq!(egress.credentials[1].scheme, "");
}

#[test]
fn empty_files_and_files_of_comments_are_no_configuration() {
    for text in [
        "",
        "\n\n",
        "# nothing\n",
        "---\n",
        "\u{feff}",
        "{}",
        "null",
        "---\n...\n",
    ] {
        assert_eq!(
            Lab::with(text).shown("gateway.sandbox_lifetime"),
            "3600 (default)",
            "{text:?}"
        );
    }
}

#[test]
fn a_slip_of_a_key_that_we_do_not_use_is_only_listed() {
    let config =
        Lab::with("personalites: {}\nplatforms: {mattrmost: {}}\nagent: {verbos: true}\n").config();
    let unused: Vec<&str> = config.unused().iter().map(|key| key.key.as_str()).collect();
    assert_eq!(
        unused,
        ["personalites", "platforms.mattrmost", "agent.verbos"]
    );
}

#[test]
fn settings_of_a_whole_section_may_stand_among_its_entries() {
    let lab =
        Lab::with("auxiliary:\n  transient_retries: 2\n  vision: {provider: auto, model: ''}\n");
    let config = lab.config();
    let unused: Vec<_> = config.unused().iter().map(|key| key.key.as_str()).collect();
    assert_eq!(unused, ["auxiliary.transient_retries"]);
    assert!(config.model().auxiliary.contains_key("vision"));
}
