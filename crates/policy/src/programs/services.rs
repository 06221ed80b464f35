//! Services: restarting one's own is work, stopping those that guard or record is not.

use super::acts::subcommands;
use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

#[rustfmt::skip]
const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["systemctl"], &["stop|disable|mask|kill|isolate|set-default|edit|revert|set-property|enable|reenable|link|daemon-reexec|unmask"], HarmCategory::Service, "changes which services run").unless(&["--help"]),
    HarmfulAct::new(&["service", "rc-service"], &["*", "stop"], HarmCategory::Service, "changes which services run"),
    HarmfulAct::new(&["rc-update", "chkconfig", "update-rc.d", "insserv"], &["*"], HarmCategory::Persistence, "changes what starts at boot").unless(&["--list", "show"]),
    HarmfulAct::new(&["initctl", "supervisorctl", "sv", "s6-svc", "monit"], &["stop|shutdown|down"], HarmCategory::Service, "changes which services run"),
    HarmfulAct::new(&["launchctl"], &["load|bootstrap|submit|enable|unload|bootout|stop|disable|remove|start"], HarmCategory::Persistence, "changes which services run"),
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

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    const ORDERS: &[&str] = &[
        "EnableUnitFiles",
        "LinkUnitFiles",
        "StartTransientUnit",
        "MaskUnitFiles",
    ];
    if matches!(command.program(), "busctl" | "gdbus" | "dbus-send")
        && command.args().iter().any(|arg| {
            ORDERS
                .iter()
                .any(|order| arg.s == *order || arg.s.ends_with(&format!(".{order}")))
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Persistence,
            "changes which services run",
        ));
    }
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
    let begins = words.first() == Some(&"start") && restarted.len() == 1;
    if restarted
        .iter()
        .any(|service| !(is_ordinary(service) || begins && VITAL.contains(service)))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Service,
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
        "aliyundun",
        "aliyundunupdate",
        "aegis",
        "crowdstrike",
        "sentinelone",
        "sentineld",
        "carbonblack",
        "cbdaemon",
        "cbagentd",
        "mdatp",
        "wdavdaemon",
        "elastic-agent",
        "elastic-endpoint",
        "auditbeat",
        "filebeat",
        "sysmon",
        "tanium",
        "taniumclient",
        "rtvscand",
        "symantec",
        "ds_agent",
        "xagt",
        "ossec",
        "ossec-agentd",
        "aide",
        "fapolicyd",
        "usbguard",
        "tetragon",
        "traced",
        "velociraptor",
        "qualys-cloud-agent",
        "rkhunter",
        "savd",
        "sophos",
        "bdagent",
        "freshclam",
        "nessus",
        "gamin",
        "xprotect",
        "xprotectservice",
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
