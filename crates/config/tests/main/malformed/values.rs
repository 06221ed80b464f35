//! Values that cannot be.

use crate::lab::Lab;

#[test]
fn an_unknown_backend() {
    let lab = Lab::with("gateway:\n  terminal_backend: docer\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `docer`
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   terminal_backend: docer
       |                     ^^^^^
      = key: gateway.terminal_backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
      = did you mean docker?
    ");
}

#[test]
fn an_unknown_terminal_backend() {
    let lab = Lab::with("terminal:\n  backend: podman\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `podman`
      --> ~/.hermes/config.yaml:2:12
       |
     2 |   backend: podman
       |            ^^^^^^
      = key: terminal.backend
      = known: native, docker, singularity, ssh, modal, daytona, kubernetes, local
    ");
}

#[test]
fn a_negative_lifetime() {
    let lab = Lab::with("gateway:\n  sandbox_lifetime: -1\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: -1 is too small
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   sandbox_lifetime: -1
       |                     ^^
      = key: gateway.sandbox_lifetime
      = it must be between 1 and 31536000
    ");
}

#[test]
fn a_lifetime_of_zero() {
    let lab = Lab::with("gateway:\n  sandbox_lifetime: 0\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: 0 is too small
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   sandbox_lifetime: 0
       |                     ^
      = key: gateway.sandbox_lifetime
      = it must be between 1 and 31536000
    ");
}

#[test]
fn a_lifetime_in_words() {
    let lab = Lab::with("gateway:\n  sandbox_lifetime: an hour\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a whole number, found `an hour`
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   sandbox_lifetime: an hour
       |                     ^^^^^^^
      = key: gateway.sandbox_lifetime
      = it must be between 1 and 31536000
    ");
}

#[test]
fn a_lifetime_with_a_fraction() {
    let lab = Lab::with("gateway:\n  sandbox_lifetime: 3600.5\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a whole number, found `3600.5`
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   sandbox_lifetime: 3600.5
       |                     ^^^^^^
      = key: gateway.sandbox_lifetime
      = it must be between 1 and 31536000
    ");
}

#[test]
fn an_endless_lifetime() {
    let lab = Lab::with("gateway:\n  sandbox_lifetime: 99999999999999999999999\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: 99999999999999999999999 is too large
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   sandbox_lifetime: 99999999999999999999999
       |                     ^^^^^^^^^^^^^^^^^^^^^^^
      = key: gateway.sandbox_lifetime
      = it must be between 1 and 31536000
    ");
}

#[test]
fn memory_in_gbb() {
    let lab = Lab::with("terminal:\n  container_memory: 5GBB\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a size, found `5GBB`
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   container_memory: 5GBB
       |                     ^^^^
      = key: terminal.container_memory
      = write megabytes as a number, or a unit: 5120, 512MB, 5GB
    ");
}

#[test]
fn no_memory_at_all() {
    let lab = Lab::with("terminal:\n  container_memory: 0\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: 0 is too small
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   container_memory: 0
       |                     ^
      = key: terminal.container_memory
      = it must be 1MB or more
    ");
}

#[test]
fn negative_memory() {
    let lab = Lab::with("terminal:\n  container_memory: -5120\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a size, found `-5120`
      --> ~/.hermes/config.yaml:2:21
       |
     2 |   container_memory: -5120
       |                     ^^^^^
      = key: terminal.container_memory
      = write megabytes as a number, or a unit: 5120, 512MB, 5GB
    ");
}

#[test]
fn cpu_that_is_not_a_number() {
    let lab = Lab::with("terminal:\n  container_cpu: .nan\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a number, found `.nan`
      --> ~/.hermes/config.yaml:2:18
       |
     2 |   container_cpu: .nan
       |                  ^^^^
      = key: terminal.container_cpu
      = it must be between 0.01 and 4096
    ");
}

#[test]
fn cpu_without_end() {
    let lab = Lab::with("terminal:\n  container_cpu: .inf\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected a number, found `.inf`
      --> ~/.hermes/config.yaml:2:18
       |
     2 |   container_cpu: .inf
       |                  ^^^^
      = key: terminal.container_cpu
      = it must be between 0.01 and 4096
    ");
}

#[test]
fn cpu_of_zero() {
    let lab = Lab::with("terminal:\n  container_cpu: 0\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: 0 is too small
      --> ~/.hermes/config.yaml:2:18
       |
     2 |   container_cpu: 0
       |                  ^
      = key: terminal.container_cpu
      = it must be between 0.01 and 4096
    ");
}

#[test]
fn a_misspelt_egress_mode() {
    let lab = Lab::with("gateway:\n  egress:\n    mode: allow-list\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `allow-list`
      --> ~/.hermes/config.yaml:3:11
       |
     3 |     mode: allow-list
       |           ^^^^^^^^^^
      = key: gateway.egress.mode
      = known: allowlist, open, closed
      = did you mean allowlist?
    ");
}

#[test]
fn an_unknown_approval_mode() {
    let lab = Lab::with("approvals:\n  mode: yolo\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: unknown value `yolo`
      --> ~/.hermes/config.yaml:2:9
       |
     2 |   mode: yolo
       |         ^^^^
      = key: approvals.mode
      = known: smart, manual, off
    ");
}

#[test]
fn a_flag_that_is_neither() {
    let lab = Lab::with("terminal:\n  docker_network: maybe\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: expected true or false, found `maybe`
      --> ~/.hermes/config.yaml:2:19
       |
     2 |   docker_network: maybe
       |                   ^^^^^
      = key: terminal.docker_network
    ");
}

#[test]
fn a_port_out_of_range() {
    let lab = Lab::with("terminal:\n  ssh_port: 65536\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: 65536 is too large
      --> ~/.hermes/config.yaml:2:13
       |
     2 |   ssh_port: 65536
       |             ^^^^^
      = key: terminal.ssh_port
      = it must be between 1 and 65535
    ");
}

#[test]
fn an_hour_of_the_day_that_does_not_exist() {
    let lab = Lab::with("session_reset:\n  mode: daily\n  at_hour: 24\n");
    insta::assert_snapshot!(lab.errors(), @r"
    error: 24 is too large
      --> ~/.hermes/config.yaml:3:12
       |
     3 |   at_hour: 24
       |            ^^
      = key: session_reset.at_hour
      = it must be between 0 and 23
    ");
}

#[test]
fn a_bad_value_in_the_legacy_file() {
    let lab = Lab::new().file(
        "gateway.json",
        "{\"unauthorized_dm_behavior\": \"welcome\"}",
    );
    insta::assert_snapshot!(lab.errors(), @r#"
    error: unknown value `welcome`
      --> ~/.hermes/gateway.json:1:30
       |
     1 | {"unauthorized_dm_behavior": "welcome"}
       |                              ^^^^^^^^^
      = key: unauthorized_dm_behavior
      = known: pair, ignore
    "#);
}
