//! Ending processes, and the machine.

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::text::Taint;

const ACTS: &[Act] = &[
    Act::new(&["reboot", "poweroff", "halt"], &[], Category::Power, "stops or restarts the machine").unless(&["--help", "-w", "--wtmp-only", "--version"]).floor(),
    Act::new(&["shutdown"], &[], Category::Power, "stops or restarts the machine").unless(&["--help", "-c", "-k", "--show", "--version"]).floor(),
    Act::new(&["init", "telinit"], &["0|1|6|s|S"], Category::Power, "stops or restarts the machine").floor(),
    Act::new(&["systemctl"], &["poweroff|reboot|halt|kexec|soft-reboot|emergency|rescue|hibernate|suspend|suspend-then-hibernate|hybrid-sleep|exit"], Category::Power, "stops or restarts the machine").unless(&["--help", "--user"]).floor(),
    Act::new(&["systemctl"], &["isolate|start|default", "rescue*|emergency*|poweroff*|reboot*|halt*|runlevel0*|runlevel6*|runlevel1*"], Category::Power, "stops or restarts the machine").floor(),
    Act::new(&["loginctl"], &["poweroff|reboot|halt|suspend|hibernate"], Category::Power, "stops or restarts the machine").floor(),
    Act::new(&["loginctl"], &["terminate-*|kill-*"], Category::Process, "throws somebody out"),
    Act::new(&["pm-suspend", "pm-hibernate", "pm-powersave", "rtcwake", "systemd-shutdown"], &[], Category::Power, "stops or restarts the machine").floor(),
    Act::new(&["kexec"], &[], Category::Power, "boots another kernel").with(&["-e", "-l", "--exec", "--load"]).floor(),
    Act::new(&["dbus-send", "busctl", "gdbus"], &[], Category::Power, "tells the machine to stop").with(&["org.freedesktop.login1.Manager.PowerOff", "org.freedesktop.login1.Manager.Reboot", "PowerOff", "Reboot", "Halt"]).floor(),
    Act::new(&["skill", "slay", "killall5"], &[], Category::Process, "ends many processes at once"),
    Act::new(&["pkill", "killall"], &[], Category::Process, "ends processes by force").with(&["-9", "-KILL", "-SIGKILL", "--signal=KILL", "--signal=9"]),
    Act::new(&["killall"], &[], Category::Process, "ends processes by pattern").with(&["-r", "--regexp"]).unless(&["-l", "-V"]),
    Act::new(&["fuser"], &[], Category::Process, "ends whoever uses a file or port").with(&["-k", "--kill"]),
    Act::new(&["ipcrm"], &[], Category::Process, "takes memory away from running programs").with(&["-a", "--all"]),
    Act::new(&["xkill"], &[], Category::Process, "ends a window's program").with(&["-a", "-all"]),
];

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    match program {
        "kill" => findings.extend(kill(command)),
        "pkill" | "killall" | "killall5" => {
            let everybody = command
                .operands()
                .any(|text| matches!(text.s.as_str(), "." | ".*" | "" | "^" | "*"));
            let by_user = command.short('u') && command.operands().count() <= 1;
            let of_root = by_user
                && command
                    .args()
                    .iter()
                    .any(|arg| matches!(arg.s.as_str(), "0" | "root" | "-u0"));
            if (everybody && (program == "pkill" || command.short('r')))
                || program == "killall5"
                || of_root
            {
                findings.push(Finding::floor(Category::Process, "ends every process"));
            } else if by_user {
                findings.push(Finding::dangerous(
                    Category::Process,
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
            if vital {
                findings.push(Finding::dangerous(
                    Category::Process,
                    "ends something the machine relies on",
                ));
            }
            let by_s = command
                .value_of("-s")
                .is_some_and(|signal| matches!(signal.s.as_str(), "9" | "KILL" | "SIGKILL"));
            if by_s {
                findings.push(Finding::dangerous(
                    Category::Process,
                    "ends processes by force",
                ));
            }
        }
        _ => {}
    }
    findings
}

fn kill(command: &Effective) -> Vec<Finding> {
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
        arg.taint.has(Taint::EVERY_PROCESS)
            || arg.s.contains(['*', '['])
            || arg.s.contains("..") && arg.s.starts_with('{')
    });
    if everybody {
        return vec![Finding::floor(Category::Process, "ends every process")];
    }
    if targets.contains(&"-1") || (!had_signal && args.contains(&"--") && targets.contains(&"-1")) {
        return vec![Finding::floor(Category::Process, "ends every process")];
    }
    let of_vital = command.args().iter().any(|arg| arg.taint.has(Taint::VITAL));
    if of_vital {
        return vec![Finding::dangerous(
            Category::Process,
            "ends something the machine relies on",
        )];
    }
    if targets.contains(&"1") && targets.len() < 3 {
        return vec![Finding::dangerous(
            Category::Process,
            "sends a signal to the first process of the machine",
        )];
    }
    Vec::new()
}
