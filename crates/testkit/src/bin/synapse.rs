//! A homeserver for many tests: `cargo xtask test` starts it once. It says where it is on the first line of
//! its output, and ends with its input.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its answer is a line on stdout")]

use std::process::ExitCode;

use hermetic_testkit::pypi::{Synapse, SynapseLimits};
use tokio::io::{copy, sink, stdin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Synapse::start(SynapseLimits::None).await {
        Ok(synapse) => {
            println!("{}", synapse.url());
            let _ = copy(&mut stdin(), &mut sink()).await;
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("none: {why}");
            ExitCode::FAILURE
        }
    }
}
