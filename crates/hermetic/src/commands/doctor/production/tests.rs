//! Ten and more planted weaknesses, each found, and a good configuration.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use hermetic_config::{Config, ConfigInputs, HomeFolder};
use hermetic_sandbox::{BackendReadiness, LayerState, SealLayer};
use hermetic_types::BackendKind;
use tempfile::TempDir;

use super::machine::{ClockSync, MachineFacts, ServiceKeeper};
use super::{LineState, lines};
use crate::commands::backup::LastBackup;

const GOOD: &str = "\
model: {default: m, base_url: 'http://127.0.0.1:9/v1'}
approvals: {mode: manual, approvers: ['telegram:11']}
terminal: {container_memory: 512, container_disk: 2048}
gateway: {egress: {budget_bytes: 1GB}, systemd_watchdog_seconds: 60}
security: {audit_head_file: /mnt/elsewhere/audit.head}
budgets: {all: {tokens: 1000000}}
telegram: {token: '1:a', allowed_users: ['11', '22']}
";

const NOW: u64 = 1_800_000_000;

fn config(text: &str, dotenv: &str) -> (TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("config.yaml", text), (".env", dotenv)] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let inputs = ConfigInputs {
        home: HomeFolder::at(folder.path()),
        managed: folder.path().join("managed.yaml"),
        variables: BTreeMap::new(),
        unreadable: Vec::new(),
    };
    let config = hermetic_config::load(&inputs).unwrap_or_else(|problems| panic!("{problems}"));
    (folder, config)
}

fn good_machine() -> MachineFacts {
    let layer = SealLayer {
        name: "user namespace",
        state: LayerState::Active,
        detail: String::new(),
        remedy: None,
    };
    let readiness = BackendReadiness {
        layers: vec![layer],
    };
    MachineFacts {
        backends: vec![(BackendKind::Native, Ok(readiness))],
        memory_bytes: Some(8 << 30),
        cores: 4,
        disk_free_bytes: Some(100 << 30),
        runs_as_root: false,
        exposed: Vec::new(),
        listeners: vec!["127.0.0.1:9119".parse().unwrap()],
        running_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        keeper: ServiceKeeper::Unit,
        paired_operators: 0,
        clock: ClockSync::Synced,
        last_backup: Some(LastBackup {
            at: NOW - 3600,
            file: PathBuf::from("/mnt/elsewhere/backup.tar"),
            bytes: 1,
        }),
        is_backup_on_the_same_disk: false,
        hermes: Vec::new(),
        now: NOW,
    }
}

#[test]
fn a_good_configuration_on_a_good_machine_passes() {
    let (_folder, config) = config(GOOD, "");
    let lines = lines(&config, &good_machine());
    let not_fine: Vec<_> = lines
        .iter()
        .filter(|line| line.state != LineState::Fine)
        .collect();
    assert!(not_fine.is_empty(), "{not_fine:#?}");
}

/// The checks that call something weak, in order.
fn weak(text: &str, dotenv: &str, machine: &MachineFacts) -> Vec<&'static str> {
    let (_folder, config) = config(text, dotenv);
    let lines = lines(&config, machine).into_iter();
    let weak = lines.filter(|line| line.state == LineState::Weak);
    weak.map(|line| line.check).collect()
}

#[test]
fn each_weakness_in_a_configuration_is_found_and_nothing_else() {
    let with = |old: &str, new: &str| {
        assert!(GOOD.contains(old), "{old}");
        GOOD.replace(old, new)
    };
    for (planted, found) in [
        (with("egress: {", "egress: {mode: open, "), "egress"),
        (
            with("egress: {", "egress: {allow_private: true, "),
            "egress",
        ),
        (with("mode: manual", "mode: off"), "approvals"),
        (with("['11', '22']", "['*']"), "people"),
        (with(", approvers: ['telegram:11']", ""), "roles"),
        (with("memory: 512", "memory: 8192"), "limits"),
        (with("disk: 2048", "disk: 204800"), "limits"),
        (
            with("gateway: {", "gateway: {dashboard: {host: 0.0.0.0}, "),
            "ports",
        ),
        (with("gateway: {", "gateway: {disk_reserve: 10, "), "disk"),
        (
            with("watchdog_seconds: 60", "watchdog_seconds: 0"),
            "watchdog",
        ),
        (
            with(
                "security: {audit_head_file: /mnt/elsewhere/audit.head}\n",
                "",
            ),
            "audit",
        ),
        (
            with("security: {", "security: {redact_secrets: false, "),
            "secrets",
        ),
        (
            with("terminal: {", "terminal: {native_accept_risks: [/etc], "),
            "folders",
        ),
    ] {
        assert_eq!(weak(&planted, "", &good_machine()), [found], "{planted}");
    }
    let everybody = "GATEWAY_ALLOW_ALL_USERS=true\n";
    assert_eq!(weak(GOOD, everybody, &good_machine()), ["people"]);
}

#[test]
fn each_weakness_of_a_machine_is_found_and_nothing_else() {
    type Plant = fn(&mut MachineFacts);
    let planted: [(Plant, &str); 13] = [
        (
            |machine| machine.backends[0].0 = BackendKind::Local,
            "sandbox",
        ),
        (
            |machine| machine.backends[0].1 = Err("no user namespaces".to_owned()),
            "sandbox",
        ),
        (|machine| machine.runs_as_root = true, "user"),
        (
            |machine| {
                machine
                    .exposed
                    .push((PathBuf::from("/srv/bot/.env"), 0o644));
            },
            "modes",
        ),
        (|machine| machine.disk_free_bytes = Some(600 << 20), "disk"),
        (|machine| machine.clock = ClockSync::Adrift, "clock"),
        (|machine| machine.keeper = ServiceKeeper::Nobody, "service"),
        (
            |machine| machine.keeper = ServiceKeeper::DisabledUnit,
            "service",
        ),
        (
            |machine| machine.keeper = ServiceKeeper::EndsWithSession,
            "service",
        ),
        (
            |machine| machine.running_version = Some("0.0.1".to_owned()),
            "updates",
        ),
        (|machine| machine.last_backup = None, "backups"),
        (|machine| machine.now += 30 * 24 * 3600, "backups"),
        (|machine| machine.hermes.push(4711), "hermes"),
    ];
    for (plant, found) in planted {
        let mut machine = good_machine();
        plant(&mut machine);
        let text = GOOD.replace("container_disk: 2048", "container_disk: 256");
        assert_eq!(weak(&text, "", &machine), [found], "{machine:?}");
    }
}

#[test]
fn who_can_answer_is_counted_as_the_gateway_counts() {
    let nobody = GOOD
        .replace(", approvers: ['telegram:11']", "")
        .replace(", allowed_users: ['11', '22']", "");
    assert_eq!(weak(&nobody, "", &good_machine()), ["roles"]);
    // Let in by a code, as an operator.
    let paired = MachineFacts {
        paired_operators: 1,
        ..good_machine()
    };
    assert_eq!(weak(&nobody, "", &paired), [""; 0]);
    // One person, on two platforms.
    let twice = nobody.replace("token: '1:a'", "token: '1:a', allowed_users: ['11']")
        + "discord: {token: 'd', allowed_users: ['4711']}\n";
    assert_eq!(weak(&twice, "", &good_machine()), [""; 0]);
    // Beside whoever is listed for all platforms.
    let everywhere = "GATEWAY_ALLOWED_USERS=33\n";
    assert_eq!(weak(&twice, everywhere, &good_machine()), ["roles"]);
}

#[test]
fn a_day_without_a_bound_is_advised_against() {
    let text = GOOD.replace("budgets: {all: {tokens: 1000000}}\n", "");
    let (_folder, config) = config(&text, "");
    let lines = lines(&config, &good_machine());
    let line = lines.iter().find(|line| line.check == "spending").unwrap();
    assert_eq!(line.state, LineState::Advice);
}

#[test]
fn the_defaults_on_a_small_machine_are_called_out() {
    let small = MachineFacts {
        memory_bytes: Some(1 << 30),
        disk_free_bytes: Some(20 << 30),
        ..good_machine()
    };
    let text = GOOD.replace(
        "terminal: {container_memory: 512, container_disk: 2048}\n",
        "",
    );
    let (_folder, config) = config(&text, "");
    let lines = lines(&config, &small).into_iter();
    let said: Vec<_> = lines
        .filter(|line| line.check == "limits")
        .map(|line| (line.what, line.remedy.unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            (
                "one sandbox may use 5.3 GB of memory, and this machine has 1.0 GB".to_owned(),
                "terminal.container_memory: 256".to_owned()
            ),
            (
                "one sandbox may use 53 GB of disk, and 21 GB are free".to_owned(),
                "terminal.container_disk: 5120".to_owned()
            ),
        ]
    );
}
