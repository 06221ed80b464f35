//! What one sandbox may use up.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Cores, as in `1.5`.
    pub cpu: f64,
    pub memory_bytes: u64,
    pub disk_bytes: u64,
    pub inodes: u64,
    pub pids: u32,
    pub open_files: u32,
}

impl Default for SandboxLimits {
    /// The defaults that Hermes users know, plus the two bounds they never had.
    fn default() -> Self {
        Self {
            cpu: 1.0,
            memory_bytes: 5120 << 20,
            disk_bytes: 51200 << 20,
            inodes: 1_000_000,
            pids: 256,
            open_files: 4096,
        }
    }
}
