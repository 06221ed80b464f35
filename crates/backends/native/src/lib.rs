//! Hermetic's own sandbox: namespaces, seccomp, Landlock, cgroups. As root or as a plain user.

#[cfg(feature = "cage")]
pub mod cage;
