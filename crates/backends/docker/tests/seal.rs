//! Ways out of a container, each tried; and what it can learn of its host.

use std::net::TcpListener;

use hermetic_docker::{ContainerOptions, ContainerUser, ContainerVolume, RootView};
use hermetic_sandbox::conformance::{DOORS, assert_closed};
use hermetic_sandbox::{Backend, BackendError, HostMount, LayerState, MountMode};

use crate::lab::{is_podman, is_rootless, keeps_limits, sh, stories};

stories! {
    async fn no_capability_is_left_in_any_set(lab: &Lab) {
        let said = lab.run("grep -E '^Cap' /proc/self/status | awk '{print $2}' | sort -u; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | awk '{print $2}'; grep -E '^Cap(Bnd|Eff)' /proc/1/status | awk '{print $2}' | sort -u").await;
        assert_eq!(said, "0000000000000000\n1\n2\n0000000000000000\n");
    }

    async fn odd_system_calls_and_sockets_are_refused(lab: &Lab) {
        assert_closed(&lab.run(&format!("exec python3 - <<'PYTHON'\n{DOORS}\nPYTHON")).await);
    }

    async fn it_has_loopback_and_no_other_way_out(lab: &Lab) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = lab.run(&format!(r#"exec python3 - <<'P'
import os, socket
print(sorted(os.listdir("/sys/class/net")), open("/proc/net/route").read().count("\n"))
try: socket.create_connection(("127.0.0.1", {port}), 2); print("CONNECTED")
except OSError as e: print(e.errno)
try: print(socket.getaddrinfo("localhost.invalid", 80))
except OSError: print("unresolved")
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
socket.create_connection(s.getsockname()); print("own loopback")
P"#)).await;
        assert_eq!(said, "['lo'] 1\n111\nunresolved\nown loopback\n");
    }

    async fn the_hosts_resolvers_are_not_told(lab: &Lab) {
        if is_podman().await {
            return eprintln!("SKIP: the_hosts_resolvers_are_not_told: Podman tells them, with no way to one");
        }
        let said = lab.run("grep -v '^#' /etc/resolv.conf | grep -v '^$'; hostname; cut -d: -f3 /proc/self/cgroup | sort -u").await;
        let mut lines = said.lines();
        for line in lines.by_ref().take_while(|line| *line != "hermetic") {
            let known = ["nameserver 127.0.0.1", "search .", "options ndots:0"];
            assert!(known.contains(&line), "{said}");
        }
        assert_eq!(lines.collect::<Vec<_>>(), ["/"], "{said}");
    }

    async fn the_kernel_cannot_be_touched(lab: &Lab) {
        let said = lab.run(r#"
for f in /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper /sys/fs/cgroup/x; do ( : > $f ) 2>/dev/null && [ ! -c $f ] && echo "WROTE $f"; done
for f in kcore keys timer_list sched_debug; do head -c 10 /proc/$f 2>/dev/null | grep -q . && echo "READ $f"; done
mknod /tmp/disk b 254 0 2>/dev/null && echo DEVICE
mount -t tmpfs none /mnt 2>/dev/null && echo MOUNTED
(unshare -Ur true || unshare -m true || nsenter -t 1 -m true || chroot / true || dmesg) >/dev/null 2>&1 && echo OUT
ls /dev | grep -E 'kvm|mem$|sd|vd|nvme|fuse|tun'
echo done"#).await;
        assert_eq!(said, "done\n");
    }

    async fn setuid_programs_give_nothing(lab: &Lab) {
        if is_rootless() {
            return eprintln!("SKIP: setuid_programs_give_nothing: whoever runs the engine is root inside");
        }
        let lab = lab.with(|config| config.options.user = ContainerUser::Host { uid: 1234, gid: 1234 });
        let said = lab.run("id -u; id -g; for p in /bin/su /usr/bin/newgrp /usr/bin/passwd; do [ -u $p ] && echo \"$p is setuid\" >/dev/null; done; su root -c id >/dev/null 2>&1 && echo ROOT; echo mine > /workspace/f && cat /workspace/f; echo $HOME; touch /etc/x 2>/dev/null && echo WROTE; ls -ld /.hermetic/warden | cut -c1-10; rm -f /.hermetic/warden 2>/dev/null; [ -x /.hermetic/warden ] && echo there").await;
        assert_eq!(said, "1234\n1234\nmine\n/workspace\n-r-xr-xr-x\nthere\n");
    }

    async fn an_image_that_runs_as_root_does_not(lab: &Lab) {
        let lab = lab.with(|config| config.options.user = ContainerUser::NeverRoot);
        let work = "id -u; id -g; id -G; echo mine > note && cat note; cd && pwd; echo $USER; mkdir -p .cache/x && touch /tmp/x; python3 -c 'import getpass, os; print(getpass.getuser(), os.path.expanduser(\"~\"))'; (touch /etc/x || touch /usr/x || touch /.hermetic/x || rm -f /.hermetic/warden) 2>/dev/null && echo WROTE; grep Uid /proc/1/status | cut -f2";
        let mut seen = Vec::new();
        for _ in 0..2 {
            let said = lab.run(work).await;
            let lines: Vec<&str> = said.lines().collect();
            let id: u32 = lines[0].parse().unwrap();
            assert!(id >= 1000, "{said}");
            assert_eq!(lines[1..], [lines[0], lines[0], "mine", "/workspace", "agent", "agent /workspace", lines[0]], "{said}");
            seen.push(id);
        }
        assert!(seen[0] != seen[1] || seen[0] == 1000, "{seen:?}");
        let readiness = lab.docker.readiness().await;
        let identity = readiness.layers.iter().find(|layer| layer.name == "identity").unwrap();
        assert_eq!(identity.state, LayerState::Active, "{}", identity.detail);
        assert_eq!(readiness.missing().map(|layer| &layer.detail), None);
    }

    async fn a_kept_container_stays_who_it_is(lab: &Lab) {
        let lab = lab.with(|config| config.options.user = ContainerUser::NeverRoot);
        let mut spec = lab.spec();
        spec.persistence = hermetic_sandbox::SandboxPersistence::Kept;
        let sandbox = lab.create(&spec).await;
        let before = sh(&sandbox, "id -u; echo mine > note").await;
        lab.docker.stop(&spec.id).await.unwrap();
        // Also for a gateway that was told otherwise since.
        let other = lab.with(|config| config.options.user = ContainerUser::Named("root".to_owned()));
        let sandbox = crate::lab::greet(&spec, other.docker.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "id -u; echo more >> note && stat -c %u note").await, before.repeat(2));
        lab.docker.destroy(&spec.id).await.unwrap();
    }

    async fn who_chooses_root_is_told(lab: &Lab) {
        let lab = lab.with(|config| config.options.user = ContainerUser::Named("root".to_owned()));
        assert_eq!(lab.run("id -u; grep CapEff /proc/self/status | cut -f2").await, "0\n0000000000000000\n");
        let readiness = lab.docker.readiness().await;
        let identity = readiness.layers.iter().find(|layer| layer.name == "identity").unwrap();
        assert!(identity.state == LayerState::Weaker || identity.detail.contains("outside"), "{}", identity.detail);
    }

    async fn an_image_that_works_as_its_own_user_only_is_said(lab: &Lab) {
        if is_podman().await {
            eprintln!("SKIP: an_image_that_works_as_its_own_user_only_is_said: Podman's socket makes no image of a container");
            return;
        }
        // Its shell is root's alone.
        let words = ["run", "-d", "--network", "none"];
        let made = crate::lab::docker(&words, &[&crate::lab::image(), "chmod", "-R", "go-rwx", "/usr/bin"]).await;
        crate::lab::docker(&["wait"], &[made.trim()]).await;
        let image = format!("hermetic-test:{}", hermetic_types::SandboxId::random());
        crate::lab::docker(&["commit"], &[made.trim(), &image]).await;
        crate::lab::docker(&["rm"], &[made.trim()]).await;
        let of = |user: ContainerUser| lab.with(|config| {
            config.image.clone_from(&image);
            config.options.user = user;
        });
        let readiness = of(ContainerUser::NeverRoot).docker.readiness().await;
        let missing = readiness.missing().unwrap();
        assert_eq!(missing.name, "image");
        assert!(missing.remedy.as_deref().unwrap().contains("docker_user: image"), "{missing:?}");
        let readiness = of(ContainerUser::Image).docker.readiness().await;
        assert_eq!(readiness.missing().map(|layer| &layer.detail), None);
        crate::lab::docker(&["rmi"], &[&image]).await;
    }

    async fn a_read_only_root_is_one(lab: &Lab) {
        let lab = lab.with(|config| config.options.root = RootView::ReadOnly);
        let said = lab.run("for d in / /usr /etc /var /home; do touch $d/x 2>/dev/null && echo WROTE $d; done; for d in /tmp /workspace /root /run; do touch $d/x || echo NO $d; done; pwd").await;
        assert_eq!(said, "/workspace\n");
        let mut kept = lab.spec();
        kept.persistence = hermetic_sandbox::SandboxPersistence::Kept;
        let refused = lab.docker.create(&kept).await.unwrap_err();
        assert!(matches!(refused, BackendError::Refused { .. }), "{refused}");
    }

    async fn scratch_is_sized_and_its_own(lab: &Lab) {
        let said = lab.run("for d in /tmp /var/tmp /run; do stat -f -c '%T %b %S' $d; grep \" $d \" /proc/mounts | grep -c nosuid; done; ls -A /tmp /var/tmp /workspace").await;
        assert_eq!(said, "tmpfs 131072 4096\n1\ntmpfs 65536 4096\n1\ntmpfs 16384 4096\n1\n/tmp:\n\n/var/tmp:\n\n/workspace:\n");
    }

    async fn what_is_mounted_is_what_was_asked(lab: &Lab) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("note"), "from outside").unwrap();
        let text = format!("{}:/data:ro", folder.path().display());
        let volume = ContainerVolume::parse(&text).unwrap().unwrap();
        let lab = lab.with(|config| config.options.volumes = vec![volume]);
        let said = lab.run("cat /data/note; touch /data/x 2>/dev/null && echo WROTE").await;
        assert_eq!(said, "from outside");

        let mut spec = lab.spec();
        spec.mounts = vec![HostMount {
            source: "/var/run/docker.sock".into(),
            target: "/engine.sock".into(),
            mode: MountMode::ReadWrite,
        }];
        let refused = lab.docker.create(&spec).await.unwrap_err();
        assert!(matches!(refused, BackendError::Refused { .. }), "{refused}");
        assert_eq!(lab.docker.list().await.unwrap(), []);
    }

    async fn a_volume_of_the_image_is_bounded(lab: &Lab) {
        let image = crate::lab::derive(&["VOLUME /data", "USER nobody", "HEALTHCHECK CMD touch /tmp/checked"]).await;
        let mut spec = lab.spec();
        spec.system = hermetic_sandbox::SystemView::Image(image.name.clone());
        let said = lab.run_in(&spec, "stat -f -c %T /data; id -un; touch /workspace/x /data/x && echo wrote").await;
        assert_eq!(said, "tmpfs\nnobody\nwrote\n");
        image.remove().await;
    }

    async fn variables_arrive_and_secrets_stay_out_of_the_spec(lab: &Lab) {
        let lab = lab.with(|config| {
            config.options.env.insert("TOKEN".to_owned(), hermetic_types::Secret::new("s3cr3t=1"));
            config.options.env.insert("BOTH".to_owned(), hermetic_types::Secret::new("options"));
        });
        let mut spec = lab.spec();
        spec.env.insert("BOTH".to_owned(), "spec".to_owned());
        assert_eq!(lab.run_in(&spec, "echo $TOKEN $BOTH").await, "s3cr3t=1 spec\n");
    }

    async fn our_certificate_is_trusted_beside_the_images_own(lab: &Lab) {
        let count = r#"exec env -u SSL_CERT_FILE python3 -c '
import ssl
known = ssl.create_default_context().get_ca_certs()
ours = [one for one in known if (("commonName", "hermetic test authority"),) in one["subject"]]
print(len(ours), len(known) > 50)'"#;
        let certificate = crate::lab::certificate("hermetic test authority");
        let trusting = lab.with(|config| config.authority = Some(certificate));
        assert_eq!(trusting.run(count).await, "1 True\n");
        // In a layer of ours, and not in the image.
        assert_eq!(lab.run(count).await, "0 True\n");
    }

    async fn a_neighbours_container_is_not_ours(lab: &Lab) {
        // Somebody else's container that happens to have our kind of name.
        let spec = lab.spec();
        let theirs = crate::lab::stranger(&format!("hermetic-{}", spec.id)).await;
        assert_eq!(lab.docker.list().await.unwrap(), []);
        assert!(lab.docker.connect(&spec.id).await.is_err());
        lab.docker.destroy(&spec.id).await.unwrap();
        let refused = lab.docker.create(&spec).await.unwrap_err();
        assert!(refused.to_string().contains("taken"), "{refused}");
        theirs.is_still_there().await;
        theirs.remove().await;
    }

    async fn the_warden_is_out_of_reach(lab: &Lab) {
        for user in [ContainerUser::Image, ContainerUser::NeverRoot, ContainerUser::Host { uid: 1234, gid: 1234 }] {
            let lab = lab.with(|config| config.options.user = user.clone());
            let said = lab.run(&format!("exec python3 - <<'PYTHON'\n{AT_THE_WARDEN}\nPYTHON")).await;
            assert_eq!(said, "done\n", "{user:?}");
        }
    }

    async fn nothing_is_handed_from_one_life_to_the_next(lab: &Lab) {
        let hide = "touch /tmp/x /var/tmp/x /run/x /dev/shm/x /workspace/x /usr/x; (setsid sleep 600 &) ; ipcmk -M 4096 >/dev/null 2>&1; echo hidden";
        assert_eq!(lab.run(hide).await, "hidden\n");
        let look = "ls /tmp/x /var/tmp/x /run/x /dev/shm/x /workspace/x /usr/x 2>/dev/null; pgrep -c sleep; ipcs -m 2>/dev/null | grep -c 0x; echo looked";
        assert_eq!(lab.run(look).await, "0\n0\nlooked\n");
    }

    async fn memory_in_disguise_is_memory(lab: &Lab) {
        if !keeps_limits() {
            return eprintln!("SKIP: memory_in_disguise_is_memory: the engine keeps no limits here");
        }
        let mut spec = lab.spec();
        spec.limits.memory_bytes = 128 << 20;
        let sandbox = lab.create(&spec).await;
        // In files without a name, in shared memory, in pipes: each is charged to the sandbox.
        for fill in [
            "import os\nf = os.memfd_create(\"x\")\nfor _ in range(400): os.write(f, b\"x\" * (1 << 20))",
            "f = open(\"/dev/shm/x\", \"wb\")\nfor _ in range(400): f.write(b\"x\" * (1 << 20))",
            "import mmap\nm = mmap.mmap(-1, 400 << 20)\nfor i in range(0, 400 << 20, 4096): m[i] = 1",
        ] {
            let ended = crate::lab::finish(&sandbox, &format!("exec python3 -c '{fill}'")).await;
            assert_ne!(ended.code(), 0, "{fill}");
            assert_eq!(sh(&sandbox, "rm -f /dev/shm/x; echo alive").await, "alive\n");
        }
        lab.docker.destroy(&spec.id).await.unwrap();
    }

    async fn what_the_sandbox_replaces_costs_only_itself(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = hermetic_sandbox::SandboxPersistence::Kept;
        let sandbox = lab.create(&spec).await;
        let said = sh(&sandbox, "rm -rf /.hermetic/warden /.hermetic/run; ln -s /etc /.hermetic/run; ln -s /bin/cat /.hermetic/warden; kill -9 1; echo alive; echo kept > /workspace/note").await;
        assert_eq!(said, "alive\n");
        drop(sandbox);
        // The link would now be `cat`: it does not speak our language.
        let link = lab.docker.connect(&spec.id).await;
        if let Ok(link) = link {
            let greeted = hermetic_sandbox::Sandbox::greet(&spec.id, lab.docker.description(), link).await;
            assert!(greeted.is_err());
        }
        lab.docker.stop(&spec.id).await.unwrap();
        let sandbox = crate::lab::greet(&spec, lab.docker.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat /workspace/note").await, "kept\n");
        lab.docker.destroy(&spec.id).await.unwrap();
    }

    async fn another_runtime_holds_too(lab: &Lab) {
        let lab = lab.with(|config| config.options = ContainerOptions { runtime: Some("runsc".to_owned()), ..ContainerOptions::default() });
        let readiness = lab.docker.readiness().await;
        if let Some(layer) = readiness.missing() {
            return eprintln!("SKIP: another_runtime_holds_too: {}: {}", layer.name, layer.detail);
        }
        let said = lab.run("dmesg 2>/dev/null | grep -c -i gvisor; grep CapEff /proc/self/status | awk '{print $2}'; ls /sys/class/net 2>/dev/null | grep -v lo").await;
        assert!(said.ends_with("0000000000000000\n"), "{said}");
    }
}

/// Says whatever a command could do to the first process, whose stdin and stdout are the link. What
/// harms only the sandbox itself (its priority, its place in the kernel's list of whom to kill) is
/// not asked.
const AT_THE_WARDEN: &str = r#"
import ctypes, os, signal, socket, time
libc = ctypes.CDLL(None, use_errno=True)
def can(what, act):
    try: act()
    except (OSError, ValueError): return
    print("COULD", what)
can("read its memory", lambda: open("/proc/1/mem", "rb"))
can("write its memory", lambda: open("/proc/1/mem", "r+b"))
can("see its maps", lambda: open("/proc/1/maps").read(1) or int("no"))
can("see its variables", lambda: open("/proc/1/environ").read(1) or int("no"))
can("see its stack", lambda: open("/proc/1/stack").read(1) or int("no"))
can("speak in its place", lambda: open("/proc/1/fd/1", "wb"))
can("listen in its place", lambda: open("/proc/1/fd/0", "rb"))
can("enter its root", lambda: os.listdir("/proc/1/root"))
can("enter its folder", lambda: os.listdir("/proc/1/cwd"))
can("enter its namespaces", lambda: open("/proc/1/ns/mnt"))
can("overwrite it", lambda: open("/proc/1/exe", "r+b"))
can("limit it", lambda: __import__("resource").prlimit(1, 7, (0, 0)))
for number in [signal.SIGKILL, signal.SIGSTOP]:
    try: os.kill(1, number)
    except OSError: pass
if libc.ptrace(16, 1, 0, 0) == 0: print("COULD trace it")
for fd in range(3, 1024):
    can(f"use a descriptor of its own: {fd}", lambda: os.fstat(fd))
print("done")
"#;
