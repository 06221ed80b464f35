//! Documents that speak of the code, held against it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::manifests::Workspace;

#[test]
fn every_promise_names_a_test_that_exists_or_is_marked_unproven() {
    let workspace = Workspace::ours();
    let mut found = Vec::new();
    let mut numbers = BTreeSet::new();
    let text = read("SPECIFICATION.md");
    for promise in text.lines().filter_map(Promise::read) {
        if !numbers.insert(promise.number) {
            found.push(format!("{} is used twice", promise.number));
        }
        found.extend(promise.objections(&workspace));
    }
    assert!(numbers.len() > 10, "the promises were not recognised");
    none("SPECIFICATION.md", &found);
}

#[test]
fn the_code_map_shows_the_crates_that_exist() {
    let text = read("ARCHITECTURE.md");
    let rows: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let mut found = Vec::new();
    for package in Workspace::ours().packages {
        let folder = package.folder.strip_prefix(root()).expect("ours").display();
        match rows
            .iter()
            .find(|row| row.starts_with(&format!("| `{folder}` ")))
        {
            None => found.push(format!("{folder} has no row")),
            Some(row) if row.contains("*not there yet*") => {
                found.push(format!("{folder} is there, and the map says it is not"));
            }
            Some(_) => {}
        }
    }
    none("ARCHITECTURE.md", &found);
}

#[test]
fn every_decision_is_in_the_list_and_in_order() {
    let text = read("docs/decisions/README.md");
    let listed: Vec<_> = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .collect();
    let mut pages: Vec<_> = entries(&root().join("docs/decisions"))
        .into_iter()
        .filter_map(|page| Some(page.file_name()?.to_str()?.to_owned()))
        .filter(|name| name != "README.md")
        .collect();
    pages.sort();
    assert_eq!(
        listed, pages,
        "docs/decisions/README.md lists each page once, by number"
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut found = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("just listed");
        let folder = document.parent().expect("a file is in a folder");
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = link.split('#').next().unwrap_or_default();
            let elsewhere = link.contains("://") || file.is_empty();
            if !elsewhere && !folder.join(file).exists() {
                found.push(format!("{}: {link}", document.display()));
            }
        }
    }
    none("a document", &found);
}

#[test]
fn a_promise_without_a_test_is_noticed() {
    let workspace = Workspace::ours();
    let objections = |line: &str| {
        let promise = Promise::read(line).expect("a row of the table");
        promise.objections(&workspace)
    };
    assert_eq!(
        objections("| P1 | Text. | soon | – |"),
        ["P1 names no test"]
    );
    assert!(objections("| P2 | Text. | **unproven** | – |").is_empty());
    let here = "`hermetic-promises::promises documents::a_promise_without_a_test_is_noticed`";
    assert!(objections(&format!("| P3 | Text. | {here} | KS2 |")).is_empty());
    for elsewhere in [
        "hermetic-types documents::a_promise_without_a_test_is_noticed",
        "hermetic-promises::promises arrows::a_promise_without_a_test_is_noticed",
        "hermetic-promises::promises documents::no_such_test",
    ] {
        let row = format!("| P4 | Text. | `{elsewhere}` | – |");
        assert_eq!(objections(&row).len(), 1, "{elsewhere} was accepted");
    }
}

#[test]
fn a_promise_that_does_not_say_what_it_was_tried_with_is_noticed() {
    let workspace = Workspace::ours();
    for faults in [
        "",
        " |  |",
        " | soon |",
        " | KX |",
        " | KK |",
        " | SK |",
        " | –K |",
    ] {
        let row = format!("| P1 | Text. | **unproven**{faults}");
        let promise = Promise::read(&row).expect("a row of the table");
        assert_eq!(
            promise.objections(&workspace).len(),
            1,
            "{row} was accepted"
        );
    }
    let text = read("SPECIFICATION.md");
    for fault in FAULTS
        .chars()
        .map(String::from)
        .chain([NO_FAULT.to_owned()])
    {
        let legend = format!("| {fault} | ");
        assert!(text.contains(&legend), "nobody says what {fault} is");
    }
}

/// A row of a table: number, text, what keeps it, what it was tried with.
struct Promise<'a> {
    number: &'a str,
    kept_by: &'a str,
    faults: Option<&'a str>,
}

/// What the column of faults may say, each explained at the top of the document.
const FAULTS: &str = "KSLNEPFTHI2";
const NO_FAULT: &str = "–";

impl<'a> Promise<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut cells = line.strip_prefix("| P")?.split(" | ");
        let number = cells.next()?;
        let kept_by = cells.nth(1)?;
        let faults = cells.next().and_then(|cell| cell.strip_suffix(" |"));
        Some(Self {
            number,
            kept_by,
            faults,
        })
    }

    fn objections(&self, workspace: &Workspace) -> Vec<String> {
        let names: Vec<_> = self.kept_by.split('`').skip(1).step_by(2).collect();
        let mut found: Vec<_> = names
            .iter()
            .filter(|name| name.contains("::") && !exists(name, workspace))
            .map(|name| format!("P{} names {name}, which is not there", self.number))
            .collect();
        if names.is_empty() && !self.kept_by.contains("**unproven**") {
            found.push(format!("P{} names no test", self.number));
        }
        found.extend(self.unknown_faults());
        found
    }

    fn unknown_faults(&self) -> Option<String> {
        let number = self.number;
        let Some(faults) = self.faults else {
            return Some(format!(
                "P{number} does not say with which faults it was tried"
            ));
        };
        // Each once, in the order of the legend, so that two rows can be compared at a glance.
        let mut rest = FAULTS.chars();
        let in_order = faults.chars().all(|fault| rest.any(|known| known == fault));
        let known = faults == NO_FAULT || !faults.is_empty() && in_order;
        (!known).then(|| format!("P{number} was tried with faults that nobody knows: {faults:?}"))
    }
}

/// Whether the package has that test, as nextest names it: `hermetic-types ids::tests::name`.
fn exists(test: &str, workspace: &Workspace) -> bool {
    let Some((binary, path)) = test.split_once(' ') else {
        return false;
    };
    let package = binary.split("::").next().unwrap_or_default();
    let package = package.strip_prefix("hermetic-").unwrap_or(package);
    let mut steps = path.rsplit("::").filter(|step| *step != "tests");
    let function = format!("fn {}(", steps.next().unwrap_or_default());
    let module = steps.next();
    workspace
        .packages
        .iter()
        .filter(|one| one.name == package)
        .any(|one| {
            has_function(&one.folder, module, &function)
                || has_function(&one.folder, None, "conformance!(") && in_suite(&function)
        })
}

/// The cases of a conformance suite are written once and run by every backend, or by every platform.
fn in_suite(function: &str) -> bool {
    let suites = ["crates/sandbox", "crates/chat"];
    let suites = suites.map(|owner| root().join(owner).join("src/conformance"));
    let case = format!("pub async {function}");
    suites.iter().any(|suite| has_function(suite, None, &case))
}

fn has_function(folder: &Path, module: Option<&str>, function: &str) -> bool {
    entries(folder).into_iter().any(|path| {
        if path.is_dir() {
            return has_function(&path, module, function);
        }
        // Tests that outgrew their file stand beside it, as `module_tests.rs`.
        let named = |path: &Path| {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            stem.map(|stem| stem.strip_suffix("_tests").unwrap_or(stem)) == module
        };
        let source = path.extension().is_some_and(|kind| kind == "rs");
        let here = module.is_none() || named(&path) || path.parent().is_some_and(named);
        source && here && fs::read_to_string(&path).is_ok_and(|text| text.contains(function))
    })
}

fn documents() -> Vec<PathBuf> {
    let folders = [".", "docs", "docs/guides", "docs/decisions"].map(|name| root().join(name));
    let mut files: Vec<_> = folders.iter().flat_map(|folder| entries(folder)).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "md"));
    assert!(files.len() > 5, "the documents were not found");
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the source tree");
    entries
        .map(|entry| entry.expect("readable").path())
        .collect()
}

fn read(document: &str) -> String {
    fs::read_to_string(root().join(document)).expect("a document at the top of the source tree")
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("tests/ is in the root")
}

fn none(document: &str, found: &[String]) {
    let list = found.join("\n  ");
    assert!(
        found.is_empty(),
        "{document} speaks of what is not so:\n  {list}"
    );
}
