//! How many files this process may have open.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More would only make bounds that are derived from it meaningless.
const MOST_DESCRIPTORS: u64 = 1 << 20;

static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard one; how many files may be open from now on.
///
/// Programs that we start get the ordinary limit back, see [`ordinary`]: some walk through every number
/// up to it, others cannot wait on a descriptor beyond 1,023.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // Noted once, before the first raise: a second one would take the raised limit for the
    // ordinary.
    BEFORE.get_or_init(|| limit.current);
    let wanted = limit
        .maximum
        .unwrap_or(MOST_DESCRIPTORS)
        .min(MOST_DESCRIPTORS);
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit on open files stays as it is");
        }
    }
    available()
}

/// How many files may be open.
pub fn available() -> u64 {
    getrlimit(Resource::Nofile)
        .current
        .unwrap_or(MOST_DESCRIPTORS)
        .min(MOST_DESCRIPTORS)
}

/// The soft limit before [`raise`], which is what programs that we start are to have.
pub fn ordinary() -> Option<u64> {
    *BEFORE.get_or_init(|| getrlimit(Resource::Nofile).current)
}
