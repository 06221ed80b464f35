//! The backend itself.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hermetic_sandbox::{
    Backend, BackendError, Found, FoundState, Layer, LayerState, Lifeline, Link, Persistence,
    Readiness, Spec,
};
use hermetic_types::{BackendDescription, BackendKind, SandboxId};
use tokio::time::timeout;

use super::Config;
use super::channel::{Channel, Said};
use super::connection::{Connection, Place};
use super::connections::Connections;
use super::place::{Cargo, Look, Placed};
use super::plain::Plain;
use super::trouble;
use crate::order::{Answer, Lodger, Lodging, Order, State};

/// Longer than the slowest answer: a warden that does not end by itself is given its time.
const PATIENCE: Duration = Duration::from_secs(45);

/// Clones share one connection.
#[derive(Clone, Debug)]
pub struct Ssh(Arc<Host>);

#[derive(Debug)]
pub(super) struct Host {
    pub(super) config: Config,
    cargo: Cargo,
    connections: Connections,
}

impl Ssh {
    /// Nothing is connected yet: the first sandbox does that.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(Host {
            cargo: Cargo::new(&config),
            config,
            connections: Connections::default(),
        }))
    }
}

impl Ssh {
    /// Commands act on a host of somebody's.
    pub const DESCRIPTION: BackendDescription = BackendDescription::judged(BackendKind::Ssh);
}

impl Backend for Ssh {
    fn description(&self) -> BackendDescription {
        Self::DESCRIPTION
    }

    fn is_distant(&self) -> bool {
        true
    }

    fn readiness(&self) -> BoxFuture<'_, Readiness> {
        async move { self.0.readiness().await }.boxed()
    }

    fn create<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Link, BackendError>> {
        self.0
            .link(&spec.id, Order::Create(self.0.lodging(spec)))
            .boxed()
    }

    fn connect<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Link, BackendError>> {
        self.0.link(id, Order::Connect(id.clone())).boxed()
    }

    fn stop<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.0.done(id, Order::Stop(id.clone())).boxed()
    }

    fn resume<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Link, BackendError>> {
        self.0
            .link(&spec.id, Order::Resume(self.0.lodging(spec)))
            .boxed()
    }

    fn destroy<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), BackendError>> {
        self.0.done(id, Order::Destroy(id.clone())).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Found>, BackendError>> {
        async move {
            match self.0.ask(&Order::List).await? {
                (Answer::Found(lodgers), _) => Ok(lodgers.into_iter().map(found).collect()),
                (other, _) => Err(self.0.unexpected(other)),
            }
        }
        .boxed()
    }
}

impl Host {
    async fn link(self: &Arc<Self>, id: &SandboxId, order: Order) -> Result<Link, BackendError> {
        match self.ask(&order).await? {
            (Answer::Linked, Some(link)) => Ok(link),
            (Answer::NoSuchSandbox, _) => Err(BackendError::NoSuchSandbox { id: id.clone() }),
            (other, _) => Err(self.unexpected(other)),
        }
    }

    async fn done(self: &Arc<Self>, id: &SandboxId, order: Order) -> Result<(), BackendError> {
        match self.ask(&order).await? {
            (Answer::Done, _) => Ok(()),
            (Answer::NoSuchSandbox, _) => Err(BackendError::NoSuchSandbox { id: id.clone() }),
            (other, _) => Err(self.unexpected(other)),
        }
    }

    async fn ask(self: &Arc<Self>, order: &Order) -> Result<(Answer, Option<Link>), BackendError> {
        loop {
            let place = self.connections.enter(&self.config).await?;
            if let Placed::Nothing(why) = self.placed(&place.connection).await? {
                drop(place);
                tracing::debug!(%why, "by a plain shell");
                return Plain(self).answer(order).await;
            }
            let mut channel = Channel::open(&self.config, place, &self.cargo.run())?;
            match timeout(PATIENCE, channel.ask(order)).await {
                Ok(Ok(Answer::Linked)) => {
                    return Ok((Answer::Linked, Some(Link::new(channel.into_link()))));
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
    pub(super) async fn open(&self, line: &str) -> Result<Channel, BackendError> {
        let place = self.connections.enter(&self.config).await?;
        Channel::open(&self.config, place, line)
    }

    /// One line of shell to its end.
    pub(super) async fn line(&self, line: &str, input: &[u8]) -> Result<Said, BackendError> {
        loop {
            let channel = self.open(line).await?;
            match timeout(PATIENCE, channel.finish(input)).await {
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
    fn not_served(&self, said: &Said, place: Place) -> Result<(), BackendError> {
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
    async fn placed(&self, connection: &Arc<Connection>) -> Result<Placed, BackendError> {
        let placed = connection.placed.get_or_try_init(|| self.place(connection));
        placed.await.cloned()
    }

    async fn place(&self, connection: &Arc<Connection>) -> Result<Placed, BackendError> {
        let mut uploaded = false;
        loop {
            let said = self.say(connection, &self.cargo.look(), &[]).await?;
            match self.cargo.understand(&self.config, &said)? {
                Look::Ready => return Ok(Placed::Warden),
                Look::Never(why) => return Ok(Placed::Nothing(why)),
                Look::Refused { what, remedy } => {
                    return Err(BackendError::Unavailable { what, remedy });
                }
                Look::Absent if uploaded => {
                    let why = "what arrived there is not what was sent";
                    return Err(trouble::not_answered(&self.config, why));
                }
                Look::Absent => {
                    let line = self.cargo.receive();
                    let said = self.say(connection, &line, self.cargo.bytes()).await?;
                    if said.code != Some(0) {
                        let why = said
                            .err
                            .lines()
                            .next_back()
                            .unwrap_or("no reason was given");
                        return Ok(Placed::Nothing(format!(
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
        connection: &Arc<Connection>,
        line: &str,
        input: &[u8],
    ) -> Result<Said, BackendError> {
        let channel = Channel::open(&self.config, Place::beside(connection), line)?;
        match timeout(PATIENCE, channel.finish(input)).await {
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

    fn lodging(&self, spec: &Spec) -> Lodging {
        Lodging {
            id: spec.id.clone(),
            conversation: spec.conversation.clone(),
            env: spec.env.clone().into_iter().collect(),
            workdir: self.config.workdir.clone(),
            tied: spec.lifeline == Lifeline::Creator,
            kept: spec.persistence == Persistence::Kept,
            lifetime: spec.lifetime,
        }
    }

    fn unexpected(&self, answer: Answer) -> BackendError {
        let to = self.config.destination();
        match answer {
            Answer::Failed { step, why } => {
                BackendError::failed(format!("{step} on {to}"), std::io::Error::other(why))
            }
            _ => trouble::not_answered(&self.config, "an answer to another question"),
        }
    }

    async fn readiness(&self) -> Readiness {
        let to = self.config.destination();
        let boundary = Layer {
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
                layers.push(Layer {
                    name: "connection",
                    state: LayerState::Active,
                    detail: format!("to {to}, its host key checked"),
                    remedy: None,
                });
                layers.push(warden_layer(placed));
            }
            Err(error) => layers.push(Layer {
                name: "connection",
                state: LayerState::Required,
                remedy: match &error {
                    BackendError::Unavailable { remedy, .. } => Some(remedy.clone()),
                    _ => None,
                },
                detail: error.to_string(),
            }),
        }
        Readiness { layers }
    }
}

fn warden_layer(placed: Placed) -> Layer {
    let (state, detail) = match placed {
        Placed::Warden => (LayerState::Active, "placed in ~/.hermetic there".to_owned()),
        Placed::Nothing(why) => (
            LayerState::Weaker,
            format!(
                "a plain shell instead, without files, a lasting shell or a way back, and a program \
                 of that account that reads its parent's memory can lie about how it ended: {why}"
            ),
        ),
    };
    Layer {
        name: "warden",
        state,
        detail,
        remedy: None,
    }
}

fn found(lodger: Lodger) -> Found {
    Found {
        id: lodger.id,
        lifeline: lodger.lodging.as_ref().map(|lodging| match lodging.tied {
            true => Lifeline::Creator,
            false => Lifeline::Ledger,
        }),
        conversation: lodger.lodging.map(|lodging| lodging.conversation),
        state: match lodger.state {
            State::Running => FoundState::Running,
            State::Stopped => FoundState::Stopped,
            State::Busy => FoundState::Busy,
            State::Broken => FoundState::Broken,
        },
    }
}
