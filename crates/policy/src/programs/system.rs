//! Schedules, logs, firewall, kernel, security tools.

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::paths;

/// Domains of a Mac's settings that say how things look, and nothing about what may be done.
const HOW_IT_LOOKS: &[&str] = &[
    "com.apple.dock",
    "com.apple.finder",
    "com.apple.screencapture",
    "com.apple.TextEdit",
    "com.apple.menuextra.clock",
    "com.apple.desktopservices",
    "com.apple.spaces",
    "com.apple.dt.Xcode",
    "com.apple.ActivityMonitor",
    "com.apple.AppleMultitouchTrackpad",
];

#[rustfmt::skip]
const ACTS: &[Act] = &[
    Act::new(&["crontab"], &[], Category::Persistence, "changes scheduled jobs").unless(&["-l", "--help", "-V"]),
    Act::new(&["at", "batch"], &[], Category::Persistence, "schedules a command").unless(&["-l", "-V", "-q", "-c", "-h"]),
    Act::new(&["systemd-run"], &[], Category::Persistence, "schedules a command").with(&["--on-calendar", "--on-boot", "--on-active", "--on-startup", "--on-unit-active"]),
    Act::new(&["atrm", "schtasks"], &[], Category::Persistence, "changes scheduled jobs"),
    Act::new(&["iptables", "ip6tables", "iptables-legacy", "ebtables", "arptables"], &[], Category::Firewall, "changes the firewall").with(&["-F", "-X", "-P", "-A", "-I", "-D", "-R", "-Z", "--flush", "--append", "--insert", "--delete", "--delete-chain", "--new-chain", "--zero", "--policy", "-N", "--replace"]),
    Act::new(&["iptables-restore", "ip6tables-restore"], &[], Category::Firewall, "changes the firewall"),
    Act::new(&["nft"], &["flush|add|delete|insert|replace|destroy|reset"], Category::Firewall, "changes the firewall"),
    Act::new(&["nft"], &[], Category::Firewall, "changes the firewall").with(&["-f", "--file"]),
    Act::new(&["ufw"], &["disable|enable|allow|deny|delete|reset|reject|limit|default|reload|insert|route|prepend"], Category::Firewall, "changes the firewall"),
    Act::new(&["ufw"], &[], Category::Firewall, "changes the firewall").with(&["--force"]),
    Act::new(&["firewall-cmd"], &[], Category::Firewall, "changes the firewall").unless(&["--list-all", "--state", "--get-active-zones", "--list-ports", "--list-services", "--get-zones", "--help", "--get-default-zone", "--list-all-zones", "--version"]),
    Act::new(&["pfctl"], &[], Category::Firewall, "changes the firewall").with(&["-d", "-F", "-f", "-e"]),
    Act::new(&["setenforce", "apparmor_parser"], &[], Category::SecurityTool, "changes a security module"),
    Act::new(&["auditctl"], &[], Category::LogTampering, "changes what is recorded").with(&["-e", "-D", "-d", "-W", "-a"]),
    Act::new(&["journalctl"], &[], Category::LogTampering, "deletes the machine's records").with(&["--vacuum-size", "--vacuum-time", "--vacuum-files", "--rotate", "--flush"]),
    Act::new(&["dmesg"], &[], Category::LogTampering, "deletes the kernel's records").with(&["-C", "-c", "--clear", "--read-clear"]),
    Act::new(&["history"], &[], Category::LogTampering, "deletes the shell history").with(&["-c", "-w", "-d"]),
    Act::new(&["wevtutil"], &["cl|clear-log"], Category::LogTampering, "deletes the machine's records"),
    Act::new(&["utmpdump", "logtamper"], &[], Category::LogTampering, "rewrites login records").with(&["-r"]),
    Act::new(&["faillock", "pam_tally2"], &[], Category::LogTampering, "forgets failed logins").with(&["--reset", "-r"]),
    Act::new(&["sysctl"], &[], Category::Kernel, "changes the kernel's settings").with(&["-w", "--write", "-p", "--load", "--system"]),
    Act::new(&["insmod", "rmmod", "kmod_load", "dkms", "depmod"], &[], Category::Kernel, "changes kernel modules").unless(&["status", "--version", "--help"]),
    Act::new(&["modprobe"], &[], Category::Kernel, "changes kernel modules").unless(&["-n", "--dry-run", "--show-depends", "-c", "--showconfig", "--help", "-D"]),
    Act::new(&["bpftool"], &["prog", "load|attach|pin"], Category::Kernel, "loads code into the kernel"),
    Act::new(&["mount"], &[], Category::Kernel, "mounts something").with(&["-o", "--bind", "-t", "--rbind", "--move", "-B"]),
    Act::new(&["ip"], &["link|addr|address|route|rule|netns|a|l|r", "set|del|delete|flush|add|replace|change"], Category::Firewall, "changes the network"),
    Act::new(&["route"], &["add|del|delete|flush"], Category::Firewall, "changes the network"),
    Act::new(&["ifdown", "ifup"], &[], Category::Firewall, "changes the network"),
    Act::new(&["ifconfig"], &["*", "down|up|*.*.*.*"], Category::Firewall, "changes the network"),
    Act::new(&["nmcli"], &["connection|con|c|device|dev|d|networking|radio", "delete|down|modify|off|disconnect|add|up"], Category::Firewall, "changes the network"),
    Act::new(&["resolvectl", "systemd-resolve"], &["dns|domain"], Category::Firewall, "changes where names lead"),
    Act::new(&["timedatectl"], &["set-*"], Category::SystemFile, "changes the clock"),
    Act::new(&["hostnamectl"], &["set-*|hostname"], Category::SystemFile, "changes the machine's name"),
    Act::new(&["hwclock"], &[], Category::SystemFile, "changes the clock").with(&["-s", "-w", "--set", "--hctosys", "--systohc"]),
    Act::new(&["ntpdate", "ntpdig", "sntp", "rdate", "chronyd"], &[], Category::SystemFile, "changes the clock").unless(&["-q", "-d", "-p", "--version"]),
    Act::new(&["chronyc"], &["makestep|settime|burst|online|offline|add|delete|manual"], Category::SystemFile, "changes the clock"),
    Act::new(&["kpatch"], &["load|install|unload"], Category::Kernel, "loads code into the kernel"),
    Act::new(&["ufw"], &["logging"], Category::LogTampering, "changes what the firewall records"),
    Act::new(&["trust"], &["anchor|extract-compat"], Category::SecurityTool, "changes whom this machine trusts"),
    Act::new(&["update-ca-certificates"], &[], Category::SecurityTool, "changes whom this machine trusts").with(&["--fresh"]),
    Act::new(&["localectl"], &["set-*"], Category::SystemFile, "changes the machine's settings"),
    Act::new(&["ldconfig", "update-alternatives", "alternatives", "dpkg-divert"], &[], Category::SystemFile, "changes which programs run").unless(&["--list", "--display", "--query", "-p", "-v", "status", "--config_dry", "--get-selections", "list"]),
    Act::new(&["csrutil", "spctl"], &["disable|--master-disable|--global-disable"], Category::SecurityTool, "switches protection off"),
    Act::new(&["spctl"], &[], Category::SecurityTool, "switches protection off").with(&["--master-disable", "--global-disable"]),
    Act::new(&["fail2ban-client"], &["stop|unban|set"], Category::SecurityTool, "switches protection off"),
    Act::new(&["clamscan"], &[], Category::SecurityTool, "deletes files").with(&["--remove"]),
    Act::new(&["falcon-sensor", "falconctl"], &[], Category::SecurityTool, "changes a security tool").unless(&["-g", "stats"]),
    Act::new(&["defaults"], &["write", "com.apple.loginwindow|com.apple.*"], Category::Persistence, "changes the settings of the system").unless(HOW_IT_LOOKS),
    Act::new(&["reg", "reg.exe"], &["add|delete|import"], Category::Persistence, "changes the registry"),
    Act::new(&["sc", "sc.exe"], &["create|delete|stop|config"], Category::Service, "changes which services run"),
    Act::new(&["vssadmin", "wbadmin", "bcdedit", "cipher"], &[], Category::Destruction, "destroys backups"),
    Act::new(&["ssh-copy-id"], &[], Category::Persistence, "lets a key log in somewhere"),
    Act::new(&["powershell", "powershell.exe"], &[], Category::Disguise, "runs an encoded command").with(&["-EncodedCommand", "-enc", "-e", "-ec", "-encodedcommand"]),
    Act::new(&["semodule", "semanage", "setsebool"], &[], Category::SecurityTool, "changes a security module").unless(&["-l", "--list"]),
    Act::new(&["tc"], &["qdisc|filter|class", "add|del|replace|change"], Category::Firewall, "changes the network"),
    Act::new(&["swapon"], &[], Category::SystemFile, "changes the machine's memory").with(&["-a"]),
    Act::new(&["gsettings", "dconf"], &["reset-recursively"], Category::Destruction, "resets settings"),
];

/// `-s`, `--set`, or the old way: digits for month, day, hour and minute.
fn sets_the_clock(command: &Effective) -> bool {
    let sets = |arg: &str| {
        arg == "-s"
            || arg.starts_with("--set")
            || arg == "-us"
            || arg.starts_with("-s") && arg.len() > 3 && !arg.starts_with("--")
    };
    let digits = |text: &str| {
        let number = text.split('.').next().unwrap_or_default();
        matches!(number.len(), 8 | 10 | 12) && number.bytes().all(|b| b.is_ascii_digit())
    };
    let asks = ["-d", "--date", "-r", "--reference", "-f"]
        .iter()
        .any(|flag| command.has_arg(flag));
    command.args().iter().any(|arg| sets(&arg.s))
        || !asks && command.operands().any(|text| digits(&text.s))
}

pub(super) fn judge(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    if program == "umount"
        && command.operands().any(|text| {
            use paths::Place;
            matches!(
                paths::place(&text.s, &judge.cwd, judge.context),
                Place::Root | Place::System | Place::Home
            )
        })
    {
        findings.push(Finding::dangerous(
            Category::Kernel,
            "takes away what the machine works with",
        ));
    }
    if program == "date" && sets_the_clock(command) {
        findings.push(Finding::dangerous(
            Category::SystemFile,
            "changes the clock",
        ));
    }
    if program == "sysctl"
        && command.operands().any(|text| text.s.contains('='))
        && !command.short('w')
    {
        findings.push(Finding::dangerous(
            Category::Kernel,
            "changes the kernel's settings",
        ));
    }
    if matches!(program, "unset" | "export" | "set" | "") {
        let silences = command.args().iter().any(|arg| {
            matches!(
                arg.s.as_str(),
                "HISTFILE" | "HISTFILE=/dev/null" | "HISTSIZE=0" | "HISTFILESIZE=0" | "HISTFILE="
            )
        }) || command.assigns.iter().any(|(name, value)| {
            matches!(name.as_str(), "HISTFILE" | "HISTSIZE" | "HISTFILESIZE")
                && matches!(value.s.as_str(), "/dev/null" | "0" | "")
        }) || (program == "set"
            && command.has_arg("+o")
            && command.has_arg("history"));
        if silences {
            findings.push(Finding::dangerous(
                Category::LogTampering,
                "stops the shell history",
            ));
        }
    }
    if program == "ln"
        && command
            .operands()
            .nth(1)
            .is_some_and(|text| text.s.contains("history") || text.s.starts_with("/var/log"))
    {
        findings.push(Finding::dangerous(
            Category::LogTampering,
            "replaces records by a link",
        ));
    }
    // Emptying a log without a command: `> /var/log/auth.log` is a write and found there.
    if matches!(program, "rm" | "truncate" | "shred" | "cp" | "mv")
        && command.operands().any(|text| {
            let full = paths::absolute(&text.s, &judge.cwd);
            full.starts_with("/var/log/") || full.ends_with("_history") && full.contains("/.")
        })
    {
        findings.push(Finding::dangerous(
            Category::LogTampering,
            "deletes or changes records",
        ));
    }
    if matches!(program, "sed" | "perl")
        && super::protected::in_place(command)
        && command
            .operands()
            .any(|text| text.s.starts_with("/var/log/"))
    {
        findings.push(Finding::dangerous(
            Category::LogTampering,
            "changes the machine's records",
        ));
    }
    findings
}
