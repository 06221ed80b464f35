//! What a sandbox uses at one moment, and what runs in it.

use std::time::Duration;

/// What a sandbox uses now, as far as its backend can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveUse {
    /// Processor time of all its processes since it was started. Two looks tell how busy it is.
    pub cpu_time: Option<Duration>,
    /// Without what the kernel would give up at once, such as files that were read.
    pub memory_bytes: Option<u64>,
    pub pids: Option<u64>,
}

/// One process inside.
///
/// Its name is all that is told of what it runs. A command line may hold secrets, and reading one touches
/// memory of the process, which can make the reader wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxProcess {
    /// Its number inside, where the backend knows it.
    pub pid: u64,
    /// Chosen by the process itself, so it is a stranger's text. Short: the kernel keeps fifteen bytes.
    pub name: String,
    pub cpu_time: Duration,
    pub memory_bytes: u64,
}
