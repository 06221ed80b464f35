//! The programs of ours that run in a sandbox without being judged.
//!
//! Nobody typed them and no model wrote them: what runs is fixed here, and so is how long it may take.
//! What varies is data for it, which no shell looks at: numbers, bytes on its standard input, and the
//! words of a question to the program that every sandbox has.

use std::fmt::Write as _;
use std::time::Duration;

use hermetic_types::{Command, CommandInput, CommandProgram};

/// A program of ours, for [`Cleared::own_program`](crate::Cleared::own_program).
///
/// There is no way to put a command of somebody else into one:
///
/// ```compile_fail,E0308
/// use hermetic_policy::{Cleared, OwnProgram};
/// use hermetic_types::Command;
///
/// let cleared = Cleared::own_program(Command::script("rm -r /"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnProgram {
    /// Looks through files. The words are a query as `hermetic-search` writes it; it opens files to
    /// read them and starts nothing.
    Search(Vec<Vec<u8>>),
    /// Says whether the text is well-formed.
    CheckSyntax { of: CheckedSyntax, text: String },
    /// Tries to get out of the sandbox it is in. The words are an order as `hermetic-attack` writes it.
    Attack(Vec<String>),
    /// Tries every way into the network.
    ProbeEgress(EgressProbe),
    /// Prints the environment of a command and that of the first process.
    ShowEnvironments,
    /// Leaves processes that hide from the end of their command.
    HideFromTimeout,
    /// Prints the command line of every process there is.
    ListProcesses,
    /// Reckons, so that no echo of the command can pass for its output.
    Reckon,
    /// Does in the workspace what commands do there.
    UseWorkspace,
    /// Keeps a copy of the workspace beside it, for a turn that may be taken back.
    KeepWorkspace(WorkspaceCopy),
    /// Puts that copy back, and what is there now aside.
    BringBackWorkspace(WorkspaceCopy),
    /// Writes the files that the sandbox keeps, as an archive.
    PackFiles,
    /// Puts the files of such an archive, from its standard input, where they were.
    UnpackFiles,
    /// Writes more than a mebibyte into the workspace, in two files: a limit on one is none on their sum.
    OverfillWorkspace,
}

/// A copy of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceCopy {
    /// The path of the workspace inside. Nothing happens anywhere else.
    pub workspace: String,
    /// The message whose turn it is for.
    pub turn: i64,
}

/// What a text is checked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedSyntax {
    Python,
    Toml,
    Yaml,
}

/// What the program that tries every way out is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressProbe {
    /// The proxy's port, where there is one.
    pub proxy: Option<u16>,
    /// Where a server of ours listens outside.
    pub origin: u16,
    /// Which setting leaves the network closed.
    pub closed_by: &'static str,
    /// The first bytes of TLS for a host that may be reached.
    pub right_hello: Vec<u8>,
    /// And for one that may not.
    pub wrong_hello: Vec<u8>,
}

/// As long as anybody waits for results.
const SEARCH: Duration = Duration::from_secs(60);
const SYNTAX: Duration = Duration::from_secs(5);
/// Long for what is bounded in size.
const COPY: Duration = Duration::from_secs(30);
const ATTACK: Duration = Duration::from_secs(120);
/// For as much as a sandbox may keep, over a slow link.
const PACKING: Duration = Duration::from_secs(4 * 3600);
/// A machine that swaps takes long over a millisecond's work.
const TRIAL: Duration = Duration::from_secs(20);
/// Just long enough for the processes to hide.
const HIDING: Duration = Duration::from_millis(300);

impl OwnProgram {
    pub(crate) fn into_command(self) -> Command {
        match self {
            Self::Search(words) => inside("search", words, SEARCH),
            Self::Attack(words) => {
                let words = words.into_iter().map(String::into_bytes).collect();
                inside("attack", words, ATTACK)
            }
            Self::CheckSyntax { of, text } => {
                let words = [
                    "python3",
                    "-I",
                    "-c",
                    include_str!("own_program/lint.py"),
                    of.name(),
                ];
                let mut command = within(SYNTAX, Command::words(words));
                command.stdin = CommandInput::Bytes(text.into_bytes());
                command
            }
            Self::ProbeEgress(probe) => probe.into_command(),
            Self::ShowEnvironments => sh(
                "cat /proc/self/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n'",
                TRIAL,
            ),
            Self::HideFromTimeout => sh(
                "(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 987; done' &) ; \
                 sh -c 'trap \"\" TERM; while :; do sleep 987; done'",
                HIDING,
            ),
            Self::ListProcesses => sh(
                "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done",
                TRIAL,
            ),
            Self::Reckon => sh("echo $((6 * 7))", TRIAL),
            Self::KeepWorkspace(copy) => inside("keep-workspace", copy.words(), COPY),
            Self::BringBackWorkspace(copy) => copy.bring_back(),
            Self::PackFiles => sh(include_str!("own_program/pack_files.sh"), PACKING),
            Self::UnpackFiles => {
                let mut command = sh(include_str!("own_program/unpack_files.sh"), PACKING);
                command.stdin = CommandInput::Open;
                command
            }
            Self::UseWorkspace => sh(
                "cd /workspace && echo done >trial && cat trial && rm trial && cd \"$HOME\"",
                TRIAL,
            ),
            Self::OverfillWorkspace => sh(
                "cd /workspace; for file in one two; do \
                 head -c 786432 /dev/zero 2>/dev/null >$file || echo stopped; done",
                TRIAL,
            ),
        }
    }
}

impl WorkspaceCopy {
    /// A workspace that is larger, in kilobytes or in files, is not copied: each turn would wait for it.
    pub const MOST_KILOBYTES: u32 = 64 << 10;
    pub const MOST_ENTRIES: u32 = 5000;

    /// A program, because every turn that may write waits for it: a script takes a dozen processes.
    fn words(self) -> Vec<Vec<u8>> {
        let numbers = [
            self.turn,
            Self::MOST_KILOBYTES.into(),
            Self::MOST_ENTRIES.into(),
        ];
        let numbers = numbers.map(|number| number.to_string().into_bytes());
        [self.workspace.into_bytes()]
            .into_iter()
            .chain(numbers)
            .collect()
    }

    /// The script with what varies as its words.
    fn bring_back(self) -> Command {
        let words = [
            "/bin/sh".to_owned(),
            "-c".to_owned(),
            include_str!("own_program/bring_back_workspace.sh").to_owned(),
            "sh".to_owned(),
            self.workspace,
            self.turn.to_string(),
        ];
        within(COPY, Command::words(words))
    }
}

impl CheckedSyntax {
    fn name(self) -> &'static str {
        match self {
            Self::Python => "py",
            Self::Toml => "toml",
            Self::Yaml => "yaml",
        }
    }
}

impl EgressProbe {
    fn into_command(self) -> Command {
        let script = include_str!("own_program/probe.sh");
        let mut command = within(ATTACK, Command::words(["bash", "-c", script]));
        let proxy = self.proxy.map(|port| port.to_string());
        command.env = [
            ("PROXY", proxy.unwrap_or_default()),
            ("CLOSED_BY", self.closed_by.to_owned()),
            ("ORIGIN", self.origin.to_string()),
            ("WRONG_HELLO", escaped(&self.wrong_hello)),
            ("RIGHT_HELLO", escaped(&self.right_hello)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        command
    }
}

fn inside(role: &'static str, words: Vec<Vec<u8>>, timeout: Duration) -> Command {
    let mut command = within(timeout, Command::words([""; 0]));
    command.program = CommandProgram::Inside { role, words };
    command
}

fn sh(script: &'static str, timeout: Duration) -> Command {
    within(timeout, Command::words(["/bin/sh", "-c", script]))
}

fn within(timeout: Duration, mut command: Command) -> Command {
    command.timeout = Some(timeout);
    command
}

/// As `printf` reads it.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        let _ = write!(text, "\\x{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::os::unix::ffi::OsStringExt as _;
    use std::path::Path;

    use hermetic_workspace_copy::CopyRequest;

    use super::*;
    use crate::{Cleared, ClearedGrounds};

    #[test]
    fn what_varies_is_never_read_by_a_shell() {
        let harm = "; rm -rf / #";
        let check = OwnProgram::CheckSyntax {
            of: CheckedSyntax::Toml,
            text: harm.to_owned(),
        };
        let programs = [
            OwnProgram::Search(vec![harm.into()]),
            OwnProgram::Attack(vec![harm.to_owned()]),
            check,
        ];
        for program in programs {
            let cleared = Cleared::own_program(program);
            assert_eq!(cleared.grounds(), &ClearedGrounds::OwnProgram);
            match &cleared.command().program {
                CommandProgram::Inside { .. } => {}
                CommandProgram::Words(words) => {
                    assert!(!words.iter().any(|word| word.contains(harm)));
                }
                shell => panic!("{shell:?}"),
            }
        }
    }

    fn copy(turn: i64, workspace: &str) -> WorkspaceCopy {
        WorkspaceCopy {
            workspace: workspace.to_owned(),
            turn,
        }
    }

    /// Runs one of ours in a folder that stands for a workspace.
    fn run(folder: &Path, program: OwnProgram) -> Option<i32> {
        let words = match program.into_command().program {
            CommandProgram::Inside { role, words } => {
                assert_eq!(role, hermetic_workspace_copy::ROLE);
                let words = words.into_iter().map(OsString::from_vec);
                let request = CopyRequest::of_words(words).unwrap();
                return Some(
                    hermetic_workspace_copy::keep(folder, &request)
                        .code()
                        .into(),
                );
            }
            CommandProgram::Words(words) => words,
            other => panic!("{other:?}"),
        };
        let mut command = std::process::Command::new(&words[0]);
        let ended = command.args(&words[1..]).current_dir(folder).status();
        ended.unwrap().code()
    }

    /// Names, links and contents below a folder, without what is ours.
    fn tree(folder: &Path) -> Vec<String> {
        let script = "find . -path ./.hermetic-undo -prune -o -print | sort | while read -r name; do \
            if [ -L \"$name\" ]; then echo \"$name -> $(readlink \"$name\")\"; \
            elif [ -f \"$name\" ]; then echo \"$name: $(cat \"$name\")\"; else echo \"$name/\"; fi; done";
        let mut command = std::process::Command::new("sh");
        let told = command.args(["-c", script]).current_dir(folder).output();
        let told = String::from_utf8(told.unwrap().stdout).unwrap();
        told.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_workspace_comes_back_as_it_was_and_links_out_of_it_are_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (outer, path) = (outside.path(), folder.path().canonicalize().unwrap());
        fs::write(outer.join("precious"), "outside").unwrap();
        fs::create_dir_all(path.join("src/.hidden")).unwrap();
        fs::write(path.join("src/a b.txt"), "one").unwrap();
        fs::write(path.join("-rf"), "an odd name").unwrap();
        std::os::unix::fs::symlink(outer, path.join("way out")).unwrap();
        std::os::unix::fs::symlink("nowhere", path.join(".dangling")).unwrap();
        let before = tree(&path);
        let workspace = path.to_str().unwrap();
        let keep = |turn| OwnProgram::KeepWorkspace(copy(turn, workspace));
        let bring_back = |turn| OwnProgram::BringBackWorkspace(copy(turn, workspace));
        assert_eq!(run(&path, keep(7)), Some(0));
        assert_eq!(tree(&path), before);
        fs::remove_dir_all(path.join("src")).unwrap();
        fs::write(path.join("-rf"), "other").unwrap();
        fs::write(path.join("new"), "new").unwrap();
        assert_eq!(
            run(&path, keep(7)),
            Some(0),
            "the first copy of a turn counts"
        );
        assert_eq!(run(&path, bring_back(8)), Some(6), "of another turn");
        assert_eq!(run(&path, bring_back(7)), Some(0));
        assert_eq!(tree(&path), before);
        let undone = path.join(".hermetic-undo/undone");
        assert_eq!(fs::read_to_string(undone.join("new")).unwrap(), "new");
        assert_eq!(run(&path, bring_back(7)), Some(6), "once");
        let outside: Vec<_> = fs::read_dir(outer).unwrap().collect();
        assert_eq!(outside.len(), 1, "{outside:?}");
    }

    /// Runs one of ours and kills it within its call of `mv` with this number, when that has moved one entry.
    fn cut(folder: &Path, program: OwnProgram, at: usize) -> bool {
        use std::os::unix::fs::PermissionsExt as _;
        use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
        const MV: &str = r#"#!/bin/sh
PATH=${PATH#*:}
echo x >>"$COUNT"
[ "$(wc -l <"$COUNT")" -eq "$AT" ] || exec mv "$@"
if [ "$1" = -n ]; then one=$3; for to; do :; done; mv -n -- "$one" "$to"; else mv "$@"; fi
kill -9 0
"#;
        let CommandProgram::Words(words) = program.into_command().program else {
            panic!("words");
        };
        let shadow = tempfile::tempdir().unwrap();
        let mv = shadow.path().join("mv");
        fs::write(&mv, MV).unwrap();
        fs::set_permissions(&mv, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = std::process::Command::new(&words[0]);
        let command = command.args(&words[1..]).current_dir(folder);
        let command = command.env("PATH", format!("{}:{path}", shadow.path().display()));
        let command = command.env("COUNT", shadow.path().join("count"));
        let ended = command.env("AT", at.to_string()).process_group(0).status();
        ended.unwrap().signal() == Some(9)
    }

    #[test]
    fn an_undo_that_is_killed_at_any_step_loses_nothing_and_the_next_one_ends_it() {
        for at in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().canonicalize().unwrap();
            let workspace = path.to_str().unwrap();
            let keep = |turn| OwnProgram::KeepWorkspace(copy(turn, workspace));
            let bring_back = |turn| OwnProgram::BringBackWorkspace(copy(turn, workspace));
            for name in ["a", "b", ".c"] {
                fs::write(path.join(name), "first").unwrap();
            }
            let before = tree(&path);
            assert_eq!(run(&path, keep(7)), Some(0));
            for name in ["a", "b", "d"] {
                fs::write(path.join(name), "second").unwrap();
            }
            if !cut(&path, bring_back(7), at) {
                assert_eq!(at, 5, "all steps were tried");
                assert_eq!(tree(&path), before);
                break;
            }
            assert_eq!(run(&path, keep(8)), Some(5), "cut at {at}");
            assert_eq!(run(&path, bring_back(7)), Some(0), "cut at {at}");
            assert_eq!(tree(&path), before, "cut at {at}");
            let undone = path.join(".hermetic-undo/undone");
            for name in ["a", "b", "d"] {
                let text = fs::read_to_string(undone.join(name)).unwrap();
                assert_eq!(text, "second", "cut at {at}");
            }
            assert_eq!(run(&path, keep(8)), Some(0), "cut at {at}");
        }
    }

    #[test]
    fn what_came_since_an_undo_was_killed_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let workspace = path.to_str().unwrap();
        let bring_back = |turn| OwnProgram::BringBackWorkspace(copy(turn, workspace));
        for name in ["a", "b"] {
            fs::write(path.join(name), "first").unwrap();
        }
        let keep = OwnProgram::KeepWorkspace(copy(7, workspace));
        assert_eq!(run(&path, keep), Some(0));
        assert!(cut(&path, bring_back(7), 2), "one of two is aside");
        for name in ["a", "b"] {
            fs::write(path.join(name), "since").unwrap();
        }
        assert_eq!(run(&path, bring_back(9)), Some(7), "no copy, but mended");
        for name in ["a", "b"] {
            let text = fs::read_to_string(path.join(name)).unwrap();
            assert_eq!(text, "since");
        }
        let left: Vec<_> = fs::read_dir(path.join("undo-left-over-7"))
            .unwrap()
            .collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn only_a_workspace_of_bounded_size_is_copied_and_nothing_that_poses_as_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let workspace = path.to_str().unwrap();
        let keep = OwnProgram::KeepWorkspace(copy(1, workspace));
        let elsewhere = OwnProgram::KeepWorkspace(copy(1, "/elsewhere"));
        assert_eq!(run(&path, elsewhere), Some(3));
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("precious"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), path.join(".hermetic-undo")).unwrap();
        assert_eq!(run(&path, keep.clone()), Some(5));
        let back = OwnProgram::BringBackWorkspace(copy(1, workspace));
        assert_eq!(run(&path, back), Some(6));
        assert!(outside.path().join("precious").exists());
        fs::remove_file(path.join(".hermetic-undo")).unwrap();
        for name in 0..=WorkspaceCopy::MOST_ENTRIES {
            fs::write(path.join(name.to_string()), "").unwrap();
        }
        assert_eq!(run(&path, keep), Some(4));
        assert!(!path.join(".hermetic-undo").exists());
    }

    #[test]
    fn every_one_of_them_ends() {
        let probe = EgressProbe {
            proxy: Some(3128),
            origin: 1,
            closed_by: "nothing",
            right_hello: vec![0x16],
            wrong_hello: vec![0x16, 0x03],
        };
        let programs = [
            OwnProgram::ProbeEgress(probe),
            OwnProgram::ShowEnvironments,
            OwnProgram::HideFromTimeout,
            OwnProgram::ListProcesses,
            OwnProgram::Reckon,
            OwnProgram::UseWorkspace,
            OwnProgram::OverfillWorkspace,
            OwnProgram::KeepWorkspace(copy(1, "/workspace")),
            OwnProgram::BringBackWorkspace(copy(1, "/workspace")),
        ];
        for program in programs {
            let command = program.into_command();
            assert!(command.timeout.is_some(), "{command:?}");
        }
    }
}
