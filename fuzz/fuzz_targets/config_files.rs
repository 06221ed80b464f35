//! Any bytes as the configuration, as variables and as the file of an older version: problems are
//! told, and nobody panics.

#![no_main]

use std::collections::BTreeMap;
use std::fs;

use hermetic_config::{HomeFolder, ConfigInputs, load};
use hermetic_fuzz::folder;
use libfuzzer_sys::fuzz_target;

/// Stands between two files; it occurs in no text.
const NEXT_FILE: u8 = 0xff;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == NEXT_FILE);
    for name in ["config.yaml", ".env", "gateway.json"] {
        let path = folder().join(name);
        match parts.next() {
            Some(part) => fs::write(path, part).expect("it can be written"),
            None => drop(fs::remove_file(path)),
        }
    }
    let inputs = ConfigInputs {
        home: HomeFolder::at(folder()),
        managed: folder().join("no-such-file"),
        variables: BTreeMap::new(),
        unreadable: Vec::new(),
    };
    match load(&inputs) {
        Ok(config) => config
            .warnings()
            .iter()
            .for_each(|problem| drop(problem.to_string())),
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
});
