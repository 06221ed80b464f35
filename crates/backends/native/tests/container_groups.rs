//! A gateway in a container whose engine made its cgroup writable, as Docker does with
//! `writable-cgroups=true`: the group belongs to the container's user and is the top of all it sees.
//!
//! The engine's part is played by the kernel's own means: a group with a limit, given to a plain user,
//! in a cgroup namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hermetic_sandbox::{Backend, LayerState};
use hermetic_types::{InstallationId, SandboxLimits};
use rustix::process::getuid;

use crate::lab::{greet, open, sh, spec};

/// Set in the process that plays the gateway, and in one that the engine starts beside it.
const ROLE: &str = "HERMETIC_TEST_IN_CONTAINER";
const USER: u32 = 61_236;
const CANNOT: i32 = 77;

const CONTAINER: &str = r#"
group=$1; user=$2; shift 2
echo $$ >"$group/cgroup.procs" || exit 77
exec unshare --cgroup --mount --propagation private sh -c '
    # The same file system is not mounted twice in one place.
    umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup || exit 77
    user=$1; shift
    exec setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --bounding-set=-all "$@"
' sh "$user" "$@"
"#;

#[test]
fn a_container_that_may_divide_its_cgroup_keeps_limits_by_the_kernel() {
    const NAME: &str =
        "container_groups::a_container_that_may_divide_its_cgroup_keeps_limits_by_the_kernel";
    match std::env::var(ROLE).as_deref() {
        Ok("gateway") => return gateway(NAME),
        Ok(_) => return beside_it(),
        Err(_) => {}
    }
    if !getuid().is_root() {
        return eprintln!("SKIP: {NAME}: needs root");
    }
    let group = match EnginesGroup::make() {
        Ok(group) => group,
        Err(why) => return eprintln!("SKIP: {NAME}: {why}"),
    };
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(USER), Some(USER)).unwrap();
    let told = Command::new("sh")
        .args(["-c", CONTAINER, "sh"])
        .arg(&group.0)
        .arg(USER.to_string())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(ROLE, "gateway")
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&told.stdout);
    let errors = String::from_utf8_lossy(&told.stderr);
    if told.status.code() == Some(CANNOT) {
        return eprintln!(
            "SKIP: {NAME}: no container can be played ({})",
            errors.trim()
        );
    }
    assert!(told.status.success(), "{text}\n{errors}");
}

fn gateway(name: &str) {
    let state = tempfile::tempdir().unwrap();
    let installation = InstallationId::random();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let native = open(state.path(), &installation);
        assert_kept(&native).await;
        let mut spec = spec(&installation);
        spec.limits = SandboxLimits {
            memory_bytes: 128 << 20,
            disk_bytes: 16 << 20,
            ..SandboxLimits::default()
        };
        let warden = greet(native.create(&spec).await.unwrap()).await;
        // Memory that no process has, so that nobody but a cgroup stops it at once and leaves the rest alone.
        let hog = "python3 -c 'import os
for _ in range(40):
    f = os.memfd_create(\"x\")
    for _ in range(10): os.write(f, b\"x\" * (1 << 20))'; echo $?; echo alive";
        let said = sh(&warden, hog).await;
        assert!(said.text.ends_with("137\nalive\n"), "{}", said.text);
        native.destroy(&spec.id).await.unwrap();
    });
    // The container's own limit is not the container's to raise.
    assert!(fs::write("/sys/fs/cgroup/memory.max", "max").is_err());
    let beside = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(ROLE, "beside")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&beside.stderr);
    assert!(beside.status.success(), "beside the gateway:\n{errors}");
}

/// `hermetic doctor`, say, started by the engine: it finds itself in the gateway's leaf.
fn beside_it() {
    let state = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(assert_kept(&open(state.path(), &InstallationId::random())));
}

async fn assert_kept(native: &hermetic_native::NativeBackend) {
    for layer in native.readiness().await.layers {
        if matches!(layer.name, "memory limit" | "process limit") {
            assert_eq!(
                layer.state,
                LayerState::Active,
                "{}: {}",
                layer.name,
                layer.detail
            );
        }
    }
}

/// What an engine makes for a container with a limit. Removed with all that is below.
struct EnginesGroup(PathBuf);

impl EnginesGroup {
    fn make() -> Result<Self, String> {
        let top = Path::new("/sys/fs/cgroup");
        let words = |error: std::io::Error| format!("no cgroup can be made ({error})");
        let offered = fs::read_to_string(top.join("cgroup.controllers")).map_err(words)?;
        if !["memory", "pids"].iter().all(|name| offered.contains(name)) {
            return Err("no cgroup of version 2 with memory and pids".to_owned());
        }
        // Where systemd runs, it has enabled them long ago.
        fs::write(top.join("cgroup.subtree_control"), "+memory +pids").map_err(words)?;
        let group = Self(top.join(format!("hermetic-test-{}", std::process::id())));
        fs::create_dir(&group.0).map_err(words)?;
        fs::write(group.0.join("memory.max"), "1G").map_err(words)?;
        for file in [
            "",
            "cgroup.procs",
            "cgroup.subtree_control",
            "cgroup.threads",
        ] {
            std::os::unix::fs::chown(group.0.join(file), Some(USER), Some(USER)).map_err(words)?;
        }
        Ok(group)
    }
}

impl Drop for EnginesGroup {
    fn drop(&mut self) {
        let _ = Command::new("find")
            .arg(&self.0)
            .args(["-depth", "-type", "d", "-exec", "rmdir", "{}", ";"])
            .output();
    }
}
