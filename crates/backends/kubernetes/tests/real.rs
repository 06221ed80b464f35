//! The contract and some stories on a cluster of other people's making, for whoever has one at hand.
//!
//! `HERMETIC_TEST_KUBECONFIG` names a kubeconfig; its current context and namespace are used, with no more
//! rights than `hermetic kubernetes manifest` gives. Without it, all of this is skipped. See CONTRIBUTING.md.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hermetic_kubernetes::{
    ClusterSource, KubernetesBackend, KubernetesConfig, KubernetesTimeouts, PodOptions,
};
use hermetic_sandbox::conformance::story;
use hermetic_sandbox::conformance::{BackendCandidate, crash};
use hermetic_sandbox::{
    Backend, BackendError, DroppedLink, FoundState, Sandbox, SandboxLifeline, SandboxPersistence,
    SandboxSpec, SystemView,
};
use hermetic_types::InstallationId;
use tokio::process::Command;

use crate::lab::{at, begin, distant, finish, greet, sh, until};

hermetic_sandbox::conformance!(candidate().await);

/// Where the cluster is.
pub(crate) const KUBECONFIG: &str = "HERMETIC_TEST_KUBECONFIG";
/// With bash and python3; `debian:12` has no python3 where it comes from a registry.
const IMAGE: &str = "HERMETIC_TEST_KUBERNETES_IMAGE";
const RUNTIME_CLASS: &str = "HERMETIC_TEST_KUBERNETES_RUNTIME_CLASS";
/// As in `terminal.kubernetes_accept_risks`, with commas.
const ACCEPT: &str = "HERMETIC_TEST_KUBERNETES_ACCEPT";
/// `yes` where volumes can be had.
const VOLUMES: &str = "HERMETIC_TEST_KUBERNETES_VOLUMES";
/// Shell text that does something to the cluster while a command runs and while a sandbox is made.
pub(crate) const FAULT: &str = "HERMETIC_TEST_KUBERNETES_FAULT";
/// Set for a process that is to be killed: its installation.
const PLAYS: &str = "HERMETIC_TEST_PLAYS_REAL_GATEWAY";

pub(crate) fn word(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|word| !word.is_empty())
}

/// An installation in the real cluster.
pub(crate) struct RealLab {
    pub(crate) kube: KubernetesBackend,
    installation: InstallationId,
    kubeconfig: PathBuf,
}

pub(crate) fn open(
    installation: &InstallationId,
    change: impl FnOnce(&mut KubernetesConfig),
) -> RealLab {
    let kubeconfig = PathBuf::from(word(KUBECONFIG).unwrap());
    let source = ClusterSource {
        kubeconfig: Some(kubeconfig.clone()),
        ..ClusterSource::default()
    };
    let accepted = word(ACCEPT).unwrap_or_default();
    let accepted: Vec<_> = accepted.split(',').map(str::to_owned).collect();
    let accepted: Vec<_> = accepted.into_iter().filter(|one| !one.is_empty()).collect();
    let kube = at(&source, installation, |config| {
        config.options = PodOptions {
            runtime_class: word(RUNTIME_CLASS),
            accepted: PodOptions::accepted(&accepted).unwrap(),
            volume_size: "64Mi".to_owned(),
            ..PodOptions::default()
        };
        config.timeouts = KubernetesTimeouts::default();
        change(config);
    });
    RealLab {
        kube,
        installation: installation.clone(),
        kubeconfig,
    }
}

fn system() -> SystemView {
    SystemView::Image(word(IMAGE).unwrap_or_else(|| crate::lab::IMAGE.to_owned()))
}

async fn candidate() -> Option<BackendCandidate> {
    if word(KUBECONFIG).is_none() {
        eprintln!("SKIP: the contract on a real cluster: {KUBECONFIG} names no kubeconfig");
        return None;
    }
    let (installation, other) = (InstallationId::random(), InstallationId::random());
    Some(BackendCandidate {
        backend: Arc::new(open(&installation, |_| {}).kube),
        other: Arc::new(open(&other, |_| {}).kube),
        installation,
        system: system(),
        keeps_limits: true,
        is_sealed: true,
        resumes: word(VOLUMES).is_some(),
        holds: Box::new(()),
    })
}

/// As the stories of our own cluster, and skipped where there is no other.
macro_rules! real_stories {
    ($($(#[$meta:meta])* async fn $name:ident($lab:ident: &RealLab) $body:block)*) => {
        $($(#[$meta])* #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            if word(KUBECONFIG).is_none() {
                return eprintln!("SKIP: {}: {KUBECONFIG} names no kubeconfig", stringify!($name));
            }
            let lab = open(&InstallationId::random(), |_| {});
            let $lab = &lab;
            tokio::time::timeout(crate::lab::STORY_TIMEOUT * 2, async { $body })
                .await
                .expect("the story ends");
            assert_eq!(lab.kube.list().await.unwrap(), [], "a story left a sandbox");
        })*
    };
}

impl RealLab {
    fn with(&self, change: impl FnOnce(&mut KubernetesConfig)) -> KubernetesBackend {
        open(&self.installation, change).kube
    }

    pub(crate) fn spec(&self) -> SandboxSpec {
        story::spec(&self.installation, system())
    }

    fn kept(&self) -> SandboxSpec {
        SandboxSpec {
            persistence: SandboxPersistence::Kept,
            ..self.spec()
        }
    }

    pub(crate) async fn create(&self, spec: &SandboxSpec) -> Sandbox {
        greet(spec, self.kube.create(spec).await.unwrap()).await
    }

    async fn until_nothing_is_left(&self) {
        until("nothing is left", async || {
            self.kube.list().await.unwrap().is_empty()
        })
        .await;
    }

    /// `None` where there is no kubectl.
    pub(crate) async fn kubectl(&self, words: &[&str]) -> Option<String> {
        let mut kubectl = Command::new("kubectl");
        kubectl
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(words);
        let told = kubectl
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let told = told.ok()?;
        assert!(
            told.status.success(),
            "{}",
            String::from_utf8_lossy(&told.stderr)
        );
        Some(String::from_utf8_lossy(&told.stdout).into_owned())
    }
}

/// Lets happen what the operator of the cluster wrote.
pub(crate) async fn hurt() {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut fault = Command::new("sh");
    fault.args(["-c", &word(FAULT).unwrap()]);
    assert!(fault.stdin(Stdio::null()).status().await.unwrap().success());
}

const COUNTS: &str = "for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.2; done";

real_stories! {
    async fn what_is_told_of_it_lacks_nothing(lab: &RealLab) {
        let readiness = lab.kube.readiness().await;
        for layer in &readiness.layers {
            eprintln!("{:?} {}: {}", layer.state, layer.name, layer.detail);
        }
        assert!(readiness.missing().is_none(), "{:?}", readiness.missing());
    }

    async fn it_is_sealed_and_bounded_as_asked(lab: &RealLab) {
        let mut spec = lab.spec();
        spec.env.insert("KUBERNETES_OWN".to_owned(), "$(HOME) $$ mine".to_owned());
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "pwd; ls -A; ulimit -Hn").await, "/workspace\n4096\n");
        assert_ne!(sh(&sandbox, "id -u").await.trim(), "0");
        let env = sh(&sandbox, "env | grep KUBERNETES").await;
        assert_eq!(env, "KUBERNETES_OWN=$(HOME) $$ mine\n");
        let replaced = sh(&sandbox, "cp /bin/true /.hermetic/bin/warden || echo refused").await;
        assert!(replaced.contains("Read-only file system") && replaced.contains("refused"), "{replaced}");
        let token = sh(&sandbox, "ls /var/run/secrets/kubernetes.io 2>&1").await;
        assert!(token.contains("No such file"), "{token}");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn what_is_tied_goes_with_its_link(lab: &RealLab) {
        let mut spec = lab.spec();
        spec.lifeline = SandboxLifeline::Creator;
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        sandbox.warden().close();
        drop(sandbox);
        lab.until_nothing_is_left().await;
    }

    async fn one_that_nobody_comes_back_to_is_gone_soon(lab: &RealLab) {
        let mut spec = lab.spec();
        spec.lifetime = Duration::from_secs(3);
        let sandbox = lab.create(&spec).await;
        let _running = begin(&sandbox, "echo ready; sleep 600").await;
        sandbox.warden().close();
        drop(sandbox);
        let left = Instant::now();
        lab.until_nothing_is_left().await;
        let since_the_end = left.elapsed().saturating_sub(spec.lifetime);
        eprintln!("gone {since_the_end:?} after its idle end");
        assert!(since_the_end < Duration::from_secs(20), "{since_the_end:?}");
    }

    async fn however_much_it_is_used_it_ends_at_its_deadline(lab: &RealLab) {
        let short = lab.with(|config| config.options.deadline = Duration::from_secs(8));
        let spec = lab.spec();
        let sandbox = greet(&spec, short.create(&spec).await.unwrap()).await;
        let mut running = begin(&sandbox, "echo ready; sleep 600").await;
        lab.until_nothing_is_left().await;
        while let Ok(Some(_)) = running.next().await {}
    }

    async fn a_caller_who_gives_up_leaves_nothing(lab: &RealLab) {
        for wait in [20, 120, 350, 900] {
            let spec = lab.spec();
            let made = tokio::time::timeout(Duration::from_millis(wait), lab.kube.create(&spec)).await;
            if made.is_ok() {
                lab.kube.destroy(&spec.id).await.unwrap();
                continue;
            }
            lab.until_nothing_is_left().await;
        }
    }

    async fn many_at_once_are_made_whole_or_not_at_all(lab: &RealLab) {
        let specs: Vec<_> = (0..8).map(|_| if word(VOLUMES).is_some() { lab.kept() } else { lab.spec() }).collect();
        let made = specs.iter().map(async |spec| {
            let sandbox = lab.create(spec).await;
            assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        });
        futures::future::join_all(made).await;
        assert_eq!(lab.kube.list().await.unwrap().len(), specs.len());
        let ended = specs.iter().map(async |spec| lab.kube.destroy(&spec.id).await.unwrap());
        futures::future::join_all(ended).await;
    }

    async fn a_stopped_one_is_a_volume_and_comes_back(lab: &RealLab) {
        if word(VOLUMES).is_none() {
            return eprintln!("SKIP: a_stopped_one_is_a_volume_and_comes_back: {VOLUMES} is not set");
        }
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo one > note").await;
        lab.kube.stop(&spec.id).await.unwrap();
        lab.kube.stop(&spec.id).await.unwrap();
        assert!(matches!(lab.kube.connect(&spec.id).await, Err(BackendError::NoSuchSandbox { .. })));
        let later = lab.with(|_| {});
        assert_eq!(later.list().await.unwrap()[0].state, FoundState::Stopped);
        let sandbox = greet(&spec, later.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat note").await, "one\n");
        later.destroy(&spec.id).await.unwrap();
    }

    async fn a_link_that_is_laid_anew_costs_no_output(lab: &RealLab) {
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let cut = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            sandbox.warden().close();
        };
        let (finished, ()) = tokio::join!(finish(&sandbox, COUNTS), cut);
        assert_eq!((finished.code(), finished.dropped), (0, Some(DroppedLink::PickedUp)));
        assert_eq!(finished.stdout.into_bytes(), b"1\n2\n3\n4\n5\n6\n7\n8\n");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn what_is_done_to_the_cluster_costs_a_command_nothing(lab: &RealLab) {
        if word(FAULT).is_none() {
            return eprintln!("SKIP: what_is_done_to_the_cluster_costs_a_command_nothing: {FAULT} is not set");
        }
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let counts = "n=0; while [ $n -lt 100 ]; do n=$((n+1)); echo $n; sleep 0.2; done";
        let (finished, ()) = tokio::join!(finish(&sandbox, counts), hurt());
        eprintln!("{:?}", (finished.code(), finished.dropped));
        let wanted: String = (1..=100).map(|n| format!("{n}\n")).collect();
        assert_eq!((finished.code(), finished.stdout.into_bytes()), (0, wanted.into_bytes()));
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn what_is_done_to_the_cluster_leaves_no_half_sandbox(lab: &RealLab) {
        if word(FAULT).is_none() {
            return eprintln!("SKIP: what_is_done_to_the_cluster_leaves_no_half_sandbox: {FAULT} is not set");
        }
        let making = async {
            let (mut made, mut refused) = (0, 0);
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(15) {
                let spec = lab.spec();
                match lab.kube.create(&spec).await {
                    Ok(link) => {
                        let sandbox = distant(&lab.kube, greet(&spec, link).await);
                        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
                        made += 1;
                    }
                    Err(error) => {
                        eprintln!("{error} {error:?}");
                        refused += 1;
                    }
                }
                until("it is gone", async || {
                    let gone = lab.kube.destroy(&spec.id).await;
                    gone.inspect_err(|error| eprintln!("{error}")).is_ok()
                }).await;
            }
            eprintln!("made {made}, refused {refused}");
        };
        tokio::join!(making, hurt());
    }

    async fn a_pod_that_somebody_deletes_is_gone_and_not_made_again(lab: &RealLab) {
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let selector = format!("hermetic-sandbox={}", spec.id);
        let delete = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            lab.kubectl(&["delete", "pod", "-l", &selector, "--wait=true"]).await
        };
        let (finished, deleted) = tokio::join!(finish(&sandbox, "sleep 600"), delete);
        if deleted.is_none() {
            return eprintln!("SKIP: a_pod_that_somebody_deletes_is_gone_and_not_made_again: no kubectl");
        }
        assert!(finished.dropped.is_some(), "{finished:?}");
        let again = lab.kube.connect(&spec.id).await;
        assert!(matches!(again, Err(BackendError::NoSuchSandbox { .. })), "{again:?}");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &RealLab) {
        for wait in [50, 300, 900, 1800, 3500] {
            let mut player = Command::new(std::env::current_exe().unwrap());
            player
                .args(["--exact", "real::plays_the_real_gateway", "--nocapture"])
                .env(PLAYS, lab.installation.as_str())
                .stdout(Stdio::null())
                .kill_on_drop(true);
            let mut gateway = player.spawn().unwrap();
            tokio::time::sleep(Duration::from_millis(wait)).await;
            gateway.kill().await.unwrap();
            until("everything is settled", async || {
                crash::settle(&lab.with(|_| {})).await;
                lab.kube.list().await.unwrap().is_empty()
            }).await;
        }
    }
}

/// Not a test of its own: what the story above kills.
#[tokio::test]
async fn plays_the_real_gateway() {
    let Some(installation) = word(PLAYS) else {
        return;
    };
    let lab = open(&installation.parse().unwrap(), |_| {});
    crash::play(&lab.kube, || match word(VOLUMES) {
        Some(_) => lab.kept(),
        None => lab.spec(),
    })
    .await;
}
