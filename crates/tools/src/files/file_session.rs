//! One call at work: the sandbox, and whom to ask.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermetic_sandbox::Sandbox;
use hermetic_warden::client::WardenCallError;
use hermetic_warden::protocol::{PathAt, ReadRequest, WriteRequest};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::path_policy::PathAct;
use super::place::ResolvedPath;
use super::{FileToolFailure, FileTools};
use crate::CommandApprover;

#[derive(Clone, Copy, Debug)]
pub(super) struct FileSession<'a> {
    pub(super) files: &'a FileTools,
    pub(super) sandbox: &'a Sandbox,
    ask: &'a dyn CommandApprover,
    stop: &'a CancellationToken,
    committing: &'a AtomicBool,
}

/// A disk that takes longer than this for one file is not going to answer.
const FILE_TIMEOUT: Duration = Duration::from_secs(120);

impl<'a> FileSession<'a> {
    pub(super) fn new(
        files: &'a FileTools,
        sandbox: &'a Sandbox,
        ask: &'a dyn CommandApprover,
        stop: &'a CancellationToken,
        committing: &'a AtomicBool,
    ) -> Self {
        Self {
            files,
            sandbox,
            ask,
            stop,
            committing,
        }
    }

    /// From here on the call goes to its end, which is bounded: what is half done helps nobody.
    pub(super) fn begin_committing(&self) {
        self.committing.store(true, Ordering::Relaxed);
    }

    /// Asks the policy, and a person where the policy wants one.
    pub(super) async fn clear(
        &self,
        act: PathAct,
        place: &ResolvedPath,
    ) -> Result<(), FileToolFailure> {
        let gate = &self.files.gate;
        let path = match std::str::from_utf8(&place.path.0) {
            Ok(path) => path,
            Err(_) if gate.is_judged() => {
                return Err(FileToolFailure::new(format!(
                    "{}: leads to a name that is not UTF-8, which nobody can judge",
                    place.asked
                )));
            }
            Err(_) => &place.asked,
        };
        gate.clear(act, path, self.ask, self.stop).await?;
        Ok(())
    }

    /// Whether nobody would have to be asked.
    pub(super) fn is_free(&self, act: PathAct, path: &str) -> bool {
        self.files.gate.is_free(act, path)
    }

    /// The whole file, or `None` if it is longer than `bound`.
    pub(super) async fn fetch(
        &self,
        place: &ResolvedPath,
        bound: usize,
    ) -> Result<Option<Vec<u8>>, FileToolFailure> {
        let read = ReadRequest::whole(PathAt::resolved(place.path.clone()));
        let warden = self.sandbox.warden();
        self.patiently(place, async {
            warden.read_file(read).await?.collect(bound).await
        })
        .await
    }

    /// Puts the bytes in their place, all of them or none.
    pub(super) async fn store(
        &self,
        place: &ResolvedPath,
        bytes: &[u8],
        write: WriteRequest,
    ) -> Result<(), FileToolFailure> {
        let warden = self.sandbox.warden();
        self.patiently(place, async {
            let mut file = warden.write_file(write).await?;
            file.write(bytes).await?;
            // Until here the call may be cut off: the bytes lie aside, and nothing has changed.
            self.begin_committing();
            file.finish().await
        })
        .await
    }

    pub(super) async fn remove(&self, place: &ResolvedPath) -> Result<(), FileToolFailure> {
        let at = PathAt::resolved(place.path.clone());
        self.patiently(place, self.sandbox.warden().remove(at))
            .await
    }

    pub(super) async fn patiently<T>(
        &self,
        place: &ResolvedPath,
        work: impl Future<Output = Result<T, WardenCallError>>,
    ) -> Result<T, FileToolFailure> {
        match timeout(FILE_TIMEOUT, work).await {
            Ok(done) => done.map_err(|error| FileToolFailure::at(&place.asked, &error)),
            Err(_) => Err(FileToolFailure::new(format!(
                "{}: not done after {} seconds",
                place.asked,
                FILE_TIMEOUT.as_secs()
            ))),
        }
    }
}
