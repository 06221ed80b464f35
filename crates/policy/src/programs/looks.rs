//! Programs that only look, also as root: by their name, by a word, or by an option.

use crate::effective::base_name;

/// Nothing they are told changes anything.
#[rustfmt::skip]
const ALWAYS: &[&str] = &[
    "fs_usage", "powermetrics", "sc_usage", "opensnoop", "iosnoop", "execsnoop", "nettop", "spindump", "sysdiagnose", "dtruss", "latency", "whoami", "id", "ls", "pwd", "echo", "true", "date", "uptime", "df", "du", "free", "ps", "top",
    "htop", "uname", "lsof", "ss", "netstat", "lsblk", "blkid", "cat", "head", "tail", "grep",
    "stat", "file", "wc", "which", "test", "lspci", "lsusb", "lsmod", "tree", "ping", "traceroute",
    "lshw", "vmstat", "iostat", "findmnt", "getent", "groups", "last", "lastlog", "lastb",
    "printenv", "sort", "md5sum", "sha256sum", "readlink", "realpath", "ctop", "locate",
    "updatedb", "dmidecode", "smartctl_scan", "pvs", "vgs", "lvs", "pvdisplay", "vgdisplay",
    "lvdisplay", "pvscan", "lvscan", "vgscan", "aa-status", "apparmor_status", "getenforce",
    "sestatus", "ausearch", "aureport", "iptables-save", "ip6tables-save", "modinfo", "mailq",
    "qshape", "showmount", "nfsstat", "iftop", "nethogs", "powertop", "iotop", "sensors", "lsscsi",
    "lsns", "lsipc", "lslogins", "lsmem", "lscpu", "ipcs", "numastat", "slabtop", "atop", "glances",
    "bmon", "nload", "arp-scan", "cut", "uniq", "diff", "journalctl", "dmesg", "hostid", "w",
    "who", "finger", "lsattr", "getfacl", "getcap", "namei", "pstree", "pmap", "pidof", "pgrep",
    "fatrace", "biosdecode", "vpddecode", "inxi", "hwinfo", "lsinitrd", "lsinitramfs", "needs-restarting",
    "checkrestart", "needrestart", "rkhunter", "chkrootkit", "lynis", "debsums", "zerofree_check",
    "iwlist", "iw_list", "ntpq", "tcpdump", "nmap", "tshark", "mtr", "tracepath", "whois", "dig",
    "host", "nslookup", "strings", "hexdump", "xxd", "od", "readelf", "objdump", "less", "more",
    "tlp-stat", "cpufreq-info", "spectre-meltdown-checker", "grub-probe", "phpquery", "audit2why",
    "netselect", "l2ping", "tegrastats", "showkey", "aa-unconfined", "sa", "lid", "picocom", "cu",
    "minicom", "cpuid", "turbostat", "rdmsr", "evtest", "radeontop", "intel_gpu_top", "nvtop",
    "usbview", "lsusb.py", "acpi", "lsgpio", "gpioinfo", "i2cdetect", "sensors-detect_no",
    "systemd-analyze", "systemd-cgls", "systemd-cgtop", "systemd-delta", "systemd-detect-virt",
    "dnstop", "iptraf-ng", "vnstat", "arping", "fping", "hping3_no", "ntpstat", "tuned-adm_list",
    "faillog", "repquota", "quota", "xfs_info", "dumpe2fs", "filefrag", "btrfs_list", "compsize",
];

/// Programs with words or options that only look.
#[rustfmt::skip]
const SOMETIMES: &[(&[&str], &[&str])] = &[
    (&["nft"], &["list"]),
    (&["launchctl"], &["list", "print", "blame", "print-disabled", "dumpstate"]),
    (&["log"], &["show", "collect", "stream", "stats"]),
    (&["wg"], &["show", "showconf"]),
    (&["nvme"], &["list", "smart-log", "id-ctrl", "list-subsys", "error-log", "help", "version"]),
    (&["sshd"], &["-t", "-T"]),
    (&["visudo"], &["-c", "--check"]),
    (&["auditctl"], &["-l", "-s"]),
    (&["semanage", "semodule"], &["--list", "-l"]),
    (&["fail2ban-client"], &["status", "ping", "get", "banned"]),
    (&["certbot"], &["certificates", "--version", "plugins"]),
    (&["mdadm"], &["--detail", "-D", "--examine", "-E", "--query", "-Q"]),
    (&["zpool"], &["status", "list", "iostat", "history", "get", "events"]),
    (&["zfs"], &["list", "get", "holds", "diff"]),
    (&["btrfs"], &["usage", "show", "df", "list", "status", "stats", "inspect-internal"]),
    (&["cryptsetup"], &["status", "luksDump", "isLuks", "luksUUID", "benchmark", "--version"]),
    (&["dmsetup"], &["ls", "info", "status", "table", "deps", "targets"]),
    (&["losetup"], &["-a", "-l", "--list", "--all", "-j"]),
    (&["update-alternatives", "alternatives"], &["--list", "--display", "--query", "--get-selections"]),
    (&["postconf"], &["-n", "-d"]),
    (&["postqueue"], &["-p", "-j"]),
    (&["lxc", "incus"], &["list", "info", "version", "ls"]),
    (&["virsh"], &["list", "dominfo", "domstate", "nodeinfo", "net-list", "pool-list", "dumpxml", "version", "capabilities"]),
    (&["hwclock"], &["--show", "-r", "--get", "--verbose"]),
    (&["chronyc"], &["tracking", "sources", "sourcestats", "activity", "ntpdata"]),
    (&["rabbitmqctl"], &["status", "list_queues", "list_users", "list_exchanges", "list_bindings", "cluster_status", "list_connections", "list_vhosts", "report", "list_channels", "list_permissions", "environment"]),
    (&["iscsiadm"], &["session", "discovery", "node"]),
    (&["exportfs"], &["-v", "-s"]),
    (&["ipvsadm"], &["-L", "-Ln", "-l", "--list"]),
    (&["conntrack"], &["-L", "-S", "-C", "-E", "--dump", "--count"]),
    (&["bpftool"], &["list", "show", "ls", "dump", "probe"]),
    (&["ipmitool"], &["sensor", "sdr", "status", "list", "info", "print"]),
    (&["fwupdmgr"], &["get-devices", "get-history", "get-updates", "get-upgrades", "get-remotes", "get-details", "--version", "security", "get-topology", "get-plugins", "get-releases", "get-results", "verify", "get-approved-firmware", "get-blocked-firmware", "get-bios-setting"]),
    (&["efibootmgr"], &["-v", "--verbose", "--version"]),
    (&["ldconfig"], &["-p", "--print-cache"]),
    (&["certbot"], &["certificates", "plugins"]),
    (&["xcodebuild"], &["-license", "-runFirstLaunch", "-version", "-showsdks"]),
    (&["xcode-select"], &["-p", "--print-path", "--install", "-s", "--switch", "--reset"]),
    (&["tmutil", "diskutil", "pmset", "softwareupdate", "systemsetup"], &["status", "list", "info", "-g", "listbackups", "latestbackup", "--list", "-getremotelogin", "-gettimezone"]),
    (&["bootctl"], &["status", "list", "is-installed"]),
    (&["multipath"], &["-ll", "-l", "-t"]),
    (&["perf"], &["top", "list", "report"]),
    (&["trace-cmd"], &["list", "show", "report", "stat"]),
    (&["zerotier-cli"], &["listnetworks", "listpeers", "status", "info", "peers"]),
    (&["brctl", "bridge"], &["show", "showmacs", "showstp"]),
    (&["udevadm"], &["monitor", "info", "test"]),
    (&["prosodyctl", "gitlab-ctl", "pivpn", "pihole", "mysqladmin", "pg_lsclusters", "pg_ctlcluster"], &["status", "tail", "clients", "-c", "about", "check", "processlist", "ping", "-v"]),
    (&["vgcfgrestore"], &["--list", "-l"]),
    (&["apt-mark"], &["hold", "unhold", "showhold", "showmanual", "showauto", "auto", "manual"]),
    (&["apt-file", "command-not-found", "pkgfile"], &["update", "search", "list", "show", "--update"]),
    (&["btrbk"], &["dryrun", "list", "stats"]),
    (&["steamos-update", "softwareupdate", "do-release-upgrade"], &["check", "-l", "--list", "-c", "--check-dist-upgrade-only"]),
    (&["apptainer", "singularity"], &["--get", "list", "inspect", "version"]),
    (&["iw", "iwconfig", "rfkill"], &["list", "dev", "info", "station", "link", "scan"]),
    (&["tuned-adm"], &["active", "list", "recommend", "verify"]),
    (&["nixos-rebuild"], &["dry-build", "dry-activate", "build", "build-vm", "list-generations"]),
    (&["chkconfig"], &["--list"]),
    (&["ledctl"], &["--list-controllers", "-L"]),
    (&["nginx"], &["-t", "-v", "-V", "-T"]),
    (&["apachectl", "apache2ctl", "httpd"], &["configtest", "-t", "-v", "-V", "-S", "-M", "status", "fullstatus"]),
    (&["ufw"], &["status", "show", "version"]),
    (&["crontab", "at"], &["-l"]),
    (&["swapon"], &["--show", "-s", "--summary"]),
    (&["fdisk", "sfdisk", "gdisk", "sgdisk"], &["-l", "--list", "-p", "--print", "-s", "-d", "--dump"]),
    (&["parted"], &["-l", "--list", "print"]),
    (&["hdparm"], &["-I", "-i", "-t", "-T", "-tT", "-C", "-g"]),
    (&["smartctl"], &["-a", "-x", "-i", "-H", "-A", "--scan", "--all", "-l", "-c", "--info", "--health"]),
    (&["ethtool"], &["-i", "-S", "-k", "-g", "-a", "-m"]),
    (&["localectl", "timedatectl", "hostnamectl", "loginctl", "resolvectl", "networkctl", "busctl", "coredumpctl", "machinectl", "portablectl", "userdbctl", "oomctl"], &["status", "list", "show", "query", "list-timezones", "list-locales", "list-keymaps", "list-sessions", "list-users", "info", "statistics", "timesync-status", "show-timesync", "list-x11-keymap-models", "list-x11-keymap-layouts", "tree", "introspect"]),
    (&["snap", "flatpak"], &["list", "info", "find", "search", "remotes", "changes", "version"]),
    (&["kubectl", "docker", "podman", "crictl", "ctr", "nerdctl"], &["get", "ps", "images", "logs", "version", "info", "stats", "top", "inspect", "describe", "ls", "list"]),
    (&["doveadm"], &["who", "log", "user", "config"]),
    (&["samba-tool", "smbstatus", "testparm", "pdbedit"], &["list", "-L", "-s", "-b", "-p", "-S"]),
    (&["asterisk"], &["-rx"]),
    (&["keepalived", "haproxy", "squid", "named", "dnsmasq", "postfix", "exim", "varnishd"], &["-c", "-t", "--test", "-k", "check", "-bp", "-bV", "-v"]),
    (&["supervisorctl"], &["status", "tail", "avail", "pid"]),
    (&["rc-service", "rc-status", "rc-update"], &["status", "--list", "show", "--all", "-l"]),
    (&["tune2fs", "xfs_db", "e2label", "btrfstune"], &["-l", "-r"]),
    (&["getsebool"], &["-a"]),
    (&["profiles", "networksetup", "systemsetup", "scutil"], &["show", "list", "status", "-getinfo", "--get", "-listallnetworkservices", "-getremotelogin"]),
    (&["vtysh", "birdc", "birdcl"], &["show"]),
    (&["eclean-kernel", "eselect", "equery"], &["-l", "--list-kernels", "list", "show"]),
    (&["firewall-cmd"], &["--list-all", "--state", "--get-active-zones", "--list-ports", "--list-services", "--get-zones", "--get-default-zone", "--list-all-zones", "--get-services", "--list-rich-rules", "--query-service"]),
];

/// Installing by name from the machine's own sources is what a package manager is for.
#[rustfmt::skip]
const INSTALLERS: &[(&[&str], &[&str])] = &[
    (&["xbps-install", "urpmi", "slackpkg", "swupd", "equo", "installp", "tdnf", "microdnf"], &[]),
    (&["emerge", "eopkg", "pkg", "pkg_add", "opkg", "port", "conda", "mamba", "tlmgr", "cpan", "cpanm", "luarocks", "nix-env", "guix", "yarn", "pnpm", "npm", "gem", "pip", "pip3", "pipx", "composer", "aptitude", "rpm-ostree", "transactional-update", "pamac", "yay", "paru", "pkcon", "softwareupdate", "mas", "nala", "apt-fast", "xcode-select", "tazpkg", "cave", "kiss"],
     &["install", "in", "it", "add", "update", "upgrade", "up", "ur", "search", "list", "info", "show", "refresh", "-i", "-u", "-S", "-Syu", "-Sy", "--install", "--ask", "-av", "sync", "--sync", "i", "require", "global", "bundle-add", "-q", "query", "li", "sr", "-Ss", "-Q", "version", "get-updates"]),
    (&["swupd"], &["bundle-add", "update", "info", "search", "bundle-list"]),
];

/// Whether a program with these arguments only looks, or installs as the machine's owner would.
pub(super) fn only_looks(program: &str, args: &[&str]) -> bool {
    let name = base_name(program);
    let asks = |arg: &&str| matches!(*arg, "--version" | "--help" | "-V");
    if args.len() == 1 && args.iter().any(|arg| asks(arg) || *arg == "-h") {
        return true;
    }
    let trial = |arg: &&str| matches!(*arg, "--dry-run" | "--dryrun" | "--simulate");
    if ALWAYS.contains(&name) || args.iter().any(trial) {
        return true;
    }
    // The first word of its own decides; options before it do not.
    let words: Vec<&str> = args.iter().copied().take(8).collect();
    let sometimes = SOMETIMES.iter().any(|(programs, looks)| {
        programs.contains(&name)
            && words.iter().any(|word| looks.contains(word))
            && !words.iter().any(|word| changes(word))
    });
    sometimes
        || name == "efibootmgr" && args.is_empty()
        || bare(name) && args.is_empty()
        || INSTALLERS.iter().any(|(programs, verbs)| {
            programs.contains(&name)
                && !args.iter().any(|arg| strange_source(arg))
                && (verbs.is_empty() || words.iter().any(|word| verbs.contains(word)))
        })
}

/// Without a word they print how things stand.
fn bare(name: &str) -> bool {
    matches!(
        name,
        "timedatectl"
            | "hostnamectl"
            | "localectl"
            | "loginctl"
            | "networkctl"
            | "wg"
            | "swapon"
            | "mount"
            | "ifconfig"
            | "route"
            | "arp"
            | "exportfs"
            | "systemctl"
            | "zpool"
            | "lslogins"
            | "sensors"
            | "nft"
            | "hwclock"
            | "lvmdevices"
            | "zerotier-cli"
    )
}

fn changes(word: &str) -> bool {
    matches!(
        word,
        "set"
            | "add"
            | "del"
            | "delete"
            | "remove"
            | "create"
            | "destroy"
            | "flush"
            | "rm"
            | "set-time"
            | "stop"
            | "start"
            | "restart"
            | "exec"
            | "run"
    )
}

fn strange_source(arg: &str) -> bool {
    arg.contains("://")
        || arg.starts_with(['/', '.'])
        || arg.ends_with(".rpm")
        || arg.ends_with(".deb")
        || arg.ends_with(".txz")
        || arg.ends_with(".whl")
        || arg.starts_with("git+")
}
