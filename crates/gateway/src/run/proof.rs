//! The backend, proven by a real command in a real sandbox before anybody is answered.

use std::fmt::Write as _;

use hermetic_sandbox::BackendError;
use hermetic_session::{LeaseError, LetGoError, PROOF_CONVERSATION};
use hermetic_tools::{BlockedCommand, CommandRequest, NoOneToAsk, TerminalOutcome, TerminalTool};
use hermetic_types::ConversationKey;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::room::MissingRoom;
use crate::life::in_full;
use crate::{Gateway, ServeError};

#[derive(Debug, Error)]
pub enum ProofError {
    #[error("no sandbox can be had")]
    Lease(#[from] LeaseError),
    #[error("the policy refuses even the command that tries the sandbox out: {0}")]
    Blocked(#[from] BlockedCommand),
    #[error("a command in a fresh sandbox failed: {0}")]
    Command(String),
    #[error("a fresh sandbox could not be removed")]
    LetGo(#[from] LetGoError),
}

impl ProofError {
    /// What a person does next.
    pub fn remedy(&self) -> &str {
        match self {
            Self::Lease(LeaseError::Start(BackendError::Unavailable { remedy, .. })) => remedy,
            Self::Lease(LeaseError::Ledger(_) | LeaseError::DiskLow) => {
                "make room on the disk that holds the home"
            }
            Self::Blocked(_) => "look at approvals.deny",
            _ => "`hermetic doctor` tells what this host lacks; nothing runs anywhere else instead",
        }
    }
}

/// Whether the backends were seen to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackendProof {
    Given,
    /// The disk has no room for a sandbox. Until it has, nobody else gets one either.
    Owed,
}

impl Gateway {
    /// A store that cannot be written is waited for: nothing could be taken over meanwhile. Where only
    /// sandboxes lack room, what needs none is served.
    pub(super) async fn prove_backends_if_there_is_room(&self) -> Result<BackendProof, ServeError> {
        loop {
            match self.prove_backends().await {
                Ok(()) => return Ok(BackendProof::Given),
                Err(error) => match self.lack_of_room().await {
                    Some(MissingRoom::Store) => self.wait_for(MissingRoom::Store, &error).await,
                    Some(MissingRoom::Sandboxes) => {
                        let error = in_full(&error);
                        tracing::warn!(error, "serves without sandboxes until the disk has room");
                        return Ok(BackendProof::Owed);
                    }
                    None => return Err(error),
                },
            }
        }
    }

    /// Gives a proof that is owed as soon as there is room. Returns only if it fails: a gateway whose
    /// backend does not work is of no use.
    pub(super) async fn catch_up_on(&self, proof: BackendProof) -> ServeError {
        let mut owed = proof == BackendProof::Owed;
        while owed {
            match self.prove_backends().await {
                Ok(()) => {
                    tracing::info!("sandboxes are there again");
                    owed = false;
                }
                Err(error) => match self.lack_of_room().await {
                    Some(lack) => self.wait_for(lack, &error).await,
                    None => return error,
                },
            }
        }
        std::future::pending().await
    }

    /// Each that a platform's commands run on.
    async fn prove_backends(&self) -> Result<(), ServeError> {
        for (platform, site) in self.toolsets.all() {
            let mut nobody = match platform {
                None => PROOF_CONVERSATION.to_owned(),
                Some(platform) => format!("{PROOF_CONVERSATION}:{platform}"),
            };
            if self.sharing.is_some() {
                // Others may begin at the same moment, and a conversation has one sandbox.
                let _ = write!(nobody, ":{}", self.store.gateway_id());
            }
            let nobody = ConversationKey::new(nobody);
            let proven = self.prove(&nobody, &site.kit.terminal).await;
            proven.map_err(|source| ServeError::Proof {
                backend: site.facts.backend,
                source,
            })?;
        }
        Ok(())
    }

    async fn prove(
        &self,
        nobody: &ConversationKey,
        terminal: &TerminalTool,
    ) -> Result<(), ProofError> {
        let stop = CancellationToken::new();
        let cleared = terminal
            .clear(CommandRequest::shell("true"), &NoOneToAsk, &stop)
            .await?;
        let outcome = {
            let lease = self.sandboxes.lease(nobody).await?;
            terminal.run(lease.sandbox(), cleared, &stop).await
        };
        // Before anything is said of the outcome: what failed its proof must not be there for the
        // next start either.
        self.sandboxes.reset(nobody).await?;
        match outcome {
            TerminalOutcome::Ran { code: 0, .. } => Ok(()),
            TerminalOutcome::Ran { output, code, .. } => {
                Err(ProofError::Command(format!("exit code {code}: {output}")))
            }
            TerminalOutcome::Failed { error } => Err(ProofError::Command(error.into_inner())),
        }
    }
}
