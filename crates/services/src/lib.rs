//! Services of others that the gateway itself calls, with the operator's key: web search, transcription, speech
//! and images.
//!
//! Such a request is none of a sandbox's: it goes where the configuration says and nowhere else, by the
//! company's proxy where there is one, and follows no redirection. What comes back is somebody else's data:
//! bounded before it is kept, and never an order to anybody.

#![forbid(unsafe_code)]

mod image_generation;
mod search;
mod service_client;
mod spoken_text;
mod transcription;

pub use image_generation::{GeneratedImage, ImageService, ImageSettings, ImageShape};
pub use search::{FoundPage, SearchProvider, SearchService, SearchSettings};
pub use service_client::{ServiceError, UnusableService};
pub use spoken_text::{SpeechService, SpeechSettings};
pub use transcription::{TranscriptionService, TranscriptionSettings};
