//! `session_search`: looks back at what was said.
//!
//! What may be found is one [`SearchScope`], which the store keeps. All else here only arranges those lines.

use hermetic_agent::Message;
use hermetic_memory::LookBackQuery;
use hermetic_redact::Redactor;
use hermetic_store::{PastLine, PastLines, PastSession, SearchScope, StoreError, ViewBounds};
use hermetic_types::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::MemoryParts;
use crate::conversation::{HistoryLine, title};

pub(super) const NAME: &str = "session_search";

pub(super) const ABOUT: &str = "Looks back at earlier conversations with this person, or in a group at what was \
    said in it. With query: the sessions that have it, with what was said around it; words are all wanted, OR, \
    NOT, \"phrases\" and beginnings* work. With session_id and around_message_id: more around a message. With \
    session_id alone: the session. With nothing: the latest sessions. It shows what was said, not how things are \
    now.";

/// How far it looks.
const BOUNDS: ViewBounds = ViewBounds {
    lines: 4000,
    characters: 4 << 20,
};
/// Of one message.
const LONGEST_MESSAGE: usize = 1500;
const LONGEST_EXCERPT: usize = 240;
/// Of a session that is read whole: its first and its last messages.
const HEAD: usize = 20;
const TAIL: usize = 10;

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "description": "Sessions at most: 3, up to 10."},
            "sort": {"type": "string", "enum": ["newest", "oldest"]},
            "session_id": {"type": "string", "description": "As an earlier search named it."},
            "around_message_id": {"type": "integer"},
            "window": {"type": "integer", "description": "Messages on each side: 5, up to 20."},
            "role_filter": {"type": "string",
                "description": "Roles between commas: user, assistant, tool; user,assistant if not given."},
        },
        "required": [],
    })
}

pub(super) async fn search(
    parts: &MemoryParts<'_>,
    scope: &SearchScope,
    arguments: &Map<String, Value>,
) -> Result<(Value, bool), StoreError> {
    let found = parts.store.look_back().lines(scope, BOUNDS).await?;
    let (redactor, arguments) = (parts.redactor.clone(), arguments.clone());
    // Reading some megabytes takes its time.
    let answer = tokio::task::spawn_blocking(move || {
        let past = EarlierSessions::read(found, &redactor);
        past.answer(&arguments)
    });
    let failed = |_| Err("what was said cannot be read".to_owned());
    Ok(match answer.await.unwrap_or_else(failed) {
        Ok(json) => (json, false),
        Err(error) => (json!({"success": false, "error": error}), true),
    })
}

/// Earlier sessions, the latest first.
struct EarlierSessions {
    sessions: Vec<SearchedSession>,
    left_out: bool,
}

struct SearchedSession {
    id: String,
    title: String,
    source: String,
    /// In the order they were said.
    said: Vec<SaidLine>,
}

struct SaidLine {
    number: i64,
    role: &'static str,
    text: String,
    at: Timestamp,
}

impl EarlierSessions {
    fn read(found: PastLines, redactor: &Redactor) -> Self {
        let mut sessions: Vec<SearchedSession> = Vec::new();
        for line in found.lines {
            let Some(id) = session_id(&line) else {
                // The model has what is at hand before it.
                continue;
            };
            let Some(read) = HistoryLine::read(&line.text, redactor) else {
                continue;
            };
            let said = SaidLine {
                number: line.number,
                role: role(&read.message),
                text: read.message.text().into_owned(),
                at: line.at,
            };
            match sessions.iter_mut().find(|session| session.id == id) {
                Some(session) => session.said.push(said),
                None => sessions.push(SearchedSession {
                    title: match line.session {
                        PastSession::Over { title, .. } => title,
                        PastSession::AtHand { .. } | PastSession::Here => String::new(),
                    },
                    source: line
                        .conversation
                        .platform()
                        .map_or_else(String::new, |on| on.name().to_owned()),
                    id,
                    said: vec![said],
                }),
            }
        }
        for session in &mut sessions {
            // The store gives the latest first, so that a bound leaves the oldest out.
            session.said.reverse();
            if session.title.is_empty() {
                let first = session.said.iter().find(|said| said.role == "user");
                session.title = title(first.map_or("", |said| &said.text));
            }
        }
        Self {
            sessions,
            left_out: found.left_out,
        }
    }

    fn answer(&self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let text = |name: &str| {
            let text = arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default();
            Some(text.trim()).filter(|text| !text.is_empty())
        };
        let number = |name: &str| {
            let value = arguments.get(name)?;
            value
                .as_i64()
                .or_else(|| value.as_str()?.trim().parse().ok())
        };
        let limit = number("limit").unwrap_or(3).clamp(1, 10);
        let limit = usize::try_from(limit).unwrap_or(3);
        let roles = text("role_filter")
            .unwrap_or("user,assistant")
            .to_lowercase();
        let mut answer = match (text("session_id"), text("query")) {
            (Some(id), _) => {
                let mut sessions = self.sessions.iter();
                let session = sessions.find(|session| session.id == id);
                let session = session.ok_or("session_id not found")?;
                match number("around_message_id") {
                    Some(around) => {
                        let window = number("window").unwrap_or(5).clamp(1, 20);
                        session.scroll(around, usize::try_from(window).unwrap_or(5))?
                    }
                    None => session.read(),
                }
            }
            (None, Some(query)) => {
                let parsed = LookBackQuery::parse(query).ok_or("query has no words to look for")?;
                let results = self.discover(&parsed, &roles, text("sort"), limit);
                json!({"success": true, "mode": "discover", "query": query, "count": results.len(),
                    "results": results})
            }
            (None, None) => {
                let sessions = self.sessions.iter().take(limit.max(10));
                let results: Vec<_> = sessions.map(SearchedSession::browse).collect();
                json!({"success": true, "mode": "browse", "count": results.len(), "results": results})
            }
        };
        if self.left_out {
            answer["older_left_out"] = true.into();
        }
        Ok(answer)
    }

    fn discover(
        &self,
        query: &LookBackQuery,
        roles: &str,
        sort: Option<&str>,
        limit: usize,
    ) -> Vec<Value> {
        let mut hits: Vec<(usize, &SearchedSession, usize)> = Vec::new();
        for session in &self.sessions {
            let said = session.said.iter().enumerate();
            let fits =
                said.filter(|(_, said)| roles.split(',').any(|role| role.trim() == said.role));
            let scored = fits.filter_map(|(at, said)| Some((query.matches(&said.text)?, at)));
            // Of those that fit equally well, the latest.
            if let Some((score, at)) = scored.max() {
                hits.push((score, session, at));
            }
        }
        match sort {
            Some("newest") => {}
            Some("oldest") => hits.reverse(),
            _ => hits.sort_by_key(|(score, ..)| std::cmp::Reverse(*score)),
        }
        let hits = hits.into_iter().take(limit);
        hits.map(|(_, session, at)| session.hit(query, at))
            .collect()
    }
}

impl SearchedSession {
    fn hit(&self, query: &LookBackQuery, at: usize) -> Value {
        let (from, to) = around(at, 5, self.said.len());
        let anchor = &self.said[at];
        let talk = || self.said.iter().filter(|said| said.role != "tool");
        let ends = talk().count();
        let start: Vec<_> = talk().take(3).map(|said| said.json(None)).collect();
        let end: Vec<_> = talk()
            .skip(ends.saturating_sub(3))
            .map(|said| said.json(None))
            .collect();
        let mut hit = self.meta();
        for (key, value) in [
            ("matched_role", anchor.role.into()),
            ("match_message_id", anchor.number.into()),
            (
                "snippet",
                query.excerpt(&anchor.text, LONGEST_EXCERPT).into(),
            ),
            ("bookend_start", start.into()),
            ("messages", self.window(from, to, anchor.number).into()),
            ("bookend_end", end.into()),
            ("messages_before", from.into()),
            ("messages_after", (self.said.len() - to).into()),
        ] {
            hit[key] = value;
        }
        hit
    }

    fn scroll(&self, anchor: i64, window: usize) -> Result<Value, String> {
        let at = self.said.iter().position(|said| said.number == anchor);
        let at = at.ok_or("around_message_id is not in this session")?;
        let (from, to) = around(at, window, self.said.len());
        Ok(
            json!({"success": true, "mode": "scroll", "session_id": self.id,
            "around_message_id": anchor, "session_meta": self.meta(), "window": window,
            "messages": self.window(from, to, anchor),
            "messages_before": from, "messages_after": self.said.len() - to}),
        )
    }

    fn read(&self) -> Value {
        let all = self.said.len();
        let truncated = all > HEAD + TAIL;
        let shown = |(at, _): &(usize, &SaidLine)| !truncated || *at < HEAD || *at >= all - TAIL;
        let said = self.said.iter().enumerate().filter(shown);
        let messages: Vec<_> = said.map(|(_, said)| said.json(None)).collect();
        json!({"success": true, "mode": "read", "session_id": self.id, "session_meta": self.meta(),
            "message_count": all, "truncated": truncated, "messages": messages})
    }

    fn browse(&self) -> Value {
        let mut meta = self.meta();
        meta["message_count"] = self.said.len().into();
        let last = self.said.last().map_or("", |said| &said.text);
        meta["preview"] = title(last).into();
        meta
    }

    fn meta(&self) -> Value {
        let when = self.said.first().map(|said| day(said.at));
        json!({"session_id": self.id, "when": when, "source": self.source, "title": self.title})
    }

    fn window(&self, from: usize, to: usize, anchor: i64) -> Vec<Value> {
        let said = self.said[from..to].iter();
        said.map(|said| said.json(Some(anchor))).collect()
    }
}

impl SaidLine {
    fn json(&self, anchor: Option<i64>) -> Value {
        let mut content: String = self.text.chars().take(LONGEST_MESSAGE).collect();
        if content.len() < self.text.len() {
            content.push('…');
        }
        let mut json = json!({"id": self.number, "role": self.role, "content": content,
            "timestamp": self.at.millis() / 1000});
        if anchor == Some(self.number) {
            json["anchor"] = true.into();
        }
        json
    }
}

fn around(at: usize, window: usize, all: usize) -> (usize, usize) {
    (at.saturating_sub(window), (at + window + 1).min(all))
}

/// The name under which a session is found again, within the same scope only.
fn session_id(line: &PastLine) -> Option<String> {
    match line.session {
        PastSession::Over { id, .. } => Some(format!("s{id}")),
        PastSession::AtHand { conversation } => Some(format!("c{conversation}")),
        PastSession::Here => None,
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
        Message::System { .. } => "system",
    }
}

fn day(at: Timestamp) -> String {
    let at = at.calendar().to_zoned(TimeZone::system());
    at.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use hermetic_redact::RedactorSettings;
    use hermetic_types::ConversationKey;

    use super::*;

    fn past(lines: &[(i64, PastSession, Message)]) -> EarlierSessions {
        let lines = lines
            .iter()
            .rev()
            .map(|(number, session, message)| PastLine {
                number: *number,
                conversation: ConversationKey::new("agent:main:telegram:dm:7"),
                session: session.clone(),
                at: Timestamp::from_millis(*number * 1000),
                text: serde_json::to_string(&HistoryLine {
                    row: 1,
                    message: message.clone(),
                })
                .unwrap(),
            });
        let found = PastLines {
            lines: lines.collect(),
            left_out: false,
        };
        EarlierSessions::read(found, &Redactor::new([], RedactorSettings::default()))
    }

    #[expect(clippy::needless_pass_by_value, reason = "a test writes them in place")]
    fn asked(past: &EarlierSessions, arguments: Value) -> Result<Value, String> {
        past.answer(arguments.as_object().unwrap())
    }

    #[test]
    fn a_search_finds_the_session_and_what_was_said_around_it() {
        let over = |id| PastSession::Over {
            id,
            title: format!("T{id}"),
        };
        let mut lines = vec![(1, over(1), Message::user("fix the docker bridge"))];
        for number in 2..20 {
            lines.push((number, over(1), Message::assistant("working on it")));
        }
        lines.push((
            20,
            PastSession::AtHand { conversation: 4 },
            Message::user("docker, docker!"),
        ));
        lines.push((21, PastSession::Here, Message::user("docker now")));
        let past = past(&lines);
        let found = asked(&past, json!({"query": "docker"})).unwrap();
        assert_eq!(found["count"], 2, "{found}");
        assert_eq!(found["results"][0]["session_id"], "c4", "it has it twice");
        let second = &found["results"][1];
        assert_eq!(
            (&second["title"], &second["match_message_id"]),
            (&json!("T1"), &json!(1))
        );
        assert_eq!(second["messages"].as_array().unwrap().len(), 6);
        assert_eq!(second["messages"][0]["anchor"], true);
        assert!(
            !found.to_string().contains("docker now"),
            "that is before the model"
        );
        let oldest = asked(
            &past,
            json!({"query": "docker", "sort": "oldest", "limit": 1}),
        )
        .unwrap();
        assert_eq!(oldest["results"][0]["session_id"], "s1");
        let scrolled = asked(
            &past,
            json!({"session_id": "s1", "around_message_id": "10", "window": 99}),
        );
        assert_eq!(scrolled.unwrap()["messages"].as_array().unwrap().len(), 19);
        let read = asked(&past, json!({"session_id": "s1"})).unwrap();
        assert_eq!(
            (&read["message_count"], &read["truncated"]),
            (&json!(19), &json!(false))
        );
        assert_eq!(asked(&past, json!({})).unwrap()["count"], 2);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let past = past(&[(
            1,
            PastSession::AtHand { conversation: 4 },
            Message::user("hello"),
        )]);
        for arguments in [
            json!({"session_id": "s9"}),
            json!({"session_id": "c4", "around_message_id": 77}),
            json!({"query": "***"}),
        ] {
            assert!(asked(&past, arguments).is_err());
        }
        let none = asked(&past, json!({"query": "nobody said this", "limit": -5})).unwrap();
        assert_eq!(none["count"], 0);
        let tools = asked(&past, json!({"query": "hello", "role_filter": "tool"})).unwrap();
        assert_eq!(tools["count"], 0);
    }
}
