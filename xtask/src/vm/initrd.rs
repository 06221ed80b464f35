//! The first program of a machine, in place of the distribution's.
//!
//! A distribution looks for its hardware twice, before and after the disk is there. In emulation that is half
//! of a boot, and a boot is most of a power cut. This machine's hardware is known, so it is named. What comes
//! afterwards is the release's own: systemd, its managers of users and sessions, ssh.

/// Kept short: it runs before anything could say what went wrong.
pub(crate) const INIT: &str = r#"#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /proc /sys /dev /run /root
mount -t devtmpfs -o mode=755 devices /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755,nosuid,nodev run /run
modprobe -a -q virtio_pci virtio_blk ext4
mount -t ext4 -o rw /dev/vda /root

mkdir -p /run/systemd/system/sysinit.target.wants
cd /run/systemd/system
for unit in systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket \
    systemd-udev-trigger.service systemd-networkd.service systemd-networkd.socket \
    systemd-networkd-varlink.socket systemd-network-generator.service \
    systemd-networkd-persistent-storage.service systemd-resolved.service \
    modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service \
    modprobe@efi_pstore.service modprobe@fuse.service modprobe@loop.service \
    kmod-static-nodes.service systemd-sysusers.service systemd-hwdb-update.service \
    ldconfig.service sys-kernel-config.mount sys-fs-fuse-connections.mount \
    systemd-remount-fs.service systemd-random-seed.service systemd-modules-load.service \
    systemd-journal-catalog-update.service systemd-journal-flush.service \
    systemd-machine-id-commit.service systemd-update-done.service systemd-boot-random-seed.service \
    systemd-tpm2-setup-early.service systemd-tpm2-setup.service systemd-pcrmachine.service \
    systemd-pcrphase-sysinit.service systemd-pcrphase.service systemd-tmpfiles-clean.timer \
    proc-sys-fs-binfmt_misc.automount dev-mqueue.mount; do
    ln -s /dev/null $unit
done
cat >network.service <<'END'
[Unit]
DefaultDependencies=no
Before=sysinit.target network.target
Wants=network.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'modprobe virtio_net; ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0'
END
ln -s ../network.service sysinit.target.wants/network.service
cd /
for place in dev run proc sys; do mount -o move /$place /root/$place; done
exec run-init /root /sbin/init </root/dev/console >/root/dev/console 2>&1
"#;

/// The distribution's archive with our first program in place of its own: of two files with one name the
/// kernel keeps the later.
pub(crate) fn with_our_init(mut archive: Vec<u8>) -> Vec<u8> {
    pad(&mut archive);
    archive.extend(entry("init", 0o100_755, INIT.as_bytes()));
    archive.extend(entry("TRAILER!!!", 0, b""));
    archive
}

/// One file in the format "newc", which the kernel reads.
fn entry(name: &str, mode: usize, data: &[u8]) -> Vec<u8> {
    // Inode, mode, owner, group, links, time, size, four of devices, length of the name, checksum.
    let fields = [
        0,
        mode,
        0,
        0,
        1,
        0,
        data.len(),
        0,
        0,
        0,
        0,
        name.len() + 1,
        0,
    ];
    let mut entry = b"070701".to_vec();
    for field in fields {
        entry.extend(format!("{field:08x}").bytes());
    }
    entry.extend(name.bytes());
    entry.push(0);
    pad(&mut entry);
    entry.extend(data);
    pad(&mut entry);
    entry
}

/// Each part begins at a multiple of four.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_reads_as_the_format_says() {
        let entry = entry("init", 0o100_755, b"hello");
        assert!(entry.starts_with(b"07070100000000000081ed"));
        // 110 bytes of header and the name with its end make 115, padded to 116.
        assert_eq!(&entry[110..116], b"init\0\0");
        assert_eq!(&entry[116..], b"hello\0\0\0");
    }

    #[test]
    fn ours_begins_where_the_kernel_looks_for_it() {
        let whole = with_our_init(vec![1; 5]);
        assert_eq!(&whole[..14], b"\x01\x01\x01\x01\x01\0\0\x00070701");
    }
}
