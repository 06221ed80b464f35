//! What a sandbox can learn or touch of its host and of its neighbours.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use hermetic_native::EarlyStart;
use hermetic_sandbox::Backend;

use crate::lab::{greet, open_starting, sh, stories, until, waiting_cages};

stories! {
    async fn no_descriptor_is_inherited(lab: &Lab) {
        let said = lab.run("ls /proc/self/fd | wc -l; readlink /proc/$$/fd/* | sed 's/[0-9]*//g' | sort -u").await;
        assert_eq!(said.text, "4\n/dev/null\npipe:[]\n");
    }

    async fn one_whose_process_waited_for_it_inherits_nothing_either(lab: &Lab) {
        let native = open_starting(lab.state.path(), &lab.installation, EarlyStart::Always);
        for _ in 0..2 {
            let spec = lab.spec();
            let warden = greet(native.create(&spec).await.unwrap()).await;
            let said = sh(&warden, "ls /proc/self/fd | wc -l; readlink /proc/$$/fd/* | sed 's/[0-9]*//g' | sort -u").await;
            assert_eq!(said.text, "4\n/dev/null\npipe:[]\n");
            until("the next one waits", || waiting_cages() == 1).await;
            native.destroy(&spec.id).await.unwrap();
        }
        drop(native);
        until("nothing waits any more", || waiting_cages() == 0).await;
    }

    async fn only_its_own_processes_are_there(lab: &Lab) {
        let said = lab.run("ls /proc | grep -E '^[0-9]+$' | wc -l; cat /proc/1/comm; [ $$ -lt 50 ] && echo small").await;
        let lines: Vec<&str> = said.text.lines().collect();
        assert!(lines[0].parse::<u32>().unwrap() < 12, "{said:?}");
        assert_eq!(lines[2], "small");
    }

    async fn temporary_files_are_its_own(lab: &Lab) {
        let here = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        let name = here.path().file_name().unwrap().to_str().unwrap();
        let said = lab.run(&format!("ls -A /tmp /var/tmp /run /dev/shm /workspace /home/agent; ls -A /tmp | grep -c {name}")).await;
        assert_eq!(said.text, "/dev/shm:\n\n/home/agent:\n\n/run:\n\n/tmp:\n\n/var/tmp:\n\n/workspace:\n0\n");
    }

    async fn an_abstract_socket_of_the_host_is_out_of_reach(lab: &Lab) {
        let name = format!("hermetic-test-{}", lab.installation);
        let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let said = lab.python(&format!(r#"
import socket
try: socket.socket(socket.AF_UNIX).connect("\0{name}"); print("CONNECTED")
except OSError as e: print(e.errno)
print(open("/proc/net/unix").read().count("hermetic-test"))
"#)).await;
        assert_eq!(said.text, "111\n0\n");
    }

    async fn a_listener_of_the_host_is_out_of_reach(lab: &Lab) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said = lab.python(&format!(r#"
import socket, os
try: socket.create_connection(("127.0.0.1", {port}), 2); print("CONNECTED")
except OSError as e: print(e.errno)
print(sorted(os.listdir("/proc/self/net/dev_snmp6")), open("/proc/net/route").read().count("\n"))
try: print(socket.getaddrinfo("localhost.invalid", 80))
except OSError: print("unresolved")
"#)).await;
        assert_eq!(said.text, "111\n['lo'] 1\nunresolved\n");
    }

    async fn neighbours_share_nothing(lab: &Lab) {
        let (one, two) = (lab.spec(), lab.spec());
        let first = lab.create(&one).await.unwrap();
        let second = lab.create(&two).await.unwrap();
        let made = sh(&first, "echo mine > /tmp/f; echo mine > /workspace/f; ipcmk -M 100 >/dev/null; python3 -c 'import socket,time\ns=socket.socket(socket.AF_UNIX); s.bind(\"\\0here\"); s.listen()'; echo ok").await;
        assert_eq!(made.text, "ok\n");
        let seen = sh(&second, "cat /tmp/f /workspace/f 2>/dev/null; ipcs -m | grep -c 0x; for n in ipc mnt net pid uts user cgroup; do readlink /proc/self/ns/$n; done").await;
        let own = sh(&first, "for n in ipc mnt net pid uts user cgroup; do readlink /proc/self/ns/$n; done").await;
        let (count, theirs) = seen.text.split_once('\n').unwrap();
        assert_eq!(count, "0");
        for (one, two) in own.text.lines().zip(theirs.lines()) {
            assert_ne!(one, two);
        }
        lab.native.destroy(&one.id).await.unwrap();
        lab.native.destroy(&two.id).await.unwrap();
    }

    async fn the_hosts_files_and_names_are_not_there(lab: &Lab) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let said = lab.run("ls /root /etc/shadow /etc/ssh /etc/gitconfig /var/lib /var/log /boot /opt /srv /mnt 2>/dev/null; ls /home; cat /etc/resolv.conf /etc/hostname; hostname; cat /proc/self/cgroup | cut -d: -f3 | sort -u; wc -l < /etc/passwd").await;
        assert_eq!(said.text, "agent\nhermetic\nhermetic\n/\n3\n", "{host}");
    }

    async fn the_launchers_environment_stays_outside(lab: &Lab) {
        // The test runner's own variables are the launcher's.
        let said = lab.run("cat /proc/self/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep -ciE 'cargo|nextest|tmpdir|rust'").await;
        assert_eq!(said.text, "0\n");
    }
}
