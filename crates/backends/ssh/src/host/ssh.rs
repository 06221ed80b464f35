//! The backend itself.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, BackendReadiness, FoundSandbox, FoundState, LayerState, SandboxLifeline,
    SandboxPersistence, SandboxSpec, SealLayer, WardenLink,
};
use hermetic_types::{BackendDescription, BackendKind, SandboxId};
use tokio::time::timeout;

use super::SshConfig;
use super::channel::{ScriptResult, SshChannel};
use super::connection::{ChannelPermit, SshConnection};
use super::connections::SshConnections;
use super::place::{ProgramUpload, RemoteProgram, UploadCheck};
use super::plain::PlainHost;
use super::trouble;
use crate::order::{ListedSandbox, RemoteAnswer, RemoteOrder, RemoteSandbox, RemoteState};

/// Longer than the slowest answer: a warden that does not end by itself is given its time.
const ORDER_TIMEOUT: Duration = Duration::from_secs(45);

/// Clones share one connection.
#[derive(Clone, Debug)]
pub struct SshBackend(Arc<SshState>);

#[derive(Debug)]
pub(super) struct SshState {
    pub(super) config: SshConfig,
    cargo: ProgramUpload,
    connections: SshConnections,
}

impl SshBackend {
    /// Nothing is connected yet: the first sandbox does that.
    pub fn new(config: SshConfig) -> Self {
        Self(Arc::new(SshState {
            cargo: ProgramUpload::new(&config),
            config,
            connections: SshConnections::default(),
        }))
    }
}

impl SshBackend {
    /// Commands act on a host of somebody's.
    pub const DESCRIPTION: BackendDescription = BackendDescription::judged(BackendKind::Ssh);
}

impl Backend for SshBackend {
    fn description(&self) -> BackendDescription {
        Self::DESCRIPTION
    }

    fn is_distant(&self) -> bool {
        true
    }

    fn readiness(&self) -> BoxFuture<'_, BackendReadiness> {
        async move { self.0.readiness().await }.boxed()
    }

    fn create<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        self.0
            .link(&spec.id, RemoteOrder::Create(self.0.lodging(spec)))
            .boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        self.0.link(id, RemoteOrder::Connect(id.clone())).boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.0.done(id, RemoteOrder::Stop(id.clone())).boxed()
    }

    fn resume<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Result<WardenLink, BackendError>> {
        self.0
            .link(&spec.id, RemoteOrder::Resume(self.0.lodging(spec)))
            .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.0.done(id, RemoteOrder::Destroy(id.clone())).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<FoundSandbox>, BackendError>> {
        async move {
            match self.0.ask(&RemoteOrder::List).await? {
                (RemoteAnswer::Found(lodgers), _) => Ok(lodgers.into_iter().map(found).collect()),
                (other, _) => Err(self.0.unexpected(other)),
            }
        }
        .boxed()
    }
}

impl SshState {
    async fn link(
        self: &Arc<Self>,
        id: &SandboxId,
        order: RemoteOrder,
    ) -> Result<WardenLink, BackendError> {
        match self.ask(&order).await? {
            (RemoteAnswer::Linked, Some(link)) => Ok(link),
            (RemoteAnswer::NoSuchSandbox, _) => Err(BackendError::NoSuchSandbox { id: id.clone() }),
            (other, _) => Err(self.unexpected(other)),
        }
    }

    async fn done(
        self: &Arc<Self>,
        id: &SandboxId,
        order: RemoteOrder,
    ) -> Result<(), BackendError> {
        match self.ask(&order).await? {
            (RemoteAnswer::Done, _) => Ok(()),
            (RemoteAnswer::NoSuchSandbox, _) => Err(BackendError::NoSuchSandbox { id: id.clone() }),
            (other, _) => Err(self.unexpected(other)),
        }
    }

    async fn ask(
        self: &Arc<Self>,
        order: &RemoteOrder,
    ) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        loop {
            let place = self.connections.enter(&self.config).await?;
            if let RemoteProgram::Nothing(why) = self.placed(&place.connection).await? {
                // Given back first: the plain shell opens channels of its own, and on a server that
                // allows one it would wait for this.
                drop(place);
                tracing::debug!(%why, "by a plain shell");
                return PlainHost(self).answer(order).await;
            }
            let mut channel = SshChannel::open(&self.config, place, &self.cargo.run())?;
            match timeout(ORDER_TIMEOUT, channel.ask(order)).await {
                Ok(Ok(RemoteAnswer::Linked)) => {
                    return Ok((
                        RemoteAnswer::Linked,
                        Some(WardenLink::new(channel.into_link())),
                    ));
                }
                Ok(Ok(answer)) => return Ok((answer, None)),
                Ok(Err(_)) => {
                    let (said, place) = channel.finish(&[]).await;
                    self.not_served(&said, place)?;
                }
                Err(_) => {
                    return Err(trouble::not_answered(
                        &self.config,
                        "it did not answer in time",
                    ));
                }
            }
        }
    }

    /// A channel for one line of shell. Whether the server has room for it shows when it is used.
    pub(super) async fn open(&self, line: &str) -> Result<SshChannel, BackendError> {
        let place = self.connections.enter(&self.config).await?;
        SshChannel::open(&self.config, place, line)
    }

    /// One line of shell to its end.
    pub(super) async fn line(
        &self,
        line: &str,
        input: &[u8],
    ) -> Result<ScriptResult, BackendError> {
        loop {
            let channel = self.open(line).await?;
            match timeout(ORDER_TIMEOUT, channel.finish(input)).await {
                // ssh's own word for a failure of the connection; the line itself ends with another
                // number.
                Ok((said, place)) if said.code == Some(255) => self.not_served(&said, place)?,
                Ok((said, _)) => return Ok(said),
                Err(_) => {
                    return Err(trouble::not_answered(
                        &self.config,
                        "it did not answer in time",
                    ));
                }
            }
        }
    }

    /// What can be tried again is no error.
    fn not_served(&self, said: &ScriptResult, place: ChannelPermit) -> Result<(), BackendError> {
        if trouble::is_full(&said.err) {
            return match place.refused() {
                true => Ok(()),
                false => Err(BackendError::Unavailable {
                    what: format!("{} allows no session", self.config.destination()),
                    remedy: "raise MaxSessions in its sshd_config".to_owned(),
                }),
            };
        }
        if place.connection.is_gone() || said.code == Some(255) {
            return Err(trouble::not_connected(&self.config, &said.err));
        }
        Err(trouble::not_answered(&self.config, &said.err))
    }

    /// Looked at once for each connection.
    async fn placed(&self, connection: &Arc<SshConnection>) -> Result<RemoteProgram, BackendError> {
        let placed = connection.placed.get_or_try_init(|| self.place(connection));
        placed.await.cloned()
    }

    async fn place(&self, connection: &Arc<SshConnection>) -> Result<RemoteProgram, BackendError> {
        let mut uploaded = false;
        loop {
            let said = self.say(connection, &self.cargo.look(), &[]).await?;
            match self.cargo.understand(&self.config, &said)? {
                UploadCheck::Ready => return Ok(RemoteProgram::Warden),
                UploadCheck::Never(why) => return Ok(RemoteProgram::Nothing(why)),
                UploadCheck::Refused { what, remedy } => {
                    return Err(BackendError::Unavailable { what, remedy });
                }
                // Once: a host on which what arrives is never what was sent would have us send it
                // for ever.
                UploadCheck::Absent if uploaded => {
                    let why = "what arrived there is not what was sent";
                    return Err(trouble::not_answered(&self.config, why));
                }
                UploadCheck::Absent => {
                    let line = self.cargo.receive();
                    let said = self.say(connection, &line, self.cargo.bytes()).await?;
                    if said.code != Some(0) {
                        let why = said
                            .err
                            .lines()
                            .next_back()
                            .unwrap_or("no reason was given");
                        return Ok(RemoteProgram::Nothing(format!(
                            "the program could not be written: {why}"
                        )));
                    }
                    uploaded = true;
                }
            }
        }
    }

    /// A line of shell to its end.
    async fn say(
        &self,
        connection: &Arc<SshConnection>,
        line: &str,
        input: &[u8],
    ) -> Result<ScriptResult, BackendError> {
        // Beside the count: whoever waits for the program holds a place already, and there may be
        // no second one.
        let channel = SshChannel::open(&self.config, ChannelPermit::beside(connection), line)?;
        match timeout(ORDER_TIMEOUT, channel.finish(input)).await {
            Ok((said, place)) if said.code == Some(255) => {
                self.not_served(&said, place)?;
                Err(trouble::not_answered(&self.config, &said.err))
            }
            Ok((said, _)) => Ok(said),
            Err(_) => Err(trouble::not_answered(
                &self.config,
                "it did not answer in time",
            )),
        }
    }

    fn lodging(&self, spec: &SandboxSpec) -> RemoteSandbox {
        RemoteSandbox {
            id: spec.id.clone(),
            conversation: spec.conversation.clone(),
            env: spec.env.clone().into_iter().collect(),
            workdir: self.config.workdir.clone(),
            tied: spec.lifeline == SandboxLifeline::Creator,
            kept: spec.persistence == SandboxPersistence::Kept,
            lifetime: spec.lifetime,
        }
    }

    fn unexpected(&self, answer: RemoteAnswer) -> BackendError {
        let to = self.config.destination();
        match answer {
            RemoteAnswer::Failed { step, why } => {
                BackendError::failed(format!("{step} on {to}"), std::io::Error::other(why))
            }
            _ => trouble::not_answered(&self.config, "an answer to another question"),
        }
    }

    async fn readiness(&self) -> BackendReadiness {
        let to = self.config.destination();
        let boundary = SealLayer {
            name: "boundary",
            state: LayerState::Missing,
            detail: format!("none: commands run on {to} as that user, and are judged first"),
            remedy: Some("choose native, which is sealed".to_owned()),
        };
        let mut layers = vec![boundary];
        let looked = async {
            let place = self.connections.enter(&self.config).await?;
            self.placed(&place.connection).await
        };
        match looked.await {
            Ok(placed) => {
                layers.push(SealLayer {
                    name: "connection",
                    state: LayerState::Active,
                    detail: format!("to {to}, its host key checked"),
                    remedy: None,
                });
                layers.push(warden_layer(placed));
            }
            Err(error) => layers.push(SealLayer {
                name: "connection",
                state: LayerState::Required,
                remedy: match &error {
                    BackendError::Unavailable { remedy, .. } => Some(remedy.clone()),
                    _ => None,
                },
                detail: error.to_string(),
            }),
        }
        BackendReadiness { layers }
    }
}

fn warden_layer(placed: RemoteProgram) -> SealLayer {
    let (state, detail) = match placed {
        RemoteProgram::Warden => (LayerState::Active, "placed in ~/.hermetic there".to_owned()),
        RemoteProgram::Nothing(why) => (
            LayerState::Weaker,
            format!(
                "a plain shell instead, without files, a lasting shell or a way back, and a program \
                 of that account that reads its parent's memory can lie about how it ended: {why}"
            ),
        ),
    };
    SealLayer {
        name: "warden",
        state,
        detail,
        remedy: None,
    }
}

fn found(lodger: ListedSandbox) -> FoundSandbox {
    FoundSandbox {
        id: lodger.id,
        lifeline: lodger.lodging.as_ref().map(|lodging| match lodging.tied {
            true => SandboxLifeline::Creator,
            false => SandboxLifeline::Ledger,
        }),
        conversation: lodger.lodging.map(|lodging| lodging.conversation),
        state: match lodger.state {
            RemoteState::Running => FoundState::Running,
            RemoteState::Stopped => FoundState::Stopped,
            RemoteState::Busy => FoundState::Busy,
            RemoteState::Broken => FoundState::Broken,
        },
    }
}
