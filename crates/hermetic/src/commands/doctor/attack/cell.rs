//! A sandbox made like any conversation's, with the attacking program in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hermetic_app::{self as app, Caller};
use hermetic_attack::{Bait, Finding, Order};
use hermetic_config::Config;
use hermetic_policy::{Cleared, OwnProgram};
use hermetic_sandbox::{
    Backend, Found, FoundState, Lifeline, Network, PassingSandbox, Persistence, Spec,
};
use hermetic_types::{ConversationKey, Limits, SandboxId};
use hermetic_warden::client::{Event, Running};
use hermetic_warden::protocol::Status;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

const MOST_OUTPUT: usize = 64 << 10;
const LONGEST: Duration = Duration::from_secs(120);
const REMEDY: &str = "try again; if it persists, report it";
/// Longer than a container engine takes to end a container.
const UNTIL_ENDED: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub(super) struct Cell {
    sandbox: PassingSandbox,
}

/// What came of an order.
#[derive(Default)]
pub(super) struct Said {
    pub(super) findings: Vec<Finding>,
    /// In words, if the end came by a signal.
    pub(super) killed: Option<String>,
}

impl Cell {
    pub(super) async fn make(
        config: &Config,
        backend: &Arc<dyn Backend>,
        name: &str,
        limits: Limits,
    ) -> Result<Self, Failure> {
        let kind = backend.kind();
        let spec = Spec {
            installation: app::installation(config.home())?,
            conversation: ConversationKey::new(format!("hermetic:attack:{name}")),
            id: SandboxId::random(),
            system: app::system(config, kind, Caller::Chats),
            limits,
            mounts: Vec::new(),
            env: BTreeMap::new(),
            network: Network::Closed,
            persistence: Persistence::Ephemeral,
            // Whatever ends this program ends them.
            lifeline: Lifeline::Creator,
            lifetime: LONGEST,
        };
        let sandbox = PassingSandbox::create(backend, &spec).await?;
        Ok(Self { sandbox })
    }

    pub(super) fn id(&self) -> &SandboxId {
        self.sandbox.id()
    }

    pub(super) async fn destroy(self) -> Result<(), Failure> {
        Ok(self.sandbox.destroy().await?)
    }

    pub(super) async fn order(&self, order: &Order) -> Said {
        let never = CancellationToken::new();
        let ran = self.sandbox.run(attack(order), MOST_OUTPUT, &never);
        let Ok(finished) = ran.await else {
            return Said::default();
        };
        let text = String::from_utf8_lossy(&finished.stdout.into_bytes()).into_owned();
        Said {
            findings: text.lines().filter_map(Finding::read).collect(),
            killed: match finished.ended.status {
                Status::Signalled(signal) => Some(format!("killed for it by signal {signal}")),
                Status::Exited(_) | Status::Unknown => None,
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
                _ => sleep(LOOK_AGAIN).await,
            }
        }
    }

    fn is_alive_as(&self, found: &Found) -> bool {
        found.id == *self.id() && matches!(found.state, FoundState::Running | FoundState::Busy)
    }

    /// A bait in this sandbox, there as long as what is returned.
    pub(super) async fn lie_in_wait(&self) -> Result<(Running, Bait), Failure> {
        let token = SandboxId::random().to_string();
        let order = Order::LieInWait {
            token: token.clone(),
        };
        let running = self.sandbox.start(attack(&order)).await;
        let mut running = running.map_err(|error| Failure::caused(&error, REMEDY))?;
        let port = ready(&mut running)
            .await
            .ok_or_else(|| Failure::new("no bait was laid in the second sandbox", REMEDY))?;
        let bait = Bait {
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

fn attack(order: &Order) -> Cleared {
    Cleared::own_program(OwnProgram::Attack(order.words()))
}

/// The port that it says it listens on.
async fn ready(running: &mut Running) -> Option<u16> {
    let mut said = String::new();
    while let Ok(Some(event)) = running.next().await {
        match event {
            Event::Out(bytes) => said.push_str(&String::from_utf8_lossy(&bytes)),
            Event::Ended(_) => return None,
            Event::Started { .. } | Event::Err(_) | Event::Skipped(_) => {}
        }
        if let Some((line, _)) = said.split_once('\n') {
            return line.strip_prefix("ready ")?.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use hermetic_types::Program;

    use super::*;

    #[test]
    fn the_program_inside_knows_the_role_by_the_name_we_use() {
        let cleared = Cleared::own_program(OwnProgram::Attack(Vec::new()));
        let Program::Inside { role, .. } = cleared.command().program else {
            panic!("{cleared:?}");
        };
        assert_eq!(role, hermetic_attack::ROLE);
    }
}
