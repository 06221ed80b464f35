//! Ways out, each tried.

use hermetic_sandbox::Backend;
use hermetic_sandbox::conformance::{DOORS, assert_closed};
use hermetic_warden::protocol::RunRequest;

use crate::lab::{sh, stories};

/// Tries to write the program behind a process that runs it, then the file itself when that has ended.
const AT_THE_PROGRAM: &str = r#"
import glob, os, signal
def tried(what, attempt):
    try: attempt(); print(what)
    except OSError: pass
def write(path): os.write(os.open(path, os.O_RDWR), b"x")
def runs(path):
    try: return b"connect\0--wait" in open(path, "rb").read()
    except OSError: return False
found = []
while not found: found = [path for path in glob.glob("/proc/[0-9]*/cmdline") if runs(path)]
folder = os.path.dirname(found[0])
held = os.open(folder + "/exe", os.O_RDONLY)
print(os.read(held, 4)[1:].decode())
tried("WROTE", lambda: write(folder + "/exe"))
os.kill(int(os.path.basename(folder)), signal.SIGKILL)
while runs(found[0]): pass
mine = f"/proc/self/fd/{held}"
tried("WROTE", lambda: write(mine))
tried("CUT", lambda: os.truncate(mine, 0))
tried("LINKED", lambda: os.link(mine, "/workspace/program", follow_symlinks=True))
"#;

stories! {
    async fn no_capability_is_left_in_any_set(lab: &Lab) {
        let said = lab.run("grep -E '^(Cap|NoNewPrivs|Seccomp):?' /proc/self/status | grep -v Seccomp_f | awk '{print $2}' | sort -u | tr '\\n' ' '; cat /proc/self/status | grep -c 'Seccomp:.2'").await;
        assert_eq!(said.text, "0000000000000000 1 2 1\n");
    }

    async fn odd_system_calls_and_sockets_are_refused(lab: &Lab) {
        assert_closed(&lab.python(DOORS).await.text);
    }

    async fn a_terminal_cannot_be_typed_into(lab: &Lab) {
        let said = lab.python(r#"
import fcntl, os
m, s = os.openpty()
for request in (0x5412, 0x541C, 0x5423):
    try: fcntl.ioctl(s, request, b"x"); print("TYPED")
    except OSError as e: print(e.errno)
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
ioctl = {"x86_64": 16, "aarch64": 29}[platform.machine()]
print(libc.syscall(ioctl, s, ctypes.c_ulong(0x1_0000_5412), b"x"), ctypes.get_errno())
"#).await;
        assert_eq!(said.text, "1\n1\n1\n-1 1\n");
    }

    async fn the_system_cannot_be_written(lab: &Lab) {
        let said = lab.run(r#"
for f in /x /usr/x /etc/x /etc/passwd /bin/x /dev/x /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/irq/default_smp_affinity /sys/x /home/x /var/x; do
  if ( : > $f ) 2>/dev/null; then [ $f = /proc/sysrq-trigger ] && [ -c $f ] && continue; echo "WROTE $f"; fi
done
chmod 777 /etc /usr / 2>/dev/null && echo CHANGED
mknod /tmp/disk b 254 0 2>/dev/null && echo DEVICE
mknod /workspace/mem c 1 1 2>/dev/null && echo DEVICE
rm -rf /usr/bin/true 2>/dev/null; [ -x /usr/bin/true ] && echo there
"#).await;
        assert_eq!(said.text, "there\n");
    }

    async fn the_kernels_insides_are_hidden(lab: &Lab) {
        let said = lab.run(r#"
for f in cmdline config.gz interrupts iomem kallsyms kcore keys key-users kmsg modules partitions sched_debug slabinfo softirqs timer_list vmallocinfo kpagecount mtrr latency_stats; do
  [ -e /proc/$f ] && head -c 100 /proc/$f 2>/dev/null | grep -q . && echo "READ $f"
done
for d in acpi asound scsi driver; do ls /proc/$d 2>/dev/null | grep . && echo "LISTED $d"; done
ls /sys; ls /sys/fs 2>/dev/null; cat /proc/1/environ /proc/1/maps /proc/1/mem 2>/dev/null | head -c 10
ls -l /proc/1/fd /proc/1/root/ 2>/dev/null | grep -v total
dmesg 2>/dev/null | head -1
echo done
"#).await;
        assert_eq!(said.text, "done\n");
    }

    async fn setuid_programs_give_nothing(lab: &Lab) {
        let said = lab.run("cp /bin/sh /tmp/s && chmod 4755 /tmp/s && /tmp/s -p -c 'id -u'; (su root -c id || sudo -n id || mount -t tmpfs none /tmp || unshare -Ur id || nsenter -t 1 -m id || chroot / id) >/dev/null 2>&1 && echo OUT; grep -c nosuid /proc/self/mountinfo >/dev/null && awk '{print $6}' /proc/self/mountinfo | grep -v nosuid | sort -u").await;
        assert_eq!(said.text, "1000\nrw,relatime\n");
    }

    async fn the_wardens_program_cannot_be_overwritten(lab: &Lab) {
        let said = lab.run("(cat /bin/true > /proc/1/exe) 2>/dev/null && echo WROTE; (exec 3<>/proc/1/exe) 2>/dev/null && echo OPENED; kill -9 1; kill -STOP 1; echo alive").await;
        assert_eq!(said.text, "alive\n");
    }

    /// It can start that program itself, as its own user and in a process that it can look into.
    async fn the_wardens_program_cannot_be_overwritten_by_way_of_its_own_process(lab: &Lab) {
        let spec = lab.spec();
        let warden = lab.create(&spec).await.unwrap();
        let again = RunRequest::new(["/proc/self/exe", "connect", "--wait", "60", "/tmp/nobody"]);
        let _again = warden.run(again).await.unwrap();
        let said = sh(&warden, &format!("exec python3 - <<'PROBE'\n{AT_THE_PROGRAM}\nPROBE")).await;
        assert_eq!(said.text, "ELF\n");
        lab.native.destroy(&spec.id).await.unwrap();
        assert_eq!(lab.run("echo as before").await.text, "as before\n");
    }

    async fn secure_bits_are_locked_and_dumps_are_off(lab: &Lab) {
        let said = lab.python(r#"
import ctypes, resource
libc = ctypes.CDLL(None, use_errno=True)
print(hex(libc.prctl(27, 0, 0, 0, 0)), libc.prctl(28, 0, 0, 0, 0), ctypes.get_errno(), libc.prctl(39, 0, 0, 0, 0))
print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_RTPRIO))
"#).await;
        assert_eq!(said.text, "0xef -1 1 1\n(0, 0) (0, 0)\n");
    }
}
