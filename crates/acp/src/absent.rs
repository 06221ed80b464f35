//! An agent that was chosen and cannot answer.

use futures::future::{BoxFuture, FutureExt};
use hermetic_agent::{
    AgentTurn, Message, ModelText, TokenUsage, TurnAnswer, TurnEnding, TurnError, TurnInput,
    TurnTaker,
};
use hermetic_redact::Redactor;
use tokio_util::sync::CancellationToken;

/// Says why nobody answers, in place of an agent. No other agent steps in: whoever chose this one may have
/// had a reason.
#[derive(Clone, Debug)]
pub struct AbsentAgent {
    pub words: String,
    pub redactor: Redactor,
}

impl TurnTaker for AbsentAgent {
    fn calls_tools(&self) -> bool {
        false
    }

    fn take_turn<'a>(
        &'a self,
        turn: AgentTurn<'a>,
        _: CancellationToken,
    ) -> BoxFuture<'a, Result<TurnAnswer, TurnError>> {
        async move {
            if let TurnInput::Says(text) = turn.input {
                let said = ModelText::spoken(text, &self.redactor);
                turn.journal.said(&Message::user(said)).await?;
            }
            let message = Message::assistant(self.words.clone());
            turn.journal.said(&message).await?;
            Ok(TurnAnswer {
                text: self.words.clone(),
                ended: TurnEnding::CutShort,
                messages: vec![message],
                usage: TokenUsage::default(),
                unheard: turn.steer.take(),
                notes: Vec::new(),
            })
        }
        .boxed()
    }
}
