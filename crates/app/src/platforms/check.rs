//! What the platforms say about the accounts that are configured.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use hermetic_chat::{AccountCheck, Chat, CheckError};
use hermetic_config::Config;
use hermetic_types::AccountId;
use tokio::time::timeout;

use super::{AdapterSurroundings, accounts};
use crate::AppFailure;

/// A platform that has not answered by then is not reached.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// Asks for every account that is in use, all at once. Nothing is received.
pub async fn check_accounts(
    config: &Config,
) -> Result<Vec<(AccountId, Result<AccountCheck, CheckError>)>, AppFailure> {
    let checks = accounts(config, &AdapterSurroundings::of_onlooker())?.into_iter();
    Ok(join_all(checks.map(|account| check(account.chat))).await)
}

async fn check(chat: Arc<dyn Chat>) -> (AccountId, Result<AccountCheck, CheckError>) {
    let checked = timeout(CHECK_TIMEOUT, chat.check()).await;
    let checked = checked.unwrap_or_else(|late| Err(CheckError::Unreachable(Box::new(late))));
    (chat.account().clone(), checked)
}
