//! A cluster that stumbles, refuses, and forgets.

use std::time::{Duration, Instant};

use hermetic_sandbox::{Backend, BackendError, DroppedLink, LayerState, SystemView};
use serde_json::json;

use crate::lab::{Lab, distant, finish, greet, sh, stories, until};
use crate::server::{Fault, NAMESPACE, NO_IMAGE};

fn said(error: BackendError) -> (String, String) {
    match error {
        BackendError::Unavailable { what, remedy } => (what, remedy),
        other => panic!("no remedy comes with {other:?}"),
    }
}

const COUNTS: &str = "touch begun; for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.2; done";
const COUNTED: &[u8] = b"1\n2\n3\n4\n5\n6\n7\n8\n";

/// The command made its mark in the only pod there is.
async fn until_begun(lab: &Lab) {
    let pod = lab.server.objects("pods").remove(0);
    let pod = lab
        .server
        .cluster
        .path("pods", pod["metadata"]["uid"].as_str().unwrap());
    until("the command runs", async || {
        pod.join("volumes/files/begun").exists()
    })
    .await;
}

stories! {
    async fn errors_that_pass_are_asked_again(lab: &Lab) {
        for fault in [
            Fault::before("POST /apis/batch/v1/namespaces/boxes/jobs", 429),
            Fault::before("GET /api/v1/namespaces/boxes/pods?", 503),
            Fault::before("GET /api/v1/namespaces/boxes/pods/hermetic-", 500),
            Fault::before("DELETE /apis/batch/v1/namespaces/boxes/jobs/", 500),
            Fault::after("DELETE /apis/batch/v1/namespaces/boxes/jobs/", 503),
        ] {
            lab.server.habits().faults.push(fault);
        }
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo one; echo two").await, "one\ntwo\n");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_create_that_was_heard_is_not_asked_for_twice(lab: &Lab) {
        lab.server.habits().faults.push(Fault::after("POST /apis/batch", 500));
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        assert_eq!(lab.server.count("POST /apis/batch"), 1);
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_create_that_was_not_heard_is_asked_for_again(lab: &Lab) {
        lab.server.habits().faults.push(Fault::before("POST /apis/batch", 500));
        let spec = lab.spec();
        lab.create(&spec).await;
        assert_eq!(lab.server.count("POST /apis/batch"), 2);
        assert_eq!(lab.server.objects("jobs").len(), 1);
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_quota_that_counts_others_meanwhile_is_asked_again_and_takes_no_id(lab: &Lab) {
        for fault in [
            Fault::before("POST /api/v1/namespaces/boxes/persistentvolumeclaims", 409),
            Fault::before("POST /api/v1/namespaces/boxes/persistentvolumeclaims", 403),
            Fault::before("POST /apis/batch/v1/namespaces/boxes/jobs", 409),
        ] {
            lab.server.habits().faults.push(fault);
        }
        let spec = lab.kept();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_pod_that_the_cluster_tries_again_to_make_is_waited_for(lab: &Lab) {
        lab.server.habits().refusals = vec![
            "error looking up service account boxes/default: serviceaccount \"default\" not found",
        ];
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        assert_eq!(sh(&sandbox, "echo here").await, "here\n");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_node_that_cannot_start_a_pod_is_told_in_its_words(lab: &Lab) {
        lab.server.habits().no_network = true;
        let hasty = lab.with(|config| config.timeouts.start = Duration::from_millis(700));
        let (what, _) = said(hasty.create(&lab.spec()).await.unwrap_err());
        assert!(what.contains("failed to find network info"), "{what}");
    }

    async fn an_admission_that_refuses_is_told_in_its_words(lab: &Lab) {
        lab.server.habits().added = Some(json!({"hostPID": true}));
        let (what, _) = said(lab.kube.create(&lab.spec()).await.unwrap_err());
        assert!(what.contains("violates PodSecurity") && what.contains("hostPID"), "{what}");
    }

    async fn a_pod_that_an_admission_changed_is_no_sandbox(lab: &Lab) {
        let security = json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        });
        let sidecar = json!({
            "name": "mesh", "image": "debian:12", "command": ["sleep", "600"], "securityContext": security,
        });
        for added in [
            json!({"containers": [sidecar]}),
            json!({"automountServiceAccountToken": true}),
            json!({"dnsPolicy": "ClusterFirst"}),
            json!({"runtimeClassName": "another"}),
            json!({"/securityContext/runAsUser": 4242}),
            json!({"/containers/0/volumeMounts/0/readOnly": false}),
        ] {
            lab.server.habits().added = Some(added);
            let error = lab.kube.create(&lab.spec()).await.unwrap_err();
            assert!(matches!(error, BackendError::Refused { .. }), "{error:?}");
        }
    }

    /// A server without the feature drops the field, and the pod runs on the node's own users.
    async fn a_user_namespace_that_is_not_given_is_told(lab: &Lab) {
        let apart = lab.with(|config| config.options.host_users = false);
        lab.server.habits().added = Some(json!({"hostUsers": null}));
        let error = apart.create(&lab.spec()).await.unwrap_err();
        assert!(matches!(&error, BackendError::Refused { why, .. } if why.contains("user namespace")), "{error:?}");
    }

    async fn an_image_that_cannot_be_had_and_a_full_cluster_are_told(lab: &Lab) {
        let mut spec = lab.spec();
        spec.system = SystemView::Image(NO_IMAGE.to_owned());
        let (what, remedy) = said(lab.kube.create(&spec).await.unwrap_err());
        assert!(what.contains("manifest unknown"), "{what}");
        assert!(remedy.contains("terminal.kubernetes_image"), "{remedy}");
        lab.server.habits().full = true;
        let hasty = lab.with(|config| config.timeouts.start = Duration::from_millis(700));
        let (what, _) = said(hasty.create(&lab.spec()).await.unwrap_err());
        assert!(what.contains("Insufficient memory"), "{what}");
        lab.server.habits().full = false;
    }

    async fn rights_that_are_missing_are_named_with_what_gives_them(lab: &Lab) {
        assert!(lab.kube.readiness().await.missing().is_none());
        for right in ["create pods/exec", "get pods/exec"] {
            lab.server.habits().denied = [right.to_owned()].into();
            let readiness = lab.kube.readiness().await;
            let layer = readiness.missing().expect("a right is missing");
            assert!(layer.detail.contains(right), "{}", layer.detail);
            assert!(layer.remedy.as_ref().unwrap().contains("kubernetes manifest"));
        }
        let (what, remedy) = said(lab.kube.create(&lab.spec()).await.unwrap_err());
        assert!(what.contains("pods/exec") && remedy.contains("manifest"), "{what}");
        lab.server.habits().denied.clear();
    }

    async fn what_is_weak_is_said_and_what_is_mended_is_not(lab: &Lab) {
        let state = async |name: &str| {
            let readiness = lab.kube.readiness().await;
            readiness.layers.iter().find(|layer| layer.name == name).unwrap().clone()
        };
        assert_eq!(state("pod security").await.state, LayerState::Active);
        assert!(state("network").await.detail.contains("has no NetworkPolicy"));
        let policy = json!({
            "metadata": {"name": "closed"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        });
        lab.server.cluster.put("networkpolicies", NAMESPACE, policy);
        assert!(state("network").await.detail.contains("denies ours everything"));
        let namespace = json!({"metadata": {"name": NAMESPACE, "labels": {}}});
        lab.server.cluster.put("namespaces", "", namespace);
        assert_eq!(state("pod security").await.state, LayerState::Weaker);
        assert_eq!(state("process limit").await.state, LayerState::Weaker);
    }

    async fn a_token_that_was_rotated_is_read_anew(lab: &Lab) {
        let file = lab.home.path().join("token");
        std::fs::write(&file, "first\n").unwrap();
        let config = crate::lab::kubeconfig(&lab.server.url, lab.home.path());
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text.replace("token: the-token", "tokenFile: token")).unwrap();
        let source = hermetic_kubernetes::ClusterSource {
            kubeconfig: Some(config),
            ..Default::default()
        };
        let rotated = crate::lab::at(&source, &lab.installation, |_| {});
        lab.server.habits().tokens.push("first".to_owned());
        assert_eq!(rotated.list().await.unwrap(), []);
        lab.server.habits().tokens = vec![crate::server::TOKEN.to_owned(), "second".to_owned()];
        let (what, _) = said(rotated.list().await.unwrap_err());
        assert!(what.contains("does not accept"), "{what}");
        std::fs::write(&file, "second\n").unwrap();
        assert_eq!(rotated.list().await.unwrap(), []);
    }

    async fn nobody_there_is_told_with_its_remedy(lab: &Lab) {
        let nowhere = crate::lab::open("http://127.0.0.1:1", &lab.installation, lab.home.path(), |config| {
            config.timeouts.requests = Duration::from_millis(100);
        });
        let readiness = nowhere.readiness().await;
        let missing = readiness.missing().expect("it cannot be reached");
        assert!(missing.detail.contains("cannot be reached"), "{}", missing.detail);
    }

    async fn a_kubelet_that_dies_ends_no_command(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let cut = async {
            until_begun(lab).await;
            lab.server.cut_links();
        };
        // The API server calls the end of the exec a success. It is none.
        let (finished, ()) = tokio::join!(finish(&sandbox, COUNTS), cut);
        assert_eq!((finished.code(), finished.dropped), (0, Some(DroppedLink::PickedUp)));
        assert_eq!(finished.stdout.into_bytes(), COUNTED);
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_node_that_does_not_know_the_pod_yet_is_asked_again(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let cut = async {
            until_begun(lab).await;
            let unknown = Fault::before("GET /api/v1/namespaces/boxes/pods/hermetic-", 404);
            lab.server.habits().faults.push(unknown);
            lab.server.cut_links();
        };
        let (finished, ()) = tokio::join!(finish(&sandbox, COUNTS), cut);
        assert_eq!((finished.code(), finished.dropped), (0, Some(DroppedLink::PickedUp)));
        assert_eq!(finished.stdout.into_bytes(), COUNTED);
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn an_api_server_that_is_restarted_costs_nothing(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let restart = async {
            until_begun(lab).await;
            lab.server.be_away(true);
            let before = lab.server.count("GET");
            until("it is asked in vain", async || lab.server.count("GET") > before).await;
            lab.server.be_away(false);
        };
        let (finished, ()) = tokio::join!(finish(&sandbox, COUNTS), restart);
        assert_eq!(finished.stdout.into_bytes(), COUNTED);
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn many_links_are_back_soon_after_the_api_server_is_and_not_in_one_moment(lab: &Lab) {
        const LINKS: usize = 6;
        let mut specs = Vec::new();
        let mut commands = Vec::new();
        for _ in 0..LINKS {
            let spec = lab.spec();
            let sandbox = distant(&lab.kube, lab.create(&spec).await);
            specs.push(spec);
            commands.push(tokio::spawn(async move {
                finish(&sandbox, "touch begun; until [ -e go ]; do sleep 0.05; done; echo went").await
            }));
        }
        let files: Vec<_> = lab.server.objects("pods").iter().map(|pod| {
            let uid = pod["metadata"]["uid"].as_str().unwrap();
            lab.server.cluster.path("pods", uid).join("volumes/files")
        }).collect();
        until("the commands run", async || files.iter().all(|folder| folder.join("begun").exists())).await;
        lab.server.be_away(true);
        let before = lab.server.count("GET");
        until("all ask in vain", async || lab.server.count("GET") >= before + 3 * LINKS).await;
        let lists = lab.server.count("GET /api/v1/namespaces/boxes/pods?");
        let execs = || lab.server.count("GET /api/v1/namespaces/boxes/pods/hermetic-");
        let back_before = execs();
        lab.server.be_away(false);
        let begun = Instant::now();
        until("all links are back", async || execs() >= back_before + LINKS).await;
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
        // One look for its pod each, whatever they asked in vain.
        let looked = lab.server.count("GET /api/v1/namespaces/boxes/pods?") - lists;
        assert!(looked <= 2 * LINKS, "{looked} looks for {LINKS} pods");
        for folder in &files {
            std::fs::write(folder.join("go"), "").unwrap();
        }
        for command in commands {
            let finished = command.await.unwrap();
            assert_eq!((finished.code(), finished.dropped), (0, Some(DroppedLink::PickedUp)));
            assert_eq!(finished.stdout.into_bytes(), b"went\n");
        }
        for spec in &specs {
            lab.kube.destroy(&spec.id).await.unwrap();
        }
    }

    async fn an_older_cluster_speaks_the_fourth_version(lab: &Lab) {
        lab.server.habits().speaks_v5 = false;
        let spec = lab.spec();
        let sandbox = lab.create(&spec).await;
        let finished = finish(&sandbox, "head -c 3000000 /dev/zero | tr '\\0' x; cat >&2 <<< err").await;
        assert_eq!(finished.stdout.total(), 3_000_000);
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn an_evicted_pod_is_gone_and_its_command_lost(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let evict = async {
            until_begun(lab).await;
            let pod = lab.server.objects("pods").remove(0);
            let text = |key: &str| pod["metadata"][key].as_str().unwrap().to_owned();
            let at = (text("name"), text("uid"));
            lab.server.cluster.change("pods", (NAMESPACE, &at.0, &at.1), |pod| {
                pod["metadata"]["annotations"]["test-evict"] = "yes".into();
            });
        };
        let (finished, ()) = tokio::join!(finish(&sandbox, "touch begun; sleep 600"), evict);
        assert!(finished.dropped.is_some(), "{finished:?}");
        let gone = lab.kube.connect(&spec.id).await;
        assert!(matches!(gone, Err(BackendError::NoSuchSandbox { .. })), "{gone:?}");
        lab.kube.destroy(&spec.id).await.unwrap();
    }

    async fn a_pod_that_somebody_deletes_is_gone_with_its_command_and_not_made_again(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = distant(&lab.kube, lab.create(&spec).await);
        let delete = async {
            until_begun(lab).await;
            let pod = lab.server.objects("pods").remove(0);
            let text = |key: &str| pod["metadata"][key].as_str().unwrap().to_owned();
            let at = (text("name"), text("uid"));
            lab.server.cluster.change("pods", (NAMESPACE, &at.0, &at.1), |pod| {
                pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            });
        };
        // It is ended politely, and kills what runs: that is no end of the command's own.
        let (finished, ()) = tokio::join!(finish(&sandbox, "touch begun; sleep 600"), delete);
        assert_eq!(finished.dropped, Some(DroppedLink::Lost), "{finished:?}");
        until("the Job is over and cleared away", async || lab.server.objects("jobs").is_empty()).await;
        assert!(lab.server.objects("pods").is_empty());
        let gone = lab.kube.connect(&spec.id).await;
        assert!(matches!(gone, Err(BackendError::NoSuchSandbox { .. })), "{gone:?}");
    }

    async fn long_lists_come_in_pages_and_begin_anew_when_they_are_too_old(lab: &Lab) {
        let specs = [lab.kept(), lab.kept(), lab.kept()];
        for spec in &specs {
            lab.create(spec).await;
        }
        {
            let mut habits = lab.server.habits();
            habits.page = 1;
            habits.lists_expire = true;
        }
        assert_eq!(lab.kube.list().await.unwrap().len(), 3);
        for spec in &specs {
            lab.kube.destroy(&spec.id).await.unwrap();
        }
    }

    async fn a_pod_without_its_job_is_seen_out_too(lab: &Lab) {
        let spec = lab.spec();
        let sandbox = greet(&spec, lab.kube.create(&spec).await.unwrap()).await;
        lab.server.cluster.remove("jobs", NAMESPACE, &format!("hermetic-{}", spec.id));
        assert_eq!(lab.kube.list().await.unwrap().len(), 1);
        lab.kube.destroy(&spec.id).await.unwrap();
        drop(sandbox);
    }
}
