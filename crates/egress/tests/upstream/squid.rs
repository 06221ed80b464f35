//! A real Squid with a login, as a company has it.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::*;
use crate::lab::TEST_TIMEOUT;

const PROGRAM: &str = "/usr/sbin/squid";

struct Squid {
    process: Child,
    at: SocketAddr,
    folder: tempfile::TempDir,
}

impl Squid {
    /// Knows the names of `hosts`, and lets the login of [`LOGIN`] through to what `rules` say.
    async fn start(hosts: &[(&str, SocketAddr)], rules: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let names: String = hosts
            .iter()
            .map(|(name, at)| format!("{} {name}\n", at.ip()))
            .collect();
        std::fs::write(path("hosts"), names).unwrap();
        let (user, password) = LOGIN.split_once(':').unwrap();
        // Reads "user password" on each line, as Squid hands it over.
        let checker = format!(
            "#!/bin/sh\nwhile read -r user password; do\n  if [ \"$user $password\" = '{user} {password}' ]; then\n    \
             echo OK\n  else\n    echo ERR\n  fi\ndone\n"
        );
        std::fs::write(path("check"), checker).unwrap();
        // Under root Squid becomes another user, who has to get here as well.
        for (name, mode) in [("", 0o755), ("check", 0o755), ("hosts", 0o644)] {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path(name), mode).unwrap();
        }
        let at = {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            listener.local_addr().unwrap()
        };
        let config = format!(
            "http_port {at}\npid_filename none\ncache deny all\naccess_log none\ncache_log /dev/null\n\
             cache_store_log none\nhosts_file {hosts}\ndns_nameservers 127.0.0.1\nshutdown_lifetime 0 seconds\n\
             auth_param basic program /bin/sh {check}\nauth_param basic children 1\n\
             acl known proxy_auth REQUIRED\nacl CONNECT method CONNECT\n\
             http_access deny !known\n{rules}\nhttp_access deny all\n",
            hosts = path("hosts").display(),
            check = path("check").display(),
        );
        std::fs::write(path("squid.conf"), config).unwrap();
        let service = format!("egressup{}x{}", std::process::id(), at.port());
        let process = Command::new(PROGRAM)
            .args(["-N", "-n", &service, "-f"])
            .arg(path("squid.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let squid = Self {
            process,
            at,
            folder,
        };
        squid.listens().await;
        squid
    }

    /// Squid tells nobody when it is ready, so its port is asked.
    async fn listens(&self) {
        let asking = async {
            loop {
                match TcpStream::connect(self.at).await {
                    Ok(_) => return,
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        };
        timeout(TEST_TIMEOUT, asking)
            .await
            .expect("squid does not start");
    }

    /// Asked to go, it takes its shared memory along.
    async fn stop(mut self) {
        let id = self.process.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        }
        let _ = timeout(TEST_TIMEOUT, self.process.wait()).await;
        drop(self.folder);
    }
}

fn missing(test: &str) -> bool {
    let missing = !Path::new(PROGRAM).is_file();
    if missing {
        eprintln!("SKIP: {test}: squid is not installed");
    }
    missing
}

#[tokio::test]
async fn squid_with_a_login_carries_tunnels_and_plain_requests() {
    if missing("squid_with_a_login_carries_tunnels_and_plain_requests") {
        return;
    }
    let (origin, identity) = tls_origin("api.test").await;
    let (plain, heads) =
        Origin::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain").await;
    let squid = Squid::start(
        &[("api.test", origin.at), ("deb.test", plain.at)],
        "acl tls_hosts dstdomain -n api.test\nacl plain_hosts dstdomain -n deb.test\n\
         http_access allow CONNECT tls_hosts\nhttp_access deny CONNECT\nhttp_access allow plain_hosts",
    )
    .await;
    let deb = format!("deb.test:{}", plain.at.port());
    let rules = [
        format!("api.test:{}", origin.at.port()),
        deb.clone(),
        "tcp://deb.test:22".to_owned(),
    ];
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let through = |login: &str| route(squid.at, login, NameCheck::ByProxy, "");

    let known = lab(&rules, through(&format!("{LOGIN}@")));
    let answer = over_tls(&known, "api.test", origin.at.port(), &identity).await;
    assert!(answer.ends_with("far\n"), "{answer}");
    let request =
        format!("GET http://{deb}/x HTTP/1.1\r\nHost: {deb}\r\nConnection: close\r\n\r\n");
    let answer = known.ask(&request).await;
    assert!(answer.ends_with("plain"), "{answer}");
    let head = heads.lock().unwrap().remove(0);
    assert!(
        !head.to_ascii_lowercase().contains("proxy-authorization"),
        "{head}"
    );
    // What the company does not allow is refused, though our rules would let it through.
    let answer = known.ask("CONNECT deb.test:22 HTTP/1.1\r\n\r\n").await;
    assert!(answer.contains("refuses it (403)"), "{answer}");

    for wrong in ["", "clerk:wrong-horse-battery@"] {
        let stranger = lab(&rules, through(wrong));
        let answer = stranger.ask(&request).await;
        assert!(
            answer.contains("(407)") && !answer.contains("squid"),
            "{answer}"
        );
        let answer = stranger.ask("CONNECT deb.test:22 HTTP/1.1\r\n\r\n").await;
        assert!(answer.contains("(407)"), "{answer}");
    }
    squid.stop().await;
}
