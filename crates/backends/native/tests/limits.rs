//! What a sandbox may use up, and that it is stopped there.

use hermetic_native::{EndReason, NativeBackend, NativeConfig, RequiredLayer, TotalLimits};
use hermetic_sandbox::{Backend, SandboxPersistence, SandboxSpec};
use hermetic_types::SandboxLimits;
use hermetic_warden::client::{RunEvent, Warden};
use hermetic_warden::protocol::{ExitState, RunRequest};

use crate::lab::{Lab, as_root, greet, sh, stories, until};

fn small() -> SandboxLimits {
    SandboxLimits {
        memory_bytes: 256 << 20,
        disk_bytes: 32 << 20,
        inodes: 5000,
        pids: 40,
        open_files: 200,
        ..SandboxLimits::default()
    }
}

stories! {
    async fn a_fork_bomb_stays_within_its_processes(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let said = lab.run_in(&spec, r#"exec python3 - <<'P'
import os, time
n = 0
try:
    while n < 500:
        if os.fork() == 0: time.sleep(100); os._exit(0)
        n += 1
except OSError as e: print(e.errno)
print(n < 40 and n > 20)
P"#).await;
        assert_eq!(said.text, "11\nTrue\n");
    }

    async fn memory_is_bounded(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let warden = lab.create(&spec).await.unwrap();
        let said = sh(&warden, "python3 -c 'b = bytearray(600 << 20)' 2>&1 | tail -1; echo \"${PIPESTATUS[0]}\"").await;
        assert!(said.text.contains("MemoryError") || said.text.contains("137"), "{said:?}");
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn memory_of_many_processes_is_bounded_together(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let warden = lab.create(&spec).await.unwrap();
        // Shared memory, which no limit of one process counts.
        let hog = r#"exec python3 - <<'P'
import mmap, os, time
def hog():
    m = mmap.mmap(-1, 100 << 20); m.write(b"x" * (100 << 20)); time.sleep(60)
pids = []
for _ in range(6):
    p = os.fork()
    if p == 0: hog()
    pids.append(p)
print("killed", any(os.WIFSIGNALED(os.wait()[1]) for _ in pids))
P"#;
        let run = hermetic_warden::protocol::RunRequest::new(["/bin/bash", "-c", hog]);
        let mut running = warden.run(run).await.unwrap();
        // A group's kill is seen by the parent; the watch ends the whole sandbox.
        let mut out = Vec::new();
        while let Ok(Some(event)) = running.next().await {
            if let hermetic_warden::client::RunEvent::Out(bytes) = event {
                out.extend_from_slice(&bytes);
                break;
            }
        }
        let by_group = out.starts_with(b"killed True");
        let by_watch = lab.native.why_ended(&spec.id) == Some(EndReason::MemoryLimit);
        assert!(by_group || by_watch, "{:?}", String::from_utf8_lossy(&out));
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn a_small_disk_is_full_to_the_byte(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let said = lab
            .run_in(
                &spec,
                r#"for d in /workspace /tmp; do head -c 20M /dev/zero > $d/f 2>/dev/null || echo full; done
stat -c %s /workspace/f /tmp/f | paste -sd+ | bc 2>/dev/null || python3 -c 'import os; print(os.stat("/workspace/f").st_size + os.stat("/tmp/f").st_size)'
rm /tmp/f /workspace/f
python3 -c '
n = 0
try:
    while n < 10000: open(f"/workspace/{n}", "w").close(); n += 1
except OSError as e: print(e.errno, 4000 < n < 5000)'"#,
            )
            .await;
        let lines: Vec<&str> = said.text.lines().collect();
        assert_eq!(lines[0], "full");
        assert!(lines[1].parse::<u64>().unwrap() <= 32 << 20, "{said:?}");
        assert_eq!(lines[2], "28 True");
    }

    async fn a_disk_that_is_watched_ends_the_sandbox(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        spec.limits = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
        let warden = lab.create(&spec).await.unwrap();
        let one = sh(&warden, "ulimit -f; ulimit -f unlimited 2>/dev/null || echo held").await;
        assert_eq!(
            one.text, "65536\nheld\n",
            "no single file is larger than the limit"
        );
        let run = hermetic_warden::protocol::RunRequest::new(["/bin/bash", "-c", "for i in $(seq 40); do head -c 16M /dev/zero > f$i; done; sleep 100"]);
        let _running = warden.run(run).await;
        until("the watch ends it", || lab.native.why_ended(&spec.id) == Some(EndReason::DiskLimit)).await;
        warden.closed().await;
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn a_file_without_a_name_counts(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        spec.limits = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
        let warden = lab.create(&spec).await.unwrap();
        let hidden = "exec python3 -c 'import os,time\nfs=[]\nfor i in range(40):\n f=open(\"/workspace/f\",\"wb\"); os.unlink(\"/workspace/f\"); f.write(b\"x\"*(16<<20)); f.flush(); fs.append(f)\ntime.sleep(100)'";
        let run = hermetic_warden::protocol::RunRequest::new(["/bin/bash", "-c", hidden]);
        let _running = warden.run(run).await;
        until("the watch ends it", || lab.native.why_ended(&spec.id) == Some(EndReason::DiskLimit)).await;
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn open_files_are_bounded(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let said = lab.run_in(&spec, "python3 -c 'import os\nn=0\ntry:\n while n < 5000: os.open(\"/dev/null\", 0); n+=1\nexcept OSError as e: print(e.errno, n < 200)'; ulimit -n 100000 2>/dev/null && echo RAISED; ulimit -Hu; ulimit -c").await;
        assert_eq!(said.text, "24 True\n40\n0\n");
    }

    async fn cpu_is_bounded(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits.cpu = 1.0;
        // Two busy loops for a second of wall time: together no more than about one CPU.
        let said = lab.run_in(&spec, r#"exec python3 - <<'P'
import os, time, resource
end = time.monotonic() + 1.0
for _ in range(3):
    if os.fork() == 0:
        while time.monotonic() < end: pass
        os._exit(0)
for _ in range(3): os.wait()
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(u.ru_utime + u.ru_stime < 1.5)
P"#).await;
        assert_eq!(said.text, "True\n");
    }

    async fn memory_that_no_process_has_is_bounded(lab: &Lab) {
        for (what, hog) in HIDDEN_MEMORY {
            let mut spec = lab.spec();
            spec.limits = SandboxLimits { memory_bytes: 256 << 20, disk_bytes: 32 << 20, ..SandboxLimits::default() };
            assert_stopped(lab, &spec, what, hog, EndReason::MemoryLimit).await;
        }
    }

    async fn large_system_v_memory_is_counted_or_refused(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let said = lab.run_in(&spec, r#"exec python3 - <<'P'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
def filled(size):
    i = libc.shmget(0, size, 0o1600)
    if i < 0: return False
    a = libc.shmat(i, None, 0)
    ctypes.memset(a, 1, size); libc.shmdt(ctypes.c_void_p(a))
    return True
print("small", filled(4096))
if os.fork() == 0:
    n = 0
    while n < 40 and filled(20 << 20): n += 1
    os._exit(n)
status = os.wait()[1]
print("stopped", os.WIFSIGNALED(status) or os.WEXITSTATUS(status) < 13)
P"#).await;
        assert_eq!(said.text, "small True\nstopped True\n");
    }

    async fn a_file_that_is_held_in_any_way_counts(lab: &Lab) {
        for (what, hog) in HIDDEN_FILES {
            let mut spec = lab.spec();
            spec.persistence = SandboxPersistence::Kept;
            spec.limits = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
            assert_stopped(lab, &spec, what, hog, EndReason::DiskLimit).await;
        }
    }

    async fn what_others_free_hides_nothing(lab: &Lab) {
        let theirs = lab.state.path().join("theirs");
        std::fs::write(&theirs, vec![1; 256 << 20]).unwrap();
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        spec.limits = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
        let warden = lab.create(&spec).await.unwrap();
        let said = sh(&warden, "for i in 1 2 3; do head -c 16M /dev/zero > f$i; done").await;
        assert_eq!(said.text, "");
        let run = hermetic_warden::protocol::RunRequest::new(["/bin/bash", "-c", "for i in 4 5 6 7 8; do head -c 16M /dev/zero > f$i; done; sleep 100"]);
        let running = warden.run(run).await;
        std::fs::remove_file(&theirs).unwrap();
        until("the watch ends it", || lab.native.why_ended(&spec.id) == Some(EndReason::DiskLimit)).await;
        drop(running);
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn who_hides_nothing_pays_for_nobody(lab: &Lab) {
        let small = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
        let mut quiet = lab.spec();
        quiet.persistence = SandboxPersistence::Kept;
        quiet.limits = small.clone();
        let warden = lab.create(&quiet).await.unwrap();
        let run = RunRequest::new(["/bin/bash", "-c", "echo begun; sleep 1000"]);
        let mut working = warden_output(&warden, run).await;
        assert_eq!(working.lines(1).await, "begun\n");
        // Two are ended one after the other, so every sandbox was looked at in between, with the
        // growth of ten times its limit on the file system.
        for (what, hog) in &HIDDEN_FILES[..2] {
            let mut greedy = lab.spec();
            greedy.persistence = SandboxPersistence::Kept;
            greedy.limits = small.clone();
            assert_stopped(lab, &greedy, what, hog, EndReason::DiskLimit).await;
        }
        assert_eq!(lab.native.why_ended(&quiet.id), None);
        assert_eq!(sh(&warden, "echo alive").await.text, "alive\n");
        lab.native.destroy(&quiet.id).await.unwrap();
    }

    async fn tables_of_the_host_are_shared_out(lab: &Lab) {
        let (one, two) = (lab.spec(), lab.spec());
        let greedy = lab.create(&one).await.unwrap();
        let modest = lab.create(&two).await.unwrap();
        let all = r#"exec python3 - <<'P'
import ctypes, os, resource, subprocess
libc = ctypes.CDLL(None, use_errno=True)
n = 0
try:
    while n < 2000: os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY); n += 1
except OSError: pass
print("terminals", 8 <= n <= 64)
n = 0
while n < 2000 and libc.inotify_init1(0) >= 0: n += 1
print("notifications", 1 <= n <= 1024)
print("timers", resource.getrlimit(resource.RLIMIT_SIGPENDING)[1] <= 4096)
for name in ("tcp_rmem", "tcp_wmem"):
    print(name, int(open("/proc/sys/net/ipv4/" + name).read().split()[2]) <= 1 << 20)
print(subprocess.run(["sh", "-c", "echo 1 > /proc/sys/user/max_inotify_instances"], capture_output=True).returncode != 0, flush=True)
import time; time.sleep(60)
P"#;
        let run = hermetic_warden::protocol::RunRequest::new(["/bin/bash", "-c", all]);
        let mut running = warden_output(&greedy, run).await;
        let said = running.lines(6).await;
        assert_eq!(said, "terminals True\nnotifications True\ntimers True\ntcp_rmem True\ntcp_wmem True\nTrue\n");
        // The greedy one still holds what it has; neither we nor a neighbour lacks any.
        let said = sh(&modest, "python3 -c 'import os, ctypes; os.openpty(); print(ctypes.CDLL(None).inotify_init1(0) >= 0)'").await;
        assert_eq!(said.text, "True\n");
        assert!(rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).is_ok());
        for spec in [&one, &two] {
            lab.native.destroy(&spec.id).await.unwrap();
        }
    }
}

/// Memory that is in no process's count, each as a Python program that would hold 700 MB of it.
const HIDDEN_MEMORY: [(&str, &str); 4] = [
    (
        "files in memory that nobody maps",
        r#"
held = []
for _ in range(70):
    f = os.memfd_create("x"); held.append(f)
    for _ in range(10): os.write(f, b"x" * (1 << 20))
"#,
    ),
    (
        "shared memory of which one page is left mapped",
        r#"
libc.mmap.restype = ctypes.c_void_p
for _ in range(70):
    size = 10 << 20
    a = libc.mmap(None, ctypes.c_size_t(size), 3, 0x21, -1, ctypes.c_long(0))
    ctypes.memset(a, 1, size)
    libc.munmap(ctypes.c_void_p(a + 4096), ctypes.c_size_t(size - 4096))
"#,
    ),
    (
        "files in memory that wait in a socket",
        r#"
held = []
for _ in range(70):
    f = os.memfd_create("x")
    for _ in range(10): os.write(f, b"x" * (1 << 20))
    pair = socket.socketpair(); held.append(pair)
    pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]))])
    os.close(f)
"#,
    ),
    (
        "buffers of sockets",
        r#"
import signal
for _ in range(3):
    if os.fork() == 0:
        held = []; full = 0
        try:
            while full < 300 << 20:
                a, b = socket.socketpair(); held.append((a, b))
                for s in (a, b):
                    s.setblocking(False)
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
                    try:
                        while full < 300 << 20: full += s.send(b"x" * 16384)
                    except BlockingIOError: pass
        except OSError as e: os._exit(7 if e.errno in (12, 105) else 1)
        signal.pause()
for _ in range(3):
    status = os.wait()[1]
    if os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 7: sys.exit(9)
    sys.exit(1)
"#,
    ),
];

/// Files on disk without a name, each as a Python program that would hold 640 MB of them.
const HIDDEN_FILES: [(&str, &str); 4] = [
    (
        "files of a process that hides",
        r#"
libc.prctl(4, 0, 0, 0, 0)
held = []
for _ in range(40):
    f = open("/workspace/f", "wb"); os.unlink("/workspace/f")
    f.write(b"x" * (16 << 20)); f.flush(); held.append(f)
"#,
    ),
    (
        "files that are only mapped",
        r#"
import mmap
held = []
for _ in range(40):
    f = open("/workspace/f", "wb+"); os.unlink("/workspace/f")
    f.write(b"x" * (16 << 20)); f.flush()
    held.append(mmap.mmap(f.fileno(), 4096))
    # Its own descriptor of the file goes, as it does where nobody wrote Python.
    f.close()
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try: os.close(int(name))
            except OSError: pass
"#,
    ),
    (
        "files that wait in a socket",
        r#"
held = []
for _ in range(40):
    f = open("/workspace/f", "wb"); os.unlink("/workspace/f")
    f.write(b"x" * (16 << 20)); f.flush()
    pair = socket.socketpair(); held.append(pair)
    pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f.fileno()]))])
    f.close()
"#,
    ),
    (
        "files of a thread whose process has lost its first",
        r#"
import threading, time
def hold():
    held = []
    for _ in range(40):
        f = open("/workspace/f", "wb"); os.unlink("/workspace/f")
        f.write(b"x" * (16 << 20)); f.flush(); held.append(f)
    time.sleep(100)
threading.Thread(target=hold).start()
import platform
libc.syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"#,
    ),
];

/// The program is killed by its group, or the watch ends its sandbox. One that fails for another
/// reason proves nothing, and says why it did.
async fn assert_stopped(lab: &Lab, spec: &SandboxSpec, what: &str, hog: &str, why: EndReason) {
    let warden = lab.create(spec).await.unwrap();
    let program = format!(
        "exec python3 - <<'P'\nimport array, ctypes, os, socket, sys, time\n\
         libc = ctypes.CDLL(None, use_errno=True)\n{hog}\ntime.sleep(100)\nP"
    );
    let run = RunRequest::new(["/bin/bash", "-c", &program]);
    let mut told = warden_output(&warden, run).await;
    match told.end().await {
        // Only the kernel's count stops one program and leaves the rest alone.
        Some(status) => assert!(
            matches!(
                status,
                ExitState::Signalled(9) | ExitState::Exited(KILLED_OR_REFUSED)
            ),
            "{what}: {status:?}: {}",
            told.text
        ),
        None => {
            let ended = || lab.native.why_ended(&spec.id) == Some(why);
            until(what, ended).await;
        }
    }
    lab.native.destroy(&spec.id).await.unwrap();
}

/// How a program above ends whose own child was killed, or was told that there is no memory.
const KILLED_OR_REFUSED: i32 = 9;

/// What a command has said so far.
struct Told {
    running: hermetic_warden::client::RunningCommand,
    text: String,
}

async fn warden_output(warden: &Warden, run: RunRequest) -> Told {
    Told {
        running: warden.run(run).await.unwrap(),
        text: String::new(),
    }
}

impl Told {
    /// How it ended; nothing where its sandbox did.
    async fn end(&mut self) -> Option<ExitState> {
        while let Ok(Some(event)) = self.running.next().await {
            match event {
                RunEvent::Out(bytes) | RunEvent::Err(bytes) => {
                    self.text.push_str(&String::from_utf8_lossy(&bytes));
                }
                RunEvent::Ended(ended) => return Some(ended.status),
                RunEvent::Started { .. } | RunEvent::Skipped(_) => {}
            }
        }
        None
    }

    async fn lines(&mut self, count: usize) -> &str {
        while self.text.lines().count() < count {
            match self.running.next().await.unwrap() {
                Some(RunEvent::Out(bytes) | RunEvent::Err(bytes)) => {
                    self.text.push_str(&String::from_utf8_lossy(&bytes));
                }
                Some(RunEvent::Ended(_)) | None => break,
                Some(_) => {}
            }
        }
        &self.text
    }
}

#[test]
fn all_sandboxes_together_keep_to_a_sum() {
    as_root("all_sandboxes_together_keep_to_a_sum", async |lab| {
        let state = tempfile::tempdir().unwrap();
        let native = NativeBackend::open(NativeConfig {
            state: state.path().to_owned(),
            installation: lab.installation.clone(),
            program: hermetic_embedded::WARDEN,
            require: vec![RequiredLayer::CgroupLimits],
            authority: None,
            total: TotalLimits {
                memory_bytes: Some(300 << 20),
                processes: Some(200),
            },
        })
        .unwrap();
        let mut running = Vec::new();
        let mut specs = Vec::new();
        for _ in 0..2 {
            let mut spec = lab.spec();
            spec.limits = small();
            let warden = greet(native.create(&spec).await.unwrap()).await;
            let hog = "exec python3 -c 'import time; b = bytearray(200 << 20); time.sleep(1000)'";
            running.push(
                warden
                    .run(RunRequest::new(["/bin/bash", "-c", hog]))
                    .await
                    .unwrap(),
            );
            running.last_mut().unwrap().next().await.unwrap();
            specs.push((spec, warden));
        }
        // Each is within its own limit, both are not within the sum: one of them goes.
        let ends = running.into_iter().map(|mut running| {
            Box::pin(async move {
                loop {
                    if let RunEvent::Ended(ended) = running.next().await.unwrap().unwrap() {
                        return ended.status;
                    }
                }
            })
        });
        let (status, _, others) = futures::future::select_all(ends).await;
        assert_eq!(status, ExitState::Signalled(9));
        drop(others);
        for (spec, _) in specs {
            native.destroy(&spec.id).await.unwrap();
        }
    });
}
