//! A runtime for instances, and a folder with the test image's file system for them.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::ChoreFailure;
use crate::{apptainer, image, machine, say};

pub(crate) struct SingularityLab {
    rootfs: PathBuf,
}

impl SingularityLab {
    pub(crate) fn provide(may_install: bool) -> Result<Self, ChoreFailure> {
        say::step("Apptainer");
        if !apptainer::is_there() {
            if !may_install || !machine::is_root() {
                return Err(ChoreFailure::Lacking {
                    what: "apptainer is missing".to_owned(),
                    remedy: "`cargo xtask test`, as root and without --no-install, installs it"
                        .to_owned(),
                });
            }
            apptainer::install()?;
        }
        say::note("its test image");
        Ok(Self {
            rootfs: image::folder()?,
        })
    }

    /// Tells a program where the image is.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env("HERMETIC_TEST_ROOTFS", &self.rootfs);
    }
}
