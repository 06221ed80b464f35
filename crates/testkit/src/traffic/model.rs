//! A model that says back which letters it was shown.

use std::io;

use serde_json::Value;

use super::letters::words;
use crate::model::{Reply, ScriptedServer};

pub(super) async fn start() -> io::Result<ScriptedServer> {
    ScriptedServer::answering(answer).await
}

/// Several letters may come in one question; those before its last answer are history.
fn answer(question: &Value) -> Reply {
    let messages = question["messages"].as_array();
    let messages = messages.map_or(&[][..], Vec::as_slice);
    let answered = messages
        .iter()
        .rposition(|message| message["role"] == "assistant");
    let news = &messages[answered.map_or(0, |at| at + 1)..];
    let news = news.iter().filter(|message| message["role"] == "user");
    let text: String = news.map(|message| message["content"].to_string()).collect();
    let words: Vec<_> = words(&text).collect();
    Reply::streams(&["heard: ", &words.join(" ")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_answered_before_is_not_said_again() {
        let said = |role: &str, text: &str| json!({"role": role, "content": text});
        let question = json!({"messages": [
            said("system", "be kind to w000000"),
            said("user", "note w000001"),
            said("assistant", "heard: w000001"),
            said("user", "note w000002"),
            said("user", "note w000003"),
        ]});
        let expected = Reply::streams(&["heard: ", "w000002 w000003"]);
        assert_eq!(format!("{:?}", answer(&question)), format!("{expected:?}"));
    }
}
