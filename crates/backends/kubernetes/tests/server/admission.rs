//! Who is let in: the `restricted` Pod Security Standard, as far as a test can break it.

use serde_json::{Value, json};

use super::Cluster;

const VOLUMES: [&str; 7] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
];

/// What a webhook adds, and what the API server itself fills in.
pub(crate) fn mutate(cluster: &Cluster, pod: &mut Value) {
    if let Some(added) = &cluster.habits().added {
        for (name, value) in added.as_object().unwrap() {
            // One with slashes leads to something that is there.
            if let Some(there) = pod["spec"].pointer_mut(name).filter(|_| !name.is_empty()) {
                *there = value.clone();
                continue;
            }
            let merged = pod["spec"].as_object_mut().unwrap();
            match (merged.get_mut(name), value) {
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more.iter().cloned()),
                _ => drop(merged.insert(name.clone(), value.clone())),
            }
        }
    }
    let spec = &mut pod["spec"];
    for (name, default) in [
        ("automountServiceAccountToken", json!(true)),
        ("dnsPolicy", json!("ClusterFirst")),
    ] {
        if spec[name].is_null() {
            spec[name] = default;
        }
    }
    if spec["automountServiceAccountToken"] == true {
        let token = json!({"name": "kube-api-access", "projected": {}});
        match spec["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(token),
            None => spec["volumes"] = json!([token]),
        }
    }
}

/// Why not, in the words of the real one.
pub(crate) fn refusal(cluster: &Cluster, namespace: &str, spec: &Value) -> Option<String> {
    let namespace = cluster.world().get("namespaces", "", namespace)?;
    if namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] != "restricted" {
        return None;
    }
    let mut broken = Vec::new();
    let of_pod = &spec["securityContext"];
    for name in ["hostNetwork", "hostPID", "hostIPC"] {
        if spec[name] == true {
            broken.push(format!("host namespaces ({name}=true)"));
        }
    }
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let kinds = volume
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| *key != "name");
        for kind in kinds.filter(|kind| !VOLUMES.contains(&kind.as_str())) {
            broken.push(format!("restricted volume types (volume uses \"{kind}\")"));
        }
    }
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let containers = lists
        .iter()
        .filter_map(|list| spec[list].as_array())
        .flatten();
    for container in containers {
        let own = &container["securityContext"];
        let either = |key: &str| {
            if own[key].is_null() {
                &of_pod[key]
            } else {
                &own[key]
            }
        };
        let name = &container["name"];
        if own["allowPrivilegeEscalation"] != false {
            broken.push(format!(
                "allowPrivilegeEscalation != false (container {name})"
            ));
        }
        if own["privileged"] == true {
            broken.push(format!("privileged (container {name})"));
        }
        let drops = own["capabilities"]["drop"].as_array();
        if !drops.is_some_and(|drops| drops.iter().any(|one| one == "ALL")) {
            broken.push(format!("unrestricted capabilities (container {name})"));
        }
        if *either("runAsNonRoot") != true {
            broken.push(format!("runAsNonRoot != true (container {name})"));
        }
        if *either("runAsUser") == 0 {
            broken.push(format!("runAsUser=0 (container {name})"));
        }
        let seccomp = either("seccompProfile")["type"].as_str();
        if !matches!(seccomp, Some("RuntimeDefault" | "Localhost")) {
            broken.push(format!("seccompProfile (container {name})"));
        }
    }
    let why = broken.join(", ");
    (!broken.is_empty()).then(|| format!("violates PodSecurity \"restricted:latest\": {why}"))
}
