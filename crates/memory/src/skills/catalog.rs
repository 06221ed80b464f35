//! The skills that there are.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::front_matter::FrontMatter;
use crate::scan::{self, ScanScope};
use crate::small_file;

#[derive(Clone, Debug, Default)]
pub struct SkillSettings {
    /// Where what an agent wrote and a person approved lies. A skill here stands for one of the same name
    /// elsewhere.
    pub own: PathBuf,
    /// Folders that are only read, the strongest first.
    pub others: Vec<PathBuf>,
    /// Names that are not offered.
    pub disabled: Vec<String>,
}

/// Reads the folders anew at each question, so that what a person put there or took away holds at once.
#[derive(Clone, Debug)]
pub struct SkillCatalog {
    settings: SkillSettings,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillSummary {
    pub name: String,
    pub description: String,
    pub category: Option<String>,
    /// The folder it lies in.
    pub folder: PathBuf,
    /// Whether it lies in our folder.
    pub is_own: bool,
}

/// The files of a skill, by their paths in it.
pub type SkillFiles = BTreeMap<String, String>;

const MOST_SKILLS: usize = 500;
/// Files and folders that are looked at.
const MOST_LOOKED_AT: usize = 20_000;
const DEEPEST: usize = 4;
pub(super) const MOST_FILES: usize = 200;
/// Of a `SKILL.md`; Hermes counts a hundred thousand characters.
pub(super) const MOST_BYTES: u64 = 400_000;
pub(super) const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 1024;
/// Of the index in a prompt.
const MOST_INDEX_CHARS: usize = 12_000;
const LONGEST_INDEX_DESCRIPTION: usize = 160;
pub(super) const SUPPORT: [&str; 4] = ["references", "templates", "scripts", "assets"];

impl SkillCatalog {
    pub fn new(settings: SkillSettings) -> Self {
        Self { settings }
    }

    /// Where approved skills lie.
    pub fn own_folder(&self) -> &Path {
        &self.settings.own
    }

    /// All skills, by category and name.
    pub fn all(&self) -> Vec<SkillSummary> {
        let mut found: BTreeMap<String, SkillSummary> = BTreeMap::new();
        let mut looked_at = 0;
        // Ours first: of two with one name, the first that is found counts, and what a person
        // approved here is newer than what it was drafted from.
        let folders = std::iter::once((&self.settings.own, true));
        let folders = folders.chain(self.settings.others.iter().map(|folder| (folder, false)));
        for (root, is_own) in folders {
            walk(root, root, 0, &mut looked_at, &mut |folder| {
                let Some(skill) = summary(root, folder, is_own) else {
                    return;
                };
                let is_off = self.settings.disabled.contains(&skill.name);
                if !is_off && found.len() < MOST_SKILLS {
                    found.entry(skill.name.clone()).or_insert(skill);
                }
            });
        }
        let mut skills: Vec<_> = found.into_values().collect();
        skills
            .sort_by(|one, other| (&one.category, &one.name).cmp(&(&other.category, &other.name)));
        skills
    }

    pub fn find(&self, name: &str) -> Option<SkillSummary> {
        self.all().into_iter().find(|skill| skill.name == name)
    }

    /// The skill that is called by `/name`.
    pub fn find_command(&self, name: &str) -> Option<SkillSummary> {
        let mut all = self.all().into_iter();
        all.find(|skill| command_name(&skill.name) == name)
    }

    /// The text of its `SKILL.md`.
    pub fn text(&self, skill: &SkillSummary) -> Option<String> {
        read(&skill.folder.join("SKILL.md"))
    }

    /// The same of the skill of this name, if there is one.
    pub fn text_of(&self, name: &str) -> Option<String> {
        self.text(&self.find(name)?)
    }

    /// Its files that hold text, as far as they are bounded.
    pub fn files(&self, skill: &SkillSummary) -> SkillFiles {
        let mut files = SkillFiles::new();
        files.extend(self.text(skill).map(|text| ("SKILL.md".to_owned(), text)));
        for support in SUPPORT {
            collect(&skill.folder, &skill.folder.join(support), 0, &mut files);
        }
        files
    }

    /// What `skills_list` answers.
    pub fn list_json(&self, category: Option<&str>) -> Value {
        let all = self.all();
        let wanted = |skill: &&SkillSummary| {
            category.is_none_or(|name| skill.category.as_deref() == Some(name))
        };
        let skills: Vec<_> = all.iter().filter(wanted).collect();
        let mut categories: Vec<_> = skills
            .iter()
            .filter_map(|skill| skill.category.as_deref())
            .collect();
        categories.dedup();
        json!({
            "success": true,
            "skills": skills.iter().map(|skill| json!({"name": skill.name,
                "description": skill.description, "category": skill.category})).collect::<Vec<_>>(),
            "categories": categories,
            "count": skills.len(),
            "hint": "skill_view(name) shows a skill whole, and the names of its files",
        })
    }

    /// What `skill_view` answers, and whether it failed.
    pub fn view_json(&self, name: &str, file: Option<&str>) -> (Value, bool) {
        let failed = |error: String| (json!({"success": false, "error": error}), true);
        let Some(skill) = self.find(name) else {
            return failed("There is no such skill. skills_list names those there are.".to_owned());
        };
        if let Some(file) = file.filter(|file| !file.is_empty()) {
            // The name comes from a model. Its words are looked at first and the links on the way
            // below, each time: neither alone keeps it inside.
            if !is_support_path(file) && file != "SKILL.md" {
                return failed(WRONG_PATH.to_owned());
            }
            return match inside(&skill.folder, file).and_then(|path| read(&path)) {
                Some(text) => (
                    json!({"success": true, "name": name, "file": file, "content": text}),
                    false,
                ),
                None => failed("It has no such file, or the file holds no text.".to_owned()),
            };
        }
        let Some(text) = self.text(&skill) else {
            return failed("Its SKILL.md cannot be read.".to_owned());
        };
        let mut linked: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for path in self.files(&skill).into_keys() {
            let folder = SUPPORT
                .into_iter()
                .find(|folder| path.starts_with(&format!("{folder}/")));
            if let Some(folder) = folder {
                linked.entry(folder).or_default().push(path);
            }
        }
        let linked = (!linked.is_empty()).then_some(linked);
        (
            json!({"success": true, "name": skill.name, "description": skill.description,
                "content": text, "linked_files": linked}),
            false,
        )
    }

    /// What a prompt tells of the skills; nothing where there are none.
    pub fn index(&self) -> String {
        let all = self.all();
        if all.is_empty() {
            return String::new();
        }
        let mut text = INDEX_HEAD.to_owned();
        let mut shown = 0;
        let mut category = None;
        for skill in &all {
            let mut line = String::new();
            if skill.category != category {
                let _ = write!(
                    line,
                    "\n{}:",
                    skill.category.as_deref().unwrap_or("general")
                );
                category.clone_from(&skill.category);
            }
            let description: String = skill
                .description
                .chars()
                .take(LONGEST_INDEX_DESCRIPTION)
                .collect();
            let _ = write!(line, "\n- {}: {description}", skill.name);
            // It stands in the prompt of every turn, so its length is paid for each time.
            if text.len() + line.len() > MOST_INDEX_CHARS {
                break;
            }
            text.push_str(&line);
            shown += 1;
        }
        if shown < all.len() {
            let _ = write!(
                text,
                "\n[{} more; skills_list names them all]",
                all.len() - shown
            );
        }
        text
    }
}

const INDEX_HEAD: &str = "There are skills: texts of the operator that say how something is done here. Where one \
    fits what you are asked for, read it with skill_view before you begin, and follow it.";
const WRONG_PATH: &str =
    "A file of a skill is SKILL.md, or lies below references/, templates/, scripts/ or assets/.";

/// A skill's name after a slash: small letters, digits and dashes.
pub fn command_name(name: &str) -> String {
    let plain = name.to_lowercase();
    let mut command = String::new();
    for character in plain.chars() {
        let character = if matches!(character, ' ' | '_' | '.') {
            '-'
        } else {
            character
        };
        let is_fine = character.is_ascii_alphanumeric() || character == '-';
        if is_fine && !(character == '-' && command.ends_with('-')) {
            command.push(character);
        }
    }
    command.trim_matches('-').to_owned()
}

/// Whether a path names a file that a skill may have beside its `SKILL.md`.
pub(super) fn is_support_path(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    let first = parts.next();
    let in_support = SUPPORT
        .iter()
        .any(|folder| first == Some(Component::Normal(folder.as_ref())));
    let mut rest = parts.peekable();
    in_support
        && path.len() <= 200
        && rest.peek().is_some()
        && rest.all(|part| matches!(part, Component::Normal(_)))
        && !path.contains(['\0', '\n'])
}

/// The path of a file that lies in this folder, with no link on the way.
fn inside(folder: &Path, file: &str) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    for part in Path::new(file).components() {
        let Component::Normal(part) = part else {
            return None;
        };
        path.push(part);
        // Every part of the way and not the end of it only: a link in the middle leads out just as
        // well. Who could change it between this and the reading owns the folder.
        if std::fs::symlink_metadata(&path).ok()?.is_symlink() {
            return None;
        }
    }
    Some(path)
}

fn read(path: &Path) -> Option<String> {
    let (text, is_cut) = small_file::read(path, MOST_BYTES).ok()??;
    (!is_cut).then_some(text)
}

/// Names a folder that a skill lies in, and those below others. Links are not followed: they may lead in circles.
fn walk(
    root: &Path,
    folder: &Path,
    depth: usize,
    looked_at: &mut usize,
    found: &mut dyn FnMut(&Path),
) {
    if folder != root && folder.join("SKILL.md").is_file() {
        // A `SKILL.md` further down belongs to this skill, as an example of it or a template.
        found(folder);
        return;
    }
    if depth >= DEEPEST {
        return;
    }
    for path in folders_in(folder, looked_at) {
        walk(root, &path, depth + 1, looked_at, found);
    }
}

fn folders_in(folder: &Path, looked_at: &mut usize) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut folders = Vec::new();
    for entry in entries.flatten() {
        // Over all folders together: many that are each within a bound would make a catalogue that
        // takes minutes, and it is read anew at each question.
        *looked_at += 1;
        if *looked_at > MOST_LOOKED_AT {
            break;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        // `.git`, `.archive` and the like.
        let is_plain = !name.to_string_lossy().starts_with('.') && name != "node_modules";
        folders.extend((is_folder && is_plain).then(|| entry.path()));
    }
    // The system names them in any order; which of two skills with one name counts must not change
    // from one question to the next.
    folders.sort();
    folders
}

fn collect(root: &Path, folder: &Path, depth: usize, files: &mut SkillFiles) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten().take(MOST_FILES) {
        let (path, kind) = (entry.path(), entry.file_type());
        if files.len() >= MOST_FILES {
            return;
        }
        if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) && depth < DEEPEST {
            collect(root, &path, depth + 1, files);
        } else if kind.is_ok_and(|kind| kind.is_file())
            && let Ok(name) = path.strip_prefix(root)
            && let Some(text) = read(&path)
        {
            files.insert(name.to_string_lossy().into_owned(), text);
        }
    }
}

fn summary(root: &Path, folder: &Path, is_own: bool) -> Option<SkillSummary> {
    let text = read(&folder.join("SKILL.md"))?;
    let (head, body) = FrontMatter::split(&text);
    let for_us = |name: &String| name.eq_ignore_ascii_case("linux") || name == "*" || name == "all";
    if !head.platforms.is_empty() && !head.platforms.iter().any(for_us) {
        return None;
    }
    let folder_name = folder.file_name()?.to_string_lossy();
    let name = head.name.unwrap_or_else(|| folder_name.into_owned());
    let name: String = name.chars().take(LONGEST_NAME).collect();
    let first_line = || {
        let mut lines = body.lines().map(str::trim);
        let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        line.unwrap_or_default().to_owned()
    };
    let description = head.description.unwrap_or_else(first_line);
    // Both stand in the prompt of everybody.
    let shown = format!("{name}\n{description}");
    if let Some(finding) = scan::first_finding(&shown, ScanScope::Context) {
        tracing::warn!(%finding, skill = %folder.display(), "a skill is left out");
        return None;
    }
    let category = folder.parent()?.strip_prefix(root).ok()?;
    let category = category.components().next();
    Some(SkillSummary {
        name: name.replace(['\n', '\r'], " "),
        description: description
            .chars()
            .take(LONGEST_DESCRIPTION)
            .collect::<String>()
            .replace(['\n', '\r'], " "),
        category: category.map(|name| name.as_os_str().to_string_lossy().into_owned()),
        folder: folder.to_owned(),
        is_own,
    })
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
