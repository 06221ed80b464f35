//! The handles: one method for each thing a warden can do.
//!
//! Running is apart from everything else, because only what was cleared may run and a warden cannot tell.
//! Whoever holds [`Warden`] answers for that; [`WardenServices`] can be handed out.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermetic_types::{HolderEpoch, RunId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::listener::greet_relay;
use super::{
    FileReader, FileWriter, InsideListener, ProtocolBreach, RelayStream, RunEvent, RunningCommand,
    WardenCallError, pulse,
};
use crate::mux::{self, LinkSide, MAX_CALLS, MuxStream, StreamOpener};
use crate::protocol::frame::{FrameCollector, FrameKind};
use crate::protocol::{
    AttachRequest, FailureKind, FileMetadata, FolderEntry, HoldRequest, KillRequest,
    ListenEndpoint, MAX_REQUEST, PathAt, ReadRequest, ResolveRequest, ResolvedName, RunRequest,
    RunSummary, ShellRequest, WardenInfo, WardenReply, WardenRequest, WriteRequest, decode, encode,
};

/// Far more than a link takes to end once its streams have.
const SETTLING: Duration = Duration::from_millis(200);

/// More than a warden keeps of one run, with what holds it.
const MAX_LOOK: usize = 1 << 20;

/// A living link to a warden, with the right to run commands. Clones share the link.
#[derive(Clone, Debug)]
pub struct Warden {
    services: WardenServices,
}

/// What a warden does besides running commands: files, listeners, and what runs already. Clones share
/// the link.
#[derive(Clone, Debug)]
pub struct WardenServices {
    link: Arc<ClientLink>,
}

/// What a warden made of who has the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldOutcome {
    /// Whoever had it by a lower epoch is cut off.
    Held,
    /// A warden from before there were holders: whoever reaches it is obeyed.
    NotKept,
}

#[derive(Debug)]
pub(super) struct ClientLink {
    opener: StreamOpener,
    /// One permit for each open call, so that we never run into yamux's own bound, which would end
    /// the link.
    calls: Arc<Semaphore>,
    pub(super) next_listener: AtomicU32,
    listeners: Mutex<HashMap<u32, mpsc::Sender<RelayStream>>>,
    breach: watch::Sender<bool>,
    gone: watch::Receiver<bool>,
}

/// One open stream and the right to have it.
#[derive(Debug)]
pub(super) struct ClientCall {
    pub(super) stream: MuxStream,
    pub(super) frames: FrameCollector,
    pub(super) link: Arc<ClientLink>,
    _permit: OwnedSemaphorePermit,
}

impl Warden {
    pub(super) fn over<S>(io: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (opener, driver) = mux::over(io, LinkSide::Gateway);
        let (breach, mut breached) = watch::channel(false);
        let (say_gone, gone) = watch::channel(false);
        let link = Arc::new(ClientLink {
            opener,
            calls: Arc::new(Semaphore::new(MAX_CALLS)),
            next_listener: AtomicU32::new(0),
            listeners: Mutex::default(),
            breach,
            gone,
        });
        // Weak: with a handle of its own the driver would outlive everybody who could use the link.
        let weak = Arc::downgrade(&link);
        tokio::spawn(async move {
            let inbound = |stream| {
                if let Some(link) = weak.upgrade() {
                    tokio::spawn(greet_relay(link, stream));
                }
            };
            tokio::select! {
                // How the link failed matters to nobody: its calls end, and that is told there.
                _ = driver.run(inbound) => {}
                // Either somebody called it a breach, or nobody holds the link any more.
                _ = breached.changed() => {}
                () = pulse::watch(weak.clone()) => {}
            }
            let _ = say_gone.send(true);
            // Whoever waits in `accept` is let go: the senders would otherwise live as long as the
            // link's handles do.
            if let Some(link) = weak.upgrade() {
                link.listeners().clear();
            }
        });
        Self {
            services: WardenServices { link },
        }
    }

    /// The same link without the right to run commands.
    pub fn services(&self) -> &WardenServices {
        &self.services
    }

    /// Says since which epoch the caller has the sandbox. Nothing is asked where nobody shares.
    ///
    /// Refused, the link is ended: nothing of what it carries would be done.
    pub async fn hold(&self, epoch: HolderEpoch) -> Result<HoldOutcome, WardenCallError> {
        if epoch == HolderEpoch::UNSHARED {
            return Ok(HoldOutcome::Held);
        }
        self.say_hold(HoldRequest::As(epoch)).await
    }

    /// Looks in on whoever has the sandbox now: a person at the machine, who knows of no epoch.
    pub async fn visit(&self) -> Result<HoldOutcome, WardenCallError> {
        self.say_hold(HoldRequest::Visit).await
    }

    async fn say_hold(&self, hold: HoldRequest) -> Result<HoldOutcome, WardenCallError> {
        match self.link.ask(&WardenRequest::Hold(hold)).await {
            Ok(WardenReply::Done) => Ok(HoldOutcome::Held),
            Ok(WardenReply::HeldBy(since)) => {
                self.link.cut();
                Err(WardenCallError::HeldElsewhere { since })
            }
            Ok(_) => Err(self.link.breach(ProtocolBreach::WrongReply)),
            // What an earlier warden says to whatever it cannot read.
            Err(WardenCallError::Failed(failure)) if failure.kind == FailureKind::BadRequest => {
                Ok(HoldOutcome::NotKept)
            }
            Err(error) => Err(error),
        }
    }

    /// Starts a command. The run goes when [`RunningCommand`] is dropped, unless it is a detached one.
    pub async fn run(&self, run: RunRequest) -> Result<RunningCommand, WardenCallError> {
        let timeout = run.timeout;
        let call = self.link.call(&WardenRequest::Run(run)).await?;
        Ok(RunningCommand::new(call, timeout))
    }

    /// Runs text in a persistent shell.
    pub async fn shell(&self, shell: ShellRequest) -> Result<RunningCommand, WardenCallError> {
        let timeout = shell.timeout;
        let call = self.link.call(&WardenRequest::Shell(shell)).await?;
        Ok(RunningCommand::new(call, timeout))
    }
}

/// Whoever may run commands may do everything else.
impl Deref for Warden {
    type Target = WardenServices;

    fn deref(&self) -> &WardenServices {
        &self.services
    }
}

impl WardenServices {
    /// Picks up a run of an earlier link, from the byte of output that the caller has not seen.
    pub async fn attach(&self, id: RunId, from: u64) -> Result<RunningCommand, WardenCallError> {
        let call = self
            .link
            .call(&WardenRequest::Attach(AttachRequest { id, from }))
            .await?;
        Ok(RunningCommand::new(call, None))
    }

    /// What is kept of a detached run's output, as events in their order. Unlike [`Self::attach`] it takes
    /// the run from nobody.
    pub async fn look(&self, id: RunId, from: u64) -> Result<Vec<RunEvent>, WardenCallError> {
        let request = WardenRequest::Look(AttachRequest { id, from });
        let mut call = self.link.call(&request).await?;
        let (mut events, mut cost) = (Vec::new(), 0);
        loop {
            let frame = call.frame().await?;
            // An empty frame costs memory too.
            cost += frame.payload.len() + size_of::<RunEvent>();
            if cost > MAX_LOOK {
                return Err(self.link.breach(ProtocolBreach::TooMuchData));
            }
            events.push(match frame.kind {
                FrameKind::Out => RunEvent::Out(frame.payload),
                FrameKind::Err => RunEvent::Err(frame.payload),
                FrameKind::Skipped => match decode(&frame.payload, "count") {
                    Ok(count) => RunEvent::Skipped(count),
                    Err(malformed) => return Err(self.link.breach(malformed.into())),
                },
                FrameKind::Reply => return Ok(events),
                other => return Err(self.link.breach(ProtocolBreach::Unexpected(other))),
            });
        }
    }

    /// What runs, and what ended lately.
    pub async fn runs(&self) -> Result<Vec<RunSummary>, WardenCallError> {
        match self.link.ask(&WardenRequest::Runs).await? {
            WardenReply::Runs(runs) => Ok(runs),
            _ => Err(self.link.breach(ProtocolBreach::WrongReply)),
        }
    }

    /// Ends a run or a shell with everything it started; returns when nothing of it is left.
    pub async fn kill(&self, kill: KillRequest) -> Result<(), WardenCallError> {
        self.done(&WardenRequest::Kill(kill)).await
    }

    pub async fn read_file(&self, read: ReadRequest) -> Result<FileReader, WardenCallError> {
        FileReader::open(&self.link, read).await
    }

    pub async fn write_file(&self, write: WriteRequest) -> Result<FileWriter, WardenCallError> {
        FileWriter::open(&self.link, write).await
    }

    /// Of the path itself: a symlink is not followed.
    pub async fn stat(&self, at: PathAt) -> Result<FileMetadata, WardenCallError> {
        match self.link.ask(&WardenRequest::Stat(at)).await? {
            WardenReply::Metadata(metadata) => Ok(metadata),
            _ => Err(self.link.breach(ProtocolBreach::WrongReply)),
        }
    }

    /// Where a path leads, whether or not it exists.
    pub async fn resolve(&self, resolve: ResolveRequest) -> Result<ResolvedName, WardenCallError> {
        match self.link.ask(&WardenRequest::Resolve(resolve)).await? {
            WardenReply::Resolved(resolved) => Ok(resolved),
            _ => Err(self.link.breach(ProtocolBreach::WrongReply)),
        }
    }

    pub async fn list_dir(&self, at: PathAt) -> Result<Vec<FolderEntry>, WardenCallError> {
        match self.link.ask(&WardenRequest::ListDir(at)).await? {
            WardenReply::Entries(entries) => Ok(entries),
            _ => Err(self.link.breach(ProtocolBreach::WrongReply)),
        }
    }

    /// With its parents; one that is there already is fine.
    pub async fn make_dir(&self, at: PathAt) -> Result<(), WardenCallError> {
        self.done(&WardenRequest::MakeDir(at)).await
    }

    /// A file, a symlink or an empty directory.
    pub async fn remove(&self, at: PathAt) -> Result<(), WardenCallError> {
        self.done(&WardenRequest::Remove(at)).await
    }

    /// Listens inside the sandbox until the [`InsideListener`] is dropped, with at most `concurrent`
    /// connections relayed at once.
    pub async fn listen(
        &self,
        endpoint: ListenEndpoint,
        concurrent: u16,
    ) -> Result<InsideListener, WardenCallError> {
        InsideListener::open(&self.link, endpoint, concurrent).await
    }

    pub async fn info(&self) -> Result<WardenInfo, WardenCallError> {
        match self.link.ask(&WardenRequest::Info).await? {
            WardenReply::Info(info) => Ok(info),
            _ => Err(self.link.breach(ProtocolBreach::WrongReply)),
        }
    }

    /// Returns when the link is gone, whoever ended it.
    pub async fn closed(&self) {
        let mut gone = self.link.gone.clone();
        // An error means that the driver itself is gone.
        let _ = gone.wait_for(|gone| *gone).await;
    }

    pub fn is_closed(&self) -> bool {
        *self.link.gone.borrow()
    }

    /// Ends the link and every call on it.
    pub fn close(&self) {
        self.link.cut();
    }

    async fn done(&self, request: &WardenRequest) -> Result<(), WardenCallError> {
        match self.link.ask(request).await? {
            WardenReply::Done => Ok(()),
            _ => Err(self.link.breach(ProtocolBreach::WrongReply)),
        }
    }
}

impl ClientLink {
    pub(super) async fn call(
        self: &Arc<Self>,
        request: &WardenRequest,
    ) -> Result<ClientCall, WardenCallError> {
        let bytes = encode(request);
        // Refused here: the warden would end the whole link over it, and every other call with it.
        if bytes.len() > MAX_REQUEST {
            return Err(WardenCallError::RequestTooLong {
                length: bytes.len(),
                bound: MAX_REQUEST,
            });
        }
        // Before the stream is opened. Beyond its bound of streams yamux does not wait, it ends the
        // link.
        let permit = Arc::clone(&self.calls).acquire_owned().await;
        let permit = permit.map_err(|_| WardenCallError::LinkLost)?;
        let stream = self.opener.open().await.ok_or(WardenCallError::LinkLost)?;
        stream.send(FrameKind::Request, &bytes).await?;
        Ok(ClientCall {
            stream,
            frames: FrameCollector::default(),
            link: Arc::clone(self),
            _permit: permit,
        })
    }

    async fn ask(
        self: &Arc<Self>,
        request: &WardenRequest,
    ) -> Result<WardenReply, WardenCallError> {
        self.call(request).await?.reply().await
    }

    /// Whatever it says, it is there.
    pub(super) async fn ping(self: &Arc<Self>) {
        let _ = self.ask(&WardenRequest::Info).await;
    }

    /// No call is open.
    pub(super) fn is_idle(&self) -> bool {
        self.calls.available_permits() == MAX_CALLS
    }

    /// Ends the link: who breaks the protocol once is not asked again.
    pub(super) fn breach(&self, breach: ProtocolBreach) -> WardenCallError {
        self.cut();
        WardenCallError::Breach(breach)
    }

    pub(super) fn listeners(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<u32, mpsc::Sender<RelayStream>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self) {
        self.breach.send_replace(true);
    }

    /// Streams end a moment before their link is known to be gone, and who is told of the one asks about
    /// the other next.
    async fn settled(&self) {
        let mut gone = self.gone.clone();
        let _ = timeout(SETTLING, gone.wait_for(|gone| *gone)).await;
    }
}

impl ClientCall {
    /// The next frame, with failures and breaches already turned into errors.
    pub(super) async fn frame(
        &mut self,
    ) -> Result<crate::protocol::frame::WardenFrame, WardenCallError> {
        let received = self.stream.receive(&mut self.frames).await;
        match received.map_err(|error| self.judged(error.into())) {
            Ok(None) | Err(WardenCallError::LinkLost) => {
                // Boxed: rare, and otherwise a part of every call.
                Box::pin(self.link.settled()).await;
                Err(WardenCallError::LinkLost)
            }
            Err(error) => Err(error),
            Ok(Some(frame)) if frame.kind == FrameKind::Failed => {
                Err(match decode(&frame.payload, "failure") {
                    Ok(failure) => WardenCallError::Failed(failure),
                    Err(malformed) => self.link.breach(malformed.into()),
                })
            }
            Ok(Some(frame)) => Ok(frame),
        }
    }

    pub(super) async fn reply(&mut self) -> Result<WardenReply, WardenCallError> {
        let frame = self.frame().await?;
        if frame.kind != FrameKind::Reply {
            return Err(self.link.breach(ProtocolBreach::Unexpected(frame.kind)));
        }
        decode(&frame.payload, "reply").map_err(|malformed| self.link.breach(malformed.into()))
    }

    fn judged(&self, error: WardenCallError) -> WardenCallError {
        match error {
            WardenCallError::Breach(breach) => self.link.breach(breach),
            other => other,
        }
    }
}

impl Drop for ClientCall {
    fn drop(&mut self) {
        // Before the fields go: the permit must not be free while its stream still counts.
        self.stream.reset();
    }
}
