//! `hermetic approvals allow`: a rule in the file where a person sees and edits it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use hermetic_app as app;
use hermetic_audit::{AuditEvent, RuleChange};
use hermetic_config::Config;
use hermetic_types::{Clock as _, SystemClock};

use crate::by_hand;
use crate::cli::CommandLine;
use crate::commands::load;
use crate::exit::ExitReason;
use crate::failure::CommandFailure;
use crate::{log, output};

const KEY: &str = "command_allowlist:";

pub(super) fn run(
    cli: &CommandLine,
    config: &Config,
    pattern: &str,
) -> Result<ExitReason, CommandFailure> {
    let pattern = pattern.trim();
    refuse_categories(pattern)?;
    let path = config.home().config_file();
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(CommandFailure::file("read", &path, &error)),
    };
    let entry = quoted(pattern);
    if is_allowed(config, pattern) {
        output::print(&format!("{entry} is in command_allowlist already\n"))?;
        return Ok(ExitReason::Ok);
    }
    let Some(after) = with_entry(&before, &entry) else {
        return Err(CommandFailure::new(
            format!(
                "command_allowlist in {} is written in a way that is not changed from here",
                path.display()
            ),
            format!("add this to it by hand: {entry}"),
        ));
    };
    // The record first: a rule that nobody can account for is not written.
    write_down(config, pattern)?;
    replace(&path, &after)?;
    // Read as the gateway will read it: a file that was changed by its lines may say something else
    // now.
    if !load(cli).is_ok_and(|config| is_allowed(&config, pattern)) {
        replace(&path, &before)?;
        return Err(CommandFailure::new(
            "the file does not read as it should with that rule, and was left as it was",
            format!("add this to command_allowlist by hand: {entry}"),
        ));
    }
    output::print(&format!(
        "added {entry} to command_allowlist in {}\nthe gateway reads it at its next start\n",
        path.display()
    ))?;
    Ok(ExitReason::Ok)
}

fn is_allowed(config: &Config, pattern: &str) -> bool {
    let mut rules = config.approvals().allow.iter();
    rules.any(|known| known == pattern)
}

fn write_down(config: &Config, pattern: &str) -> Result<(), CommandFailure> {
    app::installation(config.home())?;
    let redactor = app::redactor(config);
    log::hide(&redactor);
    let event = AuditEvent::Rule {
        act: RuleChange::Added,
        rule: redactor
            .redact(format!("command_allowlist {pattern}"))
            .into(),
        by: redactor.redact(by_hand::who()).into(),
    };
    app::audit(config)?.append(&event, SystemClock.now())?;
    Ok(())
}

/// A rule names a program; everything else would be a whole kind of commands.
fn refuse_categories(pattern: &str) -> Result<(), CommandFailure> {
    let program = pattern.split_whitespace().next().unwrap_or_default();
    let wild = program.is_empty() || program.contains(['*', '?', '[']);
    if wild || pattern.contains(char::is_control) {
        return Err(CommandFailure::new(
            "the rule does not name a program",
            "begin it with one, as in 'docker compose restart *'",
        ));
    }
    Ok(())
}

fn quoted(pattern: &str) -> String {
    format!("'{}'", pattern.replace('\'', "''"))
}

/// The file with one entry more, where the list is missing, empty or has an entry a line.
fn with_entry(text: &str, entry: &str) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(at) = lines.iter().position(|line| line.starts_with(KEY)) else {
        lines.push(KEY.to_owned());
        lines.push(format!("  - {entry}"));
        return Some(lines.join("\n") + "\n");
    };
    let value = lines[at][KEY.len()..].split('#').next().unwrap_or_default();
    match value.trim() {
        "" | "[]" => {}
        _ => return None,
    }
    lines[at] = KEY.to_owned();
    let indent = lines
        .get(at + 1)
        .filter(|next| next.trim_start().starts_with("- "))
        .map_or("  ".to_owned(), |next| {
            next[..next.len() - next.trim_start().len()].to_owned()
        });
    lines.insert(at + 1, format!("{indent}- {entry}"));
    Some(lines.join("\n") + "\n")
}

/// Written aside and moved into place: a reader sees the old file or the new one.
fn replace(path: &std::path::Path, text: &str) -> Result<(), CommandFailure> {
    // A link is followed, so that the file itself changes and not its name.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let aside = path.with_extension("yaml.new");
    let write = || {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&aside)?;
        if let Ok(metadata) = fs::metadata(&path) {
            file.set_permissions(metadata.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&aside, &path)
    };
    write().map_err(|error| CommandFailure::file("write", &path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_added_however_the_list_is_written_or_not_at_all() {
        let entry = "'ls *'";
        for (before, after) in [
            ("", Some("command_allowlist:\n  - 'ls *'\n")),
            ("a: 1\n", Some("a: 1\ncommand_allowlist:\n  - 'ls *'\n")),
            (
                "command_allowlist: []\nb: 2\n",
                Some("command_allowlist:\n  - 'ls *'\nb: 2\n"),
            ),
            (
                "command_allowlist:\n- x\n- y\n",
                Some("command_allowlist:\n- 'ls *'\n- x\n- y\n"),
            ),
            (
                "command_allowlist:   # mine\n    - x\n",
                Some("command_allowlist:\n    - 'ls *'\n    - x\n"),
            ),
            ("command_allowlist: [x]\n", None),
        ] {
            assert_eq!(with_entry(before, entry).as_deref(), after, "{before:?}");
        }
    }

    #[test]
    fn a_rule_for_everything_is_not_written() {
        for pattern in ["", "*", "* -rf x", "?m x", "rm x\ny"] {
            assert!(refuse_categories(pattern).is_err(), "{pattern:?}");
        }
        assert!(refuse_categories("git push *").is_ok());
    }
}
