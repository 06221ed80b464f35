//! The record, as somebody at a keyboard meets it.

use std::fs;
use std::path::Path;

use hermetic_audit::{AuditEvent, AuditLog, AuditText};
use hermetic_gateway::chain_place;
use hermetic_store::{AuditHeadRow, Store};
use hermetic_types::{GatewayId, SystemClock, Timestamp};

use crate::hermetic::Hermetic;
use crate::postgres_server::PostgresServer;

/// Two lines that an earlier version wrote: the format does not drift.
const RECORD: &str = include_str!("audit.jsonl");

fn with_record() -> Hermetic {
    let hermetic = Hermetic::new();
    fs::create_dir(hermetic.path("hermetic")).unwrap();
    hermetic.file("hermetic/audit.jsonl", RECORD)
}

#[test]
fn a_home_without_a_record_has_nothing_to_hide() {
    let hermetic = Hermetic::new();
    let ended = hermetic.run(&["audit", "verify"]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, "the chain holds: 0 records\n")
    );
    let shown = hermetic.run(&["audit", "show"]).out;
    assert_eq!(shown, "nothing is recorded yet\n");
}

#[test]
fn a_record_that_was_removed_is_a_failure() {
    let hermetic = Hermetic::new();
    let allowed = hermetic.run(&["egress", "allow", "example.com"]);
    assert_eq!(allowed.code, 0, "{}", allowed.err);
    assert_eq!(hermetic.run(&["audit", "verify"]).code, 0);
    fs::remove_file(hermetic.path("hermetic/audit.jsonl")).unwrap();
    for asked in ["verify", "head"] {
        let ended = hermetic.run(&["audit", asked]);
        assert!(
            ended.code == 1 && ended.err.contains("no record is left"),
            "{asked}: {} {}",
            ended.out,
            ended.err
        );
    }
}

#[test]
fn a_record_is_shown_and_verified() {
    let hermetic = with_record();
    let shown = hermetic.run(&["audit", "show"]).out;
    assert!(shown.contains("command=echo 1"), "{shown}");
    let one = hermetic.run(&["audit", "show", "-n", "1", "--json"]).json();
    assert_eq!(one["event"]["command"], "echo 1");
    let verified = hermetic.run(&["audit", "verify", "--json"]).json();
    assert_eq!(verified["report"]["records"], 2);
    let report = &verified["report"]["head"];
    let head = format!("{}:{}", report["seq"], report["hash"].as_str().unwrap());
    assert_eq!(hermetic.run(&["audit", "verify", "--head", &head]).code, 0);
}

#[test]
fn a_change_and_a_missing_end_are_failures() {
    let hermetic = with_record();
    let head = hermetic.run(&["audit", "verify"]).out;
    let head = head.lines().last().unwrap().strip_prefix("head ").unwrap();
    let cut = RECORD.lines().next().unwrap();
    let hermetic = hermetic.file("hermetic/audit.jsonl", &format!("{cut}\n"));
    assert_eq!(hermetic.run(&["audit", "verify"]).code, 0);
    let ended = hermetic.run(&["audit", "verify", "--head", head]);
    assert!(
        ended.code == 1 && ended.err.contains("cut off"),
        "{}",
        ended.err
    );

    let changed = RECORD.replace("echo 0", "echo 7");
    let hermetic = hermetic.file("hermetic/audit.jsonl", &changed);
    let ended = hermetic.run(&["audit", "verify"]);
    assert!(
        ended.code == 1 && ended.err.contains("line 1"),
        "{}",
        ended.err
    );
}

/// What a gateway on the same store would have written down.
fn witness(by: &Hermetic, of: &Hermetic) {
    let [by, of] = [by, of].map(|home| AuditLog::open(&home.path("hermetic/audit.jsonl")).unwrap());
    let said = of.published_head().unwrap();
    let event = AuditEvent::Witnessed {
        chain: said.chain,
        place: AuditText::constant("elsewhere"),
        head: said.head.to_string(),
        seal: said.seal,
    };
    by.append(&event, Timestamp::from_millis(1)).unwrap();
}

#[test]
fn a_record_that_went_back_is_shown_by_another_gateways() {
    let (here, there) = (Hermetic::new(), Hermetic::new());
    for home in [&here, &there] {
        assert_eq!(home.run(&["egress", "allow", "example.com"]).code, 0);
    }
    let files = ["audit.jsonl", "audit.head"].map(|file| there.path(&format!("hermetic/{file}")));
    let before = files.each_ref().map(|file| fs::read(file).unwrap());
    assert_eq!(there.run(&["egress", "allow", "example.org"]).code, 0);
    witness(&here, &there);
    let other = files[0].display().to_string();
    let verify = ["audit", "verify", "--also", &other];
    let whole = here.run(&verify);
    assert_eq!(whole.code, 0, "{}{}", whole.out, whole.err);
    assert!(whole.out.contains("1 heads are where"), "{}", whole.out);

    for (file, bytes) in files.iter().zip(&before) {
        fs::write(file, bytes).unwrap();
    }
    assert_eq!(
        there.run(&["audit", "verify"]).code,
        0,
        "by itself it holds"
    );
    let cut = here.run(&verify);
    assert!(
        cut.code == 1 && cut.err.contains("was cut off: it ends at record 1"),
        "{}{}",
        cut.out,
        cut.err
    );
    // One that is not there is no record that holds.
    fs::remove_file(&files[0]).unwrap();
    assert_ne!(here.run(&verify).code, 0);
}

/// The rows that gateways of one store write for each other are there for whoever verifies, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_shorter_than_it_was_told_in_the_store_is_a_failure() {
    let test = "audit::a_record_that_is_shorter_than_it_was_told_in_the_store_is_a_failure";
    let Some(server) = PostgresServer::private() else {
        eprintln!("SKIP: {test}: there is no postgres here");
        return;
    };
    let address = server.new_database().await;
    let home = Hermetic::with(&format!("gateway: {{store: '{address}'}}\n"));
    assert_eq!(home.run(&["egress", "allow", "example.com"]).code, 0);
    let files = ["audit.jsonl", "audit.head"].map(|file| home.path(&format!("hermetic/{file}")));
    let before = files.each_ref().map(|file| fs::read(file).unwrap());
    assert_eq!(home.run(&["egress", "allow", "example.org"]).code, 0);
    tell(&address, &files[0]).await;
    let whole = home.run(&["audit", "verify"]);
    assert_eq!(whole.code, 0, "{}{}", whole.out, whole.err);
    assert!(whole.out.contains("as far as"), "{}", whole.out);
    for (file, bytes) in files.iter().zip(&before) {
        fs::write(file, bytes).unwrap();
    }
    let cut = home.run(&["audit", "verify"]);
    let words = "was cut off: it ends at record 1";
    assert!(
        cut.code == 1 && cut.err.contains(words),
        "{}{}",
        cut.out,
        cut.err
    );
    // Without the store it holds by itself, and it is said that nobody was asked.
    server.kill();
    let alone = home.run(&["audit", "verify"]);
    assert_eq!(alone.code, 0, "{}{}", alone.out, alone.err);
    assert!(alone.out.contains("not proven"), "{}", alone.out);
}

/// As the gateway of that record tells the others.
async fn tell(address: &str, record: &Path) {
    let published = AuditLog::open(record).unwrap().published_head().unwrap();
    let (address, clock) = (address.parse().unwrap(), SystemClock::shared());
    let store = Store::open_postgres(&address, GatewayId::sole(), clock).await;
    let row = AuditHeadRow {
        chain: published.chain.to_string(),
        place: chain_place(record),
        seq: published.head.seq,
        hash: published.head.hash.to_string(),
        seal: published.seal.to_string(),
    };
    let heads = store.unwrap().audit_heads();
    heads
        .publish(&row, Timestamp::from_millis(1))
        .await
        .unwrap();
}
