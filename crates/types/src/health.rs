//! How the parts of a running program are, for whoever watches it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Where one part says how it is. Clones share what was said.
#[derive(Clone, Debug, Default)]
pub struct HealthReport(Arc<Mutex<PartHealth>>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum PartHealth {
    #[default]
    Ok,
    /// It does not do all of its work.
    Degraded {
        /// For the operator: no secret, and nothing that a person wrote.
        why: String,
        since: Timestamp,
    },
}

impl HealthReport {
    /// Whether that is news.
    pub fn recovered(&self) -> bool {
        let before = std::mem::take(&mut *self.lock());
        before != PartHealth::Ok
    }

    /// Whether that is news. Trouble that goes on keeps the time at which it began.
    pub fn degraded(&self, why: impl fmt::Display, now: Timestamp) -> bool {
        let why = why.to_string();
        let mut health = self.lock();
        let (since, is_new) = match &*health {
            PartHealth::Ok => (now, true),
            PartHealth::Degraded { why: before, since } => (*since, *before != why),
        };
        *health = PartHealth::Degraded { why, since };
        is_new
    }

    pub fn health(&self) -> PartHealth {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, PartHealth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartHealth {
    pub fn is_ok(&self) -> bool {
        *self == Self::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_news_once_and_keeps_its_beginning() {
        let report = HealthReport::default();
        let at = Timestamp::from_millis;
        assert!(!report.recovered());
        assert!(report.degraded("the disk is full", at(5)));
        assert!(!report.degraded("the disk is full", at(6)));
        assert!(report.degraded("the disk does not work", at(7)));
        let expected = PartHealth::Degraded {
            why: "the disk does not work".to_owned(),
            since: at(5),
        };
        assert_eq!(report.clone().health(), expected);
        assert!(report.recovered());
        assert!(report.health().is_ok());
    }
}
