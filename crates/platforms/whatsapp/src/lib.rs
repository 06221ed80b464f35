//! WhatsApp, by its Cloud API or by a bridge that runs beside the gateway.
//!
//! [`WhatsAppCloud`] is for a business number: Meta posts signed notifications to us and takes messages
//! by its Graph API. People there are known by a business-scoped id, because a phone number may be
//! hidden; [`person_named`] says how an allowlist names them. [`WhatsAppBridge`] is for people without a
//! business account.

#![forbid(unsafe_code)]

mod bridge;
mod cloud;
mod dialect;
mod hearing;
mod pace;
#[doc(hidden)]
pub mod parser;
mod person;

pub use bridge::{BridgeConfig, BridgeConfigError, BridgeTiming, WhatsAppBridge};
pub use cloud::{
    CloudConfig, CloudConfigError, CloudTiming, GraphVersion, MessageTemplate, WhatsAppCloud,
};
pub use dialect::to_whatsapp;
pub use hearing::WhatsAppHearing;
pub use person::{PhoneNumber, person_named};
