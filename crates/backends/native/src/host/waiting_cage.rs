//! A cage that was started and waits for its plan.
//!
//! What a program does before its first line is a good part of what a sandbox costs: where the
//! processor is a virtual one, asking it about itself takes half a millisecond. So the cage is
//! started first, and what the host has to make and write down is made meanwhile.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hermetic_sandbox::BackendError;
use hermetic_sandbox::host::InsideProgram;

use super::inner_death::InnerStderr;
use crate::control_socket::ControlSocket;

/// A cage that holds nothing and has been told nothing. Dropped, it ends.
#[derive(Debug)]
pub(super) struct WaitingCage {
    parts: Option<(ControlSocket, Child)>,
    /// Nothing where its stderr is somebody else's.
    stderr: Option<InnerStderr>,
    /// The process that ends the outer container it stands in.
    keeper: Option<ContainerKeeper>,
}

/// The process that ends the outer container when the cage has ended. It ends by itself and is our child.
#[derive(Debug)]
pub(super) struct ContainerKeeper(Child);

impl WaitingCage {
    /// Starts a cage by a plain spawn: no fork of a process with threads, and nothing inherited but the control
    /// socket.
    pub(super) fn start(program: &InsideProgram) -> Result<Self, BackendError> {
        let (control, end) = ControlSocket::pair()
            .map_err(|source| BackendError::failed("make the control socket", source))?;
        let (stderr, theirs) = InnerStderr::pipe()
            .map_err(|source| BackendError::failed("make a pipe for the cage", source))?;
        let child = spawn(program, &[], Stdio::from(end), Stdio::null(), theirs)?;
        Ok(Self {
            parts: Some((control, child)),
            stderr: Some(stderr),
            keeper: None,
        })
    }

    /// A cage that connected from within an outer container; the child is who made that container.
    pub(super) fn in_container(
        control: ControlSocket,
        maker: Child,
        keeper: Option<ContainerKeeper>,
    ) -> Self {
        Self {
            parts: Some((control, maker)),
            stderr: None,
            keeper,
        }
    }

    /// Tells whether it still lives: somebody else may have ended it meanwhile.
    fn lives(&mut self) -> bool {
        let child = self.parts.as_mut().map(|(_, child)| child);
        child.is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    pub(super) fn into_parts(
        mut self,
    ) -> (
        ControlSocket,
        Child,
        Option<InnerStderr>,
        Option<ContainerKeeper>,
    ) {
        let (control, child) = self
            .parts
            .take()
            .expect("the parts are only taken here, and here takes self");
        (control, child, self.stderr.take(), self.keeper.take())
    }
}

impl Drop for WaitingCage {
    fn drop(&mut self) {
        if let Some((control, mut child)) = self.parts.take() {
            // Closed first: this is what a cage that waits for its plan ends by, and waiting for it
            // would last for ever.
            drop(control);
            let _ = child.wait();
        }
    }
}

/// When the first process of a sandbox is started: as a rule, when the sandbox is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyStart {
    Never,
    /// For one who is about to create a sandbox: at once.
    Once,
    /// For one who goes on creating them: after each creation, for the next.
    Always,
}

/// A cage that nobody has asked for yet, where one is expected to be needed.
#[derive(Debug)]
pub(super) struct EarlyCage {
    when: EarlyStart,
    cage: Mutex<Option<WaitingCage>>,
}

impl EarlyCage {
    pub(super) fn new(when: EarlyStart) -> Self {
        Self {
            when,
            cage: Mutex::new(None),
        }
    }

    /// Whether there is to be one at any time from the first creation on.
    pub(super) fn is_kept_ready(&self) -> bool {
        self.when == EarlyStart::Always
    }

    /// Where none can be started nothing is said: whoever needs one tries again and hears why.
    pub(super) fn start(&self, program: &InsideProgram) {
        if self.held().is_some() {
            return;
        }
        // Not under the lock: whoever needs one now need not wait for one that comes later.
        let started = WaitingCage::start(program).ok();
        let surplus = {
            let mut held = self.held();
            match held.is_some() {
                true => started,
                false => std::mem::replace(&mut *held, started),
            }
        };
        // Outside of the lock as well: it waits for the process.
        drop(surplus);
    }

    /// Returns the cage that waits, or a new one.
    pub(super) fn take_or_start(
        &self,
        program: &InsideProgram,
    ) -> Result<WaitingCage, BackendError> {
        let mut early = self.held().take();
        // It may have waited for days, and somebody may have ended it.
        match early.take_if(WaitingCage::lives) {
            Some(early) => Ok(early),
            None => WaitingCage::start(program),
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<WaitingCage>> {
        self.cage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a process may take from being started to executing its program, on a busy machine.
const FILE_BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a keeper may take to end: it has one signal to send.
const KEEPER_EXIT_TIMEOUT: Duration = Duration::from_secs(2);

impl ContainerKeeper {
    /// Waits for the one to end and then ends the other, whoever of us is still there.
    pub(super) fn start(
        program: &InsideProgram,
        cage: OwnedFd,
        container: OwnedFd,
    ) -> Result<Self, BackendError> {
        let stderr = Stdio::null();
        spawn(
            program,
            &["--keeper"],
            cage.into(),
            container.into(),
            stderr,
        )
        .map(Self)
    }

    /// Collects it, for one who knows that the cage has ended.
    pub(super) fn reap(mut self) {
        let deadline = Instant::now() + KEEPER_EXIT_TIMEOUT;
        // Bounded, and never killed: one that is late still does its work, and only stays in the
        // process table until then.
        while matches!(self.0.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn spawn(
    program: &InsideProgram,
    words: &[&str],
    stdin: Stdio,
    stdout: Stdio,
    stderr: Stdio,
) -> Result<Child, BackendError> {
    let mut command = Command::new(program.path());
    command
        .arg0("hermetic-cage")
        .arg("cage")
        .args(words)
        // Nothing of the gateway's environment, which holds its keys, gets near a sandbox.
        .env_clear()
        .current_dir("/")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    spawn_when_written(&mut command).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => BackendError::Unavailable {
            what: "the kernel does not let a memory file be executed".to_owned(),
            remedy: "sysctl vm.memfd_noexec=0".to_owned(),
        },
        _ => BackendError::failed("start the cage", source),
    })
}

/// A process that another thread starts while the program's file is written holds that open for writing until
/// it executes something else, and the kernel refuses to execute the file meanwhile.
fn spawn_when_written(command: &mut Command) -> io::Result<Child> {
    let deadline = Instant::now() + FILE_BUSY_TIMEOUT;
    loop {
        match command.spawn() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            spawned => return spawned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermetic_sandbox::host::ProcessHandle;
    use rustix::process::{Pid, Signal, kill_process};

    fn program() -> InsideProgram {
        InsideProgram::seal(hermetic_embedded::WARDEN).unwrap()
    }

    fn pid(cage: &WaitingCage) -> i32 {
        cage.parts.as_ref().unwrap().1.id().cast_signed()
    }

    #[test]
    fn one_is_kept_ready_and_handed_out_once() {
        let (program, early) = (program(), EarlyCage::new(EarlyStart::Always));
        early.start(&program);
        let first = pid(early.held().as_ref().unwrap());
        early.start(&program);
        assert_eq!(pid(early.held().as_ref().unwrap()), first);

        let taken = early.take_or_start(&program).unwrap();
        let other = early.take_or_start(&program).unwrap();
        assert_eq!(pid(&taken), first);
        assert_ne!(pid(&other), first);
        assert!(early.held().is_none());
    }

    /// Nothing is sent to it: the end of the control socket is all that it hears.
    #[test]
    fn one_that_nobody_needed_ends_with_its_holder() {
        let (program, early) = (program(), EarlyCage::new(EarlyStart::Once));
        early.start(&program);
        let waited = pid(early.held().as_ref().unwrap());
        assert!(ProcessHandle::observe(waited).is_some());
        drop(early);
        assert!(ProcessHandle::observe(waited).is_none());
    }

    #[test]
    fn one_that_somebody_ended_is_not_handed_out() {
        let (program, early) = (program(), EarlyCage::new(EarlyStart::Always));
        early.start(&program);
        let ended = pid(early.held().as_ref().unwrap());
        kill_process(Pid::from_raw(ended).unwrap(), Signal::KILL).unwrap();
        // It may take a moment to die; until then it passes for alive.
        while early.held().as_mut().unwrap().lives() {
            thread::yield_now();
        }
        let mut taken = early.take_or_start(&program).unwrap();
        assert_ne!(pid(&taken), ended);
        assert!(taken.lives());
    }
}
