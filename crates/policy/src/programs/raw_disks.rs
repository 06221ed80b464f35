//! The act of overwriting a disk, by whatever tool.
//!
//! There are more tools for disks than tables can name. Whatever is not known to only look at a disk,
//! or has rules of its own, is asked about when it is given one, and refused where its words say that
//! it makes, erases or overwrites.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;

/// Tools that look, or whose rules are in [`super::disks`] or another family.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "", "ls", "eza", "exa", "stat", "file", "test", "[", "[[", "echo", "printf", "grep", "rg", "awk", "sed", "readlink", "realpath", "basename",
    "lsblk", "blkid", "df", "du", "findmnt", "lsof", "fuser", "mount", "umount", "swapon", "swapoff", "udevadm",
    "udisksctl", "smartctl", "hdparm", "sdparm", "fdisk", "sfdisk", "gdisk", "sgdisk", "cfdisk", "cgdisk", "parted",
    "partprobe", "partx", "blockdev", "dumpe2fs", "tune2fs", "e2label", "resize2fs", "e2fsck", "fsck", "xfs_info", "xfs_repair",
    "xfs_admin", "xfs_growfs", "btrfs", "bcachefs", "mdadm", "nvme", "cryptsetup", "dmsetup", "losetup", "pvs", "vgs", "lvs",
    "pvdisplay", "vgdisplay", "lvdisplay", "pvscan", "pvck", "zpool", "zfs", "zdb", "wipefs", "mkfs", "debugfs", "badblocks",
    "diskutil", "hdiutil", "asr", "gpt", "cat", "head", "tail", "xxd", "od", "hexdump", "strings", "dd", "cmp", "md5sum",
    "sha256sum", "sha1sum", "b2sum", "chmod", "chown", "chgrp", "setfacl", "getfacl", "rm", "ln", "cp", "mv", "tee",
    "eject", "growpart", "iostat", "ioping", "fio", "hwinfo", "lshw", "sg_inq", "sg_readcap", "sg_logs", "sg_vpd", "lsscsi", "btrfsck", "ntfsinfo",
    "testdisk", "photorec", "mmls", "fls", "fsstat", "icat", "qemu-system-x86_64", "qemu-img", "qemu-nbd", "grub-install", "extundelete",
    "docker", "podman", "ssh", "sudo", "doas", "watch", "find", "man", "df", "duf", "lsattr", "e4defrag", "fstrim", "isoinfo", "disktype", "gparted",
    "wodim", "cdrecord", "sshfs", "truncate", "fallocate", "shred", "wipe", "nwipe", "scrub", "pv", "source", ".", "read", "export", "local", "declare", "hdparm", "dislocker", "ntfs-3g", "mount.ntfs", "fuseiso", "guestmount", "adb", "picocom", "minicom", "screen",
    "smartd", "skdump", "sysbench", "ddrescue", "kubectl", "git", "diff", "which", "for", "pvcreate", "vgcreate", "lvcreate", "pvremove", "vgextend", "pvresize", "pvmove", "lvrename", "vgrename", "lvchange", "vgchange", "raw", "lvextend", "lvremove", "blkdiscard", "rsync", "scp", "tar",
];

static KNOWN_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| KNOWN.iter().copied().collect());

/// What a tool says that makes, erases or overwrites.
const DESTROYS: &[&str] = &[
    "format",
    "erase",
    "wipe",
    "zap",
    "zero",
    "zeroes",
    "create",
    "init",
    "initialize",
    "kill",
    "clear",
    "destroy",
    "delete",
    "reset",
    "write",
    "restore",
    "flash",
    "install",
    "sanitize",
    "overwrite",
    "make",
    "burn",
    "clone",
    "force",
    "nuke",
    "purge",
    "scrub",
    "autonuke",
    "mklabel",
    "mkpart",
    "unmap",
    "trim",
    "discard",
    "encrypt",
    "reencrypt",
    "partition",
    "repartition",
    "disk",
    "image",
    "output",
    "target",
    "ireallywanttoerasealldata",
    "same",
];

static PROGRAMS: LazyLock<HashSet<&str>> = LazyLock::new(|| super::acts::programs_of(ACTS));

#[rustfmt::skip]
const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(&["gpart"], &["destroy|create|delete|recover|restore|add|bootcode"], HarmCategory::Disk, "changes a partition table").floor(),
    HarmfulAct::new(&["geli"], &["init|kill|clear|setkey|delkey|onetime|restore"], HarmCategory::Disk, "makes a disk unreadable").floor(),
    HarmfulAct::new(&["glabel", "gmirror", "graid", "graid3", "gstripe", "gconcat", "gnop", "gvinum"], &["clear|destroy|delete|label|create|remove"], HarmCategory::Disk, "overwrites what a disk says about itself").floor(),
    HarmfulAct::new(&["camcontrol"], &["format|sanitize|security"], HarmCategory::Disk, "erases a disk").floor(),
    HarmfulAct::new(&["nvmecontrol"], &["format|sanitize|ns"], HarmCategory::Disk, "erases a disk").floor(),
    HarmfulAct::new(&["disklabel", "bsdlabel"], &[], HarmCategory::Disk, "changes a partition table").with(&["-w", "-B", "-R", "-E", "-e"]).floor(),
    HarmfulAct::new(&["fdisk"], &[], HarmCategory::Disk, "changes a partition table").with(&["-i", "-u", "-e", "-B", "-f"]).unless(&["-l", "--list"]).floor(),
    HarmfulAct::new(&["format"], &[], HarmCategory::Disk, "erases a disk").with(&["-f", "-y", "/y", "/q"]).floor(),
    HarmfulAct::new(&["storcli", "storcli64", "perccli", "perccli64", "hpssacli", "ssacli", "hpacucli", "mvcli", "tw_cli", "sas2ircu", "sas3ircu", "arcconf", "megacli", "MegaCli", "MegaCli64", "megacli64", "omconfig"], &[], HarmCategory::Disk, "takes disks apart at their controller").with(&["delete", "del", "DELETE", "init", "initialize", "erase", "secureerase", "-CfgLdDel", "-CfgClr", "-LDInit", "-CfgEachDskRaid0", "-PDClear", "UNINIT", "FORMAT", "INITIALIZE"]).floor(),
    HarmfulAct::new(&["flashcp", "nandwrite", "ubirmvol", "ubiupdatevol", "ubidetach", "jffs2reset", "firstboot"], &[], HarmCategory::Disk, "overwrites the flash memory").unless(&["--help", "--version"]).floor(),
    HarmfulAct::new(&["mtd"], &["*", "erase|write|unlock"], HarmCategory::Disk, "overwrites the flash memory").floor(),
    HarmfulAct::new(&["mtd"], &[], HarmCategory::Disk, "overwrites the flash memory").with(&["erase", "write"]).floor(),
    HarmfulAct::new(&["sysupgrade"], &[], HarmCategory::Disk, "overwrites the system").unless(&["-l", "-b", "--test", "-T", "-h", "--help", "--create-backup", "--list-backup"]).floor(),
    HarmfulAct::new(&["flashrom"], &[], HarmCategory::Kernel, "overwrites the firmware").with(&["-E", "--erase", "-w", "--write"]).floor(),
    HarmfulAct::new(&["fastboot"], &["erase|flash|format|flashall|update"], HarmCategory::Disk, "overwrites a phone").floor(),
    HarmfulAct::new(&["fastboot"], &["oem|flashing"], HarmCategory::Disk, "locks, unlocks or erases a phone"),
    HarmfulAct::new(&["fastboot"], &[], HarmCategory::Disk, "overwrites a phone").with(&["-w"]).floor(),
    HarmfulAct::new(&["heimdall", "odin4", "odin"], &["flash"], HarmCategory::Disk, "overwrites a phone").floor(),
    HarmfulAct::new(&["adb"], &["shell", "recovery|wipe|dd|mkfs*"], HarmCategory::Disk, "erases a phone").floor(),
    HarmfulAct::new(&["adb"], &["shell", "am|pm|settings|su", "*"], HarmCategory::Disk, "changes a phone").with(&["android.intent.action.MASTER_CLEAR", "android.intent.action.FACTORY_RESET", "MASTER_CLEAR"]),
    HarmfulAct::new(&["esptool", "esptool.py", "st-flash", "nrfjprog", "pyocd", "JLinkExe", "stm32flash", "rfc2217"], &["erase|erase_flash|erase-flash|erase_region|chip-erase"], HarmCategory::Disk, "erases a board"),
    HarmfulAct::new(&["nrfjprog"], &[], HarmCategory::Disk, "erases a board").with(&["--eraseall", "-e", "--recover"]),
    HarmfulAct::new(&["avrdude"], &[], HarmCategory::Disk, "erases a board").with(&["-e"]),
    HarmfulAct::new(&["openocd"], &[], HarmCategory::Disk, "writes to a board").with(&["-c"]),
    HarmfulAct::new(&["dfu-util"], &[], HarmCategory::Disk, "writes to a board").with(&["-D", "-s"]),
    HarmfulAct::new(&["diskutil"], &["mergePartitions|splitPartition|resizeVolume|addPartition|eraseAllContents"], HarmCategory::Disk, "changes a partition table").floor(),
    HarmfulAct::new(&["diskutil"], &["apfs|ap", "create|createContainer|deleteVolumeGroup|deleteContainer|deleteVolume|eraseVolume|convert"], HarmCategory::Disk, "erases a disk").floor(),
    HarmfulAct::new(&["diskutil"], &["cs|coreStorage|appleRAID|ar", "delete|deleteVolume|create|convert|remove"], HarmCategory::Disk, "erases a disk").floor(),
    HarmfulAct::new(&["asr"], &[], HarmCategory::Disk, "overwrites a disk").with(&["--erase", "-erase"]).floor(),
    HarmfulAct::new(&["vgremove"], &[], HarmCategory::Disk, "deletes every volume of a group").with(&["-f", "--force", "-y", "--yes"]).floor(),
    HarmfulAct::new(&["lvremove", "lvreduce"], &[], HarmCategory::Disk, "deletes a volume unasked").with(&["-f", "--force", "-y", "--yes"]).floor(),
    HarmfulAct::new(&["pvremove"], &[], HarmCategory::Disk, "makes a disk unreadable").with(&["-f", "--force", "-y"]).floor(),
    HarmfulAct::new(&["zpool"], &["destroy|labelclear"], HarmCategory::Disk, "destroys a storage pool").floor(),
    HarmfulAct::new(&["zpool"], &["add|replace|attach|create"], HarmCategory::Disk, "overwrites a disk").with(&["-f"]).unless(&["-n"]).floor(),
    HarmfulAct::new(&["zfs"], &["recv|receive"], HarmCategory::Disk, "overwrites a filesystem").with(&["-F"]).floor(),
    HarmfulAct::new(&["zfs"], &["destroy"], HarmCategory::Disk, "destroys filesystems with everything below").with(&["-r", "-R", "-f"]).floor(),
    HarmfulAct::new(&["mdadm"], &[], HarmCategory::Disk, "overwrites what a disk says about itself").with(&["--zero-superblock", "--create", "-C"]).floor(),
    HarmfulAct::new(&["dmsetup"], &["wipe_table|remove_all"], HarmCategory::Disk, "takes every volume away").floor(),
    HarmfulAct::new(&["cryptsetup-reencrypt", "veritysetup", "integritysetup"], &[], HarmCategory::Disk, "makes a disk unreadable").unless(&["status", "dump", "verify", "open", "close", "--help", "--version"]).floor(),
    HarmfulAct::new(&["cryptsetup"], &["luksHeaderRestore|reencrypt|luksFormat|erase|luksErase|convert|tcryptFormat"], HarmCategory::Disk, "makes a disk unreadable").floor(),
    HarmfulAct::new(&["drbdadm", "drbdmeta"], &["create-md|wipe-md|invalidate"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["drbdadm", "drbdmeta"], &["*", "create-md|wipe-md"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["multipath", "losetup"], &[], HarmCategory::Disk, "takes disks away").with(&["-F", "-D"]),
    HarmfulAct::new(&["btrfs"], &["subvolume|sub|su", "delete|del"], HarmCategory::Disk, "deletes the whole system or every home").with(&["/", "/home", "/@", "/@home", "/root", "/var"]).floor(),
    HarmfulAct::new(&["e2image"], &[], HarmCategory::Disk, "overwrites a filesystem").with(&["-I"]).floor(),
    HarmfulAct::new(&["sgdisk"], &[], HarmCategory::Disk, "overwrites a partition table").with(&["-R", "--replicate", "-l", "--load-backup", "-n", "--new", "-t", "--typecode", "-c", "--change-name", "-G", "--randomize-guids", "-U", "--disk-guid", "-u", "--partition-guid", "-e", "--move-second-header", "-s", "--sort", "-g", "--mbrtogpt", "-m", "--gpttombr", "--hybrid", "-r", "--transpose", "-A", "--attributes", "-N", "--largest-new"]).unless(&["-p", "--print", "-i", "--info", "-v", "--verify", "--help", "-P", "--pretend"]).floor(),
    HarmfulAct::new(&["debugfs"], &[], HarmCategory::Disk, "breaks a filesystem").with(&["clri", "kill_file", "zap_block"]).floor(),
    HarmfulAct::new(&["blkzone"], &["reset|finish"], HarmCategory::Disk, "erases a disk").floor(),
    HarmfulAct::new(&["sedutil-cli", "sedutil"], &[], HarmCategory::Disk, "erases a disk").with(&["--revertTPer", "--PSIDrevert", "--PSIDrevertAdminSP", "--yesIreallywanttoERASEALLmydatausingthePSID", "--revertNoErase", "--initialSetup", "--revertPer"]).floor(),
    HarmfulAct::new(&["fdformat", "mkfs_bfs", "ventoy", "Ventoy2Disk.sh", "bootiso", "usb-creator-gtk", "mkusb"], &[], HarmCategory::Disk, "overwrites a disk").with(&["-I", "-i", "-u", "/dev/fd0", "/dev/fd1", "install-auto"]).floor(),
    HarmfulAct::new(&["coreos-installer", "bootc", "flatcar-install", "talos-installer", "proxmox-installer"], &["install", "/dev/*|to-disk|to-filesystem|to-existing-root"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["coreos-installer", "bootc"], &["install"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["disko", "disko-install"], &[], HarmCategory::Disk, "overwrites disks").unless(&["--dry-run"]).floor(),
    HarmfulAct::new(&["ceph-volume"], &["lvm|raw", "zap|create|prepare|batch"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["ceph-disk"], &["zap|prepare"], HarmCategory::Disk, "overwrites a disk").floor(),
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = acts_of(command);
    let program = command.program();
    let by_bus = matches!(program, "busctl" | "gdbus" | "dbus-send" | "qdbus")
        && command.args().iter().any(|arg| arg.s.contains("UDisks2"))
        && command.args().iter().any(|arg| {
            matches!(
                arg.s.rsplit('.').next(),
                Some(
                    "Format"
                        | "Delete"
                        | "CreatePartition"
                        | "CreatePartitionAndFormat"
                        | "SecurityEraseUnit"
                )
            )
        });
    if by_bus {
        findings.push(HarmFinding::floor(HarmCategory::Disk, "erases a disk"));
    }
    let packs = matches!(
        program,
        "tar" | "gtar" | "bsdtar" | "cpio" | "dump" | "pax" | "star"
    ) && !command.short('x')
        && !command.short('t')
        && command
            .args()
            .iter()
            .any(|arg| paths::is_disk(&arg.s) && arg.s.starts_with("/dev/"));
    if copies_from_disk(command) && command.operands().any(|text| paths::is_disk(&text.s)) {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Disk,
            "copies a whole disk",
        ));
    }
    if packs && !copies_from_disk(command) {
        findings.push(HarmFinding::floor(
            HarmCategory::Disk,
            "writes an archive onto a disk",
        ));
    }
    if command.transparent || KNOWN_SET.contains(program) || program.starts_with("mkfs.") {
        if program == "parted" {
            findings.extend(told(command));
        }
        return findings;
    }
    let on_disk = |text: &str| paths::is_disk(&paths::absolute(text, &judge.cwd));
    let named = command.args().iter().any(|arg| {
        let value = arg.s.rsplit(['=', ':']).next().unwrap_or_default();
        arg.s.starts_with('/') && on_disk(&arg.s) || value.starts_with("/dev/") && on_disk(value)
    });
    let trial = command.args().iter().any(|arg| {
        matches!(
            arg.s.as_str(),
            "-n" | "-nv" | "--dry-run" | "--no-act" | "-N" | "-h" | "-V"
        )
    });
    let copies_out = copies_from_disk(command)
        || command
            .args()
            .iter()
            .any(|arg| arg.s.starts_with("of=") && !on_disk(&arg.s[3..]));
    if !named || trial || copies_out || command.has_arg("--help") || command.has_arg("--version") {
        return findings;
    }
    if overwrites(command, &on_disk) {
        findings.push(HarmFinding::floor(
            HarmCategory::Disk,
            format!("makes, erases or overwrites a disk with {program}"),
        ));
    } else {
        findings.push(HarmFinding::dangerous(
            HarmCategory::Disk,
            format!("does something with a disk, with {program}"),
        ));
    }
    findings
}

fn overwrites(command: &ReducedCommand, on_disk: &dyn Fn(&str) -> bool) -> bool {
    let program = command.program().to_lowercase();
    let made = [
        "mk", "newfs", "format", "make", "wipe", "erase", "burn", "flash",
    ]
    .iter()
    .any(|start| program.starts_with(start));
    let says = |text: &str| {
        text.to_lowercase()
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| DESTROYS.contains(&word))
    };
    let told = command
        .args()
        .iter()
        .filter(|arg| !arg.s.contains('/') && arg.s.len() < 64)
        .any(|arg| says(&arg.s));
    let output = command.args().iter().any(|arg| {
        let target = ["of=", "--of=", "-o=", "out="]
            .iter()
            .find_map(|flag| arg.s.strip_prefix(flag));
        target.is_some_and(on_disk)
    });
    let operands: Vec<&str> = command.operands().map(|text| text.s.as_str()).collect();
    let copied = match operands.as_slice() {
        [first, .., last] => {
            on_disk(last) && first.contains(['.', '/']) && !on_disk(first)
                || on_disk(last) && on_disk(first) && first != last
                || on_disk(last) && matches!(*first, "/dev/zero" | "/dev/urandom")
        }
        _ => false,
    };
    let fed = command.input.present && operands.len() <= 2;
    made || says(&program) || told || output || copied || fed
}

/// `dump -0f where /dev/sda1` reads the disk that it names last.
fn copies_from_disk(command: &ReducedCommand) -> bool {
    let args = command.args();
    let file = args
        .iter()
        .position(|arg| arg.s.starts_with('-') && arg.s.ends_with('f'))
        .and_then(|at| args.get(at + 1));
    command.program() == "dump" && file.is_some_and(|file| !paths::is_disk(&file.s))
}

/// `parted /dev/sda <<< 'mklabel gpt'`.
fn told(command: &ReducedCommand) -> Option<HarmFinding> {
    let typed = command.input.known.as_deref()?;
    ["mklabel", "mktable", "mkpart", "rm ", "resizepart"]
        .iter()
        .any(|word| typed.contains(word))
        .then(|| HarmFinding::floor(HarmCategory::Disk, "rewrites a partition table"))
}

fn acts_of(command: &ReducedCommand) -> Vec<HarmFinding> {
    if PROGRAMS.contains(command.program()) {
        super::acts::look_up(ACTS, command)
    } else {
        Vec::new()
    }
}
