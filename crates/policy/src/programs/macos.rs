//! What only a Mac has.

use super::{HarmfulAct, ProgramJudge, applescript};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;

#[rustfmt::skip]
const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["dsenableroot", "dsconfigldap", "dsconfigad"], &[], HarmCategory::Privilege, "changes who may log in").unless(&["-show", "-xml"]),
    HarmfulAct::new(&["dscl", "dseditgroup", "dsimport"], &[], HarmCategory::Privilege, "changes accounts").with(&["-create", "-append", "-passwd", "-delete", "-change", "-merge", "-o", "create", "append", "passwd", "delete"]).unless(&["read", "-read", "list", "-list", "checkmember"]),
    HarmfulAct::new(&["sysadminctl"], &[], HarmCategory::Privilege, "changes accounts").with(&["-addUser", "-deleteUser", "-resetPasswordFor", "-guestAccount", "-newPassword", "-secureTokenOn"]),
    HarmfulAct::new(&["networksetup"], &[], HarmCategory::Firewall, "changes the network").with(&["-setwebproxy", "-setsecurewebproxy", "-setsocksfirewallproxy", "-setautoproxyurl", "-setautoproxystate", "-setwebproxystate", "-setsecurewebproxystate", "-setsocksfirewallproxystate", "-setsearchdomains", "-setmanual", "-setdhcp", "-setdnsservers", "-setnetworkserviceenabled", "-setairportpower", "-removeallnetworkservices", "-removenetworkservice", "-removenetworklocation", "-deletelocation", "-removepreferredwirelessnetwork", "-removeallpreferredwirelessnetworks", "-setnetworkserviceorder", "-setadditionalroutes", "-setv6off", "-setv4off", "-setproxybypassdomains"]),
    HarmfulAct::new(&["bputil"], &[], HarmCategory::Kernel, "changes what the machine lets boot").unless(&["-d", "--display-policy", "-e", "--display-all-policies", "-h", "--help"]),
    HarmfulAct::new(&["tccutil"], &["reset"], HarmCategory::SecurityTool, "takes back what programs may do"),
    HarmfulAct::new(&["spctl"], &[], HarmCategory::SecurityTool, "switches a protection off").with(&["--master-disable", "--global-disable", "--add", "--disable", "--remove", "kext-consent"]),
    HarmfulAct::new(&["csrutil"], &["disable|clear|authenticated-root|netboot"], HarmCategory::SecurityTool, "switches a protection off").unless(&["list", "status"]),
    HarmfulAct::new(&["xattr"], &[], HarmCategory::SecurityTool, "lets a download run unchecked").with(&["com.apple.quarantine"]).unless(&["-p", "-l"]),
    HarmfulAct::new(&["xattr"], &[], HarmCategory::SecurityTool, "lets a download run unchecked").with(&["-cr", "-rc"]),
    HarmfulAct::new(&["nvram"], &[], HarmCategory::Kernel, "changes what the machine boots with").with(&["-d", "-c", "-f"]),
    HarmfulAct::new(&["kextload", "kextunload", "kmutil"], &[], HarmCategory::Kernel, "changes kernel modules").unless(&["showloaded", "inspect", "libraries"]),
    HarmfulAct::new(&["systemsetup"], &[], HarmCategory::Firewall, "changes how the machine is reached").with(&["-setremotelogin", "-setremoteappleevents", "-settimezone", "-setusingnetworktime", "-setnetworktimeserver"]),
    HarmfulAct::new(&["kickstart"], &[], HarmCategory::Exfiltration, "opens this machine to the network").with(&["-activate", "-configure"]),
    HarmfulAct::new(&["fdesetup"], &["disable|remove|changerecovery|authrestart|add"], HarmCategory::Disk, "changes the encryption of the disk"),
    HarmfulAct::new(&["tmutil"], &["delete|deletelocalsnapshots|disable|disablelocal|thinlocalsnapshots|removedestination"], HarmCategory::Destruction, "deletes backups"),
    HarmfulAct::new(&["tmutil"], &["addexclusion"], HarmCategory::Destruction, "keeps files out of every backup").with(&["-p", "-v"]),
    HarmfulAct::new(&["profiles"], &["install|remove|-I|-R|renew"], HarmCategory::Persistence, "changes what manages this machine"),
    HarmfulAct::new(&["defaults"], &["write"], HarmCategory::Persistence, "runs at every login").with(&["LoginHook", "LogoutHook", "AutoLaunchedApplicationDictionary"]),
    HarmfulAct::new(&["lsregister"], &[], HarmCategory::Persistence, "changes what opens a file").with(&["-f", "-kill", "-r", "-delete", "-u"]),
    HarmfulAct::new(&["log"], &["config"], HarmCategory::LogTampering, "changes what is recorded").with(&["--mode", "--reset"]),
    HarmfulAct::new(&["codesign"], &[], HarmCategory::SecurityTool, "takes the signature off a program").with(&["--remove-signature"]),
    HarmfulAct::new(&["jamf"], &["removeFramework|removeMdmProfile|policy|recon|enroll|bind|resetPassword|createAccount|deleteAccount"], HarmCategory::SecurityTool, "changes what manages this machine"),
    HarmfulAct::new(&["SetFile", "setfile"], &[], HarmCategory::SystemFile, "hides a file").with(&["-a"]),
    HarmfulAct::new(&["security"], &["import|set-key-partition-list|create-keychain|add-generic-password|default-keychain"], HarmCategory::Persistence, "changes the keys of a person").with(&["import", "set-key-partition-list", "-s"]),
    HarmfulAct::new(&["log"], &["erase"], HarmCategory::LogTampering, "deletes the machine's records"),
    HarmfulAct::new(&["sfltool"], &["resetbtm|clear*"], HarmCategory::Persistence, "forgets what starts at login"),
    HarmfulAct::new(&["sharing"], &[], HarmCategory::Exfiltration, "shares files with the network").with(&["-a", "-e", "-g", "-s"]).unless(&["-l"]),
    HarmfulAct::new(&["safaridriver"], &[], HarmCategory::Exfiltration, "lets programs steer the browser").with(&["--enable"]),
    HarmfulAct::new(&["pmset"], &["schedule|repeat|sleepnow|disablesleep"], HarmCategory::Power, "changes when the machine sleeps"),
    HarmfulAct::new(&["security"], &["dump-keychain|export|unlock-keychain|delete-keychain|set-keychain-settings|add-trusted-cert|authorizationdb|find-generic-password|find-internet-password|delete-generic-password|delete-internet-password|delete-certificate"], HarmCategory::SecretRead, "gets at the keys of a person"),
    HarmfulAct::new(&["launchctl"], &["load|bootstrap|submit|setenv|enable|bootout|unload|remove|disable"], HarmCategory::Persistence, "changes which services run").unless(&["list", "print"]),
    HarmfulAct::new(&["hdiutil"], &["eject|burn|erasekeys|chpass"], HarmCategory::Disk, "changes a disk image").with(&["erasekeys", "chpass"]),
    HarmfulAct::new(&["hdiutil"], &["attach|mount|mountvol", "http*|ftp*"], HarmCategory::RemoteCode, "mounts a disk from the network"),
    HarmfulAct::new(&["systemextensionsctl"], &["uninstall|reset|developer"], HarmCategory::SecurityTool, "removes what watches the machine"),
    HarmfulAct::new(&["automator"], &[], HarmCategory::RemoteCode, "runs a workflow in a person's name"),
    HarmfulAct::new(&["diskutil"], &["apfs", "deleteSnapshot|deleteVolume|deleteVolumeGroup"], HarmCategory::Destruction, "deletes a volume or a snapshot"),
    HarmfulAct::new(&["security_authtrampoline"], &[], HarmCategory::Privilege, "runs a command as root"),
    HarmfulAct::new(&["gpt"], &["destroy|create|migrate|recover"], HarmCategory::Disk, "rewrites a partition table").floor(),
    HarmfulAct::new(&["audit"], &[], HarmCategory::LogTampering, "ends the machine's records").with(&["-t"]),
    HarmfulAct::new(&["asr"], &["restore|imagescan"], HarmCategory::Disk, "overwrites a disk").with(&["--erase", "restore"]),
    HarmfulAct::new(&["bless"], &[], HarmCategory::Kernel, "changes what the machine boots").unless(&["--info"]),
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    findings.extend(applescript::judge(command));
    // One's own may be restarted, as with `systemctl --user`.
    if command.program() == "launchctl"
        && command.operand(0) == "kickstart"
        && !command.operand(1).starts_with("gui/")
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Service,
            "restarts something the machine relies on",
        ));
    }
    // A double click on what anybody could have put there.
    if command.program() == "open"
        && command.operands().any(|text| {
            let runs = [
                ".command",
                ".app",
                ".terminal",
                ".workflow",
                ".pkg",
                ".scpt",
                ".tool",
            ]
            .iter()
            .any(|end| text.s.trim_end_matches('/').ends_with(end));
            runs && paths::anybodys(&text.s, &judge.cwd, judge.context)
        })
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::RemoteCode,
            "starts something that anybody could have put there",
        ));
    }
    // `-p` prints all the same, after what was given is set.
    if command.program() == "nvram" && command.operands().any(|word| word.s.contains('=')) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Kernel,
            "changes what the machine boots with",
        ));
    }
    findings
}
