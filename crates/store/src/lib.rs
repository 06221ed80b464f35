//! Rows that must survive a crash. The only crate that knows SQL.
//!
//! Each kind of row has a handle and a file here. What is behind them, one SQLite file in WAL mode or
//! a PostgreSQL, is known to [`database`] alone. Everything is written in commits that are
//! checked. Of a power cut survives what was on the disk, and each method that writes says whether it waits for
//! that; `docs/decisions/0020-what-waits-for-the-disk.md` has the whole list and the reasons.

#![forbid(unsafe_code)]

mod activity;
mod adapter_state;
mod agents;
mod approvals;
mod audit_heads;
mod browser_chat;
mod conversation_models;
mod database;
mod deliveries;
mod documents;
mod history;
mod inbox;
mod leases;
mod ledger;
mod look_back;
mod memories;
mod metrics;
mod processes;
mod scheduled_jobs;
mod sessions;
mod shared_work;
mod skill_drafts;
mod spending;
mod store;
#[cfg(test)]
mod test_databases;
mod todo_lists;
mod tool_calls;

pub use activity::{
    ActivityRows, CallActivity, ConversationSummary, DeliveryActivity, HourActivity,
    MessageActivity, RunningTurn, SpendingGroup, SpentSum,
};
pub use adapter_state::AccountState;
pub use agents::{
    AgentSessionRows, AgentSettingKind, AgentSettingRows, AgentSettings, ConversationAgents,
};
pub use approvals::{
    AnswerOutcome, ApprovalRequest, ApprovalRows, ApprovalScope, GivenAnswer, NewRequest,
    PromptNotice, RequestReply, RequestState, StoredSubject,
};
pub use audit_heads::{AuditHeadRow, AuditHeadRows};
pub use browser_chat::{
    BrowserChatRows, BrowserConversation, BrowserFile, BrowserMessage, BrowserMessageState,
    NewBrowserFile, NewBrowserMessage, SaidOutcome, WaitingMessage,
};
pub use conversation_models::ConversationModels;
pub use database::{
    CopyError, DatabaseError, MoveDirection, MoveError, MovedTable, OpenError, PostgresAddress,
    PostgresAddressError, RowOwner, StoreError, StoreVersion,
};
pub use deliveries::{
    DeliveryRow, DeliveryRows, DueDelivery, NextDelivery, PartOutcome, PriorAttempt,
};
pub use documents::{DocumentRows, ReplaceOutcome, StoredDocument};
pub use history::{HistoryRows, HistoryView, NumberedLine, ViewBounds};
pub use inbox::{AcceptedRow, InboxRows, MessageEnd, MessageRow, OpenMessage};
pub use leases::{
    DEAD_AFTER, GatewayProcess, HeldLease, LastBeat, LeaseHints, LeaseHolder, LeaseRows,
    LeaseState, SERVING, SeenGateway,
};
pub use ledger::{LedgerEntry, LedgerState, SandboxEvent, SandboxEventRow, SandboxLedger};
pub use look_back::{LookBackRows, PastLine, PastLines, PastSession, SearchScope};
pub use memories::{MemoryRequestRow, MemoryRow, MemoryRows, MemoryWrite};
pub use metrics::StoreMetrics;
pub use processes::{ProcessRow, ProcessRows};
pub use scheduled_jobs::{
    AddOutcome, EndedRun, JobBounds, JobEdit, JobState, JobTerms, RunEnd, RunKind, RunRow,
    ScheduledJob, ScheduledJobs, SkippedTick, TickClaim,
};
pub use sessions::{SessionRow, SessionRows};
pub use shared_work::{AdoptedWork, ServingGateway, SharedWork, WorkAhead, WorkHint, WorkHints};
pub use skill_drafts::{SkillDraftRow, SkillDraftRows};
pub use spending::{SpendingAmounts, SpendingDay, SpendingRows, SpendingScope};
pub use store::Store;
pub use todo_lists::TodoRows;
pub use tool_calls::{ToolCallRow, ToolCalls};
