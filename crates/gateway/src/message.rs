//! What comes in: a message that was let in and written down, and what it asks for.

mod accepted;
mod command_access;
mod edited;
mod forgetting;
mod greetings;
mod inbound_files;
pub(crate) mod notices;
mod refused;
mod resume;
mod slash;
mod voice;

pub(crate) use accepted::AcceptedMessage;
pub use command_access::{CommandAccess, CommandRule, PlatformCommandAccess};
pub(crate) use edited::EditOrder;
pub(crate) use forgetting::ForgettingClock;
pub use notices::ReachableSandboxes;
pub(crate) use slash::ChatCommand;
pub use slash::{ArgumentDescription, COMMANDS, CommandDescription};
pub use voice::VoiceNotes;
