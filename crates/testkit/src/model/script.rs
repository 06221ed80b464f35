//! The model within the process.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures::stream::{self, StreamExt};
use hermetic_agent::{
    CallFragment, Deltas, FinishReason, LanguageModel, Message, ModelError, ModelRequest,
    ReplyDelta,
};
use tokio_util::sync::CancellationToken;

/// Answers each question with the next line of its script. Questions beyond it are refused.
#[derive(Debug, Default)]
pub struct ScriptedModel {
    lines: Mutex<VecDeque<Line>>,
    asked: Mutex<Vec<Vec<Message>>>,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Line {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Give(ReplyDelta),
    Fail(ModelError),
    /// Nothing more until the turn is stopped.
    Stall,
}

impl ScriptedModel {
    pub fn new(lines: impl IntoIterator<Item = Line>) -> Self {
        Self {
            lines: Mutex::new(lines.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    /// The messages of each question so far.
    pub fn asked(&self) -> Vec<Vec<Message>> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Line {
    pub fn says(text: &str) -> Self {
        // In two pieces, so that nobody relies on one.
        let middle = (text.len() / 2..text.len())
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        let (first, second) = text.split_at(middle);
        Self::deltas([
            ReplyDelta::Text(first.to_owned()),
            ReplyDelta::Text(second.to_owned()),
        ])
    }

    /// Calls tools, given by name and arguments.
    pub fn calls(calls: &[(&str, &str)]) -> Self {
        Self::deltas(calls.iter().enumerate().map(|(index, (name, arguments))| {
            ReplyDelta::ToolCall(CallFragment {
                index,
                id: None,
                name: Some((*name).to_owned()),
                arguments: (*arguments).to_owned(),
            })
        }))
    }

    /// These pieces and a proper end.
    pub fn deltas(deltas: impl IntoIterator<Item = ReplyDelta>) -> Self {
        let mut steps: Vec<_> = deltas.into_iter().map(Step::Give).collect();
        steps.push(Step::Give(ReplyDelta::Finish(FinishReason::Done)));
        Self { steps }
    }

    pub fn fails(error: ModelError) -> Self {
        Self {
            steps: vec![Step::Fail(error)],
        }
    }

    /// Says this and then nothing, until stopped.
    pub fn stalls_after(text: &str) -> Self {
        Self {
            steps: vec![Step::Give(ReplyDelta::Text(text.to_owned())), Step::Stall],
        }
    }

    /// Says this and then fails.
    pub fn breaks_after(text: &str, error: ModelError) -> Self {
        Self {
            steps: vec![
                Step::Give(ReplyDelta::Text(text.to_owned())),
                Step::Fail(error),
            ],
        }
    }
}

impl LanguageModel for ScriptedModel {
    fn name(&self) -> &str {
        "scripted"
    }

    fn complete<'a>(&'a self, ask: ModelRequest<'a>, stop: CancellationToken) -> Deltas<'a> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(ask.messages.to_vec());
        let line = self
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front();
        let line = line.unwrap_or_else(|| {
            Line::fails(ModelError::Refused {
                model: "scripted".to_owned(),
                status: 400,
                detail: "the script is over".to_owned(),
            })
        });
        stream::iter(line.steps)
            .then(move |step| {
                let stop = stop.clone();
                async move {
                    match step {
                        Step::Give(delta) => Ok(delta),
                        Step::Fail(error) => Err(error),
                        Step::Stall => {
                            stop.cancelled().await;
                            Err(ModelError::Stopped)
                        }
                    }
                }
            })
            .boxed()
    }
}
