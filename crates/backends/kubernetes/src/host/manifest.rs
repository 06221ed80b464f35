//! What a cluster is given before the first sandbox: a namespace, rights, a policy, and the gateway itself.

/// One kind of object, and what is done with it.
pub(crate) struct ClusterRight {
    pub(crate) group: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) verbs: &'static [&'static str],
    /// Without it nothing works. Others make errors and `doctor` say more.
    pub(crate) needed: bool,
}

/// All that is asked of the cluster, in the namespace of the sandboxes.
pub(crate) const RIGHTS: [ClusterRight; 7] = [
    ClusterRight {
        group: "batch",
        resource: "jobs",
        verbs: &["create", "get", "list", "delete"],
        needed: true,
    },
    ClusterRight {
        group: "",
        resource: "pods",
        verbs: &["get", "list", "delete"],
        needed: true,
    },
    ClusterRight {
        group: "",
        resource: "pods/exec",
        // A websocket is asked for by GET, and counts as both.
        verbs: &["create", "get"],
        needed: true,
    },
    ClusterRight {
        group: "",
        resource: "persistentvolumeclaims",
        verbs: &["create", "get", "list", "delete"],
        needed: true,
    },
    ClusterRight {
        group: "",
        resource: "events",
        verbs: &["list"],
        needed: false,
    },
    ClusterRight {
        group: "",
        resource: "namespaces",
        verbs: &["get"],
        needed: false,
    },
    ClusterRight {
        group: "networking.k8s.io",
        resource: "networkpolicies",
        verbs: &["list"],
        needed: false,
    },
];

/// What a manifest is made for.
#[derive(Clone, Debug)]
pub struct ManifestOptions {
    /// Where sandboxes live.
    pub namespace: String,
    /// Where the gateway lives; none where it is not to be in this cluster.
    pub gateway: Option<String>,
    /// The gateway's image.
    pub image: String,
    /// Has the Prometheus operator look at the gateways. Where its kinds are not installed, `kubectl apply`
    /// would make the rest and fail.
    pub monitor: bool,
}

/// YAML for `kubectl apply -f -`.
pub fn manifest(options: &ManifestOptions) -> String {
    let account = options.gateway.as_deref().unwrap_or(&options.namespace);
    let mut text = sandboxes(&options.namespace, account);
    text.push_str(match options.gateway {
        Some(_) => include_str!("gateway.yaml"),
        None => include_str!("account.yaml"),
    });
    if options.monitor && options.gateway.is_some() {
        text.push_str(include_str!("monitor.yaml"));
    }
    text.replace("@GATEWAY@", account)
        .replace("@SANDBOXES@", &options.namespace)
        .replace("@IMAGE@", &options.image)
}

fn sandboxes(namespace: &str, account: &str) -> String {
    let rules: String = RIGHTS
        .iter()
        .map(|right| {
            format!(
                "- apiGroups: [\"{}\"]\n  resources: [{}]\n  verbs: [{}]\n",
                right.group,
                right.resource,
                right.verbs.join(", ")
            )
        })
        .collect();
    include_str!("sandboxes.yaml")
        .replace("@RULES@\n", &rules)
        .replace("@ACCOUNT@", account)
        .replace("@SANDBOXES@", namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::yaml;

    fn documents(text: &str) -> Vec<serde_json::Value> {
        let documents = text.split("\n---\n").map(yaml::parse);
        documents
            .map(Result::unwrap)
            .filter(|one| !one.is_null())
            .collect()
    }

    #[test]
    fn every_document_can_be_read_and_nothing_is_left_to_fill_in() {
        for (gateway, monitor) in [(None, false), (Some("bots"), false), (Some("bots"), true)] {
            let text = manifest(&ManifestOptions {
                namespace: "boxes".to_owned(),
                gateway: gateway.map(str::to_owned),
                image: "registry.example/hermetic:1".to_owned(),
                monitor,
            });
            assert!(!text.contains('@'), "{text}");
            let documents = documents(&text);
            let of = |kind: &str| documents.iter().filter(|one| one["kind"] == kind).count();
            assert_eq!((of("Role"), of("RoleBinding")), (1, 1));
            assert_eq!(of("StatefulSet"), usize::from(gateway.is_some()));
            // A cluster without its operator refuses the kind, and `apply` fails.
            assert_eq!(of("ServiceMonitor"), usize::from(monitor));
            assert!(of("NetworkPolicy") >= 1);
            for document in &documents {
                assert!(
                    document["apiVersion"].is_string() && document["metadata"]["name"].is_string()
                );
            }
        }
    }

    /// What a secret shows is read-only; copied so, it could not be written over at the next start.
    #[test]
    fn a_gateway_starts_again_on_the_home_it_had() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        fs::create_dir(of("secret")).unwrap();
        fs::create_dir(of("home")).unwrap();
        fs::create_dir(of("home").join("hermetic")).unwrap();
        for (name, words) in [
            ("egress-ca.key", "an earlier key"),
            ("egress-ca.pem", "its certificate"),
        ] {
            fs::write(of("home").join("hermetic").join(name), words).unwrap();
        }
        for name in ["config.yaml", ".env", "installation", "egress-ca.key"] {
            let path = of("secret").join(name);
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
        }
        let documents = documents(&include_str!("gateway.yaml").replace('@', "x"));
        let set = documents.iter().find(|one| one["kind"] == "StatefulSet");
        let init = &set.unwrap()["spec"]["template"]["spec"]["initContainers"][0];
        let script = init["command"][2].as_str().unwrap();
        let script = script
            .replace("/home/hermetic/.hermes", of("home").to_str().unwrap())
            .replace("/secret", of("secret").to_str().unwrap());
        for _ in 0..2 {
            let started = std::process::Command::new("sh")
                .args(["-c", &script])
                .status();
            assert!(started.unwrap().success());
            let certificate = of("home").join("hermetic/egress-ca.pem");
            assert!(!certificate.exists(), "it is another key's");
            for name in [
                "config.yaml",
                ".env",
                "hermetic/installation",
                "hermetic/egress-ca.key",
            ] {
                let mode = fs::metadata(of("home").join(name))
                    .unwrap()
                    .permissions()
                    .mode();
                assert_eq!(mode & 0o777, 0o600, "{name}");
            }
        }
    }

    /// A Prometheus is rarely where the gateways are.
    #[test]
    fn what_scrapes_elsewhere_is_let_in_by_a_label() {
        let documents = documents(&include_str!("gateway.yaml").replace('@', "x"));
        let policy = documents.iter().find(|one| one["kind"] == "NetworkPolicy");
        let from = &policy.unwrap()["spec"]["ingress"][0]["from"];
        let labels = &from[1]["namespaceSelector"]["matchLabels"];
        assert_eq!(labels["hermetic/scrapes"], "gateways", "{from}");
        assert!(from[2].is_null(), "and nobody else: {from}");
    }

    #[test]
    fn the_role_is_what_is_asked_for_and_no_secret() {
        let text = sandboxes("boxes", "boxes");
        let role = documents(&text)
            .into_iter()
            .find(|one| one["kind"] == "Role")
            .unwrap();
        let rules = role["rules"].as_array().unwrap();
        assert_eq!(rules.len(), RIGHTS.len());
        for forbidden in ["secrets", "nodes", "pods/log", "\"*\"", "'*'"] {
            assert!(!text.contains(forbidden), "{forbidden}");
        }
    }
}
