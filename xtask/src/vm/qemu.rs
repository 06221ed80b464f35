//! The emulator and the hardware that it shows to a machine.

use std::path::PathBuf;
use std::process::{Child, Command};

use super::children::{spawn, with_us};
use crate::dist::DistTarget;
use crate::failure::ChoreFailure;

/// What a machine is booted from, the same at every boot.
#[derive(Debug)]
pub(crate) struct VmHardware {
    pub(crate) target: DistTarget,
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
    /// The disk with our programs.
    pub(crate) archive: PathBuf,
    /// Where the machine's own disk is, and where its console is written to.
    pub(crate) folder: PathBuf,
}

/// Of the one kind, all that QEMU has, without
/// - `cmpxchg16b`, after which QEMU 7.2 leaves wrong flags behind, and newer kernels allocate with it;
/// - `erms`, for which kernels and the C library copy and clear memory byte by byte, one emulated step each,
///   where they otherwise take eight bytes;
/// - `avx` and what builds on it, slower in emulation than what it replaces;
/// - `smap` and `smep`, which make each copy from a user's memory two changes of the processor's state.
const PROCESSOR: &str = "max,la57=off,cx16=off,erms=off,avx=off,avx2=off,f16c=off,fma=off,\
    vaes=off,vpclmulqdq=off,smap=off,smep=off";

/// Of the other kind, one that is sold and has large atomic operations; of `max` most time would go into
/// the signatures of pointers.
const ARM_PROCESSOR: &str = "neoverse-n1";

/// Words for the kernel, after its disk and its console.
const KERNEL_WORDS: [&str; 3] = [
    // `panic` and `-no-reboot` make a kernel that is lost an end of QEMU, which is seen at once.
    // On a busy machine the timer looks dead to a kernel that waits ten ticks for it.
    "panic=1 no_timer_check",
    "systemd.unified_cgroup_hierarchy=1",
    // What costs an emulator much and is not what is tried here.
    "mitigations=off random.trust_cpu=on nokaslr audit=0",
];

impl VmHardware {
    /// Power on: ssh is forwarded from this port of loopback, and nothing else reaches the machine.
    pub(crate) fn start(&self, port: u16) -> Result<Child, ChoreFailure> {
        let mut qemu = with_us("setsid");
        // A session of its own: where the scheduler shares by session, a build beside it does not starve it.
        qemu.arg(format!("qemu-system-{}", self.target.name()));
        // One processor: of two emulated ones, each waits for the other whenever this machine is busy.
        qemu.args(["-accel", "tcg", "-smp", "1", "-m", "2048"]);
        let console = match self.target {
            DistTarget::X86_64 => {
                qemu.args(["-cpu", PROCESSOR]);
                "ttyS0"
            }
            DistTarget::Aarch64 => {
                qemu.args(["-machine", "virt", "-cpu", ARM_PROCESSOR]);
                "ttyAMA0"
            }
        };
        qemu.args(["-nodefaults", "-no-user-config", "-no-reboot"]);
        qemu.args(["-display", "none", "-monitor", "none"]);
        qemu.arg("-kernel").arg(&self.kernel);
        qemu.arg("-initrd").arg(&self.initrd);
        // Nobody logs in there, and the device is announced by nobody whose start would be waited for.
        let unused = format!("systemd.mask=serial-getty@{console}.service");
        let place = format!("root=/dev/vda rw console={console} quiet {unused}");
        qemu.args(["-append", &format!("{place} {}", KERNEL_WORDS.join(" "))]);
        self.add_devices(&mut qemu, port);
        spawn(&mut qemu)
    }

    fn add_devices(&self, qemu: &mut Command, port: u16) {
        let disk = self.folder.join("disk");
        let disk = format!("file={},if=virtio,format=raw", disk.display());
        let archive = self.archive.display();
        let archive = format!("file={archive},if=virtio,format=raw,readonly=on");
        qemu.args(["-drive", &disk, "-drive", &archive]);
        let network = format!("user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22");
        qemu.args(["-netdev", &network]);
        qemu.args(["-device", "virtio-net-pci,netdev=net,romfile="]);
        qemu.args(["-device", "virtio-rng-pci"]);
        let console = format!("file:{}", self.folder.join("console").display());
        qemu.args(["-serial", &console]);
    }
}
