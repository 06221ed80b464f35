//! A fresh sandbox tried out: greeted, and a command of ours run to its output.
//!
//! That it was built and sealed says little: its warden may die of the first thing it does.

use std::time::Duration;

use hermetic_policy::{Cleared, OwnProgram};
use hermetic_types::RunId;
use hermetic_warden::client::{GreetError, Warden, WardenCallError};
use hermetic_warden::protocol::KillRequest;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::sandbox::to_run;
use crate::{CommandBond, OutputTerms, WardenLink, gather};

#[derive(Debug, Error)]
pub enum TrialError {
    #[error(transparent)]
    Greet(#[from] GreetError),
    #[error(transparent)]
    Call(#[from] WardenCallError),
    #[error("a command in it should say {expected:?}, and ended with exit code {code}: {said:?}")]
    Output {
        expected: &'static str,
        code: i32,
        said: String,
    },
}

/// A machine that swaps takes long over a millisecond's work.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(20);
const RECKONED: &str = "42\n";
const MOST_TRIAL_WORDS: usize = 1 << 10;

/// Succeeds when a command's output came back over the link.
pub async fn try_command(link: WardenLink) -> Result<(), TrialError> {
    try_to_say(link, OwnProgram::Reckon, RECKONED).await
}

/// Succeeds when this program said exactly that, and ended well.
pub async fn try_to_say(
    link: WardenLink,
    program: OwnProgram,
    expected: &'static str,
) -> Result<(), TrialError> {
    let warden = Warden::greet(link.into_stream(), TRIAL_TIMEOUT).await?;
    let id = RunId::random();
    let command = Cleared::own_program(program).into_command();
    let run = to_run(id.clone(), command, CommandBond::Caller);
    let end = warden.kill(KillRequest::Run(id));
    let running = warden.run(run).await?;
    let stop = CancellationToken::new();
    let finished = gather(
        running,
        None,
        OutputTerms::kept(MOST_TRIAL_WORDS),
        &stop,
        end,
    )
    .await?;
    let code = finished.code();
    let mut said = finished.stdout.into_bytes();
    if code == 0 && said == expected.as_bytes() {
        return Ok(());
    }
    said.extend(finished.stderr.into_bytes());
    Err(TrialError::Output {
        expected,
        code,
        said: String::from_utf8_lossy(&said).into_owned(),
    })
}
