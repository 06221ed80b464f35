//! Ways out, each tried.

use crate::lab::stories;

/// Prints the error of each call, by name.
const CALLS: &str = r#"
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    print(name, errno.errorcode.get(ctypes.get_errno(), "OK") if r < 0 else "OK")
"#;

stories! {
    async fn no_capability_is_left_in_any_set(lab: &Lab) {
        let said = lab.run("grep -E '^(Cap|NoNewPrivs|Seccomp):?' /proc/self/status | grep -v Seccomp_f | awk '{print $2}' | sort -u | tr '\\n' ' '; cat /proc/self/status | grep -c 'Seccomp:.2'").await;
        assert_eq!(said.text, "0000000000000000 1 2 1\n");
    }

    async fn odd_system_calls_are_refused(lab: &Lab) {
        let said = lab.python(&format!(r#"{CALLS}
import struct
assert platform.machine() == "x86_64"
for name, number, *args in [
    ("io_uring_setup", 425, 1, 0), ("userfaultfd", 323, 0), ("keyctl", 250, 0, 0), ("add_key", 248, 0, 0, 0, 0, 0),
    ("request_key", 249, 0, 0, 0, 0), ("bpf", 321, 0, 0, 0), ("perf_event_open", 298, 0, 0, 0, 0, 0),
    ("ptrace", 101, 16, 1, 0, 0), ("process_vm_readv", 310, 1, 0, 0, 0, 0, 0), ("pidfd_getfd", 438, 0, 0, 0), ("kcmp", 312, 1, 1, 0, 0, 0),
    ("mount", 165, 0, 0, 0, 0, 0), ("umount2", 166, 0, 0), ("pivot_root", 155, 0, 0), ("chroot", 161, 0), ("unshare", 272, 0x10000000),
    ("setns", 308, 0, 0), ("open_by_handle_at", 304, 0, 0, 0), ("name_to_handle_at", 303, 0, 0, 0, 0, 0), ("fsopen", 430, 0, 0),
    ("open_tree", 428, 0, 0, 0), ("move_mount", 429, 0, 0, 0, 0, 0), ("mount_setattr", 442, 0, 0, 0, 0, 0), ("quotactl", 179, 0, 0, 0, 0),
    ("swapon", 167, 0, 0), ("reboot", 169, 0, 0, 0, 0), ("kexec_load", 246, 0, 0, 0, 0), ("init_module", 175, 0, 0, 0), ("iopl", 172, 3),
    ("acct", 163, 0), ("syslog", 103, 3, 0, 0), ("memfd_secret", 447, 0), ("modify_ldt", 154, 0, 0, 0), ("uselib", 134, 0),
    ("lookup_dcookie", 212, 0, 0, 0), ("fanotify_init", 300, 0, 0), ("settimeofday", 164, 0, 0), ("sethostname", 170, 0, 0), ("vhangup", 153),
    ("personality", 135, 0x0400000), ("prlimit64 of pid 1", 302, 1, 7, 0, 0), ("clone NEWUSER", 56, 0x10000000 | 17, 0, 0, 0, 0),
    ("move_pages", 279, 0, 0, 0, 0, 0, 0), ("process_madvise", 440, 0, 0, 0, 0, 0)]:
    call(name, number, *args)
print("--")
call("clone3", 435, 0, 0)
call("x32 getpid", 0x40000000 + 39)
call("x32 execve", 0x40000000 + 520, 0, 0, 0)
call("a call of tomorrow", 700)
"#)).await;
        let (refused, unknown) = said.text.split_once("--\n").unwrap_or_else(|| panic!("{}", said.text));
        for line in refused.lines() {
            assert!(line.ends_with(" EPERM"), "{line}");
        }
        assert_eq!(refused.lines().count(), 44);
        for line in unknown.lines() {
            assert!(line.ends_with(" ENOSYS"), "{line}");
        }
        assert_eq!(unknown.lines().count(), 4);
    }

    async fn odd_sockets_are_refused(lab: &Lab) {
        let said = lab.python(r#"
import socket
for family, kind, proto in [(40, 1, 0), (17, 3, 0), (16, 3, 15), (16, 3, 9), (38, 5, 0), (2, 3, 1), (2, 1, 132), (2, 1, 262), (10, 3, 58), (31, 1, 0), (29, 3, 1), (21, 5, 0), (44, 3, 0), (2, 2, 136), (16, 3, 12)]:
    try:
        socket.socket(family, kind, proto); print("OPEN", family, kind, proto)
    except OSError as e:
        print("refused" if e.errno == 1 else e)
socket.socket(16, 3, 0)
"#).await;
        assert_eq!(said.text, "refused\n".repeat(15));
    }

    async fn a_terminal_cannot_be_typed_into(lab: &Lab) {
        let said = lab.python(r#"
import fcntl, os
m, s = os.openpty()
for request in (0x5412, 0x541C, 0x5423):
    try: fcntl.ioctl(s, request, b"x"); print("TYPED")
    except OSError as e: print(e.errno)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(16, s, ctypes.c_ulong(0x1_0000_5412), b"x"), ctypes.get_errno())
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
