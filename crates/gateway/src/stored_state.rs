//! What adapters of chat accounts remember, in the store.

use futures::future::{BoxFuture, FutureExt};
use hermetic_chat::{
    ADAPTER_VALUE_BYTES, AdapterState, AdapterStateError, SaveDurability, StateChange,
};
use hermetic_store::{AccountState, Store, StoreError};
use hermetic_types::AccountId;

/// One account's state, out of reach of every other.
#[derive(Clone, Debug)]
pub struct StoredAdapterState(AccountState);

impl StoredAdapterState {
    pub fn new(store: &Store, account: &AccountId) -> Self {
        Self(store.account_state(&account.to_string()))
    }
}

impl AdapterState for StoredAdapterState {
    fn load<'a>(
        &'a self,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, AdapterStateError>> {
        async move { self.0.load(key).await.map_err(broken) }.boxed()
    }

    fn load_all<'a>(
        &'a self,
        prefix: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>, AdapterStateError>> {
        async move { self.0.load_all(prefix).await.map_err(broken) }.boxed()
    }

    fn save<'a>(
        &'a self,
        key: &'a str,
        value: &'a str,
        saving: SaveDurability,
    ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        async move {
            check_size(key, value)?;
            let saved = match saving {
                SaveDurability::OnDisk => self.0.save(key, value).await,
                SaveDurability::Soon => self.0.save_soon(key, value).await,
            };
            saved.map_err(broken)
        }
        .boxed()
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        async move { self.0.remove(key).await.map_err(broken) }.boxed()
    }

    fn save_together<'a>(
        &'a self,
        changes: &'a [StateChange],
    ) -> BoxFuture<'a, Result<(), AdapterStateError>> {
        async move {
            // All sizes before any write: half of what belongs together is worse than none.
            for (key, value) in changes {
                check_size(key, value.as_deref().unwrap_or_default())?;
            }
            self.0.save_together(changes).await.map_err(broken)
        }
        .boxed()
    }
}

fn check_size(key: &str, value: &str) -> Result<(), AdapterStateError> {
    let bytes = key.len() + value.len();
    if bytes > ADAPTER_VALUE_BYTES {
        return Err(AdapterStateError::TooLarge {
            bytes,
            most: ADAPTER_VALUE_BYTES,
        });
    }
    Ok(())
}

fn broken(error: StoreError) -> AdapterStateError {
    AdapterStateError::Store(Box::new(error))
}

#[cfg(test)]
mod tests {
    use hermetic_types::{Platform, SystemClock};

    use super::*;

    #[tokio::test]
    async fn an_adapter_finds_its_own_state_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let own = AccountId::from(Platform::Discord);
        let work: AccountId = "discord/work".parse().unwrap();
        let open = async |account: &AccountId| {
            let store = Store::open(&path, SystemClock::shared()).await.unwrap();
            StoredAdapterState::new(&store, account)
        };
        let before = open(&own).await;
        before
            .save("session", "abc", SaveDurability::OnDisk)
            .await
            .unwrap();
        let too_large = "x".repeat(ADAPTER_VALUE_BYTES);
        let refused = before
            .save("session", &too_large, SaveDurability::Soon)
            .await;
        assert!(matches!(refused, Err(AdapterStateError::TooLarge { .. })));
        // All or nothing.
        let change = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
        let torn = [
            change("session", Some("x")),
            change("big", Some(&too_large)),
        ];
        assert!(before.save_together(&torn).await.is_err());
        let found = open(&own).await.load("session").await.unwrap();
        assert_eq!(found.as_deref(), Some("abc"));
        let whole = [change("session", None), change("next", Some("1"))];
        before.save_together(&whole).await.unwrap();
        let found = open(&own).await.load_all("").await.unwrap();
        assert_eq!(found, [("next".to_owned(), "1".to_owned())]);
        assert_eq!(open(&work).await.load("session").await.unwrap(), None);
    }
}
