//! Whose home it is that root works in.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use hermetic_config::HomeFolder;

use crate::failure::CommandFailure;

/// Somebody else, in whose home root is about to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HomeOwner {
    pub(crate) uid: u32,
    gid: u32,
    /// Absent where nobody has that number, or his name could not be typed.
    name: Option<String>,
    home: Option<PathBuf>,
}

impl HomeOwner {
    /// Whoever owns this home, or the folder it will be made in, where we are root and he is not.
    pub(crate) fn of(home: &HomeFolder) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        // One that is not there yet is made by us, in a folder of somebody's.
        let mut folders = home.root().ancestors();
        let about = folders.find_map(|folder| fs::metadata(folder).ok())?;
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        (about.uid() != 0).then(|| Self::read(about.uid(), about.gid(), &users))
    }

    fn read(uid: u32, gid: u32, users: &str) -> Self {
        let fields = fields_of(uid, users);
        let field = |number: usize| fields.as_ref()?.get(number).copied();
        Self {
            uid,
            gid: field(3).and_then(|gid| gid.parse().ok()).unwrap_or(gid),
            name: name_of(uid, users),
            home: field(5).filter(|home| !home.is_empty()).map(PathBuf::from),
        }
    }

    /// As he is called in a sentence.
    pub(crate) fn called(&self) -> String {
        let number = || format!("user {}", self.uid);
        self.name.clone().unwrap_or_else(number)
    }

    /// As `sudo -u` takes him.
    fn typed(&self) -> String {
        let number = || format!("'#{}'", self.uid);
        self.name.clone().unwrap_or_else(number)
    }

    /// This very program, with his rights and no others. Of our environment it has what a terminal needs.
    pub(crate) fn own_program(&self) -> Result<Command, CommandFailure> {
        let program = std::env::current_exe()
            .map_err(|error| CommandFailure::caused(&error, "is /proc mounted?"))?;
        let mut command = Command::new(program);
        // Root's groups go with its number.
        command.uid(self.uid).gid(self.gid).current_dir("/");
        command.env_clear();
        for name in ["PATH", "TERM", "LANG", "LC_ALL", "NO_COLOR"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let home = self.home.as_deref().unwrap_or(Path::new("/nonexistent"));
        command.env("HOME", home);
        Ok(command)
    }
}

/// Refuses root in a home that is somebody else's.
///
/// What root writes there its gateway cannot read. Worse, whoever owns the folder can put a link in place of
/// any name in it, and root would write, give away or pack whatever the link leads to.
pub(crate) fn refuse_root_for_another(home: &HomeFolder) -> Result<(), CommandFailure> {
    let Some(owner) = HomeOwner::of(home) else {
        return Ok(());
    };
    let root = home.root().display();
    let known = owner.called();
    Err(CommandFailure::new(
        format!("{root} belongs to {known}: what root writes there, {known} cannot read"),
        format!(
            "run it as its owner: sudo -u {} hermetic --home {root} …",
            owner.typed()
        ),
    ))
}

/// Our own name, if it is a plain one.
pub(crate) fn own_name() -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(rustix::process::geteuid().as_raw(), &users)
}

/// The owner of a folder by name, or by number where nobody has that number.
pub(crate) fn owner_of(folder: &Path) -> Result<String, CommandFailure> {
    let uid = fs::metadata(folder)
        .map_err(|error| CommandFailure::file("look at", folder, &error))?
        .uid();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    Ok(name_of(uid, &users).unwrap_or_else(|| uid.to_string()))
}

/// The name of a user in the text of a user table. One that could not be written into a unit or typed as it
/// is counts as none.
fn name_of(uid: u32, users: &str) -> Option<String> {
    user_name(fields_of(uid, users)?.first()?).ok()
}

/// What a user table says of a number.
fn fields_of(uid: u32, users: &str) -> Option<Vec<&str>> {
    let mut fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    fields.find(|fields| fields.get(2).and_then(|number| number.parse().ok()) == Some(uid))
}

/// The name of a user, as it may stand in a unit.
pub(crate) fn user_name(name: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || !name.bytes().all(plain) || name.starts_with('-') {
        return Err("expected the name of a user".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\n\
        broken line\n\
        bot:x:998:998::/srv/bot:/usr/sbin/nologin\n\
        odd name:x:1001:1001::/home/odd:/bin/sh\n";

    #[test]
    fn a_number_becomes_the_name_of_who_has_it() {
        assert_eq!(name_of(0, USERS).as_deref(), Some("root"));
        assert_eq!(name_of(998, USERS).as_deref(), Some("bot"));
        // It would be written into a unit.
        assert_eq!(name_of(1001, USERS), None);
        assert_eq!(name_of(7, USERS), None);
    }

    #[test]
    fn an_owner_has_what_the_user_table_says() {
        let bot = HomeOwner::read(998, 1, USERS);
        assert_eq!((bot.gid, bot.called()), (998, "bot".to_owned()));
        assert_eq!(bot.home.as_deref(), Some(Path::new("/srv/bot")));
        let nobody = HomeOwner::read(7, 8, USERS);
        assert_eq!((nobody.gid, nobody.home), (8, None));
        assert_eq!(HomeOwner::read(7, 8, USERS).typed(), "'#7'");
    }

    #[test]
    fn root_does_not_work_in_the_home_of_somebody_else() {
        let folder = tempfile::tempdir().unwrap();
        let home = HomeFolder::at(folder.path());
        // One's own, and one that is not there yet.
        refuse_root_for_another(&home).unwrap();
        let missing = HomeFolder::at(folder.path().join("a/b"));
        refuse_root_for_another(&missing).unwrap();
        if !rustix::process::geteuid().is_root() {
            return;
        }
        std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
        for home in [home, missing] {
            let refused = refuse_root_for_another(&home).unwrap_err();
            assert!(refused.to_string().contains("belongs to"), "{refused}");
        }
    }
}
