//! What a sandbox in an instance cannot do.

use hermetic_sandbox::conformance::{DOORS, assert_closed, cleared};
use hermetic_sandbox::{Backend, SandboxPersistence, SystemView};
use hermetic_types::Command;
use hermetic_warden::protocol::{ExitState, PathAt};
use tokio_util::sync::CancellationToken;

use crate::lab::{sh, stories};

stories! {
    /// As root, an instance by itself leaves the host's settings within reach: whoever writes this
    /// one runs programs on the host.
    async fn the_hosts_settings_are_out_of_reach(lab: &Lab) {
        let before = std::fs::read("/proc/sys/kernel/core_pattern").unwrap();
        let said = lab.run("echo '|/x' > /proc/sys/kernel/core_pattern; echo b > /proc/sysrq-trigger; id -u").await;
        assert_eq!(std::fs::read("/proc/sys/kernel/core_pattern").unwrap(), before);
        assert!(said.ends_with("1000\n"), "{said}");
    }

    async fn no_power_is_left(lab: &Lab) {
        let said = lab.run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; cat /proc/self/uid_map").await;
        for line in said.lines().filter(|line| line.starts_with("Cap")) {
            assert!(line.ends_with("0000000000000000"), "{line}");
        }
        assert!(said.contains("NoNewPrivs:\t1"), "{said}");
        assert!(said.contains("Seccomp:\t2"), "{said}");
        let host = said.lines().last().unwrap().split_whitespace().nth(1).unwrap();
        assert_ne!(host, "0", "the sandbox is root outside");
    }

    async fn every_door_is_closed(lab: &Lab) {
        assert_closed(&lab.run(&format!("python3 - <<'END'\n{DOORS}\nEND")).await);
    }

    async fn it_has_loopback_and_no_other_way_out(lab: &Lab) {
        let said = lab.run("cat /proc/net/dev /proc/net/route /proc/net/unix | grep -vE 'lo:|face|Inter|Iface|Num'; cat /etc/resolv.conf").await;
        assert!(!said.contains("eth") && !said.contains("00000000\t"), "{said}");
        assert!(said.contains("127.0.0.1"), "{said}");
    }

    async fn nothing_of_the_host_or_the_house_is_there(lab: &Lab) {
        let marker = lab.folder.path().join("marker");
        std::fs::write(&marker, "secret").unwrap();
        let said = lab.run(&format!(
            "cat {}; ls -A /.hermetic /sys; cat /proc/[0-9]*/comm; env",
            marker.display()
        )).await;
        assert!(!said.contains("secret"), "{said}");
        assert!(!said.contains("appinit") && !said.contains("starter"), "{said}");
        assert!(!said.contains("APPTAINER") && !said.contains("SINGULARITY"), "{said}");
    }

    /// A runtime sources them before it starts anything, outside of any cage.
    async fn an_images_own_scripts_are_not_run(lab: &Lab) {
        let image = lab.folder.path().join("image");
        for place in ["dev", "etc", "home", "proc", "run", "sys", "tmp", "usr", "var", ".singularity.d/env"] {
            std::fs::create_dir_all(image.join(place)).unwrap();
        }
        let script = image.join(".singularity.d/env/99-planted.sh");
        std::fs::write(script, "echo ran > /etc/planted\n").unwrap();
        let mut spec = lab.spec();
        spec.system = SystemView::Rootfs(image);
        let sandbox = lab.create(&spec).await;
        let etc = sandbox.warden().list_dir(PathAt::anywhere("/etc")).await.unwrap();
        assert!(!etc.iter().any(|entry| entry.name.0 == b"planted"), "{etc:?}");
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn the_image_cannot_be_changed(lab: &Lab) {
        let said = lab.run("echo x > /usr/bin/planted; mount -t tmpfs x /mnt; unshare -U true; mknod /tmp/sda b 8 0; find / -xdev -perm -4000 -newer /proc/1 2>/dev/null | head -1; ls /dev").await;
        assert!(!std::path::Path::new(&crate::lab::image()).join("usr/bin/planted").exists());
        for device in ["kvm", "sda", "vda", "fuse", "mem", "kmsg"] {
            assert!(!said.lines().any(|line| line == device), "{said}");
        }
        assert!(!said.contains("unshare: ok"), "{said}");
    }

    /// Looking through files is done by the program itself, started once more.
    async fn the_program_inside_can_start_itself_again(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let command = Command::words(["/proc/self/exe", "no-such-role"]);
        let never = CancellationToken::new();
        let finished = sandbox.run(cleared(command), 1 << 10, &never).await.unwrap();
        // It runs, and does not know what it is to be.
        assert_eq!(finished.ended.status, ExitState::Exited(64));
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn kept_files_are_in_the_overlay_and_go_with_the_sandbox(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > note; echo mine > ~/note").await;
        let scratch = lab.folder.path().join("scratch");
        let overlay = std::fs::read_dir(&scratch).unwrap().next().unwrap().unwrap().path();
        assert!(overlay.join("upper/workspace/note").exists());
        lab.backend.destroy(&spec.id).await.unwrap();
        assert!(!overlay.exists());
    }
}
