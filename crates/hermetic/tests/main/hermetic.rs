//! The built program in a home of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) struct Hermetic {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A gateway in the background; ended with the test, whatever happens.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<ChildStderr>,
}

impl Hermetic {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        }
    }

    pub(crate) fn with(config: &str) -> Self {
        Self::new().file("config.yaml", config)
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same home, where nothing stands in the environment.
    pub(crate) fn without_variables(mut self) -> Self {
        self.variables.clear();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder's name is taken out of what it prints.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec())
                .unwrap()
                .replace(&self.folder.path().display().to_string(), "~/.hermes")
        };
        Ended {
            code: output.status.code().unwrap(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    /// Whether a sandbox can be had here; if not, that is said aloud.
    pub(crate) fn has_sandboxes(&self, test: &str) -> bool {
        let doctor = self.run(&["doctor", "--backend", "native"]);
        if doctor.code != 0 {
            let why = doctor
                .out
                .lines()
                .last()
                .unwrap_or("no sandbox can be had")
                .to_owned();
            eprintln!("SKIP: {test}: {why}");
        }
        doctor.code == 0
    }

    /// A gateway that has said it is ready, and what it said before.
    pub(crate) fn gateway(&self, arguments: &[&str]) -> (Running, String) {
        self.gateway_with(arguments, &[])
    }

    /// The same with more variables.
    pub(crate) fn gateway_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> (Running, String) {
        let all = [&["gateway", "run"], arguments].concat();
        self.gateway_until("ready", &all, variables)
    }

    /// A gateway that has said this word, and what it said before.
    pub(crate) fn gateway_until(
        &self,
        word: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> (Running, String) {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        let mut running = Running { child, lines };
        let said = running.until(word);
        (running, said)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermetic"));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", "/nonexistent")
            .env("HERMES_HOME", self.folder.path())
            .stdin(Stdio::null());
        if arguments.first() == Some(&"gateway") {
            // Tests run side by side: each gateway takes a free port.
            command.env("HERMETIC_DASHBOARD_PORT", "0");
        }
        command.envs(self.variables.iter().cloned());
        command
    }
}

impl Ended {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn signal(mut self, signal: Signal) -> (ExitStatus, String) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).unwrap();
        let said = self.until_end();
        (self.child.wait().unwrap(), said)
    }

    /// What it says up to the line with this word, or its end.
    pub(crate) fn until(&mut self, word: &str) -> String {
        let mut said = String::new();
        loop {
            let start = said.len();
            let read = self.lines.read_line(&mut said).unwrap();
            if read == 0 || said[start..].contains(word) {
                return said;
            }
        }
    }

    fn until_end(&mut self) -> String {
        let mut said = String::new();
        while self.lines.read_line(&mut said).unwrap() > 0 {}
        said
    }
}

impl Drop for Hermetic {
    /// A gateway that was killed leaves its installation's empty cgroups; the next command that
    /// ends by itself takes them away.
    fn drop(&mut self) {
        if !self.path("hermetic/installation").exists() {
            return;
        }
        // So would its sandboxes stay, for as long as one that nobody comes back to may live.
        let left = fs::read_dir(self.path("hermetic/sandboxes"));
        for sandbox in left.into_iter().flatten().flatten() {
            if let Some(id) = sandbox.file_name().to_str() {
                self.run(&["sandbox", "destroy", id]);
            }
        }
        self.run(&["sandbox", "prune", "--stopped"]);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
