//! What goes wrong, once for each time it is planned.

/// For a request whose method and path begin so.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) request: &'static str,
    pub(crate) status: u16,
    pub(crate) moment: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Nothing was done.
    Before,
    /// It was done, and the answer is lost.
    After,
}

impl Fault {
    pub(crate) fn before(request: &'static str, status: u16) -> Self {
        let moment = Moment::Before;
        Self {
            request,
            status,
            moment,
        }
    }

    pub(crate) fn after(request: &'static str, status: u16) -> Self {
        let moment = Moment::After;
        Self {
            request,
            status,
            moment,
        }
    }
}

pub(crate) fn take(faults: &mut Vec<Fault>, request: &str) -> Option<Fault> {
    let at = faults
        .iter()
        .position(|fault| request.starts_with(fault.request))?;
    Some(faults.remove(at))
}
