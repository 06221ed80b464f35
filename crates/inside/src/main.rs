//! The one static program that goes into every sandbox.
//!
//! `serve` is the warden, `connect` bridges a pair of pipes to it, `cage` builds the native sandbox
//! around itself and then becomes its warden, `sealed serve` is a warden in somebody else's container
//! that allows the same system calls as a cage, `search` looks through files for one, `keep-workspace`
//! copies them for `/undo`, `attack` tries to get out, `remote` looks after the wardens of a host that is reached by ssh, `terminal` is a
//! bridge for who has nothing but a terminal, `pod` looks around in a pod and becomes its warden. They
//! share a program so that one file is embedded, placed and measured, and so that a native sandbox
//! starts with one small exec.

#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

/// sysexits(3): the command line makes no sense.
const USAGE: u8 = 64;
/// sysexits(3): the kernel does not take the filter.
const NO_PERMISSION: u8 = 77;

fn main() -> ExitCode {
    play(env::args_os().skip(1))
}

fn play(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let role = words.next();
    match role.as_deref().and_then(|word| word.to_str()) {
        Some("sealed") => sealed(words),
        Some("serve") => hermetic_warden::serve::main(words),
        Some("connect") => hermetic_warden::connect::main(words),
        Some(hermetic_search::ROLE) => hermetic_search::main(words),
        Some(hermetic_workspace_copy::ROLE) => hermetic_workspace_copy::main(words),
        Some(hermetic_attack::ROLE) => hermetic_attack::main(words, hermetic_native::cage::knock),
        Some("remote") => hermetic_ssh::remote::main(words),
        Some("terminal") => hermetic_daytona::inside::main(words),
        Some("pod") => hermetic_kubernetes::inside::main(words),
        Some("cage") => hermetic_native::cage::main(words),
        _ => ExitCode::from(USAGE),
    }
}

/// `sealed [--limits FILES:BYTES] serve …`. An engine that leaves its limits out has them kept from here.
fn sealed(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    let mut word = words.next();
    if word.as_ref().is_some_and(|word| word == "--limits") {
        let limits = words.next();
        let limits = limits
            .as_ref()
            .and_then(|text| text.to_str()?.split_once(':'));
        let limits =
            limits.and_then(|(files, bytes)| Some((files.parse().ok()?, bytes.parse().ok()?)));
        let Some((files, bytes)) = limits else {
            return ExitCode::from(USAGE);
        };
        if hermetic_native::cage::limit_files(files, bytes).is_err() {
            return ExitCode::from(NO_PERMISSION);
        }
        word = words.next();
    }
    match hermetic_native::cage::filter_calls() {
        Ok(()) if word.is_some_and(|word| word == "serve") => hermetic_warden::serve::main(words),
        Ok(()) => ExitCode::from(USAGE),
        // Whoever started this reads what it said where it should have answered.
        Err(_) => ExitCode::from(NO_PERMISSION),
    }
}
