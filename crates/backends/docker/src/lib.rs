//! Sandboxes as containers, over the engine's API: Docker, Podman, near or far.
//!
//! A container has no network, no capability and our warden as its first process. The warden is
//! placed by the archive API, once for each image, so an engine on another machine serves as well
//! as a near one. The first link is the container's own stdin and stdout; one that comes later is an
//! attached `exec` of `warden connect`.
//!
//! The engine is the only memory: a container's labels say whose it is and for which conversation,
//! its writable layer holds the files, stopping it keeps them. What carries no label of this
//! installation is never touched.

#![forbid(unsafe_code)]

mod address;
mod archive;
mod birth;
mod container;
mod context;
mod death;
mod dialect;
mod disk_use;
mod docker;
mod engine;
mod extra;
mod files;
mod hidden;
mod image;
mod kept_limits;
mod label;
mod lacks;
mod layer;
mod link;
mod live_use;
mod login;
mod readiness;
mod rights;
mod shape;
mod ssh;
mod trust;
mod user;
mod volume;
mod watch;

pub use address::{EngineAddress, EngineAddressError, SshHost, TlsHost};
pub use context::client_folder;
pub use docker::{DockerBackend, DockerConfig};
pub use extra::{ExtraError, ExtraFlags};
pub use image::{PullListener, PullProgress};
pub use shape::{ContainerOptions, ContainerSeal, RootView};
pub use user::{ContainerUser, NoSuchUser};
pub use volume::{ContainerVolume, VolumeError};
pub use watch::LimitEnd;
