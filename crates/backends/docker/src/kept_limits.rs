//! Whether an engine took the limits it was asked for.
//!
//! One without root may make a container, say nothing and leave its limits out: both Podman and Docker do so
//! where cgroups are of version 1, and Docker even shows them as kept. So what is known of such engines counts
//! first, and then what Podman says that it made.

use bollard::Docker;
use bollard::models::HostConfig;
use hermetic_sandbox::BackendError;

use crate::dialect::understand;
use crate::docker::DockerState;
use crate::engine::EngineFacts;
use crate::rights::{NO_CGROUPS, WITHOUT_LIMITS};

impl DockerState {
    /// Whether the operator took the risk of containers that can use up the machine.
    pub(crate) fn goes_without_limits(&self) -> bool {
        self.config
            .accepted
            .iter()
            .any(|risk| risk == WITHOUT_LIMITS)
    }

    /// Refuses containers on an engine that is known to leave limits out.
    pub(crate) fn check_engine(&self, facts: &EngineFacts) -> Result<(), BackendError> {
        self.refuse_without(&facts.dropped_limits)
    }

    /// Refuses a container whose limits the engine left out. An engine that is not in doubt is not asked.
    pub(crate) async fn check_limits(
        &self,
        docker: &Docker,
        key: &str,
        facts: &EngineFacts,
    ) -> Result<(), BackendError> {
        if !facts.is_rootless || self.goes_without_limits() {
            return Ok(());
        }
        let made = understand(docker.inspect_container(key, None).await)
            .map_err(|error| self.engine.trouble("look at the container's limits", error))?;
        self.refuse_without(&dropped(&made.host_config.unwrap_or_default()))
    }

    fn refuse_without(&self, dropped: &[&str]) -> Result<(), BackendError> {
        if dropped.is_empty() || self.goes_without_limits() {
            return Ok(());
        }
        Err(BackendError::Unavailable {
            what: format!(
                "the engine at {} keeps no limit on {} here, whatever it says",
                self.engine.address,
                dropped.join(" and ")
            ),
            remedy: format!(
                "{NO_CGROUPS}; to go without, {WITHOUT_LIMITS:?} in terminal.docker_accept_risks"
            ),
        })
    }
}

/// What has no bound in what the engine made of our wishes, which always name one.
fn dropped(made: &HostConfig) -> Vec<&'static str> {
    let is_bound = |limit: Option<i64>| limit.is_some_and(|limit| limit > 0);
    let all = [("processes", made.pids_limit), ("memory", made.memory)];
    let dropped = all.into_iter().filter(|(_, limit)| !is_bound(*limit));
    dropped.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_left_out_is_named() {
        let made = |pids_limit, memory| HostConfig {
            pids_limit,
            memory,
            ..HostConfig::default()
        };
        assert_eq!(dropped(&made(Some(256), Some(1 << 30))), [""; 0]);
        // Podman's way to say it, Docker's, and one that stands for "as many as you like".
        assert_eq!(dropped(&made(Some(0), Some(0))), ["processes", "memory"]);
        assert_eq!(dropped(&made(None, Some(1))), ["processes"]);
        assert_eq!(dropped(&made(Some(-1), Some(1))), ["processes"]);
    }
}
