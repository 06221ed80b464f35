//! An engine, an image built on it as written, and the services of one compose file.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::hermetic::Hermetic;

/// What the Dockerfile begins with.
const BASE: &str = "debian:12-slim";
const PATIENCE: Duration = Duration::from_secs(240);

/// The base image's stand-in brings what the Dockerfile would fetch, and asks nobody for more: there is no
/// way out of the engine either.
const STAND_IN: &str = "RUN rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*\n\
    LABEL hermetic.stand-in=1\n";

/// Any bytes that are a web page over TLS.
const ORIGIN: &str = "cd /tmp && openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=allowed.test \
    -keyout key -out cert 2>/dev/null && exec openssl s_server -quiet -www -accept 443 -key key -cert cert";

pub(super) struct Engine {
    test_image: String,
}

/// An image that goes when it is dropped.
pub(super) struct Image {
    engine: Engine,
    name: String,
    hermetic: Hermetic,
    /// Whether the base image is ours to take away again.
    lent_base: bool,
}

/// The services of one compose file; they go with everything of theirs when it is dropped.
pub(super) struct Stack<'a> {
    image: &'a Image,
    project: String,
    file: PathBuf,
}

/// The engine that `cargo xtask test` provides, or a skip said aloud.
pub(super) fn engine(test: &str) -> Option<Engine> {
    let Ok(test_image) = std::env::var("HERMETIC_TEST_IMAGE") else {
        eprintln!("SKIP: {test}: no engine with a test image; `cargo xtask test` provides one");
        return None;
    };
    // Version 1 hands to the engine what is meant for the client.
    let version = say(&["docker", "compose", "version", "--short"]);
    if !version.is_ok_and(|version| !version.starts_with("1.")) {
        eprintln!(
            "SKIP: {test}: docker compose 2 is not installed; `cargo xtask test` provides it"
        );
        return None;
    }
    if let Err(why) = say(&["docker", "version", "--format", "{{.Server.Version}}"]) {
        let denied = why.contains("permission denied");
        assert!(denied, "the engine does not answer: {why}");
        eprintln!("SKIP: {test}: the engine is not this user's");
        return None;
    }
    Some(Engine { test_image })
}

impl Engine {
    /// By the Dockerfile as it is written, with this program beside it.
    pub(super) fn build(self) -> Image {
        let hermetic = Hermetic::new();
        let name = format!("hermetic-deployment:{}", std::process::id());
        let lent_base = say(&["docker", "image", "inspect", BASE]).is_err();
        let image = Image {
            engine: self,
            name,
            hermetic,
            lent_base,
        };
        if lent_base {
            let folder = image.folder("base");
            let text = format!("FROM {}\n{STAND_IN}", image.engine.test_image);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("Dockerfile"), text).unwrap();
            build(BASE, &folder);
        }
        image.write("tight");
        let folder = image.folder("tight");
        stripped(env!("CARGO_BIN_EXE_hermetic"), &folder.join("hermetic"));
        build(&image.name, &folder);
        image
    }
}

/// A test build is mostly symbols, and the engine copies it from layer to layer.
fn stripped(program: &str, to: &std::path::Path) {
    let strip = Command::new("strip")
        .arg("-o")
        .arg(to)
        .arg(program)
        .status();
    if !strip.is_ok_and(|status| status.success()) {
        std::fs::copy(program, to).unwrap();
    }
}

fn build(name: &str, folder: &std::path::Path) {
    let mut command = Command::new("docker");
    command.args(["build", "--quiet", "-t", name]).arg(folder);
    // The builder that every engine has.
    let built = command.env("DOCKER_BUILDKIT", "0").output().unwrap();
    assert!(built.status.success(), "{name}: {}", words(&built));
}

impl Image {
    fn folder(&self, variant: &str) -> PathBuf {
        self.hermetic.path(variant)
    }

    fn write(&self, variant: &str) {
        let into = self.folder(variant);
        let written = self.hermetic.run(&[
            "compose",
            "--variant",
            variant,
            "--into",
            into.to_str().unwrap(),
            "--image",
            &self.name,
            // An engine's own addresses are private ones.
            "--allow",
            "allowed.test in 172.16.0.0/12,192.168.0.0/16,10.0.0.0/8",
        ]);
        assert_eq!(written.code, 0, "{}", written.err);
    }

    pub(super) fn start(&self, variant: &str) -> Stack<'_> {
        let file = self.folder(variant).join("docker-compose.yml");
        if !file.exists() {
            self.write(variant);
        }
        let project = format!("hermetic{}{variant}", std::process::id());
        let stack = Stack {
            image: self,
            project,
            file,
        };
        stack.compose(&["up", "-d"]).unwrap();
        stack.start_origin();
        for service in ["gateway", "dashboard"] {
            stack.eventually("the service answers", || {
                let url = "http://127.0.0.1:9119/health";
                let probe = ["exec", "-T", service, "hermetic", "probe", url];
                stack.compose(&probe).is_ok()
            });
        }
        stack
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = say(&["docker", "rmi", "-f", &self.name]);
        if self.lent_base {
            let _ = say(&["docker", "rmi", "-f", BASE]);
        }
    }
}

impl Stack<'_> {
    fn compose(&self, arguments: &[&str]) -> Result<String, String> {
        let file = self.file.to_str().unwrap();
        let compose = ["docker", "compose", "-p", &self.project, "-f", file];
        say(&[&compose[..], arguments].concat())
    }

    fn origin(&self) -> String {
        format!("{}-origin", self.project)
    }

    /// A host of the world's: on the network that has a way out, under names that DNS knows there.
    fn start_origin(&self) {
        let (name, network) = (self.origin(), format!("{}_egress", self.project));
        let run = [
            "docker",
            "run",
            "-d",
            "--name",
            &name,
            "--network",
            &network,
        ];
        let names = [
            "--network-alias",
            "allowed.test",
            "--network-alias",
            "other.test",
        ];
        let what = [self.image.engine.test_image.as_str(), "sh", "-c", ORIGIN];
        say(&[&run[..], &names, &what].concat()).unwrap();
        self.eventually("the origin answers", || {
            let curl = [
                "docker",
                "exec",
                &name,
                "curl",
                "-skf",
                "https://127.0.0.1/",
            ];
            say(&curl).is_ok()
        });
    }

    /// The origin's address.
    pub(super) fn outside(&self) -> String {
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        let inspect = ["docker", "inspect", "--format", format, &self.origin()];
        say(&inspect).unwrap().trim().to_owned()
    }

    /// As the service itself would.
    pub(super) fn curl(&self, service: &str, arguments: &[&str]) -> Result<String, String> {
        self.compose(&[&["exec", "-T", service], CURL, arguments].concat())
    }

    /// As somebody would who is on the internal network only.
    pub(super) fn curl_beside(&self, arguments: &[&str]) -> Result<String, String> {
        let network = format!("{}_internal", self.project);
        let run = ["docker", "run", "--rm", "--network", &network];
        let image = [self.image.engine.test_image.as_str()];
        say(&[&run[..], &image, CURL, arguments].concat())
    }

    pub(super) fn is_published_on_loopback_only(&self) {
        let published = self.compose(&["port", "egress-proxy", "9119"]).unwrap();
        assert_eq!(published.trim(), "127.0.0.1:9119");
        // Not by the host's own network: an engine leaves a mount behind for who was on it.
        let carried = self.curl_beside(&["http://egress-proxy:9119/health"]);
        assert!(carried.is_ok(), "{carried:?}");
    }

    /// By the health checks in the file.
    pub(super) fn becomes_healthy(&self) {
        for service in ["gateway", "dashboard", "egress-proxy"] {
            let id = self.compose(&["ps", "-q", service]).unwrap();
            let format = "{{.State.Health.Status}}";
            let inspect = ["docker", "inspect", "--format", format, id.trim()];
            self.eventually("the service is healthy", || {
                say(&inspect).is_ok_and(|health| health.trim() == "healthy")
            });
        }
    }

    /// A gateway in a container makes sandboxes all the same.
    pub(super) fn has_sandboxes(&self) {
        let exec = ["exec", "-T", "gateway", "hermetic", "exec", "--"];
        let said = self.compose(&[&exec[..], &["cat", "/proc/net/dev"]].concat());
        let devices = said.unwrap();
        assert_eq!(devices.matches(':').count(), 1, "{devices}");
        assert!(devices.contains("lo:"), "{devices}");
    }

    /// A command in a sandbox of the gateway's container, with these flags of `hermetic exec` before it.
    pub(super) fn in_sandbox(&self, arguments: &[&str]) -> Result<String, String> {
        let exec = ["exec", "-T", "gateway", "hermetic", "exec"];
        self.compose(&[&exec[..], arguments].concat())
    }

    /// From inside a sandbox that may reach this host.
    pub(super) fn sandbox_curl(&self, allow: &str, url: &str) -> Result<String, String> {
        self.in_sandbox(&[&["--allow", allow, "--"], CURL, &[url]].concat())
    }

    /// By what the limits of each sandbox are kept, and what to do for better.
    pub(super) fn says_how_limits_are_kept(&self) {
        let said = self.compose(&["exec", "-T", "gateway", "hermetic", "doctor"]);
        let said = said.unwrap();
        let memory = said.split("memory limit").nth(1).unwrap_or_default();
        let memory = memory.split("cpu limit").next().unwrap_or_default();
        let is_counted =
            memory.contains("counted, not kept") && memory.contains("HERMETIC_CGROUPS");
        assert!(is_counted || memory.contains("cgroup version"), "{said}");
    }

    fn eventually(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            if begun.elapsed() > PATIENCE {
                let logs = self.compose(&["logs", "--tail", "50"]);
                panic!("{}: {what}: not in time\n{logs:?}", self.project);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Stack<'_> {
    fn drop(&mut self) {
        let _ = say(&["docker", "rm", "-f", &self.origin()]);
        let _ = self.compose(&["down", "-v", "-t", "2"]);
    }
}

/// Certificates are not what is tried here.
const CURL: &[&str] = &["curl", "-skSf", "--max-time", "5"];

/// What it said, or what it complained about.
fn say(line: &[&str]) -> Result<String, String> {
    let output = Command::new(line[0])
        .args(&line[1..])
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(words(&output))
    }
}

fn words(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
