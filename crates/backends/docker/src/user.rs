//! Who the processes of a container are.
//!
//! An image that names nobody runs as root, and root inside is root outside: without a capability,
//! but the owner of whatever root owns in a folder it is shown, and counted together with the host's
//! own programs wherever the kernel counts by user. So such a container gets a user of its own.

use std::str::FromStr;

use hermetic_types::SandboxId;
use thiserror::Error;

use crate::archive::ContainerUserKind;
use crate::engine::EngineFacts;
use crate::image::ImageFacts;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContainerUser {
    /// Whoever the image says; often root.
    #[default]
    Image,
    /// Whoever the image says, but never root: then somebody who is nobody elsewhere.
    NeverRoot,
    /// The one who runs us.
    Host { uid: u32, gid: u32 },
    /// Whoever the operator says.
    Named(String),
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{text:?} names no user")]
pub struct NoSuchUser {
    text: String,
}

/// Numbers from here on belong to nobody: above what systems hand out to users and containers.
const FIRST_OF_NOBODY: u32 = 0x7000_0000;
/// The last one is then the largest number that is positive where ids are read with a sign.
const OF_NOBODY: u32 = 0x0fff_ffff;
/// For an engine that maps a small range of numbers to others.
const SMALL: u32 = 1000;

impl ContainerUser {
    /// Whether it is root whatever the image says.
    pub fn is_root(&self) -> bool {
        match self {
            Self::Named(name) => whose(Some(name)) == ContainerUserKind::Root,
            Self::Host { uid, .. } => *uid == 0,
            Self::Image | Self::NeverRoot => false,
        }
    }

    /// As the engine is told; nothing for whoever the image says.
    pub(crate) fn name(
        &self,
        id: &SandboxId,
        picture: &ImageFacts,
        facts: &EngineFacts,
    ) -> Option<String> {
        match self {
            Self::Image => None,
            Self::NeverRoot if whose(picture.user.as_deref()) != ContainerUserKind::Root => None,
            Self::NeverRoot => {
                let number = if facts.maps_users {
                    // Where numbers are mapped only a range of them exists, and a container of a
                    // user outside of it does not start.
                    SMALL
                } else {
                    of_nobody(id)
                };
                Some(format!("{number}:{number}"))
            }
            // Root inside is whoever runs the engine, and every other number is nobody's outside.
            Self::Host { .. } if facts.is_rootless => Some("0:0".to_owned()),
            Self::Host { uid, gid } => Some(format!("{uid}:{gid}")),
            Self::Named(name) => Some(name.clone()),
        }
    }

    /// Whether it may be somebody whom the image has never heard of, and who has no home there.
    pub(crate) fn is_stranger_to(&self, picture: &ImageFacts) -> bool {
        match self {
            Self::Image | Self::Named(_) => false,
            Self::NeverRoot => whose(picture.user.as_deref()) == ContainerUserKind::Root,
            Self::Host { .. } => true,
        }
    }
}

/// `image`, or a name or number as `docker run --user` takes it.
impl FromStr for ContainerUser {
    type Err = NoSuchUser;

    fn from_str(text: &str) -> Result<Self, NoSuchUser> {
        if text == "image" {
            return Ok(Self::Image);
        }
        let is_name = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !part.is_empty() && !part.starts_with('-') && part.chars().all(plain)
        };
        let (user, group) = text.split_once(':').unwrap_or((text, "0"));
        if is_name(user) && is_name(group) {
            Ok(Self::Named(text.to_owned()))
        } else {
            Err(NoSuchUser {
                text: text.to_owned(),
            })
        }
    }
}

/// Whose files the warden and the workspace have to be open to.
pub(crate) fn whose(user: Option<&str>) -> ContainerUserKind {
    let name = user.map(|user| user.split(':').next().unwrap_or_default());
    match name {
        None | Some("" | "root") => ContainerUserKind::Root,
        // However many zeros it is written with.
        Some(name) if name.bytes().all(|byte| byte == b'0') => ContainerUserKind::Root,
        Some(_) => ContainerUserKind::SomebodyElse,
    }
}

/// FNV-1a: a user for each sandbox, so that none shares what the kernel counts by user.
fn of_nobody(id: &SandboxId) -> u32 {
    let spread = id.as_str().bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    FIRST_OF_NOBODY + (spread & OF_NOBODY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(user: Option<&str>) -> ImageFacts {
        ImageFacts {
            user: user.map(str::to_owned),
            ..ImageFacts::default()
        }
    }

    #[test]
    fn who_is_root_is_known_however_it_is_written() {
        for user in [
            None,
            Some(""),
            Some("root"),
            Some("0"),
            Some("00"),
            Some("0:0"),
            Some("root:users"),
        ] {
            assert_eq!(whose(user), ContainerUserKind::Root, "{user:?}");
        }
        for user in ["node", "1000", "1000:0"] {
            assert_eq!(whose(Some(user)), ContainerUserKind::SomebodyElse);
        }
    }

    #[test]
    fn an_image_that_runs_as_root_gets_a_user_for_each_sandbox() {
        let (one, other) = (SandboxId::random(), SandboxId::random());
        let name =
            |id, user| ContainerUser::NeverRoot.name(id, &picture(user), &EngineFacts::default());
        for user in [None, Some("root"), Some("0:0")] {
            let number = |id| -> u32 {
                let name = name(id, user).unwrap();
                let (uid, gid) = name.split_once(':').unwrap();
                assert_eq!(uid, gid);
                uid.parse().unwrap()
            };
            assert!((FIRST_OF_NOBODY..1 << 31).contains(&number(&one)));
            assert_ne!(number(&one), number(&other));
            assert_eq!(number(&one), number(&one));
        }
        assert_eq!(name(&one, Some("node")), None);
    }

    #[test]
    fn where_the_engine_maps_users_the_number_is_one_that_it_has() {
        let facts = EngineFacts {
            maps_users: true,
            ..EngineFacts::default()
        };
        let name = ContainerUser::NeverRoot.name(&SandboxId::random(), &picture(None), &facts);
        assert_eq!(name.as_deref(), Some("1000:1000"));
    }

    #[test]
    fn whoever_runs_an_engine_without_root_is_root_inside() {
        let host = ContainerUser::Host {
            uid: 1000,
            gid: 100,
        };
        let name = |is_rootless| {
            let facts = EngineFacts {
                is_rootless,
                ..EngineFacts::default()
            };
            host.name(&SandboxId::random(), &picture(None), &facts)
        };
        assert_eq!(name(false).as_deref(), Some("1000:100"));
        assert_eq!(name(true).as_deref(), Some("0:0"));
    }

    #[test]
    fn a_user_is_a_name_or_a_number_with_or_without_a_group() {
        assert_eq!("image".parse(), Ok(ContainerUser::Image));
        for good in ["root", "0", "1000:1000", "node", "www-data:users", "a.b_c"] {
            assert_eq!(good.parse(), Ok(ContainerUser::Named(good.to_owned())));
        }
        for bad in ["", ":", "a:", ":b", "a b", "a:b:c", "-x", "a\n"] {
            assert!(bad.parse::<ContainerUser>().is_err(), "{bad:?}");
        }
    }
}
