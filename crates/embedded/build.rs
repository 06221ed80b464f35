//! Builds the warden program, statically linked, with a cargo of its own.
//!
//! Cargo's own way to depend on a program's file is not in the stable toolchain, so this runs a
//! second cargo with a target folder of its own inside ours: it never waits for the lock of the first.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages the program is made of; a change in one builds it again, one in its tests or benches does not.
const PACKAGES: [&str; 7] = [
    "inside",
    "attack",
    "search",
    "warden",
    "workspace-copy",
    "types",
    "backends/native",
];

/// What else it is made of.
const SOURCES: [&str; 6] = [
    "backends/daytona/src/frame.rs",
    "backends/daytona/src/inside.rs",
    "backends/kubernetes/src/inside",
    "backends/ssh/src",
    "../Cargo.lock",
    "../Cargo.toml",
];

fn main() {
    let crates = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("..");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    let target = env::var("TARGET").expect("set by cargo");
    let of_packages = PACKAGES.iter().flat_map(|package| {
        let folder = crates.join(package);
        [folder.join("src"), folder.join("Cargo.toml")]
    });
    let others = SOURCES.iter().map(|source| crates.join(source));
    for source in of_packages.chain(others) {
        println!("cargo::rerun-if-changed={}", source.display());
    }

    // A test build does not wait for the optimiser: what is released is built by `warden`.
    let profile = match env::var("PROFILE").as_deref() {
        Ok("release") => "warden",
        _ => "warden-quick",
    };
    let folder = program_folder(&out);
    let status = Command::new(env::var_os("CARGO").expect("set by cargo"))
        .args([
            "build",
            "--package",
            "hermetic-inside",
            "--profile",
            profile,
        ])
        .args(["--target", &target, "--target-dir"])
        .arg(&folder)
        .arg("--manifest-path")
        .arg(crates.join("../Cargo.toml"))
        // What the outer build says about itself must not leak into the inner one.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        // Nothing unwinds in it, so the tables for that would be copied for nothing.
        .env(
            "RUSTFLAGS",
            "-C target-feature=+crt-static -C relocation-model=static -C force-unwind-tables=no",
        )
        .status()
        .expect("cargo can be started from a build script");
    assert!(status.success(), "the warden program does not build");

    let program = folder.join(target).join(profile).join("warden");
    println!(
        "cargo::rustc-env=HERMETIC_WARDEN_PROGRAM={}",
        program.display()
    );
}

/// Where the inner cargo builds: one folder for every build of this kind.
///
/// Lints and tests compile this package apart, each with an `OUT_DIR` of its own, and a folder in each of
/// them would mean to compile the whole program twice. Where cargo has another layout than
/// `<target>/debug/build/<this package>/out`, it is built in ours.
fn program_folder(out: &Path) -> PathBuf {
    let build = out.ancestors().nth(2);
    match build.filter(|build| build.ends_with("build")) {
        Some(build) => build.with_file_name("inside-program"),
        None => out.join("program"),
    }
}
