//! Makes pictures small enough for a message to a model.
//!
//! A photograph of a phone has some megabytes, a message of ours holds one: it is stored and read again at every
//! turn. Models scale what they are shown to some 1,500 pixels anyway, so nothing is lost that they would see.
//!
//! The bytes are a stranger's. They are decoded by code without `unsafe` of ours, within a bound on pixels and on
//! memory, one picture at a time ([`PictureScaler`]), and never on a thread that others wait for.

#![forbid(unsafe_code)]

mod kind;
mod scaler;
mod shrink;

pub use kind::media_type;
pub use scaler::{PictureScaler, ReadingSlot, SmallPicture};
pub use shrink::PictureError;

/// What a picture may have before it is made smaller. A larger one is not read at all.
pub const MOST_READ_BYTES: usize = 20 << 20;
