//! Somebody else's agent, looked after at the keyboard.

use futures::future::{BoxFuture, FutureExt, ready};
use hermetic_acp::{AgentSupervisor, PermissionAnswer, PermissionRequest, ReportedTool};
use hermetic_app::KeyboardChat;
use hermetic_types::ConversationKey;
use tokio_util::sync::CancellationToken;

use super::screen::TurnScreen;

pub(super) struct KeyboardSupervisor<'a> {
    pub(super) keyboard: &'a KeyboardChat,
    pub(super) conversation: &'a ConversationKey,
    pub(super) screen: &'a TurnScreen,
}

impl AgentSupervisor for KeyboardSupervisor<'_> {
    fn ask<'a>(
        &'a self,
        request: &'a PermissionRequest,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, PermissionAnswer> {
        self.keyboard.asker.ask_for_agent(request, stop).boxed()
    }

    fn note_tool(&self, tool: &ReportedTool) {
        self.keyboard.asker.note_agent_tool(tool);
    }

    fn look_out(&self) -> BoxFuture<'_, ()> {
        for host in self.keyboard.sandboxes.take_refused(self.conversation) {
            self.screen.tell(&format!(
                "{} was not reached: no rule allows it. `{}` does",
                host.target, host.remedy
            ));
        }
        ready(()).boxed()
    }
}
