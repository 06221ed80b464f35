//! A disk limit that the kernel keeps, on a file system of ext4 with project quotas.
//!
//! The file system is an image, mounted in a mount namespace that ends with the process that tells
//! the story. Neither a mount nor a loop device is left, however it ends.

use std::path::Path;
use std::process::Command;

use hermetic_native::{NativeBackend, NativeConfig, RequiredLayer, TotalLimits};
use hermetic_sandbox::{Backend, BackendError, LayerState, SandboxPersistence, SandboxSpec};
use hermetic_types::SandboxLimits;
use rustix::process::getuid;

use crate::lab::{Lab, as_root, greet, open, sh, stories};

/// Set in the process whose temporary folder is on such a file system.
const WITH_QUOTAS: &str = "HERMETIC_TEST_WITH_QUOTAS";
/// How the mount says that this kernel cannot.
const CANNOT: i32 = 77;

const MOUNT: &str = r#"
if mount -t tmpfs none "$1" && truncate -s 512M "$1/image" &&
    mkfs.ext4 -q -O quota,project -E quotatype=prjquota "$1/image" &&
    mkdir "$1/disk" && mount -o loop,prjquota "$1/image" "$1/disk"
then TMPDIR="$1/disk"; export TMPDIR; shift; exec "$@"
else exit 77
fi
"#;

/// Tells a story in a laboratory whose files are on that file system.
fn with_quotas(name: &str, story: impl AsyncFnOnce(&Lab)) {
    if std::env::var_os(WITH_QUOTAS).is_some() {
        return as_root(name, story);
    }
    if !getuid().is_root() {
        return eprintln!("SKIP: quota::{name}: needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    let told = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--"])
        .args(["sh", "-c", MOUNT, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("quota::{name}"), "--nocapture"])
        .env(WITH_QUOTAS, "1")
        .output();
    let output = match told {
        Ok(output) => output,
        Err(error) => return eprintln!("SKIP: quota::{name}: unshare cannot be started ({error})"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(CANNOT) {
        let why = errors.lines().next().unwrap_or_default();
        return eprintln!("SKIP: quota::{name}: no ext4 with project quotas here ({why})");
    }
    assert!(output.status.success(), "with quotas:\n{text}\n{errors}");
    assert!(text.contains("1 passed"), "{text}");
}

fn kept(lab: &Lab) -> SandboxSpec {
    SandboxSpec {
        persistence: SandboxPersistence::Kept,
        limits: SandboxLimits {
            disk_bytes: 64 << 20,
            inodes: 500,
            ..SandboxLimits::default()
        },
        ..lab.spec()
    }
}

/// Says how many megabytes it got to hold, in whichever way, and with which error it was stopped.
const HOLD: &str = r#"exec python3 - <<'P'
import array, errno, mmap, os, socket, sys
piece = 4 << 20

def nameless():
    f = os.open("/workspace/f", os.O_RDWR | os.O_CREAT); os.unlink("/workspace/f")
    return f

def filled(f):
    done = 0
    while done < piece: done += os.write(f, b"x" * (1 << 20))

def mapped(f):
    filled(f); m = mmap.mmap(f, 4096); os.close(f)
    return m

def in_flight(f):
    filled(f); pair = socket.socketpair()
    pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f]))]); os.close(f)
    return pair

def opened(f):
    filled(f)
    return f

for way in (opened, mapped, in_flight):
    # A child each: whatever it held goes with it.
    sys.stdout.flush()
    if os.fork() == 0:
        held = []
        try:
            while len(held) < 60: held.append(way(nameless()))
            print(way.__name__, "held everything")
        except OSError as e:
            print(way.__name__, errno.errorcode[e.errno], 13 <= len(held) <= 16)
        sys.stdout.flush(); os._exit(0)
    os.wait()
n = 0
try:
    while n < 2000: open(f"/home/agent/{n}", "w").close(); n += 1
except OSError as e: print("files", errno.errorcode[e.errno], 400 < n < 500)
P"#;

#[test]
fn every_way_of_holding_files_ends_at_the_quota() {
    with_quotas(
        "every_way_of_holding_files_ends_at_the_quota",
        async |lab| {
            let spec = kept(lab);
            let warden = lab.create(&spec).await.unwrap();
            let said = sh(&warden, HOLD).await;
            assert_eq!(
                said.text,
                "opened EDQUOT True\nmapped EDQUOT True\nin_flight EDQUOT True\nfiles EDQUOT True\n"
            );
            // Whoever reached it was told, and lives on.
            assert_eq!(
                sh(
                    &warden,
                    "rm -f /home/agent/*; echo on > /workspace/f && cat /workspace/f"
                )
                .await
                .text,
                "on\n"
            );
            assert_eq!(lab.native.why_ended(&spec.id), None);
            let used = lab.native.disk_use(std::slice::from_ref(&spec.id)).await[&spec.id];
            assert!((4096..1 << 20).contains(&used), "{used}");
            lab.native.destroy(&spec.id).await.unwrap();
        },
    );
}

#[test]
fn a_page_that_the_quota_has_no_room_for_is_not_written() {
    with_quotas(
        "a_page_that_the_quota_has_no_room_for_is_not_written",
        async |lab| {
            let spec = kept(lab);
            let said = lab
                .run_in(
                    &spec,
                    r#"python3 - <<'P'
import mmap, os
held = []
for _ in range(4):
    f = os.open("/workspace/f", os.O_RDWR | os.O_CREAT); os.unlink("/workspace/f")
    os.ftruncate(f, 60 << 20); held.append(mmap.mmap(f, 60 << 20)); os.close(f)
for m in held:
    for at in range(0, 60 << 20, 4096): m[at] = 1
print("held", "everything")
P
echo $?"#,
                )
                .await;
            // A bus error: there is no page behind the address.
            assert!(said.text.ends_with("135\n"), "{}", said.text);
            assert!(!said.text.contains("held everything"), "{}", said.text);
        },
    );
}

#[test]
fn nobody_leaves_a_project() {
    with_quotas("nobody_leaves_a_project", async |lab| {
        let said = lab.run_in(&kept(lab), r#"exec python3 - <<'P'
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
f = os.open("/workspace", os.O_RDONLY)
was = ctypes.create_string_buffer(28)
print(libc.ioctl(f, ctypes.c_ulong(0x801c581f), was), struct.unpack("7I", was.raw)[3] >= 0x70000000)
none = ctypes.create_string_buffer(28)
print(libc.ioctl(f, ctypes.c_ulong(0x401c5820), none), ctypes.get_errno())
flags = ctypes.create_string_buffer(8)
print(libc.ioctl(f, ctypes.c_ulong(0x40086602), flags), ctypes.get_errno())
print(libc.syscall(443, f, (0x800008 << 8) | 2, 0x70000000, ctypes.create_string_buffer(72)), ctypes.get_errno())
P"#).await;
        assert_eq!(said.text, "0 True\n-1 1\n-1 1\n-1 1\n");
    });
}

#[test]
fn what_is_kept_comes_back_within_its_quota() {
    with_quotas("what_is_kept_comes_back_within_its_quota", async |lab| {
        let spec = kept(lab);
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "head -c 40M /dev/zero > a").await;
        lab.native.stop(&spec.id).await.unwrap();
        let warden = greet(lab.native.resume(&spec).await.unwrap()).await;
        let said = sh(&warden, "head -c 40M /dev/zero > b || stat -c %s a").await;
        assert!(
            said.text.contains("quota") && said.text.ends_with("41943040\n"),
            "{}",
            said.text
        );
        lab.native.destroy(&spec.id).await.unwrap();
    });
}

#[test]
fn files_from_before_there_were_quotas_are_given_one() {
    with_quotas(
        "files_from_before_there_were_quotas_are_given_one",
        async |lab| {
            let spec = kept(lab);
            let warden = lab.create(&spec).await.unwrap();
            sh(
                &warden,
                "mkdir d; head -c 40M /dev/zero > d/a; ln -s /etc l; mkfifo p",
            )
            .await;
            lab.native.stop(&spec.id).await.unwrap();
            // As a copy from elsewhere would be: in nobody's project.
            let folder = lab.state.path().join("sandboxes").join(spec.id.as_str());
            let copied = Command::new("sh")
                .args([
                    "-ec",
                    "for tree in workspace home; do mv $tree old; cp -a old $tree; rm -r old; done",
                ])
                .current_dir(&folder)
                .status()
                .unwrap();
            assert!(copied.success());
            let warden = greet(lab.native.resume(&spec).await.unwrap()).await;
            let said = sh(&warden, "head -c 40M /dev/zero > b || stat -c %s d/a").await;
            assert!(
                said.text.contains("quota") && said.text.ends_with("41943040\n"),
                "{}",
                said.text
            );
            lab.native.destroy(&spec.id).await.unwrap();
        },
    );
}

#[test]
fn no_project_is_left() {
    with_quotas("no_project_is_left", async |lab| {
        let spec = kept(lab);
        let warden = lab.create(&spec).await.unwrap();
        sh(&warden, "echo x > f").await;
        assert_eq!(projects(lab.state.path()).len(), 1);
        lab.native.destroy(&spec.id).await.unwrap();
        assert_eq!(projects(lab.state.path()), Vec::<u32>::new());

        // Whoever comes after a gateway that died finds it by its record.
        let spec = kept(lab);
        lab.create(&spec).await.unwrap();
        let next = open(lab.state.path(), &lab.installation);
        assert_eq!(projects(lab.state.path()).len(), 1);
        next.destroy(&spec.id).await.unwrap();
        assert_eq!(projects(lab.state.path()), Vec::<u32>::new());
    });
}

#[test]
fn doctor_says_that_the_kernel_keeps_it_and_where_it_lies_is_hidden() {
    with_quotas(
        "doctor_says_that_the_kernel_keeps_it_and_where_it_lies_is_hidden",
        async |lab| {
            let layers = lab.native.readiness().await.layers;
            let disk = layers
                .iter()
                .find(|layer| layer.name == "disk limit")
                .unwrap();
            assert_eq!(disk.state, LayerState::Active, "{}", disk.detail);
            assert!(
                disk.detail.contains("kept by the kernel"),
                "{}",
                disk.detail
            );
            assert_eq!(projects(lab.state.path()), Vec::<u32>::new());
            let strict = strict(lab);
            let spec = kept(lab);
            let warden = greet(strict.create(&spec).await.unwrap()).await;
            // On a file system of its own, `mountinfo` tells the path on that one.
            let above = std::env::temp_dir();
            let said = sh(&warden, "cat /proc/self/mountinfo").await;
            assert!(
                !said
                    .text
                    .contains(above.parent().unwrap().to_str().unwrap()),
                "{}",
                said.text
            );
            strict.destroy(&spec.id).await.unwrap();
        },
    );
}

stories! {
    async fn whoever_requires_it_is_not_counted(lab: &Lab) {
        let layers = lab.native.readiness().await.layers;
        let disk = layers.iter().find(|layer| layer.name == "disk limit").unwrap();
        let strict = strict(lab);
        let spec = kept(lab);
        match strict.create(&spec).await {
            Ok(_) => assert_eq!(disk.state, LayerState::Active),
            Err(BackendError::Unavailable { what, remedy }) => {
                assert_eq!(disk.state, LayerState::Weaker);
                assert!(what.contains("counted") && remedy.contains("project quotas"), "{what}; {remedy}");
                let told = strict.readiness().await;
                let told = told.missing().unwrap();
                assert_eq!((told.name, told.state), ("disk limit", LayerState::Required));
            }
            Err(other) => panic!("{other}"),
        }
        strict.destroy(&spec.id).await.unwrap();
        // A sized tmpfs is the kernel's as well.
        let mut in_memory = lab.spec();
        in_memory.limits = SandboxLimits { memory_bytes: 256 << 20, disk_bytes: 32 << 20, ..SandboxLimits::default() };
        strict.create(&in_memory).await.unwrap();
        strict.destroy(&in_memory.id).await.unwrap();
    }
}

fn strict(lab: &Lab) -> NativeBackend {
    NativeBackend::open(NativeConfig {
        state: lab.state.path().join("strict"),
        installation: lab.installation.clone(),
        program: hermetic_embedded::WARDEN,
        require: vec![RequiredLayer::DiskLimit],
        authority: None,
        total: TotalLimits::default(),
    })
    .unwrap()
}

/// The projects above all that belong to somebody else which have limits or files, as the kernel tells.
fn projects(folder: &Path) -> Vec<u32> {
    const ASK: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
f, at = os.open(sys.argv[1], os.O_RDONLY), 0x70000000
while True:
    found = ctypes.create_string_buffer(80)
    if libc.syscall(443, f, ctypes.c_uint((0x800009 << 8) | 2), ctypes.c_uint(at), found): break
    words = struct.unpack("9Q", found.raw[:72])
    at = struct.unpack("2I", found.raw[64:72])[1]
    if words[0] or words[2] or words[3] or words[5]: print(at)
    at += 1
"#;
    let asked = Command::new("python3")
        .args(["-c", ASK])
        .arg(folder)
        .output()
        .unwrap();
    assert!(
        asked.status.success(),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
    let said = String::from_utf8(asked.stdout).unwrap();
    said.lines().map(|line| line.parse().unwrap()).collect()
}
