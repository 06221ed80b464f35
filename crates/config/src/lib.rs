//! Reads the files and variables once and hands each part its own settings.
//!
//! A user of Hermes Agent points us at the same `~/.hermes`: names, types, defaults and precedence
//! are theirs. What differs is that nothing wrong is passed over: every mistake of every file is
//! reported at once, with its place and the nearest thing that would have been right, and with one
//! mistake there is no configuration.
//!
//! The way through: [`ConfigInputs`] are gathered, [`load`] reads each file into a tree that knows its
//! places, holds it against the schema, lets the strongest source of each key win and builds the
//! types the other parts use.

#![forbid(unsafe_code)]

mod backend;
mod check;
mod config;
mod dotenv;
mod dotenv_edit;
mod effective;
mod expand;
mod exposure;
mod grammar;
mod home;
mod inputs;
mod json_schema;
mod load;
mod nearest;
mod origin;
mod place;
mod problem;
mod providers;
mod reader;
mod scalar;
mod schema;
mod settings;
mod shape;
mod size;
mod source;
mod starter;
mod tree;
mod value;
mod wording;

pub use backend::{
    BackendChoice, BackendDoubt, ResolvedBackend, image, resolve_cli_backend,
    resolve_gateway_backend, terminal_image,
};
pub use config::{Config, UnusedKey};
pub use dotenv_edit::{dotenv_value, set_in_dotenv};
pub use effective::EffectiveSetting;
pub use home::HomeFolder;
pub use inputs::{ConfigInputs, NoHome};
pub use json_schema::json_schema;
pub use load::{load, load_with_dotenv};
pub use origin::SettingOrigin;
pub use problem::{ConfigProblem, ConfigProblems, ProblemSeverity};
pub use providers::{ApiMode, KnownProvider};
pub use settings::*;
pub use starter::STARTER;
pub use value::{RecordValue, SettingValue};
