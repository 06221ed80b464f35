//! What a sandbox may use up, and that it is stopped there.

use hermetic_native::Ended;
use hermetic_sandbox::{Backend, Persistence};
use hermetic_types::Limits;

use crate::lab::{sh, stories, until};

fn small() -> Limits {
    Limits {
        memory_bytes: 256 << 20,
        disk_bytes: 32 << 20,
        inodes: 5000,
        pids: 40,
        open_files: 200,
        ..Limits::default()
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
        let run = hermetic_warden::protocol::Run::new(["/bin/bash", "-c", hog]);
        let mut running = warden.run(run).await.unwrap();
        // A group's kill is seen by the parent; the watch ends the whole sandbox.
        let mut out = Vec::new();
        while let Ok(Some(event)) = running.next().await {
            if let hermetic_warden::client::Event::Out(bytes) = event {
                out.extend_from_slice(&bytes);
                break;
            }
        }
        let by_group = out.starts_with(b"killed True");
        let by_watch = lab.native.why_ended(&spec.id) == Some(Ended::MemoryLimit);
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
        spec.persistence = Persistence::Kept;
        spec.limits = Limits { disk_bytes: 64 << 20, ..Limits::default() };
        let warden = lab.create(&spec).await.unwrap();
        let one = sh(&warden, "ulimit -f; ulimit -f unlimited 2>/dev/null || echo held").await;
        assert_eq!(
            one.text, "65536\nheld\n",
            "no single file is larger than the limit"
        );
        let run = hermetic_warden::protocol::Run::new(["/bin/bash", "-c", "for i in $(seq 40); do head -c 16M /dev/zero > f$i; done; sleep 100"]);
        let _running = warden.run(run).await;
        until("the watch ends it", || lab.native.why_ended(&spec.id) == Some(Ended::DiskLimit)).await;
        warden.closed().await;
        lab.native.destroy(&spec.id).await.unwrap();
    }

    async fn a_file_without_a_name_counts(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = Persistence::Kept;
        spec.limits = Limits { disk_bytes: 64 << 20, ..Limits::default() };
        let warden = lab.create(&spec).await.unwrap();
        let hidden = "exec python3 -c 'import os,time\nfs=[]\nfor i in range(40):\n f=open(\"/workspace/f\",\"wb\"); os.unlink(\"/workspace/f\"); f.write(b\"x\"*(16<<20)); f.flush(); fs.append(f)\ntime.sleep(100)'";
        let run = hermetic_warden::protocol::Run::new(["/bin/bash", "-c", hidden]);
        let _running = warden.run(run).await;
        until("the watch ends it", || lab.native.why_ended(&spec.id) == Some(Ended::DiskLimit)).await;
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
}
