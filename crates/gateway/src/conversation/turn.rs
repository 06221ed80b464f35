//! A conversation while a turn works on it.

use std::collections::{BTreeSet, HashSet};

use hermetic_acp::{AbsentAgent, AgentProgram, SealedAgent};
use hermetic_agent::{
    Agent, AgentTurn, CallId, HistorySummary, JournalError, LengthNote, Message, MessagePart,
    ToolCall, TurnEnding, TurnError, TurnInput, TurnJournal, TurnObserver, TurnTaker, mend, prompt,
};
use hermetic_egress::{ReachSummary, RuleMode};
use hermetic_redact::Redacted;
use hermetic_store::{AgentSettings, MessageEnd, MessageRow, StoreError};
use hermetic_tools::TerminalTool;
use hermetic_types::{Boundary, ConversationKey, RunId};

use super::TurnControl;
use super::agents::{Answerer, TurnSupervisor};
use super::journal::end_answers;
use crate::conversation::OwnTool;
use crate::conversation::checkpoint::{WorkspaceKeeper, agent_tool};
use crate::conversation::delegate_tool::DelegateTool;
use crate::conversation::journal::{HistoryLine, ReadHistory, StoreJournal};
use crate::conversation::sandbox_tools::{AgentTools, ConversationSandbox};
use crate::conversation::vision::VisionModel;
use crate::memory::PersonalTools;
use crate::message::AcceptedMessage;
use crate::schedule::CronjobTool;
use crate::spending::TurnMeter;
use crate::wording;
use crate::{Gateway, PlatformTools};
use hermetic_approvals::CommandApprovals;

/// Nobody sees what a job notes.
const NOT_IN_JOBS: [&str; 1] = ["memory"];
/// What such a job says may go to others than its person.
const NOT_IN_JOBS_FOR_OTHERS: [&str; 2] = ["memory", "session_search"];

pub(crate) struct TurnSession<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) message: &'a AcceptedMessage,
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
    personal: PersonalTools<'a>,
    /// Tools that are not for this turn.
    withheld: &'static [&'static str],
    pub(super) own: ConversationSandbox<'a>,
    keeper: Option<WorkspaceKeeper>,
    pub(super) asker: CommandApprovals,
    meter: TurnMeter<'a>,
    row: MessageRow,
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
    pub(crate) async fn open_session<'a>(
        &'a self,
        message: &'a AcceptedMessage,
        control: &TurnControl,
    ) -> Result<TurnSession<'a>, StoreError> {
        let conversation = message.conversation();
        let platform = message.said().platform();
        let site = self.toolsets.of(platform);
        // At the same time: each is a way to a thread of the store and back, and none needs another's answer.
        let (read, reach, tasks, scope) = tokio::join!(
            ReadHistory::of(&self.history, conversation, &self.redactor),
            self.sandboxes.reach_of(conversation),
            open_tasks(site, conversation),
            self.memory_scope(message),
        );
        let (read, scope) = (read?, scope?);
        let begins = read.lines.is_empty() && read.summary.is_none();
        let lines = read.lines;
        let mut progress = progress(&lines, message);
        if let TurnProgress::Fresh(text) = &mut progress
            && let Some(words) = self.skill_words(message).await
        {
            *text = words;
        }
        if let TurnProgress::Fresh(text) = &mut progress {
            text.push_str(&self.words_of_skills(message).await?);
        }
        let mut media = Vec::new();
        // Only for a turn that is new: one that goes on has in its history what came along, and the
        // platform may not hand it out a second time.
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
        let mut facts = site.facts.clone();
        facts.chat = platform.to_string();
        if facts.boundary == Boundary::Sealed {
            facts.network = network(reach);
        }
        facts.files = self
            .outbox
            .chat(&message.said().account)
            .is_some_and(|chat| chat.capabilities().files_out.is_some());
        facts.tasks = tasks;
        let remembered = self.remembered(message, &scope, begins).await?;
        facts.character = remembered.character;
        facts.remembered = remembered.paragraphs;
        facts.project_notes &= !remembered.has_notes;
        // Also makes this person the one who is asked about hosts that processes reach for, so it
        // is done for each turn.
        let asker = self.approvals.commands(message);
        let is_job = message.is_scheduled();
        let withheld: &[&str] = match (is_job, &scope.person) {
            (false, _) => &[],
            (true, Some(_)) => &NOT_IN_JOBS,
            (true, None) => &NOT_IN_JOBS_FOR_OTHERS,
        };
        Ok(TurnSession {
            gateway: self,
            message,
            site,
            // Names of hosts and folders in it are from the configuration.
            system: self.redactor.redact(prompt::system(&facts)),
            media,
            summary: read.summary,
            history,
            unread: read.left_out > 0,
            was_begun: message.was_begun(),
            journal,
            own: ConversationSandbox::of(&self.sandboxes, message)
                .paying(self.service_meter(message))
                // Nobody sits before a job and waits for its questions.
                .asking(self.person_in_chat(message, control).filter(|_| !is_job)),
            personal: PersonalTools::new(self.memory_parts(), scope, speaker(message)),
            withheld,
            keeper: self.workspace_keeper(message).filter(|_| !is_job),
            meter: self.meter(message).without(asker.waits().clone()),
            row: message.row(),
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
        // Those that the history has are ended by now.
        end_answers(&self.inbox, control, end, &self.clock).await;
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
        answerer: Answerer<'_>,
        control: &TurnControl,
        observer: &dyn TurnObserver,
    ) -> Result<String, TurnError> {
        let input = match &self.progress {
            TurnProgress::Answered(text) => return Ok(text.clone()),
            TurnProgress::Fresh(text) => TurnInput::Says(text),
            TurnProgress::Resumed => TurnInput::Resume,
        };
        let own_agent = match &answerer {
            Answerer::Own(agent) => Some(*agent),
            Answerer::Sealed(..) | Answerer::Nobody(_) => None,
        };
        let supervisor = TurnSupervisor::new(self.gateway, self.message, &self.asker);
        let (sealed, absent);
        let agent: &dyn TurnTaker = match answerer {
            Answerer::Own(agent) => agent,
            Answerer::Sealed(program, chosen) => {
                sealed = self.sealed((*program, chosen), &supervisor);
                self.keep_before(&sealed.program.name, control).await?;
                &sealed
            }
            Answerer::Nobody(words) => {
                absent = AbsentAgent {
                    words,
                    redactor: self.gateway.redactor.clone(),
                };
                &absent
            }
        };
        let delegate = own_agent.map(|agent| DelegateTool::new(self, agent, observer));
        let delegate = delegate.as_ref().map(|tool| tool as &dyn OwnTool);
        let cronjob = CronjobTool {
            gateway: self.gateway,
            message: self.message,
        };
        // A job that makes jobs would never end.
        let cronjob = (!self.message.is_scheduled()).then_some(&cronjob as &dyn OwnTool);
        let toolbox = self.site.kit.toolbox(&self.own, &self.asker);
        let toolbox = toolbox.showing_files(own_agent.is_none_or(Agent::takes_files));
        let tools = AgentTools::new(toolbox, &self.own)
            .with_own_tools(delegate.into_iter().chain(cronjob))
            .with_waits(self.asker.waits().clone())
            .traced_in(&self.gateway.traces, self.row)
            .keeping(self.keeper.as_ref())
            .keeping_tasks(self.gateway.store.todo_lists(), self.row)
            .seeing(VisionModel::of(self.gateway, &self.meter))
            .shown_in(&self.gateway.outputs)
            .with_personal(&self.personal)
            .without(self.withheld);
        let notices = match agent.calls_tools() {
            true => tools.prepare(&control.stop).await,
            false => Vec::new(),
        };
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

    fn sealed<'b>(
        &'b self,
        (program, chosen): (AgentProgram, AgentSettings),
        supervisor: &'b TurnSupervisor<'b>,
    ) -> SealedAgent<'b> {
        let agents = &self.gateway.agents;
        SealedAgent {
            program,
            agents: &self.gateway.running_agents,
            sessions: self.gateway.store.agent_sessions(),
            tools: self.site.kit.toolbox(&self.own, &self.asker),
            supervisor,
            workspace: self.site.facts.workspace.clone(),
            redactor: &self.gateway.redactor,
            shows_thoughts: agents.shows_thoughts,
            bounds: agents.bounds,
            chosen,
        }
    }

    /// Nobody knows what somebody else's agent is going to write, so the workspace is kept before it works.
    async fn keep_before(&self, agent: &str, control: &TurnControl) -> Result<(), JournalError> {
        let call = ToolCall {
            // Its own for each attempt at a message.
            id: CallId::new(format!("agent-{}", RunId::random())),
            name: agent_tool(agent),
            arguments: String::new(),
        };
        self.journal.tool_about_to_run(&call).await?;
        if let Some(keeper) = &self.keeper {
            keeper
                .before_call(&call.name, &self.own, &control.stop)
                .await;
        }
        Ok(())
    }
}

/// What the conversation's list of tasks has to be done still.
async fn open_tasks(site: &PlatformTools, conversation: &ConversationKey) -> Option<String> {
    let lists = site.kit.todo.as_ref()?;
    lists.open_items(conversation).await
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

/// Who is noted in the record.
fn speaker(message: &AcceptedMessage) -> String {
    let said = message.said();
    format!("{}:{}", said.platform().name(), said.sender.id)
}

fn progress(lines: &[HistoryLine], message: &AcceptedMessage) -> TurnProgress {
    let row = message.row().0;
    let mut own = lines.iter().filter(|line| line.row == row);
    match own.next_back().map(|line| &line.message) {
        None => TurnProgress::Fresh(message.for_model()),
        Some(last @ Message::Assistant { .. }) if last.tool_calls().next().is_none() => {
            TurnProgress::Answered(answers(lines, row).unwrap_or_else(|| last.text().into_owned()))
        }
        Some(_) => TurnProgress::Resumed,
    }
}

/// What a turn that has ended is to tell: several answers, where words of another message were said into it and
/// answered apart.
fn answers(lines: &[HistoryLine], row: i64) -> Option<String> {
    let mut told = Vec::new();
    for line in lines.iter().rev() {
        let is_own = line.row == row;
        match &line.message {
            answer @ Message::Assistant { .. }
                if is_own && answer.tool_calls().next().is_none() =>
            {
                told.push(answer.text());
            }
            Message::User { .. } if !is_own => {}
            _ => break,
        }
    }
    told.reverse();
    (!told.is_empty()).then(|| told.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_one_turn_are_told_together_after_a_crash() {
        let line = |row, message| HistoryLine { row, message };
        let mut lines = vec![
            line(1, Message::user("before")),
            line(1, Message::assistant("Long ago.")),
            line(2, Message::user("one?")),
            line(2, Message::assistant("One.")),
            line(3, Message::user("and two?")),
        ];
        assert_eq!(answers(&lines, 2).as_deref(), Some("One."));
        lines.push(line(2, Message::assistant("Two.")));
        assert_eq!(answers(&lines, 2).as_deref(), Some("One.\n\nTwo."));
        assert_eq!(answers(&lines, 1), None);
    }
}
