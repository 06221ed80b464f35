//! One bash process and the descriptors it is spoken to by.
//!
//! It is interactive (`-i`), because then SIGINT throws it back to its top level instead of ending
//! it: a command can be interrupted and the shell's state is kept. It has no terminal and no job
//! control; its own stdout and stderr are `/dev/null`, so neither prompts nor complaints about the
//! missing terminal reach any output.
//!
//! For each command it gets two constant lines on its stdin. The first sources [`EVALUATE`], a
//! small file in memory, which reads the text from another such file and evaluates it; sourcing
//! rather than evaluating on the line itself keeps an interactive bash from printing `exit` when
//! the command is `exit`. The second line, which is read whatever became of the first, tells the
//! status.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hermetic_types::RunId;
use rustix::fs::{MemfdFlags, SealFlags, SeekFrom, fcntl_add_seals, ftruncate, memfd_create, seek};
use rustix::io::{Errno, ioctl_fionread, pwrite};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use tokio::io::unix::AsyncFd;

use crate::protocol::frame::FrameKind;
use crate::protocol::{ByteString, FailureKind, WardenFailure};
use crate::serve::output::OutputSource;
use crate::serve::process_tree::ProcessTree;
use crate::serve::state::{StartRequest, WardenState, system};
use crate::serve::sys::watch;
use crate::serve::tree;

/// Numbers that scripts leave alone: 0 to 9 are theirs, and bash itself takes those from 10.
const EVALUATOR: i32 = 60;
const TEXT: i32 = 61;
const OUTPUT: i32 = 62;
const STATUS: i32 = 63;

/// Backslashes keep aliases out, `builtin` keeps functions out.
const EVALUATE: &[u8] = b"IFS= \\builtin read -r -d '' -u 61 __hermetic && \
\\builtin eval \"$__hermetic\" </dev/null >&62 2>&1 60<&- 61<&- 62>&- 63>&-\n";

/// No history, no looking for mail, no prompts to expand.
const PREPARE: &[u8] = b" \\set +o history; \\unset -v HISTFILE MAILCHECK; PS1= PS2=\n";

/// A bash that evaluates one command after the other, and the descriptors to it.
#[derive(Debug)]
pub(super) struct BashProcess {
    pub(super) processes: Rc<ProcessTree>,
    pub(super) output: OutputSource,
    /// Processes that earlier commands left in the background.
    pub(super) earlier: HashSet<u32>,
    lines: OwnedFd,
    text: OwnedFd,
    status: AsyncFd<OwnedFd>,
    unparsed: Vec<u8>,
    /// The present command's name on the status channel. Nobody can foresee it, so a command cannot
    /// leave a status for the next one.
    command: String,
}

impl BashProcess {
    pub(super) fn start(
        warden: &WardenState,
        cwd: Option<&ByteString>,
    ) -> Result<Self, WardenFailure> {
        let failed = |error: Errno| system("prepare a shell", &error.into());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let evaluator = memfd_create("evaluate", flags).map_err(failed)?;
        pwrite(&evaluator, EVALUATE, 0).map_err(failed)?;
        // A command can open the shell's descriptors; it must not change what the next one goes by.
        fcntl_add_seals(
            &evaluator,
            SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
        )
        .map_err(failed)?;
        // Not sealed, as each command's text is written into it.
        let text = memfd_create("command", MemfdFlags::CLOEXEC).map_err(failed)?;
        let (stdin, lines) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        let (status, status_theirs) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
        // A shell that reads nothing must not hold up the warden's one thread.
        rustix::io::ioctl_fionbio(&lines, true).map_err(failed)?;
        rustix::io::ioctl_fionbio(&status, true).map_err(failed)?;
        let (output, output_theirs) = OutputSource::pipe(FrameKind::Out)
            .map_err(|error| system("prepare a shell", &error))?;
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
        let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty());
        let null = null.map_err(failed)?;

        let processes = warden.start(&StartRequest {
            argv: &["bash", "--norc", "--noprofile", "--noediting", "+H", "-i"].map(Into::into),
            env: &[],
            cwd,
            descriptors: vec![
                (stdin.as_fd(), 0),
                (null.as_fd(), 1),
                (null.as_fd(), 2),
                (evaluator.as_fd(), EVALUATOR),
                (text.as_fd(), TEXT),
                (output_theirs.as_fd(), OUTPUT),
                (status_theirs.as_fd(), STATUS),
            ],
            terminal: false,
        })?;
        let bash = Self {
            processes,
            output,
            earlier: HashSet::new(),
            lines,
            text,
            status: watch(status).map_err(|error| system("prepare a shell", &error))?,
            unparsed: Vec::new(),
            command: String::new(),
        };
        // It waits in the pipe and is read before the first command, whenever bash is ready.
        bash.line(PREPARE).map_err(failed)?;
        Ok(bash)
    }

    /// Whether there really is a bash.
    pub(super) async fn started(&self) -> Result<u32, WardenFailure> {
        self.processes
            .started()
            .await
            .map_err(|failure| match failure.kind {
                FailureKind::ProgramNotFound => WardenFailure {
                    kind: FailureKind::NoShell,
                    errno: failure.errno,
                    text: "bash is not installed here, and the persistent shell needs it".into(),
                },
                _ => failure,
            })
    }

    pub(super) fn is_alive(&self) -> bool {
        self.processes.exit().is_none()
    }

    /// Hands over a command.
    pub(super) fn submit(&mut self, text: &[u8]) -> Result<(), Errno> {
        self.command = RunId::random().to_string();
        // Or the rest of a longer command before it would follow this one.
        ftruncate(&self.text, 0)?;
        let mut written = 0;
        while written < text.len() {
            written += pwrite(&self.text, &text[written..], written as u64)?;
        }
        pwrite(&self.text, &[0], written as u64)?;
        // Both sides share the position.
        seek(&self.text, SeekFrom::Start(0))?;
        // Both lines in one write: a command that ends bash's reading must not leave the question
        // for its status behind.
        self.line(format!(" \\builtin . /proc/self/fd/{EVALUATOR}\n{}", self.ask()).as_bytes())
    }

    /// Asks for the status again, for a shell that an interrupt kept from telling it.
    pub(super) fn ask_again(&self) {
        // A shell that is gone does not read it.
        let _ = self.line(self.ask().as_bytes());
    }

    fn ask(&self) -> String {
        let command = &self.command;
        format!(" \\builtin printf '%s %s\\n' {command} \"$?\" >&{STATUS}\n")
    }

    /// Whether everything it was told has been read.
    pub(super) fn has_read_all(&self) -> bool {
        ioctl_fionread(&self.lines).is_ok_and(|waiting| waiting == 0)
    }

    /// The status of the command that was submitted last.
    pub(super) fn poll_status(&mut self, cx: &mut Context<'_>) -> Poll<i32> {
        loop {
            if let Some(status) = self.parse_status() {
                return Poll::Ready(status);
            }
            let mut bytes = [0; 256];
            match rustix::io::read(self.status.as_fd(), &mut bytes) {
                Ok(length) if length > 0 => self.unparsed.extend_from_slice(&bytes[..length]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => match ready!(self.status.poll_read_ready(cx)) {
                    Ok(mut ready) => ready.clear_ready(),
                    Err(_) => return Poll::Pending,
                },
                // Closed: it is about to end, and that is told elsewhere.
                Ok(_) | Err(_) => return Poll::Pending,
            }
        }
    }

    fn parse_status(&mut self) -> Option<i32> {
        // Nothing of ours is that long.
        if self.unparsed.len() > 1024 {
            // A command can write here. What it writes is thrown away, but must not be collected.
            self.unparsed.clear();
        }
        while let Some(end) = self.unparsed.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unparsed.drain(..=end).collect();
            let told = str::from_utf8(&line).ok().and_then(|line| {
                let (command, status) = line.trim_end().split_once(' ')?;
                (command == self.command)
                    .then(|| status.parse().ok())
                    .flatten()
            });
            if told.is_some() {
                return told;
            }
        }
        None
    }

    pub(super) fn cwd(&self) -> Option<ByteString> {
        let link = std::fs::read_link(format!("/proc/{}/cwd", self.processes.pid()?)).ok()?;
        Some(link.into())
    }

    /// What the present command has started.
    pub(super) fn newer(&self) -> Vec<tree::FoundProcess> {
        let own = self.processes.pid();
        let mut found = tree::below(self.processes.keeper, &self.earlier);
        found.retain(|found| Some(found.pid) != own);
        found
    }

    /// From here on, what runs now belongs to an earlier command.
    pub(super) fn settle(&mut self) {
        self.earlier.clear();
        self.earlier = self.newer().into_iter().map(|found| found.pid).collect();
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.processes.pid() {
            tree::signal_child(pid, self.processes.keeper, signal);
        }
    }

    fn line(&self, line: &[u8]) -> Result<(), Errno> {
        rustix::io::write(&self.lines, line).map(drop)
    }
}
