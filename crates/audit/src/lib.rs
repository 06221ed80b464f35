//! The record of what was decided and run.
//!
//! One file, one JSON object a line. Each line holds the hash of the one before, so that a changed,
//! missing, added or moved line shows when the chain is walked ([`walk`]), offline and without any
//! key. Each line is sealed by a key besides, and where the chain stands is noted in a file of its own,
//! so that a record that was written anew or cut shows where the key is. Whoever can read the key and
//! write all three files can still forge them: against that, key and note may lie elsewhere ([`AuditPaths`]),
//! and the [`ChainHead`] is noted by hand or in the system's journal.
//!
//! Several processes write to one file (the gateway and the command line). Each takes the kernel's
//! lock, reads how the file ends now, and adds its lines with one write: the chain cannot fork. What threads
//! of one process have to say at one moment is one write, and each of them waits until its line is written. A
//! write cut by a crash leaves a line that is no record; the next writer leaves it where it is and
//! adds a record that vouches for its bytes, so that a crash is told apart from tampering.
//!
//! A line survives the death of the process that wrote it, and is on the disk half a second later; in a
//! power cut that half second may be lost, and the next record says so (`resumed`).

#![forbid(unsafe_code)]

mod append_queue;
mod audit;
mod chain_check;
mod digest;
mod disk_sync;
mod event;
mod line;
mod open_record;
mod page;
mod places;
mod record_link;
mod seal;
mod snapshot;
mod tail;
mod verify;
mod walk;
mod witness;
mod witness_check;
mod words;

pub use audit::{AppendError, AuditLog};
pub use digest::RecordDigest;
pub use event::{
    ApprovalAnswer, ApprovalSubject, AuditEvent, CommandDecision, EgressEvent, MemoryEvent,
    MemorySubject, PairingEvent, RuleChange,
};
pub use line::{AuditRecord, ChainHead, InvalidHead};
pub use page::{RecordPage, page_before};
pub use places::AuditPaths;
pub use snapshot::RecordSnapshot;
pub use walk::{ChainFlaw, ChainReport, ProofStrength, RecordWalk, WalkError, walk, walk_at};
pub use witness::{ChainName, InvalidChainName, PublishedHead, WitnessedHead};
pub use witness_check::{VerifiedChain, WitnessDoubt, WitnessFlaw, WitnessReport, check_witnesses};
pub use words::AuditText;

/// No line is longer, so that whoever reads one knows how much memory that takes.
pub const LONGEST_RECORD_LINE: usize = 64 << 10;
