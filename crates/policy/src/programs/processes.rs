//! Ending processes, and the machine.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::TaintSet;

/// Programs of a person's own, which are started again as they were.
const APPS: &[&str] = &["Xcode", "Simulator", "Finder", "Dock", "Safari", "Preview"];

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["reboot", "poweroff", "halt", "Stop-Computer", "Restart-Computer"], &[], HarmCategory::Power, "stops or restarts the machine").unless(&["--help", "-w", "--wtmp-only", "--version"]).floor(),
    HarmfulAct::new(&["shutdown"], &[], HarmCategory::Power, "stops or restarts the machine").unless(&["--help", "-c", "-k", "--show", "--version"]).floor(),
    HarmfulAct::new(&["init", "telinit"], &["0|1|6|s|S"], HarmCategory::Power, "stops or restarts the machine").floor(),
    HarmfulAct::new(&["systemctl"], &["poweroff|reboot|halt|kexec|soft-reboot|emergency|rescue|hibernate|suspend|suspend-then-hibernate|hybrid-sleep|exit"], HarmCategory::Power, "stops or restarts the machine").unless(&["--help", "--user"]).floor(),
    HarmfulAct::new(&["systemctl"], &["isolate|start|default", "rescue*|emergency*|poweroff*|reboot*|halt*|runlevel0*|runlevel6*|runlevel1*"], HarmCategory::Power, "stops or restarts the machine").floor(),
    HarmfulAct::new(&["loginctl"], &["poweroff|reboot|halt|suspend|hibernate"], HarmCategory::Power, "stops or restarts the machine").floor(),
    HarmfulAct::new(&["s6-linux-init-hpr", "s6-linux-init-shutdown", "s6-halt", "s6-poweroff", "s6-reboot", "openrc-init"], &[], HarmCategory::Power, "stops or restarts the machine").floor(),
    HarmfulAct::new(&["systemctl"], &["kill", "*"], HarmCategory::Process, "ends every service").with(&["*"]).floor(),
    HarmfulAct::new(&["loginctl"], &["terminate-*|kill-*"], HarmCategory::Process, "throws somebody out"),
    HarmfulAct::new(&["pm-suspend", "pm-hibernate", "pm-powersave", "rtcwake", "systemd-shutdown"], &[], HarmCategory::Power, "stops or restarts the machine").floor(),
    HarmfulAct::new(&["kexec"], &[], HarmCategory::Power, "boots another kernel").with(&["-e", "-l", "--exec", "--load"]).floor(),
    HarmfulAct::new(&["dbus-send", "busctl", "gdbus"], &[], HarmCategory::Power, "tells the machine to stop").with(&["org.freedesktop.login1.Manager.PowerOff", "org.freedesktop.login1.Manager.Reboot", "PowerOff", "Reboot", "Halt"]).floor(),
    HarmfulAct::new(&["ipmitool"], &["power", "off|cycle|reset|soft|diag"], HarmCategory::Power, "stops or restarts the machine").floor(),
    HarmfulAct::new(&["ipmitool"], &["chassis", "power", "off|cycle|reset|soft|diag"], HarmCategory::Power, "stops or restarts the machine").floor(),
    HarmfulAct::new(&["ipmitool"], &[], HarmCategory::Power, "stops or restarts a machine").with(&["off", "cycle", "reset"]).unless(&["status", "list"]).floor(),
    HarmfulAct::new(&["ipmipower", "ipmi-chassis"], &[], HarmCategory::Power, "stops or restarts a machine").with(&["--off", "--cycle", "--reset", "--soft", "--chassis-control"]).floor(),
    HarmfulAct::new(&["racadm"], &["serveraction", "powerdown|powercycle|hardreset|graceshutdown"], HarmCategory::Power, "stops or restarts a machine").floor(),
    HarmfulAct::new(&["gnome-session-quit", "xfce4-session-logout", "lxqt-leave", "mate-session-save", "cinnamon-session-quit"], &[], HarmCategory::Power, "stops or restarts the machine").with(&["--power-off", "--reboot", "--halt", "--shutdown", "--shutdown-dialog"]).floor(),
    HarmfulAct::new(&["qdbus", "qdbus6", "qdbus-qt5", "dcop"], &["org.kde.ksmserver|ksmserver"], HarmCategory::Power, "ends the session or the machine").floor(),
    HarmfulAct::new(&["qdbus", "qdbus6", "qdbus-qt5"], &["org.kde.Shutdown", "*", "logoutAnd*"], HarmCategory::Power, "ends the session or the machine").floor(),
    HarmfulAct::new(&["ansible"], &[], HarmCategory::Power, "stops or restarts other machines").with(&["reboot"]).floor(),
    HarmfulAct::new(&["openrc-shutdown", "runit-init", "s6-svscanctl", "shutdown.sh", "uadmin"], &[], HarmCategory::Power, "stops or restarts the machine").unless(&["--help"]).floor(),
    HarmfulAct::new(&["renice"], &[], HarmCategory::Process, "puts processes before all others").with(&["-20", "-19"]),
    HarmfulAct::new(&["skill", "slay", "killall5"], &[], HarmCategory::Process, "ends many processes at once"),
    HarmfulAct::new(&["pkill", "killall"], &[], HarmCategory::Process, "ends processes by force").with(&["-9", "-KILL", "-SIGKILL", "--signal=KILL", "--signal=9"]).unless(APPS),
    HarmfulAct::new(&["killall"], &[], HarmCategory::Process, "ends processes by pattern").with(&["-r", "--regexp"]).unless(&["-l", "-V"]),
    HarmfulAct::new(&["ipcrm"], &[], HarmCategory::Process, "takes memory away from running programs").with(&["-a", "--all"]),
    HarmfulAct::new(&["xkill"], &[], HarmCategory::Process, "ends a window's program").with(&["-a", "-all"]),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    let ends = ["PowerOff", "Reboot", "Halt", "KExec"];
    if matches!(program, "dbus-send" | "busctl" | "gdbus")
        && command.args().iter().any(|arg| {
            arg.s.contains("login1") && ends.iter().any(|end| arg.s.ends_with(&format!(".{end}")))
        })
    {
        findings.push(HarmFinding::floor(
            HarmCategory::Power,
            "tells the machine to stop",
        ));
    }
    let of_root = || command.has_arg("root") || command.has_arg("0");
    if program == "loginctl" && of_root() && command.operand(0).contains("-user")
        || matches!(program, "skill" | "slay") && of_root()
        || program == "pkill" && (command.has_arg("-v") || command.long("--inverse"))
    {
        findings.push(HarmFinding::floor(
            HarmCategory::Process,
            "ends every process",
        ));
    }
    let used = program == "fuser"
        && (command.short('k') || command.long("--kill"))
        && command.operands().any(|text| {
            matches!(
                text.s.as_str(),
                "/" | "/usr" | "/lib" | "/bin" | "/dev" | "/etc" | "/var"
            )
        });
    if program == "fuser" && (command.short('k') || command.long("--kill")) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Process,
            "ends whoever uses a file or port",
        ));
    }
    if used {
        findings.push(HarmFinding::floor(
            HarmCategory::Process,
            "ends every process",
        ));
    }
    match program {
        "kill" => findings.extend(kill(command)),
        "pkill" | "killall" | "killall5" => {
            let everybody = command
                .operands()
                .any(|text| matches!(text.s.as_str(), "." | ".*" | "" | "^" | "*"));
            let by_user =
                (command.short('u') || command.long("--user")) && command.operands().count() <= 2;
            let of_root = by_user
                && command
                    .args()
                    .iter()
                    .any(|arg| matches!(arg.s.as_str(), "0" | "root" | "-u0"));
            if (everybody && (program == "pkill" || command.short('r')))
                || program == "killall5"
                || of_root
            {
                findings.push(HarmFinding::floor(
                    HarmCategory::Process,
                    "ends every process",
                ));
            } else if by_user {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Process,
                    "ends all processes of a user",
                ));
            }
            // `pkill -f 'a|b'` is both of them.
            let patterns = command.operands().flat_map(|text| text.s.split('|'));
            let vital = patterns.map(str::trim).any(|name| {
                super::services::is_vital(name)
                    || matches!(
                        name,
                        "systemd"
                            | "init"
                            | "sshd"
                            | "dbus-daemon"
                            | "Xorg"
                            | "gnome-shell"
                            | "auditd"
                            | "rsyslogd"
                            | "dockerd"
                            | "containerd"
                    )
            });
            let first = command.operands().any(|text| {
                matches!(
                    text.s.as_str(),
                    "init" | "systemd" | "launchd" | "WindowServer"
                )
            });
            if first && command.args().iter().any(|arg| is_kill(&arg.s)) {
                findings.push(HarmFinding::floor(
                    HarmCategory::Process,
                    "ends the first process of the machine",
                ));
            }
            if vital {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Process,
                    "ends something the machine relies on",
                ));
            }
            let by_s = command
                .value_of("-s")
                .is_some_and(|signal| matches!(signal.s.as_str(), "9" | "KILL" | "SIGKILL"));
            if by_s {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Process,
                    "ends processes by force",
                ));
            }
        }
        _ => {}
    }
    findings
}

fn is_kill(arg: &str) -> bool {
    matches!(
        arg,
        "-9" | "-KILL"
            | "-SIGKILL"
            | "KILL"
            | "SIGKILL"
            | "9"
            | "-s9"
            | "--signal=KILL"
            | "--signal=9"
    )
}

fn kill(command: &ReducedCommand) -> Vec<HarmFinding> {
    let args: Vec<&str> = command.args().iter().map(|arg| arg.s.as_str()).collect();
    if args
        .iter()
        .any(|arg| matches!(*arg, "-l" | "-L" | "--list" | "--table"))
    {
        return Vec::new();
    }
    // The first `-9`, `-KILL` or `-s 9` is the signal; a later `-1` is everybody.
    let mut targets = args.clone();
    let mut had_signal = false;
    if let Some(first) = targets.first() {
        if matches!(*first, "-s" | "-n" | "--signal") {
            targets.drain(..2.min(targets.len()));
            had_signal = true;
        } else if first.starts_with('-') && *first != "--" {
            targets.remove(0);
            had_signal = true;
        }
    }
    targets.retain(|target| *target != "--");
    let everybody = command.args().iter().any(|arg| {
        arg.taint.has(TaintSet::EVERY_PROCESS)
            || arg.s.contains(['*', '['])
            || arg.s.contains("..") && arg.s.starts_with('{')
    });
    if everybody {
        return vec![HarmFinding::floor(
            HarmCategory::Process,
            "ends every process",
        )];
    }
    const EVERY_NUMBER: usize = 64;
    if targets.len() >= EVERY_NUMBER {
        return vec![HarmFinding::floor(
            HarmCategory::Process,
            "ends every process",
        )];
    }
    if targets.contains(&"-1") || (!had_signal && args.contains(&"--") && targets.contains(&"-1")) {
        return vec![HarmFinding::floor(
            HarmCategory::Process,
            "ends every process",
        )];
    }
    let of_vital = command
        .args()
        .iter()
        .any(|arg| arg.taint.has(TaintSet::VITAL));
    if of_vital {
        return vec![HarmFinding::dangerous(
            HarmCategory::Process,
            "ends something the machine relies on",
        )];
    }
    let kills = args.iter().any(|arg| is_kill(arg));
    if targets.contains(&"1") && kills {
        return vec![HarmFinding::floor(
            HarmCategory::Process,
            "ends the first process of the machine",
        )];
    }
    if targets.contains(&"1") && targets.len() < 3 {
        return vec![HarmFinding::dangerous(
            HarmCategory::Process,
            "sends a signal to the first process of the machine",
        )];
    }
    Vec::new()
}
