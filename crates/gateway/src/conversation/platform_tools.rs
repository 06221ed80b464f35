//! Where commands of a conversation run, and with which tools.
//!
//! Most platforms share one place. One whose configuration names a backend of its own has its own: its
//! facts are told to the model, its tools judge by its boundary, and nothing of it runs anywhere else.

use std::collections::BTreeMap;

use hermetic_agent::prompt;
use hermetic_tools::{BackgroundProcesses, ToolKit};
use hermetic_types::Platform;

#[derive(Debug)]
pub struct PlatformTools {
    /// What the system prompt tells; the chat's name is put in for each message.
    pub facts: prompt::PromptFacts,
    /// Whether the workspace, or something in it, is a folder that other conversations or the host have too.
    pub shares_workspace: bool,
    pub kit: ToolKit,
}

#[derive(Debug)]
pub struct PlatformToolsets {
    usual: PlatformTools,
    apart: BTreeMap<Platform, PlatformTools>,
}

impl PlatformToolsets {
    /// All share one set of background processes.
    pub fn new(usual: PlatformTools, apart: BTreeMap<Platform, PlatformTools>) -> Self {
        Self { usual, apart }
    }

    pub(crate) fn of(&self, platform: Platform) -> &PlatformTools {
        self.apart.get(&platform).unwrap_or(&self.usual)
    }

    pub(crate) fn usual(&self) -> &PlatformTools {
        &self.usual
    }

    /// Each of them once, with the platform that it is for alone.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Option<Platform>, &PlatformTools)> {
        let apart = self.apart.iter();
        std::iter::once((None, &self.usual))
            .chain(apart.map(|(platform, site)| (Some(*platform), site)))
    }

    pub(crate) fn background(&self) -> &BackgroundProcesses {
        &self.usual.kit.background
    }

    /// The folder that files come into and leave from.
    pub(crate) fn workspace(&self, platform: Platform) -> &str {
        &self.of(platform).facts.workspace
    }
}
