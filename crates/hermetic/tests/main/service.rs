//! `hermetic gateway start|stop|restart|status|install`: the gateway in the background.

use std::fs::{self, File};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use hermetic_testkit::model::{Reply, ScriptedServer};
use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::json;

use crate::hermetic::Hermetic;

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn started_it_is_ready_and_stopped_it_is_gone() {
    let Some(home) = Home::new("started_it_is_ready_and_stopped_it_is_gone") else {
        return;
    };
    let started = home.run(&["gateway", "start"]);
    assert_eq!(started.code, 0, "{}", started.err);
    let pid = home.pid();
    assert_eq!(
        started.out,
        format!("started (pid {pid}); its log is ~/.hermes/hermetic/gateway.log\n")
    );
    assert_eq!(home.run(&["gateway", "status", "--quiet"]).code, 0);
    // It left our terminal for good.
    assert_eq!(getsid(Some(raw(pid))).unwrap(), raw(pid));

    let again = home.run(&["gateway", "start"]);
    assert_eq!((again.code, home.pid()), (0, pid));
    assert!(again.out.contains("runs already"), "{}", again.out);

    let restarted = home.run(&["gateway", "restart"]);
    assert_eq!(restarted.code, 0, "{}", restarted.err);
    assert!(!lives(pid) && home.pid() != pid);

    let pid = home.pid();
    let stopped = home.run(&["gateway", "stop"]);
    assert_eq!(stopped.out, format!("stopped (pid {pid})\n"));
    assert!(!lives(pid));
    let status = home.run(&["gateway", "status", "--quiet"]);
    assert_eq!((status.code, status.out.as_str()), (3, ""));
    assert_eq!(home.run(&["gateway", "stop"]).code, 0);
}

/// A gateway reads its files at its start: what setup writes beside one that runs is not known to it.
#[tokio::test(flavor = "multi_thread")]
async fn setup_restarts_a_gateway_that_does_not_know_what_was_written() {
    let Some(home) = Home::new("setup_restarts_a_gateway_that_does_not_know_what_was_written")
    else {
        return;
    };
    let model = ScriptedServer::start([Reply::streams(&["ready"]), Reply::streams(&["ready"])])
        .await
        .unwrap();
    assert_eq!(home.run(&["gateway", "start"]).code, 0);
    let pid = home.pid();
    fs::write(
        home.hermetic.path(".env"),
        "HERMETIC_DASHBOARD_PORT=0\nOPENAI_API_KEY=sk\n",
    )
    .unwrap();
    let url = model.base_url();
    let arguments = [
        "setup",
        "--non-interactive",
        "--model",
        "m",
        "--base-url",
        &url,
        "--start",
    ];
    let ended = home.run(&arguments);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(
        ended.out.contains("does not know yet what was written"),
        "{}",
        ended.out
    );
    let restarted = home.pid();
    assert!(!lives(pid) && restarted != pid);
    // Nothing new: it is left alone.
    let ended = home.run(&arguments);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("has read all of this"), "{}", ended.out);
    assert_eq!(home.pid(), restarted);
}

#[test]
fn one_that_does_not_come_up_says_why() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let hermetic = Hermetic::new().variable("HERMETIC_DASHBOARD_PORT", &port);
    let started = hermetic.run(&["gateway", "start"]);
    assert_eq!(started.code, 1);
    let expected = format!("cannot listen on 127.0.0.1:{port}");
    assert!(started.err.contains(&expected), "{}", started.err);
    let status = hermetic.run(&["gateway", "status"]);
    assert_eq!(status.code, 3);
    assert!(
        status.out.contains("it did not start: cannot listen"),
        "{}",
        status.out
    );

    let wrong = Hermetic::with("gateway: {terminal_backend: docer}\n").run(&["gateway", "start"]);
    assert_eq!(wrong.code, 78);
}

#[test]
fn a_killed_one_is_known_to_be_gone() {
    let Some(home) = Home::new("a_killed_one_is_known_to_be_gone") else {
        return;
    };
    assert_eq!(home.run(&["gateway", "start"]).code, 0);
    let pid = home.pid();
    kill_process(raw(pid), Signal::KILL).unwrap();
    home.wait_until_not_serving();
    let status = home.run(&["gateway", "status"]);
    assert!(status.out.contains("killed, or lost"), "{}", status.out);
    assert_eq!(home.run(&["gateway", "start"]).code, 0);
    assert_ne!(home.pid(), pid);
}

#[test]
fn a_process_that_only_has_the_number_is_left_alone() {
    let hermetic = Hermetic::new();
    let folder = hermetic.path("hermetic");
    fs::create_dir(&folder).unwrap();
    let lock = File::create(folder.join("gateway.lock")).unwrap();
    lock.lock().unwrap();
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let state = json!({"pid": other.id(), "born": 1, "started": 1, "run": "r", "version": "0",
        "backend": "native", "image": null, "gateway_state": "running", "exit_reason": null,
        "active_agents": 0, "platforms": {}, "service": null});
    fs::write(folder.join("gateway_state.json"), state.to_string()).unwrap();
    let stopped = hermetic.run(&["gateway", "stop", "--force", "--timeout", "1"]);
    let alive = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(alive, "it was ended");
    assert_eq!(stopped.code, 1);
    assert!(
        stopped.err.contains("is not the gateway it says"),
        "{}",
        stopped.err
    );
}

#[test]
fn systemd_is_told_when_it_is_ready_and_when_it_stops() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let hermetic = Hermetic::new().variable("NOTIFY_SOCKET", path.to_str().unwrap());
    if !hermetic.has_sandboxes("systemd_is_told_when_it_is_ready_and_when_it_stops") {
        return;
    }
    let told = || {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).trim().to_owned()
    };
    let (gateway, _) = hermetic.gateway(&[]);
    assert_eq!(told(), "READY=1");
    assert_eq!(told(), "STATUS=serving");
    gateway.signal(Signal::TERM);
    assert_eq!(told(), "STOPPING=1");
}

#[test]
fn a_real_systemd_keeps_it() {
    let test = "a_real_systemd_keeps_it";
    let Some(home) = Home::new(test) else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!(
            "SKIP: {test}: a systemd of our own needs a mount namespace, and that needs root"
        );
        return;
    }
    if !fs::exists("/lib/systemd/systemd").unwrap() {
        eprintln!("SKIP: {test}: no systemd is installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ran = Command::new("unshare")
        .args(["--mount", "bash", "-ec", SYSTEMD])
        .env("XDG_RUNTIME_DIR", folder.path())
        .env("XDG_CONFIG_HOME", folder.path())
        .env("HOME", folder.path())
        .env("HERMES_HOME", home.hermetic.path(""))
        .env("HERMETIC", env!("CARGO_BIN_EXE_hermetic"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let log = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}\n{log}");
    assert!(
        said.contains("ActiveState=active\nSubState=running"),
        "{said}"
    );
    assert!(
        said.contains("\"service\": \"user:hermetic-gateway-"),
        "{said}"
    );
    assert!(said.contains("came back"), "{said}");
    assert!(said.contains("no gateway runs for this home"), "{said}");
    assert!(
        !folder
            .path()
            .join("systemd/user")
            .read_dir()
            .unwrap()
            .any(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .starts_with("hermetic")
            })
    );
}

/// A systemd of the user's kind, in a mount namespace where the machine looks booted by it.
const SYSTEMD: &str = r#"
mkdir -p /run/systemd
mount -t tmpfs none /run/systemd
mkdir /run/systemd/system
chmod 700 "$XDG_RUNTIME_DIR"
/lib/systemd/systemd --user >/dev/null 2>&1 &
systemd=$!
trap 'kill $systemd; wait $systemd || true' EXIT
# Not a wait for the thing under test: until systemd answers.
for _ in $(seq 200); do systemctl --user show --property=Version >/dev/null 2>&1 && break; sleep 0.05; done
"$HERMETIC" gateway install --user
unit=$(basename "$XDG_CONFIG_HOME"/systemd/user/hermetic-gateway-*.service)
systemd-analyze --user verify "$XDG_CONFIG_HOME/systemd/user/$unit"
"$HERMETIC" gateway start
systemctl --user show --property=ActiveState,SubState "$unit"
"$HERMETIC" gateway status --json
pid=$(systemctl --user show --property=MainPID --value "$unit")
kill -9 "$pid"
# systemd waits five seconds before it starts it again.
for _ in $(seq 300); do
    now=$(systemctl --user show --property=MainPID --value "$unit")
    [ "$now" != "$pid" ] && "$HERMETIC" gateway status --quiet && echo came back && break
    sleep 0.1
done
"$HERMETIC" gateway stop
"$HERMETIC" gateway stop
"$HERMETIC" gateway uninstall
"#;

/// A home whose gateway is ended with the test.
struct Home {
    hermetic: Hermetic,
}

impl Home {
    fn new(test: &str) -> Option<Self> {
        let hermetic = Hermetic::new().file(".env", "HERMETIC_DASHBOARD_PORT=0\n");
        hermetic.has_sandboxes(test).then_some(Self { hermetic })
    }

    fn run(&self, arguments: &[&str]) -> crate::hermetic::Ended {
        self.hermetic.run(arguments)
    }

    fn pid(&self) -> u64 {
        let status = self.run(&["gateway", "status", "--json"]).json();
        status["state"]["pid"].as_u64().unwrap()
    }

    fn wait_until_not_serving(&self) {
        while self.run(&["gateway", "status", "--quiet"]).code == 0 {
            std::thread::yield_now();
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.run(&["gateway", "stop", "--force", "--timeout", "5"]);
    }
}

fn raw(pid: u64) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// What has ended and was not fetched by its parent does not live.
fn lives(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
