//! Names like the one that is not there.

use hermetic_warden::protocol::{FileKind, PathAt};

use super::file_session::FileSession;
use super::place::ResolvedPath;

const MOST_SIMILAR_NAMES: usize = 5;
/// Below this two names have nothing to do with each other.
const ALIKE: f64 = 0.5;

/// Files in the same folder whose names are close, best first.
pub(super) async fn names(session: &FileSession<'_>, place: &ResolvedPath) -> Vec<String> {
    if place.missing != 1 {
        return Vec::new();
    }
    let folder = place.folder();
    let entries = session
        .sandbox
        .warden()
        .list_dir(PathAt::resolved(folder.clone()));
    let wanted = place.name();
    let files = entries.await.unwrap_or_default();
    let names = files
        .iter()
        .filter(|entry| entry.kind != FileKind::Directory)
        .map(|entry| String::from_utf8_lossy(&entry.name.0));
    let folder = String::from_utf8_lossy(&folder.0);
    let folder = folder.trim_end_matches('/');
    closest(&wanted, names)
        .into_iter()
        .map(|name| format!("{folder}/{name}"))
        .collect()
}

fn closest(wanted: &str, names: impl Iterator<Item = impl Into<String>>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, String)> = names
        .map(Into::into)
        .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored
        .into_iter()
        .take(MOST_SIMILAR_NAMES)
        .map(|(_, name)| name)
        .collect()
}

fn likeness(wanted: &str, name: &str) -> f64 {
    if wanted == name {
        return 1.0;
    }
    if stem(wanted) == stem(name) {
        return 0.95;
    }
    if name.starts_with(wanted) || (name.len() > 2 && wanted.starts_with(name)) {
        return 0.9;
    }
    let distance = strsim::normalized_damerau_levenshtein(wanted, name);
    if name.contains(wanted) {
        distance.max(0.8)
    } else {
        distance
    }
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_comes_first() {
        let names = [
            "zebra.png",
            "Config.yaml",
            "confg.yml",
            "config.yml.bak",
            "readme",
        ];
        assert_eq!(
            closest("config.yml", names.into_iter()),
            ["Config.yaml", "confg.yml", "config.yml.bak"]
        );
        assert!(closest("x", ["unrelated"].into_iter()).is_empty());
    }
}
