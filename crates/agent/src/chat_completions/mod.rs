//! OpenAI's chat completions, and what compatible servers make of them.

mod chunk;
mod content;
mod reasoning;
mod request;

pub(crate) use chunk::ChatCompletionsReader;
pub(crate) use request::body;
