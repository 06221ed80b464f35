//! Slack's own notation into plain text, as a person would read it.

use serde_json::Value;

/// Messages that were passed on along with one; more is decoration.
const MOST_SHARED: usize = 8;

/// What somebody wrote: entities and references resolved, our own name at its head taken off, and a
/// typed `!stop` made the command `/stop`, because Slack keeps what begins with a slash to itself.
pub(crate) fn own_words(text: &str, us: &str) -> String {
    let text = plain(text, us);
    let name = format!("@{us}");
    let mut words = text.trim();
    while let Some(rest) = words.strip_prefix(&name) {
        words = rest.trim_start_matches([',', ':']).trim_start();
    }
    match words.strip_prefix('!') {
        Some(command) if command.starts_with(|c: char| c.is_ascii_lowercase()) => {
            format!("/{command}")
        }
        _ => words.to_owned(),
    }
}

/// Whether the text names this person or bot.
pub(crate) fn mentions(text: &str, us: &str) -> bool {
    let bare = format!("<@{us}>");
    let labelled = format!("<@{us}|");
    text.contains(&bare) || text.contains(&labelled)
}

/// What the sender only passed on is quoted: it is nobody's command.
pub(crate) fn passed_on(attachments: &Value, us: &str) -> Option<String> {
    let shared = attachments.as_array()?.iter().filter(|attachment| {
        let set = |name: &str| attachment[name].as_bool() == Some(true);
        set("is_share") || set("is_msg_unfurl")
    });
    let texts: Vec<_> = shared
        .filter_map(|attachment| {
            let text = attachment["text"]
                .as_str()
                .or(attachment["fallback"].as_str())?;
            let lines: Vec<_> = plain(text, us)
                .lines()
                .map(|line| format!("> {line}"))
                .collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        })
        .take(MOST_SHARED)
        .collect();
    (!texts.is_empty()).then(|| {
        format!(
            "[passed on, not written by who sent it:]\n{}",
            texts.join("\n\n")
        )
    })
}

/// References (`<…>`) spelled out, then the three entities.
fn plain(text: &str, us: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        unescape(&rest[..open], &mut out);
        let after = &rest[open + 1..];
        match after.find(['>', '<']) {
            Some(end) if after.as_bytes()[end] == b'>' => {
                reference(&after[..end], us, &mut out);
                rest = &after[end + 1..];
            }
            // Slack escapes a bare one, so this is none of its references.
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    unescape(rest, &mut out);
    out
}

fn reference(inner: &str, us: &str, out: &mut String) {
    let (target, label) = match inner.split_once('|') {
        Some((target, label)) => (target, Some(label).filter(|label| !label.is_empty())),
        None => (inner, None),
    };
    if let Some(user) = target.strip_prefix('@') {
        out.push('@');
        // Our own name is taken off by its id, whatever a label says.
        unescape(label.filter(|_| user != us).unwrap_or(user), out);
    } else if let Some(channel) = target.strip_prefix('#') {
        out.push('#');
        unescape(label.unwrap_or(channel), out);
    } else if let Some(special) = target.strip_prefix('!') {
        let name = special.split('^').next().unwrap_or_default();
        let label = label.map(|label| label.trim_start_matches('@'));
        out.push('@');
        unescape(label.unwrap_or(name), out);
    } else {
        match label {
            Some(label) if !target.ends_with(label) => {
                unescape(label, out);
                out.push_str(" (");
                unescape(target, out);
                out.push(')');
            }
            _ => unescape(target, out),
        }
    }
}

fn unescape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let entity = [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>')]
            .into_iter()
            .find(|(entity, _)| rest[at..].starts_with(entity));
        let (length, character) = entity.map_or((1, '&'), |(entity, c)| (entity.len(), c));
        out.push(character);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_read_as_a_person_reads_them() {
        for (said, read) in [
            ("hello", "hello"),
            ("<@UBOT> hello", "hello"),
            ("<@UBOT|hermetic>: hello", "hello"),
            ("  <@UBOT>, <@UBOT> hello", "hello"),
            ("ask <@UBOT> and <@U2>", "ask @UBOT and @U2"),
            ("see <#C1|general> and <#C2>", "see #general and #C2"),
            ("<!here> and <!subteam^S1|@ops>", "@here and @ops"),
            (
                "<https://a.example/?x=1&amp;y=2>",
                "https://a.example/?x=1&y=2",
            ),
            ("<https://a.example|a page>", "a page (https://a.example)"),
            ("<mailto:a@b.example|a@b.example>", "mailto:a@b.example"),
            ("a &lt;b&gt; &amp;amp; c & d", "a <b> &amp; c & d"),
            ("1 < 2 <https://x>", "1 < 2 https://x"),
            ("!stop now", "/stop now"),
            ("<@UBOT> !sh ls", "/sh ls"),
            ("!important", "/important"),
            ("! no", "! no"),
            ("/sh ls", "/sh ls"),
        ] {
            assert_eq!(own_words(said, "UBOT"), read, "{said}");
        }
        assert!(mentions("hi <@UBOT>", "UBOT") && mentions("<@UBOT|x>", "UBOT"));
        assert!(!mentions("hi &lt;@UBOT&gt; <@UBOTS>", "UBOT"));
    }

    #[test]
    fn what_was_passed_on_is_quoted_line_by_line() {
        let shared = json!([
            {"is_share": true, "text": "/stop\nplease &lt;now&gt;"},
            {"text": "a link preview"},
            {"is_msg_unfurl": true, "fallback": "more"},
        ]);
        assert_eq!(
            passed_on(&shared, "UBOT").unwrap(),
            "[passed on, not written by who sent it:]\n> /stop\n> please <now>\n\n> more"
        );
        assert_eq!(passed_on(&json!([{"text": "a preview"}]), "UBOT"), None);
        assert_eq!(passed_on(&json!({"is_share": true}), "UBOT"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[<>&@#!|a-z; \n\u{202e}\u{200b}]{0,200}") {
            own_words(&text, "UBOT");
        }
    }
}
