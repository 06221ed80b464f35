//! What is tried on every machine. A story can fail, and says what it saw.

mod basics;
mod bounds;
mod power;
mod service;
mod units;

use std::fmt::Display;

use super::guest::{CommandOutput, GuestUser, VmGuest};
use super::platform::TrafficServer;
use crate::failure::ChoreFailure;

/// The machine, the platform and the options that a story works with.
#[derive(Debug)]
pub(crate) struct StoryContext {
    pub(crate) guest: VmGuest,
    pub(crate) platform: TrafficServer,
    pub(crate) cuts: u32,
}

pub(crate) struct VmStory {
    pub(crate) name: &'static str,
    run: fn(&mut StoryContext) -> StoryResult,
}

/// Figures, if all went well.
pub(crate) type StoryResult = Result<String, StoryError>;

#[derive(Debug)]
pub(crate) enum StoryError {
    Failed(String),
    Skipped(String),
}

/// In this order: what others rely on comes first, and what wears the machine out comes last.
const STORIES: [VmStory; 12] = {
    const fn story(name: &'static str, run: fn(&mut StoryContext) -> StoryResult) -> VmStory {
        VmStory { name, run }
    }
    [
        story("doctor", basics::doctor),
        story("exec", basics::exec),
        story("limits", bounds::limits),
        story("login", bounds::login),
        story("stall", bounds::stall),
        story("attack", basics::attack),
        story("tables", basics::tables),
        story("contract", basics::contract),
        story("units", units::units),
        story("oom", units::oom),
        story("restart", units::restart),
        story("power", power::power),
    ]
};

/// The stories with these names; all of them if none is named.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static VmStory>, ChoreFailure> {
    static ALL: [VmStory; 12] = STORIES;
    if let Some(unknown) = names
        .iter()
        .find(|name| ALL.iter().all(|story| story.name != **name))
    {
        let known = ALL.each_ref().map(|story| story.name).join(", ");
        return Err(ChoreFailure::Usage(format!(
            "no story {unknown:?}; known: {known}"
        )));
    }
    let chosen = |story: &&VmStory| names.is_empty() || names.iter().any(|name| name == story.name);
    Ok(ALL.iter().filter(chosen).collect())
}

impl VmStory {
    pub(crate) fn run(&self, context: &mut StoryContext) -> StoryResult {
        (self.run)(context)
    }
}

impl From<ChoreFailure> for StoryError {
    fn from(why: ChoreFailure) -> Self {
        Self::Failed(why.to_string())
    }
}

fn fail<T>(what: impl Display) -> Result<T, StoryError> {
    Err(StoryError::Failed(what.to_string()))
}

/// What it said, if it ended well.
fn expect_success(
    who: GuestUser,
    what: &str,
    said: CommandOutput,
) -> Result<CommandOutput, StoryError> {
    if said.code == Some(0) {
        return Ok(said);
    }
    fail(format!("{what} as {}: {}", who.name(), said.all()))
}

/// Runs a command in a group of its own that systemd delegates, as a service has it.
fn delegated(who: GuestUser, command: &str) -> String {
    let manager = match who {
        GuestUser::Root => "--system",
        GuestUser::Person => "--user",
    };
    // The system's manager gives a service no home.
    format!(
        "systemd-run {manager} --quiet --wait --pipe --collect -p Delegate=yes -E HOME=\"$HOME\" \
         {command}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_nobody_knows_is_refused() {
        assert_eq!(chosen(&[]).map(|all| all.len()).ok(), Some(STORIES.len()));
        let one = chosen(&["restart".to_owned()]).map(|all| all[0].name);
        assert_eq!(one.ok(), Some("restart"));
        assert!(chosen(&["restart".to_owned(), "reboot".to_owned()]).is_err());
    }
}
