//! One question about one picture, to a model that is not the one that answers.

use futures::stream::StreamExt;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::reply::ModelReply;
use crate::spending::usage_of;
use crate::{
    LanguageModel, MediaPart, Message, MessagePart, ModelError, ModelRequest, ModelText,
    RequestEstimate, SpendingMeter, SpendingRefused, SpentTokens,
};

#[derive(Debug, Error)]
pub enum PictureError {
    #[error("{0}")]
    TooDear(#[from] SpendingRefused),
    #[error("the model for pictures gave no answer")]
    Model(#[from] ModelError),
}

/// What a model says of a picture. Its words are data: a picture may show orders.
pub async fn describe_picture(
    model: &dyn LanguageModel,
    meter: &dyn SpendingMeter,
    picture: MediaPart,
    question: ModelText,
    stop: &CancellationToken,
) -> Result<String, PictureError> {
    let messages = [Message::User {
        parts: vec![
            MessagePart::Text { text: question },
            MessagePart::Image(picture),
        ],
    }];
    let ask = ModelRequest {
        messages: &messages,
        tools: &[],
    };
    let estimate = RequestEstimate::of(ask, model.price());
    meter.before_request(estimate).await?;
    let mut reply = ModelReply::new(usage_of(ask, model.price()), model.price());
    let outcome = read(model, ask, &mut reply, stop).await;
    let spent = match &outcome {
        Err(error) => reply.spent_by_failure(error),
        Ok(()) => SpentTokens::Counted(reply.usage()),
    };
    meter.answered_by(reply.model.as_deref().unwrap_or(model.name()));
    // Before the error is handed on: what was reserved has to be settled whichever way it ended.
    meter.after_request(estimate, spent).await;
    outcome?;
    Ok(reply.text())
}

async fn read(
    model: &dyn LanguageModel,
    ask: ModelRequest<'_>,
    reply: &mut ModelReply,
    stop: &CancellationToken,
) -> Result<(), ModelError> {
    let mut deltas = model.complete(ask, stop.child_token());
    while reply.finish.is_none() {
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(ModelError::Stopped),
            next = deltas.next() => next,
        };
        match next {
            Some(delta) => reply.take(delta?),
            None => {
                let model = model.name().to_owned();
                return Err(ModelError::Cut { model });
            }
        }
    }
    Ok(())
}
