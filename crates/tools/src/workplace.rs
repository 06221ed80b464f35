//! The seam to whoever keeps sandboxes.

use std::fmt;
use std::ops::Deref;

use futures::future::{self, BoxFuture, FutureExt};
use hermetic_egress::EgressClient;
use hermetic_sandbox::Sandbox;
use hermetic_services::ServiceError;
use hermetic_types::ConversationKey;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{ClarifyError, ClarifyQuestion};

/// Where the tools of one conversation act.
///
/// What an implementer promises: every call of `sandbox` gives the same one sandbox for as long as it
/// lives, never one that another conversation has, and makes it if there is none.
pub trait ToolWorkplace: Send + Sync + fmt::Debug {
    fn conversation(&self) -> &ConversationKey;

    /// The conversation whose agreements hold here: what somebody said yes to there needs no second yes, and
    /// nothing else passes for agreed. That is another than [`conversation`](Self::conversation) only for what
    /// works beside one.
    fn agreed_in(&self) -> &ConversationKey {
        self.conversation()
    }

    fn sandbox(&self) -> BoxFuture<'_, Result<Held, NoSandbox>>;

    /// The way out for a tool of ours that runs beside the sandbox: what the conversation may reach.
    fn egress(&self) -> BoxFuture<'_, Result<EgressClient, NoSandbox>> {
        future::ready(Err(NoSandbox("nothing can be reached from here"))).boxed()
    }

    /// Whether there is somebody whom [`clarify`](Self::clarify) can ask.
    fn can_clarify(&self) -> bool {
        false
    }

    /// Asks the person whom this works for. The wait is bounded and ends soon after `stop` is cancelled.
    fn clarify<'a>(
        &'a self,
        _: ClarifyQuestion,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, ClarifyError>> {
        future::ready(Err(ClarifyError::NobodyToAsk)).boxed()
    }

    /// Counts what a service of others takes, before it is asked. An error is why it may not be, in words for the
    /// model.
    fn charge(&self, _: ServiceUse) -> BoxFuture<'_, Result<ServiceCharge, String>> {
        future::ready(Ok(ServiceCharge::default())).boxed()
    }

    /// Takes that back, where the service did nothing for it.
    fn give_back(&self, _: ServiceCharge) -> BoxFuture<'_, ()> {
        future::ready(()).boxed()
    }

    /// What comes back with a [`ProcessNotice`](crate::ProcessNotice) of a process that is started now, so that
    /// somebody can be told. `None` where nobody can be.
    fn origin(&self) -> Option<String> {
        None
    }
}

/// One request to a service that the operator pays for, beside the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceUse {
    Search,
    Picture,
    Speech { characters: usize },
}

/// What was counted for one such request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceCharge {
    /// For which day.
    pub date: String,
    pub nanodollars: i64,
}

/// What a service made, counted before it is asked. Without an answer it is given back, unless the service may
/// send a bill for it all the same.
pub(crate) async fn paid<T>(
    workplace: &dyn ToolWorkplace,
    used: ServiceUse,
    service: &str,
    asking: impl Future<Output = Result<T, ServiceError>>,
) -> Result<T, String> {
    let charge = workplace.charge(used).await?;
    match asking.await {
        Ok(made) => Ok(made),
        Err(error) => {
            tracing::warn!(service, %error, "a service of others failed");
            if !error.may_cost() {
                workplace.give_back(charge).await;
            }
            Err(error.to_string())
        }
    }
}

/// A sandbox that is not let go for being idle while this is held.
pub type Held = Box<dyn Deref<Target = Sandbox> + Send + Sync>;

/// Why there is none, in words for the model, and with it the chat. Whoever made this has logged the
/// rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoSandbox(pub &'static str);
