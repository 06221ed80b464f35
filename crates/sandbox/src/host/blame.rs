//! Growth of a whole file system that nobody explains, charged to whoever hides something.

use super::usage::DiskUsage;

/// What one sandbox is charged with besides what was counted.
#[derive(Debug, Default)]
pub struct UsageBlame {
    /// The least that was in use by all others, at any count since all of this one's was weighed.
    others: Option<DiskUsage>,
    /// What has been in use since then that nobody can weigh, and that this one may hold.
    charged: DiskUsage,
}

impl UsageBlame {
    /// Takes a count into account: what this one has, what is in use on the whole file system, and
    /// whether it holds something that could not be weighed. Whoever does is charged with the growth
    /// that nobody explains, until all of his can be weighed again.
    pub fn weigh(&mut self, counted: DiskUsage, whole: DiskUsage, doubt: bool) {
        let others = whole.minus(counted);
        let least = self.others.map_or(others, |least| least.least(others));
        if doubt {
            self.charged = self.charged.most(others.minus(least));
            self.others = Some(least);
        } else {
            self.charged = DiskUsage::default();
            self.others = Some(others);
        }
    }

    pub fn charged(&self) -> DiskUsage {
        self.charged
    }
}
