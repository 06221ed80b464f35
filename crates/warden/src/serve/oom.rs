//! Whether the kernel ended something here for want of memory.

use std::os::fd::OwnedFd;

use rustix::io::pread;

/// An open cgroup file that counts. Both spellings have a line `oom_kill N`.
#[derive(Debug)]
pub(crate) struct OomCounter(Option<OwnedFd>);

impl OomCounter {
    pub(crate) fn new(file: Option<OwnedFd>) -> Self {
        Self(file)
    }

    /// 0 where nobody counts.
    pub(crate) fn read(&self) -> u64 {
        let Some(file) = &self.0 else { return 0 };
        let mut text = [0; 512];
        // From the start each time: the file is opened once, before the cgroups went out of sight,
        // and cannot be opened again.
        let Ok(length) = pread(file, &mut text, 0) else {
            return 0;
        };
        kills_in(&text[..length]).unwrap_or(0)
    }
}

fn kills_in(text: &[u8]) -> Option<u64> {
    str::from_utf8(text)
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_of_cgroups_are_understood() {
        let v2 = b"low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 0\n";
        let v1 = b"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n";
        assert_eq!(kills_in(v2), Some(3));
        assert_eq!(kills_in(v1), Some(7));
        assert_eq!(kills_in(b"oom_kill x"), None);
    }
}
