//! What a cluster has to offer, told by asking it. No pod is made for that.

use hermetic_sandbox::{BackendReadiness, LayerState, SealLayer};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::client::ObjectKind;
use super::kubernetes::KubernetesState;
use super::manifest::RIGHTS;
use super::options::AcceptedRisk;
use super::trouble::ClusterTrouble;

/// A person waits for the answer.
const READINESS_TIMEOUT: Duration = Duration::from_secs(15);
const MANIFEST: &str = "hermetic kubernetes manifest | kubectl apply -f -";

pub(crate) async fn examine(host: &KubernetesState) -> BackendReadiness {
    let layers = match timeout(READINESS_TIMEOUT, layers(host)).await {
        Ok(layers) => layers,
        Err(_) => vec![SealLayer {
            name: "cluster",
            state: LayerState::Required,
            detail: "it said nothing for a quarter of a minute".to_owned(),
            remedy: Some("try kubectl get namespaces".to_owned()),
        }],
    };
    BackendReadiness { layers }
}

async fn layers(host: &KubernetesState) -> Vec<SealLayer> {
    let cluster = match cluster(host).await {
        Ok(layer) => layer,
        Err(trouble) => {
            return vec![SealLayer::broken(
                "cluster",
                &trouble.at("tell about itself"),
            )];
        }
    };
    let options = &host.config.options;
    let image = SealLayer::active(
        "image",
        format!("{}, pulled by the node that needs it", host.config.image),
    );
    let files = match options.storage_class.as_deref() {
        Some(class) => format!("{} of class {class}", options.volume_size),
        None => format!("{} of the cluster's default class", options.volume_size),
    };
    vec![
        cluster,
        rights(host).await,
        standard(host).await,
        network(host).await,
        isolation(host),
        image,
        SealLayer::active("cpu limit", "kept by the kubelet"),
        SealLayer::active("memory limit", "kept by the kubelet"),
        processes(host),
        SealLayer::active("open files limit", "set on the warden, which hands it on"),
        SealLayer::weaker(
            "disk limit",
            format!(
                "a pod over it is evicted, a minute or two late; kept: {files}; inodes are not bounded"
            ),
            "give nodes of sandboxes a disk of their own",
        ),
        SealLayer::active(
            "end of life",
            format!(
                "the warden's, and the cluster's after {} h at most",
                options.deadline.as_secs().div_ceil(3600)
            ),
        ),
    ]
}

async fn cluster(host: &KubernetesState) -> Result<SealLayer, ClusterTrouble> {
    let version = host.cluster.get(host.cluster.at(&["version"])).await?;
    let version = version["gitVersion"]
        .as_str()
        .unwrap_or("of an unknown version");
    let access = &host.config.access;
    let detail = format!(
        "{}: {version}, namespace {}",
        access.name,
        access.namespace()
    );
    Ok(SealLayer::active("cluster", detail))
}

async fn rights(host: &KubernetesState) -> SealLayer {
    let mut lacking = Vec::new();
    for right in RIGHTS.iter().filter(|right| right.needed) {
        for verb in right.verbs {
            match may(host, right.group, right.resource, verb).await {
                Ok(true) => {}
                Ok(false) => lacking.push(format!("{verb} {}", right.resource)),
                Err(trouble) => return SealLayer::broken("rights", &trouble.at("tell our rights")),
            }
        }
    }
    if lacking.is_empty() {
        return SealLayer::active("rights", "all that it takes, in this namespace");
    }
    SealLayer {
        name: "rights",
        state: LayerState::Required,
        detail: format!("not allowed to {}", lacking.join(", ")),
        remedy: Some(MANIFEST.to_owned()),
    }
}

async fn may(
    host: &KubernetesState,
    group: &str,
    resource: &str,
    verb: &str,
) -> Result<bool, ClusterTrouble> {
    let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": host.config.access.namespace(), "group": group, "resource": resource,
            "subresource": part, "verb": verb,
        }},
    });
    let words = [
        "apis",
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
    ];
    let answer = host.cluster.post(host.cluster.at(&words), &review).await?;
    Ok(answer["status"]["allowed"] == true)
}

async fn standard(host: &KubernetesState) -> SealLayer {
    const NAME: &str = "pod security";
    const LABEL: &str = "pod-security.kubernetes.io/enforce";
    let namespace = host.config.access.namespace();
    let remedy = format!("kubectl label namespace {namespace} {LABEL}=restricted");
    let words = ["api", "v1", "namespaces", namespace];
    match host.cluster.get(host.cluster.at(&words)).await {
        Ok(found) => match found["metadata"]["labels"][LABEL].as_str() {
            Some("restricted") => SealLayer::active(NAME, "the namespace enforces `restricted`"),
            Some(other) => SealLayer::weaker(
                NAME,
                format!("our pods keep `restricted`; the namespace enforces only {other:?}"),
                remedy,
            ),
            None => SealLayer::weaker(
                NAME,
                "our pods keep `restricted`; the namespace enforces nothing on others",
                remedy,
            ),
        },
        Err(ClusterTrouble::Missing) => SealLayer {
            name: NAME,
            state: LayerState::Required,
            detail: format!("there is no namespace {namespace}"),
            remedy: Some(MANIFEST.to_owned()),
        },
        Err(trouble) => SealLayer::weaker(
            NAME,
            format!(
                "our pods keep `restricted`; what the namespace enforces is not known: {trouble}"
            ),
            MANIFEST,
        ),
    }
}

/// What is written down proves nothing, so each sandbox looks for itself before it serves.
async fn network(host: &KubernetesState) -> SealLayer {
    const NAME: &str = "network";
    let options = &host.config.options;
    let accepted = &options.accepted;
    let listed = host
        .cluster
        .list(ObjectKind::NetworkPolicy, ("labelSelector", ""))
        .await;
    let policy = match listed {
        Ok(policies) if policies.iter().any(denies_all) => "a policy denies ours everything",
        Ok(policies) if policies.is_empty() => "the namespace has no NetworkPolicy",
        Ok(_) => "no NetworkPolicy of the namespace denies ours everything",
        Err(_) => "its NetworkPolicies cannot be read",
    };
    let looks = "each sandbox looks from inside and serves only where nothing answers";
    if accepted.is_empty() {
        let detail = format!("{looks}; {policy}");
        return match &options.runtime_class {
            Some(class) => SealLayer::active(NAME, format!("{detail}; runtime class {class}")),
            None => SealLayer::weaker(
                NAME,
                detail,
                "a pod with any route is refused: see docs/guides/kubernetes.md",
            ),
        };
    }
    let names: Vec<_> = accepted.iter().map(|risk| risk.name()).collect();
    let detail = format!(
        "{looks}, besides what terminal.kubernetes_accept_risks names ({}); {policy}",
        names.join(", ")
    );
    let only_route = accepted.iter().all(|risk| *risk == AcceptedRisk::Route);
    SealLayer {
        name: NAME,
        state: if only_route {
            LayerState::Weaker
        } else {
            LayerState::Missing
        },
        detail,
        remedy: Some("leave terminal.kubernetes_accept_risks out".to_owned()),
    }
}

/// One that selects all pods, or ours by their common label, and lets nothing out.
fn denies_all(policy: &Value) -> bool {
    let spec = &policy["spec"];
    let labels = spec["podSelector"]["matchLabels"].as_object();
    let ours = ("app.kubernetes.io/name", "hermetic-sandbox");
    let selects = labels.is_none_or(|labels| {
        labels
            .iter()
            .all(|(name, value)| (name.as_str(), value.as_str()) == (ours.0, Some(ours.1)))
    });
    let expressions = spec["podSelector"]["matchExpressions"].as_array();
    let types = spec["policyTypes"].as_array().into_iter().flatten();
    let is_about_egress = types.into_iter().any(|kind| kind == "Egress");
    let lets_out = spec["egress"]
        .as_array()
        .is_some_and(|rules| !rules.is_empty());
    selects && expressions.is_none_or(Vec::is_empty) && is_about_egress && !lets_out
}

fn isolation(host: &KubernetesState) -> SealLayer {
    let options = &host.config.options;
    let users = if options.host_users {
        "a user of its own"
    } else {
        "a user namespace of its own"
    };
    let base =
        format!("no privilege, no capability, the runtime's and our own system calls, {users}");
    match &options.runtime_class {
        Some(class) => SealLayer::active("isolation", format!("runtime class {class}; {base}")),
        None => SealLayer::weaker(
            "isolation",
            format!("the node's own kernel, shared with its other pods; {base}"),
            "where nodes have gVisor or Kata: terminal.kubernetes_runtime_class",
        ),
    }
}

fn processes(host: &KubernetesState) -> SealLayer {
    const NAME: &str = "process limit";
    match host.config.options.user {
        None => SealLayer::weaker(
            NAME,
            "counted for the sandbox's own user; a bound on the whole pod is the kubelet's \
             (podPidsLimit), which is not known from here",
            "set podPidsLimit on nodes of sandboxes",
        ),
        Some(_) => SealLayer {
            name: NAME,
            state: LayerState::Missing,
            detail:
                "terminal.kubernetes_user has all sandboxes share one user, whose processes cannot \
                     be bounded for each; the kubelet may (podPidsLimit)"
                    .to_owned(),
            remedy: Some("leave terminal.kubernetes_user out, or set podPidsLimit".to_owned()),
        },
    }
}
