//! What the cluster does by itself: a Job has a pod, and what is finished or deleted goes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Cluster, admission, kubelet};

/// Controllers see what happened a moment later.
const REACTION: Duration = Duration::from_millis(15);

const REMAKE_INTERVAL: Duration = Duration::from_millis(1500);

pub(crate) fn suffix() -> String {
    uuid::Uuid::new_v4().simple().to_string().split_off(27)
}

pub(crate) fn names(object: &Value) -> (String, String, String) {
    let of = |key: &str| {
        object["metadata"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (of("namespace"), of("name"), of("uid"))
}

pub(crate) fn created(cluster: &Arc<Cluster>, plural: &str, object: &Value) {
    let (cluster, object) = (Arc::clone(cluster), object.clone());
    match plural {
        "jobs" => drop(tokio::spawn(run_job(cluster, object))),
        "pods" => drop(tokio::spawn(kubelet::run(cluster, object))),
        "persistentvolumeclaims" => {
            let (namespace, name, uid) = names(&object);
            cluster.change(plural, (&namespace, &name, &uid), |claim| {
                claim["status"] = json!({"phase": "Bound"});
            });
        }
        _ => {}
    }
}

pub(crate) fn delete(cluster: &Arc<Cluster>, plural: &str, object: &Value) {
    let (namespace, name, uid) = names(object);
    let at = (namespace.as_str(), name.as_str(), uid.as_str());
    match plural {
        "jobs" | "pods" => {
            // Who waits for these sees it and does the rest.
            cluster.change(plural, at, |object| {
                let meta = &mut object["metadata"];
                if meta["deletionTimestamp"].is_null() {
                    meta["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                }
            });
        }
        "persistentvolumeclaims" => {
            let used = cluster.world().all("pods", &namespace).iter().any(|pod| {
                let volumes = pod["spec"]["volumes"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                volumes
                    .iter()
                    .any(|one| one["persistentVolumeClaim"]["claimName"] == *name)
            });
            cluster.change(plural, at, |claim| {
                claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            });
            if !used {
                cluster.remove(plural, &namespace, &name);
                let _ = std::fs::remove_dir_all(cluster.path("claims", &uid));
            }
        }
        _ => cluster.remove(plural, &namespace, &name),
    }
}

fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

async fn run_job(cluster: Arc<Cluster>, job: Value) {
    sleep(REACTION).await;
    let (namespace, name, uid) = names(&job);
    let mut is_made = make_pod(&cluster, &job);
    let mut newest = cluster.newest.subscribe();
    let mut finished: Option<tokio::time::Instant> = None;
    let mut last_phase = Value::Null;
    loop {
        let Some(job) = cluster.world().get("jobs", &namespace, &name) else {
            return;
        };
        if job["metadata"]["uid"] != *uid {
            return;
        }
        let mut pods = cluster.world().all("pods", &namespace);
        pods.retain(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == *uid);
        if is_leaving(&job) {
            for pod in pods.iter().filter(|pod| !is_leaving(pod)) {
                delete(&cluster, "pods", pod);
            }
            if pods.is_empty() {
                return cluster.remove("jobs", &namespace, &name);
            }
        } else if let Some(since) = finished {
            let ttl = job["spec"]["ttlSecondsAfterFinished"].as_u64();
            if ttl.is_some_and(|ttl| since.elapsed() >= Duration::from_secs(ttl)) {
                delete(&cluster, "jobs", &job);
                continue;
            }
        } else if !is_made {
            // It tries for ever, more and more seldom.
            sleep(REMAKE_INTERVAL).await;
            is_made = make_pod(&cluster, &job);
        } else {
            // One that somebody deleted counts by how it ended; with no retries there is no second.
            if let Some(pod) = pods.first() {
                last_phase = pod["status"]["phase"].clone();
            }
            let how = match (last_phase.as_str(), pods.is_empty()) {
                (Some("Succeeded"), _) => Some("Complete"),
                (Some("Failed"), _) | (_, true) => Some("Failed"),
                _ => None,
            };
            if let Some(how) = how {
                finished = Some(tokio::time::Instant::now());
                cluster.change("jobs", (&namespace, &name, &uid), |job| {
                    job["status"] = json!({"conditions": [{"type": how, "status": "True"}]});
                });
            }
        }
        let _ = tokio::time::timeout(Duration::from_millis(100), newest.changed()).await;
    }
}

/// `false` where it was refused.
fn make_pod(cluster: &Arc<Cluster>, job: &Value) -> bool {
    let (namespace, name, uid) = names(job);
    let template = &job["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": template["metadata"], "spec": template["spec"],
    });
    pod["metadata"]["name"] = format!("{name}-{}", suffix()).into();
    pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = name.as_str().into();
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true,
        "blockOwnerDeletion": true,
    }]);
    admission::mutate(cluster, &mut pod);
    let planned = cluster.habits().refusals.pop().map(str::to_owned);
    let refused = planned.or_else(|| admission::refusal(cluster, &namespace, &pod["spec"]));
    if let Some(why) = refused {
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{name}.{}", suffix())},
            "involvedObject": {"kind": "Job", "name": name, "uid": uid},
            "type": "Warning", "reason": "FailedCreate",
            "message": format!("Error creating: pods \"{name}\" is forbidden: {why}"),
        });
        cluster.put("events", &namespace, event);
        return false;
    }
    pod["status"] = json!({"phase": "Pending"});
    let made = cluster.put("pods", &namespace, pod);
    created(cluster, "pods", &made);
    true
}
