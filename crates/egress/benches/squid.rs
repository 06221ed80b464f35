//! Squid, where it is installed, doing the same job.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Squid {
    process: Child,
    pub(crate) port: u16,
    _folder: tempfile::TempDir,
}

impl Squid {
    pub(crate) fn start(origin: u16) -> Option<Self> {
        let program = ["/usr/sbin/squid", "/usr/local/sbin/squid"]
            .into_iter()
            .map(PathBuf::from)
            .find(|p| p.is_file())?;
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let service = format!("egressbench{}", std::process::id());
        let config = format!(
            "http_port 127.0.0.1:{port}\npid_filename none\ncache deny all\naccess_log none\ncache_log /dev/null\n\
             acl there port {origin}\nacl host dstdomain -n localhost\n\
             http_access allow CONNECT host there\nhttp_access deny all\nshutdown_lifetime 0 seconds\n"
        );
        let file = folder.path().join("squid.conf");
        std::fs::write(&file, config).unwrap();
        let process = Command::new(program)
            .args(["-N", "-n", &service, "-f"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let squid = Self {
            process,
            port,
            _folder: folder,
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline {
                println!("squid: does not start, not measured");
                return None;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(squid)
    }
}

impl Drop for Squid {
    fn drop(&mut self) {
        // Asked to go, it takes its shared memory along.
        if let Some(process) = rustix::process::Pid::from_raw(self.process.id().cast_signed()) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.process.wait();
    }
}
