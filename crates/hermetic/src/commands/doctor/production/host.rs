//! The machine around the gateway: rights, modes, ports, room, the clock.

use std::net::IpAddr;

use hermetic_config::Config;

use super::ChecklistLine;
use super::machine::{ClockSync, MachineFacts};
use crate::output::size;

/// Less does not hold what a gateway writes while somebody makes room.
const LEAST_RESERVE: u64 = 128 << 20;

pub(super) fn lines(config: &Config, machine: &MachineFacts) -> Vec<ChecklistLine> {
    let mut lines = vec![user(machine)];
    lines.extend(modes(machine));
    lines.extend(ports(config, machine));
    lines.push(room(config, machine));
    lines.push(clock(machine));
    lines
}

fn user(machine: &MachineFacts) -> ChecklistLine {
    match machine.runs_as_root {
        true => ChecklistLine::weak(
            "user",
            "the gateway has root's rights, and so has whoever takes it over",
            "give its home to a user of its own: `gateway install --system --run-as USER`",
        ),
        false => ChecklistLine::fine("user", "the gateway is not root"),
    }
}

fn modes(machine: &MachineFacts) -> Vec<ChecklistLine> {
    let open = machine.exposed.iter().map(|(path, mode)| {
        let kind = if path.is_dir() { 700 } else { 600 };
        ChecklistLine::weak(
            "modes",
            format!(
                "others on this machine get at {} (mode {mode:o})",
                path.display()
            ),
            format!("chmod {kind} {}", path.display()),
        )
    });
    let open: Vec<_> = open.collect();
    match open.is_empty() {
        true => vec![ChecklistLine::fine(
            "modes",
            "keys and rows are their owner's alone",
        )],
        false => open,
    }
}

/// What is written, and what a gateway that runs really listens on.
fn ports(config: &Config, machine: &MachineFacts) -> Vec<ChecklistLine> {
    let mut lines = Vec::new();
    let dashboard = &config.gateway().dashboard;
    if !is_loopback(&dashboard.host) {
        lines.push(ChecklistLine::weak(
            "ports",
            format!(
                "health and metrics are answered on {}:{}, without a password",
                dashboard.host, dashboard.port
            ),
            "gateway.dashboard.host: 127.0.0.1, and a proxy with TLS and a password before it",
        ));
    }
    let written = |port: u16| lines.is_empty() || port != dashboard.port;
    let others = machine.listeners.iter();
    let others = others.filter(|one| !one.ip().is_loopback() && written(one.port()));
    let others: Vec<_> = others.map(ToString::to_string).collect();
    if !others.is_empty() {
        lines.push(ChecklistLine::advice(
            "ports",
            format!("the gateway listens on {}", others.join(", ")),
            "what platforms call needs TLS: put a proxy before it, and listen on 127.0.0.1",
        ));
    }
    if lines.is_empty() {
        lines.push(ChecklistLine::fine(
            "ports",
            "nothing listens beyond this machine",
        ));
    }
    lines
}

fn is_loopback(host: &str) -> bool {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

fn room(config: &Config, machine: &MachineFacts) -> ChecklistLine {
    let reserve = config.gateway().disk_reserve_bytes;
    let Some(free) = machine.disk_free_bytes else {
        return ChecklistLine::advice("disk", "its free room cannot be told", "look at `df`");
    };
    if reserve < LEAST_RESERVE {
        return ChecklistLine::weak(
            "disk",
            format!(
                "only {} are kept free for the gateway's own rows",
                size(reserve)
            ),
            "gateway.disk_reserve: 512",
        );
    }
    if free < reserve.saturating_mul(2) {
        return ChecklistLine::weak(
            "disk",
            format!(
                "{} are free, {} of them the reserve",
                size(free),
                size(reserve)
            ),
            "make room, or put the home on another disk",
        );
    }
    let what = format!("{} free, {} kept as a reserve", size(free), size(reserve));
    ChecklistLine::fine("disk", what)
}

fn clock(machine: &MachineFacts) -> ChecklistLine {
    match machine.clock {
        ClockSync::Synced => ChecklistLine::fine("clock", "set by the network"),
        ClockSync::Adrift => ChecklistLine::weak(
            "clock",
            "is not set by the network: signatures, codes and the audit record depend on it",
            "timedatectl set-ntp true",
        ),
        ClockSync::Unknown => ChecklistLine::advice(
            "clock",
            "whether something sets it cannot be told here",
            "see that the host runs chrony, ntpd or systemd-timesyncd",
        ),
    }
}
