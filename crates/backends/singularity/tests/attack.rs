//! Ways out of an instance and into its house, each tried.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use hermetic_sandbox::{Backend, NetworkMode, SandboxPersistence};

use crate::lab::{sh, stories};

stories! {
    async fn the_system_cannot_be_written(lab: &Lab) {
        let said = lab.run(r#"
for f in /x /usr/x /etc/x /etc/passwd /etc/resolv.conf /etc/hosts /bin/x /dev/x /.singularity.d/x /.singularity.d/startscript /.hermetic/x /proc/sys/kernel/hostname /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/irq/default_smp_affinity /proc/self/oom_score_adj.x /sys/x /home/x /var/x /opt/x; do
  if ( : > $f ) 2>/dev/null; then [ $f = /proc/sysrq-trigger ] && [ -c $f ] && continue; echo "WROTE $f"; fi
done
chmod 777 /etc /usr / 2>/dev/null && echo CHANGED
mknod /tmp/disk b 254 0 2>/dev/null && echo DEVICE
mknod /workspace/mem c 1 1 2>/dev/null && echo DEVICE
rm -rf /usr/bin/true 2>/dev/null; [ -x /usr/bin/true ] && echo there
"#).await;
        assert_eq!(said, "there\n");
    }

    async fn the_kernels_insides_are_hidden(lab: &Lab) {
        let said = lab.run(r#"
for f in cmdline config.gz interrupts iomem kallsyms kcore keys key-users kmsg modules partitions sched_debug slabinfo softirqs timer_list vmallocinfo kpagecount mtrr latency_stats; do
  [ -e /proc/$f ] && head -c 100 /proc/$f 2>/dev/null | grep -q . && echo "READ $f"
done
for d in acpi asound scsi driver; do ls /proc/$d 2>/dev/null | grep . && echo "LISTED $d"; done
ls -A /sys; ls /sys/fs 2>/dev/null; cat /proc/1/environ /proc/1/maps /proc/1/mem 2>/dev/null | head -c 10
ls -l /proc/1/fd /proc/1/root/ 2>/dev/null | grep -v total
dmesg 2>/dev/null | head -1
ls /dev | sort | tr '\n' ' '
"#).await;
        let harmless = "console fd full null ptmx pts random shm stderr stdin stdout tty urandom zero";
        for device in said.split_whitespace() {
            assert!(harmless.split(' ').any(|known| known == device), "{said}");
        }
    }

    async fn the_warden_and_the_house_cannot_be_touched(lab: &Lab) {
        let said = lab.run(r#"
(cat /bin/true > /proc/1/exe) 2>/dev/null && echo WROTE
(exec 3<>/proc/1/exe) 2>/dev/null && echo OPENED
(exec 3<>/proc/1/mem) 2>/dev/null && echo MEMORY
for signal in KILL STOP SEGV ABRT; do kill -$signal 1; done
echo alive
cat /proc/[0-9]*/comm | sort -u | grep -iE 'appinit|apptainer|singularity|starter|sinit' && echo HOUSE
ls /proc | grep -cE '^[0-9]+$'
"#).await;
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some("alive"), "{said}");
        let seen: u32 = lines.next().unwrap().parse().unwrap_or_else(|_| panic!("{said}"));
        assert!(seen < 12, "{said}");
    }

    async fn killing_everything_costs_the_killer_alone(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "(setsid sleep 6127 >/dev/null 2>&1 &); kill -KILL -1").await;
        assert_eq!(sh(&sandbox, "pgrep -fc '[s]leep 6127'; echo alive").await, "0\nalive\n");
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn setuid_programs_give_nothing(lab: &Lab) {
        let said = lab.run("cp /bin/sh /tmp/s && chmod 4755 /tmp/s && /tmp/s -p -c 'id -u'; (su root -c id || mount -t tmpfs none /tmp || unshare -Ur id || nsenter -t 1 -m id || chroot / id) >/dev/null 2>&1 && echo OUT").await;
        assert_eq!(said, "1000\n");
    }

    async fn no_descriptor_is_inherited(lab: &Lab) {
        let said = lab.run("ls /proc/self/fd | wc -l; readlink /proc/$$/fd/* | sed 's/[0-9]*//g' | sort -u").await;
        assert_eq!(said, "4\n/dev/null\npipe:[]\n");
    }

    async fn sockets_of_the_host_are_out_of_reach(lab: &Lab) {
        let name = format!("hermetic-test-{}", lab.installation);
        let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let path = lab.folder.path().join("socket");
        let _named = UnixListener::bind(&path).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = lab.python(&format!(r#"
import os, socket
def tried(family, address):
    try: socket.socket(family).connect(address); print("CONNECTED", address)
    except OSError as e: print(e.errno)
tried(socket.AF_UNIX, "\0{name}")
tried(socket.AF_UNIX, "{path}")
tried(socket.AF_INET, ("127.0.0.1", {port}))
tried(socket.AF_INET, ("192.0.2.1", 80))
print(open("/proc/net/unix").read().count("hermetic-test"), open("/proc/net/route").read().count("\n"))
for kind in (socket.SOCK_RAW,):
    try: socket.socket(socket.AF_INET, kind, 1); print("RAW")
    except OSError as e: print(e.errno)
try: print(socket.getaddrinfo("localhost.invalid", 80))
except OSError: print("unresolved")
"#, path = path.display())).await;
        assert_eq!(said, "111\n2\n111\n101\n0 1\n1\nunresolved\n");
    }

    /// What a runtime shows by default: the home, the current folder, temporary files, the host's
    /// names, its environment.
    async fn nothing_that_a_runtime_shows_by_default_is_there(lab: &Lab) {
        let mark = format!("hermetic-mark-{}", lab.installation);
        let here = tempfile::Builder::new().prefix(&mark).tempfile_in("/tmp").unwrap();
        let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let said = lab.run(&format!(
            "ls -A /tmp /var/tmp /run /dev/shm /workspace /home/agent; ls -A /tmp | grep -c {mark}; \
             ls -d {} 2>/dev/null; hostname; cat /etc/hostname; cat /etc/resolv.conf; \
             cut -d: -f3 /proc/self/cgroup | sort -u; cut -d: -f1 /etc/passwd | sort | tr '\\n' ' '; echo; \
             cat /proc/self/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep -ciE 'cargo|nextest|tmpdir|rust|apptainer|singularity|rootfs'",
            std::env::current_dir().unwrap().display(),
        )).await;
        drop(here);
        let (folders, rest) = said.split_once("/workspace:\n").unwrap();
        assert_eq!(folders, "/dev/shm:\n\n/home/agent:\n\n/run:\n\n/tmp:\n\n/var/tmp:\n\n");
        let lines: Vec<&str> = rest.lines().collect();
        assert_eq!(lines, ["0", "hermetic", "hermetic", "nameserver 127.0.0.1", "/", lines[5], "0"], "{said} ({kernel})");
        // The image's own users; nobody of the host's is added to them.
        let image = std::fs::read_to_string(std::path::Path::new(&crate::lab::image()).join("etc/passwd")).unwrap();
        let mut names: Vec<&str> = image.lines().filter_map(|line| line.split(':').next()).collect();
        names.sort_unstable();
        assert_eq!(lines[5].split_whitespace().collect::<Vec<_>>(), names);
    }

    async fn nothing_persists_beyond_its_end(lab: &Lab) {
        let mut spec = lab.spec();
        spec.persistence = SandboxPersistence::Kept;
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo mine > /workspace/note; echo mine > ~/note; echo mine > /tmp/note; (setsid sleep 6127 >/dev/null 2>&1 &); chmod 000 /workspace; mkdir -p ~/a/b/c; chmod 000 ~/a").await;
        drop(sandbox);
        lab.backend.destroy(&spec.id).await.unwrap();
        let sandbox = lab.create(&spec).await;
        let said = sh(&sandbox, "ls -A /workspace ~ /tmp; pgrep -fc '[s]leep 6127'").await;
        assert_eq!(said, "/home/agent:\n\n/tmp:\n\n/workspace:\n0\n");
        lab.backend.destroy(&spec.id).await.unwrap();
    }

    async fn the_way_out_is_a_port_of_its_own_and_nothing_else(lab: &Lab) {
        let mut spec = lab.spec();
        spec.network = NetworkMode::Proxied { port: 3128 };
        let sandbox = lab.create(&spec).await;
        let _exit = sandbox.take_exit().expect("made before anything ran inside");
        let said = sh(&sandbox, "(exec 3<>/dev/tcp/127.0.0.1/3128) && echo reached; (exec 3<>/dev/tcp/192.0.2.1/80) 2>&1 | grep -o unreachable | sort -u; (exec 3<>/dev/tcp/127.0.0.1/22) 2>&1 | grep -o refused | sort -u").await;
        assert_eq!(said, "reached\nunreachable\nrefused\n");
        lab.backend.destroy(&spec.id).await.unwrap();
    }
}
