//! Tools that write a Mac's property lists, among them those that say what starts at login.

use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

const PLUTIL: &[&str] = &["-replace", "-insert", "-remove", "-create", "-convert"];
const PLIST_BUDDY: &[&str] = &["add", "set", "delete", "import", "copy", "merge", "clear"];

pub(super) fn changes(command: &ReducedCommand) -> bool {
    match command.program() {
        // With `-o` it writes elsewhere, to a file that is named like any other.
        "plutil" => PLUTIL.iter().any(|flag| command.has_arg(flag)) && !command.has_arg("-o"),
        "PlistBuddy" => command.args().iter().any(|arg| {
            let verb = arg.s.split_whitespace().next().unwrap_or_default();
            PLIST_BUDDY.contains(&verb.to_lowercase().as_str())
        }),
        "defaults" => matches!(command.operand(0), "write" | "delete" | "import"),
        _ => false,
    }
}

/// Only what is a path: a domain is no file of anybody's.
pub(super) fn written(operands: &[ExpandedText]) -> Vec<ExpandedText> {
    let is_path = |text: &&ExpandedText| text.s.starts_with(['/', '~', '.']);
    operands.iter().filter(is_path).cloned().collect()
}
