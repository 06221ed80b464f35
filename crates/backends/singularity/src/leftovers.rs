//! What an instance may leave behind when its maker, its keeper or its gateway is killed: an entry
//! in the list, a log, and the instance itself.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermetic_sandbox::BackendError;
use hermetic_sandbox::host::{ProcessHandle, kill, wait_for_end};
use serde::Deserialize;

/// What is killed is gone at once, except from a disk that does not answer.
const INSTANCE_KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// No entry of the list is larger.
const MOST_ENTRY_BYTES: u64 = 1 << 20;

/// Ends the instance of this name, if it is in our list and lives, and forgets it.
pub(crate) fn clear(list: &Path, name: &str) -> Result<(), BackendError> {
    let instances = list.join("instances");
    for folder in below(&below_all(&instances, "app"), name)
        .into_iter()
        .chain(below(&below_all(&instances, "sing"), name))
    {
        if let Some((init, keeper)) = entry(&folder.join(format!("{name}.json"))) {
            // Ended before its entry goes: without the entry nobody would find it again.
            end(name, &init, &keeper)?;
        }
        remove(&folder)?;
    }
    for file in [format!("{name}.out"), format!("{name}.err")] {
        for log in below(&below_all(&instances, "logs"), &file) {
            let _ = fs::remove_file(log);
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct ProcessEntry {
    pid: i32,
    ppid: i32,
}

/// Its first process and the one outside that looks after it, if they are what they are said to
/// be: the numbers may have passed on to somebody else's.
fn entry(file: &Path) -> Option<(ProcessHandle, ProcessHandle)> {
    let size = fs::metadata(file).ok()?.len();
    if size > MOST_ENTRY_BYTES {
        return None;
    }
    let entry: ProcessEntry = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    Some((
        ProcessHandle::observe(entry.pid)?,
        ProcessHandle::observe(entry.ppid)?,
    ))
}

fn end(name: &str, init: &ProcessHandle, keeper: &ProcessHandle) -> Result<(), BackendError> {
    let (Some(init_fd), Some(keeper_fd)) = (init.open(), keeper.open()) else {
        return Ok(());
    };
    // Looked at with both processes held, so what it says is said of them.
    if !tends(keeper.pid, name) || parent_of(init.pid) != Some(keeper.pid) {
        return Ok(());
    }
    // The first process and not the keeper: its end is the end of all inside, and the keeper tidies
    // up after it.
    if !kill(init_fd.as_fd(), INSTANCE_KILL_TIMEOUT) {
        let late = std::io::Error::from(std::io::ErrorKind::TimedOut);
        return Err(BackendError::failed("end the instance", late));
    }
    if !wait_for_end(keeper_fd.as_fd(), INSTANCE_KILL_TIMEOUT) {
        kill(keeper_fd.as_fd(), INSTANCE_KILL_TIMEOUT);
    }
    Ok(())
}

/// A keeper is titled after its instance: `Apptainer instance: user [name]`.
fn tends(keeper: i32, name: &str) -> bool {
    let title = fs::read(format!("/proc/{keeper}/cmdline")).unwrap_or_default();
    let title = String::from_utf8_lossy(&title).into_owned();
    title.contains(" instance: ") && title.contains(&format!("[{name}]"))
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

fn remove(folder: &Path) -> Result<(), BackendError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BackendError::failed("forget the instance", error))
        }
        _ => Ok(()),
    }
}

/// The list is sorted by host name and user: `app/HOST/USER`.
fn below_all(instances: &Path, kind: &str) -> Vec<PathBuf> {
    let hosts = children(&instances.join(kind));
    hosts.iter().flat_map(|host| children(host)).collect()
}

fn below(folders: &[PathBuf], name: &str) -> Vec<PathBuf> {
    let named = folders.iter().map(|folder| folder.join(name));
    named.filter(|path| path.exists()).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_names_somebody_else_is_forgotten_and_he_lives() {
        let list = tempfile::tempdir().unwrap();
        let folder = list.path().join("instances/app/host/user/hermetic-a-b");
        fs::create_dir_all(&folder).unwrap();
        let own = std::process::id();
        let text = format!(
            "{{\"pid\": {own}, \"ppid\": {}}}",
            std::os::unix::process::parent_id()
        );
        fs::write(folder.join("hermetic-a-b.json"), text).unwrap();
        let other = folder.with_file_name("theirs");
        fs::create_dir_all(&other).unwrap();
        clear(list.path(), "hermetic-a-b").unwrap();
        assert!(!folder.exists() && other.exists());
        for hostile in ["", "{}", "[1,2]", "{\"pid\": -1, \"ppid\": 0}"] {
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("hermetic-a-b.json"), hostile).unwrap();
            clear(list.path(), "hermetic-a-b").unwrap();
            assert!(!folder.exists());
        }
    }
}
