//! The open store, and the handles to what is in it.

use std::path::Path;

use hermetic_types::{GatewayId, HealthReport, SharedClock};
use tokio::sync::watch;

use crate::database::{self, Database};
use crate::{
    AccountState, ActivityRows, AgentSessionRows, AgentSettingRows, ApprovalRows, AuditHeadRows,
    BrowserChatRows, ConversationAgents, ConversationModels, CopyError, DeliveryRows, DocumentRows,
    HeldLease, HistoryRows, InboxRows, LeaseRows, LookBackRows, MemoryRows, MoveDirection,
    MoveError, MovedTable, OpenError, PostgresAddress, ProcessRows, SandboxLedger, ScheduledJobs,
    SessionRows, SharedWork, SkillDraftRows, SpendingRows, StoreMetrics, StoreVersion, TodoRows,
    ToolCalls,
};

/// The open store. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) database: Database,
}

impl Store {
    /// Opens it for an installation's one gateway. The clock tells since when the store is in trouble.
    /// Must be called within a runtime, which has to live as long as the store is written to.
    pub async fn open(path: &Path, clock: SharedClock) -> Result<Self, OpenError> {
        Self::open_as(path, GatewayId::sole(), clock).await
    }

    /// Opens it for this gateway, in whose name rows are written.
    pub async fn open_as(
        path: &Path,
        gateway: GatewayId,
        clock: SharedClock,
    ) -> Result<Self, OpenError> {
        let database = Box::pin(Database::open(path, gateway, clock)).await?;
        Ok(Self { database })
    }

    /// Opens the one in a PostgreSQL, which several gateways may share.
    pub async fn open_postgres(
        address: &PostgresAddress,
        gateway: GatewayId,
        clock: SharedClock,
    ) -> Result<Self, OpenError> {
        // Boxed, so that whoever opens a file does not carry it.
        let database = Box::pin(Database::open_postgres(address, gateway, clock)).await?;
        Ok(Self { database })
    }

    /// How long reads and commits take is counted here. Before any handle is taken: those that were taken
    /// count where the store did.
    pub fn counting_in(mut self, metrics: StoreMetrics) -> Self {
        self.database.count_in(metrics);
        self
    }

    /// From now on everything that the handles of this store write depends on this lease. Before any handle is
    /// taken: those that were taken write freely.
    pub fn fenced_by(mut self, held: HeldLease) -> Self {
        self.database.fence_by(held);
        self
    }

    /// The same for one that serves beside others: what it writes is under its own name, too, and messages are
    /// written in the name of whoever serves their conversation.
    pub fn shared_by(mut self, held: HeldLease) -> Self {
        self.database.share_by(held);
        self
    }

    /// The work of gateways that serve side by side.
    pub fn shared_work(&self) -> SharedWork {
        SharedWork::new(self.database.clone())
    }

    /// Whether several gateways may have it open: a file belongs to the home that it is in.
    pub fn is_shared(&self) -> bool {
        self.database.is_shared()
    }

    /// In whose name rows are written.
    pub fn gateway_id(&self) -> &str {
        self.database.gateway()
    }

    /// What one process alone may do.
    pub fn leases(&self) -> LeaseRows {
        LeaseRows::new(self.database.clone())
    }

    /// Whether this is a file of an earlier version, which opening it would change. Changes nothing; what
    /// cannot be looked at is not known to be one.
    pub async fn is_of_earlier_version(path: &Path) -> bool {
        database::is_of_earlier_version(path).await
    }

    /// Copies the file, whoever writes to it meanwhile, into one that is not there yet.
    pub async fn copy(path: &Path, into: &Path) -> Result<StoreVersion, CopyError> {
        database::copy(path, into).await
    }

    /// Copies every row between the file and the PostgreSQL, in one transaction at the empty one of them. Both
    /// were opened before, so that they have their tables, and nobody writes to either meanwhile.
    pub async fn move_rows(
        path: &Path,
        address: &PostgresAddress,
        direction: MoveDirection,
    ) -> Result<Vec<MovedTable>, MoveError> {
        database::move_rows(path, address, direction).await
    }

    /// Whether it can be written to, and if not, why and since when.
    pub fn health(&self) -> HealthReport {
        self.database.health()
    }

    /// From now on, what was done already and has only to be remembered waits while there is no room,
    /// instead of failing. For a program that lives long enough to see room come back.
    pub fn wait_for_room(&self) {
        self.database.set_waiting(true);
    }

    /// Ends that: what still waits fails when it is tried next. For a program that is about to end.
    pub fn stop_waiting_for_room(&self) {
        self.database.set_waiting(false);
    }

    /// Counts up with every commit of this process, for whoever shows what is in the store.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.database.changes()
    }

    /// Where the audit chains of those who share this store stand.
    pub fn audit_heads(&self) -> AuditHeadRows {
        AuditHeadRows::new(self.database.clone())
    }

    /// What goes on in all conversations, to be looked at.
    pub fn activity(&self) -> ActivityRows {
        ActivityRows::new(self.database.clone())
    }

    pub fn ledger(&self) -> SandboxLedger {
        SandboxLedger::new(self.database.clone())
    }

    pub fn inbox(&self) -> InboxRows {
        InboxRows::new(self.database.clone())
    }

    pub fn tool_calls(&self) -> ToolCalls {
        ToolCalls::new(self.database.clone())
    }

    pub fn history(&self) -> HistoryRows {
        HistoryRows::new(self.database.clone())
    }

    /// The models that were chosen for conversations.
    pub fn conversation_models(&self) -> ConversationModels {
        ConversationModels::new(self.database.clone())
    }

    /// The agents that were chosen for conversations.
    pub fn conversation_agents(&self) -> ConversationAgents {
        ConversationAgents::new(self.database.clone())
    }

    /// What agents of others call their sessions.
    pub fn agent_sessions(&self) -> AgentSessionRows {
        AgentSessionRows::new(self.database.clone())
    }

    /// Modes and models of such agents that somebody chose.
    pub fn agent_settings(&self) -> AgentSettingRows {
        AgentSettingRows::new(self.database.clone())
    }

    /// What was said before conversations started afresh.
    pub fn sessions(&self) -> SessionRows {
        SessionRows::new(self.database.clone())
    }

    /// The tasks that agents wrote down.
    pub fn todo_lists(&self) -> TodoRows {
        TodoRows::new(self.database.clone())
    }

    pub fn deliveries(&self) -> DeliveryRows {
        DeliveryRows::new(self.database.clone())
    }

    pub fn approvals(&self) -> ApprovalRows {
        ApprovalRows::new(self.database.clone())
    }

    pub fn processes(&self) -> ProcessRows {
        ProcessRows::new(self.database.clone())
    }

    /// Work that is due at a time.
    pub fn scheduled_jobs(&self) -> ScheduledJobs {
        ScheduledJobs::new(self.database.clone())
    }

    pub fn spending(&self) -> SpendingRows {
        SpendingRows::new(self.database.clone())
    }

    /// What the adapter of this account remembers.
    pub fn account_state(&self, account: &str) -> AccountState {
        AccountState::new(self.database.clone(), account.to_owned())
    }

    /// What was said in the chat in the browser.
    pub fn browser_chat(&self) -> BrowserChatRows {
        BrowserChatRows::new(self.database.clone())
    }

    /// What is remembered beyond one conversation.
    pub fn memories(&self) -> MemoryRows {
        MemoryRows::new(self.database.clone())
    }

    /// Skills that wait for a person.
    pub fn skill_drafts(&self) -> SkillDraftRows {
        SkillDraftRows::new(self.database.clone())
    }

    /// What was said before, for whoever may look back at it.
    pub fn look_back(&self) -> LookBackRows {
        LookBackRows::new(self.database.clone())
    }

    pub fn documents(&self) -> DocumentRows {
        DocumentRows::new(self.database.clone())
    }
}
