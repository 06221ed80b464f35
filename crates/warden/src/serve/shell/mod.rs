//! Persistent shells: one long-lived bash for each name.
//!
//! No marker ever travels within the output. The text of a command goes in by a descriptor of its
//! own, its status comes back by another, and both are closed while it is evaluated (see
//! [`bash`]). Each shell has one task that owns it: between commands it collects what background
//! jobs write, so that they never wait for a reader; the next command's output begins with it.

mod bash;
mod interrupt;
mod session;
mod usage;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tokio::sync::mpsc;
use tokio::task::spawn_local;

use super::client::OpenCall;
use super::known_run::{KnownRun, RunPlace};
use super::run::obey;
use super::state::{WardenState, bad_request};
use crate::protocol::{ByteString, FailureKind, ShellRequest, WardenFailure, WardenReply};
use session::{ShellJob, ShellOrder, ShellSession};

/// Shells that exist at once.
const MOST_SHELLS: usize = 64;

/// The persistent shells, by name.
#[derive(Debug, Default)]
pub(crate) struct ShellTable(RefCell<HashMap<String, ShellHandle>>);

/// The way to reach a shell, and the directory it was in after its last command.
#[derive(Clone, Debug)]
struct ShellHandle {
    orders: mpsc::Sender<ShellOrder>,
    place: Rc<RefCell<Option<ByteString>>>,
}

/// Runs text in the shell of that name and stays with the caller until either is gone.
pub(crate) async fn run(warden: &Rc<WardenState>, mut call: OpenCall, request: ShellRequest) {
    match begin(warden, &call, request) {
        Ok(run) => obey(&run, &mut call).await,
        Err(failure) => call.fail(&failure).await,
    }
}

/// Ends a shell, its jobs and all.
pub(crate) async fn kill(
    warden: &Rc<WardenState>,
    name: &str,
) -> Result<WardenReply, WardenFailure> {
    // Out of the table first: a command that comes now gets a new shell, and not a place behind the
    // end of this one.
    let Some(shell) = warden.shells.0.borrow_mut().remove(name) else {
        return Err(WardenFailure {
            kind: FailureKind::NoSuchRun,
            errno: None,
            text: format!("no shell {name:?}"),
        });
    };
    let (done, ended) = tokio::sync::oneshot::channel();
    if shell.orders.send(ShellOrder::End(done)).await.is_ok() {
        // An error means that the task is gone, and the shell with it.
        let _ = ended.await;
    }
    Ok(WardenReply::Done)
}

fn begin(
    warden: &Rc<WardenState>,
    call: &OpenCall,
    request: ShellRequest,
) -> Result<Rc<KnownRun>, WardenFailure> {
    if request.text.0.contains(&0) {
        return Err(bad_request("a NUL byte in the command"));
    }
    warden.runs.refuse_known(&request.id)?;
    let shell = warden.shells.enter(warden, &request.shell)?;
    let argv = vec![ByteString::from("bash"), request.text.clone()];
    let viewer = call.stream.clone();
    let run = Rc::new(KnownRun::new(
        request.id.clone(),
        argv,
        request.detach,
        RunPlace::Shell,
        viewer,
    ));
    let job = ShellJob {
        holder: call.holder,
        run: Rc::clone(&run),
        request,
    };
    // Room for one: who cannot be next is told so at once.
    shell
        .try_send(ShellOrder::Run(job))
        .map_err(|_| WardenFailure {
            kind: FailureKind::ShellBusy,
            errno: None,
            text: "the shell is busy with another command".into(),
        })?;
    // Only once the shell has taken it: a run that nobody performs would be listed as going on for
    // ever.
    warden.runs.add(Rc::clone(&run));
    Ok(run)
}

impl ShellTable {
    /// Where the shell of this name is, if it was ever anywhere.
    pub(crate) fn place(&self, name: &str) -> Option<ByteString> {
        self.0.borrow().get(name)?.place.borrow().clone()
    }

    /// From here on the shell of this name counts as being there.
    pub(crate) fn set_place(&self, warden: &Rc<WardenState>, name: &str, place: ByteString) {
        // Without room for one more shell there is none to be anywhere.
        if self.enter(warden, name).is_ok()
            && let Some(shell) = self.0.borrow().get(name)
        {
            shell.place.replace(Some(place));
        }
    }

    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.0.borrow().len()).unwrap_or(u32::MAX)
    }

    fn enter(
        &self,
        warden: &Rc<WardenState>,
        name: &str,
    ) -> Result<mpsc::Sender<ShellOrder>, WardenFailure> {
        let mut shells = self.0.borrow_mut();
        if let Some(shell) = shells.get(name) {
            return Ok(shell.orders.clone());
        }
        if shells.len() >= MOST_SHELLS || name.len() > 63 {
            return Err(WardenFailure {
                kind: FailureKind::TooMany,
                errno: None,
                text: format!("at most {MOST_SHELLS} shells, with names of up to 63 bytes"),
            });
        }
        let (give, orders) = mpsc::channel(1);
        let place = Rc::default();
        let session = ShellSession::new(Rc::clone(warden), Rc::clone(&place));
        let entrance = ShellHandle {
            orders: give.clone(),
            place,
        };
        shells.insert(name.to_owned(), entrance);
        spawn_local(session.live(orders));
        Ok(give)
    }
}
