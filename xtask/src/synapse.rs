//! A Matrix homeserver for the tests that want one: started once, because each start takes seconds.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::failure::ChoreFailure;
use crate::{machine, program, say};

/// Ends what it started when dropped.
pub(crate) struct SynapseLab {
    child: Child,
    url: String,
}

impl SynapseLab {
    /// The testkit knows how; it installs Synapse into the target folder, where it is missing.
    pub(crate) fn start() -> Result<Self, ChoreFailure> {
        say::step("A Matrix homeserver");
        // Of the workspace, so that its parts are built with the features that the tests want too.
        let mut build = machine::cargo();
        build.args(["build", "--quiet", "--workspace", "--bin", "synapse"]);
        program::show(&mut build)?;
        let mut command = Command::new(machine::target().join("debug/synapse"));
        let line = program::line(&command);
        say::note(&format!("$ {line}"));
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|source| ChoreFailure::Start { line, source })?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            let read = BufReader::new(stdout).read_line(&mut said);
            read.map_err(ChoreFailure::file("read where Synapse is"))?;
        }
        let synapse = Self {
            child,
            url: said.trim().to_owned(),
        };
        match synapse.url.starts_with("http://") {
            true => {
                say::note(&synapse.url);
                Ok(synapse)
            }
            false => Err(ChoreFailure::Lacking {
                what: format!("Synapse does not run: {}", synapse.url),
                remedy: "it comes from PyPI, by pip".to_owned(),
            }),
        }
    }

    /// Tells a program where it is.
    pub(crate) fn tell(&self, command: &mut Command) {
        command.env("HERMETIC_TEST_SYNAPSE", &self.url);
    }
}

impl Drop for SynapseLab {
    /// It ends with its input.
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
