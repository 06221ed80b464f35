//! The C library of an old release, to link against.
//!
//! A program runs on every release from the one on whose C library it was linked. Debian 11's packages are
//! unpacked into a folder for that; nothing of the machine's changes (`docs/decisions/0100`).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use super::platform::DistTarget;
use crate::failure::ChoreFailure;
use crate::{machine, packages, say};

/// glibc 2.31, which Ubuntu 20.04 has too.
const SUITE: &str = "bullseye";

/// The library, its headers, those of the kernel, and the compiler's own library for unwinding: a newer one
/// of that asks for a newer C library.
const PACKAGES: [&str; 4] = ["libc6", "libc6-dev", "libgcc-s1", "linux-libc-dev"];

/// A folder that looks like the root of an old system to a compiler.
#[derive(Debug)]
pub(crate) struct OldSysroot {
    folder: PathBuf,
    target: DistTarget,
}

impl OldSysroot {
    /// From an earlier run if there was one.
    pub(crate) fn provide(target: DistTarget) -> Result<Self, ChoreFailure> {
        let kept = machine::folder("sysroot")?;
        let folder = kept.join(format!("{SUITE}-{}", target.debian()));
        let sysroot = Self { folder, target };
        if sysroot.folder.is_dir() {
            return Ok(sysroot);
        }
        say::note("fetching the C library of Debian 11 to link against");
        // Under another name until it is whole.
        let work = kept.join(format!("{SUITE}-{}.begun", target.debian()));
        remove(&work)?;
        let into: Vec<_> = PACKAGES.iter().map(|package| (*package, "root")).collect();
        let release = packages::DebianRelease {
            suite: SUITE,
            architecture: Some(target.debian()),
        };
        packages::fetch(&work, release, &into).map_err(|why| ChoreFailure::Lacking {
            what: format!("the C library of Debian 11 cannot be had: {why}"),
            remedy: "the mirror must have bullseye, and debian-archive-keyring be installed"
                .to_owned(),
        })?;
        let root = work.join("root");
        keep_links_inside(&root, &root)?;
        let what = format!("keep {}", sysroot.folder.display());
        fs::rename(&root, &sysroot.folder).map_err(ChoreFailure::file(what))?;
        remove(&work)?;
        Ok(sysroot)
    }

    /// For the compiler that links: `--sysroot` alone leaves its own release's folders before these.
    pub(crate) fn link_words(&self) -> Vec<String> {
        let (libraries, more) = (
            self.libraries(),
            self.folder.join("lib").join(self.target.gnu()),
        );
        vec![
            format!("--sysroot={}", self.folder.display()),
            format!("-B{}", libraries.display()),
            format!("-L{}", libraries.display()),
            format!("-L{}", more.display()),
        ]
    }

    /// For C code: the headers of a newer library name symbols that the old one lacks.
    ///
    /// A compiler for another kind of machine has headers outside of every such root, which it reads first.
    pub(crate) fn compile_words(&self) -> String {
        let root = self.folder.display();
        let mut words = format!("--sysroot={root}");
        if !self.target.is_host() {
            let gnu = self.target.gnu();
            words.push_str(&format!(
                " -isystem {root}/usr/include/{gnu} -isystem {root}/usr/include"
            ));
        }
        words
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn libraries(&self) -> PathBuf {
        self.folder.join("usr/lib").join(self.target.gnu())
    }
}

/// A link to `/lib/…` would lead out of the folder to the machine's own library.
fn keep_links_inside(folder: &Path, root: &Path) -> Result<(), ChoreFailure> {
    let failed = |path: &Path| ChoreFailure::file(format!("look at {}", path.display()));
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let kind = path.symlink_metadata().map_err(failed(&path))?.file_type();
        if kind.is_dir() {
            keep_links_inside(&path, root)?;
        } else if kind.is_symlink() {
            let leads = fs::read_link(&path).map_err(failed(&path))?;
            if let Some(inside) = inside(&path, &leads, root) {
                let replaced = fs::remove_file(&path).and_then(|()| symlink(&inside, &path));
                replaced.map_err(failed(&path))?;
            }
        }
    }
    Ok(())
}

/// The same place from where the link is, if it is an absolute one.
fn inside(link: &Path, leads: &Path, root: &Path) -> Option<PathBuf> {
    let from_root = leads.strip_prefix("/").ok()?;
    let place = link.parent()?.strip_prefix(root).ok()?;
    let up = place.components().map(|_| Component::ParentDir);
    Some(up.collect::<PathBuf>().join(from_root))
}

fn remove(folder: &Path) -> Result<(), ChoreFailure> {
    match fs::remove_dir_all(folder) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => Err(ChoreFailure::file(format!(
            "remove {}",
            folder.display()
        ))(why)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_in_the_folder() {
        let seen = |link: &str, leads: &str| {
            let inside = inside(Path::new(link), Path::new(leads), Path::new("/x/root"));
            inside.map(|path| path.display().to_string())
        };
        assert_eq!(
            seen("/x/root/usr/lib/a/libdl.so", "/lib/a/libdl.so.2").as_deref(),
            Some("../../../lib/a/libdl.so.2")
        );
        assert_eq!(
            seen("/x/root/lib64/ld.so", "/lib/a/ld-2.31.so").as_deref(),
            Some("../lib/a/ld-2.31.so")
        );
        assert_eq!(seen("/x/root/lib/libm.so.6", "libm-2.31.so"), None);
    }
}
