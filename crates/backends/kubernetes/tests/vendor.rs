//! Clients that others wrote, driving the cluster that our backend is tested against: it is no mirror of ours
//! alone. And a cluster by TLS, as real ones are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use hermetic_sandbox::Backend;
use tokio::process::Command;

use crate::front::TlsFront;
use crate::lab::{at, greet, sh, stories};
use crate::server::TOKEN;

const PACKAGE: &str = "kubernetes==33.1.0";

stories! {
    async fn a_cluster_by_tls_that_wants_a_certificate_of_ours(lab: &Lab) {
        let front = TlsFront::open(&lab.server.url).await;
        let secure = at(&front.source(lab.home.path(), true), &lab.installation, |_| {});
        let spec = lab.spec();
        let sandbox = greet(&spec, secure.create(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        secure.destroy(&spec.id).await.unwrap();
        let quick = |config: &mut hermetic_kubernetes::KubernetesConfig| {
            config.timeouts.requests = std::time::Duration::from_millis(100);
        };
        let stranger = at(&front.source(lab.home.path(), false), &lab.installation, quick);
        assert!(stranger.list().await.is_err(), "it has no certificate");
        let other = TlsFront::open(&lab.server.url).await;
        let mistaken = other.source(lab.home.path(), true);
        fs::write(lab.home.path().join("ca.pem"), &front.authority).unwrap();
        let mistaken = at(&mistaken, &lab.installation, quick);
        assert!(mistaken.list().await.is_err(), "the cluster is another");
    }

    async fn the_projects_own_python_client_drives_the_same_cluster(lab: &Lab) {
        let name = "the_projects_own_python_client_drives_the_same_cluster";
        let Some(python) = tokio::task::spawn_blocking(move || python(name)).await.unwrap() else {
            return;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vendor.py");
        let played = Command::new(python)
            .args([script, &lab.server.url, TOKEN])
            .env_remove("HTTP_PROXY")
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        assert!(said(&played).contains("all of it worked"), "{}", said(&played));
        assert!(lab.server.count("GET /api/v1/namespaces/boxes/pods") > 2);
    }

    async fn kubectl_drives_the_same_cluster_and_ours_is_seen_there(lab: &Lab) {
        // It sends no token in clear, not even to this machine.
        let front = TlsFront::open(&lab.server.url).await;
        let source = front.source(lab.home.path(), true);
        let config = source.kubeconfig.unwrap();
        let kubectl = async |words: &[&str]| {
            let mut kubectl = Command::new("kubectl");
            // Nothing of this machine's own clusters, and no other address.
            kubectl.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default());
            kubectl.env("HOME", lab.home.path());
            kubectl.arg("--kubeconfig").arg(&config).args(words).kill_on_drop(true).output().await
        };
        if kubectl(&["version", "--client"]).await.is_err() {
            eprintln!("SKIP: kubectl_drives_the_same_cluster_and_ours_is_seen_there: kubectl is not installed");
            return;
        }
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let name = format!("hermetic-{}", spec.id);
        let seen = said(&kubectl(&["get", "jobs,pods", "-o", "name"]).await.unwrap());
        assert!(seen.contains(&format!("job.batch/{name}\n")), "{seen}");
        let pod = lab.server.objects("pods")[0]["metadata"]["name"].as_str().unwrap().to_owned();
        let told = kubectl(&["exec", &pod, "-c", "sandbox", "--", "sh", "-c", "echo by kubectl; exit 3"]).await.unwrap();
        // Clients of some years ago speak another protocol for this, which the cluster of the tests does not.
        let text = said(&told);
        if !text.contains("SPDY") && !text.contains("unable to upgrade") {
            assert!(text.contains("by kubectl") && told.status.code() == Some(3), "{text}");
        }
        let deleted = said(&kubectl(&["delete", "job", &name, "--wait=true", "--timeout=20s"]).await.unwrap());
        assert!(deleted.contains("deleted"), "{deleted}");
        // What somebody ended by hand is gone for us as well.
        assert!(lab.kube.connect(&spec.id).await.is_err());
        drop(sandbox);
        lab.kube.destroy(&spec.id).await.unwrap();
    }
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

/// A Python that has the package, installed once into the target folder.
fn python(test: &str) -> Option<PathBuf> {
    let ready = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace('=', "-"));
    let program = ready.join("bin/python");
    if program.exists() {
        return Some(program);
    }
    let made = ready.with_extension(format!("{}.part", std::process::id()));
    let folder = made.to_str()?;
    let inner = format!("{folder}/bin/python");
    let steps: [&[&str]; 2] = [
        &["python3", "-m", "venv", folder],
        &[&inner, "-m", "pip", "install", "-q", PACKAGE],
    ];
    for step in steps {
        let done = std::process::Command::new(step[0])
            .args(&step[1..])
            .output();
        if !done.as_ref().is_ok_and(|done| done.status.success()) {
            let _ = fs::remove_dir_all(&made);
            eprintln!("SKIP: {test}: {PACKAGE} cannot be installed from PyPI");
            return None;
        }
    }
    // Somebody else may have been faster; then theirs is used.
    if fs::rename(&made, &ready).is_err() {
        let _ = fs::remove_dir_all(&made);
    }
    Some(program)
}
