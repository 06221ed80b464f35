//! Which crates are in the program: a bill of materials in CycloneDX' form.
//!
//! Cargo says what is linked, with licences, for this target and these features; the lock file has the sums.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use super::platform::DistTarget;
use crate::failure::ChoreFailure;
use crate::{machine, program};

/// A crate of one version, as cargo names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CrateName {
    name: String,
    version: String,
}

/// What is known of a crate.
#[derive(Debug, Default, PartialEq, Eq)]
struct CrateFacts {
    licence: String,
    /// A crate of this repository.
    is_ours: bool,
    needs: BTreeSet<CrateName>,
}

type CrateGraph = BTreeMap<CrateName, CrateFacts>;

/// The programs of which the one file consists: itself, and the one that it carries for sandboxes.
const PROGRAMS: [&str; 2] = ["hermetic", "hermetic-inside"];

/// The document as text.
pub(crate) fn document(target: DistTarget, version: &str) -> Result<String, ChoreFailure> {
    let mut graph = CrateGraph::new();
    for package in PROGRAMS {
        let mut tree = machine::cargo();
        tree.args(["tree", "--locked", "--package", package]);
        tree.args([
            "--target",
            target.triple(),
            "--edges",
            "normal,no-proc-macro",
        ]);
        tree.args(["--prefix", "depth", "--format", "|{p}|{l}"]);
        let said = program::listen(&mut tree)?;
        if !said.status.success() {
            return Err(ChoreFailure::Ended {
                line: program::line(&tree),
                status: said.status,
            });
        }
        add(&mut graph, &String::from_utf8_lossy(&said.stdout))
            .map_err(|line| not_understood(&line))?;
    }
    let lock = machine::root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(ChoreFailure::file("read Cargo.lock"))?;
    Ok(cyclone_dx(&graph, &sums(&lock), version))
}

fn not_understood(line: &str) -> ChoreFailure {
    ChoreFailure::Lacking {
        what: format!("cargo says {line:?}, which is not understood"),
        remedy: "this version of cargo writes its tree another way".to_owned(),
    }
}

/// Reads what `cargo tree` prints: a line is a depth, a crate and its licence, and belongs to the nearest line
/// above that is less deep. What was printed before is not printed again.
fn add(graph: &mut CrateGraph, tree: &str) -> Result<(), String> {
    let mut above: Vec<CrateName> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (crate_, depth, facts) = read(line).ok_or_else(|| line.to_owned())?;
        if depth > above.len() {
            return Err(line.to_owned());
        }
        above.truncate(depth);
        if let Some(parent) = above.last() {
            let parent = graph.entry(parent.clone()).or_default();
            parent.needs.insert(crate_.clone());
        }
        let known = graph.entry(crate_.clone()).or_default();
        known.licence = facts.licence;
        known.is_ours = facts.is_ours;
        above.push(crate_);
    }
    Ok(())
}

/// `3|memchr v2.7.6|Unlicense OR MIT`, with a place behind the version of a crate of ours.
fn read(line: &str) -> Option<(CrateName, usize, CrateFacts)> {
    let mut fields = line.splitn(3, '|');
    let depth = fields.next()?.parse().ok()?;
    let mut words = fields.next()?.split(' ');
    let name = words.next()?.to_owned();
    let version = words.next()?.strip_prefix('v')?.to_owned();
    let is_ours = words.next().is_some_and(|word| word.starts_with("(/"));
    let licence = fields.next()?.trim_end_matches(" (*)").trim().to_owned();
    let facts = CrateFacts {
        licence,
        is_ours,
        needs: BTreeSet::new(),
    };
    Some((CrateName { name, version }, depth, facts))
}

/// The sum of each crate's archive, from the lock file.
fn sums(lock: &str) -> BTreeMap<CrateName, String> {
    let mut sums = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let mut lines = package.lines();
            let text = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            Some(text.trim_end_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            sums.insert(CrateName { name, version }, sum);
        }
    }
    sums
}

fn cyclone_dx(graph: &CrateGraph, sums: &BTreeMap<CrateName, String>, version: &str) -> String {
    let mut text = String::from(
        "{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,\n",
    );
    let _ = writeln!(
        text,
        "  \"metadata\": {{\"component\": {{\"type\": \"application\", \"bom-ref\": \"program\", \
         \"name\": \"hermetic\", \"version\": {}, \
         \"licenses\": [{{\"expression\": \"MIT OR Apache-2.0\"}}]}}}},\n  \"components\": [",
        quoted(version)
    );
    let mut rows = Vec::new();
    for (crate_, facts) in graph {
        rows.push(component(crate_, facts, sums.get(crate_)));
    }
    text.push_str(&rows.join(",\n"));
    text.push_str("\n  ],\n  \"dependencies\": [\n");
    let mut rows = vec![format!(
        "    {{\"ref\": \"program\", \"dependsOn\": [{}]}}",
        references(
            graph,
            graph
                .keys()
                .filter(|crate_| PROGRAMS.contains(&crate_.name.as_str()))
        )
    )];
    for (crate_, facts) in graph {
        rows.push(format!(
            "    {{\"ref\": {}, \"dependsOn\": [{}]}}",
            quoted(&crate_.reference(facts)),
            references(graph, facts.needs.iter())
        ));
    }
    text.push_str(&rows.join(",\n"));
    text.push_str("\n  ]\n}\n");
    text
}

fn component(crate_: &CrateName, facts: &CrateFacts, sum: Option<&String>) -> String {
    let mut row = format!(
        "    {{\"type\": \"library\", \"bom-ref\": {purl}, \"name\": {}, \"version\": {}",
        quoted(&crate_.name),
        quoted(&crate_.version),
        purl = quoted(&crate_.reference(facts)),
    );
    if !facts.licence.is_empty() {
        // Old manifests have a slash where an expression has a word.
        let licence: Vec<_> = facts.licence.split('/').map(str::trim).collect();
        let licence = licence.join(" OR ");
        let _ = write!(
            row,
            ", \"licenses\": [{{\"expression\": {}}}]",
            quoted(&licence)
        );
    }
    if let Some(sum) = sum {
        let _ = write!(
            row,
            ", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": {}}}]",
            quoted(sum)
        );
    }
    if !facts.is_ours {
        let _ = write!(row, ", \"purl\": {}", quoted(&crate_.reference(facts)));
    }
    row.push('}');
    row
}

fn references<'a>(graph: &CrateGraph, crates: impl Iterator<Item = &'a CrateName>) -> String {
    let known = crates.filter_map(|crate_| Some(crate_.reference(graph.get(crate_)?)));
    known
        .map(|name| quoted(&name))
        .collect::<Vec<_>>()
        .join(", ")
}

impl CrateName {
    /// The name by which the document's parts speak of each other; a package URL where there is one.
    fn reference(&self, facts: &CrateFacts) -> String {
        let (name, version) = (&self.name, self.version.replace('+', "%2B"));
        match facts.is_ours {
            true => format!("{name}@{version}"),
            false => format!("pkg:cargo/{name}@{version}"),
        }
    }
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "\
0|hermetic v0.1.0 (/src/crates/hermetic)|MIT OR Apache-2.0
1|clap v4.6.1|MIT OR Apache-2.0
2|strsim v0.11.1|MIT
1|hermetic-types v0.1.0 (/src/crates/types)|MIT OR Apache-2.0
2|memchr v2.7.6|Unlicense / MIT
1|strsim v0.11.1|MIT (*)

";

    const LOCK: &str = "\
version = 4

[[package]]
name = \"clap\"
version = \"4.6.1\"
source = \"registry+https://example.invalid/index\"
checksum = \"00aa\"
dependencies = [
 \"strsim\",
]

[[package]]
name = \"hermetic\"
version = \"0.1.0\"
";

    #[test]
    fn a_tree_becomes_a_document() {
        let mut graph = CrateGraph::new();
        add(&mut graph, TREE).unwrap();
        let text = cyclone_dx(&graph, &sums(LOCK), "0.1.0");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["bomFormat"], "CycloneDX");
        let components = value["components"].as_array().unwrap();
        assert_eq!(components.len(), 5);
        let of = |name: &str| {
            let mut all = components.iter();
            all.find(|component| component["name"] == name).unwrap()
        };
        assert_eq!(of("clap")["purl"], "pkg:cargo/clap@4.6.1");
        assert_eq!(of("clap")["hashes"][0]["content"], "00aa");
        assert_eq!(
            of("memchr")["licenses"][0]["expression"],
            "Unlicense OR MIT"
        );
        assert!(of("hermetic-types").get("purl").is_none());
        let needs = |name: &str| {
            let mut all = value["dependencies"].as_array().unwrap().iter();
            all.find(|row| row["ref"] == name).unwrap()["dependsOn"].clone()
        };
        assert_eq!(needs("program"), serde_json::json!(["hermetic@0.1.0"]));
        assert_eq!(
            needs("hermetic@0.1.0"),
            serde_json::json!([
                "pkg:cargo/clap@4.6.1",
                "hermetic-types@0.1.0",
                "pkg:cargo/strsim@0.11.1"
            ])
        );
        assert_eq!(
            needs("pkg:cargo/clap@4.6.1"),
            serde_json::json!(["pkg:cargo/strsim@0.11.1"])
        );
    }

    #[test]
    fn a_line_that_is_not_understood_is_no_crate_less() {
        for tree in [
            "memchr v2.7.6",
            "0|memchr|MIT",
            "x|memchr v1|MIT",
            "2|memchr v1.0.0|MIT",
        ] {
            assert!(add(&mut CrateGraph::new(), tree).is_err(), "{tree}");
        }
    }

    #[test]
    fn what_is_in_this_program_is_known_with_its_licence() {
        // A plain user of the tests has no cargo.
        if !program::works(machine::cargo().arg("--version")) {
            eprintln!(
                "SKIP: what_is_in_this_program_is_known_with_its_licence: cargo cannot be asked"
            );
            return;
        }
        let text = document(DistTarget::X86_64, "0.1.0").unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let components = value["components"].as_array().unwrap();
        let named = |name: &str| components.iter().any(|component| component["name"] == name);
        for name in ["rustls", "libsqlite3-sys", "hermetic-warden", "landlock"] {
            assert!(named(name), "{name}");
        }
        // For tests and for the compiler only.
        for name in ["hermetic-testkit", "proptest", "serde_derive", "xtask"] {
            assert!(!named(name), "{name}");
        }
        for component in components {
            assert!(component.get("licenses").is_some(), "{component}");
            let ours = component.get("purl").is_none();
            assert!(ours || component.get("hashes").is_some(), "{component}");
        }
    }
}
