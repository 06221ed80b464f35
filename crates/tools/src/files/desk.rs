//! One call at work: the sandbox, and whom to ask.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hermetic_sandbox::Sandbox;
use hermetic_warden::client::CallError;
use hermetic_warden::protocol::{PathAt, Read, Write};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::gate::Act;
use super::place::Place;
use super::{Failed, Files};
use crate::Ask;

#[derive(Clone, Copy, Debug)]
pub(super) struct Desk<'a> {
    pub(super) files: &'a Files,
    pub(super) sandbox: &'a Sandbox,
    ask: &'a dyn Ask,
    stop: &'a CancellationToken,
    committing: &'a AtomicBool,
}

/// A disk that takes longer than this for one file is not going to answer.
const PATIENCE: Duration = Duration::from_secs(120);

impl<'a> Desk<'a> {
    pub(super) fn new(
        files: &'a Files,
        sandbox: &'a Sandbox,
        ask: &'a dyn Ask,
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
    pub(super) async fn clear(&self, act: Act, place: &Place) -> Result<(), Failed> {
        let gate = &self.files.gate;
        let path = match std::str::from_utf8(&place.path.0) {
            Ok(path) => path,
            Err(_) if gate.is_judged() => {
                return Err(Failed::new(format!(
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
    pub(super) fn is_free(&self, act: Act, path: &str) -> bool {
        self.files.gate.is_free(act, path)
    }

    /// The whole file, or `None` if it is longer than `bound`.
    pub(super) async fn fetch(
        &self,
        place: &Place,
        bound: usize,
    ) -> Result<Option<Vec<u8>>, Failed> {
        let read = Read::whole(PathAt::resolved(place.path.clone()));
        let warden = self.sandbox.warden();
        self.patiently(place, async {
            warden.read_file(read).await?.collect(bound).await
        })
        .await
    }

    /// Puts the bytes in their place, all of them or none.
    pub(super) async fn store(
        &self,
        place: &Place,
        bytes: &[u8],
        write: Write,
    ) -> Result<(), Failed> {
        let warden = self.sandbox.warden();
        self.patiently(place, async {
            let mut file = warden.write_file(write).await?;
            file.write(bytes).await?;
            self.begin_committing();
            file.finish().await
        })
        .await
    }

    pub(super) async fn remove(&self, place: &Place) -> Result<(), Failed> {
        let at = PathAt::resolved(place.path.clone());
        self.patiently(place, self.sandbox.warden().remove(at))
            .await
    }

    pub(super) async fn patiently<T>(
        &self,
        place: &Place,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, Failed> {
        match timeout(PATIENCE, work).await {
            Ok(done) => done.map_err(|error| Failed::at(&place.asked, &error)),
            Err(_) => Err(Failed::new(format!(
                "{}: not done after {} seconds",
                place.asked,
                PATIENCE.as_secs()
            ))),
        }
    }
}
