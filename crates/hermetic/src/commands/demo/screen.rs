//! How the story looks.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::json;

use super::DemoEnding;
use super::attempt::{AttemptOutcome, AttemptVerdict, DemoAttempt, shortened};
use super::model::REQUEST;
use crate::output::{BOLD, DIM, printable};

const GREEN: Style = AnsiColor::Green.on_default().bold();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

pub(super) fn opening() -> String {
    format!(
        "\n{BOLD}A bot, two people, and a page with a trap in it{BOLD:#}\n\n\
         This is the gateway that serves real chats, with a sandbox for each conversation. Only the\n\
         chat and the model are made up: the model believes whatever it reads.\n\n"
    )
}

pub(super) fn told_by_ada() -> String {
    let mut text = format!(
        "{BOLD}Bob{BOLD:#}  keeps a diary in his conversation.\n{BOLD}Ada{BOLD:#}  writes to the bot:\n\n"
    );
    for line in REQUEST.lines() {
        let _ = writeln!(text, "     {DIM}│{DIM:#} {line}");
    }
    let _ = writeln!(text, "\nThe model does as the page says. It tries to …\n");
    text
}

pub(super) fn attempt(number: usize, attempt: &DemoAttempt) -> String {
    // All of it is in the JSON.
    let command = printable(&shortened(&attempt.command));
    format!(
        "{number:>3}  {BOLD}{}{BOLD:#}\n     {DIM}$ {command}{DIM:#}\n",
        attempt.title
    )
}

pub(super) fn met(met: &AttemptOutcome) -> String {
    let line = printable(&met.line);
    match met.verdict {
        AttemptVerdict::Held => format!("     {GREEN}held{GREEN:#}  {line}\n\n"),
        AttemptVerdict::GotThrough => format!("     {RED}GOT THROUGH{RED:#}  {line}\n\n"),
        AttemptVerdict::Untried => {
            format!("     {YELLOW}could not be tried here{YELLOW:#}  {line}\n\n")
        }
    }
}

pub(super) fn answer(answer: &str, leaked: bool) -> String {
    let mut text = "Last, it simply says the key aloud. Ada reads:\n\n".to_owned();
    for line in answer.lines() {
        let _ = writeln!(text, "     {DIM}│{DIM:#} {}", printable(line));
    }
    let _ = match leaked {
        false => writeln!(
            text,
            "     {GREEN}held{GREEN:#}  secrets are taken out of what leaves\n"
        ),
        true => writeln!(text, "     {RED}GOT THROUGH{RED:#}\n"),
    };
    text
}

pub(super) fn closing(ending: DemoEnding, attempts: usize) -> String {
    let all = attempts + 1;
    let first = match ending {
        DemoEnding::Held { untried: 0 } => format!(
            "{GREEN}Everything held.{GREEN:#} {all} attempts, none got through; the sandboxes and the folder are gone.\n",
        ),
        DemoEnding::Held { untried } => format!(
            "{GREEN}Nothing got through.{GREEN:#} {untried} of {all} attempts could not be tried here: a program is \
             missing. The sandboxes and the folder are gone.\n",
        ),
        DemoEnding::NothingTried => format!(
            "{RED}No attempt ran.{RED:#} That proves nothing: `hermetic doctor` looks at this machine.\n"
        ),
        DemoEnding::GotThrough => format!(
            "{RED}Something got through.{RED:#} `hermetic doctor --attack` says which layer does not hold.\n"
        ),
    };
    format!(
        "{first}\nNext:\n  \
         hermetic exec -- bash          look around in a sandbox yourself\n  \
         hermetic doctor --attack       some fifty attempts, on your own configuration\n  \
         hermetic setup                 connect a bot; docs/guides/telegram.md has every step\n  \
         hermetic migrate               coming from Hermes Agent\n"
    )
}

pub(super) fn as_json(
    attempts: &[DemoAttempt],
    met: &[AttemptOutcome],
    leaked: bool,
) -> serde_json::Value {
    let attempts: Vec<_> = attempts
        .iter()
        .zip(met)
        .map(|(attempt, met)| {
            json!({
                "attempt": attempt.title,
                "command": attempt.command,
                // Null where it could not be tried.
                "held": match met.verdict {
                    AttemptVerdict::Held => Some(true),
                    AttemptVerdict::GotThrough => Some(false),
                    AttemptVerdict::Untried => None,
                },
                "met": met.line,
            })
        })
        .collect();
    json!({ "attempts": attempts, "secret_said_aloud": { "held": !leaked } })
}
