//! Why a pod does not serve, from what the cluster says about it.

use hermetic_sandbox::BackendError;
use serde_json::Value;

use super::shape;
use super::trouble::one_line;

/// The pod's program refused: it reaches what it should not (`inside::REACHES`).
const REACHES: i64 = 78;

/// What keeps a container waiting and does not pass.
const LASTING: [&str; 7] = [
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// What an admission says that has to learn something first: a namespace whose account is not made yet, a
/// quota that is not counted yet or that another request was faster to change, a server just started.
const PASSING: [&str; 5] = [
    "error looking up service account",
    "status unknown for quota",
    "the object has been modified",
    "not yet ready to handle request",
    "timed out",
];

pub(crate) fn may_pass(said: &str) -> bool {
    PASSING.iter().any(|passing| said.contains(passing))
}

/// What can be expected of a pod.
#[derive(Debug)]
pub(crate) enum PodOutlook {
    /// With what it waits for, where that is known.
    Starting(Option<String>),
    Running,
    /// It will never serve again, and why.
    Over(BackendError),
}

/// Nothing where the container was not started yet.
pub(crate) fn container<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    let status = statuses.iter().find(|status| status["name"] == name)?;
    Some(&status["state"])
}

/// Whether the warden lies in its place, which is all that this container waits for.
pub(crate) fn is_placed(pod: &Value) -> bool {
    container(pod, shape::PLACE).is_some_and(|state| state["terminated"]["exitCode"] == 0)
}

pub(crate) fn outlook(pod: &Value) -> PodOutlook {
    for name in [shape::SANDBOX, shape::PLACE] {
        let Some(state) = container(pod, name) else {
            continue;
        };
        let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
        if LASTING.contains(&waiting) {
            return PodOutlook::Over(cannot_start(waiting, &state["waiting"]["message"]));
        }
        let ended = &state["terminated"];
        let is_done = name == shape::PLACE && ended["exitCode"] == 0;
        if !ended.is_null() && !is_done {
            return PodOutlook::Over(ending(pod, ended));
        }
    }
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if matches!(phase, "Failed" | "Succeeded") {
        return PodOutlook::Over(ending(pod, &Value::Null));
    }
    if container(pod, shape::SANDBOX).is_some_and(|state| !state["running"].is_null()) {
        return PodOutlook::Running;
    }
    PodOutlook::Starting(unscheduled(pod))
}

fn unscheduled(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let scheduled = conditions
        .iter()
        .find(|one| one["type"] == "PodScheduled")?;
    (scheduled["status"] == "False").then(|| words(&scheduled["message"]))
}

fn cannot_start(reason: &str, message: &Value) -> BackendError {
    BackendError::Unavailable {
        what: format!(
            "the cluster cannot start the sandbox: {reason}: {}",
            words(message)
        ),
        remedy: "name an image that its nodes can pull and that has /bin/sh \
                 (terminal.kubernetes_image, kubernetes_image_pull_secrets)"
            .to_owned(),
    }
}

fn ending(pod: &Value, ended: &Value) -> BackendError {
    let said = words(&ended["message"]);
    if ended["exitCode"] == REACHES {
        return BackendError::Unavailable {
            what: format!("a sandbox that is not sealed is no sandbox: {said}"),
            remedy:
                "give the pods a runtime class without a network, or deny it by a NetworkPolicy \
                     that the cluster enforces; what is left and accepted is named in \
                     terminal.kubernetes_accept_risks (docs/guides/kubernetes.md)"
                    .to_owned(),
        };
    }
    let of_pod = |part: &str| words(&pod["status"][part]);
    let parts = [
        of_pod("reason"),
        of_pod("message"),
        words(&ended["reason"]),
        said,
        ended["exitCode"]
            .as_i64()
            .map(|code| format!("code {code}"))
            .unwrap_or_default(),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let why = match parts.as_slice() {
        [] => "nothing was said".to_owned(),
        parts => parts.join(", "),
    };
    BackendError::failed("start the sandbox", format!("its pod ended: {why}"))
}

fn words(text: &Value) -> String {
    one_line(text.as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(sandbox: &Value, place: &Value) -> Value {
        json!({"status": {"phase": "Pending", "containerStatuses": [
            {"name": "place", "state": place}, {"name": "sandbox", "state": sandbox},
        ]}})
    }

    #[test]
    fn a_pod_that_is_not_sealed_is_refused_with_what_it_reaches() {
        let ended = json!({"terminated": {"exitCode": 78, "message": "this pod reaches api (10.0.0.1:443)\n"}});
        let PodOutlook::Over(error) = outlook(&pod(&ended, &json!({}))) else {
            panic!("it is over");
        };
        assert!(error.to_string().contains("api (10.0.0.1:443)"), "{error}");
        let BackendError::Unavailable { remedy, .. } = error else {
            panic!("with a remedy");
        };
        assert!(remedy.contains("kubernetes_accept_risks"), "{remedy}");
    }

    #[test]
    fn what_passes_is_waited_for_and_what_does_not_is_said() {
        let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "why not"}});
        let passes = pod(&waiting("ContainerCreating"), &waiting("PodInitializing"));
        assert!(matches!(outlook(&passes), PodOutlook::Starting(None)));
        let lasting = pod(&waiting("ContainerCreating"), &waiting("ImagePullBackOff"));
        assert!(
            matches!(outlook(&lasting), PodOutlook::Over(error) if error.to_string().contains("why not"))
        );
        let nowhere = json!({"status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}});
        assert!(
            matches!(outlook(&nowhere), PodOutlook::Starting(Some(why)) if why.contains("0/3"))
        );
    }

    #[test]
    fn the_end_of_the_container_that_only_waits_is_no_end() {
        let placed = pod(
            &json!({"running": {}}),
            &json!({"terminated": {"exitCode": 0}}),
        );
        assert!(is_placed(&placed));
        assert!(matches!(outlook(&placed), PodOutlook::Running));
        let failed = pod(
            &json!({"running": {}}),
            &json!({"terminated": {"exitCode": 69}}),
        );
        assert!(!is_placed(&failed) && matches!(outlook(&failed), PodOutlook::Over(_)));
    }

    #[test]
    fn an_eviction_is_told_in_the_clusters_words() {
        let evicted =
            json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on disk"}});
        let PodOutlook::Over(error) = outlook(&evicted) else {
            panic!("it is over");
        };
        assert!(
            error.with_causes().contains("Evicted, low on disk"),
            "{error:?}"
        );
    }
}
