//! OpenAI's Responses. Nothing is kept at the provider: every request holds the whole conversation.

mod events;
mod request;

pub(crate) use events::ResponsesReader;
pub(crate) use request::body;
