//! What a program needs of the system it is started on, read from the program itself.
//!
//! A linker picks the newest version of each symbol that it finds, so the release a program was linked on
//! says nothing certain. The table that the loader reads does.

use std::cmp::Ordering;
use std::fmt;

/// What the loader looks for before a program's first instruction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ElfNeeds {
    pub(crate) machine: ElfMachine,
    /// Shared libraries by name; none of a static program.
    pub(crate) libraries: Vec<String>,
    /// Versions of symbols, as `GLIBC_2.17`.
    pub(crate) versions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElfMachine {
    X86_64,
    Aarch64,
    Other(u16),
}

/// A release of the GNU C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GlibcVersion(pub(crate) u32, pub(crate) u32);

/// Debian 11's and Ubuntu 20.04's: the oldest release that a package of ours runs on.
pub(crate) const OLDEST_GLIBC: GlibcVersion = GlibcVersion(2, 31);

/// The libraries that every Debian and Ubuntu has without asking: the C library's own, and the compiler's.
const EVERYWHERE: [&str; 7] = [
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
];

const ELF_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const DYNAMIC_ENTRY: usize = 16;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_VERNEED: u64 = 0x6fff_fffe;
const DT_VERNEEDNUM: u64 = 0x6fff_ffff;

/// No table of a program is longer; bounds what damaged bytes can make us read.
const MOST_ENTRIES: u64 = 10_000;

impl ElfNeeds {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let file = ElfFile { bytes };
        if file.slice(0, 4)? != b"\x7fELF" {
            return Err("it is no ELF program".to_owned());
        }
        // 64 bits, least significant byte first: the only kinds that we build.
        if file.slice(4, 2)? != [2, 1] {
            return Err("it is not for a 64-bit little-endian machine".to_owned());
        }
        let machine = match file.half(18)? {
            62 => ElfMachine::X86_64,
            183 => ElfMachine::Aarch64,
            other => ElfMachine::Other(other),
        };
        let segments = file.segments()?;
        let mut needs = Self {
            machine,
            libraries: Vec::new(),
            versions: Vec::new(),
        };
        if let Some(dynamic) = segments.iter().find(|segment| segment.kind == PT_DYNAMIC) {
            file.read_dynamic(dynamic, &segments, &mut needs)?;
        }
        needs.versions.sort();
        needs.versions.dedup();
        Ok(needs)
    }

    /// The oldest C library it starts with; none if it brings its own.
    pub(crate) fn glibc(&self) -> Result<Option<GlibcVersion>, String> {
        let mut newest = None;
        for version in &self.versions {
            let Some(text) = version.strip_prefix("GLIBC_") else {
                continue;
            };
            // Names such as GLIBC_PRIVATE or GLIBC_ABI_DT_RELR tie it to releases that no number tells.
            let parsed = GlibcVersion::read(text)
                .ok_or_else(|| format!("it needs {version}, which is no plain version"))?;
            newest = newest.max(Some(parsed));
        }
        Ok(newest)
    }

    /// Objections against shipping it for this machine.
    pub(crate) fn objections(&self, machine: ElfMachine, oldest: GlibcVersion) -> Vec<String> {
        let mut found = Vec::new();
        if self.machine != machine {
            found.push(format!("it is for {:?}, not {machine:?}", self.machine));
        }
        match self.glibc() {
            Ok(Some(needed)) if needed > oldest => {
                found.push(format!(
                    "it needs glibc {needed}, and {oldest} is the bound"
                ));
            }
            Ok(_) => {}
            Err(why) => found.push(why),
        }
        for library in &self.libraries {
            if !EVERYWHERE.contains(&library.as_str()) {
                found.push(format!("it needs {library}, which not every system has"));
            }
        }
        found
    }
}

impl GlibcVersion {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::parse);
        let version = Self(parts.next()?.ok()?, parts.next()?.ok()?);
        // A third number, as in 2.2.5, is of releases that are older than anything here.
        parts.all(|part| part.is_ok()).then_some(version)
    }
}

impl fmt::Display for GlibcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

struct ElfSegment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

#[derive(Clone, Copy)]
struct ElfFile<'a> {
    bytes: &'a [u8],
}

impl<'a> ElfFile<'a> {
    fn segments(self) -> Result<Vec<ElfSegment>, String> {
        let table = self.long(32)?;
        let (size, count) = (self.half(54)?, self.half(56)?);
        if usize::from(size) != PROGRAM_HEADER || self.half(52)? as usize != ELF_HEADER {
            return Err("its headers have an unknown size".to_owned());
        }
        (0..u64::from(count))
            .map(|index| {
                let at = sum(table, index * PROGRAM_HEADER as u64)?;
                Ok(ElfSegment {
                    kind: self.word(at)?,
                    offset: self.long(sum(at, 8)?)?,
                    address: self.long(sum(at, 16)?)?,
                    size: self.long(sum(at, 32)?)?,
                })
            })
            .collect()
    }

    fn read_dynamic(
        self,
        dynamic: &ElfSegment,
        segments: &[ElfSegment],
        needs: &mut ElfNeeds,
    ) -> Result<(), String> {
        let (mut strings, mut versions, mut count) = (None, None, 0);
        let mut libraries = Vec::new();
        let entries = (dynamic.size / DYNAMIC_ENTRY as u64).min(MOST_ENTRIES);
        for index in 0..entries {
            let at = sum(dynamic.offset, index * DYNAMIC_ENTRY as u64)?;
            let value = self.long(sum(at, 8)?)?;
            match self.long(at)? {
                0 => break,
                DT_NEEDED => libraries.push(value),
                DT_STRTAB => strings = Some(in_file(value, segments)?),
                DT_VERNEED => versions = Some(in_file(value, segments)?),
                DT_VERNEEDNUM => count = value.min(MOST_ENTRIES),
                _ => {}
            }
        }
        let Some(strings) = strings else {
            return match libraries.is_empty() && versions.is_none() {
                true => Ok(()),
                false => Err("its names are missing".to_owned()),
            };
        };
        for name in libraries {
            needs.libraries.push(self.text(sum(strings, name)?)?);
        }
        let Some(mut need) = versions else {
            return Ok(());
        };
        for _ in 0..count {
            let mut aux = sum(need, u64::from(self.word(sum(need, 8)?)?))?;
            for _ in 0..self.half(sum(need, 2)?)? {
                let name = u64::from(self.word(sum(aux, 8)?)?);
                needs.versions.push(self.text(sum(strings, name)?)?);
                aux = sum(aux, u64::from(self.word(sum(aux, 12)?)?))?;
            }
            need = sum(need, u64::from(self.word(sum(need, 12)?)?))?;
        }
        Ok(())
    }

    fn slice(self, at: u64, length: usize) -> Result<&'a [u8], String> {
        let from = usize::try_from(at).ok();
        let range = from.and_then(|from| Some(from..from.checked_add(length)?));
        range
            .and_then(|range| self.bytes.get(range))
            .ok_or_else(|| "it was cut off, or is damaged".to_owned())
    }

    fn half(self, at: u64) -> Result<u16, String> {
        let bytes = self.slice(at, 2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn word(self, at: u64) -> Result<u32, String> {
        let bytes = self.slice(at, 4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn long(self, at: u64) -> Result<u64, String> {
        let (low, high) = (self.word(at)?, self.word(sum(at, 4)?)?);
        Ok(u64::from(high) << 32 | u64::from(low))
    }

    fn text(self, at: u64) -> Result<String, String> {
        let rest = self.slice(at, 0).and_then(|_| {
            let from = usize::try_from(at).map_err(|_| "it is damaged".to_owned())?;
            Ok(&self.bytes[from..])
        })?;
        let end = rest.iter().take(256).position(|byte| *byte == 0);
        let end = end.ok_or_else(|| "a name in it does not end".to_owned())?;
        String::from_utf8(rest[..end].to_vec()).map_err(|_| "a name in it is no text".to_owned())
    }
}

/// Where an address of the running program lies in its file.
fn in_file(address: u64, segments: &[ElfSegment]) -> Result<u64, String> {
    segments
        .iter()
        .filter(|segment| segment.kind == PT_LOAD)
        .find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            match inside.cmp(&segment.size) {
                Ordering::Less => segment.offset.checked_add(inside),
                _ => None,
            }
        })
        .ok_or_else(|| "it points outside of itself".to_owned())
}

fn sum(a: u64, b: u64) -> Result<u64, String> {
    a.checked_add(b)
        .ok_or_else(|| "a number in it is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that needs these, made by hand: a header, two segments, and one table after the other.
    fn program(machine: u16, library: &str, versions: &[&str]) -> Vec<u8> {
        const DYNAMIC: u64 = (ELF_HEADER + 2 * PROGRAM_HEADER) as u64;
        const VERSIONS: u64 = DYNAMIC + 5 * DYNAMIC_ENTRY as u64;
        let strings = VERSIONS + 16 + 16 * versions.len() as u64;
        let mut names = vec![0];
        let mut place = |name: &str| {
            let at = names.len() as u64;
            names.extend_from_slice(name.as_bytes());
            names.push(0);
            at
        };
        let library = place(library);
        let versions: Vec<u64> = versions.iter().map(|version| place(version)).collect();
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend(3u16.to_le_bytes());
        bytes.extend(machine.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        for number in [0u64, ELF_HEADER as u64, 0] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(0u32.to_le_bytes());
        for number in [64u16, 56, 2, 64, 0, 0] {
            bytes.extend(number.to_le_bytes());
        }
        // Addresses differ from places in the file, as they do in life.
        const BASE: u64 = 0x40_0000;
        for (kind, offset) in [(PT_LOAD, 0), (PT_DYNAMIC, DYNAMIC)] {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(4u32.to_le_bytes());
            let size = if kind == PT_LOAD { 1 << 16 } else { 5 * 16 };
            for number in [offset, BASE + offset, BASE + offset, size, size, 4096] {
                bytes.extend(number.to_le_bytes());
            }
        }
        for (tag, value) in [
            (DT_NEEDED, library),
            (DT_STRTAB, BASE + strings),
            (DT_VERNEED, BASE + VERSIONS),
            (DT_VERNEEDNUM, 1),
            (0, 0),
        ] {
            bytes.extend(tag.to_le_bytes());
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(1u16.to_le_bytes());
        bytes.extend(u16::try_from(versions.len()).unwrap().to_le_bytes());
        for number in [u32::try_from(library).unwrap(), 16, 0] {
            bytes.extend(number.to_le_bytes());
        }
        for version in versions {
            let name = u32::try_from(version).unwrap();
            for number in [0u32, 0, name, 16] {
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes.extend(names);
        bytes
    }

    #[test]
    fn a_program_tells_the_oldest_system_it_runs_on() {
        let bytes = program(62, "libc.so.6", &["GLIBC_2.2.5", "GLIBC_2.9", "GLIBC_2.30"]);
        let needs = ElfNeeds::read(&bytes).unwrap();
        assert_eq!(needs.machine, ElfMachine::X86_64);
        assert_eq!(needs.libraries, ["libc.so.6"]);
        // By number and not by letter: 2.9 is older than 2.30.
        assert_eq!(needs.glibc(), Ok(Some(GlibcVersion(2, 30))));
        assert_eq!(needs.objections(ElfMachine::X86_64, OLDEST_GLIBC), [""; 0]);
    }

    #[test]
    fn what_an_old_system_lacks_is_an_objection() {
        let objections = |machine, library, version| {
            let bytes = program(machine, library, &[version]);
            let needs = ElfNeeds::read(&bytes).unwrap();
            needs.objections(ElfMachine::Aarch64, OLDEST_GLIBC)
        };
        assert_eq!(objections(183, "libc.so.6", "GLIBC_2.31"), [""; 0]);
        assert_eq!(
            objections(183, "libc.so.6", "GLIBC_2.32"),
            ["it needs glibc 2.32, and 2.31 is the bound"]
        );
        assert_eq!(
            objections(183, "libc.so.6", "GLIBC_ABI_DT_RELR"),
            ["it needs GLIBC_ABI_DT_RELR, which is no plain version"]
        );
        assert_eq!(
            objections(183, "libssl.so.3", "GLIBC_2.17"),
            ["it needs libssl.so.3, which not every system has"]
        );
        assert_eq!(
            objections(62, "libc.so.6", "GLIBC_2.17"),
            ["it is for X86_64, not Aarch64"]
        );
    }

    #[test]
    fn this_very_program_is_understood() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = ElfNeeds::read(&own).unwrap();
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"));
        assert!(needs.glibc().unwrap() >= Some(GlibcVersion(2, 17)));
    }

    #[test]
    fn damaged_bytes_are_refused_and_nothing_worse() {
        let whole = program(62, "libc.so.6", &["GLIBC_2.17", "GLIBC_2.31"]);
        for end in 0..whole.len() {
            assert!(ElfNeeds::read(&whole[..end]).is_err(), "cut at {end}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                // What it says is of no interest; that it comes back is.
                let _ = ElfNeeds::read(&damaged).map(|needs| needs.glibc());
            }
        }
        assert!(ElfNeeds::read(b"#!/bin/sh\n").is_err());
    }
}
