//! Disks, partitions, filesystems, volumes.

use super::{Act, Judge};
use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::paths;
use crate::text::{HOLE, Taint};

const ACTS: &[Act] = &[
    Act::new(&["efibootmgr"], &[], Category::Kernel, "changes what boots").with(&[
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
    Act::new(
        &["fwupdmgr"],
        &[
            "update|upgrade|install|install-blob|downgrade|reinstall|switch-branch|set-bios-setting|activate|unlock|clear-results|modify-config|block-firmware|disable-remote",
        ],
        Category::Kernel,
        "writes firmware",
    ),
    Act::new(&["wipefs"], &[], Category::Disk, "erases a filesystem")
        .with(&["-a", "--all", "-o", "--offset"])
        .unless(&["-n", "--no-act"])
        .floor(),
    Act::new(&["blkdiscard"], &[], Category::Disk, "erases a disk").floor(),
    Act::new(&["sgdisk"], &[], Category::Disk, "erases a partition table")
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
    Act::new(
        &["sfdisk"],
        &[],
        Category::Disk,
        "changes a partition table",
    )
    .unless(&["-l", "--list", "-d", "--dump", "-V", "-J", "--json"]),
    Act::new(
        &["fdisk", "gdisk", "cfdisk", "cgdisk"],
        &[],
        Category::Disk,
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
    Act::new(
        &["cryptsetup"],
        &["luksFormat|luksErase|erase|luksKillSlot|luksRemoveKey|reencrypt"],
        Category::Disk,
        "makes a disk unreadable",
    )
    .floor(),
    Act::new(
        &["pvremove", "vgremove", "lvremove", "vgreduce", "lvreduce"],
        &[],
        Category::Disk,
        "deletes a volume",
    ),
    Act::new(
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
        Category::Disk,
        "changes a volume or filesystem",
    )
    .unless(&["-n", "-N", "-V", "-l"]),
    Act::new(&["badblocks"], &[], Category::Disk, "overwrites a disk")
        .with(&["-w"])
        .floor(),
    Act::new(
        &["zpool"],
        &["destroy|labelclear|remove"],
        Category::Disk,
        "destroys a storage pool",
    ),
    Act::new(
        &["zfs"],
        &["destroy|rollback"],
        Category::Disk,
        "destroys a filesystem",
    ),
    Act::new(
        &["btrfs"],
        &["subvolume", "delete"],
        Category::Disk,
        "deletes a subvolume",
    ),
    Act::new(&["mdadm"], &[], Category::Disk, "takes an array apart").with(&[
        "--zero-superblock",
        "--stop",
        "--fail",
        "--remove",
        "-S",
    ]),
    Act::new(
        &["nvme"],
        &["format|sanitize|write-zeroes|delete-ns"],
        Category::Disk,
        "erases a disk",
    )
    .floor(),
    Act::new(&["hdparm"], &[], Category::Disk, "erases a disk")
        .with(&[
            "--security-erase",
            "--security-erase-enhanced",
            "--yes-i-know-what-i-am-doing",
            "--trim-sector-ranges",
            "--make-bad-sector",
        ])
        .floor(),
    Act::new(
        &["sg_format", "sg_sanitize", "nwipe", "dban"],
        &[],
        Category::Disk,
        "erases a disk",
    )
    .unless(&["--version", "-V", "--help"])
    .floor(),
    Act::new(
        &["diskutil"],
        &["eraseDisk|eraseVolume|zeroDisk|secureErase|partitionDisk|reformat|randomDisk"],
        Category::Disk,
        "erases a disk",
    )
    .floor(),
    Act::new(
        &["diskutil"],
        &["apfs", "deleteContainer|deleteVolume|eraseVolume"],
        Category::Disk,
        "erases a disk",
    )
    .floor(),
    Act::new(
        &["parted"],
        &[],
        Category::Disk,
        "changes a partition table",
    )
    .with(&["mklabel", "mkpart", "rm", "mktable", "resizepart"])
    .floor(),
    Act::new(
        &["swapoff"],
        &[],
        Category::Disk,
        "takes memory away from the machine",
    )
    .with(&["-a"]),
    Act::new(
        &["umount"],
        &[],
        Category::Disk,
        "takes mounted folders away",
    )
    .with(&["-a", "-l", "-f", "--all", "--lazy", "--force"]),
    Act::new(
        &["format", "format.com", "diskpart"],
        &[],
        Category::Disk,
        "erases a disk",
    ),
    Act::new(
        &["dmsetup"],
        &["remove|remove_all|wipe_table"],
        Category::Disk,
        "takes a volume away",
    ),
    Act::new(&["losetup"], &[], Category::Disk, "detaches loop devices").with(&["-D"]),
    Act::new(
        &["debugfs"],
        &[],
        Category::Disk,
        "writes straight into a filesystem",
    )
    .with(&["-w"]),
    Act::new(
        &["grub-install", "grub-mkconfig", "update-grub", "bootctl"],
        &[],
        Category::Kernel,
        "changes what boots",
    )
    .unless(&["--version", "-v", "status", "list"]),
    Act::new(
        &["flashrom", "flash_erase", "nandwrite", "mtd_debug"],
        &[],
        Category::Kernel,
        "writes firmware",
    )
    .unless(&["get-devices", "get-updates", "--version"]),
];

pub(super) fn judge(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let mut findings = super::acts::look_up(ACTS, command);
    let program = command.program();
    // Told what to do without a person at the keyboard.
    let told = matches!(program, "fdisk" | "gdisk" | "cfdisk")
        && command.input.present
        && !command.short('l');
    let rewrites = program == "sfdisk"
        && ![
            "-l", "--list", "-d", "--dump", "-V", "-J", "--json", "-n", "--no-act", "--verify",
        ]
        .iter()
        .any(|flag| command.has_arg(flag));
    if (told || rewrites) && command.operands().any(|text| paths::is_disk(&text.s)) {
        findings.push(Finding::floor(Category::Disk, "rewrites a partition table"));
    }
    let each = command
        .args()
        .iter()
        .any(|arg| arg.taint.has(Taint::EVERY_DISK));
    let destroys = program.starts_with("mkfs")
        || matches!(
            program,
            "dd" | "shred" | "wipefs" | "blkdiscard" | "wipe" | "nwipe" | "sgdisk"
        );
    if each && destroys {
        findings.push(Finding::floor(Category::Disk, "overwrites every disk"));
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
            findings.push(Finding::floor(Category::Disk, "formats a disk"));
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
            findings.push(Finding::floor(
                Category::Disk,
                "writes straight onto a disk",
            ));
        }
    }
    findings
}

fn dd(command: &Effective, judge: &Judge<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for arg in command.args() {
        if let Some(target) = arg.s.strip_prefix("of=") {
            let full = paths::absolute(target, &judge.cwd);
            if paths::is_disk(&full) {
                findings.push(Finding::floor(
                    Category::Disk,
                    format!("writes straight onto a disk: {target}"),
                ));
            } else if let Some((category, reason)) =
                paths::protected(target, &judge.cwd, judge.context)
            {
                findings.push(Finding::dangerous(category, reason));
            } else if command.args().iter().any(|arg| {
                matches!(
                    arg.s.as_str(),
                    "if=/dev/zero" | "if=/dev/urandom" | "if=/dev/random"
                )
            }) && matches!(
                paths::place(target, &judge.cwd, judge.context),
                paths::Place::Elsewhere | paths::Place::InsideSystem | paths::Place::InsideHome
            ) && target.starts_with('/')
                && !matches!(
                    target,
                    "/dev/null" | "/dev/zero" | "/dev/full" | "/dev/stdout"
                )
                && !target.contains("swap")
            {
                findings.push(Finding::dangerous(
                    Category::Destruction,
                    format!("overwrites a file: {target}"),
                ));
            } else if arg.s.contains(HOLE) && target.starts_with(HOLE) {
                findings.push(Finding::dangerous(
                    Category::Disk,
                    "writes onto something that cannot be known beforehand",
                ));
            }
        }
        if let Some(source) = arg.s.strip_prefix("if=")
            && paths::is_disk(source)
        {
            findings.push(Finding::dangerous(
                Category::SecretRead,
                format!("reads a whole disk: {source}"),
            ));
        }
    }
    findings
}
