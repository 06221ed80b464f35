//! The host itself, for trusted use.

#![forbid(unsafe_code)]
