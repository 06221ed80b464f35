//! `read` and `mapfile`: variables out of what comes in.

use super::ScriptWalker;
use crate::effective::ReducedCommand;
use crate::text::{ByteFlow, ExpandedText};

/// What the options of `read` say.
#[derive(Default)]
struct ReadOptions<'c> {
    /// Backslashes stay.
    raw: bool,
    /// Not a line but so many characters, or up to another mark.
    partial: bool,
    /// `-d ''`: all there is.
    whole: bool,
    array: Option<&'c str>,
    names: Vec<&'c str>,
}

impl<'c> ReadOptions<'c> {
    fn of(command: &'c ReducedCommand) -> Self {
        let mut options = Self::default();
        let mut args = command.args().iter().map(|arg| arg.s.as_str());
        while let Some(arg) = args.next() {
            let Some(letters) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                options.names.push(arg);
                continue;
            };
            for (at, letter) in letters.char_indices() {
                if letter == 'r' {
                    options.raw = true;
                }
                if !"adiNnptu".contains(letter) {
                    continue;
                }
                let joined = &letters[at + letter.len_utf8()..];
                let value = if joined.is_empty() {
                    args.next().unwrap_or_default()
                } else {
                    joined
                };
                match letter {
                    'a' => options.array = Some(value),
                    'd' if value.is_empty() => options.whole = true,
                    'd' | 'n' | 'N' => options.partial = true,
                    _ => {}
                }
                break;
            }
        }
        options
    }
}

impl ScriptWalker<'_> {
    pub(super) fn read(&mut self, command: &ReducedCommand) {
        let options = ReadOptions::of(command);
        let line = line_of(&command.input, &options);
        if let Some(array) = options.array {
            let items = self.split_line(&line, usize::MAX, command);
            self.set_array(array, items, false);
            return;
        }
        match options.names.as_slice() {
            [] => self.set("REPLY", line),
            [name] => self.set(name, line),
            several => {
                let mut fields = self.split_line(&line, several.len(), command).into_iter();
                for name in several {
                    let field = fields.next().unwrap_or(ExpandedText {
                        s: String::new(),
                        ..line.clone()
                    });
                    self.set(name, field);
                }
            }
        }
    }

    /// Up to `most` fields, the last of which is all that is left.
    fn split_line(
        &self,
        line: &ExpandedText,
        most: usize,
        command: &ReducedCommand,
    ) -> Vec<ExpandedText> {
        const FIELDS: usize = 64;
        let most = most.min(FIELDS);
        if !line.is_known() {
            return vec![line.clone(); most.min(8)];
        }
        let own = command.assigns.iter().rfind(|(name, _)| name == "IFS");
        let separators = match own {
            Some((_, ifs)) if ifs.is_known() => ifs.s.chars().collect(),
            Some(_) => return vec![ExpandedText::unknown(line.taint); most.min(8)],
            None => self.separators(),
        };
        let blank = |c: char| c.is_whitespace() && separators.contains(&c);
        let mut fields = Vec::new();
        let mut rest = line.s.trim_matches(blank);
        while !rest.is_empty() {
            let end = rest.find(|c: char| separators.contains(&c));
            let (field, after) = match end {
                Some(end) if fields.len() + 1 < most => {
                    let mark = rest[end..].chars().next().map_or(1, char::len_utf8);
                    (&rest[..end], &rest[end + mark..])
                }
                _ => (rest, ""),
            };
            fields.push(ExpandedText {
                s: field.to_owned(),
                taint: line.taint,
                glob: false,
            });
            rest = after.trim_start_matches(blank);
        }
        fields
    }

    pub(super) fn map_file(&mut self, command: &ReducedCommand) {
        const MOST_READ_NAMES: usize = 64;
        let name = command
            .operands()
            .last()
            .map_or("MAPFILE", |text| text.s.as_str())
            .to_owned();
        let lines = match &command.input.known {
            Some(text) => text
                .lines()
                .take(MOST_READ_NAMES)
                .map(|line| ExpandedText {
                    s: line.to_owned(),
                    taint: command.input.taint,
                    glob: false,
                })
                .collect(),
            None => vec![command.input.clone().into_text()],
        };
        self.set_array(&name, lines, false);
    }
}

fn line_of(input: &ByteFlow, options: &ReadOptions<'_>) -> ExpandedText {
    let Some(text) = &input.known else {
        return input.clone().into_text();
    };
    // Which line it is depends on how many were read before.
    if options.partial || input.shared {
        return ExpandedText::unknown(input.taint);
    }
    let line = if options.whole {
        text.trim_end_matches('\n')
    } else {
        text.lines().next().unwrap_or_default()
    };
    let line = if options.raw {
        line.to_owned()
    } else {
        line.replace('\\', "")
    };
    ExpandedText {
        s: line,
        taint: input.taint,
        glob: false,
    }
}
