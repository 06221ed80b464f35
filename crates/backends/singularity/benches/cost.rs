//! What an instance costs, next to Apptainer's own program in the same run.
//!
//! `cargo bench -p hermetic-singularity --bench cost` prints a table; nothing is asserted, because a
//! busy machine is no failure. `HERMETIC_TEST_ROOTFS` names a folder that `apptainer build --sandbox` made:
//! Apptainer's own instances do not start from a bare one.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for a terminal"
)]

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hermetic_sandbox::conformance::story;
use hermetic_sandbox::{Backend, SandboxSpec, SystemView};
use hermetic_singularity::{
    ApptainerRuntime, BuildListener, SingularityBackend, SingularityConfig,
};
use hermetic_types::InstallationId;
use hermetic_warden::client::{RunEvent, Warden};
use hermetic_warden::protocol::RunRequest;

const COMMANDS: usize = 30;
const CREATIONS: usize = 12;
const PATIENCE: Duration = Duration::from_secs(60);
const PROGRAM: &str = "apptainer";
/// As little of the host as ours, without the cage.
const CLOSED: [&str; 5] = [
    "--containall",
    "--no-home",
    "--net",
    "--network=none",
    "--cleanenv",
];

fn main() {
    let Ok(image) = std::env::var("HERMETIC_TEST_ROOTFS") else {
        return println!("no HERMETIC_TEST_ROOTFS: a folder with a root file system");
    };
    let Some(runtime) = ApptainerRuntime::find(&|name| std::env::var_os(name)) else {
        return println!("neither apptainer nor singularity is installed");
    };
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    tokio.block_on(async {
        let bench = Bench::open(image, runtime);
        println!("{:48} {:>8} {:>8} {:>8}", "ms", "min", "p50", "p95");
        bench.commands().await;
        bench.creations().await;
    });
}

struct Bench {
    backend: SingularityBackend,
    installation: InstallationId,
    image: String,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn open(image: String, runtime: ApptainerRuntime) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let installation = InstallationId::random();
        let backend = SingularityBackend::open(SingularityConfig {
            state: folder.path().to_owned(),
            installation: installation.clone(),
            program: hermetic_embedded::WARDEN,
            runtime: Some(runtime),
            image: image.clone(),
            scratch: folder.path().join("scratch"),
            cache: folder.path().join("images"),
            tell: BuildListener::default(),
        });
        Self {
            backend: backend.unwrap(),
            installation,
            image,
            _folder: folder,
        }
    }

    /// Turn by turn, so that whatever else the machine does hits both.
    async fn commands(&self) {
        let spec = self.spec();
        let warden = self.greet(&spec).await;
        let name = format!("hermetic-bench-{}", std::process::id());
        let start = ["--silent", "instance", "start"];
        theirs(
            &[&start[..], &CLOSED, &[&self.image, &name]].concat(),
            false,
        );
        let instance = format!("instance://{name}");
        let (mut ours, mut other) = (vec![], vec![]);
        for round in 0..COMMANDS + 3 {
            let own = first_output(&warden, Instant::now()).await;
            let their = theirs(&["--silent", "exec", &instance, "echo", "hi"], true);
            if round >= 3 {
                ours.push(own);
                other.push(their);
            }
        }
        theirs(&["--silent", "instance", "stop", &name], false);
        self.backend.destroy(&spec.id).await.unwrap();
        row("apptainer exec instance://… echo", &mut other);
        row("ours: echo in a living sandbox", &mut ours);
        println!("ours / apptainer exec: 1/{:.0}", 1.0 / ratio(&ours, &other));
    }

    async fn creations(&self) {
        let run = [
            &["--silent", "exec"][..],
            &CLOSED,
            &[&self.image, "echo", "hi"],
        ]
        .concat();
        let (mut ours, mut other) = (vec![], vec![]);
        for round in 0..=CREATIONS {
            let begun = Instant::now();
            let spec = self.spec();
            let warden = self.greet(&spec).await;
            let own = first_output(&warden, begun).await;
            self.backend.destroy(&spec.id).await.unwrap();
            let their = theirs(&run, true);
            if round >= 1 {
                ours.push(own);
                other.push(their);
            }
        }
        row("apptainer exec, closed, first output", &mut other);
        row("ours: create, greeted, first output", &mut ours);
        println!("ours / apptainer exec: {:.2}", ratio(&ours, &other));
    }

    async fn greet(&self, spec: &SandboxSpec) -> Warden {
        let link = self.backend.create(spec).await.unwrap();
        Warden::greet(link.into_stream(), PATIENCE).await.unwrap()
    }

    fn spec(&self) -> SandboxSpec {
        story::spec(&self.installation, SystemView::Image(self.image.clone()))
    }
}

/// Until the first output is here; the end is waited for, and not counted.
async fn first_output(warden: &Warden, begun: Instant) -> Duration {
    let mut running = warden
        .run(RunRequest::new(["/bin/echo", "hi"]))
        .await
        .unwrap();
    while !matches!(running.next().await.unwrap(), Some(RunEvent::Out(_))) {}
    let seen = begun.elapsed();
    while running.next().await.unwrap().is_some() {}
    seen
}

/// Apptainer's own program, until its first byte where it says one.
fn theirs(words: &[&str], speaks: bool) -> Duration {
    let begun = Instant::now();
    let mut child = Command::new(PROGRAM)
        .args(words)
        .stdin(Stdio::null())
        .stdout(if speaks {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .spawn()
        .unwrap();
    if let Some(stdout) = child.stdout.as_mut() {
        stdout.read_exact(&mut [0]).unwrap();
    }
    let seen = begun.elapsed();
    assert!(child.wait().unwrap().success(), "{words:?}");
    seen
}

fn row(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    println!("{name:48} {:8.2} {:8.2} {:8.2}", at(0), at(50), at(95));
}

/// Of medians; both are sorted by now.
fn ratio(ours: &[Duration], theirs: &[Duration]) -> f64 {
    let middle = |times: &[Duration]| times[(times.len() - 1) / 2].as_secs_f64();
    middle(ours) / middle(theirs)
}
