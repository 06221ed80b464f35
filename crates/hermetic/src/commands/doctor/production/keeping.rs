//! What keeps it running, and what is left after the worst day.

use hermetic_app as app;
use hermetic_config::Config;

use super::ChecklistLine;
use super::machine::{MachineFacts, ServiceKeeper};

const DAY: u64 = 24 * 3600;

/// Older backups have forgotten too much.
const OLDEST_BACKUP: u64 = 7 * DAY;

pub(super) fn lines(config: &Config, machine: &MachineFacts) -> Vec<ChecklistLine> {
    let mut lines = vec![service(machine), watchdog(config, machine)];
    lines.extend(updates(machine));
    lines.extend(backups(machine));
    lines.push(audit(config));
    lines.extend(hermes(machine));
    lines
}

fn service(machine: &MachineFacts) -> ChecklistLine {
    match machine.keeper {
        ServiceKeeper::Unit => ChecklistLine::fine("service", "a unit of systemd starts it"),
        ServiceKeeper::DisabledUnit => ChecklistLine::weak(
            "service",
            "there is a unit of systemd, and nothing starts it with the machine",
            "hermetic gateway install, or for that of a package: sudo systemctl enable hermetic-gateway",
        ),
        ServiceKeeper::EndsWithSession => ChecklistLine::weak(
            "service",
            "a unit of your own systemd starts it, and it ends when you log out",
            "loginctl enable-linger",
        ),
        ServiceKeeper::Nobody => ChecklistLine::weak(
            "service",
            "nothing starts it with the machine or after a failure",
            "hermetic gateway install",
        ),
        ServiceKeeper::NoSystemd => ChecklistLine::advice(
            "service",
            "there is no systemd here",
            "let whatever starts this container or machine start it again when it ends",
        ),
    }
}

fn watchdog(config: &Config, machine: &MachineFacts) -> ChecklistLine {
    match (machine.keeper, config.sessions().watchdog) {
        // It is systemd that counts the signs of life.
        (ServiceKeeper::NoSystemd, _) => ChecklistLine::advice(
            "watchdog",
            "nobody notices a gateway that hangs",
            "a health check that asks /health (`hermetic probe`)",
        ),
        (_, Some(interval)) => {
            let what = format!(
                "a gateway that hangs for {} s is started again",
                interval.as_secs()
            );
            ChecklistLine::fine("watchdog", what)
        }
        (_, None) => ChecklistLine::weak(
            "watchdog",
            "nobody notices a gateway that hangs",
            "take `systemd_watchdog_seconds: 0` out, then `hermetic gateway install` once more",
        ),
    }
}

fn updates(machine: &MachineFacts) -> Option<ChecklistLine> {
    let ours = env!("CARGO_PKG_VERSION");
    match machine.running_version.as_deref() {
        Some(running) if running != ours => Some(ChecklistLine::weak(
            "updates",
            format!("version {running} runs, and {ours} is installed"),
            "hermetic gateway restart",
        )),
        Some(running) => Some(ChecklistLine::fine(
            "updates",
            format!("version {running} runs"),
        )),
        None => None,
    }
}

fn backups(machine: &MachineFacts) -> Vec<ChecklistLine> {
    let remedy = "hermetic backup /mnt/elsewhere/, once a day by cron or a timer";
    let Some(last) = &machine.last_backup else {
        return vec![ChecklistLine::weak(
            "backups",
            "there was never one",
            remedy,
        )];
    };
    let age = machine.now.saturating_sub(last.at);
    let days = age / DAY;
    if age > OLDEST_BACKUP {
        let what = format!("the last one is {days} days old");
        return vec![ChecklistLine::weak("backups", what, remedy)];
    }
    let what = match days {
        0 => "the last one is of today".to_owned(),
        1 => "the last one is a day old".to_owned(),
        days => format!("the last one is {days} days old"),
    };
    let mut lines = vec![ChecklistLine::fine("backups", what)];
    if machine.is_backup_on_the_same_disk {
        lines.push(ChecklistLine::advice(
            "backups",
            format!("{} is on the disk it protects from", last.file.display()),
            "copy it to another machine",
        ));
    }
    lines
}

fn audit(config: &Config) -> ChecklistLine {
    let places = app::audit_places(config);
    match (places.head_is_beside(), places.key_is_beside()) {
        (false, _) => ChecklistLine::fine("audit", "the note of the record's end lies elsewhere"),
        (true, _) => ChecklistLine::weak(
            "audit",
            "the note of where the record ends lies beside it: whoever restores the folder takes back both",
            "security.audit_head_file: a file on another file system, or of another user",
        ),
    }
}

fn hermes(machine: &MachineFacts) -> Option<ChecklistLine> {
    let pid = machine.hermes.first()?;
    Some(ChecklistLine::weak(
        "hermes",
        format!("a gateway of Hermes runs beside this one (pid {pid})"),
        "hermes gateway stop",
    ))
}
