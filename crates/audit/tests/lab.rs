//! A record in a folder of its own.

use std::fs;
use std::path::PathBuf;

use hermetic_audit::{
    AuditEvent, AuditLog, AuditText, ChainReport, CommandDecision, WalkError, walk,
};
use hermetic_redact::Redactor;
use hermetic_types::{BackendKind, ConversationKey, Timestamp};

pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// With so many records.
    pub(crate) fn with(records: u64) -> Self {
        let lab = Self::new();
        let audit = lab.open();
        for number in 0..records {
            audit
                .append(&ran(&format!("echo {number}")), at(1))
                .unwrap();
        }
        lab
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("audit.jsonl")
    }

    pub(crate) fn open(&self) -> AuditLog {
        AuditLog::open(&self.path()).unwrap()
    }

    pub(crate) fn append(&self) {
        self.open().append(&ran("true"), at(2)).unwrap();
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.bytes()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn put(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).unwrap();
    }

    /// As a death in the middle of a write leaves it: what was not written whole was not noted.
    pub(crate) fn die_at(&self, bytes: &[u8], noted: &[u8]) {
        self.put(bytes);
        fs::write(self.note(), noted).unwrap();
    }

    pub(crate) fn note(&self) -> PathBuf {
        self.path().with_extension("head")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.path().with_extension("key")
    }

    pub(crate) fn noted(&self) -> Vec<u8> {
        fs::read(self.note()).unwrap_or_default()
    }

    pub(crate) fn put_lines(&self, lines: &[String]) {
        self.put(format!("{}\n", lines.join("\n")).as_bytes());
    }

    pub(crate) fn verify(&self) -> Result<ChainReport, WalkError> {
        walk(&self.path())?.finish()
    }
}

pub(crate) fn ran(command: &str) -> AuditEvent {
    AuditEvent::Command {
        conversation: ConversationKey::new("agent:main:telegram:dm:7"),
        backend: BackendKind::Native,
        command: words(command),
        decision: CommandDecision::Run,
        grounds: AuditText::constant("sealed"),
    }
}

pub(crate) fn words(text: &str) -> AuditText {
    let redactor = Redactor::new([], hermetic_redact::RedactorSettings::default());
    AuditText::from(redactor.redact(text))
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}
