use std::path::PathBuf;

use hermetic_audit::{RecordWalk, WitnessFlaw, check_witnesses, walk};
use hermetic_redact::RedactorSettings;
use hermetic_store::Store;
use hermetic_types::SystemClock;

use super::*;

/// Gateways that share a store and nothing else.
struct Lab {
    folder: tempfile::TempDir,
    store: Store,
}

impl Lab {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = Store::open(&path, SystemClock::shared()).await.unwrap();
        Self { folder, store }
    }

    fn record(&self, home: &str) -> PathBuf {
        let home = self.folder.path().join(home);
        fs::create_dir_all(&home).unwrap();
        home.join("audit.jsonl")
    }

    fn gateway(&self, home: &str) -> ChainWitness {
        ChainWitness::new(
            &Arc::new(AuditLog::open(&self.record(home)).unwrap()),
            self.store.audit_heads(),
            Redactor::new([], RedactorSettings::default()),
            SystemClock::shared(),
        )
    }

    fn walk(&self, home: &str) -> RecordWalk {
        walk(&self.record(home)).unwrap()
    }

    fn records(&self, home: &str) -> u64 {
        self.walk(home).finish().unwrap().records
    }
}

fn act(gateway: &ChainWitness) {
    let event = AuditEvent::Sealed {
        key: "any".to_owned(),
    };
    gateway.audit.append(&event, gateway.clock.now()).unwrap();
}

#[tokio::test]
async fn what_one_does_the_others_write_down_once() {
    let lab = Lab::new().await;
    let (mut one, mut two) = (lab.gateway("one"), lab.gateway("two"));
    act(&one);
    act(&one);
    for _ in 0..5 {
        one.round().await.unwrap();
        two.round().await.unwrap();
    }
    // Theirs are quiet again: that something was written down is nothing to write down.
    assert_eq!((lab.records("one"), lab.records("two")), (2, 1));
    act(&two);
    for _ in 0..5 {
        two.round().await.unwrap();
        one.round().await.unwrap();
    }
    assert_eq!((lab.records("one"), lab.records("two")), (3, 2));
}

#[tokio::test]
async fn a_chain_that_is_put_back_to_an_earlier_day_is_shown_by_the_others() {
    let lab = Lab::new().await;
    let (mut one, mut two) = (lab.gateway("one"), lab.gateway("two"));
    act(&one);
    let files = ["jsonl", "head", "key"];
    let kept = files.map(|file| fs::read(lab.record("one").with_extension(file)).unwrap());
    act(&one);
    one.round().await.unwrap();
    two.round().await.unwrap();
    drop(one);
    // With its note and all, so that it holds by itself.
    for (file, bytes) in files.iter().zip(&kept) {
        fs::write(lab.record("one").with_extension(file), bytes).unwrap();
    }
    assert_eq!(lab.records("one"), 1);
    let chains = ["one", "two"].map(|home| lab.walk(home).finish_for_others().unwrap());
    let flaws = check_witnesses(&chains).flaws;
    assert!(
        matches!(&flaws[..], [WitnessFlaw::Cut { path, ends: 1, witnessed: 2, record: 1, .. }]
            if *path == lab.record("one")),
        "{flaws:?}"
    );
    // It does not unsay it either, and the one that comes next writes it down.
    let mut one = lab.gateway("one");
    one.round().await.unwrap();
    let mut three = lab.gateway("three");
    three.round().await.unwrap();
    let chains = ["one", "three"].map(|home| lab.walk(home).finish_for_others().unwrap());
    assert_eq!(check_witnesses(&chains).flaws.len(), 1);
}

#[tokio::test]
async fn what_was_recorded_last_is_told_at_the_end() {
    let lab = Lab::new().await;
    let one = lab.gateway("one");
    let audit = Arc::clone(&one.audit);
    let stop = CancellationToken::new();
    let running = tokio::spawn(one.run(stop.clone()));
    let event = AuditEvent::Sealed {
        key: "any".to_owned(),
    };
    let head = audit.append(&event, SystemClock::shared().now()).unwrap();
    stop.cancel();
    running.await.unwrap();
    let told = lab.store.audit_heads().all().await.unwrap();
    assert_eq!(told[0].hash, head.hash.to_string());
}
