//! A step that failed, small enough to cross the cord.

use std::io;

use crate::plan::Report;

#[derive(Debug)]
pub(crate) struct Snag {
    step: String,
    errno: i32,
}

/// Names the step a result belongs to.
pub(crate) trait Step<T> {
    fn step(self, step: &str) -> Result<T, Snag>;
}

impl Snag {
    pub(crate) fn new(step: impl Into<String>, errno: impl Into<io::Error>) -> Self {
        let errno: io::Error = errno.into();
        Self {
            step: step.into(),
            errno: errno
                .raw_os_error()
                .unwrap_or(rustix::io::Errno::IO.raw_os_error()),
        }
    }

    pub(crate) fn into_error(self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }

    pub(crate) fn report(self) -> Report {
        Report::Failed {
            step: self.step,
            errno: self.errno,
        }
    }
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, Snag> {
        self.map_err(|errno| Snag::new(step, errno))
    }
}
