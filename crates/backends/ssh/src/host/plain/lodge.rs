//! Sandboxes as folders of the account, looked after by lines of shell.

use std::io;
use std::sync::Arc;

use hermetic_sandbox::{BackendError, WardenLink};
use hermetic_types::SandboxId;
use hermetic_warden::stand_in;

use super::commands::PlainCommands;
use super::line::{all, end_marked, sandbox_mark};
use crate::host::channel::ScriptResult;
use crate::host::ssh::SshState;
use crate::order::{ListedSandbox, RemoteAnswer, RemoteOrder, RemoteSandbox, RemoteState};

/// Bytes on their way between the two ends of a link that are both here.
const PIPE: usize = 256 << 10;

/// A host without a warden.
#[derive(Debug)]
pub(in crate::host) struct PlainHost<'a>(pub(in crate::host) &'a Arc<SshState>);

impl PlainHost<'_> {
    /// As the placed program would answer, where a shell can.
    pub(in crate::host) async fn answer(
        &self,
        order: &RemoteOrder,
    ) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        match order {
            RemoteOrder::Create(lodging) => self.create(lodging).await,
            RemoteOrder::Resume(lodging) => self.resume(lodging).await,
            RemoteOrder::Connect(id) => self.connect(id).await,
            RemoteOrder::Stop(id) => self.stop(id).await,
            RemoteOrder::Destroy(id) => self.destroy(id).await,
            RemoteOrder::List => self.list().await,
        }
    }

    async fn create(
        &self,
        lodging: &RemoteSandbox,
    ) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        let about = postcard::to_stdvec(lodging)
            .map_err(|error| BackendError::failed("write the sandbox down", error))?;
        let script = format!(
            // `mkdir` without `-p` for the last part fails where the id is taken, and so decides
            // between two who make it at once.
            "umask 077; mkdir -p \"{0}\" && mkdir \"{0}/{1}\" && cd \"{0}/{1}\" && mkdir work && \
             cat > about && : > alive",
            self.all(),
            lodging.id
        );
        let said = self.sh(&script, &about).await?;
        self.done(&said, "write the sandbox down")?;
        Ok(self.linked(lodging))
    }

    async fn resume(
        &self,
        lodging: &RemoteSandbox,
    ) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        let script = format!("cd \"{}/{}\" && : > alive", self.all(), lodging.id);
        match self.sh(&script, &[]).await?.code {
            Some(0) => Ok(self.linked(lodging)),
            _ => Ok((RemoteAnswer::NoSuchSandbox, None)),
        }
    }

    async fn connect(
        &self,
        id: &SandboxId,
    ) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        let found = self.lodgers().await?;
        let living = found.into_iter().find(|lodger| lodger.id == *id);
        match living {
            Some(ListedSandbox {
                state: RemoteState::Running,
                lodging: Some(lodging),
                ..
            }) => Ok(self.linked(&lodging)),
            _ => Ok((RemoteAnswer::NoSuchSandbox, None)),
        }
    }

    async fn stop(
        &self,
        id: &SandboxId,
    ) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        let script = format!(
            // The mark goes before the processes: cut off in between, it is listed as one that has
            // to be tidied up.
            "cd \"{}/{id}\" || exit 69; rm -f alive; {}",
            self.all(),
            end_marked(&sandbox_mark(id))
        );
        let said = self.sh(&script, &[]).await?;
        if said.code == Some(69) {
            return Ok((RemoteAnswer::NoSuchSandbox, None));
        }
        self.done(&said, "end the sandbox's processes")?;
        Ok((RemoteAnswer::Done, None))
    }

    async fn destroy(
        &self,
        id: &SandboxId,
    ) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        let script = format!(
            "{}; cd \"{}\" 2>/dev/null || exit 0; [ -d {id} ] || exit 0; \
             chmod -R u+rwX {id}; rm -rf {id}; [ ! -e {id} ]",
            end_marked(&sandbox_mark(id)),
            self.all()
        );
        let said = self.sh(&script, &[]).await?;
        self.done(&said, "remove the sandbox")?;
        Ok((RemoteAnswer::Done, None))
    }

    async fn list(&self) -> Result<(RemoteAnswer, Option<WardenLink>), BackendError> {
        Ok((RemoteAnswer::Found(self.lodgers().await?), None))
    }

    async fn lodgers(&self) -> Result<Vec<ListedSandbox>, BackendError> {
        let script = format!(
            "echo; echo listing; cd \"{}\" 2>/dev/null || exit 0; for d in *; do [ -d $d ] || continue; \
             a=-; [ -e $d/alive ] && a=+; \
             echo \"$d $a $(od -An -v -tx1 $d/about 2>/dev/null | tr -d \" \\n\")\"; done",
            self.all()
        );
        let said = self.sh(&script, &[]).await?;
        self.done(&said, "list the sandboxes")?;
        let mut lines = said.out.lines();
        lines.by_ref().find(|line| *line == "listing");
        Ok(lines.filter_map(lodger).collect())
    }

    fn linked(&self, lodging: &RemoteSandbox) -> (RemoteAnswer, Option<WardenLink>) {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let commands = PlainCommands::new(Arc::clone(self.0), lodging.clone(), &self.all());
        tokio::spawn(async move {
            stand_in::play(theirs, Arc::clone(&commands).answers()).await;
            commands.leave().await;
        });
        (RemoteAnswer::Linked, Some(WardenLink::new(ours)))
    }

    fn all(&self) -> String {
        all(&self.0.config.installation)
    }

    async fn sh(&self, script: &str, input: &[u8]) -> Result<ScriptResult, BackendError> {
        self.0.line(&format!("exec sh -c '{script}'"), input).await
    }

    fn done(&self, said: &ScriptResult, step: &str) -> Result<(), BackendError> {
        if said.code == Some(0) {
            return Ok(());
        }
        let why = said
            .err
            .lines()
            .next_back()
            .unwrap_or("no reason was given");
        Err(BackendError::failed(step, io::Error::other(why.to_owned())))
    }
}

/// Bytes of another machine: what does not look like ours is left out.
fn lodger(line: &str) -> Option<ListedSandbox> {
    let mut words = line.split(' ');
    let (id, alive, about) = (words.next()?, words.next()?, words.next().unwrap_or(""));
    let bytes: Option<Vec<u8>> = (0..about.len() / 2)
        .map(|at| u8::from_str_radix(about.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    let lodging = bytes.and_then(|bytes| postcard::from_bytes::<RemoteSandbox>(&bytes).ok());
    let state = match (&lodging, alive) {
        (None, _) => RemoteState::Broken,
        (Some(_), "+") => RemoteState::Running,
        (Some(lodging), _) if lodging.kept => RemoteState::Stopped,
        _ => RemoteState::Broken,
    };
    Some(ListedSandbox {
        id: id.parse().ok()?,
        state,
        lodging,
    })
}
