//! What an operator does to a conversation from its page.

use axum::extract::State;
use axum::response::Response;
use hermetic_types::ConversationKey;
use serde::Deserialize;

use crate::acts::Act;
use crate::failure::PageFailure;
use crate::routes::done;
use crate::state::{DashboardState, SharedState};
use crate::words;

/// Whether whoever asks for what cannot be taken back has said that they mean it.
pub(crate) fn confirmed(sure: Option<&str>) -> Result<(), PageFailure> {
    match sure {
        Some("yes") => Ok(()),
        _ => Err(PageFailure::Invalid(
            "This cannot be taken back, so it has to be confirmed: send sure=yes along.".to_owned(),
        )),
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct ConversationForm {
    key: String,
    /// `yes` for what cannot be taken back.
    sure: Option<String>,
}

impl ConversationForm {
    pub(crate) fn conversation(&self) -> ConversationKey {
        ConversationKey::new(self.key.as_str())
    }

    fn page(&self) -> String {
        format!("/conversation?{}", words::query(&[("key", &self.key)]))
    }
}

/// Makes sure that an act has something to act on.
async fn known(state: &DashboardState, key: &ConversationKey) -> Result<(), PageFailure> {
    let said = state.activity.messages(key, None, 1).await?;
    if said.is_empty() && state.ledger.of(key).await?.is_none() {
        return Err(PageFailure::NotFound("There is no such conversation."));
    }
    Ok(())
}

pub(crate) async fn stop(
    State(state): State<SharedState>,
    act: Act<ConversationForm>,
) -> Result<Response, PageFailure> {
    let key = act.form.conversation();
    known(&state, &key).await?;
    act.record(&state, "stop", key.as_str())?;
    state.gateway.stop(&key).await?;
    Ok(done(&act, &act.form.page()))
}

pub(crate) async fn reset(
    State(state): State<SharedState>,
    act: Act<ConversationForm>,
) -> Result<Response, PageFailure> {
    confirmed(act.form.sure.as_deref())?;
    let key = act.form.conversation();
    known(&state, &key).await?;
    act.record(&state, "reset", key.as_str())?;
    state.gateway.reset(&key).await?;
    Ok(done(&act, &act.form.page()))
}

pub(crate) async fn destroy(
    State(state): State<SharedState>,
    act: Act<ConversationForm>,
) -> Result<Response, PageFailure> {
    confirmed(act.form.sure.as_deref())?;
    let key = act.form.conversation();
    known(&state, &key).await?;
    act.record(&state, "destroy", key.as_str())?;
    state.gateway.destroy(&key).await?;
    Ok(done(&act, &act.form.page()))
}
