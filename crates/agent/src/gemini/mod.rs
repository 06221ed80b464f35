//! Gemini's `generateContent`, streamed.

mod events;
mod request;

pub(crate) use events::GeminiReader;
pub(crate) use request::body;
