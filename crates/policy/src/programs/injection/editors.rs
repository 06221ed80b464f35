//! Editors, pagers and prompts that run commands when told to.

use super::{runs, sed};
use crate::effective::ReducedCommand;
use crate::finding::HarmFinding;

pub(super) fn judge(command: &ReducedCommand) -> Option<HarmFinding> {
    let program = command.program();
    let args = command.args();
    let told = |tells: &dyn Fn(&str) -> bool| args.iter().any(|arg| tells(&arg.s));
    let ran = match program {
        "vi" | "vim" | "nvim" | "ex" | "view" | "gvim" | "vimdiff" | "rvim" | "rview" => {
            scripts(command).any(vim_runs) || typed(command).any(vim_runs)
        }
        "less" | "more" | "most" => told(&|arg| arg.starts_with("+!") || arg.starts_with("+|")),
        "ed" | "red" => typed(command).any(prompt_runs),
        "sed" | "gsed" => sed::runs(command),
        "ftp" | "sftp" | "lftp" | "telnet" | "bc" | "dc" | "sqlite3" | "mail" | "mailx"
        | "mysql" | "psql" | "smbclient" => {
            typed(command).any(prompt_runs)
                || ["-e", "-c", "--exec", "--execute", "--command"]
                    .iter()
                    .flat_map(|flag| command.values_of(flag))
                    .any(|text| text.split(';').any(prompt_runs))
                || program == "sqlite3" && told(&prompt_runs)
        }
        "m4" => {
            typed(command).any(|line| line.contains("syscmd("))
                || told(&|arg| arg.contains("syscmd("))
        }
        "dosbox" | "dosbox-x" => told(&|arg| arg.contains("mount ")),
        "cpan" => typed(command).any(|line| line.starts_with('!')),
        "gnuplot" => {
            typed(command).any(|line| line.contains("system"))
                || told(&|arg| arg.contains("system"))
        }
        "pdflatex" | "latex" | "xelatex" | "lualatex" | "tex" | "pdftex" => {
            told(&|arg| arg.contains("shell-escape") || arg.contains("write18"))
        }
        "gimp" | "inkscape" | "blender" => {
            told(&|arg| arg.contains("os.system") || arg.contains("subprocess"))
        }
        "convert" | "magick" => told(&|arg| {
            arg.contains('|') && arg.contains("url(")
                || arg.starts_with("msl:")
                || arg.contains("ephemeral:")
        }),
        "gs" | "ghostscript" => told(&|arg| arg.contains("%pipe%")),
        "exiftool" => told(&|arg| arg.contains("system") || arg.contains('`')),
        _ => false,
    };
    ran.then(|| runs(program))
}

/// What `-c`, `--cmd` and `+` tell an editor.
fn scripts(command: &ReducedCommand) -> impl Iterator<Item = &str> {
    let args = command.args();
    args.iter().enumerate().filter_map(move |(at, arg)| {
        if matches!(arg.s.as_str(), "-c" | "--cmd") {
            args.get(at + 1).map(|next| next.s.as_str())
        } else {
            arg.s.strip_prefix('+').or_else(|| arg.s.strip_prefix("-c"))
        }
    })
}

fn typed(command: &ReducedCommand) -> impl Iterator<Item = &str> {
    let input = command.input.known.as_deref().unwrap_or_default();
    input.lines().map(str::trim_start)
}

fn vim_runs(text: &str) -> bool {
    let text = text.trim().trim_start_matches(':').trim_start();
    let text = text
        .strip_prefix("silent")
        .map_or(text, |rest| rest.trim_start_matches('!').trim_start());
    const STARTS: &[&str] = &[
        "!", "r!", "r !", "w !", "%!", "term", "py3", "py ", "python", "pyx", "perl ", "ruby ",
        "lua os", "lua io", "tcl ", "shell", "sh", "mzscheme",
    ];
    STARTS.iter().any(|start| text.starts_with(start))
        || [
            "system(",
            "systemlist(",
            "os.system",
            "os.execute",
            "jobstart(",
            "shell=",
            "termopen(",
            "source http",
            "so http",
        ]
        .iter()
        .any(|call| text.contains(call))
}

fn prompt_runs(line: &str) -> bool {
    let line = line.trim_start();
    const STARTS: &[&str] = &[
        "!",
        "~!",
        "r !",
        "w !",
        "e !",
        ".shell",
        ".system",
        ".load",
        ".output /",
        ".once /",
        "\\!",
        "system ",
        "shell ",
    ];
    STARTS.iter().any(|start| line.starts_with(start)) && !line.starts_with("!=")
}
