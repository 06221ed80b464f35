//! A conversation while a turn works on it.

use std::collections::{BTreeSet, HashSet};

use hermetic_agent::{
    Agent, AgentTurn, CallId, HistorySummary, LengthNote, Message, MessagePart, TurnEnding,
    TurnError, TurnInput, TurnObserver, mend, prompt,
};
use hermetic_egress::{ReachSummary, RuleMode};
use hermetic_redact::Redacted;
use hermetic_store::{MessageEnd, MessageRow, StoreError};
use hermetic_tools::TerminalTool;
use hermetic_types::Boundary;

use super::TurnControl;
use crate::conversation::OwnTool;
use crate::conversation::checkpoint::WorkspaceKeeper;
use crate::conversation::delegate_tool::DelegateTool;
use crate::conversation::journal::{HistoryLine, ReadHistory, StoreJournal};
use crate::conversation::sandbox_tools::{AgentTools, ConversationSandbox};
use crate::message::AcceptedMessage;
use crate::schedule::CronjobTool;
use crate::spending::TurnMeter;
use crate::wording;
use crate::{Gateway, PlatformTools};
use hermetic_approvals::CommandApprovals;

pub(crate) struct TurnSession<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) message: AcceptedMessage,
    pub(super) site: &'a PlatformTools,
    pub(super) system: Redacted<String>,
    /// What came along with the message and is shown to the model.
    media: Vec<MessagePart>,
    summary: Option<HistorySummary>,
    history: Vec<Message>,
    /// There is more of the conversation than can be read at once.
    unread: bool,
    /// An earlier process began with this message.
    was_begun: bool,
    journal: StoreJournal,
    pub(super) own: ConversationSandbox<'a>,
    keeper: Option<WorkspaceKeeper>,
    pub(super) asker: CommandApprovals,
    meter: TurnMeter<'a>,
    progress: TurnProgress,
}

/// How far an earlier process came with this message.
enum TurnProgress {
    Fresh(String),
    /// Its words are in the history, and perhaps some of the answer.
    Resumed,
    /// The turn had ended; only the reply was not written.
    Answered(String),
}

impl Gateway {
    pub(crate) async fn open_session(
        &self,
        message: &AcceptedMessage,
        control: &TurnControl,
    ) -> Result<TurnSession<'_>, StoreError> {
        let read = ReadHistory::of(&self.history, message.conversation(), &self.redactor).await?;
        let lines = read.lines;
        let mut progress = progress(&lines, message);
        let mut media = Vec::new();
        if let TurnProgress::Fresh(text) = &mut progress {
            let taken = self.take_files(message, &control.stop).await;
            text.push_str(&taken.told);
            media = taken.media;
        }
        let begun = self.begun(&lines).await?;
        let journal = StoreJournal::new(
            self,
            message,
            control.clone(),
            read.numbers,
            !matches!(progress, TurnProgress::Fresh(_)),
        );
        let history = mend(lines.into_iter().map(|line| line.message).collect(), &begun);
        let platform = message.said().platform();
        let site = self.toolsets.of(platform);
        let mut facts = site.facts.clone();
        facts.chat = platform.to_string();
        if facts.boundary == Boundary::Sealed {
            facts.network = network(self.sandboxes.reach_of(message.conversation()).await);
        }
        facts.files = self
            .outbox
            .chat(&message.said().account)
            .is_some_and(|chat| chat.capabilities().files_out.is_some());
        let asker = self.approvals.commands(message);
        let is_job = message.is_scheduled();
        Ok(TurnSession {
            gateway: self,
            message: message.clone(),
            site,
            // Names of hosts and folders in it are from the configuration.
            system: self.redactor.redact(prompt::system(&facts)),
            media,
            summary: read.summary,
            history,
            unread: read.left_out > 0,
            was_begun: message.was_begun(),
            journal,
            own: ConversationSandbox::of(&self.sandboxes, message),
            keeper: self.workspace_keeper(message).filter(|_| !is_job),
            meter: self.meter(message).without(asker.waits().clone()),
            asker,
            progress,
        })
    }

    /// Calls of this conversation that started and have no result: nobody knows whether they happened.
    pub(super) async fn begun(&self, lines: &[HistoryLine]) -> Result<HashSet<CallId>, StoreError> {
        let ended: HashSet<&CallId> = lines
            .iter()
            .filter_map(|line| match &line.message {
                Message::Tool { call_id, .. } => Some(call_id),
                _ => None,
            })
            .collect();
        let open: BTreeSet<i64> = lines
            .iter()
            .filter(|line| {
                let mut calls = line.message.tool_calls();
                calls.any(|call| !ended.contains(&call.id))
            })
            .map(|line| line.row)
            .collect();
        let mut begun = HashSet::new();
        for row in open {
            let row = MessageRow(row);
            let mut calls = self.tool_calls.of(row).await?;
            // One call runs at a time. If a command's question is still open, the command never ran.
            if let Some(asked) = self.approvals.questions.rows().last_of(row).await?
                && !asked.spent
                && calls.last().is_some_and(|call| {
                    call.tool == TerminalTool::NAME && call.begun_at <= asked.asked_at
                })
            {
                calls.pop();
            }
            begun.extend(calls.into_iter().map(|call| CallId::new(call.call)));
        }
        Ok(begun)
    }

    /// Whether all that came of a message so far is a question: nothing has run.
    pub(crate) async fn only_asked(&self, row: MessageRow) -> Result<bool, StoreError> {
        let asked = self.approvals.questions.rows().last_of(row).await?;
        Ok(asked.is_some_and(|asked| !asked.spent))
    }

    /// Messages that rode along end with the turn that heard them.
    pub(crate) async fn settle_steering(&self, control: &TurnControl, answered: bool) {
        let end = if answered {
            MessageEnd::Answered
        } else {
            MessageEnd::Failed
        };
        for steering_message in control.take_heard() {
            let note = Some("told to a turn that was at work");
            if let Err(error) = self
                .inbox
                .end(steering_message.row(), end, note, self.now())
                .await
            {
                tracing::error!(row = steering_message.row().0, %error, "a message stays open");
            }
        }
    }
}

impl TurnSession<'_> {
    /// What the person is told.
    pub(crate) async fn take_turn(
        &self,
        agent: &Agent,
        control: &TurnControl,
        observer: &dyn TurnObserver,
    ) -> Result<String, TurnError> {
        let input = match &self.progress {
            TurnProgress::Answered(text) => return Ok(text.clone()),
            TurnProgress::Fresh(text) => TurnInput::Says(text),
            TurnProgress::Resumed => TurnInput::Resume,
        };
        let delegate = DelegateTool::new(self, agent, observer);
        let cronjob = CronjobTool {
            gateway: self.gateway,
            message: &self.message,
        };
        // A job that makes jobs would never end.
        let cronjob = (!self.message.is_scheduled()).then_some(&cronjob as &dyn OwnTool);
        let tools = AgentTools::new(self.site.kit.toolbox(&self.own, &self.asker), &self.own)
            .with_own_tools([&delegate as &dyn OwnTool].into_iter().chain(cronjob))
            .with_waits(self.asker.waits().clone())
            .keeping(self.keeper.as_ref());
        let notices = tools.prepare(&control.stop).await;
        let turn = AgentTurn {
            system: &self.system,
            summary: self.summary.as_ref(),
            history: &self.history,
            input,
            media: &self.media,
            tools: &tools,
            journal: &self.journal,
            observer,
            steer: &control.steer,
            meter: &self.meter,
        };
        let answer = agent.take_turn(turn, control.stop.clone()).await;
        // However it ended: where no request followed the last tool, its time is not in the book yet.
        self.meter.close().await;
        let answer = answer?;
        let mut text = answer.text;
        let mut notes = answer.notes;
        if self.unread && !notes.contains(&LengthNote::LeftOut) {
            notes.push(LengthNote::LeftOut);
        }
        text.insert_str(0, &wording::length(&notes));
        // `/retry` has its words in the history too.
        if matches!(self.progress, TurnProgress::Resumed) && self.was_begun {
            text.insert_str(0, wording::RESUMED);
        }
        if answer.ended == TurnEnding::Interrupted && self.gateway.cut.is_cancelled() {
            text = format!("{text}\n\n{}", wording::CUT);
        }
        if !notices.is_empty() {
            text.insert_str(0, &format!("{}\n\n", notices.join("\n")));
        }
        if let Some(set_aside) = self.own.set_aside() {
            text.insert_str(0, &set_aside);
        }
        Ok(text)
    }
}

/// What the model is told it can reach: what it can reach now.
pub fn network(reach: Option<ReachSummary>) -> prompt::NetworkFacts {
    match reach {
        None => prompt::NetworkFacts::Closed,
        Some(reach) => match (reach.mode, reach.asks) {
            (RuleMode::Closed, _) => prompt::NetworkFacts::Closed,
            (RuleMode::Open, _) => prompt::NetworkFacts::Public,
            (RuleMode::Allowlist, true) => prompt::NetworkFacts::Ask(reach.allowed),
            (RuleMode::Allowlist, false) => prompt::NetworkFacts::Allow(reach.allowed),
        },
    }
}

fn progress(lines: &[HistoryLine], message: &AcceptedMessage) -> TurnProgress {
    let row = message.row().0;
    let mut own = lines.iter().filter(|line| line.row == row);
    match own.next_back().map(|line| &line.message) {
        None => TurnProgress::Fresh(message.for_model()),
        Some(last @ Message::Assistant { .. }) if last.tool_calls().next().is_none() => {
            TurnProgress::Answered(last.text().into_owned())
        }
        Some(_) => TurnProgress::Resumed,
    }
}
