//! Cargo's companions, installed from source where they are missing.

use crate::failure::ChoreFailure;
use crate::{machine, program, say};

/// A version known to build with our toolchain.
pub(crate) struct CargoTool {
    name: &'static str,
    version: &'static str,
    options: &'static [&'static str],
}

pub(crate) const NEXTEST: CargoTool = CargoTool {
    name: "nextest",
    version: "0.9.151",
    // Without the part that updates itself, which would build a TLS stack.
    options: &["--no-default-features", "--features", "default-no-update"],
};

pub(crate) const DENY: CargoTool = CargoTool {
    name: "deny",
    version: "0.20.2",
    options: &[],
};

impl CargoTool {
    /// Any version that answers will do; a missing one is built, which takes minutes.
    pub(crate) fn provide(&self) -> Result<(), ChoreFailure> {
        if program::works(machine::cargo().args([self.name, "--version"])) {
            return Ok(());
        }
        say::note(&format!(
            "cargo-{} is missing; building it takes some minutes",
            self.name
        ));
        program::show(
            machine::cargo()
                // They run for seconds and would be built for minutes.
                .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
                .env("CARGO_PROFILE_RELEASE_LTO", "off")
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
                .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
                .args(["install", "--locked", "--version", self.version])
                .args(self.options)
                .arg(format!("cargo-{}", self.name)),
        )
    }
}
