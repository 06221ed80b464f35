//! Places that a program is told in its own way.

use super::is_last;
use crate::effective::{ReducedCommand, base_name};
use crate::text::ExpandedText;

/// Files that a program is told to write in a language of its own.
pub(super) fn said(command: &ReducedCommand) -> Vec<ExpandedText> {
    let program = command.program();
    let typed = command.input.known.as_deref().unwrap_or_default();
    let texts = || {
        command
            .args()
            .iter()
            .map(|arg| arg.s.as_str())
            .chain([typed])
    };
    let mut files: Vec<String> = Vec::new();
    let mut after = |text: &str, marks: &[&str]| {
        let lower = text.to_lowercase();
        for mark in marks {
            for (at, found) in lower.match_indices(mark) {
                if let Some(rest) = text.get(at + found.len()..) {
                    let rest = rest.trim_start_matches(['!', ' ', '\'', '"', '=']);
                    let end = rest
                        .find(|c: char| {
                            c.is_whitespace() || matches!(c, '\'' | '"' | ';' | ',' | ')')
                        })
                        .unwrap_or(rest.len());
                    files.push(rest[..end].to_owned());
                }
            }
        }
    };
    match program {
        "vi" | "vim" | "nvim" | "ex" | "view" | "rvim" => {
            for text in texts() {
                let text = text.trim_start_matches([':', '+']);
                if let Some(rest) = ["w!", "w ", "write", "saveas", "sav ", "wq ", "w>>"]
                    .iter()
                    .find(|start| text.starts_with(**start))
                {
                    after(text, &[rest]);
                }
                if text.contains("writefile(") {
                    after(text, &["\""]);
                }
                after(text, &["redir! >", "redir >", "redir! > ", "redir >> "]);
            }
        }
        "ansible" => texts().for_each(|text| after(text, &["dest=", "path="])),
        "puppet" | "chef-apply" => {
            texts().for_each(|text| after(text, &["file {", "file{", "file "]));
        }
        "jshell" => texts().for_each(|text| after(text, &["/save "])),
        "tclsh" | "wish" | "expect" => texts().for_each(|text| {
            if [" w]", " a]", " w+]", " a+]"]
                .iter()
                .any(|mode| text.contains(mode))
            {
                after(text, &["open "]);
            }
        }),
        "ed" | "red" => {
            for line in typed.lines() {
                if line.trim_start().starts_with(['w', 'W']) {
                    after(line, &["w"]);
                }
            }
        }
        "sqlite3" => texts().for_each(|text| {
            after(
                text,
                &[
                    ".output ",
                    ".once ",
                    ".backup ",
                    ".save ",
                    ".log ",
                    "attach ",
                    "attach database ",
                    "vacuum into ",
                    "writefile(",
                ],
            );
        }),
        "psql" => texts().for_each(|text| after(text, &[") to ", "\\o ", "\\w "])),
        "mysql" | "mariadb" => {
            texts().for_each(|text| after(text, &["into outfile ", "into dumpfile ", "tee "]));
        }
        "gdb" | "lldb" => texts().for_each(|text| {
            after(
                text,
                &[
                    "logging file ",
                    "dump value ",
                    "dump memory ",
                    "dump binary value ",
                    "dump binary memory ",
                    "gcore ",
                ],
            );
        }),
        "emacs" => texts().for_each(|text| {
            if [
                "write-region",
                "write-file",
                "append-to-file",
                "copy-file",
                "rename-file",
            ]
            .iter()
            .any(|call| text.contains(call))
            {
                after(text, &["\""]);
            }
        }),
        "lftp" | "smbclient" | "ftp" | "sftp" => texts().for_each(|text| {
            for order in text.split([';', '\n']) {
                let order = order.trim_start();
                if order.starts_with("get ")
                    || order.starts_with("reget ")
                    || order.starts_with("pget ")
                {
                    after(order, &[" -o "]);
                    if let Some(last) = order
                        .split_whitespace()
                        .nth(2)
                        .filter(|word| !word.starts_with('-'))
                    {
                        after(last, &[""]);
                    }
                }
            }
        }),
        "socat" => texts().for_each(|text| {
            let kind = text.split(':').next().unwrap_or_default().to_lowercase();
            let writes = matches!(
                kind.as_str(),
                "create" | "creat" | "open" | "gopen" | "file"
            );
            if writes
                && (kind.starts_with("creat")
                    || text.contains("creat")
                    || text.contains("append")
                    || text.contains("wronly")
                    || text.contains("trunc")
                    || is_last(command, text))
            {
                after(
                    text.split(',').next().unwrap_or_default(),
                    &["create:", "creat:", "gopen:", "open:", "file:"],
                );
            }
        }),
        "tar" | "gtar" | "bsdtar" => {
            for script in ["--transform", "--xform", "-s"]
                .iter()
                .flat_map(|flag| command.values_of(flag))
            {
                let mark = script
                    .chars()
                    .nth(1)
                    .filter(|mark| mark.is_ascii_punctuation());
                if let Some(target) = mark.and_then(|mark| script.split(mark).nth(2)) {
                    after(target, &[""]);
                }
            }
        }
        "redis-cli" => {
            let words: Vec<&str> = command.operands().map(|text| text.s.as_str()).collect();
            if let ["config" | "CONFIG", "set" | "SET", "dir", folder, ..] = words.as_slice() {
                files.push(format!("{}/x", folder.trim_end_matches('/')));
            }
            if let ["config" | "CONFIG", "set" | "SET", "dbfilename", name, ..] = words.as_slice()
                && matches!(base_name(name), "authorized_keys" | "crontab" | "root")
            {
                files.push(format!("/root/.ssh/{name}"));
            }
        }
        _ => {}
    }
    files.retain(|file| file.starts_with(['/', '~']) && file.len() < 512);
    files.into_iter().map(ExpandedText::known).collect()
}
