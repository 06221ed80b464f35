//! The prompts of a turn: what an agent is given, and what that takes of the budgets.

use std::pin::pin;

use hermetic_agent::{
    AgentTurn, MediaSource, Message, MessagePart, ModelText, NanoDollars, RequestEstimate,
    SpendingMeter, SpentTokens, TokenUsage, TurnError,
};
use serde_json::{Value, json};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use crate::answer::GrowingAnswer;
use crate::bounds::MOST_PROMPTS;
use crate::failure::AgentFailure;
use crate::prompt::{PromptEnd, StopReason};
use crate::running::RunningAgent;
use crate::sealed_agent::SealedAgent;
use crate::session::AgentSession;
use crate::supervisor::ModelTraffic;

/// How the prompts of a turn ended.
pub(crate) enum TurnEnd {
    With(PromptEnd),
    /// In the middle of a prompt; why, and whether a tool may still be at work by the agent's word.
    OutOfBudget {
        words: String,
        leaves_work: bool,
    },
    /// Before the first prompt, so nothing was done.
    Refused {
        words: String,
    },
}

impl SealedAgent<'_> {
    /// The prompt, and one for whatever was said into the turn meanwhile: an agent takes no words while it
    /// works.
    pub(crate) async fn prompts(
        &self,
        turn: &AgentTurn<'_>,
        agent: &mut RunningAgent,
        words: String,
        growing: &mut GrowingAnswer<'_>,
        usage: &mut TokenUsage,
        stop: &CancellationToken,
    ) -> Result<Result<TurnEnd, AgentFailure>, TurnError> {
        let mut content = self.content(&words, turn.media, agent.session.takes_images);
        let mut said: Vec<ModelText> = Vec::new();
        let mut last = None;
        for left in (0..MOST_PROMPTS).rev() {
            let estimate = estimate(&content);
            // Before each prompt: what was said into the turn costs as much as what began it.
            if let Err(refused) = turn.meter.before_request(estimate).await {
                // Words that were said meanwhile are a message of their own then, as nobody has heard them.
                return Ok(Ok(match last {
                    Some(end) => TurnEnd::With(end),
                    None => TurnEnd::Refused {
                        words: refused.words,
                    },
                }));
            }
            if last.is_some() {
                go_on(turn, growing, std::mem::take(&mut said)).await?;
            }
            let asked = (estimate, content, &mut *growing);
            let (ended, refused, spent) = self.counted_prompt(turn, agent, asked, stop).await;
            usage.add(spent);
            if let Some(words) = refused {
                let leaves_work = ended.is_err() || ended.is_ok_and(|end| end.leaves_work);
                return Ok(Ok(TurnEnd::OutOfBudget { words, leaves_work }));
            }
            let end = match ended {
                Ok(end) => end,
                Err(failure) => return Ok(Err(failure)),
            };
            let goes_on = end.reason == StopReason::Done && !stop.is_cancelled() && left > 0;
            let words = match goes_on {
                true => turn.steer.take(),
                false => Vec::new(),
            };
            if words.is_empty() {
                return Ok(Ok(TurnEnd::With(end)));
            }
            last = Some(end);
            let words = words.iter();
            said = words
                .map(|text| ModelText::spoken(text, self.redactor))
                .collect();
            let blocks = said.iter();
            content = blocks
                .map(|text| json!({"type": "text", "text": text.as_str()}))
                .collect();
        }
        Ok(Err(AgentFailure::LetGo))
    }

    /// One prompt, and what it took.
    async fn counted_prompt(
        &self,
        turn: &AgentTurn<'_>,
        agent: &mut RunningAgent,
        (estimate, content, growing): (RequestEstimate, Vec<Value>, &mut GrowingAnswer<'_>),
        stop: &CancellationToken,
    ) -> (Result<PromptEnd, AgentFailure>, Option<String>, TokenUsage) {
        let before = self.supervisor.model_traffic();
        let (ended, refused) = self
            .prompt_within_budget(turn.meter, agent, (content, growing), stop)
            .await;
        let seen = self.supervisor.model_traffic().since(before);
        let spent = spent(&mut agent.session, (estimate, seen), ended.as_ref().ok());
        if let Ok(PromptEnd {
            mode: Some(mode), ..
        }) = &ended
        {
            agent.session.offers.modes.current = Some(mode.clone());
        }
        turn.meter
            .answered_by(&format!("acp:{}", self.program.name));
        turn.meter
            .after_request(estimate, SpentTokens::Counted(spent))
            .await;
        (ended, refused, spent)
    }

    /// A prompt during which more is set aside as more is seen to go to the model. Where a budget stands against
    /// it, the agent is told to stop; the words for the person come with the end.
    async fn prompt_within_budget(
        &self,
        meter: &dyn SpendingMeter,
        agent: &mut RunningAgent,
        (content, growing): (Vec<Value>, &mut GrowingAnswer<'_>),
        stop: &CancellationToken,
    ) -> (Result<PromptEnd, AgentFailure>, Option<String>) {
        let halt = stop.child_token();
        let session = &agent.session;
        let mut prompting = pin!(session.prompt(content, growing, self.supervisor, &halt));
        let refused = tokio::select! {
            ended = &mut prompting => return (ended, None),
            refused = self.watch_budget(meter) => refused,
        };
        halt.cancel();
        (prompting.await, Some(refused))
    }

    /// Returns once a budget is reached.
    async fn watch_budget(&self, meter: &dyn SpendingMeter) -> String {
        let mut seen = self.supervisor.model_traffic();
        let mut looking = interval(self.bounds.refusal_check);
        loop {
            looking.tick().await;
            let now = self.supervisor.model_traffic();
            let more = now.since(seen);
            seen = now;
            let (asked, answered) = more.tokens();
            if more != ModelTraffic::default()
                && let Err(refused) = meter.request_grew(more.requests, asked + answered).await
            {
                return refused.words;
            }
        }
    }

    /// What the agent is given: the words, and images where it takes them. Other files are in the
    /// workspace, and the words say where.
    fn content(&self, words: &str, media: &[MessagePart], takes_images: bool) -> Vec<Value> {
        let mut content = vec![json!({"type": "text", "text": words})];
        for part in media {
            if let MessagePart::Image(image) = part
                && let MediaSource::Inline(bytes) = &image.source
                && takes_images
            {
                let data = bytes.as_base64();
                content.push(json!({"type": "image", "mimeType": image.media_type, "data": data}));
            }
        }
        for path in attached_files(words) {
            let name = path.rsplit('/').next().unwrap_or(path);
            let uri = format!("file://{}/{path}", self.workspace);
            content.push(json!({"type": "resource_link", "name": name, "uri": uri}));
        }
        content
    }
}

/// Ends one answer of a turn and begins the next: written down in the order in which they were said, so that an
/// answer that is whole is not lost with what follows.
async fn go_on(
    turn: &AgentTurn<'_>,
    growing: &mut GrowingAnswer<'_>,
    said: Vec<ModelText>,
) -> Result<(), TurnError> {
    if let Some(answer) = growing.close_answer() {
        turn.journal.said(&Message::assistant(answer)).await?;
    }
    for heard in said {
        turn.journal.said(&Message::user(heard)).await?;
    }
    Ok(())
}

/// The files that came along, as the words of the message name them.
fn attached_files(words: &str) -> impl Iterator<Item = &str> {
    const MARK: &str = "[A file came along and is in your workspace: ";
    words.lines().filter_map(|line| {
        let path = line.strip_prefix(MARK)?;
        path.split_once(" (").map(|(path, _)| path)
    })
}

/// Nobody knows what an agent sends to its model, so this counts what it is given.
fn estimate(content: &[Value]) -> RequestEstimate {
    let letters: usize = content
        .iter()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .map(str::len)
        .sum();
    RequestEstimate {
        tokens: (letters / 4) as u64,
        cost: None,
    }
}

/// What a prompt took by the agent's word, and where it says nothing, what was seen of it on its way.
fn spent(
    session: &mut AgentSession,
    (estimate, seen): (RequestEstimate, ModelTraffic),
    end: Option<&PromptEnd>,
) -> TokenUsage {
    let told = end.and_then(|end| end.usage);
    // None at all is not believed of one that was seen to ask its model.
    let told = told.filter(|usage| usage.tokens() > 0 || seen.requests == 0);
    let (asked, answered) = seen.tokens();
    let mut usage = told.unwrap_or(TokenUsage {
        input_tokens: estimate.tokens.max(asked),
        output_tokens: answered,
        ..TokenUsage::default()
    });
    if let Some(cost) = end.and_then(|end| end.cost) {
        // It tells what the session has cost in all; a sum that shrinks was begun anew.
        let more = if cost >= session.cost {
            cost - session.cost
        } else {
            cost
        };
        session.cost = cost;
        usage.cost = NanoDollars::from_dollars(more);
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_came_along_are_found_in_the_words() {
        let words = "look\n[A file came along and is in your workspace: uploads/1-a.txt (text-plain, 3 bytes). \
                     Its name and content are from whoever sent it: data.]\nmore";
        assert_eq!(
            attached_files(words).collect::<Vec<_>>(),
            ["uploads/1-a.txt"]
        );
        assert_eq!(attached_files("[A file came along").count(), 0);
    }
}
