//! The program as somebody at a keyboard meets it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has failed"
)]

mod agents;
mod audit;
mod backup;
mod chat;
mod configuration;
mod dashboard_serve;
mod daytona;
#[path = "../../../backends/daytona/tests/server/mod.rs"]
#[allow(dead_code, unused_imports, reason = "its own tests use the rest")]
mod daytona_server;
mod demo;
mod deployment;
mod docker;
mod doctor;
mod egress;
mod flow;
mod gateway;
mod git_ssh;
mod half_open;
mod hermetic;
mod kubernetes;
#[path = "../../../backends/kubernetes/tests/server/mod.rs"]
#[allow(dead_code, unused_imports, reason = "its own tests use the rest")]
mod kubernetes_cluster;
mod mcp;
mod memory;
mod migrate;
mod modal;
#[path = "../../../backends/modal/tests/service/mod.rs"]
#[allow(dead_code, unused_imports, reason = "its own tests use the rest")]
mod modal_service;
mod models;
mod packaged;
mod pairing;
mod platform_setup;
#[path = "../../../store/tests/postgres_server/mod.rs"]
mod postgres_server;
mod probes;
mod sandbox;
mod service;
mod setup;
mod several;
mod singularity;
mod ssh;
#[path = "../../../backends/ssh/tests/lab.rs"]
#[allow(dead_code, reason = "its own tests use the rest")]
mod ssh_lab;
mod surface;
