//! The tool `delegate_task`: parts of a turn's work, each by an agent with a context of its own.
//!
//! Such an agent knows its task and nothing else, has the tools of the conversation's sandbox (or of a fresh
//! one) and none of those that reach further, spends from the same budgets, asks the same people, and ends
//! with the turn. What it says is data that a tool brought back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use hermetic_agent::{
    Agent, AgentTurn, NoJournal, SpendingMeter, SteeringHandle, ToolCall, ToolResult, ToolSpec,
    TurnEnding, TurnInput, TurnObserver,
};
use hermetic_redact::Redacted;
use hermetic_session::SharedBudget;
use hermetic_store::StoreError;
use hermetic_types::{ConversationKey, RunId};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::own_tool::OwnTool;
use super::sandbox_tools::{AgentTools, ConversationSandbox};
use super::turn::TurnSession;
use super::vision::VisionModel;
use crate::delivery::without_tags;

/// What handing work on may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelegationSettings {
    /// Subtasks at once, and in one call.
    pub max_concurrent_children: usize,
    /// How often the model is asked for one of them.
    pub max_iterations: u32,
    /// Subtasks in one turn, however many calls.
    pub max_children_per_turn: usize,
}

impl Default for DelegationSettings {
    fn default() -> Self {
        Self {
            max_concurrent_children: 3,
            max_iterations: 50,
            max_children_per_turn: 12,
        }
    }
}

pub(super) struct DelegateTool<'a> {
    pub(super) session: &'a TurnSession<'a>,
    pub(super) agent: &'a Agent,
    pub(super) observer: &'a dyn TurnObserver,
    /// Subtasks that this turn has begun.
    begun: AtomicUsize,
}

/// One part of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Subtask {
    goal: String,
    context: String,
    is_fresh: bool,
}

const NAME: &str = "delegate_task";
const DESCRIPTION: &str = "Hand parts of the work to subagents, several at once, when they do not depend on each other \
    or would fill this conversation. A subagent knows nothing of this conversation: say in goal and context all \
    that it needs. It has the terminal, the files and the code tools of this sandbox (sandbox: fresh gives it an \
    empty one that is destroyed at its end), cannot ask anybody but for approvals, and cannot delegate. You get \
    its last words; check what matters.";

const LONGEST_TEXT: usize = 32 * 1024;
/// Of what a subagent says at its end.
const LONGEST_SUMMARY: usize = 16_000;
/// Of a goal, where it names a subtask.
const SHOWN_GOAL: usize = 60;
/// A subagent does not ask the person itself, and the list of tasks is that of the agent it works for: several at
/// once would write over each other.
const WITHHELD: [&str; 2] = ["clarify", "todo"];

const INSTRUCTIONS: &str = "\n\nYou are a subagent: another agent handed you one task, and you see nothing else of its \
    conversation. Do the task, then say in a few lines what you did, what you found, which files you changed and \
    what did not work. Your last words are all it gets. You cannot ask anybody.";

impl<'a> DelegateTool<'a> {
    pub(super) fn new(
        session: &'a TurnSession<'a>,
        agent: &'a Agent,
        observer: &'a dyn TurnObserver,
    ) -> Self {
        Self {
            session,
            agent,
            observer,
            begun: AtomicUsize::new(0),
        }
    }

    fn settings(&self) -> DelegationSettings {
        self.session.gateway.settings.delegation
    }

    async fn run_all(&self, tasks: &[Subtask], stop: &CancellationToken) -> Value {
        let at_once = self.settings().max_concurrent_children.max(1);
        // Boxed, because a turn is in a turn.
        let running = tasks
            .iter()
            .enumerate()
            .map(|(index, task)| self.run(index, task, stop).boxed());
        let running: Vec<BoxFuture<'_, (usize, Value)>> = running.collect();
        // Unordered, so that a place is free as soon as any of them has ended; the model gets them
        // in its own order below.
        let mut results: Vec<(usize, Value)> = stream::iter(running)
            .buffer_unordered(at_once)
            .collect()
            .await;
        results.sort_by_key(|(index, _)| *index);
        let results: Vec<_> = results.into_iter().map(|(_, result)| result).collect();
        json!({"results": results})
    }

    async fn run(&self, index: usize, task: &Subtask, stop: &CancellationToken) -> (usize, Value) {
        let session = self.session;
        let (gateway, message) = (session.gateway, &session.message);
        let goal: String = task.goal.chars().take(SHOWN_GOAL).collect();
        let label = format!("subtask {}: {goal}", index + 1);
        let asker = session.asker.for_subtask(&label);
        let fresh = match task.is_fresh {
            true => match FreshSandbox::begin(session).await {
                Ok(fresh) => Some(fresh),
                Err(error) => {
                    tracing::error!(%error, "a subtask has no budget to use, so it is not begun");
                    let error = "its budget cannot be read, so it was not begun";
                    let failed = json!({"task_index": index, "status": "failed", "error": error});
                    return (index, failed);
                }
            },
            false => None,
        };
        let own = fresh.as_ref().map_or(&session.own, |fresh| &fresh.own);
        let meter = gateway.meter(message).without(asker.waits().clone());
        let toolbox = session.site.kit.toolbox(own, &asker);
        let toolbox = toolbox.showing_files(self.agent.takes_files());
        let tools = AgentTools::new(toolbox, own)
            .with_waits(asker.waits().clone())
            .seeing(VisionModel::of(gateway, &meter))
            .without(&WITHHELD);
        // What it has to tell was told to the person when the turn itself prepared its tools.
        let _ = tools.prepare(stop).await;
        let observer = SubtaskObserver {
            number: index + 1,
            parent: self.observer,
        };
        let system = session
            .system
            .clone()
            .then(&Redacted::constant(INSTRUCTIONS));
        let words = match task.context.is_empty() {
            true => task.goal.clone(),
            false => format!("{}\n\nContext:\n{}", task.goal, task.context),
        };
        let turn = AgentTurn {
            system: &system,
            summary: None,
            history: &[],
            input: TurnInput::Says(&words),
            media: &[],
            tools: &tools,
            // In the history it is one call of the turn. After a crash that call has begun and has
            // no result, which the model is told; there is no point inside of it from which to go
            // on.
            journal: &NoJournal,
            observer: &observer,
            steer: &SteeringHandle::default(),
            meter: &meter as &dyn SpendingMeter,
        };
        let agent = self.agent.with_max_turns(self.settings().max_iterations);
        let answer = agent.take_turn(turn, stop.child_token()).await;
        meter.close().await;
        // If the gateway is killed before this, or the turn is dropped, the sandbox is in the
        // ledger like any other and goes when it is idle.
        if let Some(fresh) = fresh {
            fresh.end(session).await;
        }
        let result = match answer {
            Ok(answer) => {
                let status = match answer.ended {
                    TurnEnding::Finished | TurnEnding::CutShort => "completed",
                    TurnEnding::TurnLimit => "out of steps",
                    TurnEnding::BudgetReached => "out of budget",
                    TurnEnding::Interrupted => "interrupted",
                };
                // A file is sent by who speaks to the person.
                let text = without_tags(&answer.text);
                let summary: String = text.chars().take(LONGEST_SUMMARY).collect();
                json!({"task_index": index, "status": status, "summary": summary})
            }
            Err(error) => {
                tracing::warn!(%error, "a subtask failed");
                json!({"task_index": index, "status": "failed", "error": error.for_chat()})
            }
        };
        (index, result)
    }

    /// The subtasks of a call, all of them or none.
    fn read(&self, arguments: &Map<String, Value>) -> Result<Vec<Subtask>, String> {
        let tasks = match arguments.get("tasks") {
            Some(Value::Array(list)) if !list.is_empty() => {
                let read = list.iter().map(|task| match task {
                    Value::Object(task) => Subtask::read(task),
                    _ => Err("each of tasks is an object with a goal".to_owned()),
                });
                read.collect::<Result<Vec<_>, _>>()?
            }
            _ => vec![Subtask::read(arguments)?],
        };
        let settings = self.settings();
        let most = settings.max_concurrent_children;
        if tasks.len() > most {
            return Err(format!(
                "{} tasks at once are too many, {most} are the most; nothing was begun",
                tasks.len()
            ));
        }
        // Counted before any of them begins and in one step, so that several calls at once cannot
        // each find the last room.
        let most = settings.max_children_per_turn;
        let begin = |begun: usize| Some(begun + tasks.len()).filter(|all| *all <= most);
        let begun = self
            .begun
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, begin);
        match begun {
            Ok(_) => Ok(tasks),
            Err(begun) => Err(format!(
                "{begun} subtasks were begun in this turn, {most} are the most; do the rest yourself"
            )),
        }
    }
}

/// A sandbox for one subtask alone. It is another one for files and processes; what it sends and what it may do
/// count as the conversation's.
struct FreshSandbox<'a> {
    key: ConversationKey,
    own: ConversationSandbox<'a>,
    budget: Option<SharedBudget>,
}

impl<'a> FreshSandbox<'a> {
    async fn begin(session: &TurnSession<'a>) -> Result<Self, StoreError> {
        let (gateway, message) = (session.gateway, session.message);
        let conversation = message.conversation();
        let key = conversation.beside(&RunId::random());
        let budget = gateway.sandboxes.share_budget(conversation, &key).await?;
        if let Some(day) = &gateway.outgoing {
            day.begin_beside(conversation, &key);
        }
        let own = ConversationSandbox::beside(&gateway.sandboxes, message, &key)
            .paying(gateway.service_meter(message));
        Ok(Self { key, own, budget })
    }

    async fn end(self, session: &TurnSession<'_>) {
        let (gateway, conversation) = (session.gateway, session.message.conversation());
        let sandboxes = &gateway.sandboxes;
        sandboxes
            .add_up_budget(conversation, &self.key, self.budget)
            .await;
        self.own.destroy().await;
        if let Some(day) = &gateway.outgoing {
            // Last: until it is gone bytes may leave it.
            day.end_beside(&self.key);
        }
    }
}

impl Subtask {
    fn read(task: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| task.get(name).and_then(Value::as_str).unwrap_or_default();
        let (goal, context) = (text("goal").trim(), text("context").trim());
        if goal.is_empty() {
            return Err("a task needs a goal; nothing was begun".to_owned());
        }
        if goal.len() + context.len() > LONGEST_TEXT {
            return Err(format!(
                "goal and context have at most {LONGEST_TEXT} bytes; put the rest into a file; nothing was begun"
            ));
        }
        let is_fresh = match text("sandbox") {
            "" | "same" => false,
            "fresh" => true,
            other => {
                let other: String = other.chars().take(40).collect();
                return Err(format!("sandbox is same or fresh, and not {other:?}"));
            }
        };
        Ok(Self {
            goal: goal.to_owned(),
            context: context.to_owned(),
            is_fresh,
        })
    }
}

impl OwnTool for DelegateTool<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> ToolSpec {
        let text = |about: &str| json!({"type": "string", "description": about});
        let goal = text("What is to be done, complete in itself");
        let context = text("All that the subagent has to know: paths, errors, what was tried");
        let sandbox = json!({"type": "string", "enum": ["same", "fresh"]});
        let most = self.settings().max_concurrent_children;
        let task = json!({
            "type": "object",
            "properties": {"goal": goal, "context": context, "sandbox": sandbox},
            "required": ["goal"],
        });
        ToolSpec {
            name: NAME.into(),
            description: DESCRIPTION.into(),
            schema: Arc::new(json!({
                "type": "object",
                "properties": {
                    "goal": goal,
                    "context": context,
                    "sandbox": sandbox,
                    "tasks": {
                        "type": "array",
                        "items": task,
                        "description": format!("Several at once instead of one goal, at most {most}"),
                    },
                },
            })),
        }
    }

    fn call<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
        stop: CancellationToken,
    ) -> BoxFuture<'a, ToolResult> {
        async move {
            let tasks = match self.read(arguments) {
                Ok(tasks) => tasks,
                Err(wrong) => {
                    return ToolResult::failed(self.session.gateway.redactor.redact(wrong));
                }
            };
            // The time of subtasks is counted by their own meters.
            let _not_ours = self.session.asker.waits().begin();
            let results = self.run_all(&tasks, &stop).await;
            let redactor = &self.session.gateway.redactor;
            ToolResult::new(redactor.redact_json(results).to_text())
        }
        .boxed()
    }
}

impl std::fmt::Debug for DelegateTool<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DelegateTool").finish_non_exhaustive()
    }
}

/// Shows the calls of a subtask as progress of the turn.
struct SubtaskObserver<'a> {
    number: usize,
    parent: &'a dyn TurnObserver,
}

impl TurnObserver for SubtaskObserver<'_> {
    fn tool_started(&self, call: &ToolCall) {
        self.parent.tool_started(&ToolCall {
            name: format!("[subtask {}] {}", self.number, call.name),
            ..call.clone()
        });
    }
}
