//! Anthropic's Messages, at Anthropic and wherever else they are spoken.

mod content;
mod events;
mod request;
mod thinking;

pub(crate) use events::AnthropicReader;
pub(crate) use request::body;
