//! The warden program as bytes, so that one install is one file.

#![forbid(unsafe_code)]

/// A statically linked executable for the machine this was built for.
pub static WARDEN: &[u8] = include_bytes!(env!("HERMETIC_WARDEN_PROGRAM"));
