//! The doors that Linux has had too many of, each knocked at from inside a sandbox.
//!
//! For the tests of backends that are a boundary on this kernel.

/// Python: prints what became of each system call, by name; then of each socket.
pub const DOORS: &str = r#"
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    print(name, errno.errorcode.get(ctypes.get_errno(), "OK") if r < 0 else "OK")
import struct
arm = ["x86_64", "aarch64"].index(platform.machine())
# Two numbers where the architectures differ; none for a call that only the older one ever had.
for name, number, *args in [
    ("io_uring_setup", 425, 1, 0), ("userfaultfd", (323, 282), 0), ("keyctl", (250, 219), 0, 0), ("add_key", (248, 217), 0, 0, 0, 0, 0),
    ("request_key", (249, 218), 0, 0, 0, 0), ("bpf", (321, 280), 0, 0, 0), ("perf_event_open", (298, 241), 0, 0, 0, 0, 0),
    ("ptrace", (101, 117), 16, 1, 0, 0), ("process_vm_readv", (310, 270), 1, 0, 0, 0, 0, 0), ("pidfd_getfd", 438, 0, 0, 0), ("kcmp", (312, 272), 1, 1, 0, 0, 0),
    ("mount", (165, 40), 0, 0, 0, 0, 0), ("umount2", (166, 39), 0, 0), ("pivot_root", (155, 41), 0, 0), ("chroot", (161, 51), 0), ("unshare", (272, 97), 0x10000000),
    ("setns", (308, 268), 0, 0), ("open_by_handle_at", (304, 265), 0, 0, 0), ("name_to_handle_at", (303, 264), 0, 0, 0, 0, 0), ("fsopen", 430, 0, 0),
    ("open_tree", 428, 0, 0, 0), ("move_mount", 429, 0, 0, 0, 0, 0), ("mount_setattr", 442, 0, 0, 0, 0, 0), ("quotactl", (179, 60), 0, 0, 0, 0),
    ("swapon", (167, 224), 0, 0), ("reboot", (169, 142), 0, 0, 0, 0), ("kexec_load", (246, 104), 0, 0, 0, 0), ("init_module", (175, 105), 0, 0, 0), ("iopl", (172, None), 3),
    ("acct", (163, 89), 0), ("syslog", (103, 116), 3, 0, 0), ("memfd_secret", 447, 0), ("modify_ldt", (154, None), 0, 0, 0), ("uselib", (134, None), 0),
    ("lookup_dcookie", (212, 18), 0, 0, 0), ("fanotify_init", (300, 262), 0, 0), ("settimeofday", (164, 170), 0, 0), ("sethostname", (170, 161), 0, 0), ("vhangup", (153, 58)),
    ("personality", (135, 92), 0x0400000), ("prlimit64 of pid 1", (302, 261), 1, 7, 0, 0), ("clone NEWUSER", (56, 220), 0x10000000 | 17, 0, 0, 0, 0),
    ("mmap of huge pages", (9, 222), 0, 2 << 20, 3, 0x40022, -1, 0), ("memfd of huge pages", (319, 279), b"x", 4), ("shmget of huge pages", (29, 194), 0, 1, 0o4600),
    ("move_pages", (279, 239), 0, 0, 0, 0, 0, 0), ("process_madvise", 440, 0, 0, 0, 0, 0),
    ("ioctl FS_IOC_FSSETXATTR", (16, 29), 0, 0x401c5820, 0), ("ioctl FS_IOC_SETFLAGS", (16, 29), 0, 0x40086602, 0)]:
    if isinstance(number, tuple): number = number[arm]
    if number is not None: call(name, number, *args)
print("--")
call("clone3", 435, 0, 0)
call("io_setup", 0 if arm else 206, 1, ctypes.byref(ctypes.c_long(0)))
if not arm:
    call("x32 getpid", 0x40000000 + 39)
    call("x32 execve", 0x40000000 + 520, 0, 0, 0)
call("a call of tomorrow", 700)
print("--")
import socket
for family, kind, proto in [(40, 1, 0), (17, 3, 0), (16, 3, 15), (16, 3, 9), (38, 5, 0), (2, 3, 1), (2, 1, 132), (2, 1, 262), (10, 3, 58), (31, 1, 0), (29, 3, 1), (21, 5, 0), (44, 3, 0), (2, 2, 136), (16, 3, 12)]:
    try:
        socket.socket(family, kind, proto); print("OPEN", family, kind, proto)
    except OSError as e:
        print("refused" if e.errno == 1 else e)
socket.socket(16, 3, 0)
"#;

/// What [`DOORS`] has to have said.
pub fn assert_closed(said: &str) {
    let mut parts = said.split("--\n");
    let mut part = || parts.next().unwrap_or_else(|| panic!("{said}")).lines();
    let open: Vec<_> = part().filter(|line| !line.ends_with(" EPERM")).collect();
    assert!(open.is_empty(), "{open:?}");
    // What did not exist when the filter was written, or should not have existed ever.
    let unknown: Vec<_> = part().filter(|line| !line.ends_with(" ENOSYS")).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let sockets: Vec<_> = part().filter(|line| *line != "refused").collect();
    assert!(sockets.is_empty(), "{sockets:?}");
    let (calls, later) = match cfg!(target_arch = "x86_64") {
        true => (49, 5),
        false => (46, 3),
    };
    assert_eq!(said.lines().count(), calls + later + 15 + 2, "{said}");
}
