//! A step that failed, small enough to cross the control socket.

use std::io;

use crate::plan::CageReport;

/// A step of building the cage that failed, small enough to be reported to the gateway.
#[derive(Debug)]
pub(crate) struct StepFailure {
    step: String,
    errno: i32,
}

/// Names the step a result belongs to.
pub(crate) trait FailingStep<T> {
    fn step(self, step: &str) -> Result<T, StepFailure>;
}

impl StepFailure {
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

    pub(crate) fn report(self) -> CageReport {
        CageReport::Failed {
            step: self.step,
            errno: self.errno,
        }
    }
}

impl<T, E: Into<io::Error>> FailingStep<T> for Result<T, E> {
    fn step(self, step: &str) -> Result<T, StepFailure> {
        self.map_err(|errno| StepFailure::new(step, errno))
    }
}
