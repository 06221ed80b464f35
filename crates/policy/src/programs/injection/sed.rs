//! What a sed script runs and writes.

use crate::effective::ReducedCommand;

/// The `e` command, the `e` flag of `s///` and `w` onto something that matters.
pub(super) fn runs(command: &ReducedCommand) -> bool {
    let mut scripts: Vec<String> = command.values_of("-e");
    scripts.extend(command.values_of("--expression"));
    if scripts.is_empty() {
        scripts.push(command.operand(0).to_owned());
    }
    scripts.iter().any(|script| {
        replaces_and_runs(script) || script.split([';', '\n', '{', '}']).any(step_runs)
    })
}

/// `s/.*/rm -rf \/x/e`: what is put in is run, whatever separators its slashes hide.
fn replaces_and_runs(script: &str) -> bool {
    let Some(mark) = script
        .strip_prefix('s')
        .and_then(|rest| rest.chars().next())
    else {
        return false;
    };
    let flags = script.rsplit(mark).next().unwrap_or_default();
    let known = |c: char| "gpeiIM0123456789".contains(c);
    mark.is_ascii_punctuation() && flags.contains('e') && flags.chars().all(known)
}

fn step_runs(step: &str) -> bool {
    let step = past_pattern(step.trim());
    let address = step.trim_start_matches(|c: char| {
        c.is_ascii_digit() || matches!(c, '$' | ',' | '!' | ' ' | '~')
    });
    let flags = flags_of_replacement(address);
    let flag_e = flags.contains('e') && flags.chars().all(|c| c.is_ascii_alphanumeric());
    let file = address.strip_prefix("w ").or_else(|| {
        let (_, file) = flags.split_once("w ")?;
        Some(file)
    });
    let writes = file.is_some_and(|file| {
        ["/etc", "/root", "/var"]
            .iter()
            .any(|place| file.trim().starts_with(place))
            || file.contains("/.ssh/")
            || file.contains("/.bashrc")
    });
    address.starts_with("e ") || address == "e" || flag_e || writes
}

fn flags_of_replacement(step: &str) -> &str {
    let Some(rest) = step.strip_prefix('s') else {
        return "";
    };
    let mark = rest
        .chars()
        .next()
        .filter(|mark| mark.is_ascii_punctuation() && *mark != '\\');
    let Some(mark) = mark else { return "" };
    let mut fields = rest[1..].splitn(3, mark);
    fields.nth(2).map_or("", str::trim)
}

/// What follows `/pattern/` at the start of a step.
fn past_pattern(step: &str) -> &str {
    let Some(rest) = step.strip_prefix('/') else {
        return step;
    };
    let mut escaped = false;
    let end = rest.find(|c: char| {
        let closes = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    });
    end.map_or(step, |end| rest[end + 1..].trim_start())
}
