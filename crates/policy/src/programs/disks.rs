//! Disks, partitions, filesystems, volumes.

use super::{HarmfulAct, ProgramJudge};
use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::paths;
use crate::text::{HOLE, TaintSet};

/// Tools that lay something onto a disk, or take everything from it.
#[rustfmt::skip]
const OVERWRITES: &[HarmfulAct] = &[
    HarmfulAct::new(&["bcachefs"], &["format"], HarmCategory::Disk, "formats a disk").floor(),
    HarmfulAct::new(&["mmc"], &["secure-erase|erase|sanitize|secure-trim*"], HarmCategory::Disk, "erases a disk").floor(),
    HarmfulAct::new(&["mtd"], &["erase|write"], HarmCategory::Disk, "erases the flash memory").floor(),
    HarmfulAct::new(&["flash_erase", "flash_eraseall", "ubiformat", "nandtest"], &[], HarmCategory::Disk, "erases the flash memory").floor(),
    HarmfulAct::new(&["virt-format"], &[], HarmCategory::Disk, "formats a disk").floor(),
    HarmfulAct::new(&["ntfsclone"], &[], HarmCategory::Disk, "overwrites a disk").with(&["--overwrite", "-O", "--restore-image", "-r"]).floor(),
    HarmfulAct::new(&["fsarchiver"], &["restfs|restdir"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["partimage"], &["restore"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["ocs-sr", "ocs-onthefly", "usbimager", "rpi-imager", "etcher", "balena-etcher", "woeusb"], &[], HarmCategory::Disk, "overwrites a disk").with(&["restoredisk", "restoreparts", "--cli", "--device", "-f", "--yes"]).floor(),
    HarmfulAct::new(&["bmaptool"], &["copy"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["asr"], &["restore"], HarmCategory::Disk, "overwrites a disk").with(&["--erase", "-erase"]).floor(),
    HarmfulAct::new(&["balena"], &["local", "flash"], HarmCategory::Disk, "overwrites a disk").floor(),
    HarmfulAct::new(&["cryptsetup"], &["luksChangeKey|luksAddKey|luksHeaderRestore|luksConvertKey|luksSuspend|tcryptDump|luksDump"], HarmCategory::Disk, "changes or shows the keys of a disk").unless(&["luksDump"]),
    HarmfulAct::new(&["zfs"], &["set"], HarmCategory::Disk, "changes where a filesystem is, or whether it is").with(&["mountpoint=none", "mountpoint=legacy", "canmount=off", "readonly=on"]),
    HarmfulAct::new(&["btrfs"], &["filesystem|fi", "resize"], HarmCategory::Disk, "changes the size of a filesystem"),
    HarmfulAct::new(&["btrfs"], &["device|balance|replace", "remove|delete|start"], HarmCategory::Disk, "takes a disk out of a filesystem"),
    HarmfulAct::new(&["gpart", "disklabel", "bsdlabel"], &["*"], HarmCategory::Disk, "changes a disk").unless(&["show", "-n", "--dry-run", "list"]),
    HarmfulAct::new(&["fallocate"], &[], HarmCategory::Destruction, "makes holes in a file").with(&["-p", "--punch-hole", "-z", "--zero-range"]),
];

const ACTS: &[HarmfulAct] = &[
    HarmfulAct::new(
        &["efibootmgr"],
        &[],
        HarmCategory::Kernel,
        "changes what boots",
    )
    .with(&[
        "-b",
        "-B",
        "-c",
        "-o",
        "-n",
        "-a",
        "-A",
        "-D",
        "-O",
        "-N",
        "-t",
        "--create",
        "--delete-bootnum",
        "--bootorder",
        "--bootnext",
    ]),
    HarmfulAct::new(
        &["fwupdmgr"],
        &[
            "update|upgrade|install|install-blob|downgrade|reinstall|switch-branch|set-bios-setting|activate|unlock|clear-results|modify-config|block-firmware|disable-remote",
        ],
        HarmCategory::Kernel,
        "writes firmware",
    ),
    HarmfulAct::new(&["wipefs"], &[], HarmCategory::Disk, "erases a filesystem")
        .with(&["-a", "--all", "-o", "--offset"])
        .unless(&["-n", "--no-act"])
        .floor(),
    HarmfulAct::new(&["blkdiscard"], &[], HarmCategory::Disk, "erases a disk").floor(),
    HarmfulAct::new(
        &["sgdisk"],
        &[],
        HarmCategory::Disk,
        "erases a partition table",
    )
    .with(&[
        "-Z",
        "-z",
        "-o",
        "--zap-all",
        "--zap",
        "--clear",
        "-d",
        "--delete",
    ])
    .floor(),
    HarmfulAct::new(
        &["sfdisk"],
        &[],
        HarmCategory::Disk,
        "changes a partition table",
    )
    .unless(&[
        "-l",
        "--list",
        "-d",
        "--dump",
        "-V",
        "-J",
        "--json",
        "-s",
        "--show-size",
        "-g",
        "--show-geometry",
        "-F",
        "--list-free",
        "-v",
        "--version",
    ]),
    HarmfulAct::new(
        &["blockdev"],
        &[],
        HarmCategory::Disk,
        "changes how a disk is used",
    )
    .with(&["--setro", "--setrw", "--setra", "--setbsz", "--rereadpt"]),
    HarmfulAct::new(
        &["growpart"],
        &[],
        HarmCategory::Disk,
        "changes a partition table",
    )
    .unless(&["-N", "--dry-run", "-h"]),
    HarmfulAct::new(
        &["fdisk", "gdisk", "cfdisk", "cgdisk"],
        &[],
        HarmCategory::Disk,
        "changes a partition table",
    )
    .unless(&[
        "-l",
        "--list",
        "-s",
        "-v",
        "--version",
        "-h",
        "--help",
        "-x",
    ]),
    HarmfulAct::new(
        &["cryptsetup"],
        &["luksFormat|luksErase|erase|luksKillSlot|luksRemoveKey|reencrypt"],
        HarmCategory::Disk,
        "makes a disk unreadable",
    )
    .floor(),
    HarmfulAct::new(
        &["pvremove", "vgremove", "lvremove", "vgreduce", "lvreduce"],
        &[],
        HarmCategory::Disk,
        "deletes a volume",
    ),
    HarmfulAct::new(
        &[
            "pvcreate",
            "vgcreate",
            "lvresize",
            "resize2fs",
            "tune2fs",
            "xfs_repair",
            "e2fsck",
            "fsck",
            "badblocks_w",
        ],
        &[],
        HarmCategory::Disk,
        "changes a volume or filesystem",
    )
    .unless(&["-n", "-N", "-V", "-l"]),
    HarmfulAct::new(&["badblocks"], &[], HarmCategory::Disk, "overwrites a disk")
        .with(&["-w"])
        .floor(),
    HarmfulAct::new(
        &["zpool"],
        &["destroy|labelclear|remove"],
        HarmCategory::Disk,
        "destroys a storage pool",
    ),
    HarmfulAct::new(
        &["zfs"],
        &["destroy|rollback"],
        HarmCategory::Disk,
        "destroys a filesystem",
    ),
    HarmfulAct::new(
        &["btrfs"],
        &["subvolume", "delete"],
        HarmCategory::Disk,
        "deletes a subvolume",
    ),
    HarmfulAct::new(&["mdadm"], &[], HarmCategory::Disk, "takes an array apart").with(&[
        "--zero-superblock",
        "--stop",
        "--fail",
        "--remove",
        "-S",
    ]),
    HarmfulAct::new(
        &["nvme"],
        &["format|sanitize|write-zeroes|delete-ns"],
        HarmCategory::Disk,
        "erases a disk",
    )
    .floor(),
    HarmfulAct::new(&["hdparm"], &[], HarmCategory::Disk, "erases a disk")
        .with(&[
            "--security-erase",
            "--security-erase-enhanced",
            "--yes-i-know-what-i-am-doing",
            "--trim-sector-ranges",
            "--make-bad-sector",
        ])
        .floor(),
    HarmfulAct::new(
        &["sg_format", "sg_sanitize", "nwipe", "dban"],
        &[],
        HarmCategory::Disk,
        "erases a disk",
    )
    .unless(&["--version", "-V", "--help"])
    .floor(),
    HarmfulAct::new(
        &["diskutil"],
        &["eraseDisk|eraseVolume|zeroDisk|secureErase|partitionDisk|reformat|randomDisk"],
        HarmCategory::Disk,
        "erases a disk",
    )
    .floor(),
    HarmfulAct::new(
        &["diskutil"],
        &["apfs", "deleteContainer|deleteVolume|eraseVolume"],
        HarmCategory::Disk,
        "erases a disk",
    )
    .floor(),
    HarmfulAct::new(
        &["parted"],
        &[],
        HarmCategory::Disk,
        "changes a partition table",
    )
    .with(&[
        "mklabel",
        "mkpart",
        "mkpartfs",
        "rm",
        "mktable",
        "resizepart",
        "resize",
        "move",
        "name",
        "set",
        "toggle",
        "disk_set",
        "disk_toggle",
        "rescue",
    ])
    .floor(),
    HarmfulAct::new(
        &["swapoff"],
        &[],
        HarmCategory::Disk,
        "takes memory away from the machine",
    )
    .with(&["-a"]),
    HarmfulAct::new(
        &["umount"],
        &[],
        HarmCategory::Disk,
        "takes mounted folders away",
    )
    .with(&["-a", "-l", "-f", "--all", "--lazy", "--force"]),
    HarmfulAct::new(
        &["format", "format.com", "diskpart"],
        &[],
        HarmCategory::Disk,
        "erases a disk",
    ),
    HarmfulAct::new(
        &["dmsetup"],
        &["remove|remove_all|wipe_table"],
        HarmCategory::Disk,
        "takes a volume away",
    ),
    HarmfulAct::new(
        &["losetup"],
        &[],
        HarmCategory::Disk,
        "detaches loop devices",
    )
    .with(&["-D"]),
    HarmfulAct::new(
        &["debugfs"],
        &[],
        HarmCategory::Disk,
        "writes straight into a filesystem",
    )
    .with(&["-w"]),
    HarmfulAct::new(
        &["grub-install", "grub-mkconfig", "update-grub", "bootctl"],
        &[],
        HarmCategory::Kernel,
        "changes what boots",
    )
    .unless(&["--version", "-v", "status", "list"]),
    HarmfulAct::new(
        &["flashrom", "flash_erase", "nandwrite", "mtd_debug"],
        &[],
        HarmCategory::Kernel,
        "writes firmware",
    )
    .unless(&["get-devices", "get-updates", "--version"]),
];

pub(super) fn judge(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = super::acts::look_up(ACTS, command);
    findings.extend(super::acts::look_up(OVERWRITES, command));
    let program = command.program();
    findings.extend(made_of_disks(command));
    // Told what to do without a person at the keyboard.
    let told = matches!(program, "fdisk" | "gdisk" | "cfdisk")
        && command.input.present
        && !command.short('l');
    let rewrites = program == "sfdisk"
        && ![
            "-l",
            "--list",
            "-d",
            "--dump",
            "-V",
            "-J",
            "--json",
            "-n",
            "--no-act",
            "--verify",
            "-s",
            "--show-size",
            "-g",
            "--show-geometry",
            "-F",
            "--list-free",
            "-v",
            "--version",
        ]
        .iter()
        .any(|flag| command.has_arg(flag));
    if (told || rewrites) && command.operands().any(|text| paths::is_disk(&text.s)) {
        findings.push(HarmFinding::floor(
            HarmCategory::Disk,
            "rewrites a partition table",
        ));
    }
    let each = command
        .args()
        .iter()
        .any(|arg| arg.taint.has(TaintSet::EVERY_DISK));
    let destroys = program.starts_with("mkfs")
        || matches!(
            program,
            "dd" | "shred" | "wipefs" | "blkdiscard" | "wipe" | "nwipe" | "sgdisk"
        );
    if each && destroys {
        findings.push(HarmFinding::floor(
            HarmCategory::Disk,
            "overwrites every disk",
        ));
    }
    if program == "mkfs"
        || program.starts_with("mkfs.")
        || program.starts_with("mke2fs")
        || matches!(
            program,
            "mkswap" | "mkntfs" | "mkdosfs" | "newfs" | "mkexfatfs" | "mkudffs"
        )
        || program.starts_with("newfs_")
    {
        let on_disk = command
            .operands()
            .any(|text| paths::is_disk(&text.s) || !text.is_known() || text.s.starts_with("/dev/"));
        let asks = command
            .args()
            .iter()
            .any(|arg| matches!(arg.s.as_str(), "--help" | "-V" | "--version" | "-n"));
        if on_disk && !asks {
            findings.push(HarmFinding::floor(HarmCategory::Disk, "formats a disk"));
        }
    }
    if matches!(
        program,
        "dd" | "gdd" | "dcfldd" | "ddrescue" | "dc3dd" | "pv_dd"
    ) {
        findings.extend(dd(command, judge));
    }
    if matches!(
        program,
        "cp" | "mv" | "tee" | "ddrescue" | "pv" | "cat" | "truncate" | "fallocate" | "qemu-img"
    ) {
        let onto = if program == "tee" {
            command
                .operands()
                .any(|text| paths::is_disk(&paths::absolute(&text.s, &judge.cwd)))
        } else {
            program != "cat"
                && command
                    .operands()
                    .last()
                    .is_some_and(|text| paths::is_disk(&paths::absolute(&text.s, &judge.cwd)))
        };
        if onto {
            findings.push(HarmFinding::floor(
                HarmCategory::Disk,
                "writes straight onto a disk",
            ));
        }
    }
    findings
}

/// Pools, arrays and groups of volumes begin with whatever was on their disks gone.
fn made_of_disks(command: &ReducedCommand) -> Option<HarmFinding> {
    let program = command.program();
    let makes = match program {
        "zpool" => command.operand(0) == "create",
        "mdadm" => command.long("--create") || command.has_arg("-C"),
        "pvcreate" | "vgcreate" => command.short('f') || command.long("--force"),
        "e2image" => command.short('a') && command.operands().count() > 1,
        _ => false,
    };
    let disks = || {
        command
            .operands()
            .skip(1)
            .any(|text| paths::is_disk(&text.s))
    };
    let trial = command.short('n') && program == "zpool";
    let one = program == "pvcreate" && command.operands().any(|text| paths::is_disk(&text.s));
    (makes && !trial && (disks() || one))
        .then(|| HarmFinding::floor(HarmCategory::Disk, "overwrites a disk with something new"))
}

fn dd(command: &ReducedCommand, judge: &ProgramJudge<'_>) -> Vec<HarmFinding> {
    let mut findings = Vec::new();
    for arg in command.args() {
        let written = ["of=", "wipe=", "hof=", "ofs="];
        if let Some(target) = written.iter().find_map(|name| arg.s.strip_prefix(name)) {
            let full = paths::absolute(target, &judge.cwd);
            if full == "/proc/sysrq-trigger" {
                findings.push(HarmFinding::floor(
                    HarmCategory::Power,
                    "orders the kernel to stop or reboot (sysrq)",
                ));
            } else if paths::is_disk(&full) {
                findings.push(HarmFinding::floor(
                    HarmCategory::Disk,
                    format!("writes straight onto a disk: {target}"),
                ));
            } else if let Some((category, reason)) =
                paths::protected(target, &judge.cwd, judge.context)
            {
                findings.push(HarmFinding::dangerous(category, reason));
            } else if command.args().iter().any(|arg| {
                matches!(
                    arg.s.as_str(),
                    "if=/dev/zero" | "if=/dev/urandom" | "if=/dev/random"
                )
            }) && matches!(
                paths::place(target, &judge.cwd, judge.context),
                paths::PathLoss::Elsewhere
                    | paths::PathLoss::InsideSystem
                    | paths::PathLoss::InsideHome
            ) && target.starts_with('/')
                && !matches!(
                    target,
                    "/dev/null" | "/dev/zero" | "/dev/full" | "/dev/stdout"
                )
                && !target.contains("swap")
            {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Destruction,
                    format!("overwrites a file: {target}"),
                ));
            } else if arg.s.contains(HOLE) && target.starts_with(HOLE) {
                findings.push(HarmFinding::dangerous(
                    HarmCategory::Disk,
                    "writes onto something that cannot be known beforehand",
                ));
            }
        }
        if let Some(source) = arg.s.strip_prefix("if=")
            && paths::is_disk(source)
        {
            findings.push(HarmFinding::dangerous(
                HarmCategory::SecretRead,
                format!("reads a whole disk: {source}"),
            ));
        }
    }
    findings
}
