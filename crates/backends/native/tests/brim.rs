//! Tables of the whole host, filled to the brim by one sandbox. Only on a machine of the tests' own,
//! whose tables are made small for it: everybody else on the host would lack them too.

use std::fs;

use hermetic_native::EndReason;
use hermetic_sandbox::{Backend, SandboxSpec};
use hermetic_types::SandboxLimits;
use hermetic_warden::protocol::RunRequest;

use crate::lab::{Lab, as_root, sh, until};

const OWN_MACHINE: &str = "HERMETIC_TEST_OWN_MACHINE";

/// A number of the kernel's, made small and put back.
struct Lowered {
    file: &'static str,
    before: String,
}

impl Lowered {
    fn to(file: &'static str, value: &str) -> Self {
        let before = fs::read_to_string(file).unwrap();
        fs::write(file, value).unwrap();
        Self { file, before }
    }
}

impl Drop for Lowered {
    fn drop(&mut self) {
        let _ = fs::write(self.file, &self.before);
    }
}

fn on_an_own_machine(name: &str, story: impl AsyncFnOnce(&Lab)) {
    if std::env::var_os(OWN_MACHINE).is_none() {
        return eprintln!("SKIP: brim::{name}: needs a machine of its own (`cargo xtask vm`)");
    }
    as_root(name, story);
}

/// The greedy one is ended for this reason, and a neighbour that works meanwhile does not notice.
async fn assert_only_the_greedy_one_ends(lab: &Lab, greedy: &str, modest: &str, why: EndReason) {
    let wide = SandboxSpec {
        limits: SandboxLimits {
            pids: 100,
            open_files: 1024,
            ..SandboxLimits::default()
        },
        ..lab.spec()
    };
    let neighbour = lab.spec();
    let working = lab.create(&neighbour).await.unwrap();
    let warden = lab.create(&wide).await.unwrap();
    let _running = warden
        .run(RunRequest::new(["/usr/bin/python3", "-c", greedy]))
        .await
        .unwrap();
    until("the greedy one is ended", || {
        lab.native.why_ended(&wide.id) == Some(why)
    })
    .await;
    assert_eq!(sh(&working, modest).await.text, "works\n");
    assert_eq!(lab.native.why_ended(&neighbour.id), None);
    lab.native.destroy(&wide.id).await.unwrap();
    lab.native.destroy(&neighbour.id).await.unwrap();
}

#[test]
fn who_fills_the_hosts_open_files_is_ended() {
    on_an_own_machine("who_fills_the_hosts_open_files_is_ended", async |lab| {
        let _few = Lowered::to("/proc/sys/fs/file-max", "16000");
        let greedy = "import os, time\nfor _ in range(40):\n if os.fork() == 0:\n  try:\n   while True: os.open('/dev/null', 0)\n  except OSError: time.sleep(1000)\ntime.sleep(1000)";
        let modest =
            "for i in $(seq 20); do cat /etc/hostname >/dev/null || echo LACKED; done; echo works";
        assert_only_the_greedy_one_ends(lab, greedy, modest, EndReason::OpenFiles).await;
    });
}

#[test]
fn who_fills_the_hosts_tcp_buffers_is_ended() {
    on_an_own_machine("who_fills_the_hosts_tcp_buffers_is_ended", async |lab| {
        let _few = Lowered::to("/proc/sys/net/ipv4/tcp_mem", "4096 6144 8192");
        let greedy = "import socket, time\nl = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(200)\nheld = []\nfor _ in range(150):\n a = socket.create_connection(l.getsockname()); b, _ = l.accept(); held.append((a, b))\n a.setblocking(False)\n try:\n  while True: a.send(b'x' * 65536)\n except OSError: pass\ntime.sleep(1000)";
        let modest = "python3 -c \"import socket\nl = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen()\na = socket.create_connection(l.getsockname()); b, _ = l.accept()\na.sendall(b'x' * 100000); a.close()\nn = 0\nwhile True:\n p = b.recv(65536)\n if not p: break\n n += len(p)\nprint('works' if n == 100000 else n)\"";
        assert_only_the_greedy_one_ends(lab, greedy, modest, EndReason::TcpBuffers).await;
    });
}
