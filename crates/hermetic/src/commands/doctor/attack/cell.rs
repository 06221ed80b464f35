//! A sandbox made like any conversation's, with the attacking program in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hermetic_app::{self as app, BackendCaller};
use hermetic_attack::{AttackFinding, AttackOrder, BaitTarget};
use hermetic_config::Config;
use hermetic_policy::{Cleared, OwnProgram};
use hermetic_sandbox::{
    Backend, FoundSandbox, FoundState, NetworkMode, PassingSandbox, SandboxLifeline,
    SandboxPersistence, SandboxSpec,
};
use hermetic_types::{ConversationKey, SandboxId, SandboxLimits};
use hermetic_warden::client::{RunEvent, RunningCommand};
use hermetic_warden::protocol::ExitState;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::failure::CommandFailure;

const MOST_OUTPUT: usize = 64 << 10;
const ORDER_TIME_LIMIT: Duration = Duration::from_secs(120);
const REMEDY: &str = "try again; if it persists, report it";
/// Longer than a container engine takes to end a container.
const UNTIL_ENDED: Duration = Duration::from_secs(15);
const END_POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct AttackCell {
    sandbox: PassingSandbox,
}

/// What came of an order.
#[derive(Default)]
pub(super) struct OrderOutcome {
    pub(super) findings: Vec<AttackFinding>,
    /// In words, if the end came by a signal.
    pub(super) killed: Option<String>,
}

impl AttackCell {
    pub(super) async fn make(
        config: &Config,
        backend: &Arc<dyn Backend>,
        name: &str,
        limits: SandboxLimits,
    ) -> Result<Self, CommandFailure> {
        let kind = backend.kind();
        let spec = SandboxSpec {
            installation: app::installation(config.home())?,
            conversation: ConversationKey::new(format!("hermetic:attack:{name}")),
            id: SandboxId::random(),
            system: app::system(config, kind, BackendCaller::Chats),
            limits,
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: NetworkMode::Closed,
            persistence: SandboxPersistence::Ephemeral,
            // Whatever ends this program ends them.
            lifeline: SandboxLifeline::Creator,
            lifetime: ORDER_TIME_LIMIT,
        };
        let sandbox = PassingSandbox::create(backend, &spec).await?;
        Ok(Self { sandbox })
    }

    pub(super) fn id(&self) -> &SandboxId {
        self.sandbox.id()
    }

    pub(super) async fn destroy(self) -> Result<(), CommandFailure> {
        Ok(self.sandbox.destroy().await?)
    }

    pub(super) async fn order(&self, order: &AttackOrder) -> OrderOutcome {
        let never = CancellationToken::new();
        let ran = self.sandbox.run(attack(order), MOST_OUTPUT, &never);
        let Ok(finished) = ran.await else {
            return OrderOutcome::default();
        };
        let text = String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned();
        OrderOutcome {
            findings: text.lines().filter_map(AttackFinding::read).collect(),
            killed: match finished.ended.status {
                ExitState::Signalled(signal) => Some(format!("killed for it by signal {signal}")),
                ExitState::Exited(_) | ExitState::Unknown => None,
            },
        }
    }

    /// Whether nothing of it runs any more, by the word of the backend. Who stops a sandbox takes a moment,
    /// so that one is waited for.
    pub(super) async fn has_ended(&self, backend: &Arc<dyn Backend>) -> bool {
        let deadline = Instant::now() + UNTIL_ENDED;
        loop {
            match backend.list().await {
                Ok(found) if !found.iter().any(|found| self.is_alive_as(found)) => return true,
                _ if Instant::now() > deadline => return false,
                _ => sleep(END_POLL_INTERVAL).await,
            }
        }
    }

    fn is_alive_as(&self, found: &FoundSandbox) -> bool {
        found.id == *self.id() && matches!(found.state, FoundState::Running | FoundState::Busy)
    }

    /// A bait in this sandbox, there as long as what is returned.
    pub(super) async fn lie_in_wait(&self) -> Result<(RunningCommand, BaitTarget), CommandFailure> {
        let token = SandboxId::random().to_string();
        let order = AttackOrder::LieInWait {
            token: token.clone(),
        };
        let running = self.sandbox.start(attack(&order)).await;
        let mut running = running.map_err(|error| CommandFailure::caused(&error, REMEDY))?;
        let port = ready(&mut running)
            .await
            .ok_or_else(|| CommandFailure::new("no bait was laid in the second sandbox", REMEDY))?;
        let bait = BaitTarget {
            token,
            port,
            file: String::new(),
        };
        Ok((running, bait))
    }

    /// What a program of ours prints here.
    pub(super) async fn output(&self, program: OwnProgram) -> Option<String> {
        let never = CancellationToken::new();
        let cleared = Cleared::own_program(program);
        let finished = self.sandbox.run(cleared, MOST_OUTPUT, &never).await.ok()?;
        // Half of an output proves nothing.
        if finished.dropped.is_some() {
            return None;
        }
        Some(String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned())
    }
}

fn attack(order: &AttackOrder) -> Cleared {
    Cleared::own_program(OwnProgram::Attack(order.words()))
}

/// The port that it says it listens on.
async fn ready(running: &mut RunningCommand) -> Option<u16> {
    let mut said = String::new();
    while let Ok(Some(event)) = running.next().await {
        match event {
            RunEvent::Out(bytes) => said.push_str(&String::from_utf8_lossy(&bytes)),
            RunEvent::Ended(_) => return None,
            RunEvent::Started { .. } | RunEvent::Err(_) | RunEvent::Skipped(_) => {}
        }
        if let Some((line, _)) = said.split_once('\n') {
            return line.strip_prefix("ready ")?.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use hermetic_types::CommandProgram;

    use super::*;

    #[test]
    fn the_program_inside_knows_the_role_by_the_name_we_use() {
        let cleared = Cleared::own_program(OwnProgram::Attack(Vec::new()));
        let CommandProgram::Inside { role, .. } = cleared.command().program else {
            panic!("{cleared:?}");
        };
        assert_eq!(role, hermetic_attack::ROLE);
    }
}
