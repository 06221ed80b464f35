//! `parallel`, which puts its arguments into a template.

use super::WrappedCommand;
use crate::effective::ReducedCommand;
use crate::reduce::builtins::joined;
use crate::text::ExpandedText;

pub(super) fn parallel(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let args = command.args();
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.s.starts_with('-')) {
        at += if matches!(
            arg.s.as_str(),
            "-j" | "--jobs"
                | "-a"
                | "--arg-file"
                | "-n"
                | "-N"
                | "--colsep"
                | "-S"
                | "--delay"
                | "--timeout"
        ) {
            2
        } else {
            1
        };
    }
    let rest = &args[at..];
    let end = rest
        .iter()
        .position(|arg| arg.s.starts_with(":::"))
        .unwrap_or(rest.len());
    let items = rest.get(end + 1..).unwrap_or_default();
    if end == 0 {
        if !items.is_empty() {
            return items
                .iter()
                .map(|item| WrappedCommand::Script(item.clone()))
                .collect();
        }
        return if command.input.present {
            vec![WrappedCommand::Stdin]
        } else {
            Vec::new()
        };
    }
    let template = joined(&rest[..end]);
    if items.is_empty() {
        let item = match &command.input.known {
            Some(text) => ExpandedText::known(text.trim().replace(['\n', '\0'], " ")),
            None => command.input.clone().into_text(),
        };
        return vec![filled(&template, &item)];
    }
    items
        .iter()
        .take(32)
        .map(|item| filled(&template, item))
        .collect()
}

fn filled(template: &ExpandedText, item: &ExpandedText) -> WrappedCommand {
    let s = if template.s.contains("{}") {
        template.s.replace("{}", &item.s)
    } else {
        format!("{} {}", template.s, item.s)
    };
    WrappedCommand::Script(ExpandedText {
        s,
        taint: template.taint | item.taint,
        glob: false,
    })
}
