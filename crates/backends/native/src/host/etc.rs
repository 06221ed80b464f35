//! An `/etc` that holds what programs need and nothing that is anybody's secret.
//!
//! Made once and bound read-only into every sandbox. Named after its content: a running sandbox
//! keeps the one it started with when the host's changes.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Copied as far as everybody may read it. Not `gitconfig`, `npmrc`, `pip.conf`, `environment`:
/// tokens are kept there.
const COPIED: [&str; 24] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates.conf",
    "debian_version",
    "fonts",
    "inputrc",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "magic",
    "mime.types",
    "os-release",
    "perl",
    "pki/tls",
    "protocols",
    "python3",
    "python3.11",
    "services",
    "ssl",
    "terminfo",
];

const WRITTEN: [(&str, &str); 9] = [
    (
        "passwd",
        "root:x:0:0:root:/root:/usr/sbin/nologin\n\
         agent:x:1000:1000:agent:/home/agent:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    (
        "group",
        "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n",
    ),
    (
        "hosts",
        "127.0.0.1 localhost hermetic\n::1 localhost hermetic\n",
    ),
    ("hostname", "hermetic\n"),
    ("resolv.conf", ""),
    (
        "nsswitch.conf",
        "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\nprotocols: files\n",
    ),
    ("host.conf", "multi on\n"),
    ("shells", "/bin/sh\n/bin/bash\n"),
    ("profile", "PS1='\\w \\$ '\numask 022\n"),
];

/// Where Debian and Fedora keep all certificates in one file.
const BUNDLES: [&str; 2] = [
    "ssl/certs/ca-certificates.crt",
    "pki/tls/certs/ca-bundle.crt",
];

/// Enough for every certificate and then some; more is a mistake.
const MOST_ENTRIES: usize = 20_000;
const MOST_ETC_BYTES: u64 = 64 << 20;

/// The one in use, made anew only when the host's has changed: copying takes a tenth of a second,
/// and `hermetic exec` is to take none.
///
/// And once after each boot. Its files are not synced, which would take longer than copying them: a power cut
/// may have left their names with nothing in them.
pub(super) fn prepare(state: &Path, authority: Option<&str>) -> io::Result<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    prepare_since(&boot, state, authority)
}

fn prepare_since(boot: &str, state: &Path, authority: Option<&str>) -> io::Result<PathBuf> {
    let mut since = EtcCopy::default();
    since.add(boot.trim().as_bytes());
    let since = format!("{:016x}", since.digest);
    let note = state.join("etc-current");
    // The note is trusted only together with the folder: a crash may have left either alone.
    if let Some(current) = current(&note, &since, authority)
        && state.join(&current).is_dir()
    {
        return Ok(state.join(current));
    }
    // Looked at before it is copied: what changes meanwhile is copied anew by the next.
    let sources = sources();
    let stamp = stamp(&sources, authority);
    let made = make(state, authority, &since)?;
    let name = made.file_name().unwrap_or_default().to_string_lossy();
    // Each process writes a partial of its own: several may find the host's `/etc` changed at once.
    let aside = state.join(format!("etc-current.partial-{}", std::process::id()));
    let noted = fs::write(&aside, described(stamp, &since, &name, &sources))
        .and_then(|()| fs::rename(&aside, note));
    if noted.is_err() {
        let _ = fs::remove_file(&aside);
    }
    noted?;
    remove_older(state, &since);
    Ok(made)
}

/// The name of the copy that the note describes, if the host's is still what it was made from. The note names
/// every folder that was looked at, because looking into each of them for others takes ten times as long as
/// looking at it: a folder that gets another, or loses one, is itself changed by that.
fn current(note: &Path, since: &str, authority: Option<&str>) -> Option<String> {
    let text = fs::read_to_string(note).ok()?;
    let mut lines = text.lines();
    let (made_for, name) = lines.next()?.split_once(' ')?;
    let sources: Vec<_> = lines.map(PathBuf::from).collect();
    let is_current = made_for == format!("{:016x}-{since}", stamp(&sources, authority));
    (is_current && !sources.is_empty()).then(|| name.to_owned())
}

fn described(stamp: u64, since: &str, name: &str, sources: &[PathBuf]) -> Vec<u8> {
    let mut text = format!("{stamp:016x}-{since} {name}\n").into_bytes();
    for source in sources {
        text.extend(source.as_os_str().as_encoded_bytes());
        text.push(b'\n');
    }
    text
}

/// What was made before this boot is nobody's any more; what was made since may be in use.
fn remove_older(state: &Path, since: &str) {
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let made_since = name
            .strip_prefix("etc-")
            .and_then(|rest| rest.split_once('-'));
        if made_since.is_some_and(|(digest, made)| {
            digest.len() == since.len() && made.len() == since.len() && made != since
        }) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What is copied, and every folder below it. One whose name does not fit into a line of the note is left out:
/// the folder above it is not.
fn sources() -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> = COPIED
        .iter()
        .map(|name| Path::new("/etc").join(name))
        .collect();
    let mut sources = Vec::new();
    while let Some(path) = left.pop() {
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(folders.map(|folder| folder.path()).take(MOST_ENTRIES));
        if path.to_str().is_some_and(|path| !path.contains('\n')) {
            sources.push(path);
        }
    }
    sources
}

/// Changes when a file there is added, removed or replaced. What is copied is what packages
/// install, and those replace; a file that somebody edits in place below a folder is noticed with
/// the next change beside it.
fn stamp(sources: &[PathBuf], authority: Option<&str>) -> u64 {
    let mut digest = EtcCopy::default();
    digest.add(authority.unwrap_or_default().as_bytes());
    for (name, text) in WRITTEN {
        digest.add(name.as_bytes());
        digest.add(text.as_bytes());
    }
    for path in sources {
        let Ok(found) = fs::metadata(path) else {
            continue;
        };
        digest.add(path.as_os_str().as_encoded_bytes());
        digest.add(&found.ino().to_ne_bytes());
        digest.add(&found.len().to_ne_bytes());
        digest.add(&found.ctime().to_ne_bytes());
        digest.add(&found.ctime_nsec().to_ne_bytes());
    }
    digest.digest
}

fn make(state: &Path, authority: Option<&str>, since: &str) -> io::Result<PathBuf> {
    let partial = state.join(format!("etc.partial-{}", std::process::id()));
    let _ = fs::remove_dir_all(&partial);
    let digest = match fill(&partial, authority) {
        Ok(digest) => digest,
        Err(error) => {
            // Half a copy is of no use, and may be what took the last room there was.
            let _ = fs::remove_dir_all(&partial);
            return Err(error);
        }
    };
    let named = state.join(format!("etc-{digest:016x}-{since}"));
    // Named after what it holds, so whoever was first made the same; the loser's copy is not
    // needed.
    if named.exists() || fs::rename(&partial, &named).is_err() {
        fs::remove_dir_all(&partial)?;
    }
    Ok(named)
}

/// Returns the digest of what it holds.
fn fill(partial: &Path, authority: Option<&str>) -> io::Result<u64> {
    make_dir(partial)?;
    let mut copy = EtcCopy::default();
    for name in COPIED {
        let target = partial.join(name);
        if let Some(parent) = target.parent().filter(|parent| !parent.exists()) {
            make_dir(parent)?;
        }
        // `localtime` and `os-release` are links to what is meant.
        let source = Path::new("/etc").join(name);
        match fs::metadata(&source) {
            Ok(found) if found.is_file() => copy.file(&source, &found, &target)?,
            Ok(found) if found.is_dir() => copy.folder(&source, &target)?,
            _ => {}
        }
    }
    for (name, text) in WRITTEN {
        copy.add(text.as_bytes());
        let target = partial.join(name);
        fs::write(&target, text)?;
        // Whoever starts us may keep new files to themselves.
        fs::set_permissions(&target, fs::Permissions::from_mode(0o644))?;
    }
    symlink("/proc/self/mounts", partial.join("mtab"))?;
    if let Some(authority) = authority {
        copy.add(authority.as_bytes());
        believe(partial, authority)?;
    }
    Ok(copy.digest)
}

/// One more certificate in the files that hold all of them.
fn believe(etc: &Path, authority: &str) -> io::Result<()> {
    for name in BUNDLES {
        let path = etc.join(name);
        // A link would lead to the host's own file.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
            let mut file = fs::OpenOptions::new().append(true).open(&path)?;
            writeln!(file, "\n{}", authority.trim())?;
        }
    }
    Ok(())
}

/// Copies files and counts what it copied, so that a copy stays bounded.
struct EtcCopy {
    entries: usize,
    bytes: u64,
    digest: u64,
}

impl Default for EtcCopy {
    fn default() -> Self {
        Self {
            entries: 0,
            bytes: 0,
            // FNV-1a. It names copies of the host's own files and guards nothing, so that nobody
            // gains by a collision.
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }
}

impl EtcCopy {
    fn folder(&mut self, source: &Path, target: &Path) -> io::Result<()> {
        make_dir(target)?;
        let Ok(entries) = fs::read_dir(source) else {
            return Ok(());
        };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let (source, target) = (source.join(&name), target.join(&name));
            let Ok(found) = fs::symlink_metadata(&source) else {
                continue;
            };
            self.count(found.len())?;
            if found.is_symlink() {
                let link = fs::read_link(&source)?;
                self.add(link.as_os_str().as_encoded_bytes());
                symlink(link, target)?;
            // Only what everybody may list and enter. As root we could read all of it, and would
            // hand out what was closed.
            } else if found.is_dir() && found.mode() & 0o005 == 0o005 {
                self.folder(&source, &target)?;
            } else if found.is_file() {
                self.file(&source, &found, &target)?;
            }
        }
        Ok(())
    }

    /// What is not for everybody is not for a sandbox.
    fn file(&mut self, source: &Path, found: &fs::Metadata, target: &Path) -> io::Result<()> {
        if found.mode() & 0o004 == 0 {
            return Ok(());
        }
        self.count(found.len())?;
        let content = fs::read(source)?;
        self.add(target.file_name().unwrap_or_default().as_encoded_bytes());
        self.add(&content);
        fs::write(target, content)?;
        fs::set_permissions(
            target,
            fs::Permissions::from_mode(found.mode() & 0o755 | 0o444),
        )
    }

    fn count(&mut self, bytes: u64) -> io::Result<()> {
        self.entries += 1;
        self.bytes += bytes;
        if self.entries > MOST_ENTRIES || self.bytes > MOST_ETC_BYTES {
            return Err(io::Error::other("the host's /etc holds too much to copy"));
        }
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0]) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(etc: &Path) -> String {
        fs::read_to_string(etc.join("passwd")).unwrap()
    }

    #[test]
    fn what_a_power_cut_emptied_is_made_anew_after_the_next_boot() {
        let state = tempfile::tempdir().unwrap();
        let first = prepare_since("one\n", state.path(), None).unwrap();
        let whole = read(&first);
        assert!(whole.contains("agent"), "{whole}");
        assert_eq!(prepare_since("one\n", state.path(), None).unwrap(), first);

        fs::write(first.join("passwd"), "").unwrap();
        let second = prepare_since("two\n", state.path(), None).unwrap();
        assert_eq!(read(&second), whole);
        // No sandbox of the boot before is left to use it.
        assert!(!first.exists());
    }

    /// Folders are known from the note, which must be as true as a walk through all of them.
    #[test]
    fn a_folder_that_changed_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let sources = [folder.path().to_owned(), inner.clone()];
        assert_eq!(stamp(&sources, None), stamp(&sources, None));
        let is_noticed = |change: &dyn Fn()| {
            let before = stamp(&sources, None);
            let latest = sources.iter().map(|path| fs::metadata(path).unwrap());
            let latest = latest
                .map(|found| (found.ctime(), found.ctime_nsec()))
                .max();
            // The clock of a file system may stand still for some milliseconds.
            while Some(time_on_disk()) <= latest {}
            change();
            assert_ne!(before, stamp(&sources, None));
        };
        is_noticed(&|| fs::write(inner.join("file"), "").unwrap());
        is_noticed(&|| fs::create_dir(inner.join("another")).unwrap());
        is_noticed(&|| fs::remove_dir_all(&inner).unwrap());
    }

    fn time_on_disk() -> (i64, i64) {
        let found = tempfile::tempfile().unwrap().metadata().unwrap();
        (found.ctime(), found.ctime_nsec())
    }

    #[test]
    fn the_note_of_an_earlier_version_is_not_believed() {
        let state = tempfile::tempdir().unwrap();
        let first = prepare_since("one", state.path(), None).unwrap();
        let note = state.path().join("etc-current");
        let text = fs::read_to_string(&note).unwrap();
        fs::write(&note, text.lines().next().unwrap()).unwrap();
        assert_eq!(prepare_since("one", state.path(), None).unwrap(), first);
        assert_eq!(fs::read_to_string(&note).unwrap(), text);
    }

    #[test]
    fn another_of_the_same_boot_stays_for_those_who_use_it() {
        let state = tempfile::tempdir().unwrap();
        let first = prepare_since("one", state.path(), None).unwrap();
        let other = state.path().join("etc-0123456789abcdef");
        fs::create_dir(&other).unwrap();
        let second = prepare_since("one", state.path(), Some("a certificate")).unwrap();
        assert!(first.exists() && second.exists() && other.exists());
    }

    #[test]
    fn everybody_can_read_what_is_written() {
        let state = tempfile::tempdir().unwrap();
        let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let made = prepare_since("one", state.path(), None);
        rustix::process::umask(before);
        let made = made.unwrap();
        for (name, _) in WRITTEN {
            let mode = fs::metadata(made.join(name)).unwrap().mode();
            assert_eq!(mode & 0o777, 0o644, "{name}");
        }
    }
}
