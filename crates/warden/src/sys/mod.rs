//! What no safe crate wraps, for the gateway's side as for the sandbox's.

#![allow(
    unsafe_code,
    reason = "this folder is where the crate's unsafe code lives"
)]

mod pages;

#[cfg(feature = "serve")]
pub(crate) use pages::keep_freed_frames;
pub use pages::{give_back_freed_memory, let_go_of_startup_code};
