//! Whose home it is that root works in.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hermetic_config::HomeFolder;

use crate::failure::CommandFailure;

/// Refuses root in a home that is somebody else's.
///
/// What root writes there its gateway cannot read. Worse, whoever owns the folder can put a link in place of
/// any name in it, and root would write, give away or pack whatever the link leads to.
pub(crate) fn refuse_root_for_another(home: &HomeFolder) -> Result<(), CommandFailure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    // One that is not there yet is made by us, in a folder of somebody's.
    let mut folders = home.root().ancestors();
    let Some(about) = folders.find_map(|folder| fs::metadata(folder).ok()) else {
        return Ok(());
    };
    let root = home.root().display();
    match about.uid() {
        0 => Ok(()),
        uid => {
            let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
            let name = name_of(uid, &users);
            let known = name.clone().unwrap_or_else(|| format!("user {uid}"));
            let typed = name.unwrap_or_else(|| format!("'#{uid}'"));
            Err(CommandFailure::new(
                format!("{root} belongs to {known}: what root writes there, {known} cannot read"),
                format!("run it as its owner: sudo -u {typed} hermetic --home {root} …"),
            ))
        }
    }
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
    let fields = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let found = fields.into_iter().find_map(|fields| match fields[..] {
        [name, _, number, ..] if number.parse() == Ok(uid) => Some(name),
        _ => None,
    })?;
    user_name(found).ok()
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
