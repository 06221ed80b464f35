//! What only a Mac has.

use super::{Act, Judge, applescript};
use crate::effective::Effective;
use crate::finding::{Category, Finding};

#[rustfmt::skip]
const ACTS: &[Act] = &[
    Act::new(&["dsenableroot", "dsconfigldap", "dsconfigad"], &[], Category::Privilege, "changes who may log in").unless(&["-show", "-xml"]),
    Act::new(&["dscl", "dseditgroup", "dsimport"], &[], Category::Privilege, "changes accounts").with(&["-create", "-append", "-passwd", "-delete", "-change", "-merge", "-o", "create", "append", "passwd", "delete"]).unless(&["read", "-read", "list", "-list", "checkmember"]),
    Act::new(&["sysadminctl"], &[], Category::Privilege, "changes accounts").with(&["-addUser", "-deleteUser", "-resetPasswordFor", "-guestAccount", "-newPassword", "-secureTokenOn"]),
    Act::new(&["networksetup"], &[], Category::Firewall, "changes the network").with(&["-setwebproxy", "-setsecurewebproxy", "-setsocksfirewallproxy", "-setautoproxyurl", "-setautoproxystate", "-setwebproxystate", "-setsecurewebproxystate", "-setsocksfirewallproxystate", "-setsearchdomains", "-setmanual", "-setdhcp", "-setdnsservers", "-setnetworkserviceenabled", "-setairportpower", "-setproxybypassdomains"]),
    Act::new(&["tccutil"], &["reset"], Category::SecurityTool, "takes back what programs may do"),
    Act::new(&["spctl"], &[], Category::SecurityTool, "switches a protection off").with(&["--master-disable", "--global-disable", "--add", "--disable", "--remove", "kext-consent"]),
    Act::new(&["csrutil"], &["disable|clear|authenticated-root|netboot"], Category::SecurityTool, "switches a protection off").unless(&["list", "status"]),
    Act::new(&["xattr"], &[], Category::SecurityTool, "lets a download run unchecked").with(&["com.apple.quarantine"]).unless(&["-p", "-l"]),
    Act::new(&["xattr"], &[], Category::SecurityTool, "lets a download run unchecked").with(&["-c", "-cr", "-rc"]),
    Act::new(&["nvram"], &[], Category::Kernel, "changes what the machine boots with").unless(&["-p", "-xp", "-x"]),
    Act::new(&["kextload", "kextunload", "kmutil"], &[], Category::Kernel, "changes kernel modules").unless(&["showloaded", "inspect", "libraries"]),
    Act::new(&["systemsetup"], &[], Category::Firewall, "changes how the machine is reached").with(&["-setremotelogin", "-setremoteappleevents", "-settimezone", "-setusingnetworktime", "-setnetworktimeserver"]),
    Act::new(&["kickstart"], &[], Category::Exfiltration, "opens this machine to the network").with(&["-activate", "-configure"]),
    Act::new(&["fdesetup"], &["disable|remove|changerecovery|authrestart|add"], Category::Disk, "changes the encryption of the disk"),
    Act::new(&["tmutil"], &["delete|deletelocalsnapshots|disable|disablelocal|thinlocalsnapshots|removedestination"], Category::Destruction, "deletes backups"),
    Act::new(&["tmutil"], &["addexclusion"], Category::Destruction, "keeps files out of every backup").with(&["-p", "-v"]),
    Act::new(&["profiles"], &["install|remove|-I|-R|renew"], Category::Persistence, "changes what manages this machine"),
    Act::new(&["defaults"], &["write"], Category::Persistence, "runs at every login").with(&["LoginHook", "LogoutHook", "AutoLaunchedApplicationDictionary"]),
    Act::new(&["lsregister"], &[], Category::Persistence, "changes what opens a file").with(&["-f", "-kill", "-r", "-delete", "-u"]),
    Act::new(&["log"], &["erase"], Category::LogTampering, "deletes the machine's records"),
    Act::new(&["sfltool"], &["resetbtm|clear*"], Category::Persistence, "forgets what starts at login"),
    Act::new(&["sharing"], &[], Category::Exfiltration, "shares files with the network").with(&["-a", "-e", "-g", "-s"]).unless(&["-l"]),
    Act::new(&["safaridriver"], &[], Category::Exfiltration, "lets programs steer the browser").with(&["--enable"]),
    Act::new(&["pmset"], &["schedule|repeat|sleepnow|disablesleep"], Category::Power, "changes when the machine sleeps"),
    Act::new(&["security"], &["dump-keychain|export|unlock-keychain|delete-keychain|set-keychain-settings|add-trusted-cert|authorizationdb|find-generic-password|find-internet-password|delete-generic-password|delete-internet-password|delete-certificate"], Category::SecretRead, "gets at the keys of a person"),
    Act::new(&["launchctl"], &["load|bootstrap|submit|setenv|enable|bootout|unload|remove|disable|kickstart"], Category::Persistence, "changes which services run").unless(&["list", "print"]),
    Act::new(&["hdiutil"], &["eject|burn|erasekeys|chpass"], Category::Disk, "changes a disk image").with(&["erasekeys", "chpass"]),
    Act::new(&["hdiutil"], &["attach|mount|mountvol", "http*|ftp*"], Category::RemoteCode, "mounts a disk from the network"),
    Act::new(&["systemextensionsctl"], &["uninstall|reset|developer"], Category::SecurityTool, "removes what watches the machine"),
    Act::new(&["automator"], &[], Category::RemoteCode, "runs a workflow in a person's name"),
    Act::new(&["diskutil"], &["apfs", "deleteSnapshot|deleteVolume|deleteVolumeGroup"], Category::Destruction, "deletes a volume or a snapshot"),
    Act::new(&["security_authtrampoline"], &[], Category::Privilege, "runs a command as root"),
    Act::new(&["gpt"], &["destroy|create|migrate|recover"], Category::Disk, "rewrites a partition table").floor(),
    Act::new(&["audit"], &[], Category::LogTampering, "ends the machine's records").with(&["-t"]),
    Act::new(&["asr"], &["restore|imagescan"], Category::Disk, "overwrites a disk").with(&["--erase", "restore"]),
    Act::new(&["bless"], &[], Category::Kernel, "changes what the machine boots").unless(&["--info"]),
];

pub(super) fn judge(command: &Effective, _: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    findings.extend(applescript::judge(command));
    // `-p` prints all the same, after what was given is set.
    if command.program() == "nvram" && command.operands().any(|word| word.s.contains('=')) {
        findings.push(Finding::dangerous(
            Category::Kernel,
            "changes what the machine boots with",
        ));
    }
    findings
}
