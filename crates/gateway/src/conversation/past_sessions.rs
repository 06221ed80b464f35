//! A conversation that starts afresh, and what was said before: `/new`, `/sessions`, `/resume`.
//!
//! Sessions belong to their conversation. Whoever speaks in it may list and resume them, so a group never sees
//! those of a private chat, and nobody sees another person's.

use hermetic_agent::Message;
use hermetic_redact::Redacted;
use hermetic_store::{StoreError, ViewBounds};
use hermetic_types::{ConversationKey, Timestamp};
use jiff::tz::TimeZone;

use super::CommandError;
use super::journal::HistoryLine;
use crate::Gateway;
use crate::message::AcceptedMessage;

/// Sessions that are listed at once.
const MOST_LISTED: usize = 10;
const LONGEST_TITLE: usize = 60;
const UNKNOWN_SESSION: &str =
    "This conversation has no such session. /sessions lists those it has.";
/// A title is looked for in so much of what was said.
const TITLE_BOUNDS: ViewBounds = ViewBounds {
    lines: 4000,
    characters: 8 << 20,
};

impl Gateway {
    /// Starts afresh: what was said becomes a session, and what was allowed is forgotten.
    pub(crate) async fn begin_anew(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(), StoreError> {
        // First: whatever breaks off behind this, an old yes never counts in a new session.
        self.approvals.questions.revoke(conversation).await?;
        self.put_away(conversation).await
    }

    /// What was said so far becomes a session.
    pub(crate) async fn put_away(&self, conversation: &ConversationKey) -> Result<(), StoreError> {
        let (name, title) = self.name_session(conversation).await?;
        let sessions = self.store.sessions();
        sessions.begin_anew(conversation, &name, &title).await?;
        self.forget_agents(conversation).await
    }

    pub(crate) async fn sessions(
        &self,
        message: &AcceptedMessage,
    ) -> Result<Redacted<String>, StoreError> {
        let sessions = self.store.sessions().of(message.conversation()).await?;
        if sessions.is_empty() {
            return Ok(Redacted::constant(
                "There is nothing from before in this conversation. /new starts it afresh and keeps what was \
                 said.",
            ));
        }
        let mut text = "From before in this conversation, the latest first:\n".to_owned();
        for session in sessions.iter().take(MOST_LISTED) {
            text.push_str(&format!(
                "\n/resume {} - {} ({} lines, until {})",
                session.name,
                session.title,
                session.lines,
                shown(session.ended_at)
            ));
        }
        if sessions.len() > MOST_LISTED {
            text.push_str(&format!(
                "\nand {} older ones",
                sessions.len() - MOST_LISTED
            ));
        }
        Ok(self.redactor.redact(text))
    }

    /// Goes on with a session of this conversation. What was said since becomes one itself.
    pub(crate) async fn resume_session(
        &self,
        message: &AcceptedMessage,
        wanted: &str,
    ) -> Result<Redacted<String>, CommandError> {
        let conversation = message.conversation();
        if wanted.is_empty() {
            return Ok(self.sessions(message).await?);
        }
        let (name, title) = self.name_session(conversation).await?;
        let sessions = self.store.sessions();
        let known = sessions.of(conversation).await?;
        if !known.iter().any(|session| session.name == wanted) {
            return Ok(Redacted::constant(UNKNOWN_SESSION));
        }
        // What was allowed was allowed for what was said since. Forgotten first: whatever breaks off behind
        // this, it does not count in the session that is resumed.
        self.approvals.questions.revoke(conversation).await?;
        let resumed = sessions.resume(conversation, wanted, (&name, &title), self.now());
        if !resumed.await? {
            return Ok(Redacted::constant(UNKNOWN_SESSION));
        }
        // An agent of somebody else's has only the one session, which is not this.
        self.forget_agents(conversation).await?;
        Ok(Redacted::constant(
            "I have it before me again. What was said since is kept, too: /sessions lists it. Files are as they \
             are.",
        ))
    }

    /// What a session that ends now is called, and what it was about.
    async fn name_session(
        &self,
        conversation: &ConversationKey,
    ) -> Result<(String, String), StoreError> {
        let lines = self.history.lines(conversation, TITLE_BOUNDS).await?;
        // Numbers of lines are never given twice while one of them is there.
        let last = lines.last().map_or(0, |line| line.number);
        let seconds = self.now().millis() / 1000;
        let name = format!("{}{}", base36(seconds), base36(last));
        let read = |text: &str| HistoryLine::read(text, &self.redactor);
        let said = lines.iter().filter_map(|line| read(&line.text));
        let mut words = said.filter_map(|line| match line.message {
            Message::User { .. } => Some(line.message.text().into_owned()),
            _ => None,
        });
        Ok((name, title(&words.next().unwrap_or_default())))
    }
}

/// The first line, or the beginning of it.
pub(crate) fn title(words: &str) -> String {
    let line = words.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("without words").trim();
    let mut title: String = line.chars().take(LONGEST_TITLE).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}

fn shown(at: Timestamp) -> String {
    let at = at.calendar().to_zoned(TimeZone::system());
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Digits and small letters, for people who type it.
fn base36(number: i64) -> String {
    let mut rest = number.unsigned_abs();
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(rest % 36).unwrap_or(0);
        digits.extend(char::from_digit(digit, 36));
        rest /= 36;
        if rest == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_and_short() {
        assert_eq!(title("\n  fix the build\nand more"), "fix the build");
        assert_eq!(title(""), "without words");
        let long = title(&"ä".repeat(500));
        assert_eq!(long.chars().count(), LONGEST_TITLE + 1);
    }

    #[test]
    fn names_are_short() {
        assert_eq!(base36(0), "0");
        assert_eq!(base36(35), "z");
        assert_eq!(base36(36), "10");
        assert_eq!(base36(1_794_000_000), "to3n9c");
    }
}
