//! The name of exactly these effective commands.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::effective::Effective;

/// Two texts with the same fingerprint run the same commands in the same folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Of what was understood, and of the text itself where something was not.
    pub(crate) fn of(commands: &[Effective], text: &str, understood: bool) -> Self {
        let mut hash = Sha256::new();
        for command in commands {
            for word in &command.words {
                field(&mut hash, b'w', &word.s);
            }
            for (name, value) in &command.assigns {
                field(&mut hash, b'a', name);
                field(&mut hash, b'=', &value.s);
            }
            for file in &command.writes {
                field(&mut hash, b'>', &file.s);
            }
            for file in &command.reads {
                field(&mut hash, b'<', &file.s);
            }
            field(&mut hash, b'd', command.cwd.as_deref().unwrap_or(""));
            field(
                &mut hash,
                b'i',
                command.input.known.as_deref().unwrap_or(""),
            );
        }
        let holes = commands
            .iter()
            .any(|command| command.words.iter().any(|word| !word.is_known()));
        if !understood || holes || commands.is_empty() {
            field(&mut hash, b't', text);
        }
        let digest = hash.finalize();
        Self(
            digest
                .iter()
                .take(16)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        )
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn field(hash: &mut Sha256, kind: u8, text: &str) {
    hash.update([kind]);
    hash.update(text.len().to_le_bytes());
    hash.update(text.as_bytes());
}
