//! Where a question was shown, and what its buttons mean.

use hermetic_types::RequestId;

use super::request::request;
use super::{ApprovalRequest, ApprovalRows};
use crate::StoreError;
use crate::database::WithoutRoom::Fail;
use crate::database::WriteDurability::{OnDisk, Soon};
use crate::database::{DatabaseRow, SqlStatement};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptNotice {
    pub account: String,
    /// As the platform's crate wrote it.
    pub place: String,
    pub message: String,
}

impl ApprovalRows {
    /// Before a question is sent: whoever sees it may answer before it is known which message it is.
    pub async fn showing(
        &self,
        id: &RequestId,
        account: &str,
        place: &str,
    ) -> Result<(), StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO approval_notices (request, account, place, message) VALUES (?, ?, ?, '')",
        )
        .bind(id.as_str())
        .bind(account)
        .bind(place);
        self.database
            .change("note that a question is being shown", (Soon, Fail), insert)
            .await
            .map(drop)
    }

    /// It was not sent after all.
    pub async fn not_shown(
        &self,
        id: &RequestId,
        account: &str,
        place: &str,
    ) -> Result<(), StoreError> {
        let delete = SqlStatement::new(
            "DELETE FROM approval_notices
             WHERE request = ? AND account = ? AND place = ? AND message = ''",
        )
        .bind(id.as_str())
        .bind(account)
        .bind(place);
        self.database
            .change("note that a question was not shown", (Soon, Fail), delete)
            .await
            .map(drop)
    }

    /// The message that shows it.
    pub async fn shown(&self, id: &RequestId, notice: &PromptNotice) -> Result<(), StoreError> {
        let begun = SqlStatement::new(
            "DELETE FROM approval_notices
             WHERE request = ? AND account = ? AND place = ? AND message = ''",
        )
        .bind(id.as_str())
        .bind(&notice.account)
        .bind(&notice.place);
        let insert = SqlStatement::new(
            "INSERT INTO approval_notices (request, account, place, message) VALUES (?, ?, ?, ?)",
        )
        .bind(id.as_str())
        .bind(&notice.account)
        .bind(&notice.place)
        .bind(&notice.message);
        let doing = "note where a question was shown";
        // One transaction, or a question would for a moment be shown nowhere, and an answer at that
        // moment be for none.
        let both = vec![begun, insert];
        self.database
            .write(doing, (Soon, Fail), both)
            .await
            .map(drop)
    }

    pub async fn notices(&self, id: &RequestId) -> Result<Vec<PromptNotice>, StoreError> {
        let query = SqlStatement::new(
            "SELECT account, place, message FROM approval_notices
             WHERE request = ? AND message <> ''",
        )
        .bind(id.as_str());
        let notice = |row: &DatabaseRow| {
            Ok(PromptNotice {
                account: row.get("account")?,
                place: row.get("place")?,
                message: row.get("message")?,
            })
        };
        let doing = "read where a question was shown";
        self.database.read(doing, query, notice).await
    }

    /// The questions that were shown in one place, the latest first, each with the message that showed
    /// it; an empty one where that is not known. Enough of them to tell which one somebody answers.
    pub async fn shown_in(
        &self,
        account: &str,
        place: &str,
    ) -> Result<Vec<(RequestId, String)>, StoreError> {
        let query = SqlStatement::new(
            "SELECT request, message FROM approval_notices WHERE account = ? AND place = ?
             ORDER BY rowid DESC LIMIT 100",
        )
        .bind(account)
        .bind(place);
        let shown = |row: &DatabaseRow| {
            let id = row.parsed("request", |text| text.parse().ok())?;
            Ok((id, row.get("message")?))
        };
        let doing = "read what was shown in a place";
        self.database.read(doing, query, shown).await
    }

    /// A press of a button that carries `token` means `choice`.
    pub async fn add_button(
        &self,
        id: &RequestId,
        token: &str,
        choice: &str,
    ) -> Result<(), StoreError> {
        let insert = SqlStatement::new(
            "INSERT INTO approval_buttons (token, request, choice) VALUES (?, ?, ?)",
        )
        .bind(token)
        .bind(id.as_str())
        .bind(choice);
        self.database
            // On the disk before it is shown: pressed after a power cut, it would otherwise mean
            // nothing to us.
            .change("write a button down", (OnDisk, Fail), insert)
            .await
            .map(drop)
    }

    /// The question under which that button hangs, and what it means.
    pub async fn pressed(
        &self,
        token: &str,
    ) -> Result<Option<(ApprovalRequest, String)>, StoreError> {
        let query = SqlStatement::new(
            "SELECT approvals.*, approval_buttons.choice AS choice
             FROM approval_buttons JOIN approvals ON approvals.id = approval_buttons.request
             WHERE token = ?",
        )
        .bind(token);
        let pressed = |row: &DatabaseRow| Ok((request(row)?, row.get("choice")?));
        let doing = "look a button up";
        self.database.read_first(doing, query, pressed).await
    }
}
