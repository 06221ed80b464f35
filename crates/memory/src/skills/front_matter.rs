//! The head of a `SKILL.md`: a few plain lines of YAML between `---`.

/// What is read of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    /// The operating systems it is for; empty for all.
    pub(crate) platforms: Vec<String>,
}

impl FrontMatter {
    /// The head and the text below it. A text without a head is all text.
    pub(crate) fn split(text: &str) -> (Self, &str) {
        let text = text.trim_start_matches('\u{feff}');
        let Some(rest) = text.strip_prefix("---").and_then(|rest| {
            let (first, rest) = rest.split_once('\n')?;
            first.trim().is_empty().then_some(rest)
        }) else {
            return (Self::default(), text);
        };
        let mut offset = 0;
        for line in rest.split_inclusive('\n') {
            if line.trim_end() == "---" {
                let body = &rest[offset + line.len()..];
                return (Self::read(&rest[..offset]), body);
            }
            offset += line.len();
        }
        (Self::default(), text)
    }

    fn read(head: &str) -> Self {
        let mut found = Self::default();
        let mut lines = head.lines().peekable();
        while let Some(line) = lines.next() {
            // What is indented belongs to another key.
            let Some((key, value)) = line
                .split_once(':')
                .filter(|_| !line.starts_with([' ', '\t', '-', '#']))
            else {
                continue;
            };
            let mut value = value.trim().to_owned();
            let is_folded = value.is_empty() || value.starts_with(['>', '|']);
            if is_folded {
                value.clear();
                while let Some(more) =
                    lines.next_if(|line| line.starts_with([' ', '\t']) || line.starts_with("- "))
                {
                    value.push_str(more.trim());
                    value.push(' ');
                }
            }
            match key.trim() {
                "name" => found.name = Some(unquoted(&value)),
                "description" => found.description = Some(unquoted(&value)),
                "platforms" => found.platforms = list(&value),
                _ => {}
            }
        }
        found
    }
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    let quoted = ['"', '\''].iter().find_map(|quote| {
        let inner = value.strip_prefix(*quote)?.strip_suffix(*quote)?;
        Some(inner.replace("\\\"", "\"").replace("''", "'"))
    });
    quoted.unwrap_or_else(|| value.to_owned())
}

/// `[a, b]`, or lines that begin with dashes.
fn list(value: &str) -> Vec<String> {
    let value = value.trim().trim_start_matches('[').trim_end_matches(']');
    let items = value
        .split([',', ' '])
        .map(|item| unquoted(item.trim_start_matches('-')));
    items.filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_and_what_is_none_is_text() {
        let text = "---\nname: \"deploy\"\ndescription: >\n  How we\n  deploy\nmetadata:\n  name: other\n\
                    platforms: [linux, macos]\n---\n# Steps\n---\nend";
        let (head, body) = FrontMatter::split(text);
        assert_eq!(head.name.as_deref(), Some("deploy"));
        assert_eq!(head.description.as_deref(), Some("How we deploy"));
        assert_eq!(head.platforms, ["linux", "macos"]);
        assert_eq!(body, "# Steps\n---\nend");
        for text in ["", "---", "---\nname: x", "# Title\n---\n", "--- x\n---\n"] {
            assert_eq!(FrontMatter::split(text), (FrontMatter::default(), text));
        }
    }
}
