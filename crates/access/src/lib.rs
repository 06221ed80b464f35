//! Who may speak.
//!
//! [`Access::admit`] turns what came from a chat into an [`Admitted`], the only thing the rest of
//! the flow accepts, or into a [`AdmissionRefusal`] that says what the stranger may learn: nothing, or a
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

pub use admit::{Access, AdmissionGrounds, AdmissionRefusal, Admitted, ChatUtterance, SenderRole};
pub use code::PairingCode;
pub use ledger::{
    ApproveError, PairedRole, PairedUser, PairingLedger, PairingPlace, PendingPairing,
};
pub use pairing::{PairingError, PairingOffer, PairingService, PairingStatus};
pub use settings::{
    AccessSettings, BotAdmission, PassingRoles, PlatformSettings, UnauthorizedDm, UserAllowlist,
};
pub use store::{LedgerVersion, MemoryPairings, PairingStore, PairingStoreError, SaveOutcome};
