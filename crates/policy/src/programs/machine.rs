//! Acts on the machine as a whole, with the tools of every system that do them: what boots, what the
//! kernel and the hardware are told, who may log in, which network there is, which services run, who
//! watches.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};

const ASKS: &[&str] = &[
    "--help",
    "--version",
    "-V",
    "status",
    "list",
    "show",
    "--list",
    "--dry-run",
    "get",
    "check",
    "test",
];

static PROGRAMS: LazyLock<HashSet<&str>> = LazyLock::new(|| super::acts::programs_of(ACTS));

#[rustfmt::skip]
const ACTS: &[HarmfulAct] = &[
    // The kernel and the hardware.
    HarmfulAct::new(&["kldload", "kldunload", "kextload", "kextunload", "kextcache", "modload", "modunload", "kmutil", "akmods", "kernelstub"], &[], HarmCategory::Kernel, "changes kernel modules").unless(&["--help", "inspect", "showloaded", "-v"]),
    HarmfulAct::new(&["kmod"], &["load|unload|insert|remove|install"], HarmCategory::Kernel, "changes kernel modules"),
    HarmfulAct::new(&["setpci"], &["*=*"], HarmCategory::Kernel, "writes to the hardware"),
    HarmfulAct::new(&["wrmsr", "devmem", "devmem2", "poke", "outb", "iotools", "io", "memtool", "i2cset", "i2ctransfer", "spidev_test", "gpioset", "isaset", "superiotool"], &[], HarmCategory::Kernel, "writes to the hardware").unless(ASKS),
    HarmfulAct::new(&["setpci"], &[], HarmCategory::Kernel, "writes to the hardware").with(&["-s", "-d"]),
    HarmfulAct::new(&["bpftrace", "stap", "systemtap"], &[], HarmCategory::Kernel, "runs code in the kernel").with(&["--unsafe", "-g", "--privilege=stapdev"]),
    HarmfulAct::new(&["bpftool"], &["*", "load|loadall|attach|detach|pin|update|delete|create"], HarmCategory::Kernel, "loads code into the kernel"),
    HarmfulAct::new(&["sysrc", "sysctl.conf", "tuned-adm", "powerprofilesctl", "x86info-set", "ryzenadj", "intel-undervolt", "undervolt", "nvidia-settings"], &["*=*|profile|set|off|apply"], HarmCategory::Kernel, "changes the machine's settings"),
    HarmfulAct::new(&["nvidia-smi"], &[], HarmCategory::Kernel, "changes the graphics card").with(&["--gpu-reset", "-r", "-pl", "-lgc", "-mig", "-e", "-pm", "--power-limit", "-c"]).unless(&["-q", "-L"]),
    HarmfulAct::new(&["rocm-smi"], &[], HarmCategory::Kernel, "changes the graphics card").with(&["--gpureset", "--setperflevel", "--setsclk", "--setfan"]),
    HarmfulAct::new(&["ectool", "mactool", "ipmi-oem", "bmc-config", "ipmi-config", "pef-config", "hponcfg", "syscfg", "cctk", "conrep"], &[], HarmCategory::Kernel, "changes the machine behind this machine").unless(&["--help", "version", "--checkout", "battery", "temps", "-o", "-g"]),
    HarmfulAct::new(&["ipmitool"], &["user|lan|mc|raw|sol|chassis|sel|event|hpm|ime|fru|channel", "set|reset|enable|disable|priv|clear|bootdev|bootparam|policy|identify|upgrade|write|edit|0x*|activate|setaccess"], HarmCategory::Kernel, "changes the machine behind this machine"),
    HarmfulAct::new(&["tpm2_clear", "tpm_clear", "tpm2_changeauth", "tpm2_nvundefine", "tpm2_evictcontrol", "tpm2_dictionarylockout", "tpm2_nvwrite", "tpm_takeownership", "tpm2_hierarchycontrol"], &[], HarmCategory::Kernel, "changes the keys of the hardware"),
    HarmfulAct::new(&["hdparm"], &[], HarmCategory::Disk, "changes how a disk works").with(&["-Y", "-y", "--idle-immediate", "-B", "-S", "-W", "--security-set-pass", "--security-disable", "--security-unlock", "-N", "--fwdownload", "--dco-restore", "--write-sector", "--repair-sector"]),
    HarmfulAct::new(&["sdparm", "sg_start", "sg_wr_mode", "sg_write_buffer", "sg_reset", "rescan-scsi-bus.sh", "sg_persist"], &[], HarmCategory::Disk, "changes how a disk works").with(&["--set", "--stop", "-s", "--command=stop", "--device", "-r", "--out", "--remove", "-m"]),
    HarmfulAct::new(&["nvme"], &["fw-download|fw-commit|fw-activate|set-feature|create-ns|attach-ns|detach-ns|reset|subsystem-reset|security-send|write|write-uncor|dsm|admin-passthru|io-passthru|disconnect|disconnect-all|resv-*"], HarmCategory::Disk, "changes how a disk works"),
    HarmfulAct::new(&["smartctl"], &[], HarmCategory::Disk, "changes how a disk works").with(&["-s", "--smart=off", "--smart"]),
    HarmfulAct::new(&["chcpu", "chmem"], &[], HarmCategory::Kernel, "switches processors or memory off").with(&["-d", "--disable", "-g", "-p"]),
    HarmfulAct::new(&["zramctl"], &[], HarmCategory::Kernel, "changes the machine's memory").with(&["-r", "--reset", "-s"]),
    HarmfulAct::new(&["swapoff"], &[], HarmCategory::Kernel, "takes memory away from the machine").unless(&["--help"]),
    HarmfulAct::new(&["usb_modeswitch", "usbreset", "uhubctl", "usbip"], &[], HarmCategory::Kernel, "switches devices off").with(&["-a", "-R", "unbind", "bind", "detach", "attach", "-v"]),
    HarmfulAct::new(&["udevadm"], &["trigger|control"], HarmCategory::Kernel, "changes how devices are handled").unless(&["--dry-run", "--help"]),
    // What boots.
    HarmfulAct::new(&["mokutil", "sbctl", "sbsign", "efi-updatevar", "efi-readvar-w", "efivar", "kernel-install", "grub2-install", "grub2-mkconfig", "grub-set-default", "grub2-set-default", "grub-reboot", "grub2-reboot", "grub-editenv", "grubby", "extlinux", "lilo", "syslinux", "refind-install", "zipl", "installboot", "boot0cfg", "bcdedit", "bcfg", "update-initramfs", "dracut", "mkinitcpio", "mkinitramfs", "mkinitrd", "update-bootloader", "sdbootutil", "limine", "u-boot-update", "fw_setenv", "rpi-update", "rpi-eeprom-update", "raspi-config", "clevis", "systemd-cryptenroll", "ostree"], &[], HarmCategory::Kernel, "changes what boots")
        .unless(&["--help", "--version", "-V", "status", "list", "--list", "--list-enrolled", "--sb-state", "--info", "--default-kernel", "-l", "--list-kernels", "show", "-L", "verify", "list-files", "--print", "nonint_get", "log", "refs", "lsinitrd"]),
    HarmfulAct::new(&["bootctl"], &["install|update|remove|set-default|set-oneshot|set-timeout|random-seed|unlink|cleanup|kernel-*"], HarmCategory::Kernel, "changes what boots"),
    HarmfulAct::new(&["plymouth-set-default-theme", "set-default-boot"], &["*"], HarmCategory::Kernel, "changes what boots"),
    HarmfulAct::new(&["systemctl"], &["set-default|edit|link|preset*|revert|add-wants|add-requires|set-property|import-environment|switch-root|daemon-reexec|bind|mount-image"], HarmCategory::Service, "changes which services run").unless(&["--user", "--help"]),
    HarmfulAct::new(&["nixos-rebuild", "darwin-rebuild"], &["switch|boot|test"], HarmCategory::SystemFile, "replaces the system's configuration"),
    HarmfulAct::new(&["nixos-rebuild", "darwin-rebuild"], &[], HarmCategory::SystemFile, "replaces the system").with(&["--rollback"]),
    HarmfulAct::new(&["rpm-ostree", "transactional-update", "do-release-upgrade", "freebsd-update", "syspatch", "pkg-static"], &["rebase|rollback|upgrade|install|uninstall|kargs|override|reset|deploy|update|fetch|*"], HarmCategory::SystemFile, "replaces the system").unless(&["status", "-c", "--check", "check-update", "list", "search", "info", "--version", "db", "ex"]),
    HarmfulAct::new(&["guix"], &["gc|system|pull|remove"], HarmCategory::SystemFile, "replaces or deletes parts of the system").with(&["--delete-generations", "reconfigure", "roll-back", "delete-generations", "-d", "remove", "-D", "--delete"]),
    HarmfulAct::new(&["nix-collect-garbage"], &[], HarmCategory::SystemFile, "deletes earlier systems").with(&["-d", "--delete-old", "--delete-older-than"]),
    // Who may log in.
    HarmfulAct::new(&["authselect", "authconfig", "pam-auth-update", "pam-config", "realm", "adcli", "net-ads", "sssctl", "ipa-client-install", "ipa-server-install", "winbind", "nslcd", "msktutil", "authselect-migration"], &[], HarmCategory::Privilege, "changes who may log in")
        .unless(&["--help", "list", "current", "check", "show", "test", "status", "domain-list", "domain-status", "user-checks", "discover", "info", "--test"]),
    HarmfulAct::new(&["pw"], &["useradd|usermod|userdel|groupadd|groupmod|groupdel|lock|unlock|user|group|add|del|mod"], HarmCategory::Privilege, "changes who may log in").unless(&["show", "usershow"]),
    HarmfulAct::new(&["user", "rmuser", "adduser.sh", "usercfg", "lusermod", "luseradd", "luserdel", "lgroupdel", "lgroupmod", "lpasswd", "cpw", "newuidmap-edit", "subid", "homectl"], &["add|del|mod|remove|create|update|passwd|lock|deactivate|resize|*"], HarmCategory::Privilege, "changes who may log in").unless(ASKS),
    HarmfulAct::new(&["grpck", "pwck", "pwconv", "pwunconv", "grpconv", "grpunconv", "vipw", "vigr", "newusers", "gshadow"], &[], HarmCategory::Privilege, "changes who may log in").unless(&["-r", "-q", "--help"]),
    HarmfulAct::new(&["samba-tool", "ipa", "kadmin", "kadmin.local", "dsconf", "dsctl", "ldapadd", "ldapmodify", "ldapdelete", "ldappasswd", "ldapmodrdn", "dsadd", "dsmod", "dsrm", "smbldap-useradd", "smbpasswd", "pdbedit"], &[], HarmCategory::Privilege, "changes who may log in")
        .unless(&["--help", "list", "show", "-L", "user-show", "user-find", "group-show", "host-find", "ping", "listprincs", "getprinc", "testparm", "config-show", "dbcheck", "status", "-h"]),
    HarmfulAct::new(&["grafana-cli", "gitlab-rails", "gitlab-rake", "gitea", "forgejo", "nextcloud", "occ", "jenkins-cli", "keycloak", "kcadm.sh", "authentik", "vaultwarden", "wp", "drush", "mattermost", "mmctl", "rocketchat", "discourse", "superset", "sonar"], &["admin|user|users|runner|gitlab:setup|gitlab:*reset*|set-password|update|eval|user:*|maintenance:*|db:*", "reset*|create|change-password|delete|generate*|regenerate|add|eval|set*|*password*"], HarmCategory::Privilege, "changes who may log in"),
    HarmfulAct::new(&["gitlab-rake", "gitlab-rails"], &["gitlab:setup|gitlab:*:restore|runner|gitlab:password*"], HarmCategory::Privilege, "changes the data or the accounts of a service"),
    HarmfulAct::new(&["mysqladmin", "mariadb-admin"], &[], HarmCategory::Database, "changes or stops a database").with(&["password", "drop", "shutdown", "kill", "flush-privileges", "stop-slave", "stop-replica"]),
    HarmfulAct::new(&["mysql_secure_installation", "mysql_install_db", "mysqld_safe", "pg_resetwal", "pg_resetxlog", "pg_dropcluster", "pg_rewind", "pg_upgrade", "mongod_repair"], &[], HarmCategory::Database, "changes a database server").unless(&["-n", "--dry-run", "--check", "-c", "--help", "--version"]),
    HarmfulAct::new(&["redis-cli"], &["config|CONFIG|acl|ACL|slaveof|SLAVEOF|replicaof|REPLICAOF|module|MODULE|debug|DEBUG|script|SCRIPT|cluster|CLUSTER|failover|swapdb"], HarmCategory::Database, "changes a database server").unless(&["get", "GET", "list", "LIST", "whoami", "info", "nodes", "INFO", "NODES", "slots", "help", "object", "exists"]),
    // The network.
    HarmfulAct::new(&["netplan"], &["apply|try|set|rebind"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["nmstatectl", "wicked", "networkctl", "ifreload", "ifquery-apply", "connmanctl", "iwctl", "wpa_cli", "hostapd_cli", "mmcli", "netctl", "dhcpcd", "dhclient", "udhcpc", "uci", "ovs-vsctl", "ovs-ofctl", "ovn-nbctl", "brctl", "bridge", "vconfig", "teamdctl", "ifenslave", "ipset", "ebtables-nft", "conntrack", "ipvsadm", "wg-quick", "wg", "openvpn3", "tailscale", "zerotier-cli", "warp-cli", "nordvpn", "mullvad", "birdc", "vtysh", "gobgp", "cilium", "calicoctl"],
        &["apply|set|edit|rollback|commit|delete|del*|add*|down|up|reconfigure|renew|reload|disable|enable|disconnect|terminate|flush|destroy|-F|-D|create|detach|leave|logout|station|clear|remove|patch|replace|ifdown|release|restore|stop"], HarmCategory::Firewall, "changes the network").unless(&["show", "list", "status", "get", "info", "-n", "--dry-run"]),
    HarmfulAct::new(&["iwctl"], &["*", "*", "disconnect|connect|set-property|forget"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["conntrack", "ipset", "ipvsadm", "arp", "dhclient", "dhcpcd", "ipfw", "csf", "shorewall", "ferm", "pve-firewall", "fwknop", "apf", "iwconfig"], &[], HarmCategory::Firewall, "changes the network or the firewall").with(&["-F", "-D", "-X", "--flush", "-d", "-s", "-r", "-k", "-x", "-f", "flush", "destroy", "clear", "stop", "add", "delete", "reload", "restart", "-C", "--clear", "essid", "mode", "-e", "allow", "drop"]).unless(&["-l", "-L", "--list", "list", "show", "status"]),
    HarmfulAct::new(&["ipfw", "shorewall", "shorewall6", "ferm", "firehol", "apf", "csf"], &["flush|delete|add|set|stop|clear|restart|reload|disable|table"], HarmCategory::Firewall, "changes the firewall").unless(&["show", "list"]),
    HarmfulAct::new(&["domainname", "nisdomainname", "ypdomainname", "dnsdomainname"], &["*"], HarmCategory::SystemFile, "changes the machine's name"),
    HarmfulAct::new(&["rfkill"], &["block|toggle"], HarmCategory::Firewall, "cuts the machine off"),
    HarmfulAct::new(&["ip"], &["xfrm|tunnel|tuntap|neigh|neighbour|maddr|mroute|addrlabel|token|macsec|vrf|l2tp|fou|mptcp", "set|del|delete|flush|add|replace|change"], HarmCategory::Firewall, "changes the network"),
    HarmfulAct::new(&["ethtool"], &[], HarmCategory::Firewall, "changes the network").with(&["-s", "-K", "--change", "-r", "-E", "--flash", "-f", "--reset", "-G", "-L", "--offline"]),
    // Services of other systems.
    HarmfulAct::new(&["svcadm", "rcctl", "sv", "s6-rc", "s6-svc", "dinitctl", "initctl", "rc-update", "update-rc.d", "chkconfig", "insserv", "sysv-rc-conf", "launchctl", "svccfg", "runsvdir", "invoke-rc.d", "rc-service", "monit", "god", "circusctl", "eye", "sc", "nssm", "bsdrc", "service"],
        &["disable|stop|down|d|kill|k|remove|del|off|unmonitor|delete|exit|mark|set|change|x|terminate", "*"], HarmCategory::Service, "changes which services run").unless(&["list", "status", "print", "--user", "show"]),
    HarmfulAct::new(&["s6-rc", "s6-svc", "s6-svscanctl", "chkconfig", "update-rc.d", "insserv"], &[], HarmCategory::Service, "changes which services run").with(&["-d", "-k", "-x", "off", "--del", "-r", "-f", "-D", "remove", "disable", "-dv"]),
    HarmfulAct::new(&["systemctl"], &["set-environment"], HarmCategory::Service, "changes what services are started with").unless(&["--user", "--help"]),
    HarmfulAct::new(&["busctl"], &["set-property"], HarmCategory::Service, "changes what a service was told"),
    HarmfulAct::new(&["augtool"], &["set|rm|ins|mv|clear|touch|setm|store"], HarmCategory::SystemFile, "changes the machine's configuration"),
    HarmfulAct::new(&["alien"], &[], HarmCategory::SystemFile, "installs a package that is none of the system's").with(&["-i", "--install"]),
    HarmfulAct::new(&["setfattr"], &[], HarmCategory::Privilege, "gives a file rights of its own").with(&["security.capability", "security.selinux", "trusted.overlay.opaque"]),
    HarmfulAct::new(&["mknod"], &["*", "b"], HarmCategory::Disk, "makes a door to a disk"),
    HarmfulAct::new(&["tar", "gtar", "bsdtar"], &[], HarmCategory::SystemFile, "unpacks an archive wherever its names say").with(&["xPf", "-xPf", "xPvf", "xvPf", "-xvPf", "xzPf", "-xzPf"]),
    // Who listens.
    HarmfulAct::new(&["tshark", "dumpcap", "ngrep", "tcpflow", "dsniff", "urlsnarf", "mailsnarf", "msgsnarf", "sslsplit", "mitmproxy", "mitmdump", "mitmweb", "bettercap", "net-creds.py", "pcredz", "justniffer", "ssldump"], &[], HarmCategory::SecretRead, "listens to what others send")
        .unless(&["-r", "--read-file", "-I", "--help", "--version", "-v", "-D", "-L", "-G", "-rfile", "-nr", "-h"]),
    HarmfulAct::new(&["tcpdump"], &[], HarmCategory::SecretRead, "records what others send").with(&["-w"]).unless(&["-r", "-c", "lo", "lo0"]),
    HarmfulAct::new(&["airport"], &["*", "sniff"], HarmCategory::SecretRead, "records what others send"),
    HarmfulAct::new(&["ssh-keygen"], &[], HarmCategory::SecretRead, "changes the passphrase of a key").with(&["-p"]),
    HarmfulAct::new(&["security"], &["remove-trusted-cert|add-trusted-cert|delete-certificate|delete-identity|set-key-partition-list"], HarmCategory::SecurityTool, "changes whom the machine trusts"),
    HarmfulAct::new(&["brew"], &[], HarmCategory::SecurityTool, "installs without the system's check").with(&["--no-quarantine"]),
    HarmfulAct::new(&["hping3", "hping", "nping"], &[], HarmCategory::Process, "floods another machine").with(&["--flood", "--faster", "--rate"]),
    HarmfulAct::new(&["slowhttptest", "slowloris", "goldeneye", "hulk.py", "t50", "mdk3", "mdk4", "thc-ssl-dos", "torshammer.py", "aireplay-ng", "dnsperf-flood"], &[], HarmCategory::Process, "floods another machine"),
    HarmfulAct::new(&["mongo", "mongosh"], &[], HarmCategory::Database, "takes users away from a database").with(&["db.dropUser", "db.dropAllUsers()"]),
    HarmfulAct::new(&["svn"], &["delete|rm|remove|del"], HarmCategory::VersionControl, "deletes what others have").with(&["-m", "--message", "-F"]),
    // Who watches.
    HarmfulAct::new(&["aide", "tripwire", "samhain", "ossec-control", "wazuh-control", "osqueryctl", "falcon-kernel-check", "mdatp", "sentinelctl", "cbagentd", "auditbeat", "filebeat", "clamd", "freshclam", "maldet", "rkhunter", "sysmon", "twistcli", "auditd", "esets_daemon", "savdctl", "falconctl", "elastic-agent", "datadog-agent", "newrelic-infra", "velociraptor", "fleetctl"],
        &["stop|disable|uninstall|unload|config|exclusion|remove|kill|control|unenroll|unprotect|bypass|*"], HarmCategory::SecurityTool, "changes a security tool")
        .unless(&["--check", "-C", "status", "--version", "--help", "--compare", "health", "list", "version", "scan", "--configtest", "test", "info", "check", "-a"]),
    HarmfulAct::new(&["aide", "tripwire", "rkhunter", "samhain"], &[], HarmCategory::SecurityTool, "makes a security tool forget what it knew").with(&["--init", "--update", "-u", "-i", "--propupd", "-m"]),
    HarmfulAct::new(&["aa-disable", "aa-complain", "aa-teardown", "aa-remove-unknown", "aa-audit", "selinux-config-enforcing", "restorecon", "chcon", "setfiles", "fixfiles", "semodule", "grsec", "lockdown", "firecfg", "setcap", "setfcap"], &[], HarmCategory::SecurityTool, "changes a security module").unless(&["-n", "--help", "-l", "check"]),
    HarmfulAct::new(&["logrotate", "logsave", "savelog", "syslog-ng-ctl", "rsyslogd", "klogd", "augenrules", "auditd", "sa1"], &[], HarmCategory::LogTampering, "changes the machine's records").with(&["-f", "--force", "stop", "--load", "-c"]),
    HarmfulAct::new(&["lastlog", "lastlog2"], &[], HarmCategory::LogTampering, "changes login records").with(&["-C", "--clear", "-S", "--set"]),
    HarmfulAct::new(&["fc"], &[], HarmCategory::LogTampering, "deletes the shell history").with(&["-p", "-P"]),
    // Databases taken back.
    HarmfulAct::new(&["flask"], &["db", "downgrade"], HarmCategory::Database, "takes a database back"),
    HarmfulAct::new(&["alembic", "goose", "dbmate", "migrate", "atlas", "sql-migrate", "golang-migrate"], &["downgrade|down|down-to|reset|drop|rollback|redo"], HarmCategory::Database, "takes a database back").unless(&["--dry-run", "status"]),
    HarmfulAct::new(&["airflow"], &["db", "reset|clean|downgrade"], HarmCategory::Database, "deletes a database"),
    // Secrets by their own tools.
    HarmfulAct::new(&["sops", "ejson", "blackbox_cat", "git-crypt", "transcrypt", "ansible-vault", "eyaml", "berglas", "teller", "credstash"], &[], HarmCategory::SecretRead, "shows what was encrypted").with(&["-d", "--decrypt", "decrypt", "unlock", "view", "access", "get", "-k", "export-key"]).unless(&["--help"]),
    HarmfulAct::new(&["ykman"], &["oath|piv|openpgp|otp|fido|config", "accounts|reset|access|keys|certificates|delete|swap|code|calculate"], HarmCategory::SecretRead, "gets at the codes of a security key"),
    HarmfulAct::new(&["glab", "gh"], &["auth", "status"], HarmCategory::SecretRead, "shows a token").with(&["-t", "--show-token"]),
];

pub(super) fn judge(command: &ReducedCommand, _: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    if command.transparent {
        return Vec::new();
    }
    acts_of(command)
}

fn acts_of(command: &ReducedCommand) -> Vec<HarmFinding> {
    if PROGRAMS.contains(command.program()) {
        super::acts::look_up(ACTS, command)
    } else {
        Vec::new()
    }
}
