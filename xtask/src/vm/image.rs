//! A disk with Debian or Ubuntu on it, made once and never written to afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use super::initrd;
use crate::dist::DistTarget;
use crate::failure::ChoreFailure;
use crate::{machine, program, say};

/// The releases that people run, each with its own kernel and systemd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OsRelease {
    /// Linux 6.1, systemd 252.
    Debian12,
    /// Linux 6.12, systemd 257.
    Debian13,
    /// Linux 5.15, systemd 249: the oldest that we say we run on.
    Ubuntu2204,
    /// Debian 13 on the other kind of processor.
    Debian13Arm64,
}

/// Files under `target/vm`, named after what they were made from.
#[derive(Debug)]
pub(crate) struct VmImage {
    folder: PathBuf,
}

const PACKAGES: &str = "systemd-sysv,dbus,dbus-user-session,libpam-systemd,openssh-server,iproute2,\
    procps,udev,python3,git,curl,ca-certificates,sqlite3";

/// What nobody needs in such a machine, or what would start by itself in the middle of a story. A boot
/// is most of a power cut's time, so what takes long at boot and serves nobody is here too.
const MASKED: &str = "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer motd-news.timer logrotate.timer \
    systemd-networkd-wait-online.service systemd-timesyncd.service systemd-pstore.service \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-binfmt.service \
    getty@tty1.service serial-getty@ttyS0.service \
    sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount";

/// Before the packages: a small initial RAM disk with what this one machine has.
const BEFORE: &str = r#"
    mkdir -p "$1/etc/initramfs-tools/conf.d"
    echo MODULES=list >"$1/etc/initramfs-tools/conf.d/machine"
    printf 'virtio_pci\nvirtio_blk\next4\n' >"$1/etc/initramfs-tools/modules"
"#;

/// After the packages. `KEY` and `MASKED` are put in.
const AFTER: &str = r#"
    echo machine >"$1/etc/hostname"
    echo '127.0.0.1 localhost machine' >"$1/etc/hosts"
    echo '/dev/vda / ext4 defaults,errors=remount-ro 0 1' >"$1/etc/fstab"
    # ssh makes a session for every command; nobody is to be turned away for being quick.
    printf 'UseDNS no\nMaxStartups 50\nMaxSessions 50\n' >"$1/etc/ssh/sshd_config.d/machine.conf"
    # After a power cut a journal on the disk is read through and set aside, at every boot a longer one.
    mkdir -p "$1/etc/systemd/journald.conf.d"
    printf '[Journal]\nStorage=volatile\n' >"$1/etc/systemd/journald.conf.d/machine.conf"
    chroot "$1" systemctl mask MASKED
    chroot "$1" useradd -m -s /bin/bash -u 1000 person
    mkdir -p "$1/var/lib/systemd/linger"
    touch "$1/var/lib/systemd/linger/person"
    for home in root home/person; do
        mkdir -p -m 700 "$1/$home/.ssh"
        echo 'KEY' >"$1/$home/.ssh/authorized_keys"
    done
    chroot "$1" chown -R person:person /home/person/.ssh
"#;

impl OsRelease {
    pub(crate) const ALL: [Self; 4] = [
        Self::Debian12,
        Self::Debian13,
        Self::Ubuntu2204,
        Self::Debian13Arm64,
    ];

    /// As the command line and the table name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Debian12 => "debian-12",
            Self::Debian13 => "debian-13",
            Self::Ubuntu2204 => "ubuntu-22.04",
            Self::Debian13Arm64 => "debian-13-arm64",
        }
    }

    pub(crate) fn target(self) -> DistTarget {
        match self {
            Self::Debian12 | Self::Debian13 | Self::Ubuntu2204 => DistTarget::X86_64,
            Self::Debian13Arm64 => DistTarget::Aarch64,
        }
    }

    fn suite(self) -> &'static str {
        match self {
            Self::Debian12 => "bookworm",
            Self::Debian13 | Self::Debian13Arm64 => "trixie",
            Self::Ubuntu2204 => "jammy",
        }
    }

    fn kernel_package(self) -> &'static str {
        match self {
            Self::Debian12 | Self::Debian13 => "linux-image-cloud-amd64",
            Self::Debian13Arm64 => "linux-image-cloud-arm64",
            Self::Ubuntu2204 => "linux-image-virtual,initramfs-tools",
        }
    }

    /// The lines of `sources.list`, signed by the distribution's own key.
    fn archive(self, folder: &Path) -> Result<String, ChoreFailure> {
        if self != Self::Ubuntu2204 {
            return Ok("http://deb.debian.org/debian".to_owned());
        }
        ubuntu_archive(folder, self.suite())
    }
}

impl FromStr for OsRelease {
    type Err = ChoreFailure;

    fn from_str(text: &str) -> Result<Self, ChoreFailure> {
        let known = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|release| release.name() == text)
            .ok_or_else(|| ChoreFailure::Usage(format!("no machine {text:?}; known: {known}")))
    }
}

impl VmImage {
    /// The image, from an earlier run if it was made the same way.
    pub(crate) fn provide(release: OsRelease) -> Result<Self, ChoreFailure> {
        let key = key()?;
        let public = read(&key.with_extension("pub"))?;
        let after = AFTER
            .replace("MASKED", MASKED)
            .replace("KEY", public.trim());
        let packages = format!("{},{PACKAGES}", release.kernel_package());
        let target = release.target();
        let recipe = [release.suite(), &packages, BEFORE, &after, initrd::INIT].join("\n");
        let suite = match target.is_host() {
            true => release.suite().to_owned(),
            false => format!("{}-{}", release.suite(), target.debian()),
        };
        let name = format!("{suite}-{:016x}", fingerprint(&recipe));
        let folder = folder()?.join(name);
        if folder.join("disk").is_file() {
            say::note(&format!("made before: {}", folder.display()));
            return Ok(Self { folder });
        }
        if !machine::is_root() {
            return Err(ChoreFailure::Lacking {
                what: "only root can make a disk with other people's files on it".to_owned(),
                remedy: "make it once with `sudo cargo xtask vm --only doctor`".to_owned(),
            });
        }
        if !machine::runs(target) {
            return Err(ChoreFailure::Lacking {
                what: format!("programs for {} do not run here", target.name()),
                remedy: machine::RUNNING_OTHERS.to_owned(),
            });
        }
        // Under another name until it is whole.
        let begun = folder.with_extension("begun");
        remove(&begun)?;
        fs::create_dir_all(&begun)
            .map_err(ChoreFailure::file(format!("make {}", begun.display())))?;
        make(release, &begun, &packages, &after)?;
        fs::rename(&begun, &folder).map_err(ChoreFailure::file("keep the image"))?;
        Ok(Self { folder })
    }

    pub(crate) fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    pub(crate) fn kernel(&self) -> PathBuf {
        self.folder.join("kernel")
    }

    pub(crate) fn initrd(&self) -> PathBuf {
        self.folder.join("initrd")
    }
}

/// Where machines are kept.
pub(crate) fn folder() -> Result<PathBuf, ChoreFailure> {
    let folder = machine::target().join("vm");
    fs::create_dir_all(&folder)
        .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
    Ok(folder)
}

/// The key that opens every machine, made here and never leaving this folder.
pub(crate) fn key() -> Result<PathBuf, ChoreFailure> {
    let key = folder()?.join("key");
    if !key.is_file() {
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-C", "machine", "-f"]);
        program::show(make.arg(&key))?;
    }
    Ok(key)
}

fn make(
    release: OsRelease,
    folder: &Path,
    packages: &str,
    after: &str,
) -> Result<(), ChoreFailure> {
    let root = folder.join("root");
    let mut debootstrap = Command::new("mmdebstrap");
    debootstrap.args(["--variant=minbase", "--mode=root", "--format=directory"]);
    debootstrap.args([
        "--aptopt=Acquire::Languages \"none\"",
        "--aptopt=Acquire::Retries \"3\"",
    ]);
    debootstrap.arg("--aptopt=APT::Install-Recommends \"false\"");
    for left_out in ["doc", "man", "locale", "info"] {
        debootstrap.arg(format!("--dpkgopt=path-exclude=/usr/share/{left_out}/*"));
    }
    debootstrap.arg(format!("--include={packages}"));
    debootstrap.arg(format!("--architectures={}", release.target().debian()));
    debootstrap.arg(format!("--setup-hook=set -e{BEFORE}"));
    debootstrap.arg(format!("--customize-hook=set -e{after}"));
    debootstrap.arg(release.suite()).arg(&root);
    program::show(debootstrap.arg(release.archive(folder)?))?;
    let boot = root.join("boot");
    let kernel = entry(&boot, "vmlinuz-")?;
    fs::copy(&kernel, folder.join("kernel"))
        .map_err(ChoreFailure::file(format!("copy {}", kernel.display())))?;
    let found = entry(&boot, "initrd.img-")?;
    let archive =
        fs::read(&found).map_err(ChoreFailure::file(format!("read {}", found.display())))?;
    fs::write(folder.join("initrd"), initrd::with_our_init(archive))
        .map_err(ChoreFailure::file("write the first disk"))?;
    remove(&root.join("var/cache/apt"))?;
    remove(&root.join("var/lib/apt/lists"))?;
    let mut mkfs = Command::new(machine::find("mkfs.ext4").unwrap_or_else(|| "mkfs.ext4".into()));
    mkfs.args(["-q", "-L", "root", "-d"]).arg(&root);
    program::show(mkfs.arg(folder.join("disk")).arg("6G"))?;
    remove(&root)
}

/// The lines of `sources.list` for a release of Ubuntu's; its key comes into the folder.
pub(crate) fn ubuntu_archive(folder: &Path, suite: &str) -> Result<String, ChoreFailure> {
    let key = ubuntu_key(folder)?;
    let archive = "http://archive.ubuntu.com/ubuntu";
    let line = |suite: &str| {
        let key = key.display();
        format!("deb [signed-by={key}] {archive} {suite} main universe")
    };
    let updates = format!("{suite}-updates");
    Ok([suite, &updates].map(line).join("\n"))
}

/// Ubuntu's public keys, which Debian has in a package and signs.
fn ubuntu_key(folder: &Path) -> Result<PathBuf, ChoreFailure> {
    let keys = folder.join("keys");
    let mut extract = Command::new("mmdebstrap");
    extract.args(["--variant=extract", "--mode=root", "--format=directory"]);
    extract
        .args(["--include=ubuntu-keyring", "trixie"])
        .arg(&keys);
    program::show(extract.arg("http://deb.debian.org/debian"))?;
    let key = folder.join("ubuntu-archive.gpg");
    let found = keys.join("usr/share/keyrings/ubuntu-archive-keyring.gpg");
    fs::copy(&found, &key).map_err(ChoreFailure::file(format!("copy {}", found.display())))?;
    remove(&keys)?;
    Ok(key)
}

fn entry(folder: &Path, beginning: &str) -> Result<PathBuf, ChoreFailure> {
    let entries = fs::read_dir(folder).map_err(ChoreFailure::file("look for a kernel"))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(beginning))
        })
        .ok_or_else(|| ChoreFailure::Lacking {
            what: format!("no {beginning}* was installed"),
            remedy: "the list of packages no longer fits this release".to_owned(),
        })
}

fn remove(folder: &Path) -> Result<(), ChoreFailure> {
    match fs::remove_dir_all(folder) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(ChoreFailure::file(format!(
            "remove {}",
            folder.display()
        ))(why)),
        _ => Ok(()),
    }
}

fn read(file: &Path) -> Result<String, ChoreFailure> {
    fs::read_to_string(file).map_err(ChoreFailure::file(format!("read {}", file.display())))
}

/// FNV-1a: the same in every build, which the standard library's hashes do not promise.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_recipe_is_another_image() {
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint("a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(fingerprint("bookworm"), fingerprint("trixie"));
    }

    #[test]
    fn a_release_nobody_knows_is_refused() {
        assert_eq!(
            "debian-13".parse::<OsRelease>().ok(),
            Some(OsRelease::Debian13)
        );
        assert!("debian-11".parse::<OsRelease>().is_err());
    }
}
