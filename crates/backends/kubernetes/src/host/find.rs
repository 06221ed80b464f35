//! Sandboxes of ours, found by their labels.

use std::collections::{BTreeMap, HashMap};

use hermetic_sandbox::{
    BackendError, FoundSandbox, FoundState, MakerState, SandboxLifeline, SandboxPersistence,
};
use hermetic_types::SandboxId;
use serde_json::Value;

use super::client::ObjectKind;
use super::kubernetes::KubernetesState;
use super::label::{self, OwnedObject, is_leaving};
use super::reasons::{self, PodOutlook};
use super::trouble::ClusterTrouble;

impl KubernetesState {
    /// The one Job or claim of that name, if it is ours.
    pub(crate) async fn named(
        &self,
        kind: ObjectKind,
        id: &SandboxId,
    ) -> Result<Option<(Value, OwnedObject)>, ClusterTrouble> {
        match self
            .cluster
            .get(self.cluster.url(kind, &[&label::name(id)]))
            .await
        {
            Ok(found) => {
                let owned = OwnedObject::read(&found, &self.config.installation);
                let owned = owned.filter(|owned| owned.id == *id);
                Ok(owned.map(|owned| (found, owned)))
            }
            Err(ClusterTrouble::Missing) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    pub(crate) async fn pods_of(&self, id: &SandboxId) -> Result<Vec<Value>, ClusterTrouble> {
        self.of_ours(ObjectKind::Pod, Some(id)).await
    }

    async fn of_ours(
        &self,
        kind: ObjectKind,
        id: Option<&SandboxId>,
    ) -> Result<Vec<Value>, ClusterTrouble> {
        let wanted = label::selector(&self.config.installation, id);
        self.cluster.list(kind, ("labelSelector", &wanted)).await
    }

    pub(crate) async fn list(&self) -> Result<Vec<FoundSandbox>, BackendError> {
        let listed = async {
            let jobs = self.of_ours(ObjectKind::Job, None).await?;
            let pods = self.of_ours(ObjectKind::Pod, None).await?;
            let claims = self.of_ours(ObjectKind::Claim, None).await?;
            Ok((jobs, pods, claims))
        };
        let (jobs, pods, claims) = listed
            .await
            .map_err(|trouble: ClusterTrouble| trouble.at("list the sandboxes"))?;
        let mut found = BTreeMap::new();
        for owned in claims.iter().filter_map(|claim| self.ours(claim)) {
            found.insert(owned.id.clone(), of(owned, FoundState::Stopped));
        }
        let mut of_sandbox: HashMap<SandboxId, &Value> = HashMap::new();
        for pod in &pods {
            if let Some(owned) = self.ours(pod) {
                of_sandbox.insert(owned.id, pod);
            }
        }
        for job in &jobs {
            let Some(owned) = self.ours(job) else {
                continue;
            };
            let pod = of_sandbox.remove(&owned.id);
            let state = self.state(job, pod, &owned);
            found.insert(owned.id.clone(), of(owned, state));
        }
        // A pod whose Job is gone is on its way out, or what somebody broke.
        for (id, pod) in of_sandbox {
            let state = if is_leaving(pod) {
                FoundState::Busy
            } else {
                FoundState::Broken
            };
            if let Some(owned) = self.ours(pod) {
                found.insert(id, of(owned, state));
            }
        }
        Ok(found.into_values().collect())
    }

    fn ours(&self, object: &Value) -> Option<OwnedObject> {
        OwnedObject::read(object, &self.config.installation)
    }

    fn state(&self, job: &Value, pod: Option<&Value>, owned: &OwnedObject) -> FoundState {
        if is_leaving(job) {
            // The cluster ends by itself what somebody began to end.
            return FoundState::Busy;
        }
        let outlook = pod.map(reasons::outlook);
        if is_finished(job) || matches!(outlook, Some(PodOutlook::Over(_))) {
            return match owned.persistence {
                SandboxPersistence::Kept => FoundState::Stopped,
                SandboxPersistence::Ephemeral => FoundState::Broken,
            };
        }
        let runs = matches!(outlook, Some(PodOutlook::Running)) || self.has_answered(&owned.id);
        match (runs, owned.maker, owned.lifeline) {
            (_, MakerState::Gone, SandboxLifeline::Creator)
            | (false, MakerState::Gone, SandboxLifeline::Ledger) => FoundState::Broken,
            (true, ..) => FoundState::Running,
            // Made from another machine, it serves soon, or ends by itself.
            (false, ..) => FoundState::Busy,
        }
    }
}

pub(crate) fn is_finished(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
    let mut over = conditions.filter(|one| one["type"] == "Complete" || one["type"] == "Failed");
    over.any(|one| one["status"] == "True")
}

fn of(owned: OwnedObject, state: FoundState) -> FoundSandbox {
    FoundSandbox {
        id: owned.id,
        conversation: owned.conversation,
        lifeline: Some(owned.lifeline),
        state,
    }
}
