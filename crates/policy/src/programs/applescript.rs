//! What an AppleScript tells other programs to do in a person's name.

use crate::effective::ReducedCommand;
use crate::finding::{HarmCategory, HarmFinding};
use crate::text::TaintSet;

/// Words of a script in lower case, and what they mean.
#[rustfmt::skip]
const PHRASES: &[(&str, HarmCategory, &str)] = &[
    ("administrator privileges", HarmCategory::Privilege, "runs a command as root"),
    ("login item", HarmCategory::Persistence, "changes what starts at login"),
    ("keystroke", HarmCategory::Injection, "types in a person's place"),
    ("key code", HarmCategory::Injection, "types in a person's place"),
    ("empty trash", HarmCategory::Destruction, "empties the trash"),
    ("empty the trash", HarmCategory::Destruction, "empties the trash"),
    ("log out", HarmCategory::Power, "ends a person's session"),
    ("aevtrlgo", HarmCategory::Power, "ends a person's session"),
    ("delete posix file", HarmCategory::Destruction, "deletes a file in a person's name"),
    ("delete file", HarmCategory::Destruction, "deletes a file in a person's name"),
    ("delete folder", HarmCategory::Destruction, "deletes a folder in a person's name"),
    ("delete every", HarmCategory::Destruction, "deletes everything of a kind in a person's name"),
    ("move every", HarmCategory::Destruction, "moves everything of a kind in a person's name"),
    ("start recording", HarmCategory::SecretRead, "records sound or the screen"),
    ("new audio recording", HarmCategory::SecretRead, "records sound"),
    ("new screen recording", HarmCategory::SecretRead, "records the screen"),
    ("the clipboard", HarmCategory::SecretRead, "reads what a person copied"),
];

/// Said to a program, these end the machine's work.
const POWER: &[&str] = &["shut down", "restart"];

pub(super) fn judge(command: &ReducedCommand) -> Vec<HarmFinding> {
    if !matches!(command.program(), "osascript" | "osacompile") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if command
        .args()
        .iter()
        .any(|arg| arg.taint.has(TaintSet::NETWORK))
    {
        findings.push(HarmFinding::dangerous(
            HarmCategory::RemoteCode,
            "runs a script from the network",
        ));
    }
    let script = script(command);
    if script.contains("tell app") && POWER.iter().any(|word| script.contains(word)) {
        findings.push(power(&script));
    }
    // The same in codes: restart, and shut down.
    if ["aevtrsdn", "aevtrrst", "aevtshut", "aevtrest"]
        .iter()
        .any(|code| script.contains(code))
    {
        findings.push(HarmFinding::floor(
            HarmCategory::Power,
            "powers the machine off",
        ));
    }
    let said = PHRASES.iter().filter(|(words, ..)| script.contains(words));
    findings.extend(said.map(|(_, category, reason)| HarmFinding::dangerous(*category, *reason)));
    findings
}

/// Any program can be told a text with such a word in it, and only these act on it.
fn power(script: &str) -> HarmFinding {
    let able = ["system events", "finder", "loginwindow"];
    if able.iter().any(|program| script.contains(program)) {
        HarmFinding::floor(HarmCategory::Power, "powers the machine off")
    } else {
        HarmFinding::dangerous(HarmCategory::Power, "may power the machine off")
    }
}

fn script(command: &ReducedCommand) -> String {
    let words = command.args().iter().map(|arg| arg.s.as_str());
    let typed = command.input.known.as_deref();
    let lines: Vec<&str> = words.chain(typed).collect();
    lines.join("\n").to_lowercase()
}
