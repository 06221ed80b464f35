//! From a spec to a running sandbox with a link into it, or to nothing.

use std::sync::Arc;
use std::time::Duration;

use hermetic_sandbox::{BackendError, SandboxPersistence, SandboxSpec, WardenLink, launch};
use hermetic_types::SandboxId;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::client::ObjectKind;
use super::kubernetes::{KubernetesState, missing};
use super::label::{is_leaving, name_of, uid_of};
use super::reasons::{self, PodOutlook};
use super::trouble::{ClusterTrouble, one_line};
use super::{death, link, place, shape, unchanged};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodStart {
    Fresh,
    Again,
}

/// A warden that serves answers at once; one that looks around first takes as long as that may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(20);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A Job without a pod for so long is asked for its reasons.
const POD_EXPECTED: Duration = Duration::from_secs(1);
/// A request whose answer was lost may still be under way.
const LATECOMER: Duration = Duration::from_millis(300);
/// How often a warden that never came in is tried before the image is blamed.
const MOST_PLACINGS: u32 = 5;

pub(crate) async fn start(
    host: &Arc<KubernetesState>,
    spec: &SandboxSpec,
    start: PodStart,
) -> Result<WardenLink, BackendError> {
    // Refused before anything is asked for.
    shape::check(spec)?;
    let (making, unwanted) = (Arc::clone(host), Arc::clone(host));
    let (wanted, id) = (spec.clone(), spec.id.clone());
    let make = async move {
        match start {
            PodStart::Fresh => create(&making, &wanted).await,
            PodStart::Again => resume(&making, &wanted).await,
        }
    };
    let discard = async move {
        match start {
            PodStart::Fresh => death::destroy(&unwanted, &id).await,
            PodStart::Again => death::stop(&unwanted, &id).await,
        }
    };
    launch(&spec.id, make, discard).await
}

/// Reaches the warden of one that lives.
pub(crate) async fn connect(
    host: &KubernetesState,
    id: &SandboxId,
) -> Result<WardenLink, BackendError> {
    let step = "reach the sandbox";
    let pods = host.pods_of(id).await.map_err(|trouble| trouble.at(step))?;
    let living = |pod: &&Value| !matches!(reasons::outlook(pod), PodOutlook::Over(_));
    let pod = pods.iter().filter(|pod| !is_leaving(pod)).find(living);
    let pod = pod.ok_or_else(|| missing(id))?;
    match link::reach(&host.cluster, name_of(pod), RECONNECT_TIMEOUT).await {
        Ok(link) => {
            host.mark_answered(id);
            Ok(link)
        }
        // A kubelet that was just started does not know its pods yet: only the cluster says what is gone.
        Err(ClusterTrouble::Missing) if !is_there(host, id, name_of(pod)).await? => {
            Err(missing(id))
        }
        Err(trouble) => Err(trouble.at(step)),
    }
}

async fn is_there(host: &KubernetesState, id: &SandboxId, pod: &str) -> Result<bool, BackendError> {
    let pods = host.pods_of(id).await;
    let pods = pods.map_err(|trouble| trouble.at("reach the sandbox"))?;
    Ok(pods.iter().any(|found| name_of(found) == pod))
}

/// Why there is no sandbox, and whether there may be the rest of one.
struct FailedStart {
    error: BackendError,
    leaves_rest: bool,
}

async fn create(host: &KubernetesState, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let made = bear(host, spec, PodStart::Fresh).await;
    match made {
        Ok(link) => Ok(link),
        Err(failed) => {
            if failed.leaves_rest {
                death::clear(host, &spec.id).await;
            }
            Err(failed.error)
        }
    }
}

/// With the files it was stopped with.
async fn resume(host: &KubernetesState, spec: &SandboxSpec) -> Result<WardenLink, BackendError> {
    let step = "start the sandbox again";
    let job = host.named(ObjectKind::Job, &spec.id).await;
    if let Some((job, _)) = job.map_err(|trouble| trouble.at(step))? {
        if !is_leaving(&job) && !super::find::is_finished(&job) {
            // One that lives already is no second start.
            return connect(host, &spec.id).await;
        }
        death::end_pod(host, &spec.id).await?;
    }
    let claim = host.named(ObjectKind::Claim, &spec.id).await;
    if claim.map_err(|trouble| trouble.at(step))?.is_none() {
        return Err(missing(&spec.id));
    }
    match bear(host, spec, PodStart::Again).await {
        Ok(link) => Ok(link),
        Err(failed) => {
            if failed.leaves_rest
                && let Err(error) = death::end_pod(host, &spec.id).await
            {
                tracing::warn!(sandbox = %spec.id, %error, "a failed start left a pod");
            }
            Err(failed.error)
        }
    }
}

async fn bear(
    host: &KubernetesState,
    spec: &SandboxSpec,
    begin: PodStart,
) -> Result<WardenLink, FailedStart> {
    let image = shape::check(spec).map_err(nothing_left)?;
    let start = Uuid::new_v4().simple().to_string();
    if spec.persistence == SandboxPersistence::Kept && begin == PodStart::Fresh {
        let claim = shape::claim(&host.config.options, spec, &start);
        make(host, spec, (ObjectKind::Claim, &claim), &start).await?;
    }
    let wanted = shape::job(&host.config, spec, image, &start);
    let job = match make(host, spec, (ObjectKind::Job, &wanted), &start).await {
        Ok(job) => job,
        Err(failed) => {
            // The claim was made for this start, and this start alone knows of it.
            let leaves_rest = failed.leaves_rest || spec.persistence == SandboxPersistence::Kept;
            return Err(FailedStart {
                leaves_rest,
                ..failed
            });
        }
    };
    let rest = |error| FailedStart {
        error,
        leaves_rest: true,
    };
    let deadline = Instant::now() + host.config.timeouts.start;
    let pod = wait_for_pod(host, spec, &job, deadline)
        .await
        .map_err(rest)?;
    unchanged::check(&pod["spec"], &wanted["spec"]["template"]["spec"]).map_err(rest)?;
    let link = bring_up(host, name_of(&pod), deadline)
        .await
        .map_err(rest)?;
    host.mark_answered(&spec.id);
    Ok(link)
}

fn nothing_left(error: BackendError) -> FailedStart {
    FailedStart {
        error,
        leaves_rest: false,
    }
}

/// Never asked for twice without a look whether the first was heard: the name is unique, so what was made
/// after all is found by it.
async fn make(
    host: &KubernetesState,
    spec: &SandboxSpec,
    (kind, wanted): (ObjectKind, &Value),
    start: &str,
) -> Result<Value, FailedStart> {
    let step = "create the sandbox";
    let deadline = Instant::now() + host.config.timeouts.requests;
    loop {
        let trouble = match host.cluster.post(host.cluster.url(kind, &[]), wanted).await {
            Ok(made) => return Ok(made),
            Err(trouble) => trouble,
        };
        // Nothing was made, and in a moment it may be.
        let passes = match &trouble {
            ClusterTrouble::Conflict { .. } => true,
            ClusterTrouble::Forbidden { said } => reasons::may_pass(said),
            _ => false,
        };
        if passes && Instant::now() < deadline {
            sleep(LATECOMER).await;
            continue;
        }
        let is_taken = matches!(trouble, ClusterTrouble::Taken { .. });
        if !is_taken && !trouble.leaves_doubt() {
            return Err(nothing_left(trouble.at(step)));
        }
        if !is_taken {
            sleep(LATECOMER).await;
        }
        match host.named(kind, &spec.id).await {
            Ok(Some((found, owned))) if owned.start == start => return Ok(found),
            Ok(Some((found, _))) if is_leaving(&found) && Instant::now() < deadline => {}
            Ok(None) if !is_taken && Instant::now() < deadline => {}
            Ok(_) if is_taken => {
                return Err(nothing_left(BackendError::Refused {
                    what: format!("sandbox {}", spec.id),
                    why: "the id is taken".to_owned(),
                }));
            }
            Ok(_) | Err(_) => {
                return Err(FailedStart {
                    error: trouble.at(step),
                    leaves_rest: true,
                });
            }
        }
        sleep(LATECOMER).await;
    }
}

async fn wait_for_pod(
    host: &KubernetesState,
    spec: &SandboxSpec,
    job: &Value,
    deadline: Instant,
) -> Result<Value, BackendError> {
    let step = "find the sandbox's pod";
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let pods = host
            .pods_of(&spec.id)
            .await
            .map_err(|trouble| trouble.at(step))?;
        let own = pods.into_iter().find(|pod| {
            let owners = pod["metadata"]["ownerReferences"].as_array();
            owners
                .into_iter()
                .flatten()
                .any(|owner| owner["uid"] == uid_of(job))
        });
        if let Some(pod) = own {
            return Ok(pod);
        }
        let why = match begun.elapsed() > POD_EXPECTED {
            true => why_no_pod(host, job).await,
            false => None,
        };
        if let Some(why) = why.as_ref().filter(|why| !reasons::may_pass(why)) {
            let said = why.clone();
            return Err(ClusterTrouble::Forbidden { said }.at("create the sandbox's pod"));
        }
        if Instant::now() > deadline {
            let why = why.unwrap_or_else(|| "the cluster made none".to_owned());
            return Err(BackendError::failed(step, why));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// What an admission or a quota says, which only an event tells where a Job makes the pod.
async fn why_no_pod(host: &KubernetesState, job: &Value) -> Option<String> {
    last_warning(host, job, |reason| reason == "FailedCreate").await
}

/// What the node says of a pod that it cannot start, as that it has no network for it. It tries for ever.
async fn why_not_started(host: &KubernetesState, pod: &Value) -> Option<String> {
    let of_node = |reason: &str| reason.starts_with("Failed");
    last_warning(host, pod, of_node).await
}

async fn last_warning(
    host: &KubernetesState,
    object: &Value,
    is_meant: impl Fn(&str) -> bool,
) -> Option<String> {
    let wanted = format!("involvedObject.uid={}", uid_of(object));
    let events = host
        .cluster
        .list(ObjectKind::Event, ("fieldSelector", &wanted))
        .await;
    let events = events.ok()?;
    let failed = events
        .iter()
        .rev()
        .find(|event| event["reason"].as_str().is_some_and(&is_meant))?;
    Some(one_line(failed["message"].as_str()?))
}

fn not_in_time(why: &str) -> BackendError {
    BackendError::Unavailable {
        what: format!("the cluster did not start the sandbox in time: {why}"),
        remedy: "make room on its nodes, or look: kubectl describe pod -l \
                 app.kubernetes.io/name=hermetic-sandbox"
            .to_owned(),
    }
}

/// Places the warden and reaches it. What the cluster says of the pod lags up to a second behind, so it is
/// tried first and asked about afterwards.
async fn bring_up(
    host: &KubernetesState,
    pod: &str,
    deadline: Instant,
) -> Result<WardenLink, BackendError> {
    let step = "start the sandbox";
    let (mut placed, mut placings) = (false, 0);
    let mut pause = FIRST_PAUSE;
    loop {
        let trouble = if placed {
            match link::reach(&host.cluster, pod, ANSWER_TIMEOUT).await {
                Ok(link) => return Ok(link),
                Err(trouble) => trouble,
            }
        } else {
            match host.program.place(&host.cluster, pod).await {
                Ok(()) => {
                    placed = true;
                    pause = FIRST_PAUSE;
                    continue;
                }
                Err(trouble) => trouble,
            }
        };
        if matches!(
            trouble,
            ClusterTrouble::Forbidden { .. } | ClusterTrouble::Access(_)
        ) {
            return Err(trouble.at("exec in the sandbox's pod"));
        }
        let url = host.cluster.url(ObjectKind::Pod, &[pod]);
        let found = host.cluster.get(url).await.map_err(|gone| gone.at(step))?;
        let waits_for = match reasons::outlook(&found) {
            PodOutlook::Over(error) => return Err(error),
            PodOutlook::Starting(why) => why,
            PodOutlook::Running => None,
        };
        let waits_there = reasons::container(&found, shape::PLACE)
            .is_some_and(|state| !state["running"].is_null());
        if reasons::is_placed(&found) {
            placed = true;
        } else if waits_there {
            placings += 1;
            if placings > MOST_PLACINGS {
                return Err(place::needs(&trouble));
            }
        }
        if Instant::now() > deadline {
            let why = match waits_for {
                Some(why) => Some(why),
                None => why_not_started(host, &found).await,
            };
            let why = why.unwrap_or_else(|| trouble.to_string());
            return Err(not_in_time(&why));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}
