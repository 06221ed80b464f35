//! Whether a pod is what was asked for.
//!
//! An admission of the cluster's own may change what it lets in, and a server that does not know a field drops it
//! without a word. What was added that way is no part of a seal, and what was dropped is missing from it. So every
//! field that holds something shut is compared; others (labels, tolerations, addresses of images) may be changed.

use hermetic_sandbox::BackendError;
use serde_json::{Value, json};

use super::shape;

/// Each has to be as it was asked for.
const OF_POD: [(&str, &str); 9] = [
    (
        "/automountServiceAccountToken",
        "it is given a token of the cluster",
    ),
    ("/dnsPolicy", "it is given a DNS"),
    ("/dnsConfig", "it is given a DNS"),
    ("/runtimeClassName", "it has another runtime class"),
    ("/securityContext/runAsNonRoot", ANOTHER_USER),
    ("/securityContext/runAsUser", ANOTHER_USER),
    ("/securityContext/runAsGroup", ANOTHER_USER),
    ("/securityContext/supplementalGroups", ANOTHER_USER),
    (
        "/securityContext/seccompProfile",
        "its system calls are not held as asked for",
    ),
];

/// The same of each container.
const OF_CONTAINER: [(&str, &str); 9] = [
    ("/command", "it runs another command"),
    ("/args", "it runs another command"),
    ("/securityContext/allowPrivilegeEscalation", MORE_PRIVILEGE),
    ("/securityContext/privileged", MORE_PRIVILEGE),
    ("/securityContext/capabilities", MORE_PRIVILEGE),
    ("/securityContext/runAsNonRoot", ANOTHER_USER),
    ("/securityContext/runAsUser", ANOTHER_USER),
    ("/securityContext/runAsGroup", ANOTHER_USER),
    (
        "/securityContext/seccompProfile",
        "its system calls are not held as asked for",
    ),
];

const ANOTHER_USER: &str = "it runs as another user";
const MORE_PRIVILEGE: &str = "it has more privilege than was asked for";

/// Refused unless everything that matters is as wanted.
pub(super) fn check(spec: &Value, wanted: &Value) -> Result<(), BackendError> {
    match difference(spec, wanted) {
        None => Ok(()),
        Some(why) => Err(BackendError::Refused {
            what: "a pod that is not what was asked for".to_owned(),
            why: format!("{why}: an admission webhook or policy of the cluster changed it"),
        }),
    }
}

fn difference(spec: &Value, wanted: &Value) -> Option<&'static str> {
    let is_empty = |key: &str| spec[key].as_array().is_none_or(Vec::is_empty);
    if names(&spec["containers"]) != [shape::PLACE, shape::SANDBOX]
        || !is_empty("initContainers")
        || !is_empty("ephemeralContainers")
    {
        return Some("it has containers that were not asked for");
    }
    if volumes(spec) != volumes(wanted) {
        return Some("it has volumes that were not asked for");
    }
    let given = |key: &str| !matches!(spec[key], Value::Null | Value::Bool(false));
    if given("hostNetwork") || given("hostPID") || given("hostIPC") {
        return Some("it shares the node's namespaces");
    }
    if given("shareProcessNamespace") {
        return Some("its containers see each other's processes");
    }
    // A cluster without the feature drops it and runs the pod.
    if wanted["hostUsers"] == false && spec["hostUsers"] != false {
        return Some(
            "it has no user namespace of its own, which this cluster or its nodes may not have",
        );
    }
    let of_pod = unlike(spec, wanted, &OF_POD);
    let containers = || spec["containers"].as_array().into_iter().flatten();
    of_pod.or_else(|| containers().find_map(|container| changed_container(container, wanted)))
}

fn changed_container(container: &Value, wanted: &Value) -> Option<&'static str> {
    let mut all = wanted["containers"].as_array().into_iter().flatten();
    let wanted = all.find(|one| one["name"] == container["name"])?;
    if mounts(container) != mounts(wanted) || !container["volumeDevices"].is_null() {
        return Some("something is mounted that was not asked for, or otherwise");
    }
    unlike(container, wanted, &OF_CONTAINER)
}

fn unlike(found: &Value, wanted: &Value, fields: &[(&str, &'static str)]) -> Option<&'static str> {
    let differs = |field: &str| found.pointer(field) != wanted.pointer(field);
    let unlike = fields.iter().find(|(field, _)| differs(field));
    unlike.map(|(_, why)| *why)
}

fn names(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<_> = items.map(name).collect();
    names.sort();
    names
}

/// Name, kind and claim of each. Sizes are not compared: a server writes them in its own words.
fn volumes(spec: &Value) -> Vec<String> {
    let items = spec["volumes"].as_array().into_iter().flatten();
    let volume = |item: &Value| {
        let fields = item.as_object().into_iter().flatten();
        let given = fields.filter(|(_, value)| !value.is_null());
        let kinds: Vec<_> = given.map(|(name, _)| name).collect();
        let claim = &item["persistentVolumeClaim"]["claimName"];
        json!([item["name"], kinds, claim, item["emptyDir"]["medium"]]).to_string()
    };
    let mut volumes: Vec<_> = items.map(volume).collect();
    volumes.sort();
    volumes
}

/// What lies where, and whether it can be written.
fn mounts(container: &Value) -> Vec<String> {
    let items = container["volumeMounts"].as_array().into_iter().flatten();
    let mount = |item: &Value| {
        let is_read_only = item["readOnly"] == true;
        let parts = [
            &item["name"],
            &item["mountPath"],
            &item["subPath"],
            &item["subPathExpr"],
        ];
        json!([parts, is_read_only, item["mountPropagation"]]).to_string()
    };
    let mut mounts: Vec<_> = items.map(mount).collect();
    mounts.sort();
    mounts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Value {
        let container = |name: &str| {
            json!({
                "name": name, "command": ["/bin/sh", "-c", "true"],
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "bin", "mountPath": "/.hermetic/bin", "readOnly": true}],
            })
        };
        json!({
            "automountServiceAccountToken": false, "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["127.0.0.1"]}, "hostUsers": false,
            "securityContext": {"runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "bin", "emptyDir": {"sizeLimit": "67108864"}}],
            "containers": [container(shape::SANDBOX), container(shape::PLACE)],
        })
    }

    #[test]
    fn what_a_server_fills_in_is_no_change() {
        let mut pod = wanted();
        for (field, value) in [
            ("nodeName", json!("node1")),
            ("hostNetwork", json!(false)),
            (
                "tolerations",
                json!([{"key": "node.kubernetes.io/not-ready"}]),
            ),
            ("initContainers", json!([])),
        ] {
            pod[field] = value;
        }
        pod["volumes"][0]["emptyDir"]["sizeLimit"] = "64Mi".into();
        pod["containers"][0]["imagePullPolicy"] = "Always".into();
        pod["securityContext"]["seLinuxOptions"] = json!({"level": "s0:c1,c2"});
        assert_eq!(difference(&pod, &wanted()), None);
    }

    #[test]
    fn each_field_that_holds_something_shut_is_compared() {
        for (field, value) in [
            ("/hostUsers", Value::Null),
            ("/dnsConfig/nameservers/0", json!("10.96.0.10")),
            ("/securityContext/runAsUser", json!(0)),
            ("/securityContext/seccompProfile/type", json!("Unconfined")),
            (
                "/volumes/0",
                json!({"name": "bin", "hostPath": {"path": "/"}}),
            ),
            ("/containers/0/command/2", json!("exec sleep 9")),
            ("/containers/0/volumeMounts/0/readOnly", json!(false)),
            (
                "/containers/1/securityContext/capabilities",
                json!({"add": ["SYS_ADMIN"]}),
            ),
            (
                "/containers/1/securityContext/allowPrivilegeEscalation",
                json!(true),
            ),
        ] {
            let mut pod = wanted();
            *pod.pointer_mut(field).unwrap() = value;
            assert!(difference(&pod, &wanted()).is_some(), "{field}");
        }
        for added in ["hostPID", "shareProcessNamespace"] {
            let mut pod = wanted();
            pod[added] = true.into();
            assert!(difference(&pod, &wanted()).is_some(), "{added}");
        }
    }
}
