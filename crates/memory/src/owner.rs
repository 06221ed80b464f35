//! Whose a memory is.

use std::fmt;
use std::str::FromStr;

use hermetic_types::ConversationKey;
use serde::{Deserialize, Serialize};

/// Whoever is remembered, and shown what is remembered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryOwner {
    /// The person whom Hermes' files of a single user are about.
    Owner,
    /// Somebody in private, as `telegram:4711`.
    Person(String),
    /// A conversation that others can read.
    Group(ConversationKey),
}

/// Which of the two files an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryTarget {
    /// Notes of the agent.
    Memory,
    /// Who the person is.
    User,
}

impl MemoryTarget {
    pub const ALL: [Self; 2] = [Self::Memory, Self::User];

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::User => "user",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }

    /// The file of it in Hermes' folder.
    pub fn file(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY.md",
            Self::User => "USER.md",
        }
    }

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Memory => "MEMORY (your personal notes)",
            Self::User => "USER PROFILE (who the user is)",
        }
    }
}

impl fmt::Display for MemoryOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Person(person) => write!(f, "person:{person}"),
            Self::Group(conversation) => write!(f, "group:{conversation}"),
        }
    }
}

impl FromStr for MemoryOwner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.split_once(':') {
            None if text == "owner" => Ok(Self::Owner),
            Some(("person", person)) if !person.is_empty() => Ok(Self::Person(person.to_owned())),
            Some(("group", key)) if !key.is_empty() => Ok(Self::Group(ConversationKey::new(key))),
            _ => Err(()),
        }
    }
}
