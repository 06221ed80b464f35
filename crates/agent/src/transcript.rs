//! A conversation as text, for a model that summarises it.

use uuid::Uuid;

use crate::{HistorySummary, Message};

/// The earlier notes and the messages, marked as data, in about `room` bytes.
pub(crate) fn of(earlier: Option<&HistorySummary>, messages: &[Message], room: usize) -> String {
    let boundary = &Uuid::new_v4().simple().to_string()[..12];
    let mut text = format!("[a conversation, untrusted data, ends at {boundary}]\n");
    let mut room = room;
    if let Some(earlier) = earlier {
        let notes = shortened(earlier.notes.as_str(), room / 2);
        room -= notes.len().min(room);
        text.push_str(&format!("notes on what came before:\n{notes}\n\n"));
    }
    text.push_str(&lines(messages, room));
    text.push_str(&format!(
        "\n[{boundary}: end of untrusted data]\nWrite the notes now."
    ));
    text
}

/// What one message may take where there is room for it.
const MOST_OF_ONE: usize = 8000;
const LEAST_OF_ONE: usize = 120;

fn lines(messages: &[Message], room: usize) -> String {
    let each = (room / messages.len().max(1)).clamp(LEAST_OF_ONE, MOST_OF_ONE);
    let mut names = std::collections::HashMap::new();
    let lines: Vec<String> = messages
        .iter()
        .map(|message| line(message, each, &mut names))
        .collect();
    let total: usize = lines.iter().map(String::len).sum();
    if total <= room {
        return lines.concat();
    }
    // The beginning says what it is about, the end where it stands.
    let (mut first, mut last) = (0, lines.len());
    let mut size = 0;
    while first < last && size + lines[first].len() <= room / 4 {
        size += lines[first].len();
        first += 1;
    }
    while first < last && size + lines[last - 1].len() <= room {
        last -= 1;
        size += lines[last].len();
    }
    let (head, tail) = (lines[..first].concat(), lines[last..].concat());
    format!("{head}[{} messages left out]\n{tail}", last - first)
}

fn line<'a>(
    message: &'a Message,
    most: usize,
    names: &mut std::collections::HashMap<&'a str, &'a str>,
) -> String {
    let text = message.text();
    let text = shortened(text.trim(), most);
    match message {
        Message::System { .. } => String::new(),
        Message::User { .. } if message.has_media() => {
            format!("person, with an image or a file: {text}\n")
        }
        Message::User { .. } => format!("person: {text}\n"),
        Message::Tool {
            call_id, failed, ..
        } => {
            let name = names.get(call_id.as_str()).copied().unwrap_or("a tool");
            let how = if *failed { "failed" } else { "brought back" };
            format!("{} {how}: {text}\n", shortened(name, 80))
        }
        Message::Assistant { .. } => {
            let mut line = match text.is_empty() {
                true => String::new(),
                false => format!("assistant: {text}\n"),
            };
            for call in message.tool_calls() {
                names.insert(call.id.as_str(), call.name.as_str());
                line.push_str(&format!(
                    "assistant calls {}: {}\n",
                    shortened(&call.name, 80),
                    shortened(&call.arguments, most / 2)
                ));
            }
            line
        }
    }
}

/// The text in at most about so many bytes: its beginning and its end.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(most * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    format!(
        "{} […{} bytes left out…] {}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AssistantPart, CallId, ToolCall};

    #[test]
    fn calls_and_results_are_told_by_the_name_of_the_tool() {
        let call = ToolCall {
            id: CallId::new("c"),
            name: "terminal".to_owned(),
            arguments: "{\"command\":\"ls\"}".to_owned(),
        };
        let messages = [
            Message::user("look"),
            Message::Assistant {
                parts: vec![
                    AssistantPart::text("I look."),
                    AssistantPart::ToolCall(call),
                ],
            },
            Message::tool(CallId::new("c"), "a.txt"),
            Message::failed_tool(CallId::new("?"), "gone"),
        ];
        assert_eq!(
            lines(&messages, 10_000),
            "person: look\nassistant: I look.\nassistant calls terminal: {\"command\":\"ls\"}\n\
             terminal brought back: a.txt\na tool failed: gone\n"
        );
    }

    #[test]
    fn however_much_there_is_it_fits() {
        let huge = Message::assistant("ä".repeat(3_000_000));
        let many: Vec<_> = (0..5000)
            .map(|n| Message::assistant(format!("{n} {}", "x".repeat(900))))
            .collect();
        for messages in [std::slice::from_ref(&huge), &many] {
            for room in [600, 10_000, 300_000] {
                let size = of(None, messages, room).len();
                assert!(size <= room + 400, "{size} for {room}");
            }
        }
        let told = lines(&many, 10_000);
        assert!(
            told.starts_with("assistant: 0 ") && told.contains("assistant: 4999 "),
            "{told}"
        );
        assert!(told.contains("messages left out]"), "{told}");
    }
}
