//! The router on a sandbox's machine: starts commands and carries their bytes.

use std::sync::Arc;

use hermetic_types::Secret;
use tokio::sync::Mutex;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::control::{ControlPlane, put_secret};
use crate::patience::{CallTimeouts, RetryAttempts};
use crate::service;
use crate::wire::{CommandRouterAccess, RpcCall, SandboxGetCommandRouterAccessRequest};

#[derive(Debug)]
pub(crate) struct CommandRouter {
    control: Arc<ControlPlane>,
    /// As Modal names it.
    sandbox: String,
    pub(crate) task: String,
    way: Mutex<Option<RouterChannel>>,
}

#[derive(Clone, Debug)]
struct RouterChannel {
    channel: Channel,
    pass: Secret,
}

impl CommandRouter {
    pub(crate) fn new(
        control: Arc<ControlPlane>,
        sandbox: String,
        task: String,
        access: Option<CommandRouterAccess>,
    ) -> Result<Self, Status> {
        let way = access.map(|access| way(&control, &access)).transpose()?;
        Ok(Self {
            control,
            sandbox,
            task,
            way: Mutex::new(way),
        })
    }

    /// For what may be asked twice, and everything a router is asked may.
    pub(crate) async fn ask<Q: RpcCall>(
        &self,
        question: Q,
        patience: CallTimeouts,
    ) -> Result<Q::Answer, Status> {
        let mut attempts = RetryAttempts::within(patience.whole);
        loop {
            let way = self.way().await?;
            let asked = service::ask(&way.channel, question.clone(), pass(&way)?, patience.answer);
            match asked.await {
                Ok(answer) => return Ok(answer),
                Err(status) => self.mend(&way, status, &mut attempts).await?,
            }
        }
    }

    pub(crate) async fn listen<Q: RpcCall>(
        &self,
        question: Q,
        patience: CallTimeouts,
        attempts: &mut RetryAttempts,
    ) -> Result<Streaming<Q::Answer>, Status> {
        loop {
            let way = self.way().await?;
            let metadata = pass(&way)?;
            let asked = service::listen(&way.channel, question.clone(), metadata, patience.answer);
            match asked.await {
                Ok(answers) => return Ok(answers),
                Err(status) => self.mend(&way, status, attempts).await?,
            }
        }
    }

    /// A pass that ran out is changed; other errors pass or not.
    async fn mend(
        &self,
        used: &RouterChannel,
        status: Status,
        attempts: &mut RetryAttempts,
    ) -> Result<(), Status> {
        if status.code() != Code::Unauthenticated {
            return attempts.after(status).await;
        }
        attempts.renew(status)?;
        let mut kept = self.way.lock().await;
        // Somebody else may have changed it meanwhile.
        if kept.as_ref().is_some_and(|kept| kept.pass != used.pass) {
            return Ok(());
        }
        *kept = Some(self.fetch().await?);
        Ok(())
    }

    async fn way(&self) -> Result<RouterChannel, Status> {
        let mut kept = self.way.lock().await;
        if let Some(way) = kept.as_ref() {
            return Ok(way.clone());
        }
        Ok(kept.insert(self.fetch().await?).clone())
    }

    async fn fetch(&self) -> Result<RouterChannel, Status> {
        let question = SandboxGetCommandRouterAccessRequest {
            sandbox_id: self.sandbox.clone(),
        };
        let access = self.control.ask(question, CallTimeouts::QUICK).await?;
        way(&self.control, &access)
    }
}

fn way(control: &ControlPlane, access: &CommandRouterAccess) -> Result<RouterChannel, Status> {
    Ok(RouterChannel {
        channel: service::router(&access.url, control.address.is_plain())?,
        pass: Secret::new(format!("Bearer {}", access.jwt)),
    })
}

fn pass(way: &RouterChannel) -> Result<MetadataMap, Status> {
    let mut metadata = MetadataMap::new();
    put_secret(&mut metadata, "authorization", &way.pass)?;
    Ok(metadata)
}
