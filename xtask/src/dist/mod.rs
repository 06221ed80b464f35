//! `cargo xtask dist`: what is released, made by one command into `target/dist`.

mod build;
mod check;
mod container;
mod cross;
mod deb;
mod debian_rust;
mod elf;
mod papers;
mod platform;
mod sbom;
mod sysroot;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::build::BuiltProgram;
pub(crate) use self::build::DistProfile;
pub(crate) use self::cross::CrossToolchain;
use self::papers::ProgramPapers;
pub(crate) use self::platform::DistTarget;
use crate::arguments::DistOptions;
use crate::failure::ChoreFailure;
use crate::{leftovers, machine, program, say};

/// What every file of a release says about itself.
#[derive(Debug)]
struct DistRelease {
    version: String,
    /// Seconds since 1970 of the last commit: what is packed has this time, whenever it is packed.
    epoch: u64,
    /// The same as Debian's changelogs write it.
    date: String,
    /// Where the files go.
    folder: PathBuf,
}

const SUMS: &str = "SHA256SUMS";

pub(crate) fn run(options: &DistOptions) -> Result<(), ChoreFailure> {
    let targets = match options.targets.is_empty() {
        true => vec![DistTarget::host()?],
        false => options.targets.clone(),
    };
    // Before anything of an earlier release is touched.
    let mut toolchains = Vec::new();
    for target in targets {
        toolchains.push(CrossToolchain::provide(target)?);
    }
    if options.check {
        check::can_be_done()?;
    }
    let release = DistRelease::of_tree(options.profile)?;
    for toolchain in &toolchains {
        make(&release, toolchain, options)?;
    }
    let installer = machine::root().join("install.sh");
    fs::copy(&installer, release.folder.join("install.sh"))
        .map_err(ChoreFailure::file("copy install.sh"))?;
    let files = release.write_sums()?;
    if options.check {
        for toolchain in &toolchains {
            check::run(&release, toolchain.target())?;
        }
    }
    say::end(&format!(
        "{} files in {}; {SUMS} has their sums",
        files.len(),
        release.folder.display()
    ));
    for file in &files {
        let bytes = fs::metadata(file)
            .map_err(ChoreFailure::file("look at a file"))?
            .len();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        say::plain(&sized(bytes, &name));
    }
    Ok(())
}

fn make(
    release: &DistRelease,
    toolchain: &CrossToolchain,
    options: &DistOptions,
) -> Result<(), ChoreFailure> {
    let target = toolchain.target();
    say::step(&format!("The program for {}", target.name()));
    let built = BuiltProgram::build(toolchain, options.profile)?;
    let work = DistWork::begin()?;
    say::step("Manual pages, completions, units");
    let papers = ProgramPapers::write(&built, target, work.0.join("papers"))?;
    say::step("What it is made of");
    let document = sbom::document(target, &release.version)?;
    let name = format!("hermetic-{}-{}.cdx.json", release.version, target.name());
    fs::write(release.folder.join(name), document)
        .map_err(ChoreFailure::file("write what it is made of"))?;
    say::step("The archive");
    archive(release, target, &built, &papers, &work.0)?;
    say::step("The package");
    deb::make(release, target, &built, &papers, &work.0)?;
    if options.no_image {
        return Ok(());
    }
    say::step("The container image");
    if !machine::runs(target) {
        say::note(&format!(
            "SKIPPED: packages for {} cannot be set up here ({})",
            target.name(),
            machine::RUNNING_OTHERS
        ));
        return Ok(());
    }
    container::make(release, target, &built, &work.0).map(drop)
}

/// The program with its papers, for every system that has no packages of Debian's kind.
fn archive(
    release: &DistRelease,
    target: DistTarget,
    built: &BuiltProgram,
    papers: &ProgramPapers,
    work: &Path,
) -> Result<(), ChoreFailure> {
    let name = format!("hermetic-{}-{}", release.version, target.name());
    let folder = work.join(&name);
    let into = |from: &Path, place: &str| {
        let to = folder.join(place);
        let made = fs::create_dir_all(to.parent().unwrap_or(&folder));
        made.and_then(|()| fs::copy(from, &to).map(drop))
            .map_err(ChoreFailure::file(format!("copy {}", from.display())))
    };
    into(&built.path, "hermetic")?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        into(&machine::root().join(licence), licence)?;
    }
    for page in papers::files(&papers.man())? {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        into(&page, &format!("man/{name}"))?;
    }
    for (shell, _) in papers::COMPLETIONS {
        into(&papers.completion(shell), &format!("completions/{shell}"))?;
    }
    let file = release.archive(target);
    let mut pack = container::tar(release);
    pack.args(["--mode=u=rwX,go=rX", "-cf"]).arg(&file);
    program::show(pack.arg("-C").arg(work).arg(&name))?;
    program::show(
        Command::new("gzip")
            .args(["-6", "--no-name", "--force"])
            .arg(&file),
    )
}

impl DistRelease {
    fn of_tree(profile: DistProfile) -> Result<Self, ChoreFailure> {
        let manifest = fs::read_to_string(machine::root().join("Cargo.toml"))
            .map_err(ChoreFailure::file("read Cargo.toml"))?;
        let version = version(&manifest).ok_or_else(|| ChoreFailure::Lacking {
            what: "Cargo.toml names no version".to_owned(),
            remedy: "[workspace.package] has it".to_owned(),
        })?;
        let version = match profile {
            DistProfile::Release => version,
            // Older than the release of that name, to whoever compares versions.
            DistProfile::Dev => format!("{version}~dev"),
        };
        let folder = machine::target().join("dist");
        // What was made before may be of another version, and would be listed among the sums.
        match fs::remove_dir_all(&folder) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(ChoreFailure::file(format!("clear {}", folder.display()))(
                    why,
                ));
            }
            _ => {}
        }
        fs::create_dir_all(&folder)
            .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
        let mut git = Command::new("git");
        git.current_dir(machine::root())
            .args(["log", "-1", "--format=%ct"]);
        let epoch = program::listen(&mut git).ok();
        let epoch =
            epoch.and_then(|said| String::from_utf8_lossy(&said.stdout).trim().parse().ok());
        let epoch = epoch.unwrap_or(0);
        let mut date = Command::new("date");
        date.env("LC_ALL", "C")
            .args(["--utc", "--rfc-email", &format!("--date=@{epoch}")]);
        let date = program::listen(&mut date)?;
        Ok(Self {
            version,
            epoch,
            date: String::from_utf8_lossy(&date.stdout).trim().to_owned(),
            folder,
        })
    }

    /// Before it is compressed.
    fn archive(&self, target: DistTarget) -> PathBuf {
        let name = format!("hermetic-{}-{}.tar", self.version, target.name());
        self.folder.join(name)
    }

    /// Before it is compressed.
    fn image(&self, target: DistTarget) -> PathBuf {
        let name = format!("hermetic-{}-{}.image.tar", self.version, target.name());
        self.folder.join(name)
    }

    fn package(&self, target: DistTarget) -> PathBuf {
        let name = format!("hermetic_{}_{}.deb", self.version, target.debian());
        self.folder.join(name)
    }

    /// Of every file, in the form that `sha256sum --check` reads. Returns them.
    fn write_sums(&self) -> Result<Vec<PathBuf>, ChoreFailure> {
        let files = papers::files(&self.folder)?;
        let mut text = String::new();
        for file in &files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            text.push_str(&format!("{}  {name}\n", sum(file)?));
        }
        fs::write(self.folder.join(SUMS), text).map_err(ChoreFailure::file("write the sums"))?;
        Ok(files)
    }
}

/// A file as a person is told of it.
fn sized(bytes: u64, name: &str) -> String {
    let megabytes = bytes as f64 / 1e6;
    format!("    {megabytes:>7.1} MB  {name}")
}

/// The version of the workspace.
fn version(manifest: &str) -> Option<String> {
    let (_, section) = manifest.split_once("[workspace.package]")?;
    let line = section
        .lines()
        .find_map(|line| line.strip_prefix("version = \""))?;
    Some(line.trim_end_matches('"').to_owned())
}

/// A file's SHA-256.
fn sum(file: &Path) -> Result<String, ChoreFailure> {
    let mut sha = Command::new("sha256sum");
    let said = program::listen(sha.arg("--").arg(file))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let sum = text.trim_start_matches('\\').split_whitespace().next();
    match sum.filter(|sum| said.status.success() && sum.len() == 64) {
        Some(sum) => Ok(sum.to_owned()),
        None => Err(ChoreFailure::Ended {
            line: program::line(&sha),
            status: said.status,
        }),
    }
}

/// A folder for half-made things, gone with us.
struct DistWork(PathBuf);

impl DistWork {
    fn begin() -> Result<Self, ChoreFailure> {
        let folder = leftovers::folder("dist");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder)
            .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
        Ok(Self(folder))
    }
}

impl Drop for DistWork {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod installer;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_with_its_size() {
        assert_eq!(sized(12_345_678, "a.deb"), "       12.3 MB  a.deb");
        assert_eq!(sized(999, "SUMS"), "        0.0 MB  SUMS");
    }

    #[test]
    fn the_version_is_the_workspaces() {
        let manifest = "[workspace]\nversion = \"9\"\n\n[workspace.package]\nversion = \"0.1.0\"\n";
        assert_eq!(version(manifest).as_deref(), Some("0.1.0"));
        assert_eq!(version("[package]\nversion = \"1\"\n"), None);
    }
}
