use std::thread;

use crate::lab::{Lab, at, ran};

#[test]
fn writers_at_once_do_not_fork_the_chain() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 100;
    let lab = Lab::new();
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            // Each with a file of its own, as another process would have.
            let audit = lab.open();
            scope.spawn(move || {
                for _ in 0..EACH {
                    audit.append(&ran("true"), at(1)).unwrap();
                }
            });
        }
    });
    let report = lab.verify().unwrap();
    assert_eq!((report.records, report.mended), (WRITERS * EACH, 0));
}

#[test]
fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::with(1);
    let mode = std::fs::metadata(lab.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
