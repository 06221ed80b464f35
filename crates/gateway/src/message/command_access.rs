//! Which slash commands are for whom.
//!
//! Where admins are named for a platform, the others have only the commands that were listed for them;
//! with nobody named, everybody who may write has all of them.

use std::collections::{BTreeMap, BTreeSet};

use hermetic_types::{ChatKind, Platform, UserId};

use crate::message::AcceptedMessage;
use crate::message::ChatCommand;

#[derive(Clone, Debug, Default)]
pub struct CommandAccess(pub BTreeMap<Platform, PlatformCommandAccess>);

#[derive(Clone, Debug, Default)]
pub struct PlatformCommandAccess {
    pub private: CommandRule,
    pub groups: CommandRule,
}

#[derive(Clone, Debug, Default)]
pub struct CommandRule {
    /// Nobody was named: it stands open.
    pub admins: Option<BTreeSet<UserId>>,
    /// By their names, without the slash.
    pub for_others: BTreeSet<String>,
}

/// What tells people where they stand is for everybody.
const ALWAYS: [&str; 3] = ["help", "unknown", "whoami"];

impl CommandAccess {
    pub(crate) fn let_through(&self, message: &AcceptedMessage, slash: &ChatCommand) -> bool {
        let said = message.said();
        let Some(gates) = self.0.get(&said.platform()) else {
            return true;
        };
        let gate = match said.place.kind {
            ChatKind::Dm => &gates.private,
            _ => &gates.groups,
        };
        gate.lets_through(&said.sender.id, slash.name())
    }
}

impl CommandRule {
    fn lets_through(&self, user: &UserId, command: &str) -> bool {
        let Some(admins) = &self.admins else {
            return true;
        };
        let listed = |name: &String| {
            // Under whichever of its names it was listed.
            let known = ChatCommand::read(&format!("/{name}"));
            known.map_or(name == command, |known| known.name() == command)
        };
        admins.contains(user) || ALWAYS.contains(&command) || self.for_others.iter().any(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_have_what_was_listed_for_them() {
        let (admin, guest) = (UserId::new("1").unwrap(), UserId::new("2").unwrap());
        let gate = CommandRule {
            admins: Some([admin.clone()].into()),
            for_others: ["stop".to_owned(), "reset".to_owned()].into(),
        };
        assert!(gate.lets_through(&admin, "sh"));
        assert!(!gate.lets_through(&guest, "sh"));
        assert!(!gate.lets_through(&guest, "destroy"));
        for command in ["stop", "new", "help", "whoami"] {
            assert!(gate.lets_through(&guest, command), "{command}");
        }
        assert!(CommandRule::default().lets_through(&guest, "sh"));
    }
}
