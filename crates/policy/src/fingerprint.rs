//! The name of exactly one command, where it would run and with what.
//!
//! A yes for a session is looked up by this name, so whatever can change what a text does must
//! change its name: an operator between two commands, a quote, a redirection, a blank inside a
//! word. Telling the meaningless differences from the others is as hard as judging, and an error
//! there runs something that nobody allowed. So nothing is thought away: the text counts as it
//! stands, byte for byte.

use std::fmt;

use hermetic_types::{Command, CommandInput, CommandProgram};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::context::JudgementContext;

/// Two commands with the same fingerprint are the same text for the same shell, in the same folder
/// of the same backend, with the same environment and standard input.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandFingerprint(String);

impl CommandFingerprint {
    pub(crate) fn of(command: &Command, context: &JudgementContext) -> Self {
        // Every field is named, so that a new one is decided on here.
        let Command {
            program,
            workdir,
            env,
            stdin,
            output: _,
            leads,
            pty,
            timeout: _,
        } = command;
        let mut name = FieldHasher(Sha256::new());
        match program {
            CommandProgram::Script(text) => name.field(b's', text),
            CommandProgram::Shell(text) => name.field(b'p', text),
            CommandProgram::Words(words) => words.iter().for_each(|word| name.field(b'w', word)),
            CommandProgram::Inside { role, words } => {
                name.field(b'r', role);
                words.iter().for_each(|word| name.field(b'w', word));
            }
        }
        name.field(b'b', context.backend.name());
        name.field(b'd', workdir.as_deref().unwrap_or(&context.workspace));
        for (variable, value) in env {
            name.field(b'v', variable);
            name.field(b'=', if is_ours(value) { ASKPASS } else { value });
        }
        match stdin {
            CommandInput::Empty => name.field(b'e', ""),
            CommandInput::Bytes(bytes) => name.field(b'i', bytes),
            CommandInput::Open => name.field(b'o', ""),
        }
        name.field(b'l', [u8::from(*leads), u8::from(pty.is_some())]);
        Self(name.digest())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The file through which sudo asks for the operator's password has a new name at every run. It is
/// this program that names it, and nobody in a chat can.
const ASKPASS: &str = "/tmp/.hermetic-askpass-";

fn is_ours(value: &str) -> bool {
    value.strip_prefix(ASKPASS).is_some_and(|run| {
        !run.is_empty() && run.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

impl fmt::Display for CommandFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fields with their kind and length before them, so that no two lists of fields look alike.
struct FieldHasher(Sha256);

impl FieldHasher {
    fn field(&mut self, kind: u8, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0.update([kind]);
        self.0.update(bytes.len().to_le_bytes());
        self.0.update(bytes);
    }

    fn digest(self) -> String {
        let digest = self.0.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
