//! What a platform says about an account of ours, before it is used.

use std::error::Error;

use thiserror::Error;

/// An account that the platform knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountCheck {
    /// As people see it there; `None` if the platform has no such name.
    pub name: Option<String>,
    pub shortcomings: Vec<AccountShortcoming>,
}

/// Something that an account lacks: a permission, a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountShortcoming {
    /// What does not work for it.
    pub problem: String,
    /// What to tick, type or set.
    pub remedy: String,
}

#[derive(Debug, Error)]
pub enum CheckError {
    #[error("the credentials are not accepted: {description}")]
    Unauthorized { description: String },
    #[error("the platform refused: {description}")]
    Refused { description: String },
    #[error("the platform cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
}
