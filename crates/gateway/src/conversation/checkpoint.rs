//! The workspace as it was before a turn, so that `/undo` can bring it back.
//!
//! The copy is made and brought back by programs of ours inside the sandbox, and lies there: nothing of it is
//! opened from outside, and a link in it leads nowhere that a command could not go. What runs inside can
//! change it too; it is a convenience, and no backup.

use std::sync::atomic::{AtomicBool, Ordering};

use hermetic_policy::{Cleared, OwnProgram, WorkspaceCopy};
use hermetic_tools::ToolWorkplace as _;
use hermetic_types::Boundary;
use tokio_util::sync::CancellationToken;

use super::sandbox_tools::ConversationSandbox;
use crate::Gateway;
use crate::message::AcceptedMessage;

/// Keeps the workspace once, before the first call of a turn that may write.
#[derive(Debug)]
pub(crate) struct WorkspaceKeeper {
    copy: WorkspaceCopy,
    tried: AtomicBool,
}

/// Tools that may change files, beside those of MCP servers: such a server may run in the sandbox.
const WRITERS: [&str; 9] = [
    "terminal",
    "execute_code",
    "write_file",
    "patch",
    "process",
    // Long pages, pictures and recordings are put into the workspace.
    "web_extract",
    "image_generate",
    "text_to_speech",
    "delegate_task",
];
/// What such a program may print.
const MOST_PRINTED: usize = 4096;

impl Gateway {
    /// `None` where files cannot or shall not be kept.
    pub(super) fn workspace_keeper(&self, message: &AcceptedMessage) -> Option<WorkspaceKeeper> {
        let site = self.toolsets.of(message.said().platform());
        let facts = &site.facts;
        // Where commands are only judged, the workspace is somebody's own folder.
        let is_own = facts.boundary == Boundary::Sealed && !site.shares_workspace;
        let may_keep = self.settings.checkpoints && is_own;
        may_keep.then(|| WorkspaceKeeper {
            copy: WorkspaceCopy {
                workspace: facts.workspace.clone(),
                turn: message.row().0,
            },
            tried: AtomicBool::new(false),
        })
    }

    /// Brings the files back that were there before the turn of this row; what the person is told.
    ///
    /// An error where it is not known what became of them: then what was said is to stay.
    pub(super) async fn take_files_back(
        &self,
        message: &AcceptedMessage,
        row: i64,
    ) -> Result<&'static str, &'static str> {
        let calls = self.tool_calls.of(hermetic_store::MessageRow(row)).await;
        let wrote = match calls {
            Ok(calls) => calls.iter().any(|call| may_write(&call.tool)),
            // Not to know is to look: the program inside says if there is no copy.
            Err(_) => true,
        };
        if !wrote {
            return Ok("No files were touched by it.");
        }
        let Some(keeper) = self.workspace_keeper(message) else {
            return Ok(
                "Files stay as they are: they are not kept on this backend or in a shared folder, or the \
                 operator wants none kept.",
            );
        };
        let copy = WorkspaceCopy {
            turn: row,
            ..keeper.copy
        };
        let own = ConversationSandbox::of(&self.sandboxes, message);
        let program = OwnProgram::BringBackWorkspace(copy);
        // Nobody interrupts it: half of the files would be elsewhere.
        match run(&own, program, &CancellationToken::new()).await {
            Some(0) => Ok(
                "Files are as they were before it; what was there until now is in .hermetic-undo/undone until \
                 the next change.",
            ),
            Some(3 | 6) => Ok(
                "Files stay as they are: there is no copy from before it. None is made of a workspace over 64 \
                 megabytes or 5000 files, with a folder of others in it, on a full disk, or where the backend \
                 cannot.",
            ),
            Some(7) => Ok(
                "There is no copy of the files from before it. An earlier /undo had been cut and is now done; \
                 what did not fit is in undo-left-over.",
            ),
            _ => Err(
                "Nothing was taken back: the files from before it could not be brought back. Nothing is lost; \
                 if files are missing they are in .hermetic-undo, and /undo again puts them where they belong.",
            ),
        }
    }
}

impl WorkspaceKeeper {
    /// Keeps the workspace unless it was done or the call changes nothing. That it fails keeps nobody from
    /// working; `/undo` then says that there is no copy.
    pub(super) async fn before_call(
        &self,
        tool: &str,
        own: &ConversationSandbox<'_>,
        stop: &CancellationToken,
    ) {
        // Marked as tried before it is: after a try that failed, the first call may have changed
        // files, and a copy made then would bring back the wrong ones.
        if !may_write(tool) || self.tried.swap(true, Ordering::Relaxed) {
            return;
        }
        let kept = run(own, OwnProgram::KeepWorkspace(self.copy.clone()), stop).await;
        if kept != Some(0) {
            // Programs of ours exit with no negative code.
            let code = kept.unwrap_or(-1);
            tracing::debug!(turn = self.copy.turn, code, "the workspace was not kept");
        }
    }
}

fn may_write(tool: &str) -> bool {
    WRITERS.contains(&tool) || tool.starts_with("mcp_") || tool.starts_with(OF_AN_AGENT)
}

/// What the work of somebody else's agent is called among the calls of tools.
pub(super) fn agent_tool(agent: &str) -> String {
    format!("{OF_AN_AGENT}{agent}")
}

const OF_AN_AGENT: &str = "agent:";

/// How the program ended; `None` if it did not run.
async fn run(
    own: &ConversationSandbox<'_>,
    program: OwnProgram,
    stop: &CancellationToken,
) -> Option<i32> {
    let sandbox = own.sandbox().await.ok()?;
    let ran = sandbox
        .run(Cleared::own_program(program), MOST_PRINTED, stop)
        .await;
    match ran {
        Ok(finished) => Some(finished.code()),
        Err(error) => {
            tracing::debug!(%error, "a copy of a workspace");
            None
        }
    }
}
