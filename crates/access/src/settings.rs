//! What the operator decided beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hermetic_types::{ChatId, Platform, RoleId, UserId};

#[derive(Clone, Debug)]
pub struct AccessSettings {
    /// The second part of every conversation's key; another profile shares no conversation.
    pub profile: String,
    pub platforms: BTreeMap<Platform, PlatformSettings>,
    /// `GATEWAY_ALLOWED_USERS`: on every platform.
    pub allowed_users: UserAllowlist,
    /// `GATEWAY_ALLOW_ALL_USERS`, spelled out.
    pub allow_all: bool,
    /// `approvals.approvers` and admins, on every platform.
    pub operators: BTreeSet<UserId>,
    /// A conversation for each member of a group instead of one for the group.
    pub group_sessions_per_user: bool,
    /// The same within a thread.
    pub thread_sessions_per_user: bool,
    /// `unauthorized_dm_behavior`; if nobody decided, pairing is on until there is an allowlist.
    pub unauthorized_dm: Option<UnauthorizedDm>,
}

#[derive(Clone, Debug, Default)]
pub struct PlatformSettings {
    /// `TELEGRAM_ALLOWED_USERS` and its like.
    pub allowed_users: UserAllowlist,
    /// `TELEGRAM_GROUP_ALLOWED_USERS`: allowed in groups, not in private.
    pub group_allowed_users: UserAllowlist,
    /// `TELEGRAM_GROUP_ALLOWED_CHATS`: everybody who can write there is a guest.
    pub group_allowed_chats: BTreeSet<ChatId>,
    /// `DISCORD_ALLOWED_ROLES`: who has one of them where they speak.
    pub allowed_roles: BTreeSet<RoleId>,
    /// `TELEGRAM_ALLOW_ALL_USERS`, spelled out.
    pub allow_all: bool,
    pub bots: BotAdmission,
    /// Operators on this platform only.
    pub operators: BTreeSet<UserId>,
    /// Whoever has one of these roles is an operator: for a platform on which nobody but we gives them.
    pub operator_roles: BTreeSet<RoleId>,
    /// The same for roles that end while we run.
    pub passing_roles: Option<Arc<dyn PassingRoles>>,
    pub unauthorized_dm: Option<UnauthorizedDm>,
}

/// Knows which roles make an operator at this moment. It is asked each time somebody is to be let in, also by
/// what they left behind, and whoever cannot tell says no.
pub trait PassingRoles: Send + Sync + fmt::Debug {
    fn makes_operator(&self, role: &RoleId) -> bool;
}

/// An allowlist. People are listed by id: a display name can be taken by anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserAllowlist {
    named: BTreeSet<UserId>,
    everyone: bool,
}

/// `<PLATFORM>_ALLOW_BOTS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BotAdmission {
    #[default]
    Refuse,
    /// Bots that mention us.
    Mentioning,
    All,
}

/// What a stranger's private message is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnauthorizedDm {
    Pair,
    Ignore,
}

impl Default for AccessSettings {
    fn default() -> Self {
        Self {
            profile: "main".to_owned(),
            platforms: BTreeMap::new(),
            allowed_users: UserAllowlist::default(),
            allow_all: false,
            operators: BTreeSet::new(),
            group_sessions_per_user: true,
            thread_sessions_per_user: false,
            unauthorized_dm: None,
        }
    }
}

impl AccessSettings {
    pub(crate) fn unauthorized_dm(&self, platform: Platform) -> UnauthorizedDm {
        let own = self.platforms.get(&platform);
        let listed = !self.allowed_users.is_empty()
            || own.is_some_and(|own| {
                !(own.allowed_users.is_empty()
                    && own.group_allowed_users.is_empty()
                    && own.group_allowed_chats.is_empty()
                    && own.allowed_roles.is_empty())
            });
        own.and_then(|own| own.unauthorized_dm)
            .or(self.unauthorized_dm)
            .unwrap_or(if listed {
                UnauthorizedDm::Ignore
            } else {
                UnauthorizedDm::Pair
            })
    }
}

impl UserAllowlist {
    /// As people write it: ids between commas, `*` for everyone. What is no id is left out, which
    /// lets nobody in; `rejected` is told, so that a typo does not pass in silence.
    pub fn parse(text: &str, mut rejected: impl FnMut(&str)) -> Self {
        let mut users = Self::default();
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            match (word, UserId::new(word)) {
                ("*", _) => users.everyone = true,
                (_, Ok(id)) => {
                    users.named.insert(id);
                }
                (_, Err(_)) => rejected(word),
            }
        }
        users
    }

    pub fn named(ids: impl IntoIterator<Item = UserId>) -> Self {
        Self {
            named: ids.into_iter().collect(),
            everyone: false,
        }
    }

    pub fn everyone() -> Self {
        Self {
            named: BTreeSet::new(),
            everyone: true,
        }
    }

    pub fn names(&self, user: &UserId) -> bool {
        self.named.contains(user)
    }

    pub fn lets_everyone(&self) -> bool {
        self.everyone
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.everyone
    }
}
