//! Services: restarting one's own is work, stopping those that guard or record is not.

use super::acts::subcommands;
use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};

#[rustfmt::skip]
const ACTS: &[Act] = &[
    Act::new(&["systemctl"], &["stop|disable|mask|kill|isolate|set-default|edit|revert|set-property|enable|reenable|link|daemon-reexec|unmask"], Category::Service, "changes which services run").unless(&["--help"]),
    Act::new(&["service", "rc-service"], &["*", "stop"], Category::Service, "changes which services run"),
    Act::new(&["rc-update", "chkconfig", "update-rc.d", "insserv"], &["*"], Category::Persistence, "changes what starts at boot").unless(&["--list", "show"]),
    Act::new(&["initctl", "supervisorctl", "sv", "s6-svc", "monit"], &["stop|shutdown|down"], Category::Service, "changes which services run"),
    Act::new(&["launchctl"], &["load|bootstrap|submit|enable|unload|bootout|stop|disable|remove|kickstart|start"], Category::Persistence, "changes which services run"),
];

/// Without these nobody gets in, nothing is recorded, or nothing is kept out.
const VITAL: &[&str] = &[
    "apparmor",
    "auditd",
    "clamav-daemon",
    "containerd",
    "crowdsec",
    "dbus",
    "docker",
    "fail2ban",
    "falco",
    "falcon-sensor",
    "firewalld",
    "iptables",
    "kubelet",
    "network",
    "networking",
    "NetworkManager",
    "nftables",
    "osqueryd",
    "rsyslog",
    "ssh",
    "sshd",
    "syslog",
    "syslog-ng",
    "systemd-journald",
    "systemd-logind",
    "systemd-networkd",
    "systemd-resolved",
    "ufw",
    "wazuh-agent",
];

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let words = subcommands(command);
    let restarted = match (command.program(), words.as_slice()) {
        (
            "systemctl",
            [
                "start" | "restart" | "reload" | "try-restart" | "reload-or-restart",
                services @ ..,
            ],
        ) => services,
        (
            "service" | "rc-service",
            [service, "start" | "restart" | "reload" | "force-reload", ..],
        ) => &[*service],
        _ => &[],
    };
    if restarted.iter().any(|service| !is_ordinary(service)) {
        findings.push(Finding::dangerous(
            Category::Service,
            "restarts something the machine relies on",
        ));
    }
    findings
}

/// Whether a process is one of those, by any spelling.
pub(super) fn is_vital(process: &str) -> bool {
    const GUARDS: &[&str] = &[
        "falcon",
        "little snitch",
        "eset",
        "esensor",
        "nessusd",
        "osqueryd",
        "wazuh-agentd",
        "sentinelctl",
        "jamf",
        "santad",
        "lulu",
        "blockblock",
        "clamd",
        "snort",
        "suricata",
    ];
    let lower = process.to_lowercase();
    VITAL.contains(&process) && process != "docker" && process != "network"
        || GUARDS.contains(&lower.as_str())
}

fn is_ordinary(service: &str) -> bool {
    let name = service.strip_suffix(".service").unwrap_or(service);
    !VITAL.contains(&name)
        && !name.contains(crate::text::is_hole)
        && !name.contains(['*', '/'])
        && !name.ends_with(".target")
}
