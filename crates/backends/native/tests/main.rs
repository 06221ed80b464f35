//! The native sandbox, attacked from inside and killed from outside, as root and as a plain user.

mod crash;
mod escape;
mod lab;
mod leaks;
mod life;
mod limits;
mod trees;
mod work;
