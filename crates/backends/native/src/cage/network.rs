//! A host of its own that only knows itself.

use rustix::system::{setdomainname, sethostname};

use super::snag::{Snag, Step};
use super::sys;

pub(crate) fn name_host() -> Result<(), Snag> {
    sethostname(b"hermetic").step("set the host name")?;
    setdomainname(b"(none)").step("set the domain name")
}

pub(crate) fn raise_loopback() -> Result<(), Snag> {
    sys::loopback::raise().step("raise the loopback interface")
}
