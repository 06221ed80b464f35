//! No capability, in no set, and no way to get one back.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits,
    set_no_new_privs,
};

use super::step_failure::{FailingStep, StepFailure};

pub(crate) fn drop_capabilities() -> Result<(), StepFailure> {
    // Uid 0 means nothing from here on, and this cannot be undone.
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    // The bits and the bounding set first: changing them takes a capability that the last step
    // drops.
    set_capabilities_secure_bits(bits).step("lock the secure bits")?;
    empty_bounding_set().step("empty the bounding set")?;
    clear_ambient_capability_set().step("empty the ambient set")?;
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, sets).step("drop every capability")?;
    // Set last, as nothing above needs it: a set-uid file of an image gives nothing from here on,
    // and Landlock and seccomp take it for granted.
    set_no_new_privs(true).step("set no_new_privs")
}

/// Ends at the first number the kernel does not know.
fn empty_bounding_set() -> rustix::io::Result<()> {
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            Err(Errno::INVAL) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
