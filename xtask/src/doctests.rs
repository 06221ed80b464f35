//! Finds packages whose documentation has examples to run, so that the others cost nothing.

use std::fs;
use std::path::Path;

use crate::failure::ChoreFailure;
use crate::members::WorkspaceMember;

pub(crate) fn packages(members: &[WorkspaceMember]) -> Result<Vec<&str>, ChoreFailure> {
    let mut found = Vec::new();
    for member in members {
        // Cargo runs the examples of libraries only.
        if member.folder.join("src/lib.rs").is_file() && any_in(&member.folder.join("src"))? {
            found.push(member.name.as_str());
        }
    }
    Ok(found)
}

fn any_in(folder: &Path) -> Result<bool, ChoreFailure> {
    let what = format!("read {}", folder.display());
    for entry in fs::read_dir(folder).map_err(ChoreFailure::file(what.clone()))? {
        let path = entry.map_err(ChoreFailure::file(what.clone()))?.path();
        let found = if path.is_dir() {
            any_in(&path)?
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            has_example(&fs::read_to_string(&path).map_err(ChoreFailure::file(what.clone()))?)
        } else {
            false
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A fenced block in a doc comment that rustdoc takes for Rust.
fn has_example(source: &str) -> bool {
    let mut open = false;
    for line in source.lines().map(str::trim_start) {
        let comment = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let Some(language) = comment.and_then(|text| text.trim_start().strip_prefix("```")) else {
            continue;
        };
        open = !open;
        if open && is_rust(language.trim()) {
            return true;
        }
    }
    false
}

fn is_rust(language: &str) -> bool {
    let known = ["", "rust", "no_run", "should_panic", "compile_fail"];
    language.split(',').all(|word| known.contains(&word.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rust_counts_as_an_example() {
        assert!(has_example("/// ```\n/// assert!(true);\n/// ```\n"));
        assert!(has_example(
            "    /// ```rust,no_run\n    /// x();\n    /// ```\n"
        ));
        assert!(!has_example("//! ```text\n//! a ─► b\n//! ```\n"));
        assert!(!has_example(
            "/// ```toml\n/// a = 1\n/// ```\nlet x = \"```\";\n"
        ));
        assert!(!has_example("/// ```ignore\n/// x();\n/// ```\n"));
    }
}
