//! Logins at authorization servers, for MCP servers over HTTP.
//!
//! The authorization specification of MCP, from the client's side: which authorization server protects a
//! server is looked up, a person logs in there with a browser, and the tokens that come of it are kept in a
//! file of the operator's. Logging in is an act at a terminal; what runs for the chats afterwards only reads
//! the file and exchanges the refresh token, at the address that was found when the person logged in. So
//! nothing that a server says later decides where a token is sent.

#![forbid(unsafe_code)]

mod address;
mod bearer;
mod challenge;
mod code_flow;
mod device_login;
mod discovery;
mod failure;
mod login;
mod login_file;
mod redirect_listener;
mod registration;
mod scope;
mod settings;
mod token;
mod wire;

pub use address::check_server_address;
pub use bearer::{BearerError, BearerLogin};
pub use challenge::AuthChallenge;
pub use device_login::PendingDeviceLogin;
pub use failure::LoginError;
pub use login::{LoginAttempt, PendingLogin};
pub use login_file::{LoginFile, LoginFileError, LoginSummary};
pub use redirect_listener::RedirectListener;
pub use settings::OAuthSettings;
pub use wire::AuthorityClient;
