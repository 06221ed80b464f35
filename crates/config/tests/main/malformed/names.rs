//! Keys that are nearly right.

use crate::lab::Lab;

#[test]
fn a_misspelt_key() {
    let lab = Lab::with("terminal:\n  bakend: docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown key `bakend`
      --> ~/.hermes/config.yaml:2:3
       |
     2 |   bakend: docker
       |   ^^^^^^
      = key: terminal.bakend
      = did you mean `backend`?
    ");
}

#[test]
fn a_misspelt_section() {
    let lab = Lab::with("gatway:\n  terminal_backend: docker\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown key `gatway`
      --> ~/.hermes/config.yaml:1:1
       |
     1 | gatway:
       | ^^^^^^
      = key: gatway
      = did you mean `gateway`?
    ");
}

#[test]
fn a_key_in_the_wrong_section() {
    let lab = Lab::with("terminal:\n  sandbox_lifetime: 60\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown key `sandbox_lifetime`
      --> ~/.hermes/config.yaml:2:3
       |
     2 |   sandbox_lifetime: 60
       |   ^^^^^^^^^^^^^^^^
      = key: terminal.sandbox_lifetime
      = it belongs at `gateway.sandbox_lifetime`
    ");
}

#[test]
fn a_key_without_its_section() {
    let lab = Lab::with("terminal_backend: local\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown key `terminal_backend`
      --> ~/.hermes/config.yaml:1:1
       |
     1 | terminal_backend: local
       | ^^^^^^^^^^^^^^^^
      = key: terminal_backend
      = it belongs at `gateway.terminal_backend`
    ");
}

#[test]
fn a_key_with_dashes() {
    let lab = Lab::with("gateway:\n  terminal-backend: local\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown key `terminal-backend`
      --> ~/.hermes/config.yaml:2:3
       |
     2 |   terminal-backend: local
       |   ^^^^^^^^^^^^^^^^
      = key: gateway.terminal-backend
      = did you mean `terminal_backend`?
    ");
}

#[test]
fn many_at_once() {
    let lab = Lab::with(
        "terminal:\n  backend: docer\n  timeout: soon\ngateway:\n  sandbox_lifetme: 5\napprovals: []\n",
    );
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `docer`
      --> ~/.hermes/config.yaml:2:12
       |
     2 |   backend: docer
       |            ^^^^^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?

    error: expected a whole number, found `soon`
      --> ~/.hermes/config.yaml:3:12
       |
     3 |   timeout: soon
       |            ^^^^
      = key: terminal.timeout
      = it must be between 1 and 86400

    error: unknown key `sandbox_lifetme`
      --> ~/.hermes/config.yaml:5:3
       |
     5 |   sandbox_lifetme: 5
       |   ^^^^^^^^^^^^^^^
      = key: gateway.sandbox_lifetme
      = did you mean `sandbox_lifetime`?

    error: expected a map, found a list
      --> ~/.hermes/config.yaml:6:12
       |
     6 | approvals: []
       |            ^
      = key: approvals
      = keys that belong here: mode, timeout, cron_mode, deny, approvers, mcp_reload_confirm, destructive_slash_confirm, …
    ");
}

#[test]
fn a_key_with_dots() {
    let lab = Lab::with("terminal.backend: local\ngateway:\n  egress.mode: open\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: a key with dots is not taken apart
      --> ~/.hermes/config.yaml:1:1
       |
     1 | terminal.backend: local
       | ^^^^^^^^^^^^^^^^
      = key: terminal.backend
      = write `backend:` in its own line below `terminal:`

    error: a key with dots is not taken apart
      --> ~/.hermes/config.yaml:3:3
       |
     3 |   egress.mode: open
       |   ^^^^^^^^^^^
      = key: gateway.egress.mode
      = write `mode:` in its own line below `gateway.egress:`
    ");
}

#[test]
fn a_section_with_a_capital() {
    let lab = Lab::with("Gateway:\n  terminal_backend: local\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown key `Gateway`
      --> ~/.hermes/config.yaml:1:1
       |
     1 | Gateway:
       | ^^^^^^^
      = key: Gateway
      = did you mean `gateway`?
    ");
}
