//! What a container may use up, and that it is stopped there.

use hermetic_docker::LimitEnd;
use hermetic_sandbox::{Backend, BackendError, SandboxPersistence};
use hermetic_types::SandboxLimits;
use rustix::process::getuid;

use crate::lab::{begin, finish, is_podman, keeps_limits, sh, stories, until};

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
        if !keeps_limits() {
            return eprintln!("SKIP: a_fork_bomb_stays_within_its_processes: the engine keeps no limits here");
        }
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
        assert_eq!(said, "11\nTrue\n");
    }

    async fn memory_is_bounded_and_there_is_no_swap(lab: &Lab) {
        if !keeps_limits() {
            return eprintln!("SKIP: memory_is_bounded_and_there_is_no_swap: the engine keeps no limits here");
        }
        let mut spec = lab.spec();
        spec.limits = small();
        let sandbox = lab.create(&spec).await;
        let ended = finish(&sandbox, "exec python3 -c 'b = bytearray(600 << 20); print(len(b))'").await;
        assert_eq!(ended.code(), 137, "{ended:?}");
        // The warden is spared, and the sandbox goes on.
        assert_eq!(sh(&sandbox, "echo alive").await, "alive\n");
        lab.docker.destroy(&spec.id).await.unwrap();
    }

    async fn cpu_is_bounded(lab: &Lab) {
        if !keeps_limits() {
            return eprintln!("SKIP: cpu_is_bounded: the engine keeps no limits here");
        }
        let mut spec = lab.spec();
        spec.limits.cpu = 0.5;
        let said = lab.run_in(&spec, r#"exec python3 - <<'P'
import os, time, resource
end = time.monotonic() + 2.0
for _ in range(3):
    if os.fork() == 0:
        while time.monotonic() < end: pass
        os._exit(0)
for _ in range(3): os.wait()
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(u.ru_utime + u.ru_stime < 1.5)
P"#).await;
        assert_eq!(said, "True\n");
    }

    async fn a_small_disk_is_full_to_the_byte(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let said = lab.run_in(&spec, r#"for f in a b; do head -c 20M /dev/zero > /workspace/$f 2>/dev/null || echo full; done; du -sb /workspace | cut -f1; rm /workspace/a /workspace/b
python3 -c '
n = 0
try:
    while n < 10000: open(f"/workspace/{n}", "w").close(); n += 1
except OSError as e: print(e.errno, 4000 < n < 5000)'"#).await;
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "full", "{said}");
        // Podman takes no such bound; there, files in memory are bounded as memory.
        if !is_podman().await {
            assert_eq!(lines[2], "28 True", "{said}");
        }
        assert!(lines[1].parse::<u64>().unwrap() <= (32 << 20) + 4096, "{said}");
    }

    async fn no_file_is_larger_than_the_disk(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits.disk_bytes = 64 << 20;
        spec.persistence = SandboxPersistence::Kept;
        let said = lab.run_in(&spec, "ulimit -f; ulimit -f unlimited 2>/dev/null || echo held; ulimit -c; ulimit -Hn").await;
        assert_eq!(said, "65536\nheld\n0\n4096\n");
    }

    async fn a_disk_that_is_watched_ends_the_sandbox(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        spec.limits = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
        let sandbox = lab.create(&spec).await;
        let mut running = begin(&sandbox, "for i in $(seq 40); do head -c 16M /dev/zero > /usr/f$i; done; echo ready; sleep 600").await;
        until("the watch ends it", async || lab.docker.why_ended(&spec.id) == Some(LimitEnd::DiskLimit)).await;
        while let Ok(Some(_)) = running.next().await {}
        // Its files are over the limit for good: coming back is refused, in words.
        until("it is seen to be stopped", async || lab.docker.connect(&spec.id).await.is_err()).await;
        let refused = lab.docker.resume(&spec).await.unwrap_err();
        assert!(matches!(refused, BackendError::Refused { .. }), "{refused}");
        lab.docker.destroy(&spec.id).await.unwrap();
    }

    async fn a_file_without_a_name_counts(lab: &Lab) {
        if !getuid().is_root() {
            return eprintln!("SKIP: a_file_without_a_name_counts: only root sees such files");
        }
        let mut spec = lab.spec();
        spec.limits = SandboxLimits { disk_bytes: 64 << 20, memory_bytes: 100 << 20, ..SandboxLimits::default() };
        let sandbox = lab.create(&spec).await;
        let hide = r#"exec python3 -c '
import os, time
held = []
for i in range(20):
    f = open("/usr/f", "wb"); os.unlink("/usr/f")
    for _ in range(16): f.write(b"x" * (1 << 20)); f.flush()
    held.append(f)
print("ready", flush=True); time.sleep(600)'"#;
        let _running = begin(&sandbox, hide).await;
        until("the watch ends it", async || lab.docker.why_ended(&spec.id) == Some(LimitEnd::DiskLimit)).await;
        until("it is gone", async || lab.docker.list().await.unwrap().is_empty()).await;
    }

    async fn a_file_that_is_held_in_any_way_counts(lab: &Lab) {
        if !getuid().is_root() {
            return eprintln!("SKIP: a_file_that_is_held_in_any_way_counts: only root sees such files");
        }
        for (what, hold) in HIDDEN_FILES {
            let mut spec = lab.spec();
            spec.limits = SandboxLimits { disk_bytes: 64 << 20, memory_bytes: 100 << 20, ..SandboxLimits::default() };
            let sandbox = lab.create(&spec).await;
            let _running = begin(&sandbox, &holding(hold)).await;
            until(what, async || lab.docker.why_ended(&spec.id) == Some(LimitEnd::DiskLimit)).await;
            until("it is gone", async || lab.docker.list().await.unwrap().is_empty()).await;
        }
    }

    async fn files_without_a_byte_count_too(lab: &Lab) {
        if !getuid().is_root() {
            return eprintln!("SKIP: files_without_a_byte_count_too: only root sees the layer");
        }
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        spec.limits.inodes = 20_000;
        let sandbox = lab.create(&spec).await;
        // More than any machine makes within a look, and not all of them if nobody looks.
        let mut running = begin(&sandbox, r#"exec python3 -c '
import os
print("ready", flush=True)
for d in range(2000):
    os.mkdir(f"/usr/d{d}")
    for n in range(1000): os.close(os.open(f"/usr/d{d}/{n}", os.O_CREAT))'"#).await;
        until("the watch ends it", async || lab.docker.why_ended(&spec.id) == Some(LimitEnd::FileLimit)).await;
        while let Ok(Some(_)) = running.next().await {}
        until("it is seen to be stopped", async || lab.docker.connect(&spec.id).await.is_err()).await;
        lab.docker.destroy(&spec.id).await.unwrap();
    }
}

/// What a program in Python does with a file that has lost its name.
const HIDDEN_FILES: [(&str, &str); 2] = [
    (
        "a mapping counts",
        r#"
    held.append(mmap.mmap(f.fileno(), 4096)); f.close()
    # Python keeps a descriptor of its own for each mapping.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try: os.close(int(name))
            except OSError: pass
"#,
    ),
    (
        "a socket's queue counts",
        r#"
    pair = socket.socketpair(); held.append(pair)
    pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f.fileno()]))])
    f.close()
"#,
    ),
];

/// Holds 320 MB of such files and says so.
fn holding(hold: &str) -> String {
    format!(
        r#"exec python3 - <<'P'
import array, mmap, os, socket, time
held = []
def keep(f):{hold}
for _ in range(20):
    f = open("/usr/f", "wb+"); os.unlink("/usr/f")
    for _ in range(16): f.write(b"x" * (1 << 20)); f.flush()
    keep(f)
print("ready", flush=True); time.sleep(600)
P"#
    )
}
