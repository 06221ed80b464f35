//! Growth of a whole file system that nobody explains, charged to whoever hides something.

use super::usage::Usage;

/// What one sandbox is charged with besides what was counted.
#[derive(Debug, Default)]
pub struct Blame {
    /// The least that was in use by all others, at any count since all of this one's was weighed.
    others: Option<Usage>,
    /// What has been in use since then that nobody can weigh, and that this one may hold.
    charged: Usage,
}

impl Blame {
    /// Takes a count into account: what this one has, what is in use on the whole file system, and
    /// whether it holds something that could not be weighed. Whoever does is charged with the growth
    /// that nobody explains, until all of his can be weighed again.
    pub fn weigh(&mut self, counted: Usage, whole: Usage, doubt: bool) {
        let others = whole.minus(counted);
        let least = self.others.map_or(others, |least| least.least(others));
        if doubt {
            self.charged = self.charged.most(others.minus(least));
            self.others = Some(least);
        } else {
            self.charged = Usage::default();
            self.others = Some(others);
        }
    }

    pub fn charged(&self) -> Usage {
        self.charged
    }
}
