//! Questions to people, as chats show them and answer them.

mod answers;
mod chat_prompts;
mod intended_request;
mod press;
mod service;

pub use service::ApprovalService;
pub(crate) use service::person_name;
