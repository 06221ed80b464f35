//! What an editor of the file cannot make: seals, and a note of where the chain stood.
//!
//! The chain alone shows a change in its middle. Whoever may write the file can write a whole new one
//! that holds, or cut its end. So each record carries a seal by a key that stands in a file of its own,
//! in no sandbox, and a third file notes after each write where the chain stood, sealed as well. Both lie
//! next to the record, or where the operator put them ([`crate::AuditPaths`]).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::digest::RecordDigest;
use crate::line::ChainHead;

/// Made with the key over the hash of a record.
pub(crate) type Seal = RecordDigest;

/// The key of one record. It never leaves the process.
#[derive(Clone)]
pub(crate) struct SealKey(Hmac<Sha256>);

/// What a note of the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadWitness {
    Missing,
    /// It is not ours, or a power cut tore it.
    Unreadable,
    Head(ChainHead),
}

const KEY_BYTES: usize = 32;

impl SealKey {
    /// The key in that file, or `None` where there is none yet.
    pub(crate) fn load(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(of_key(path, error.kind(), &error.to_string())),
        };
        let key = text
            .trim_end()
            .parse::<RecordDigest>()
            .map_err(|wrong| of_key(path, io::ErrorKind::InvalidData, wrong))?;
        Ok(Some(Self::new(key.bytes())))
    }

    /// Makes a key. Of two processes at once one wins, and both use its key.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(bytes.as_mut_slice())
            .map_err(|error| io::Error::other(error.to_string()))?;
        let text = Zeroizing::new(format!("{}\n", RecordDigest::from_bytes(*bytes)));
        let draft = target.with_extension(format!("key.{}", std::process::id()));
        // What a process of the same number left when it was killed here; nobody else uses this
        // name.
        let _ = fs::remove_file(&draft);
        let mut file = private(&draft, true)?;
        file.write_all(text.as_bytes())?;
        // On the disk before it has its name: a power cut must not leave an empty key, beside which
        // nothing is ever recorded again.
        file.sync_all()?;
        // A link and not a rename: a rename would replace the key of a process that was faster,
        // with which it may have sealed already.
        let linked = fs::hard_link(&draft, target);
        let _ = fs::remove_file(&draft);
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Its name as well, before anything is sealed with it: a power cut that takes the key away leaves a
        // record to which nothing can be added.
        let folder = target.parent().unwrap_or(Path::new("/"));
        fs::File::open(folder)?.sync_all()?;
        Self::load(target)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn new(bytes: &[u8]) -> Self {
        Self(Hmac::new_from_slice(bytes).expect("HMAC takes a key of any length"))
    }

    /// Says which key it is and nothing else about it.
    pub(crate) fn name(&self) -> String {
        let mut name = self.sealed(b"hermetic audit key\n", &[]).to_string();
        name.truncate(16);
        name
    }

    pub(crate) fn seal(&self, hash: RecordDigest) -> Seal {
        self.sealed(b"hermetic audit 2\n", hash.bytes())
    }

    fn seal_head(&self, head: ChainHead) -> Seal {
        // Both, and under a name of its own: a seal of a record is no note of a head, and one note
        // cannot be taken for another's number.
        let text = [&head.seq.to_be_bytes()[..], head.hash.bytes()].concat();
        self.sealed(b"hermetic audit head 1\n", &text)
    }

    /// Of a head that is about to be written: no note of one that was.
    fn seal_announced(&self, head: ChainHead) -> Seal {
        let text = [&head.seq.to_be_bytes()[..], head.hash.bytes()].concat();
        self.sealed(b"hermetic audit announced 1\n", &text)
    }

    /// Of a head that others are told. Not the seal of the note: whoever may write the note would have got one
    /// for every head from whoever was told.
    pub(crate) fn seal_published(&self, head: ChainHead) -> Seal {
        let text = [&head.seq.to_be_bytes()[..], head.hash.bytes()].concat();
        self.sealed(b"hermetic audit published 1\n", &text)
    }

    fn sealed(&self, domain: &[u8], text: &[u8]) -> Seal {
        let mut mac = self.0.clone();
        // Both texts have one length for each domain, so no two of them run together.
        mac.update(domain);
        mac.update(text);
        RecordDigest::from_bytes(mac.finalize().into_bytes().into())
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// The file that says where the chain stands.
#[derive(Debug)]
pub(crate) struct HeadFile(File);

impl HeadFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        private(path, false).map(Self)
    }

    /// The same file, to be synced.
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.0.try_clone()
    }

    /// One small write of one length, so that it is there whole or not at all. What was announced is over with
    /// it.
    pub(crate) fn note(&self, head: ChainHead, key: &SealKey) -> io::Result<()> {
        let mut text = noted_line(head, key.seal_head(head));
        // Blank and not cut off: that would be one more call for each record. Earlier versions pass over
        // blanks.
        text.push_str(&" ".repeat(NOTED_LINE));
        self.0.write_all_at(text.as_bytes(), 0)
    }

    /// Says where the chain will stand when what is about to be written is written.
    pub(crate) fn announce(&self, head: ChainHead, key: &SealKey) -> io::Result<()> {
        let text = noted_line(head, key.seal_announced(head));
        self.0.write_all_at(text.as_bytes(), NOTED_LINE as u64)
    }

    /// What was announced and never noted: a write that a death cut short, and whatever was cut off after it.
    pub(crate) fn announced(&self, key: &SealKey) -> io::Result<Option<ChainHead>> {
        let mut text = [0; NOTED_LINE];
        let mut read = 0;
        while read < NOTED_LINE {
            match self
                .0
                .read_at(&mut text[read..], (NOTED_LINE + read) as u64)?
            {
                0 => break,
                more => read += more,
            }
        }
        Ok(announced_in(&text[..read], key))
    }
}

/// A number of twenty digits, a hash and a seal, with what is between and behind them.
const NOTED_LINE: usize = 20 + 1 + 64 + 1 + 64 + 1;

fn noted_line(head: ChainHead, seal: Seal) -> String {
    let ChainHead { seq, hash } = head;
    format!("{seq:020}:{hash}:{seal}\n")
}

fn announced_in(line: &[u8], key: &SealKey) -> Option<ChainHead> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let (head, seal) = text.rsplit_once(':')?;
    let (head, seal): (ChainHead, Seal) = (head.parse().ok()?, seal.parse().ok()?);
    (key.seal_announced(head) == seal).then_some(head)
}

/// The same of a file that nobody has open.
pub(crate) fn announced(path: &Path, key: &SealKey) -> io::Result<Option<ChainHead>> {
    match fs::read(path) {
        Ok(bytes) => Ok(bytes
            .get(NOTED_LINE..)
            .and_then(|line| announced_in(line, key))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl HeadFile {
    /// What was noted outlives a power cut.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Whoever reads the record is told which of its files is the broken one.
fn of_key(path: &Path, kind: io::ErrorKind, what: &str) -> io::Error {
    io::Error::new(kind, format!("its key in {}: {what}", path.display()))
}

/// What that file notes of a record. Without the key nothing can be said of it.
pub(crate) fn witness(path: &Path, key: &SealKey) -> io::Result<HeadWitness> {
    let text = match fs::read_to_string(path) {
        Ok(text) if text.is_empty() => return Ok(HeadWitness::Missing),
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HeadWitness::Missing),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Ok(HeadWitness::Unreadable);
        }
        Err(error) => return Err(error),
    };
    let line = text
        .split_once('\n')
        .map_or(text.as_str(), |(line, _)| line);
    let noted = line.trim_end().rsplit_once(':').and_then(|(head, seal)| {
        let (head, seal): (ChainHead, Seal) = (head.parse().ok()?, seal.parse().ok()?);
        (key.seal_head(head) == seal).then_some(head)
    });
    Ok(noted.map_or(HeadWitness::Unreadable, HeadWitness::Head))
}

/// Whether anything was noted there. Without the key no more can be said.
pub(crate) fn is_noted(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() > 0)
}

fn private(path: &Path, new: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .create_new(new)
        .truncate(false)
        .mode(0o600)
        .open(path)
}
