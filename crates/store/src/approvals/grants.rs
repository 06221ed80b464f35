//! What a person allowed for longer than once, for exactly one thing in one conversation.

use hermetic_types::{ConversationKey, RequestId, Timestamp};

use super::{ApprovalRows, ApprovalScope, StoredSubject};
use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::OnDisk;
use crate::database::{DatabaseRow, SqlStatement};

impl ApprovalRows {
    pub async fn is_granted(
        &self,
        conversation: &ConversationKey,
        subject: StoredSubject,
        fingerprint: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let query = SqlStatement::new(
            "SELECT EXISTS (SELECT 1 FROM grants
             WHERE conversation = ? AND subject = ? AND fingerprint = ?
               AND (expires_at IS NULL OR expires_at > ?))",
        )
        .bind(conversation.as_str())
        .bind(subject.column())
        .bind(fingerprint)
        .bind(now.millis());
        let exists = |row: &DatabaseRow| row.get(0);
        self.database
            .read_only("look for a grant", query, exists)
            .await
    }

    /// The conversation starts anew: nothing is allowed in it any more.
    pub async fn revoke(&self, conversation: &ConversationKey) -> Result<u64, StoreError> {
        let delete = SqlStatement::new("DELETE FROM grants WHERE conversation = ?")
            .bind(conversation.as_str());
        self.database
            .change("take grants back", (OnDisk, Fail), delete)
            .await
    }
}

/// The grant that comes with a yes, if the answer right before was the first; otherwise it writes
/// nothing. `None` for a yes that holds once.
pub(super) fn insert_if_won(
    id: &RequestId,
    scope: ApprovalScope,
    now: Timestamp,
) -> Option<SqlStatement> {
    let granted: Vec<_> = StoredSubject::ALL
        .into_iter()
        .filter_map(|subject| Some((subject, scope.grant(subject, now)?)))
        .collect();
    // Where both are granted it is until the same time.
    let ((one, expires), (other, _)) = (granted.first()?, granted.last()?);
    let statement = SqlStatement::for_each(
        "INSERT OR REPLACE INTO grants
         (conversation, subject, fingerprint, request, granted_at, expires_at)
         SELECT conversation, subject, fingerprint, id, ?1, ?2 FROM approvals
         WHERE id = ?3 AND subject IN (?4, ?5) AND changes() = 1",
        // A row that this transaction changed carries its number.
        "INSERT INTO grants (conversation, subject, fingerprint, request, granted_at, expires_at)
         SELECT conversation, subject, fingerprint, id, ?1, ?2 FROM approvals
         WHERE id = ?3 AND subject IN (?4, ?5) AND xmin = CAST(pg_current_xact_id() AS xid)
         ON CONFLICT (conversation, subject, fingerprint) DO UPDATE SET
             request = excluded.request, granted_at = excluded.granted_at,
             expires_at = excluded.expires_at",
    );
    Some(
        statement
            .bind(now.millis())
            .bind(expires.map(Timestamp::millis))
            .bind(id.as_str())
            .bind(one.name())
            .bind(other.name()),
    )
}
