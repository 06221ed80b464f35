//! Coming into the world and leaving it, also when somebody is killed on the way.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hermetic_sandbox::conformance::{DOORS, assert_closed, crash, long};
use hermetic_sandbox::{
    Backend, BackendError, FoundState, SandboxLifeline, SandboxPersistence, SandboxSpec,
};
use hermetic_types::InstallationId;

use crate::lab::{self, Lab, begin, greet, open, sh, stories, until};

async fn until_nothing_is_left(lab: &Lab) {
    until("Job and pod are gone", async || {
        lab.server.objects("jobs").is_empty() && lab.server.objects("pods").is_empty()
    })
    .await;
}

stories! {
    async fn it_is_sealed_labelled_and_bounded_as_asked(lab: &Lab) {
        let mut spec = lab.spec();
        spec.env.insert("KUBERNETES_OWN".to_owned(), "$(HOME) $$ mine".to_owned());
        let sandbox = lab.create(&spec).await;
        let pod = &lab.server.objects("pods")[0];
        assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
        assert_eq!(pod["metadata"]["labels"]["hermetic-sandbox"], spec.id.as_str());
        let job = &lab.server.objects("jobs")[0];
        assert_eq!(job["metadata"]["name"], format!("hermetic-{}", spec.id));
        assert!(job["spec"]["activeDeadlineSeconds"].as_u64() > Some(0));
        assert_eq!(sh(&sandbox, "pwd; ls -A; ulimit -Hn").await, "/workspace\n4096\n");
        let user = pod["spec"]["securityContext"]["runAsUser"].to_string();
        assert_eq!(sh(&sandbox, "id -u").await.trim(), user);
        // What the cluster put into the environment stays out; what the operator wrote does not.
        let env = sh(&sandbox, "env | grep KUBERNETES").await;
        assert_eq!(env, "KUBERNETES_OWN=$(HOME) $$ mine\n");
        // Nobody in there replaces the program that the next link runs.
        let replaced = sh(&sandbox, "cp /bin/true /.hermetic/bin/warden || echo refused").await;
        assert!(replaced.contains("Read-only file system") && replaced.contains("refused"), "{replaced}");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    /// Whatever the runtime's own isolation lets through, our list of system calls holds inside it.
    async fn every_door_is_closed(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_closed(&sh(&sandbox, &format!("python3 - <<'END'\n{DOORS}\nEND")).await);
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn what_is_tied_goes_with_its_link(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifeline = SandboxLifeline::Creator;
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        sandbox.warden().close();
        drop(sandbox);
        until_nothing_is_left(lab).await;
    }

    async fn one_that_nobody_comes_back_to_ends_itself_and_the_cluster_clears_it_away(lab: &Lab) {
        let mut spec = lab.spec();
        spec.lifetime = Duration::from_secs(1);
        let sandbox = lab.create(&spec).await;
        let _running = begin(&sandbox, "echo ready; sleep 600").await;
        sandbox.warden().close();
        drop(sandbox);
        let alone = Instant::now();
        until_nothing_is_left(lab).await;
        let left = alone.elapsed().saturating_sub(spec.lifetime);
        assert!(left < Duration::from_secs(10), "gone {left:?} after its idle end");
    }

    async fn however_much_it_is_used_it_ends_at_its_deadline(lab: &Lab) {
        let short = lab.with(|config| config.options.deadline = Duration::from_secs(2));
        let spec = lab.spec();
        let sandbox = greet(&spec, short.create(&spec).await.unwrap()).await;
        let mut running = begin(&sandbox, "echo ready; sleep 600").await;
        until_nothing_is_left(lab).await;
        while let Ok(Some(_)) = running.next().await {}
    }

    async fn a_caller_who_gives_up_leaves_nothing(lab: &Lab) {
        for wait in [20, 120, 350] {
            let spec = lab.spec();
            let made = tokio::time::timeout(Duration::from_millis(wait), lab.kube.create(&spec)).await;
            if made.is_ok() {
                // Faster than the caller is impatient.
                lab.kube.destroy(&spec.id).await.unwrap();
                continue;
            }
            // Seen first or not, in the end it is gone; a later one of the name proves the end.
            until("nothing is left", async || {
                lab.server.objects("jobs").is_empty() && lab.kube.create(&spec).await.is_ok()
            }).await;
            lab.kube.destroy(&spec.id).await.unwrap();
        }
    }

    async fn an_id_that_is_taken_is_not_given_again(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let again = lab.kube.create(&spec).await.unwrap_err();
        assert!(matches!(again, BackendError::Refused { .. }), "{again}");
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_stopped_one_is_a_volume_and_comes_back(lab: &Lab) {
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        sh(&sandbox, "echo one > note").await;
        lab.kube.stop(&spec.id).await.unwrap();
        lab.kube.stop(&spec.id).await.unwrap();
        assert!(lab.server.objects("pods").is_empty(), "a stopped one takes no node");
        assert!(matches!(lab.kube.connect(&spec.id).await, Err(BackendError::NoSuchSandbox { .. })));

        // Another process of the same home, later.
        let later = lab.with(|_| {});
        assert_eq!(later.list().await.unwrap()[0].state, FoundState::Stopped);
        let sandbox = greet(&spec, later.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&sandbox, "cat note").await, "one\n");
        // Coming back to one that runs is no second start.
        let again = greet(&spec, later.resume(&spec).await.unwrap()).await;
        assert_eq!(sh(&again, "cat note").await, "one\n");
        assert_eq!(lab.server.objects("pods").len(), 1);
        later.destroy(&spec.id).await.unwrap();
        assert!(lab.server.objects("persistentvolumeclaims").is_empty(), "its volume is deleted");
    }

    async fn one_that_never_was_neither_stops_nor_resumes(lab: &Lab) {
        let spec = lab.kept();
        for gone in [lab.kube.stop(&spec.id).await, lab.kube.resume(&spec).await.map(drop)] {
            assert!(matches!(gone, Err(BackendError::NoSuchSandbox { .. })), "{gone:?}");
        }
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn what_is_not_ours_is_not_touched(lab: &Lab) {
        let other = InstallationId::random();
        let theirs = open(&lab.server.url, &other, lab.home.path(), |_| {});
        let neighbour = lab::spec(&other);
        let link = theirs.create(&neighbour).await.unwrap();
        let neighbour_box = greet(&neighbour, link).await;
        // Of the name that ours would have, with no label of ours.
        let plain = lab.spec();
        let claim = serde_json::json!({"metadata": {"name": format!("hermetic-{}", plain.id)}});
        lab.server.cluster.put("persistentvolumeclaims", crate::server::NAMESPACE, claim);
        assert_eq!(lab.kube.list().await.unwrap(), []);
        lab.kube.destroy(&neighbour.id).await.unwrap();
        lab.kube.destroy(&plain.id).await.unwrap();
        assert_eq!(lab.server.objects("persistentvolumeclaims").len(), 1);
        assert_eq!(sh(&neighbour_box, "echo here").await, "here\n");
        theirs.destroy(&neighbour.id).await.unwrap();
    }

    async fn a_killed_gateway_leaves_what_can_be_found_or_nothing(lab: &Lab) {
        let player = || {
            let mut player = Command::new(std::env::current_exe().unwrap());
            let words = [lab.installation.to_string(), lab.server.url.clone(), lab.home.path().display().to_string()];
            player
                .args(["--exact", "life::plays_the_gateway", "--nocapture"])
                .env(PLAYS, words.join(" "));
            player
        };
        let settle = async || {
            until("everything is settled", async || {
                crash::settle(&lab.with(|_| {})).await;
                lab.server.objects("jobs").is_empty()
            }).await;
            assert_eq!(lab.kube.list().await.unwrap(), []);
        };
        if long() {
            crash::at_every_step(player, async |_| settle().await).await;
            return;
        }
        let mut gateway = player().stdout(std::process::Stdio::null()).spawn().unwrap();
        until("it is under way", async || !lab.server.objects("pods").is_empty()).await;
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        settle().await;
    }
}

/// Set for a process that is to be killed: its installation, where its cluster is, and its home.
const PLAYS: &str = "HERMETIC_TEST_PLAYS_GATEWAY";

/// Not a test of its own: what the story above kills.
#[tokio::test]
async fn plays_the_gateway() {
    let Ok(words) = std::env::var(PLAYS) else {
        return;
    };
    let [installation, url, home] = words.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let installation: InstallationId = installation.parse().unwrap();
    let kube = open(url, &installation, Path::new(home), |_| {});
    crash::play(&kube, || SandboxSpec {
        persistence: SandboxPersistence::Kept,
        ..lab::spec(&installation)
    })
    .await;
}
