//! What a person allowed for longer than once, for exactly one thing in one conversation.

use hermetic_types::{ConversationKey, Timestamp};
use sqlx::SqliteConnection;

use super::{Approvals, Request, Subject};
use crate::StoreError;

impl Approvals {
    pub async fn is_granted(
        &self,
        conversation: &ConversationKey,
        subject: Subject,
        fingerprint: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        sqlx::query_scalar::<_, bool>(
            "SELECT EXISTS (SELECT 1 FROM grants
             WHERE conversation = ? AND subject = ? AND fingerprint = ?
               AND (expires_at IS NULL OR expires_at > ?))",
        )
        .bind(conversation.as_str())
        .bind(subject.name())
        .bind(fingerprint)
        .bind(now.millis())
        .fetch_one(&self.pool)
        .await
        .map_err(StoreError::while_doing("look for a grant"))
    }

    /// The conversation starts anew: nothing is allowed in it any more.
    pub async fn revoke(&self, conversation: &ConversationKey) -> Result<u64, StoreError> {
        sqlx::query("DELETE FROM grants WHERE conversation = ?")
            .bind(conversation.as_str())
            .execute(&self.pool)
            .await
            .map(|done| done.rows_affected())
            .map_err(StoreError::while_doing("take grants back"))
    }
}

pub(super) async fn insert(
    both: &mut SqliteConnection,
    request: &Request,
    expires: Option<Timestamp>,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT OR REPLACE INTO grants
         (conversation, subject, fingerprint, request, granted_at, expires_at)
         VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(request.conversation.as_str())
    .bind(request.subject.name())
    .bind(&request.fingerprint)
    .bind(request.id.as_str())
    .bind(now.millis())
    .bind(expires.map(Timestamp::millis))
    .execute(both)
    .await
    .map(drop)
}
