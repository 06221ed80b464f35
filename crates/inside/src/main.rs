//! The one static program that goes into every sandbox.
//!
//! `serve` is the warden, `connect` bridges a pair of pipes to it, `cage` builds the native sandbox
//! around itself and then becomes its warden, `search` looks through files for one, `remote` looks
//! after the wardens of a host that is reached by ssh. They share a program so that one file is embedded,
//! placed and measured, and so that a native sandbox starts with one small exec.

#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1);
    let role = words.next();
    match role.as_deref().and_then(|word| word.to_str()) {
        Some("serve") => hermetic_warden::serve::main(words),
        Some("connect") => hermetic_warden::connect::main(words),
        Some(hermetic_search::ROLE) => hermetic_search::main(words),
        Some("remote") => hermetic_ssh::remote::main(words),
        Some("cage") => hermetic_native::cage::main(words),
        _ => ExitCode::from(64),
    }
}
