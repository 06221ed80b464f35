//! One kind of thing where another belongs.

use crate::lab::Lab;

#[test]
fn a_list_where_a_map_belongs() {
    let lab = Lab::with("gateway:\n  - terminal_backend: docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a map, found a list
      --> ~/.hermes/config.yaml:2:3
       |
     2 |   - terminal_backend: docker
       |   ^
      = key: gateway
      = keys that belong here: terminal_backend, sandbox_image, sandbox_lifetime, sandbox_pool, max_sandboxes, max_sandboxes_per_user, max_turns_per_user, disk_reserve, …
    ");
}

#[test]
fn a_word_where_a_map_belongs() {
    let lab = Lab::with("terminal: docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a map, found a single value
      --> ~/.hermes/config.yaml:1:11
       |
     1 | terminal: docker
       |           ^^^^^^
      = key: terminal
      = keys that belong here: backend, cwd, timeout, lifetime_seconds, daemon_term_grace_seconds, env_passthrough, credential_files, home_mode, …
    ");
}

#[test]
fn a_word_where_a_list_belongs() {
    let lab = Lab::with("terminal:\n  docker_volumes: /data:/data\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a list, found a single value
      --> ~/.hermes/config.yaml:2:19
       |
     2 |   docker_volumes: /data:/data
       |                   ^^^^^^^^^^^
      = key: terminal.docker_volumes
      = write it as [one, two]
    ");
}

#[test]
fn a_list_where_a_word_belongs() {
    let lab = Lab::with("terminal:\n  backend: [docker, native]\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a word, found a list
      --> ~/.hermes/config.yaml:2:12
       |
     2 |   backend: [docker, native]
       |            ^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
    ");
}

#[test]
fn a_map_where_a_word_belongs() {
    let lab = Lab::with("gateway:\n  terminal_backend:\n    docker: true\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a word, found a map
      --> ~/.hermes/config.yaml:3:5
       |
     3 |     docker: true
       |     ^
      = key: gateway.terminal_backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
    ");
}

#[test]
fn a_map_inside_a_list_of_words() {
    let lab = Lab::with("approvals:\n  deny:\n    - rm *\n    - {a: b}\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected text in this list, found a map
      --> ~/.hermes/config.yaml:4:7
       |
     4 |     - {a: b}
       |       ^
      = key: approvals.deny
    ");
}

#[test]
fn an_egress_host_with_a_scheme() {
    let lab = Lab::with("gateway:\n  egress:\n    allow:\n      - https://pypi.org/simple\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: `https://pypi.org/simple` is not a host
      --> ~/.hermes/config.yaml:4:9
       |
     4 |       - https://pypi.org/simple
       |         ^^^^^^^^^^^^^^^^^^^^^^^
      = key: gateway.egress.allow
      = write a name, `*.name` or `name:port`, without https:// and path
    ");
}

#[test]
fn a_credential_without_a_host() {
    let lab = Lab::with(
        "gateway:\n  egress:\n    credentials:\n      - header: authorization\n        value_env: HOME\n",
    );
    insta::assert_snapshot!(lab.errors(), @r"
    error: the field `host` is missing
      --> ~/.hermes/config.yaml:4:9
       |
     4 |       - header: authorization
       |         ^
      = key: gateway.egress.credentials
      = it is the host it belongs to
    ");
}

#[test]
fn a_credential_without_a_source() {
    let lab = Lab::with("gateway:\n  egress:\n    credentials:\n      - host: api.github.com\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: the credential of api.github.com needs exactly one source
      --> ~/.hermes/config.yaml:4:9
       |
     4 |       - host: api.github.com
       |         ^
      = key: gateway.egress.credentials
      = write either value_env or value_file
    ");
}

#[test]
fn a_credential_from_an_unset_variable() {
    let lab = Lab::with(
        "gateway:\n  egress:\n    credentials:\n      - host: api.github.com\n        value_env: GITHUB_TOKEN\n",
    );
    insta::assert_snapshot!(lab.errors(), @r"
    error: the variable GITHUB_TOKEN of api.github.com is not set
      --> ~/.hermes/config.yaml:4:9
       |
     4 |       - host: api.github.com
       |         ^
      = key: gateway.egress.credentials
      = set it in .env or the environment
    ");
}

#[test]
fn a_credential_for_every_host() {
    let lab = Lab::with(
        "gateway:\n  egress:\n    credentials:\n      - host: '*.github.com'\n        value_env: HOME\n",
    );
    insta::assert_snapshot!(lab.errors(), @r"
    error: `*.github.com` is not a host that can have a credential
      --> ~/.hermes/config.yaml:4:9
       |
     4 |       - host: '*.github.com'
       |         ^
      = key: gateway.egress.credentials
      = write one exact name, so that the credential goes nowhere else
    ");
}

#[test]
fn a_misspelt_credential_field() {
    let lab = Lab::with(
        "gateway:\n  egress:\n    credentials:\n      - hosts: api.github.com\n        value_env: HOME\n",
    );
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown field `hosts`
      --> ~/.hermes/config.yaml:4:9
       |
     4 |       - hosts: api.github.com
       |         ^^^^^
      = key: gateway.egress.credentials.hosts
      = did you mean `host`?
    ");
}

#[test]
fn only_a_word() {
    let lab = Lab::with("docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a map at the top, found a single value
      --> ~/.hermes/config.yaml:1:1
       |
     1 | docker
       | ^^^^^^
      = a configuration is lines of `key: value`; `hermetic config init` writes one
    ");
}

#[test]
fn only_a_list() {
    let lab = Lab::with("- docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a map at the top, found a list
      --> ~/.hermes/config.yaml:1:1
       |
     1 | - docker
       | ^
      = a configuration is lines of `key: value`; `hermetic config init` writes one
    ");
}

#[test]
fn a_token_that_is_a_list() {
    let lab = Lab::with("telegram:\n  token: [hunter2]\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected text, found a list
      --> ~/.hermes/config.yaml:2:10
       |
     2 |   token: *********
       |          ^
      = key: telegram.token
    ");
}

#[test]
fn an_enabled_platform_without_a_token() {
    let lab = Lab::with("platforms:\n  slack:\n    enabled: true\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: slack is enabled and has no token
      --> ~/.hermes/config.yaml:3:14
       |
     3 |     enabled: true
       |              ^^^^
      = key: platforms.slack.enabled
      = set SLACK_BOT_TOKEN, or switch it off

    error: slack is enabled and has no app_token
      --> ~/.hermes/config.yaml:3:14
       |
     3 |     enabled: true
       |              ^^^^
      = key: platforms.slack.enabled
      = set SLACK_APP_TOKEN, or switch it off
    ");
}

#[test]
fn a_webhook_without_a_secret() {
    let lab = Lab::with("telegram:\n  webhook_url: https://bot.invalid/hook\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: a webhook without a secret takes messages from anybody
      --> ~/.hermes/config.yaml:2:16
       |
     2 |   webhook_url: https://bot.invalid/hook
       |                ^^^^^^^^^^^^^^^^^^^^^^^^
      = key: platforms.telegram.webhook_url
      = set TELEGRAM_WEBHOOK_SECRET, or leave the webhook out to poll
    ");
}

#[test]
fn a_mount_that_is_none() {
    let lab = Lab::with("terminal:\n  native_mounts: ['data:/data', '/a:/b:rx', '/../etc:/b']\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: `data:/data` is not a mount
      --> ~/.hermes/config.yaml:2:19
       |
     2 |   native_mounts: ['data:/data', '/a:/b:rx', '/../etc:/b']
       |                   ^^^^^^^^^^^^
      = key: terminal.native_mounts
      = write `/host/path:/inside`, with `:rw` at the end to allow writing

    error: `/a:/b:rx` is not a mount
      --> ~/.hermes/config.yaml:2:33
       |
     2 |   native_mounts: ['data:/data', '/a:/b:rx', '/../etc:/b']
       |                                 ^^^^^^^^^^
      = key: terminal.native_mounts
      = write `/host/path:/inside`, with `:rw` at the end to allow writing

    error: `/../etc:/b` is not a mount
      --> ~/.hermes/config.yaml:2:45
       |
     2 |   native_mounts: ['data:/data', '/a:/b:rx', '/../etc:/b']
       |                                             ^^^^^^^^^^^^
      = key: terminal.native_mounts
      = write `/host/path:/inside`, with `:rw` at the end to allow writing
    ");
}

#[test]
fn a_relative_rootfs() {
    let lab = Lab::with("terminal:\n  native_rootfs: rootfs\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected an absolute path without `..`
      --> ~/.hermes/config.yaml:2:18
       |
     2 |   native_rootfs: rootfs
       |                  ^^^^^^
      = key: terminal.native_rootfs
      = for example /srv/rootfs
    ");
}

#[test]
fn a_provider_that_is_a_word() {
    let lab = Lab::with("providers:\n  openrouter: fast\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a map, found a single value
      --> ~/.hermes/config.yaml:2:15
       |
     2 |   openrouter: fast
       |               ^^^^
      = key: providers.openrouter
      = its fields are name, base_url, api_key, key_env, api_mode, model, request_timeout_seconds, stale_timeout_seconds, models, api_version, extra_headers, extra_body
    ");
}

#[test]
fn an_auxiliary_field_misspelt() {
    let lab = Lab::with("auxiliary:\n  approval:\n    modell: small\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown field `modell`
      --> ~/.hermes/config.yaml:3:5
       |
     3 |     modell: small
       |     ^^^^^^
      = key: auxiliary.approval.modell
      = did you mean `model`?
    ");
}

#[test]
fn a_platform_without_limits_on_who_may_write() {
    let lab = Lab::with("whatsapp:\n  enabled: true\n  dm_policy: open\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: `open` lets everybody write, and nothing else says so
      --> ~/.hermes/config.yaml:3:14
       |
     3 |   dm_policy: open
       |              ^^^^
      = key: platforms.whatsapp.dm_policy
      = set WHATSAPP_ALLOW_ALL_USERS=true as well, or choose pairing
    ");
}

#[test]
fn a_platform_without_an_app_secret() {
    let lab = Lab::new()
        .dotenv("WHATSAPP_CLOUD_PHONE_NUMBER_ID=1\nWHATSAPP_CLOUD_ACCESS_TOKEN=hunter2\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: whatsapp_cloud has no app_secret to tell its messages from forged ones
      = key: platforms.whatsapp_cloud.app_secret
      = set WHATSAPP_CLOUD_APP_SECRET, or switch it off
    ");
}
