//! The Python module that scripts import, with those tools in it that there are.

/// What a script may call, of the tools that this conversation has.
pub(crate) const CALLABLE: [&str; 7] = [
    "web_search",
    "web_extract",
    "read_file",
    "write_file",
    "search_files",
    "patch",
    "terminal",
];

const SOURCE: &str = include_str!("hermes_tools.py");
/// Begins the part of one tool.
const PART: &str = "#:: ";

pub(super) fn module(tools: &[&str]) -> String {
    let mut parts = SOURCE.split(PART);
    let mut module = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, body) = part.split_once('\n').unwrap_or((part, ""));
        if tools.contains(&name) {
            module.push_str(body);
        }
    }
    module
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_there_are_can_be_imported() {
        let one = module(&["terminal"]);
        assert!(one.contains("def terminal(") && !one.contains("def read_file("));
        assert!(one.contains("def retry("));
        let all = module(&CALLABLE);
        for tool in CALLABLE {
            assert!(all.contains(&format!("def {tool}(")), "{tool}");
        }
    }
}
