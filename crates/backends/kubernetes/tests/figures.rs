//! What a real cluster costs, for who wants to know: prints, and asserts nothing but that it worked.

use std::time::{Duration, Instant};

use hermetic_sandbox::Backend;
use hermetic_types::InstallationId;

use crate::lab::{distant, finish, greet, sh};
use crate::real::{KUBECONFIG, RealLab, hurt, open, word};

/// `yes` for the figures; a fault besides for those of many links.
const FIGURES: &str = "HERMETIC_TEST_KUBERNETES_FIGURES";
const COLD: usize = 7;
const ROUNDS: usize = 50;
const KUBECTL_ROUNDS: usize = 10;
const BULK: usize = 100_000_000;
const LINKS: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_real_cluster() {
    if word(KUBECONFIG).is_none() || word(FIGURES).is_none() {
        return eprintln!("SKIP: of_a_real_cluster: {KUBECONFIG} and {FIGURES} are not set");
    }
    let lab = open(&InstallationId::random(), |_| {});
    cold(&lab).await;
    warm(&lab).await;
    if word(crate::real::FAULT).is_some() {
        many_links(&lab).await;
    }
    assert_eq!(lab.kube.list().await.unwrap(), []);
}

async fn cold(lab: &RealLab) {
    let mut made = Vec::new();
    let mut ended = Vec::new();
    for _ in 0..COLD {
        let spec = lab.spec();
        let begun = Instant::now();
        let sandbox = lab.create(&spec).await;
        assert_eq!(finish(&sandbox, "true").await.code(), 0);
        made.push(begun.elapsed());
        let begun = Instant::now();
        lab.kube.destroy(&spec.id).await.unwrap();
        ended.push(begun.elapsed());
    }
    row("from nothing to a first command", made);
    row("destroyed and seen to be gone", ended);
}

async fn warm(lab: &RealLab) {
    let spec = lab.spec();
    let sandbox = lab.create(&spec).await;
    let mut ours = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        assert_eq!(finish(&sandbox, "true").await.code(), 0);
        ours.push(begun.elapsed());
    }
    row("a command on the open link", ours);
    let selector = format!("hermetic-sandbox={}", spec.id);
    let pods = lab
        .kubectl(&["get", "pods", "-l", &selector, "-o", "name"])
        .await;
    if let Some(pod) = pods {
        let mut theirs = Vec::new();
        for _ in 0..KUBECTL_ROUNDS {
            let words = [
                "exec",
                pod.trim(),
                "-c",
                "sandbox",
                "--",
                "sh",
                "-c",
                "true",
            ];
            let begun = Instant::now();
            lab.kubectl(&words).await;
            theirs.push(begun.elapsed());
        }
        row("the same by kubectl exec", theirs);
    }
    let begun = Instant::now();
    let bulk = finish(&sandbox, &format!("head -c {BULK} /dev/zero")).await;
    assert_eq!(bulk.stdout.total(), BULK as u64);
    let seconds = begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let megabytes = BULK as f64 / 1e6 / seconds;
    eprintln!("bulk from inside: {megabytes:.0} MB/s");
    lab.kube.destroy(&spec.id).await.unwrap();
}

/// Each runs a command over the fault; how long after it has each link answered again?
async fn many_links(lab: &RealLab) {
    let specs: Vec<_> = (0..LINKS).map(|_| lab.spec()).collect();
    let mut sandboxes = Vec::new();
    for spec in &specs {
        let sandbox = greet(spec, lab.kube.create(spec).await.unwrap()).await;
        sandboxes.push(distant(&lab.kube, sandbox));
    }
    let begun = Instant::now();
    let counts = "n=0; while [ $n -lt 150 ]; do n=$((n+1)); echo $n; sleep 0.1; done";
    let running = sandboxes.iter().map(async |sandbox| {
        let finished = finish(sandbox, counts).await;
        assert_eq!((finished.code(), finished.stdout.total()), (0, 492));
        finished.dropped.is_some()
    });
    let hurting = async {
        hurt().await;
        begun.elapsed()
    };
    let (dropped, hurt_after) = tokio::join!(futures::future::join_all(running), hurting);
    let dropped = dropped.into_iter().filter(|dropped| *dropped).count();
    let whole = begun.elapsed();
    eprintln!(
        "{dropped} of {LINKS} links dropped; fault over after {hurt_after:?}, all ended after {whole:?}"
    );
    for (spec, sandbox) in specs.iter().zip(&sandboxes) {
        let begun = Instant::now();
        if sandbox.is_reachable() {
            assert_eq!(sh(sandbox, "echo here").await, "here\n");
        } else {
            let link = lab.kube.connect(&spec.id).await.unwrap();
            assert_eq!(sh(&greet(spec, link).await, "echo here").await, "here\n");
        }
        eprintln!("back in {:?}", begun.elapsed());
        lab.kube.destroy(&spec.id).await.unwrap();
    }
}

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    eprintln!(
        "{name:36} least {:?}, median {:?}, 95th {:?}",
        at(0),
        at(50),
        at(95)
    );
}
