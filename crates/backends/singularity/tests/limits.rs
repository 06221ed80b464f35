//! What a sandbox may use up, and that it is stopped there: by the runtime's cgroup where it has one,
//! by our own means elsewhere.

use hermetic_native::EndReason;
use hermetic_sandbox::conformance::cleared;
use hermetic_sandbox::conformance::story::small;
use hermetic_sandbox::{Backend, LayerState, SandboxPersistence};
use hermetic_types::{Command, SandboxLimits};
use hermetic_warden::client::RunEvent;

use crate::lab::{begin, child_of, finish, processes_of, sh, stories, until};

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
        assert_eq!(said, "11\nTrue\n");
    }

    async fn what_it_writes_is_counted_on_the_disk_that_it_takes_room_from(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let ids = [spec.id.clone()];
        let sandbox = lab.create(&spec).await;
        let before = lab.backend.disk_use(&ids).await[&spec.id];
        sh(&sandbox, "head -c 20M /dev/zero >/workspace/large").await;
        let beside = lab.backend.disk_use_on(&ids, lab.folder.path()).await;
        assert!(beside[&spec.id] >= before + (20 << 20), "{before} {beside:?}");
        // A file system of its own on every machine.
        let elsewhere = std::path::Path::new("/proc");
        assert!(lab.backend.disk_use_on(&ids, elsewhere).await.is_empty());
        drop(sandbox);
        lab.backend.destroy(&spec.id).await.unwrap();
        assert!(lab.backend.disk_use(&ids).await.is_empty());
    }

    async fn memory_is_bounded(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let sandbox = lab.create(&spec).await;
        let ended = finish(&sandbox, "exec python3 -c 'b = bytearray(600 << 20); print(len(b))' 2>&1").await;
        let said = String::from_utf8_lossy(&ended.stdout.clone().into_bytes()).into_owned();
        assert!(ended.code() == 137 || said.contains("MemoryError"), "{ended:?}");
        // The warden is spared, and the sandbox goes on.
        assert_eq!(sh(&sandbox, "echo alive").await, "alive\n");
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn memory_of_many_processes_is_bounded_together(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let sandbox = lab.create(&spec).await;
        // Shared memory, which no limit of one process counts.
        let hog = r#"exec python3 - <<'P'
import mmap, os, time
def hog():
    m = mmap.mmap(-1, 100 << 20); m.write(b"x" * (100 << 20)); time.sleep(600)
pids = []
for _ in range(6):
    p = os.fork()
    if p == 0: hog()
    pids.append(p)
print("killed", os.WIFSIGNALED(os.wait()[1]), flush=True)
P"#;
        let command = cleared(Command::script(hog));
        let mut running = sandbox.start(command).await.unwrap();
        let mut said = Vec::new();
        while let Ok(Some(event)) = running.next().await {
            if let RunEvent::Out(bytes) = event {
                said.extend_from_slice(&bytes);
                break;
            }
        }
        // A group's kill is seen by the parent; the watch ends the whole sandbox.
        let by_group = said == b"killed True\n";
        let by_watch = lab.backend.why_ended(&spec.id) == Some(EndReason::MemoryLimit);
        assert!(by_group || by_watch, "{:?}", String::from_utf8_lossy(&said));
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn files_in_memory_are_bounded(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let said = lab.run_in(&spec, r#"for d in /workspace /tmp; do head -c 20M /dev/zero > $d/f 2>/dev/null || echo full; done
python3 -c 'import os; print(os.stat("/workspace/f").st_size + os.stat("/tmp/f").st_size)'
rm /tmp/f /workspace/f
{ for d in /dev/shm /run /var/tmp /home/agent /dev; do head -c 600M /dev/zero > $d/f && echo "UNBOUNDED $d"; rm -f $d/f; done; } 2>/dev/null
python3 -c '
n = 0
try:
    while n < 10000: open(f"/workspace/{n}", "w").close(); n += 1
except OSError as e: print(e.errno, 4000 < n < 5000)'"#).await;
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "full", "28 True"), "{said}");
        assert!(lines[1].parse::<u64>().unwrap() <= 32 << 20, "{said}");
    }

    async fn a_disk_that_is_watched_ends_the_sandbox(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        spec.limits = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "ulimit -f; ulimit -f unlimited 2>/dev/null || echo held").await, "65536\nheld\n");
        let _running = begin(&sandbox, "for i in $(seq 40); do head -c 16M /dev/zero > f$i; done; echo ready; sleep 600").await;
        until("the watch ends it", async || lab.backend.why_ended(&spec.id) == Some(EndReason::DiskLimit)).await;
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn a_file_without_a_name_counts(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        spec.limits = SandboxLimits { disk_bytes: 64 << 20, ..SandboxLimits::default() };
        let sandbox = lab.create(&spec).await;
        let hide = "exec python3 -c 'import os,time\nfs=[]\nfor i in range(40):\n f=open(\"/workspace/f\",\"wb\"); os.unlink(\"/workspace/f\"); f.write(b\"x\"*(16<<20)); f.flush(); fs.append(f)\nprint(1, flush=True); time.sleep(600)'";
        let _running = begin(&sandbox, hide).await;
        until("the watch ends it", async || lab.backend.why_ended(&spec.id) == Some(EndReason::DiskLimit)).await;
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn open_files_are_bounded_for_good(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits = small();
        let said = lab.run_in(&spec, "python3 -c 'import os\nn=0\ntry:\n while n < 5000: os.open(\"/dev/null\", 0); n+=1\nexcept OSError as e: print(e.errno, n < 200)'; ulimit -n 100000 2>/dev/null && echo RAISED; ulimit -Hu; ulimit -c").await;
        assert_eq!(said, "24 True\n40\n0\n");
    }

    async fn cpu_is_bounded(lab: &Lab) {
        let mut spec = lab.spec();
        spec.limits.cpu = 1.0;
        // Three busy loops: what they get of a CPU, not how long it takes, is looked at.
        let said = lab.run_in(&spec, r#"exec python3 - <<'P'
import os, time, resource
begun = time.monotonic()
for _ in range(3):
    if os.fork() == 0:
        while time.monotonic() < begun + 2.0: pass
        os._exit(0)
for _ in range(3): os.wait()
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print((u.ru_utime + u.ru_stime) / (time.monotonic() - begun) < 1.3)
P"#).await;
        assert_eq!(said, "True\n");
    }

    /// `doctor` says which means keeps a limit; that is the one that is seen to be there.
    async fn what_is_said_of_limits_is_so(lab: &Lab) {
        let readiness = lab.backend.readiness().await;
        let mut spec = lab.spec();
        spec.limits = small();
        let sandbox = lab.create(&spec).await;
        let keeper = *processes_of(&spec.id.to_string()).first().expect("an instance has a keeper");
        let init = child_of(keeper).expect("and a first process");
        let told = |name: &str| readiness.layers.iter().find(|layer| layer.name == name).expect("it is told");
        for (name, controller, file, wanted) in [
            ("memory limit", "memory", ["memory.limit_in_bytes", "memory.max"], (256_u64 << 20).to_string()),
            ("process limit", "pids", ["pids.max", "pids.max"], (40 + 64).to_string()),
        ] {
            let kept = group_of(init, controller).and_then(|group| {
                file.iter().find_map(|file| std::fs::read_to_string(group.join(file)).ok())
            });
            let by_group = kept.is_some_and(|text| text.trim() == wanted);
            let layer = told(name);
            assert_eq!(layer.state == LayerState::Active, by_group, "{layer:?}");
            assert_eq!(layer.remedy.is_none(), by_group, "{layer:?}");
        }
        drop(sandbox);
        lab.backend.destroy(&spec.id).await.unwrap();
    }
}

/// The folder of a process's cgroup, in either version.
fn group_of(pid: i32, controller: &str) -> Option<std::path::PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        let root = match names {
            "" => "/sys/fs/cgroup".to_owned(),
            names if names.split(',').any(|name| name == controller) => {
                format!("/sys/fs/cgroup/{controller}")
            }
            _ => return None,
        };
        Some(std::path::PathBuf::from(format!("{root}{path}")))
    })
}
