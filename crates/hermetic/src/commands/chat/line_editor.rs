//! Typing at a terminal: lines that can be edited at the prompt, and plain ones while a turn works.
//!
//! The editor takes the terminal for itself, so it runs only while somebody is at the prompt. During a turn the
//! terminal is as it was: Ctrl-C is a signal, and what is typed ahead is heard afterwards. One thread does both,
//! because only one may read.

use std::fs::OpenOptions;
use std::io::{IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::stdio::stdin;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{DefaultHistory, History as _};
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};
use tokio::sync::mpsc;

use super::person::PersonInput;
use super::typed::COMMANDS;

/// What stands before a line.
pub(super) const PROMPT: &str = "› ";

/// Lines that are remembered.
const MOST_REMEMBERED: usize = 1000;
/// Of one line. What is longer is cut.
const MOST_LINE_BYTES: usize = 1 << 20;

/// Asks the thread that reads for an edited line.
pub(super) struct LineEditor {
    wake: PipeWriter,
    shared: Arc<EditorCounts>,
    heard: u64,
    /// Asked for, and not answered yet.
    is_asked: bool,
}

/// What each side has done, so that a line that was typed ahead answers the question for one.
#[derive(Default)]
struct EditorCounts {
    /// Lines given out when an edited one was asked for last.
    asked_at: AtomicU64,
}

/// Whether somebody sits at a terminal that lines can be edited in.
pub(super) fn is_possible() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb
}

impl LineEditor {
    /// The editor and what is typed, or why there is none.
    pub(super) fn start(history: PathBuf) -> std::io::Result<(Self, mpsc::Receiver<PersonInput>)> {
        let (wakes, wake) = std::io::pipe()?;
        let (typed, inputs) = mpsc::channel(64);
        let shared = Arc::new(EditorCounts::default());
        let counts = Arc::clone(&shared);
        // The editor is made where it is used: what it holds of the terminal stays in one thread.
        let (made, is_made) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let editor = match editor(&history) {
                Ok(editor) => editor,
                Err(error) => {
                    let _ = made.send(Err(std::io::Error::other(error.to_string())));
                    return;
                }
            };
            let _ = made.send(Ok(()));
            let reader = TerminalReader {
                editor,
                history,
                wakes,
                typed,
                shared: counts,
                said: 0,
                unfinished: Vec::new(),
            };
            reader.run();
        });
        is_made.recv().map_err(std::io::Error::other)??;
        let editor = Self {
            wake,
            shared,
            heard: 0,
            is_asked: false,
        };
        Ok((editor, inputs))
    }

    /// The next line is to be edited, unless one was typed already.
    pub(super) fn ask(&mut self) {
        if self.is_asked {
            return;
        }
        self.is_asked = true;
        // Before the wake-up: who is woken compares with it at once.
        self.shared.asked_at.store(self.heard, Ordering::SeqCst);
        // Fails where the reader has ended, which its channel tells.
        let _ = self.wake.write_all(b"?");
    }

    /// A line has come.
    pub(super) fn heard(&mut self) {
        self.heard += 1;
        self.is_asked = false;
    }
}

/// The thread's side.
struct TerminalReader {
    editor: Editor<SlashHelper, DefaultHistory>,
    history: PathBuf,
    wakes: PipeReader,
    typed: mpsc::Sender<PersonInput>,
    shared: Arc<EditorCounts>,
    /// Lines given out.
    said: u64,
    /// Of a plain line.
    unfinished: Vec<u8>,
}

impl TerminalReader {
    fn run(mut self) {
        while self.step().is_some() {}
    }

    /// Nothing where there is no more to come.
    fn step(&mut self) -> Option<()> {
        let (has_input, is_asked) = {
            let mut wanted = [
                PollFd::from_borrowed_fd(stdin(), PollFlags::IN),
                PollFd::new(&self.wakes, PollFlags::IN),
            ];
            match poll(&mut wanted, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => return Some(()),
                Err(_) => return None,
            }
            let [input, wake] = wanted;
            (!input.revents().is_empty(), !wake.revents().is_empty())
        };
        // Before the input: what the terminal has now is a part of the line that is to be edited.
        if is_asked {
            self.wakes.read_exact(&mut [0]).ok()?;
            // What was typed during the turn and nobody has heard yet is the answer.
            let is_answered = self.said > self.shared.asked_at.load(Ordering::SeqCst);
            return if is_answered { Some(()) } else { self.edit() };
        }
        if has_input {
            self.read_plainly()
        } else {
            Some(())
        }
    }

    fn edit(&mut self) -> Option<()> {
        match self.editor.readline(PROMPT) {
            Ok(line) => {
                self.remember(&line);
                self.give(PersonInput::Line(line))
            }
            Err(ReadlineError::Interrupted) => self.give(PersonInput::Interrupt),
            Err(_) => {
                let _ = self.typed.blocking_send(PersonInput::End);
                None
            }
        }
    }

    /// What the terminal has, as it hands it out: by lines.
    fn read_plainly(&mut self) -> Option<()> {
        let mut piece = [0; 4096];
        let read = match rustix::io::read(stdin(), &mut piece) {
            Ok(read) => read,
            Err(rustix::io::Errno::INTR) => return Some(()),
            Err(_) => 0,
        };
        if read == 0 {
            let _ = self.typed.blocking_send(PersonInput::End);
            return None;
        }
        self.unfinished.extend_from_slice(&piece[..read]);
        self.unfinished.truncate(MOST_LINE_BYTES);
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            self.give(PersonInput::Line(line))?;
        }
        Some(())
    }

    fn give(&mut self, input: PersonInput) -> Option<()> {
        self.said += 1;
        self.typed.blocking_send(input).ok()
    }

    /// A history that cannot be kept costs nobody a conversation.
    fn remember(&mut self, line: &str) {
        if matches!(self.editor.add_history_entry(line), Ok(true)) {
            let _ = self.editor.append_history(&self.history);
        }
    }
}

fn editor(history: &Path) -> rustyline::Result<Editor<SlashHelper, DefaultHistory>> {
    let config = Config::builder()
        .max_history_size(MOST_REMEMBERED)?
        .history_ignore_dups(true)?
        // For what should not be remembered.
        .history_ignore_space(true)
        .bracketed_paste(true)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(SlashHelper));
    make_private(history)?;
    let _ = editor.load_history(history);
    debug_assert!(editor.history().len() <= MOST_REMEMBERED);
    Ok(editor)
}

/// Whoever types may type a secret: nobody else reads the file.
fn make_private(history: &Path) -> std::io::Result<()> {
    if let Some(folder) = history.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(history)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// Completes what begins with a slash.
struct SlashHelper;

impl Completer for SlashHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = line.get(..at).unwrap_or_default();
        let known = COMMANDS.iter().map(|(name, _)| format!("{name} "));
        let fits = |name: &String| begun.starts_with('/') && name.starts_with(begun);
        Ok((0, known.filter(fits).collect()))
    }
}

impl Hinter for SlashHelper {
    type Hint = String;
}

impl Highlighter for SlashHelper {}
impl Validator for SlashHelper {}
impl Helper for SlashHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed_and_sentences_are_not() {
        let history = DefaultHistory::new();
        let complete = |line: &str| {
            let completed = SlashHelper.complete(line, line.len(), &Context::new(&history));
            completed.unwrap().1
        };
        assert_eq!(complete("/de"), ["/destroy "]);
        assert_eq!(complete("/sta"), ["/status "]);
        assert!(complete("/").len() > 5);
        for line in ["", "sh", "say /de", "/sh ls", "/nothing"] {
            assert!(complete(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn the_history_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/history");
        make_private(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        make_private(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
