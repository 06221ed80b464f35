//! Gateways of one installation write down where each other's audit chains stand.
//!
//! Whoever has a chain's key and may write its note can cut the chain, and by itself it looks whole. What the
//! other gateways wrote down of it shows that. Each tells where its chain stands by a row of the store they
//! share, and looks there for the others. A store that is a file has one gateway, which has nobody to tell.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermetic_audit::{AuditEvent, AuditLog, AuditText, ChainHead, PublishedHead};
use hermetic_redact::Redactor;
use hermetic_store::{AuditHeadRow, AuditHeadRows, StoreError};
use hermetic_types::SharedClock;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// So much of a chain can be cut off unseen by the others.
const WITNESS_EVERY: Duration = Duration::from_secs(10);

/// After so long without a record a chain is that of a machine that is gone.
const FORGET_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

/// One gateway's side of it.
#[derive(Debug)]
pub(super) struct ChainWitness {
    audit: Arc<AuditLog>,
    heads: AuditHeadRows,
    /// What people know the chain by.
    place: String,
    redactor: Redactor,
    clock: SharedClock,
    /// Where the chain stood when others were told, or when it had grown by nothing but what it says of them.
    told: Option<ChainHead>,
    /// What is written down of each other chain.
    witnessed: HashMap<(String, String), u64>,
}

impl ChainWitness {
    pub(super) fn new(
        audit: &Arc<AuditLog>,
        heads: AuditHeadRows,
        redactor: Redactor,
        clock: SharedClock,
    ) -> Self {
        Self {
            place: chain_place(audit.path()),
            audit: Arc::clone(audit),
            heads,
            redactor,
            clock,
            told: None,
            witnessed: HashMap::new(),
        }
    }

    pub(super) async fn run(mut self, until: CancellationToken) {
        if let Err(error) = self.heads.forget_before(self.forgotten_before()).await {
            tracing::debug!(%error, "old heads of audit chains stay");
        }
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "audit chains could not witness each other");
            }
            let waited = until.run_until_cancelled(sleep(WITNESS_EVERY)).await;
            if waited.is_none() {
                break;
            }
        }
        // Once more: what was recorded last is told before nobody is there to tell it.
        if let Err(error) = self.tell().await {
            tracing::warn!(%error, "where the audit chain ends could not be told");
        }
    }

    async fn round(&mut self) -> Result<(), StoreError> {
        self.tell().await?;
        let rows = self.heads.all().await?;
        let news: Vec<_> = rows.iter().filter_map(|row| self.news(row)).collect();
        if !news.is_empty() {
            self.write_down(news).await;
        }
        Ok(())
    }

    /// Nothing where the chain did not grow: two idle gateways must not go on telling each other that they told.
    async fn tell(&mut self) -> Result<(), StoreError> {
        let audit = Arc::clone(&self.audit);
        let Ok(Some(published)) = spawn_blocking(move || audit.published_head()).await else {
            return Ok(());
        };
        let PublishedHead { chain, head, seal } = published;
        if self.told == Some(head) {
            return Ok(());
        }
        let row = AuditHeadRow {
            chain: chain.to_string(),
            place: self.place.clone(),
            seq: head.seq,
            hash: head.hash.to_string(),
            seal: seal.to_string(),
        };
        self.heads.publish(&row, self.clock.now()).await?;
        self.told = Some(head);
        Ok(())
    }

    /// What another chain says that is not written down yet. What cannot be read is nobody's word.
    fn news(&self, row: &AuditHeadRow) -> Option<(AuditHeadRow, AuditEvent)> {
        let known = self.witnessed.get(&(row.chain.clone(), row.place.clone()));
        if row.place == self.place || known == Some(&row.seq) {
            return None;
        }
        let event = AuditEvent::Witnessed {
            chain: row.chain.parse().ok()?,
            place: AuditText::from(self.redactor.redact(row.place.clone())),
            head: ChainHead {
                seq: row.seq,
                hash: row.hash.parse().ok()?,
            }
            .to_string(),
            seal: row.seal.parse().ok()?,
        };
        Some((row.clone(), event))
    }

    async fn write_down(&mut self, news: Vec<(AuditHeadRow, AuditEvent)>) {
        let (audit, now) = (Arc::clone(&self.audit), self.clock.now());
        // Beside the runtime: another process may hold the record for a moment.
        let written = spawn_blocking(move || {
            let before = audit.noted_head();
            let mut written = Vec::new();
            for (row, event) in news {
                match audit.append(&event, now) {
                    Ok(head) => written.push((row, head)),
                    // The same trouble as of whoever runs something; that is told there.
                    Err(error) => {
                        tracing::warn!(%error, "another audit chain was not written down");
                    }
                }
            }
            (before, written)
        });
        let Ok((before, written)) = written.await else {
            return;
        };
        let many = written.len() as u64;
        for (row, head) in written {
            self.witnessed.insert((row.chain, row.place), row.seq);
            // Only where nobody wrote in between: then it is more than what was said of others. A chain that begins
            // with what others said has nothing to tell either.
            if self.told == before && head.seq == before.map_or(0, |before| before.seq) + many {
                self.told = Some(head);
            }
        }
    }

    fn forgotten_before(&self) -> hermetic_types::Timestamp {
        let age = i64::try_from(FORGET_AFTER.as_millis()).unwrap_or(i64::MAX);
        hermetic_types::Timestamp::from_millis(self.clock.now().millis().saturating_sub(age))
    }
}

/// What people know the chain of this record by: its machine and file.
pub fn chain_place(record: &Path) -> String {
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", machine.trim(), record.display())
}

#[cfg(test)]
#[path = "chain_witness_tests.rs"]
mod tests;
