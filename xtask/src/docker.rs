//! An engine with the test image in it.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::engine::LabEngine;
use crate::failure::ChoreFailure;
use crate::needs::NeedGroup;
use crate::{compose, image, machine, needs, program, say};

pub(crate) fn run(command: &[String]) -> Result<(), ChoreFailure> {
    say::step("What an engine needs from this machine");
    if let Some(lacking) = needs::provide(&[NeedGroup::Docker], machine::is_root()).first() {
        return Err(ChoreFailure::Lacking {
            what: lacking.text.clone(),
            remedy: "an engine cannot be started without it".to_owned(),
        });
    }
    let docker = DockerLab::start()?;
    match command.split_first() {
        Some((program, words)) => {
            say::step("The command");
            let mut command = Command::new(program);
            docker.tell(command.args(words));
            program::show(&mut command)
        }
        None => {
            say::step("Ready until the end of input");
            say::note(&format!("export DOCKER_HOST={}", docker.engine.host()));
            io::copy(&mut io::stdin(), &mut io::sink())
                .map(drop)
                .map_err(ChoreFailure::file("read the input"))
        }
    }
}

/// Stops what it started when dropped.
pub(crate) struct DockerLab {
    engine: LabEngine,
    /// Where the client finds a plugin of ours.
    configuration: Option<PathBuf>,
}

impl DockerLab {
    pub(crate) fn start() -> Result<Self, ChoreFailure> {
        say::step("A Docker engine");
        let engine = LabEngine::reach()?;
        say::step("The test image");
        image::provide(&engine)?;
        let configuration = compose::provide();
        Ok(Self {
            engine,
            configuration,
        })
    }

    /// Tells a program where the engine is and what the image is called.
    pub(crate) fn tell(&self, command: &mut Command) {
        command
            .env("DOCKER_HOST", self.engine.host())
            .env("HERMETIC_TEST_IMAGE", image::NAME);
        if let Some(folder) = &self.configuration {
            command.env("DOCKER_CONFIG", folder);
        }
    }
}
