//! How much the redactor misses and how much it takes without reason, on data a person names.
//!
//! `cargo run --release -p hermetic-redact --example visible_secrets -- FOLDER [--show CLASS]`
//!
//! Every `*.jsonl` in the folder holds one case a line: `{"class": …, "text": …, "secrets": […]}`. A
//! case counts as visible when one of its secrets can still be read whole in what is left of its text.
//! Every other file below `FOLDER/ordinary` is text in which nothing should be taken out.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a measurement reports on the terminal")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use hermetic_redact::{MASK, Redactor, RedactorSettings};
use serde_json::Value;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let folder = arguments
        .first()
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("expected a folder"))?;
    let shown = match arguments.get(1..) {
        Some([flag, class]) if flag == "--show" => Some(class.as_str()),
        _ => None,
    };
    let redactor = Redactor::new([], RedactorSettings::default());
    let mut classes: BTreeMap<String, SecretCount> = BTreeMap::new();
    for file in files(&folder)? {
        if file.extension().is_some_and(|ending| ending == "jsonl") {
            count_cases(&redactor, &file, &mut classes, shown)?;
        }
    }
    for (class, counted) in &classes {
        let SecretCount { cases, visible } = *counted;
        #[expect(clippy::cast_precision_loss, reason = "a printed figure")]
        let share = visible as f64 * 100.0 / cases as f64;
        println!("{class:>24}: {visible} of {cases} visible ({share:.1} %)");
    }
    let ordinary = folder.join("ordinary");
    if ordinary.is_dir() {
        count_ordinary(&redactor, &ordinary, shown == Some("ordinary"))?;
    }
    Ok(())
}

#[derive(Default)]
struct SecretCount {
    cases: usize,
    visible: usize,
}

fn count_cases(
    redactor: &Redactor,
    file: &Path,
    classes: &mut BTreeMap<String, SecretCount>,
    shown: Option<&str>,
) -> io::Result<()> {
    for line in fs::read_to_string(file)?.lines() {
        let case: Value = serde_json::from_str(line)?;
        let text = |name: &str| case[name].as_str().unwrap_or_default().to_owned();
        let left = redactor.redact(text("text")).into_inner();
        let secrets = case["secrets"].as_array().into_iter().flatten();
        let visible: Vec<&str> = secrets
            .filter_map(Value::as_str)
            .filter(|secret| left.contains(secret))
            .collect();
        let class = text("class");
        if !visible.is_empty() && shown == Some(class.as_str()) {
            println!(
                "--- {} {}\n{left}\nvisible: {visible:?}",
                text("detector"),
                text("name")
            );
        }
        let counted = classes.entry(class).or_default();
        counted.cases += 1;
        counted.visible += usize::from(!visible.is_empty());
    }
    Ok(())
}

fn count_ordinary(redactor: &Redactor, folder: &Path, show: bool) -> io::Result<()> {
    let (mut bytes, mut places) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in files(&folder)? {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            bytes += text.len();
            let left = redactor.redact(&text).into_inner();
            let more = left.matches(MASK).count() - text.matches(MASK).count();
            places += more;
            if show && more > 0 {
                for (before, after) in text.lines().zip(left.lines()) {
                    if before != after {
                        println!("{}: {before}\n    {after}", path.display());
                    }
                }
            }
        }
    }
    println!("{:>24}: {places} places in {bytes} bytes", "ordinary text");
    Ok(())
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}
