//! Pages of channels' histories.

use std::time::Duration;

use hermetic_types::ChatId;
use serde_json::Value;

use crate::account::SlackAccount;
use crate::pace::RateTier;
use crate::ts::SlackTimestamp;
use crate::wire::SlackCallError;

/// Messages on one page. Slack gives fewer to apps that are distributed and not listed.
const PAGE: &str = "200";

#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelHistory<'a> {
    pub(crate) slack: &'a SlackAccount,
}

#[derive(Debug)]
pub(crate) struct HistoryPage {
    pub(crate) messages: Vec<Value>,
    /// Where the next page begins.
    pub(crate) next: Option<String>,
}

impl ChannelHistory<'_> {
    /// Messages after this one, outside of threads; the newest first.
    pub(crate) async fn after(
        &self,
        channel: &ChatId,
        since: SlackTimestamp,
        cursor: Option<String>,
    ) -> Result<HistoryPage, SlackCallError> {
        let since = since.to_string();
        let params = [
            ("channel", channel.as_str()),
            ("oldest", &since),
            ("limit", PAGE),
        ];
        self.page("conversations.history", &params, cursor).await
    }

    /// Messages up to this one, outside of threads; the newest first.
    pub(crate) async fn before(
        &self,
        channel: &ChatId,
        until: SlackTimestamp,
        cursor: Option<String>,
    ) -> Result<HistoryPage, SlackCallError> {
        let until = until.to_string();
        let params = [
            ("channel", channel.as_str()),
            ("latest", &until),
            ("inclusive", "true"),
            ("limit", PAGE),
        ];
        self.page("conversations.history", &params, cursor).await
    }

    /// What was said in a thread after this.
    pub(crate) async fn replies(
        &self,
        channel: &ChatId,
        thread: SlackTimestamp,
        since: SlackTimestamp,
        cursor: Option<String>,
    ) -> Result<HistoryPage, SlackCallError> {
        let (thread, since) = (thread.to_string(), since.to_string());
        let params = [
            ("channel", channel.as_str()),
            ("ts", &thread),
            ("oldest", &since),
            ("limit", PAGE),
        ];
        self.page("conversations.replies", &params, cursor).await
    }

    /// Some of the channels of these kinds in which the bot is, and where the next of them begin. A page may
    /// hold fewer than it could.
    pub(crate) async fn channels(
        &self,
        kinds: &str,
        cursor: Option<String>,
    ) -> Result<(Vec<ChatId>, Option<String>), SlackCallError> {
        let mut params = vec![
            ("types", kinds),
            ("exclude_archived", "true"),
            ("limit", PAGE),
        ];
        params.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        self.wait().await;
        let answer = self.slack.wire.ask("users.conversations", &params).await?;
        let listed = answer.value["channels"].as_array().into_iter().flatten();
        let ids = listed.filter_map(|channel| ChatId::new(channel["id"].as_str()?).ok());
        Ok((ids.collect(), next_page(&answer.value)))
    }

    async fn page(
        &self,
        method: &str,
        params: &[(&str, &str)],
        cursor: Option<String>,
    ) -> Result<HistoryPage, SlackCallError> {
        let mut params = params.to_vec();
        params.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        self.wait().await;
        let mut answer = self.slack.wire.ask(method, &params).await?;
        let messages = match answer.value["messages"].take() {
            Value::Array(messages) => messages,
            _ => Vec::new(),
        };
        Ok(HistoryPage {
            messages,
            next: next_page(&answer.value),
        })
    }

    async fn wait(&self) {
        // Asked again after each sleep: nothing was taken for us meanwhile, and somebody else may
        // have been faster.
        let mut wait = self.slack.pace.reserve(RateTier::History);
        while wait > Duration::ZERO {
            tokio::time::sleep(wait).await;
            wait = self.slack.pace.reserve(RateTier::History);
        }
    }
}

fn next_page(answer: &Value) -> Option<String> {
    let next = answer["response_metadata"]["next_cursor"].as_str();
    next.filter(|next| !next.is_empty()).map(str::to_owned)
}
