//! Rows of keys in the state of the account.
//!
//! Each row is a value as JSON under the name of the device that it belongs to. Values that are too large
//! for one are kept in parts, and whatever changes at once is written at once.

use std::sync::Arc;

use hermetic_chat::{AdapterState, AdapterStateError, StateChange};
use matrix_sdk_crypto::CryptoStoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the names of all rows begin with.
const PREFIX: &str = "e2ee";
/// Bytes of one part; its name has its share of what a row may hold.
const PART_BYTES: usize = 48 << 10;
/// What a row begins with whose value stands in parts.
const IN_PARTS: char = '+';

/// The rows of one device.
#[derive(Clone, Debug)]
pub(super) struct DeviceRows {
    state: Arc<dyn AdapterState>,
    device: String,
}

/// Changes that are written together.
#[derive(Debug, Default)]
pub(super) struct RowChanges(Vec<StateChange>);

impl DeviceRows {
    pub(super) fn new(state: Arc<dyn AdapterState>, device: &str) -> Self {
        Self {
            state,
            device: device.to_owned(),
        }
    }

    pub(super) async fn load<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, CryptoStoreError> {
        let row = self.state.load(&self.key(name)).await.map_err(broken)?;
        match row {
            Some(row) => self.read(name, row).await.map(Some),
            None => Ok(None),
        }
    }

    /// Every row whose name begins so, in the order of their names, which come along without that.
    pub(super) async fn load_all<T: DeserializeOwned>(
        &self,
        prefix: &str,
    ) -> Result<Vec<(String, T)>, CryptoStoreError> {
        let begin = self.key(prefix);
        let mut all = Vec::new();
        for (key, row) in self.state.load_all(&begin).await.map_err(broken)? {
            let rest = key.strip_prefix(&begin).unwrap_or_default().to_owned();
            let value = self.read(&format!("{prefix}{rest}"), row).await?;
            all.push((rest, value));
        }
        Ok(all)
    }

    /// The names of the rows that begin so, without that.
    pub(super) async fn names(&self, prefix: &str) -> Result<Vec<String>, CryptoStoreError> {
        let begin = self.key(prefix);
        let rows = self.state.load_all(&begin).await.map_err(broken)?;
        let names = rows.into_iter().map(|(key, _)| key);
        Ok(names
            .filter_map(|key| key.strip_prefix(&begin).map(str::to_owned))
            .collect())
    }

    /// Adds a value that has the name from now on.
    pub(super) fn put(
        &self,
        changes: &mut RowChanges,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), CryptoStoreError> {
        let text = serde_json::to_string(value)?;
        if text.len() <= PART_BYTES {
            changes.0.push((self.key(name), Some(text)));
            return Ok(());
        }
        let mut parts = 0;
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let at = rest.floor_char_boundary(PART_BYTES);
            let (part, after) = rest.split_at(at);
            let key = self.part(name, parts);
            changes.0.push((key, Some(part.to_owned())));
            (parts, rest) = (parts + 1, after);
        }
        let row = format!("{IN_PARTS}{parts}");
        changes.0.push((self.key(name), Some(row)));
        Ok(())
    }

    pub(super) fn remove(&self, changes: &mut RowChanges, name: &str) {
        changes.0.push((self.key(name), None));
    }

    /// All of it or nothing, on the disk when this returns.
    pub(super) async fn write(&self, changes: RowChanges) -> Result<(), CryptoStoreError> {
        if changes.0.is_empty() {
            return Ok(());
        }
        self.state.save_together(&changes.0).await.map_err(broken)
    }

    async fn read<T: DeserializeOwned>(
        &self,
        name: &str,
        row: String,
    ) -> Result<T, CryptoStoreError> {
        let parts = row.strip_prefix(IN_PARTS).and_then(|n| n.parse().ok());
        let Some(parts) = parts else {
            return Ok(serde_json::from_str(&row)?);
        };
        let mut whole = String::new();
        for part in 0..parts {
            let found = self.state.load(&self.part(name, part)).await;
            whole.push_str(&found.map_err(broken)?.unwrap_or_default());
        }
        Ok(serde_json::from_str(&whole)?)
    }

    fn key(&self, name: &str) -> String {
        // By the device: keys of one that was logged out must never be taken for those of the next.
        format!("{PREFIX} {} {name}", self.device)
    }

    fn part(&self, name: &str, part: usize) -> String {
        // With another beginning, so that whoever loads all rows of a kind does not take parts for
        // values.
        format!("{PREFIX}-part {} {part} {name}", self.device)
    }
}

fn broken(error: AdapterStateError) -> CryptoStoreError {
    CryptoStoreError::backend(error)
}

#[cfg(test)]
mod tests {
    use hermetic_chat::InMemoryState;

    use super::*;

    #[tokio::test]
    async fn a_large_value_is_kept_in_parts_and_each_device_has_its_own() {
        let state: Arc<dyn AdapterState> = Arc::new(InMemoryState::default());
        let rows = DeviceRows::new(Arc::clone(&state), "ONE");
        let large = "é".repeat(PART_BYTES);
        let mut changes = RowChanges::default();
        rows.put(&mut changes, "a 1", &large).unwrap();
        rows.put(&mut changes, "a 2", &"small").unwrap();
        rows.put(&mut changes, "b", &7).unwrap();
        rows.write(changes).await.unwrap();
        assert_eq!(rows.load("a 1").await.unwrap(), Some(large.clone()));
        let all = rows.load_all::<String>("a ").await.unwrap();
        let expected = [
            ("1".to_owned(), large),
            ("2".to_owned(), "small".to_owned()),
        ];
        assert_eq!(all, expected);
        let other = DeviceRows::new(state, "TWO");
        assert_eq!(other.load::<u8>("b").await.unwrap(), None);
        let mut changes = RowChanges::default();
        rows.put(&mut changes, "a 1", &"shorter").unwrap();
        rows.remove(&mut changes, "a 2");
        rows.write(changes).await.unwrap();
        let all = rows.load_all::<String>("a ").await.unwrap();
        assert_eq!(all, [("1".to_owned(), "shorter".to_owned())]);
    }
}
