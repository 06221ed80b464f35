//! The package for Debian and Ubuntu, laid out in a folder and closed by `dpkg-deb`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::BuiltProgram;
use super::papers::{COMPLETIONS, ProgramPapers, files};
use super::platform::DistTarget;
use super::{DistRelease, sum};
use crate::failure::ChoreFailure;
use crate::{machine, program};

const POSTINST: &str = include_str!("package/postinst.sh");
const PRERM: &str = include_str!("package/prerm.sh");
const POSTRM: &str = include_str!("package/postrm.sh");
const APPARMOR: &str = include_str!("package/apparmor");

const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// Makes the package and returns its file.
pub(crate) fn make(
    release: &DistRelease,
    target: DistTarget,
    built: &BuiltProgram,
    papers: &ProgramPapers,
    work: &Path,
) -> Result<PathBuf, ChoreFailure> {
    let tree = PackageTree {
        root: work.join("deb"),
    };
    tree.copy(&built.path, "usr/bin/hermetic", PROGRAM_MODE)?;
    tree.lay_out(papers)?;
    tree.document(release)?;
    let control = control(release, target, built, tree.kilobytes()?);
    tree.write("DEBIAN/control", &control, FILE_MODE)?;
    let postrm = POSTRM.replace("@CONFIG_SHA256@", &sum(&papers.config())?);
    for (name, text) in [
        ("postinst", POSTINST),
        ("prerm", PRERM),
        ("postrm", &postrm),
    ] {
        tree.write(&format!("DEBIAN/{name}"), text, PROGRAM_MODE)?;
    }
    let (version, architecture) = (&release.version, target.debian());
    let file = release
        .folder
        .join(format!("hermetic_{version}_{architecture}.deb"));
    let mut close = Command::new("dpkg-deb");
    // Debian 11 cannot read what Ubuntu's own dpkg-deb writes unasked.
    close.args(["--build", "--root-owner-group", "-Zxz"]);
    close.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    program::show(close.arg(&tree.root).arg(&file))?;
    Ok(file)
}

fn control(
    release: &DistRelease,
    target: DistTarget,
    built: &BuiltProgram,
    kilobytes: u64,
) -> String {
    format!(
        "\
Package: hermetic
Version: {version}
Architecture: {architecture}
Maintainer: Hermetic contributors <packages@hermetic.invalid>
Installed-Size: {kilobytes}
Depends: libc6 (>= {glibc}), libgcc-s1, passwd
Recommends: ca-certificates, python3
Suggests: apparmor
Section: net
Priority: optional
Homepage: https://github.com/hermetic-gateway/hermetic
Description: AI agent in your chats whose every command runs sealed
 A gateway between people's chats and an AI agent. Whatever the agent runs, it
 runs in a sandbox of that conversation: no files of yours, no network but an
 allowlist, nothing left behind.
 .
 The package brings a user and a unit for the gateway, and starts nothing
 before it is configured.
",
        version = release.version,
        architecture = target.debian(),
        glibc = built.glibc,
    )
}

fn changelog(release: &DistRelease) -> String {
    format!(
        "hermetic ({}) unstable; urgency=medium\n\n  * {}/blob/main/CHANGELOG.md has what changed.\n\n \
         -- Hermetic contributors <packages@hermetic.invalid>  {}\n",
        release.version, "https://github.com/hermetic-gateway/hermetic", release.date
    )
}

/// In Debian's form: a licence is a paragraph, and an empty line in it a dot.
fn copyright(mit: &str, apache: &str) -> String {
    let paragraph = |text: &str| {
        let lines = text.trim_end().lines();
        let lines = lines.map(|line| match line.trim_end() {
            "" => " .".to_owned(),
            line => format!(" {line}"),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: hermetic\n\
         Source: https://github.com/hermetic-gateway/hermetic\n\
         Comment: What it is built from, with licences, is in the file *.cdx.json of each release.\n\n\
         Files: *\nCopyright: the Hermetic contributors\nLicense: MIT or Apache-2.0\n\n\
         License: MIT\n{}\n\nLicense: Apache-2.0\n{}\n",
        paragraph(mit),
        paragraph(apache)
    )
}

/// The files of a package under the names that they will have.
struct PackageTree {
    root: PathBuf,
}

impl PackageTree {
    /// Everything but the program: units, completions, manual pages, and what the scripts need.
    fn lay_out(&self, papers: &ProgramPapers) -> Result<(), ChoreFailure> {
        for unit in files(&papers.units())? {
            let name = unit.file_name().unwrap_or_default().to_string_lossy();
            self.copy(&unit, &format!("usr/lib/systemd/system/{name}"), FILE_MODE)?;
        }
        for (shell, place) in COMPLETIONS {
            self.copy(&papers.completion(shell), place, FILE_MODE)?;
        }
        for page in files(&papers.man())? {
            let name = page.file_name().unwrap_or_default().to_string_lossy();
            let place = format!("usr/share/man/man1/{name}");
            self.copy(&page, &place, FILE_MODE)?;
            self.compress(&place)?;
        }
        self.copy(
            &papers.config(),
            "usr/share/hermetic/config.yaml",
            FILE_MODE,
        )?;
        self.write("usr/share/hermetic/apparmor", APPARMOR, FILE_MODE)?;
        Ok(())
    }

    fn document(&self, release: &DistRelease) -> Result<(), ChoreFailure> {
        let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| {
            let path = machine::root().join(name);
            fs::read_to_string(&path)
                .map_err(ChoreFailure::file(format!("read {}", path.display())))
        });
        let [mit, apache] = licences;
        self.write(
            "usr/share/doc/hermetic/copyright",
            &copyright(&mit?, &apache?),
            FILE_MODE,
        )?;
        self.write(
            "usr/share/doc/hermetic/changelog",
            &changelog(release),
            FILE_MODE,
        )?;
        self.compress("usr/share/doc/hermetic/changelog")?;
        Ok(())
    }

    fn write(&self, place: &str, text: &str, mode: u32) -> Result<(), ChoreFailure> {
        let path = self.make_way(place)?;
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(mode)))
            .map_err(ChoreFailure::file(format!("write {}", path.display())))
    }

    fn copy(&self, from: &Path, place: &str, mode: u32) -> Result<(), ChoreFailure> {
        let path = self.make_way(place)?;
        fs::copy(from, &path)
            .and_then(|_| fs::set_permissions(&path, Permissions::from_mode(mode)))
            .map_err(ChoreFailure::file(format!("copy {}", from.display())))
    }

    /// Whatever the umask says, others may look into a package's folders.
    fn make_way(&self, place: &str) -> Result<PathBuf, ChoreFailure> {
        let path = self.root.join(place);
        let mut folder = self.root.clone();
        for part in Path::new(place)
            .parent()
            .into_iter()
            .flat_map(Path::components)
        {
            folder.push(part);
            fs::create_dir_all(&folder)
                .and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(PROGRAM_MODE)))
                .map_err(ChoreFailure::file(format!("make {}", folder.display())))?;
        }
        Ok(path)
    }

    fn compress(&self, place: &str) -> Result<(), ChoreFailure> {
        let mut gzip = Command::new("gzip");
        // Without name and time: the same page is the same file.
        gzip.args(["-9", "--no-name", "--force"])
            .arg(self.root.join(place));
        let said = program::listen(&mut gzip)?;
        match said.status.success() {
            true => Ok(()),
            false => Err(ChoreFailure::Ended {
                line: program::line(&gzip),
                status: said.status,
            }),
        }
    }

    fn kilobytes(&self) -> Result<u64, ChoreFailure> {
        let mut du = Command::new("du");
        let said = program::listen(du.args(["-sk", "--apparent-size"]).arg(&self.root))?;
        let text = String::from_utf8_lossy(&said.stdout);
        Ok(text
            .split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::elf::GlibcVersion;

    fn release() -> DistRelease {
        DistRelease {
            version: "1.2.3".to_owned(),
            epoch: 0,
            date: "Thu, 01 Jan 1970 00:00:00 +0000".to_owned(),
            folder: PathBuf::from("/nowhere"),
        }
    }

    #[test]
    fn the_fields_are_those_that_dpkg_wants() {
        let built = BuiltProgram {
            path: PathBuf::new(),
            glibc: GlibcVersion(2, 30),
        };
        let text = control(&release(), DistTarget::Aarch64, &built, 7);
        for line in [
            "Package: hermetic",
            "Version: 1.2.3",
            "Architecture: arm64",
            "Installed-Size: 7",
            "Depends: libc6 (>= 2.30), libgcc-s1, passwd",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
        // A line that does not begin a field goes on with one, and none is longer than a terminal.
        for line in text.lines() {
            assert!(line.starts_with(' ') || line.contains(": "), "{line:?}");
            assert!(line.len() <= 80, "{line:?}");
        }
    }

    #[test]
    fn scripts_are_understood_by_a_plain_shell() {
        for (name, text) in [("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)] {
            assert!(text.starts_with("#!/bin/sh\n"), "{name}");
            assert!(text.contains("\nset -e\n"), "{name}");
            let mut shell = Command::new("sh");
            let read = program::listen(shell.args(["-n", "-c", text])).unwrap();
            assert!(
                read.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&read.stderr)
            );
        }
    }

    /// Nobody's files are deleted unasked: whatever a script removes is named here.
    #[test]
    fn scripts_delete_only_what_the_package_made() {
        let mut removals = Vec::new();
        for text in [POSTINST, PRERM, POSTRM] {
            let lines = text.lines().map(str::trim);
            let acts = lines.filter(|line| !line.starts_with('#') && !line.starts_with("echo"));
            removals.extend(acts.filter(|line| {
                line.split([' ', '\'', '"', ';', '&', '|']).any(|word| {
                    ["rm", "rmdir", "userdel", "deluser", "mv", "chown", "chmod"].contains(&word)
                })
            }));
        }
        assert_eq!(
            removals,
            [
                "rm -f \"$profile\"",
                "runuser -u \"$user\" -- sh -c 'rm -f \"$1/.hermes/config.yaml\" && rmdir \"$1/.hermes\"' sh \"$place\"",
                "rmdir \"$place\"",
                "userdel \"$user\" || echo \"hermetic: the user $user is left: something still runs as it.\" >&2",
            ]
        );
    }

    #[test]
    fn a_licence_is_one_paragraph() {
        let text = copyright("A\n\nB\n", "C\n");
        assert!(
            text.contains("License: MIT\n A\n .\n B\n\nLicense: Apache-2.0\n C\n"),
            "{text}"
        );
    }

    #[test]
    fn the_changelog_is_in_debians_form() {
        let text = changelog(&release());
        assert!(
            text.starts_with("hermetic (1.2.3) unstable; urgency=medium\n\n  * "),
            "{text}"
        );
        assert!(text.ends_with("\n\n -- Hermetic contributors <packages@hermetic.invalid>  Thu, 01 Jan 1970 00:00:00 +0000\n"), "{text}");
    }
}
