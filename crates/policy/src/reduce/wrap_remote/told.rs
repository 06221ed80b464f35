//! Commands that editors, pagers, archivers and prompts are told to run, each in its own way.

use super::super::wrappers::WrappedCommand;
use crate::effective::ReducedCommand;
use crate::text::ExpandedText;

/// How many of them are looked at.
const MOST: usize = 16;

pub(super) fn inner(command: &ReducedCommand) -> Vec<WrappedCommand> {
    let texts: Vec<String> = match command.program() {
        "vi" | "vim" | "nvim" | "ex" | "view" | "gvim" | "rvim" => editor(command),
        "man" => command.values_of("-P"),
        "tar" | "gtar" | "bsdtar" => archiver(command),
        "git" => aliases(command),
        "sqlite3" | "psql" | "mysql" | "ed" | "ftp" | "mail" | "mailx" | "less" | "more" => {
            prompt(command)
        }
        "emacs" => emacs(command),
        "crontab" => schedule(command),
        _ => return Vec::new(),
    };
    texts
        .into_iter()
        .take(MOST)
        .map(|text| WrappedCommand::Script(ExpandedText::known(text)))
        .collect()
}

/// `-c '!cmd'`, `+!cmd`, `:silent !cmd`.
fn editor(command: &ReducedCommand) -> Vec<String> {
    let args = command.args();
    let said = args.iter().enumerate().filter_map(|(at, arg)| {
        if matches!(arg.s.as_str(), "-c" | "--cmd") {
            args.get(at + 1).map(|next| next.s.as_str())
        } else {
            arg.s.strip_prefix('+')
        }
    });
    said.filter_map(|text| {
        let text = text.trim_start_matches([':', ' ']);
        let text = text.strip_prefix("silent").map_or(text, |rest| {
            rest.strip_prefix('!').unwrap_or(rest).trim_start()
        });
        let shell = text.strip_prefix('!').or_else(|| text.strip_prefix("r !"));
        shell
            .or_else(|| text.strip_prefix("w !"))
            .map(str::to_owned)
    })
    .collect()
}

/// `--checkpoint-action=exec=cmd` and the scripts beside it.
fn archiver(command: &ReducedCommand) -> Vec<String> {
    let mut texts: Vec<String> = command
        .values_of("--checkpoint-action")
        .iter()
        .filter_map(|action| action.strip_prefix("exec="))
        .map(|text| text.trim_matches(['\'', '"']).to_owned())
        .collect();
    for option in ["--to-command", "--info-script", "--new-volume-script"] {
        texts.extend(command.values_of(option));
    }
    texts
}

/// `git -c alias.x='!cmd' x`.
fn aliases(command: &ReducedCommand) -> Vec<String> {
    let settings = command.args().windows(2).filter(|pair| pair[0].s == "-c");
    let passing = settings
        .filter_map(|pair| pair[1].s.split_once("=!"))
        .filter(|(name, _)| name.starts_with("alias."))
        .map(|(_, text)| text.to_owned());
    // `git config alias.x '!cmd'` is run later.
    let kept = command
        .args()
        .windows(2)
        .filter(|pair| pair[0].s.starts_with("alias."));
    let kept = kept.filter_map(|pair| pair[1].s.strip_prefix('!').map(str::to_owned));
    passing.chain(kept).collect()
}

/// What a file starts some day: the lines of a table of jobs, what a unit executes, a script of a shell.
pub(in crate::reduce) fn written_for_later(path: &str, text: &str) -> Vec<String> {
    let name = crate::effective::base_name(path);
    let table = path.starts_with("/etc/cron.d/")
        || path == "/etc/crontab"
        || path.starts_with("/var/spool/cron");
    if table {
        let user = !path.starts_with("/var/spool/cron");
        return jobs(text)
            .into_iter()
            .map(|job| match job.split_once(char::is_whitespace) {
                Some((_, job)) if user => job.trim_start().to_owned(),
                _ => job,
            })
            .take(MOST)
            .collect();
    }
    if name.ends_with(".service") {
        return text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Exec")?.split_once('='))
            .map(|(_, started)| {
                started
                    .trim_start_matches(['-', '@', '+', '!', ':'])
                    .to_owned()
            })
            .take(MOST)
            .collect();
    }
    let script = path.starts_with("/etc/cron.")
        || path.starts_with("/etc/profile")
        || path.contains("/.git/hooks/")
        || matches!(
            name,
            ".bashrc"
                | ".zshrc"
                | ".profile"
                | ".bash_profile"
                | ".zprofile"
                | ".bash_login"
                | "rc.local"
                | "bash.bashrc"
        );
    if script {
        vec![text.to_owned()]
    } else {
        Vec::new()
    }
}

/// Lines that begin as a way out of a prompt.
fn prompt(command: &ReducedCommand) -> Vec<String> {
    const OUT: &[&str] = &["!", ".shell ", ".system ", "\\! ", "~!", "r !", "system "];
    let typed = command.input.known.as_deref().unwrap_or_default();
    let args = command.args().iter().map(|arg| arg.s.as_str());
    args.chain(typed.lines())
        .filter_map(|line| {
            let line = line.trim_start().trim_start_matches('+');
            OUT.iter().find_map(|out| line.strip_prefix(out))
        })
        .filter(|text| !text.starts_with('=') && !text.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

/// `(shell-command "cmd")` and `(delete-directory "path" t)`.
fn emacs(command: &ReducedCommand) -> Vec<String> {
    const CALLS: &[(&str, &str)] = &[
        ("shell-command", ""),
        ("shell-command-to-string", ""),
        ("delete-directory", "rm -rf -- "),
        ("delete-file", "rm -f -- "),
    ];
    let mut texts = Vec::new();
    for arg in command.args() {
        for (call, as_shell) in CALLS {
            let after = arg.s.split_once(&format!("({call} "));
            let string = after.and_then(|(_, rest)| rest.split('"').nth(1));
            texts.extend(string.map(|string| format!("{as_shell}{string}")));
        }
    }
    texts
}

/// The commands of a table of jobs that comes by standard input.
fn schedule(command: &ReducedCommand) -> Vec<String> {
    jobs(command.input.known.as_deref().unwrap_or_default())
}

fn jobs(table: &str) -> Vec<String> {
    const FIELDS: usize = 5;
    table
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| {
            let own = if line.starts_with('@') { 1 } else { FIELDS };
            let mut rest = line;
            for _ in 0..own {
                rest = rest.split_once(char::is_whitespace)?.1.trim_start();
            }
            Some(rest.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::ByteFlow;

    fn said(line: &[&str], input: &str) -> Vec<String> {
        let command = ReducedCommand {
            words: line.iter().map(|word| ExpandedText::known(*word)).collect(),
            input: ByteFlow::known(input),
            ..ReducedCommand::default()
        };
        let texts = inner(&command).into_iter().map(|inner| match inner {
            WrappedCommand::Script(text) => text.s,
            _ => String::new(),
        });
        texts.collect()
    }

    #[test]
    fn each_in_its_own_way() {
        assert_eq!(said(&["vim", "-c", ":silent !id"], ""), ["id"]);
        assert_eq!(
            said(&["crontab", "-"], "# a\n*/5 * * * * id -u\n@reboot w\n"),
            ["id -u", "w"]
        );
        assert_eq!(said(&["git", "-c", "alias.x=!id", "x"], ""), ["id"]);
        assert_eq!(said(&["sqlite3", "x.db", ".shell id"], ""), ["id"]);
        assert!(said(&["crontab", "-l"], "short line\n").is_empty());
    }
}
