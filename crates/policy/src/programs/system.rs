//! Schedules, logs, firewall, kernel, security tools.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;

/// Domains of a Mac's settings that say how things look, and nothing about what may be done.
const HOW_IT_LOOKS: &[&str] = &[
    "com.apple.dock",
    "com.apple.finder",
    "com.apple.Finder",
    "com.apple.Dock",
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
const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["crontab"], &[], HarmCategory::Persistence, "changes scheduled jobs").unless(&["-l", "--help", "-V"]),
    HarmfulAct::new(&["at", "batch"], &[], HarmCategory::Persistence, "schedules a command").unless(&["-l", "-V", "-q", "-c", "-h"]),
    HarmfulAct::new(&["systemd-run"], &[], HarmCategory::Persistence, "schedules a command").with(&["--on-calendar", "--on-boot", "--on-active", "--on-startup", "--on-unit-active"]),
    HarmfulAct::new(&["atrm", "schtasks"], &[], HarmCategory::Persistence, "changes scheduled jobs"),
    HarmfulAct::new(&["iptables", "ip6tables", "iptables-legacy", "ebtables", "arptables"], &[], HarmCategory::Firewall, "changes the firewall").with(&["-F", "-X", "-P", "-A", "-I", "-D", "-R", "-Z", "--flush", "--append", "--insert", "--delete", "--delete-chain", "--new-chain", "--zero", "--policy", "-N", "--replace"]),
    HarmfulAct::new(&["iptables-restore", "ip6tables-restore"], &[], HarmCategory::Firewall, "changes the firewall"),
    HarmfulAct::new(&["nft"], &["flush|add|delete|insert|replace|destroy|reset"], HarmCategory::Firewall, "changes the firewall"),
    HarmfulAct::new(&["nft"], &[], HarmCategory::Firewall, "changes the firewall").with(&["-f", "--file"]),
    HarmfulAct::new(&["ufw"], &["disable|enable|allow|deny|delete|reset|reject|limit|default|reload|insert|route|prepend"], HarmCategory::Firewall, "changes the firewall"),
    HarmfulAct::new(&["ufw"], &[], HarmCategory::Firewall, "changes the firewall").with(&["--force"]),
    HarmfulAct::new(&["firewall-cmd"], &[], HarmCategory::Firewall, "changes the firewall").unless(&["--list-all", "--state", "--get-active-zones", "--list-ports", "--list-services", "--get-zones", "--help", "--get-default-zone", "--list-all-zones", "--version"]),
    HarmfulAct::new(&["pfctl"], &[], HarmCategory::Firewall, "changes the firewall").with(&["-d", "-F", "-f", "-e"]),
    HarmfulAct::new(&["setenforce", "apparmor_parser"], &[], HarmCategory::SecurityTool, "changes a security module"),
    HarmfulAct::new(&["auditctl"], &[], HarmCategory::LogTampering, "changes what is recorded").with(&["-e", "-D", "-d", "-W", "-a"]),
    HarmfulAct::new(&["journalctl"], &[], HarmCategory::LogTampering, "deletes the machine's records").with(&["--vacuum-size", "--vacuum-time", "--vacuum-files", "--rotate", "--flush"]),
    HarmfulAct::new(&["dmesg"], &[], HarmCategory::LogTampering, "deletes the kernel's records").with(&["-C", "-c", "--clear", "--read-clear"]),
    HarmfulAct::new(&["history"], &[], HarmCategory::LogTampering, "deletes the shell history").with(&["-c", "-w", "-d"]),
    HarmfulAct::new(&["wevtutil"], &["cl|clear-log"], HarmCategory::LogTampering, "deletes the machine's records"),
    HarmfulAct::new(&["utmpdump", "logtamper"], &[], HarmCategory::LogTampering, "rewrites login records").with(&["-r"]),
    HarmfulAct::new(&["faillock", "pam_tally2"], &[], HarmCategory::LogTampering, "forgets failed logins").with(&["--reset", "-r"]),
    HarmfulAct::new(&["sysctl"], &[], HarmCategory::Kernel, "changes the kernel's settings").with(&["-w", "--write", "-p", "--load", "--system"]),
    HarmfulAct::new(&["insmod", "rmmod", "kmod_load", "dkms", "depmod"], &[], HarmCategory::Kernel, "changes kernel modules").unless(&["status", "--version", "--help"]),
    HarmfulAct::new(&["modprobe"], &[], HarmCategory::Kernel, "changes kernel modules").unless(&["-n", "--dry-run", "--show-depends", "-c", "--showconfig", "--help", "-D"]),
    HarmfulAct::new(&["bpftool"], &["prog", "load|attach|pin"], HarmCategory::Kernel, "loads code into the kernel"),
    HarmfulAct::new(&["mount"], &[], HarmCategory::Kernel, "mounts something").with(&["-o", "--bind", "-t", "--rbind", "--move", "-B"]),
    HarmfulAct::new(&["ip"], &["link|addr|address|route|rule|netns|a|l|r", "set|del|delete|flush|add|replace|change"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["route"], &["add|del|delete|flush"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["ifdown", "ifup"], &[], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["ifconfig"], &["*", "down|up|*.*.*.*"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["nmcli"], &["connection|con|c|device|dev|d|networking|radio", "del*|down|mod*|off|disc*|add|up|edit|clone"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["resolvectl", "systemd-resolve"], &["dns|domain"], HarmCategory::Firewall, "changes where names lead"),
    HarmfulAct::new(&["timedatectl"], &["set-*"], HarmCategory::SystemFile, "changes the clock"),
    HarmfulAct::new(&["hostnamectl"], &["set-*|hostname"], HarmCategory::SystemFile, "changes the machine's name"),
    HarmfulAct::new(&["hwclock"], &[], HarmCategory::SystemFile, "changes the clock").with(&["-s", "-w", "--set", "--hctosys", "--systohc"]),
    HarmfulAct::new(&["ntpdate", "ntpdig", "sntp", "rdate", "chronyd"], &[], HarmCategory::SystemFile, "changes the clock").unless(&["-q", "-d", "-p", "--version"]),
    HarmfulAct::new(&["chronyc"], &["makestep|settime|burst|online|offline|add|delete|manual"], HarmCategory::SystemFile, "changes the clock"),
    HarmfulAct::new(&["kpatch"], &["load|install|unload"], HarmCategory::Kernel, "loads code into the kernel"),
    HarmfulAct::new(&["ufw"], &["logging"], HarmCategory::LogTampering, "changes what the firewall records"),
    HarmfulAct::new(&["trust"], &["anchor|extract-compat"], HarmCategory::SecurityTool, "changes whom this machine trusts"),
    HarmfulAct::new(&["update-ca-certificates"], &[], HarmCategory::SecurityTool, "changes whom this machine trusts").with(&["--fresh"]),
    HarmfulAct::new(&["localectl"], &["set-*"], HarmCategory::SystemFile, "changes the machine's settings"),
    HarmfulAct::new(&["ldconfig", "update-alternatives", "alternatives", "dpkg-divert"], &[], HarmCategory::SystemFile, "changes which programs run").unless(&["--list", "--display", "--query", "-p", "-v", "status", "--config_dry", "--get-selections", "list"]),
    HarmfulAct::new(&["csrutil", "spctl"], &["disable|--master-disable|--global-disable"], HarmCategory::SecurityTool, "switches protection off"),
    HarmfulAct::new(&["spctl"], &[], HarmCategory::SecurityTool, "switches protection off").with(&["--master-disable", "--global-disable"]),
    HarmfulAct::new(&["fail2ban-client"], &["stop|unban|set"], HarmCategory::SecurityTool, "switches protection off"),
    HarmfulAct::new(&["clamscan"], &[], HarmCategory::SecurityTool, "deletes files").with(&["--remove"]),
    HarmfulAct::new(&["falcon-sensor", "falconctl"], &[], HarmCategory::SecurityTool, "changes a security tool").unless(&["-g", "stats"]),
    HarmfulAct::new(&["defaults"], &["write", "com.apple.loginwindow|com.apple.*"], HarmCategory::Persistence, "changes the settings of the system").unless(HOW_IT_LOOKS),
    HarmfulAct::new(&["reg", "reg.exe"], &["add|delete|import"], HarmCategory::Persistence, "changes the registry"),
    HarmfulAct::new(&["sc", "sc.exe"], &["create|delete|stop|config"], HarmCategory::Service, "changes which services run"),
    HarmfulAct::new(&["vssadmin", "wbadmin", "bcdedit", "cipher"], &[], HarmCategory::Destruction, "destroys backups"),
    HarmfulAct::new(&["ssh-copy-id"], &[], HarmCategory::Persistence, "lets a key log in somewhere").unless(&["-n"]),
    HarmfulAct::new(&["powershell", "powershell.exe"], &[], HarmCategory::Disguise, "runs an encoded command").with(&["-EncodedCommand", "-enc", "-e", "-ec", "-encodedcommand"]),
    HarmfulAct::new(&["semodule", "semanage", "setsebool"], &[], HarmCategory::SecurityTool, "changes a security module").unless(&["-l", "--list"]),
    HarmfulAct::new(&["rfkill"], &["block", "all|wifi|wlan"], HarmCategory::Firewall, "cuts the machine off"),
    HarmfulAct::new(&["certutil"], &[], HarmCategory::SecurityTool, "changes whom this machine trusts").with(&["-A", "-M"]),
    HarmfulAct::new(&["update-crypto-policies"], &[], HarmCategory::SecurityTool, "changes what counts as safe").with(&["--set"]),
    HarmfulAct::new(&["cpupower", "x86_energy_perf_policy"], &["frequency-set|set"], HarmCategory::Kernel, "changes the processor's settings"),
    HarmfulAct::new(&["logkeys", "lkl", "uberkey"], &[], HarmCategory::SecretRead, "records what is typed").unless(&["--version"]),
    HarmfulAct::new(&["xinput"], &["test|test-xi2"], HarmCategory::SecretRead, "records what is typed"),
    HarmfulAct::new(&["arecord", "parecord", "parec", "pw-record", "pw-cat"], &[], HarmCategory::SecretRead, "records what is said").unless(&["-l", "-L", "--list-devices", "--list-pcms", "--version", "-p", "--playback"]),
    HarmfulAct::new(&["import", "xwd"], &[], HarmCategory::SecretRead, "takes a picture of the screen").with(&["-window", "-root"]),
    HarmfulAct::new(&["upnpc", "natpmpc"], &[], HarmCategory::Exfiltration, "opens this machine to the internet").with(&["-a", "-r"]),
    HarmfulAct::new(&["aws"], &["s3"], HarmCategory::Cloud, "opens something in the cloud").with(&["public-read", "public-read-write", "--acl=public-read", "--acl=public-read-write"]),
    HarmfulAct::new(&["imagesnap"], &[], HarmCategory::SecretRead, "takes a picture of whoever sits there").unless(&["-l", "--version"]),
    HarmfulAct::new(&["masscan", "zmap", "unicornscan"], &[], HarmCategory::ReverseShell, "is a tool for attacking others").unless(&["--version", "--dryrun", "--readscan"]),
    HarmfulAct::new(&["tc"], &["qdisc|filter|class", "add|del|replace|change"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["swapon"], &[], HarmCategory::SystemFile, "changes the machine's memory").with(&["-a"]),
    HarmfulAct::new(&["xdg-mime"], &["default", "*", "x-scheme-handler*"], HarmCategory::Persistence, "changes what opens an address"),
    HarmfulAct::new(&["gsettings", "dconf"], &["set|write", "org.gnome.settings-daemon.plugins.media-keys*|org.gnome.desktop.lockdown*|org.gnome.desktop.media-handling*"], HarmCategory::Persistence, "changes what keys and media start"),
    HarmfulAct::new(&["gsettings", "dconf"], &["write", "/org/gnome/settings-daemon/plugins/media-keys*|/org/gnome/desktop/lockdown*|/org/gnome/desktop/screensaver*"], HarmCategory::Persistence, "changes what keys start, or what locks the screen"),
    HarmfulAct::new(&["arpspoof", "dnsspoof", "sslstrip", "slowloris", "dsniff"], &[], HarmCategory::ReverseShell, "is a tool for attacking others").unless(&["--version"]),
    HarmfulAct::new(&["gsettings", "dconf"], &["reset-recursively"], HarmCategory::Destruction, "resets settings"),
];

/// `-s`, `--set`, or the old way: digits for month, day, hour and minute.
fn sets_the_clock(command: &ReducedCommand) -> bool {
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

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    if program == "umount"
        && command.operands().any(|text| {
            use paths::PathLoss;
            matches!(
                paths::place(&text.s, &judge.cwd, judge.context),
                PathLoss::Root | PathLoss::System | PathLoss::Home
            )
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Kernel,
            "takes away what the machine works with",
        ));
    }
    if program == "date" && sets_the_clock(command) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::SystemFile,
            "changes the clock",
        ));
    }
    if program == "sysctl"
        && command.operands().any(|text| text.s.contains('='))
        && !command.short('w')
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Kernel,
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
            findings.push(HarmFinding::dangerous(
                HarmCategory::LogTampering,
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
        findings.push(HarmFinding::dangerous(
            HarmCategory::LogTampering,
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
        findings.push(HarmFinding::dangerous(
            HarmCategory::LogTampering,
            "deletes or changes records",
        ));
    }
    if matches!(program, "sed" | "perl")
        && super::protected::in_place(command)
        && command
            .operands()
            .any(|text| text.s.starts_with("/var/log/"))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::LogTampering,
            "changes the machine's records",
        ));
    }
    findings
}
