//! The folder of a Hermes installation, which is only ever read.

use std::fs;
use std::path::{Path, PathBuf};

use hermetic_access::{PairedRole, PairedUser};
use hermetic_types::{Clock as _, Platform, SystemClock, Timestamp};
use serde_json::Value;

use crate::regular_file;

/// No file of theirs that we read is larger.
const LONGEST: u64 = 16 << 20;

/// Skills lie one folder below their category; links may lead in circles.
const DEEPEST: usize = 4;
/// More are not counted.
const MOST_COUNTED: usize = 10_000;

/// Signs by which such a folder is known, besides what we read ourselves.
const SIGNS: [&str; 8] = [
    "SOUL.md",
    "state.db",
    "memories",
    "skills",
    "sessions",
    "pairing",
    "cron",
    "auth.json",
];

#[derive(Debug)]
pub(super) struct HermesHome {
    root: PathBuf,
}

/// People whom Hermes let in by a code on one platform.
#[derive(Debug)]
pub(super) struct HermesPairings {
    pub(super) platform: Platform,
    pub(super) people: Vec<PairedUser>,
    /// Entries that name nobody on that platform.
    pub(super) unreadable: usize,
}

/// A file of pairings that cannot be taken over.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) file: PathBuf,
    pub(super) why: String,
}

impl HermesHome {
    pub(super) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Whether anything of Hermes is here.
    pub(super) fn is_there(&self) -> bool {
        let files = ["config.yaml", ".env", "gateway.json"];
        let mut names = files.iter().chain(&SIGNS);
        names.any(|name| self.path(name).exists())
    }

    /// The text of a file; `None` where there is none that can be read as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        read(&self.path(name)).ok()
    }

    pub(super) fn json(&self, name: &str) -> Option<Value> {
        serde_json::from_str(&self.text(name)?).ok()
    }

    /// The names directly below a folder, in order.
    pub(super) fn names_in(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.take(MOST_COUNTED).collect();
        names.sort();
        names
    }

    /// The folders below this one that hold a file of this name.
    pub(super) fn folders_with(&self, folder: &str, file: &str) -> Vec<String> {
        let mut found = Vec::new();
        gather(&self.path(folder), file, DEEPEST, &mut found);
        found.sort();
        found
    }

    /// Everybody who was let in by a code, and the files that hold somebody we cannot take.
    pub(super) fn pairings(
        &self,
        named_on: impl Fn(Platform, &str) -> Option<hermetic_types::UserId>,
    ) -> (Vec<HermesPairings>, Vec<LeftOut>) {
        let (mut pairings, mut left_out) = (Vec::new(), Vec::new());
        // The old place, and the new one; an installation may have had both.
        for folder in ["pairing", "platforms/pairing"] {
            for name in self.names_in(folder) {
                let Some(platform) = name.strip_suffix("-approved.json") else {
                    continue;
                };
                let file = self.path(folder).join(&name);
                match approved(&file, platform, &named_on) {
                    Ok(found) => pairings.push(found),
                    Err(why) => left_out.push(LeftOut { file, why }),
                }
            }
        }
        (pairings, left_out)
    }

    /// Codes that were given out and are not answered yet.
    pub(super) fn open_codes(&self) -> usize {
        let mut count = 0;
        for folder in ["pairing", "platforms/pairing"] {
            for name in self.names_in(folder) {
                if name.ends_with("-pending.json") {
                    let codes = self.json(&format!("{folder}/{name}"));
                    count += codes
                        .as_ref()
                        .and_then(Value::as_object)
                        .map_or(0, |c| c.len());
                }
            }
        }
        count
    }
}

fn approved(
    file: &Path,
    platform: &str,
    named_on: &impl Fn(Platform, &str) -> Option<hermetic_types::UserId>,
) -> Result<HermesPairings, String> {
    // The Cloud API and the bridge are two ways to one platform.
    let name = platform.strip_suffix("_cloud").unwrap_or(platform);
    let platform: Platform = name
        .parse()
        .map_err(|_| format!("{name} is not spoken to"))?;
    let text = read(file)?;
    let entries: serde_json::Map<String, Value> = serde_json::from_str(&text)
        .map_err(|_| "it is not the JSON that Hermes writes".to_owned())?;
    let count = entries.len();
    let person = |(id, about): (String, Value)| {
        Some(PairedUser {
            user: named_on(platform, &id)?,
            display: about["user_name"].as_str().unwrap_or_default().to_owned(),
            approved_at: at(&about["approved_at"]),
            role: PairedRole::User,
            untold: None,
        })
    };
    let people: Vec<_> = entries.into_iter().filter_map(person).collect();
    Ok(HermesPairings {
        platform,
        unreadable: count - people.len(),
        people,
    })
}

/// Seconds, with a fraction; now where that is not written.
fn at(written: &Value) -> Timestamp {
    let seconds = written.as_f64().filter(|seconds| seconds.is_finite());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast to a whole number ends at its bounds"
    )]
    let whole = seconds.map(|seconds| seconds as i64);
    whole.map_or_else(|| SystemClock.now(), Timestamp::from_seconds)
}

fn gather(folder: &Path, file: &str, depth: usize, found: &mut Vec<String>) {
    if depth == 0 || found.len() >= MOST_COUNTED {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // Links are not followed.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if path.join(file).is_file() {
            found.extend(entry.file_name().into_string().ok());
        } else {
            gather(&path, file, depth - 1, found);
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let text = regular_file::read_text(path, LONGEST);
    text.map_err(|error| format!("it cannot be read: {error}"))
}
