//! What an AppleScript tells other programs to do in a person's name.

use crate::effective::Effective;
use crate::finding::{Category, Finding};
use crate::text::Taint;

/// Words of a script in lower case, and what they mean.
#[rustfmt::skip]
const PHRASES: &[(&str, Category, &str)] = &[
    ("administrator privileges", Category::Privilege, "runs a command as root"),
    ("login item", Category::Persistence, "changes what starts at login"),
    ("keystroke", Category::Injection, "types in a person's place"),
    ("key code", Category::Injection, "types in a person's place"),
    ("empty trash", Category::Destruction, "empties the trash"),
    ("empty the trash", Category::Destruction, "empties the trash"),
    ("log out", Category::Power, "ends a person's session"),
];

/// Said to a program, these end the machine's work.
const POWER: &[&str] = &["shut down", "restart"];

pub(super) fn judge(command: &Effective) -> Vec<Finding> {
    if command.program() != "osascript" {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if command
        .args()
        .iter()
        .any(|arg| arg.taint.has(Taint::NETWORK))
    {
        findings.push(Finding::dangerous(
            Category::RemoteCode,
            "runs a script from the network",
        ));
    }
    let script = script(command);
    if script.contains("tell app") && POWER.iter().any(|word| script.contains(word)) {
        findings.push(power(&script));
    }
    let said = PHRASES.iter().filter(|(words, ..)| script.contains(words));
    findings.extend(said.map(|(_, category, reason)| Finding::dangerous(*category, *reason)));
    findings
}

/// Any program can be told a text with such a word in it, and only these act on it.
fn power(script: &str) -> Finding {
    let able = ["system events", "finder", "loginwindow"];
    if able.iter().any(|program| script.contains(program)) {
        Finding::floor(Category::Power, "powers the machine off")
    } else {
        Finding::dangerous(Category::Power, "may power the machine off")
    }
}

fn script(command: &Effective) -> String {
    let words = command.args().iter().map(|arg| arg.s.as_str());
    let typed = command.input.known.as_deref();
    let lines: Vec<&str> = words.chain(typed).collect();
    lines.join("\n").to_lowercase()
}
