//! The one node: runs a pod's containers, says how they are, and ends them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::cell::{Cell, Order, VolumeMount};
use super::controllers::{names, suffix};
use super::{Cluster, NO_IMAGE};

/// What the cluster says lags behind what is so.
const STATUS_LAG: Duration = Duration::from_millis(150);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How a pod ended, in the cluster's words.
struct PodEnd {
    phase: &'static str,
    reason: Option<(&'static str, &'static str)>,
}

pub(crate) async fn run(cluster: Arc<Cluster>, pod: Value) {
    let (namespace, name, uid) = names(&pod);
    let say = |status: Value| {
        cluster.change("pods", (&namespace, &name, &uid), |pod| {
            pod["status"] = status;
        });
    };
    while cluster.habits().full {
        say(json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available: 1 Insufficient memory.",
        }]}));
        if is_leaving(&cluster, &pod) {
            return forget(&cluster, &pod);
        }
        sleep(LOOK_INTERVAL).await;
    }
    cluster.change("pods", (&namespace, &name, &uid), |pod| {
        pod["spec"]["nodeName"] = "node-1".into();
        pod["status"] = json!({"phase": "Pending"});
    });
    if pod["spec"]["containers"][0]["image"] == NO_IMAGE {
        let waiting =
            json!({"waiting": {"reason": "ImagePullBackOff", "message": "manifest unknown"}});
        let of = |name: &str| json!({"name": name, "state": waiting});
        say(json!({"phase": "Pending", "containerStatuses": [of("sandbox"), of("place")]}));
        while !is_leaving(&cluster, &pod) {
            sleep(LOOK_INTERVAL).await;
        }
        return forget(&cluster, &pod);
    }
    if cluster.habits().no_network {
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{name}.{}", suffix())},
            "involvedObject": {"kind": "Pod", "name": name, "uid": uid},
            "type": "Warning", "reason": "FailedCreatePodSandBox",
            "message": "Failed to create pod sandbox: failed to find network info for sandbox",
        });
        cluster.put("events", &namespace, event);
        while !is_leaving(&cluster, &pod) {
            sleep(LOOK_INTERVAL).await;
        }
        return forget(&cluster, &pod);
    }
    let mut cells = BTreeMap::new();
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let cell = Cell::start(order(&cluster, &pod, container)).await;
        let of = container["name"].as_str().unwrap().to_owned();
        let key = (uid.clone(), of.clone());
        cluster.cells.lock().unwrap().insert(key, Arc::clone(&cell));
        cells.insert(of, cell);
    }
    let end = tend(&cluster, &pod, &cells).await;
    for cell in cells.values() {
        cell.kill().await;
    }
    let mut status = status(&cells, end.phase);
    if let Some((reason, message)) = end.reason {
        status["reason"] = reason.into();
        status["message"] = message.into();
    }
    say(status);
    while !is_leaving(&cluster, &pod) {
        sleep(LOOK_INTERVAL).await;
        if cluster.world().get("pods", &namespace, &name).is_none() {
            break;
        }
    }
    forget(&cluster, &pod);
}

async fn tend(cluster: &Cluster, pod: &Value, cells: &BTreeMap<String, Arc<Cell>>) -> PodEnd {
    let (namespace, name, uid) = names(pod);
    let begun = Instant::now();
    let deadline = pod["spec"]["activeDeadlineSeconds"]
        .as_u64()
        .unwrap_or(u64::MAX);
    let mut said = Value::Null;
    loop {
        if is_leaving(cluster, pod) {
            let grace = pod["spec"]["terminationGracePeriodSeconds"]
                .as_u64()
                .unwrap_or(30);
            end_politely(cells, Duration::from_secs(grace)).await;
            return of_exits(cells);
        }
        if begun.elapsed().as_secs() >= deadline {
            let why = (
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
            );
            return PodEnd {
                phase: "Failed",
                reason: Some(why),
            };
        }
        if cells.values().all(|cell| cell.exit().is_some()) {
            return of_exits(cells);
        }
        let evicted = cluster.world().get("pods", &namespace, &name);
        if evicted.is_some_and(|pod| pod["metadata"]["annotations"]["test-evict"] == "yes") {
            let why = (
                "Evicted",
                "The node was low on resource: ephemeral-storage.",
            );
            return PodEnd {
                phase: "Failed",
                reason: Some(why),
            };
        }
        if begun.elapsed() > STATUS_LAG {
            let now = status(cells, "Running");
            if now != said {
                cluster.change("pods", (&namespace, &name, &uid), |pod| {
                    pod["status"] = now.clone();
                });
                said = now;
            }
        }
        sleep(LOOK_INTERVAL).await;
    }
}

fn of_exits(cells: &BTreeMap<String, Arc<Cell>>) -> PodEnd {
    let good = cells.values().all(|cell| cell.exit() == Some(0));
    PodEnd {
        phase: if good { "Succeeded" } else { "Failed" },
        reason: None,
    }
}

async fn end_politely(cells: &BTreeMap<String, Arc<Cell>>, grace: Duration) {
    for cell in cells.values() {
        cell.signal(rustix::process::Signal::TERM);
    }
    let asked = Instant::now();
    while cells.values().any(|cell| cell.exit().is_none()) && asked.elapsed() < grace {
        sleep(LOOK_INTERVAL).await;
    }
}

fn status(cells: &BTreeMap<String, Arc<Cell>>, phase: &str) -> Value {
    let statuses: Vec<_> = cells
        .iter()
        .map(|(name, cell)| {
            let state = match cell.exit() {
                None => json!({"running": {}}),
                Some(0) => json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
                Some(code) => {
                    let message = cell.last_words();
                    json!({"terminated": {"exitCode": code, "reason": "Error", "message": message}})
                }
            };
            let runs = cell.exit().is_none();
            // Other people's clients want all that has to be there.
            json!({
                "name": name, "ready": runs, "started": runs, "state": state, "restartCount": 0,
                "image": "debian:12", "imageID": "", "lastState": {},
            })
        })
        .collect();
    json!({"phase": phase, "containerStatuses": statuses, "podIP": "10.0.0.7"})
}

fn is_leaving(cluster: &Cluster, pod: &Value) -> bool {
    let (namespace, name, uid) = names(pod);
    let now = cluster.world().get("pods", &namespace, &name);
    now.is_none_or(|now| {
        now["metadata"]["uid"] != *uid || !now["metadata"]["deletionTimestamp"].is_null()
    })
}

fn forget(cluster: &Cluster, pod: &Value) {
    let (namespace, name, uid) = names(pod);
    cluster
        .cells
        .lock()
        .unwrap()
        .retain(|(of, _), _| *of != uid);
    let _ = fs::remove_dir_all(cluster.path("pods", &uid));
    cluster.remove("pods", &namespace, &name);
    // A claim that waited for this pod goes now.
    for claim in cluster.world().all("persistentvolumeclaims", &namespace) {
        if !claim["metadata"]["deletionTimestamp"].is_null() {
            let (_, name, uid) = names(&claim);
            let version = cluster
                .world()
                .remove("persistentvolumeclaims", &namespace, &name);
            cluster.newest.send_replace(version);
            let _ = fs::remove_dir_all(cluster.path("claims", &uid));
        }
    }
}

fn order(cluster: &Cluster, pod: &Value, container: &Value) -> Order {
    let (namespace, _, uid) = names(pod);
    let name = container["name"].as_str().unwrap();
    let base = cluster.path("pods", &uid);
    let user = pod["spec"]["securityContext"]["runAsUser"]
        .as_u64()
        .unwrap();
    let user = u32::try_from(user).unwrap();
    let texts = |list: &Value| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        items
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    };
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    let mounts = mounts.map(|mount| VolumeMount {
        from: volume(cluster, &namespace, pod, &mount["name"], &base, user),
        to: mount["mountPath"].as_str().unwrap().to_owned(),
        read_only: mount["readOnly"] == true,
    });
    // As every cluster has it, whatever the pod asks for.
    let mut env: BTreeMap<_, _> = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        ("KUBERNETES_SERVICE_HOST", "10.96.0.1"),
        ("KUBERNETES_SERVICE_PORT", "443"),
        ("KUBERNETES_PORT_443_TCP_ADDR", "10.96.0.1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    for entry in container["env"].as_array().into_iter().flatten() {
        let value = entry["value"]
            .as_str()
            .unwrap_or_default()
            .replace("$$", "$");
        env.insert(entry["name"].as_str().unwrap().to_owned(), value);
    }
    Order {
        root: base.join(name),
        user,
        mounts: mounts.collect(),
        env,
        workdir: container["workingDir"].as_str().unwrap_or("/").to_owned(),
        words: texts(&container["command"]),
        network: cluster.habits().network.clone(),
    }
}

fn volume(
    cluster: &Cluster,
    namespace: &str,
    pod: &Value,
    name: &Value,
    base: &std::path::Path,
    user: u32,
) -> PathBuf {
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let volume = volumes
        .iter()
        .find(|volume| volume["name"] == *name)
        .unwrap();
    let place = match volume["persistentVolumeClaim"]["claimName"].as_str() {
        Some(claim) => {
            let claims = "persistentvolumeclaims";
            let claim = cluster.world().get(claims, namespace, claim).unwrap();
            cluster.path("claims", &names(&claim).2)
        }
        None => base.join("volumes").join(name.as_str().unwrap()),
    };
    fs::create_dir_all(&place).unwrap();
    super::cell::give(&place, user);
    place
}
