//! The act of stopping or restarting a machine, by whatever tool.
//!
//! Tools that steer machines say it by a word (`PowerOff`, `reboot`, `system.shutdown`), wherever in
//! their arguments it stands. For any other tool a subcommand of that name is a question.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::texts::takes_texts;
use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

/// How the act is called; what follows does not matter (`PowerOffWithFlags`).
const WORDS: &[&str] = &[
    "poweroff",
    "powerdown",
    "powercycle",
    "reboot",
    "shutdown",
    "halt",
    "hardreset",
    "forceoff",
    "forcerestart",
    "gracefulshutdown",
    "gracefulrestart",
    "hardpoweroff",
];

/// Tools that steer this machine, or others, as a whole.
const STEERS: &[&str] = &[
    "dbus-send",
    "busctl",
    "gdbus",
    "qdbus",
    "qdbus6",
    "qdbus-qt5",
    "dcop",
    "salt",
    "salt-call",
    "salt-ssh",
    "ansible",
    "dinitctl",
    "dinit",
    "openrc",
    "initctl",
    "launchctl",
    "redfishtool",
    "redfish",
    "rf_power_reset.py",
    "ilorest",
    "racadm",
    "hponcfg",
    "ipmitool",
    "ipmipower",
    "ipmi-chassis",
    "ipmiutil",
    "upscmd",
    "upsdrvctl",
    "upsmon",
    "apcupsd",
    "stonith_admin",
    "stonith",
    "ectool",
    "wsl",
    "rc-service",
    "rc",
    "mco",
    "bolt",
    "knife",
    "nixos-rebuild",
    "cloud-init",
    "sysupgrade",
    "needrestart",
    "unattended-upgrade",
    "rpc.shutdown",
    "winexe",
    "acpiconf",
    "zzz",
    "bmc-device",
    "sv",
    "runsvchdir",
    "initng",
    "minitctl",
    "nut",
];

/// Tools whose machines are a test's, a phone or a picture of one.
const OF_GUESTS: &[&str] = &[
    "vagrant",
    "xcrun",
    "simctl",
    "ddev",
    "lando",
    "docker-machine",
    "multipass",
    "limactl",
    "colima",
    "podman",
    "docker",
    "avdmanager",
    "emulator",
    "adb",
    "fastboot",
    "wsl.exe",
    "kubectl",
    "helm",
    "virsh",
    "VBoxManage",
    "prlctl",
    "utmctl",
    "tart",
    "lxc",
    "incus",
    "machinectl",
    "qm",
    "pct",
    "telnet",
    "nc",
    "node",
    "python",
    "python3",
    "ruby",
    "php",
    "perl",
    "go",
    "rake",
    "rails",
    "mix",
    "gradle",
    "mvn",
    "redis-cli",
    "mongosh",
    "mysqladmin",
    "pg_ctl",
    "nginx",
    "apt",
    "apt-get",
    "brew",
    "rabbitmqctl",
    "kafka-server-stop.sh",
    "catalina.sh",
    "gunicorn",
    "pm2",
    "xargs",
    "parallel",
];

static PROGRAMS: LazyLock<HashSet<&str>> = LazyLock::new(|| super::acts::programs_of(ACTS));

#[rustfmt::skip]
const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["systemctl"], &["isolate|start|default", "kexec*|shutdown*|ctrl-alt-del*|final*|umount*|soft-reboot*|sleep*|suspend*|hibernate*|exit*"], HarmCategory::Power, "stops or restarts the machine").unless(&["--user"]).floor(),
    HarmfulAct::new(&["systemctl"], &["stop|kill", "*.slice|-.slice|init.scope|-.mount|dbus*|*"], HarmCategory::Process, "ends every service").with(&["system.slice", "user.slice", "-.slice", "init.scope", "*"]).floor(),
    HarmfulAct::new(&["pcs"], &["stonith", "fence"], HarmCategory::Power, "stops a machine of a cluster").floor(),
    HarmfulAct::new(&["crm"], &["node", "fence"], HarmCategory::Power, "stops a machine of a cluster").floor(),
    HarmfulAct::new(&["upsmon"], &[], HarmCategory::Power, "stops the machine").with(&["fsd"]).floor(),
    HarmfulAct::new(&["net"], &["rpc", "shutdown"], HarmCategory::Power, "stops another machine").floor(),
    HarmfulAct::new(&["gdbus", "busctl", "dbus-send", "qdbus", "qdbus6"], &[], HarmCategory::Power, "tells the machine to stop").with(&["org.freedesktop.ConsoleKit.Manager.Stop", "org.freedesktop.ConsoleKit.Manager.Restart", "Suspend", "Hibernate"]).floor(),
    HarmfulAct::new(&["acpiconf"], &[], HarmCategory::Power, "stops the machine").with(&["-s"]).floor(),
    HarmfulAct::new(&["ipmitool"], &["raw", "0x00|0x0|0", "0x02|0x2|2"], HarmCategory::Power, "stops or restarts a machine").floor(),
    HarmfulAct::new(&["init", "telinit"], &["q|u|2|3|4|5"], HarmCategory::Service, "changes which services run"),
    HarmfulAct::new(&["zzz", "pm-suspend-hybrid"], &[], HarmCategory::Power, "puts the machine to sleep").unless(&["-h", "--help"]),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = acts_of(command);
    let program = command.program();
    if command.transparent || asks(command) {
        return findings;
    }
    let stops = |reason: &str| HarmFinding::floor(HarmCategory::Power, reason);
    let own_script = command
        .words
        .first()
        .is_some_and(|word| word.s.contains('/') && !word.s.starts_with('/'));
    if is_named_so(program) && !own_script {
        findings.push(stops("stops or restarts the machine"));
    }
    let fences = program.starts_with("fence_") && {
        let args = command.args();
        program == "fence_node"
            || args
                .iter()
                .any(|arg| matches!(arg.s.rsplit('=').next(), Some("off" | "reboot" | "cycle")))
    };
    if fences {
        findings.push(stops("stops a machine of a cluster"));
    }
    if STEERS.contains(&program) {
        if command
            .args()
            .iter()
            .any(|arg| arg.s.len() < 200 && says_power(&arg.s))
        {
            findings.push(stops("stops or restarts a machine"));
        }
    } else if !takes_texts(program) && !OF_GUESTS.contains(&program) && !own_script {
        let word = command.operands().take(3).any(|text| {
            matches!(
                text.s.as_str(),
                "poweroff" | "reboot" | "halt" | "power-off" | "powerdown" | "hard-reset"
            )
        });
        if word {
            findings.push(HarmFinding::dangerous(
                HarmCategory::Power,
                "may stop or restart a machine",
            ));
        }
    }
    findings
}

fn asks(command: &ReducedCommand) -> bool {
    [
        "--help",
        "--version",
        "status",
        "introspect",
        "list",
        "--list",
        "show",
        "monitor",
        "tree",
    ]
    .iter()
    .any(|word| command.has_arg(word))
}

/// `fastreboot`, `dinit-shutdown`, `shutdown.exe`.
fn is_named_so(program: &str) -> bool {
    let name = program.strip_suffix(".exe").unwrap_or(program);
    let last = name.rsplit(['-', '_']).next().unwrap_or(name);
    !name.contains('.')
        && (matches!(last, "shutdown" | "reboot" | "poweroff" | "halt")
            || matches!(name, "fastreboot" | "fasthalt" | "fastboot_halt"))
        && !matches!(
            name,
            "shutdown" | "reboot" | "poweroff" | "halt" | "grub-reboot" | "grub2-reboot"
        )
        || matches!(program, "shutdown.exe" | "psshutdown" | "psshutdown.exe")
}

fn says_power(arg: &str) -> bool {
    let lower = arg.to_lowercase();
    lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|token| WORDS.iter().any(|word| token.starts_with(word)))
        || lower == "power-off"
        || lower == "power_off"
}

fn acts_of(command: &ReducedCommand) -> Vec<HarmFinding> {
    if PROGRAMS.contains(command.program()) {
        super::acts::look_up(ACTS, command)
    } else {
        Vec::new()
    }
}
