//! Who may speak.
//!
//! [`Access::admit`] turns what came from a chat into an [`Admitted`], the only thing the rest of
//! the flow accepts, or into a [`Refused`] that says what the stranger may learn: nothing, or a
//! pairing code. The decision itself is a plain function of settings and message; only pairing
//! needs memory, behind [`PairingStore`]. No clock is read here.

#![forbid(unsafe_code)]

mod admit;
mod code;
mod key;
mod ledger;
mod pairing;
mod settings;
mod store;

pub use admit::{Access, Admitted, Grounds, Refused, Role, Said};
pub use code::PairingCode;
pub use ledger::{ApproveError, Approved, Ledger, Pending};
pub use pairing::{Offer, Pairing, PairingError, Standing};
pub use settings::{Bots, PlatformSettings, Settings, UnauthorizedDm, Users};
pub use store::{LedgerVersion, MemoryPairings, PairingStore, Saved, StoreError};
