//! Logins against an authorization server of our own that can be made to lie.

mod authority;
mod login;
mod renewal;
