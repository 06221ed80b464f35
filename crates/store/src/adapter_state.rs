//! What the adapters of chat accounts remember.

use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{Database, DatabaseRow, SqlStatement};

/// One account's values. Another account's are out of reach.
#[derive(Clone, Debug)]
pub struct AccountState {
    database: Database,
    account: String,
}

impl AccountState {
    pub(crate) fn new(database: Database, account: String) -> Self {
        Self { database, account }
    }

    pub async fn load(&self, key: &str) -> Result<Option<String>, StoreError> {
        let query =
            SqlStatement::new("SELECT value FROM adapter_state WHERE account = ? AND key = ?")
                .bind(&self.account)
                .bind(key);
        let doing = "read an adapter's state";
        let value = |row: &DatabaseRow| row.get("value");
        self.database.read_first(doing, query, value).await
    }

    /// Every key that begins so, with its value, in the order of the keys.
    pub async fn load_all(&self, prefix: &str) -> Result<Vec<(String, String)>, StoreError> {
        let query = SqlStatement::new(
            // A comparison and no `LIKE`, to which `_` and `%` in a key would mean anything.
            "SELECT key, value FROM adapter_state
             WHERE account = ? AND substr(key, 1, length(?)) = ? ORDER BY key",
        )
        .bind(&self.account)
        .bind(prefix)
        .bind(prefix);
        let pair = |row: &DatabaseRow| Ok((row.get("key")?, row.get("value")?));
        let doing = "read an adapter's state";
        self.database.read(doing, query, pair).await
    }

    /// Writes, on the disk.
    pub async fn save(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let doing = "write an adapter's state";
        let put = self.put(key, value);
        self.database
            .change(doing, (OnDisk, Fail), put)
            .await
            .map(drop)
    }

    /// Writes what may be lost in a power cut.
    pub async fn save_soon(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let doing = "write an adapter's state";
        let put = self.put(key, value);
        self.database
            .change(doing, (Soon, Fail), put)
            .await
            .map(drop)
    }

    pub async fn remove(&self, key: &str) -> Result<(), StoreError> {
        let delete = self.delete(key);
        self.database
            .change("forget an adapter's state", (OnDisk, Fail), delete)
            .await
            .map(drop)
    }

    /// Writes and removes all of these or none, on the disk.
    pub async fn save_together(
        &self,
        changes: &[(String, Option<String>)],
    ) -> Result<(), StoreError> {
        let statements = changes.iter().map(|(key, value)| match value {
            Some(value) => self.put(key, value),
            None => self.delete(key),
        });
        let doing = "write an adapter's state";
        let written = self
            .database
            .write(doing, (OnDisk, Fail), statements.collect());
        written.await.map(drop)
    }

    fn delete(&self, key: &str) -> SqlStatement {
        SqlStatement::new("DELETE FROM adapter_state WHERE account = ? AND key = ?")
            .bind(self.account.as_str())
            .bind(key)
    }

    fn put(&self, key: &str, value: &str) -> SqlStatement {
        SqlStatement::new(
            "INSERT INTO adapter_state (account, key, value) VALUES (?, ?, ?)
             ON CONFLICT (account, key) DO UPDATE SET value = excluded.value",
        )
        .bind(self.account.as_str())
        .bind(key)
        .bind(value)
    }
}

#[cfg(test)]
mod tests {

    use crate::test_databases::TestDatabase;

    #[tokio::test]
    async fn each_account_remembers_its_own() {
        for database in TestDatabase::each().await {
            let store = database.open().await.unwrap();
            let [one, two] = ["discord", "discord/work"].map(|name| store.account_state(name));
            one.save("position:7", "100").await.unwrap();
            one.save_soon("position:7", "101").await.unwrap();
            one.save("session", "abc").await.unwrap();
            two.save("position:7", "5").await.unwrap();
            let again = database.open().await.unwrap().account_state("discord");
            let positions = again.load_all("position:").await.unwrap();
            assert_eq!(positions, [("position:7".to_owned(), "101".to_owned())]);
            one.remove("session").await.unwrap();
            assert_eq!(again.load("session").await.unwrap(), None);
            assert_eq!(two.load("position:7").await.unwrap().as_deref(), Some("5"));
        }
    }
}
