use hermetic_types::BackendKind;
use serde_json::{Value, json};

use super::error;
use crate::lab::{Lab, SECRET, native, on};

async fn search(lab: &Lab, arguments: Value) -> Value {
    lab.call("search_files", arguments).await
}

fn rows(found: &Value) -> &Vec<Value> {
    found["matches"]
        .as_array()
        .unwrap_or_else(|| panic!("no matches: {found}"))
}

#[test]
fn lines_files_and_counts_are_found() {
    native(async |lab| {
        lab.sh("mkdir -p src/deep .hidden; printf 'fn one() {}\\nfn two() {}\\n' > src/a.rs; \
                printf 'x\\nfn three() {}\\ny\\n' > src/deep/b.rs; echo 'def one(): pass' > src/c.py; \
                cp src/a.rs .hidden/a.rs").await;
        let lines = search(lab, json!({"pattern": "fn \\w+", "path": "src"})).await;
        assert_eq!(lines["total_count"], 3, "{lines}");
        assert_eq!(
            lines["matches"][0],
            json!({"path": "src/a.rs", "line": 1, "content": "fn one() {}"})
        );
        assert_eq!(lines["matches"][2]["path"], "src/deep/b.rs");
        let near = search(lab, json!({"pattern": "three", "context": 1})).await;
        let rows: Vec<_> = rows(&near)
            .iter()
            .map(|row| row["line"].as_u64().unwrap())
            .collect();
        assert_eq!(rows, [1, 2, 3], "{near}");
        let files = search(lab, json!({"pattern": "one", "output_mode": "files_only"})).await;
        assert_eq!(files["files"], json!(["src/a.rs", "src/c.py"]), "{files}");
        let some = search(
            lab,
            json!({"pattern": "one", "file_glob": "*.py", "output_mode": "files_only"}),
        )
        .await;
        assert_eq!(some["files"], json!(["src/c.py"]));
        let counts = search(lab, json!({"pattern": "fn", "output_mode": "count"})).await;
        assert_eq!(
            counts["counts"],
            json!({"src/a.rs": 2, "src/deep/b.rs": 1}),
            "{counts}"
        );
        assert_eq!(counts["total_count"], 3);
        let one = search(lab, json!({"pattern": "fn", "path": "/workspace/src/a.rs"})).await;
        assert_eq!(one["matches"][1]["path"], "/workspace/src/a.rs");
        let none = search(lab, json!({"pattern": "nothing like it"})).await;
        assert_eq!(none, json!({"total_count": 0}));
    });
}

#[test]
fn names_are_found_newest_first() {
    native(async |lab| {
        lab.sh("mkdir d; touch -d '2020-01-01' old_test.py; touch -d '2022-01-01' d/mid_test.py; touch new.py notes.txt").await;
        let found = search(lab, json!({"pattern": "*.py", "target": "files"})).await;
        assert_eq!(
            found["files"],
            json!(["new.py", "d/mid_test.py", "old_test.py"]),
            "{found}"
        );
        let plain = search(lab, json!({"pattern": "test", "target": "files"})).await;
        assert_eq!(plain["files"], json!(["d/mid_test.py", "old_test.py"]));
        let page = search(
            lab,
            json!({"pattern": "*", "target": "files", "limit": 1, "offset": 1}),
        )
        .await;
        assert_eq!(page["files"].as_array().unwrap().len(), 1);
        assert_eq!(page["truncated"], true, "{page}");
    });
}

#[test]
fn many_results_come_in_pages_under_their_files() {
    native(async |lab| {
        lab.sh("seq 1 500 > numbers").await;
        let first = search(lab, json!({"pattern": "1"})).await;
        assert_eq!(first["truncated"], true);
        assert!(
            first["matches_text"]
                .as_str()
                .unwrap()
                .starts_with("numbers\n  1: 1\n  10: 10\n"),
            "{first}"
        );
        assert!(
            first["_hint"].as_str().unwrap().contains("offset=50"),
            "{first}"
        );
        let last = search(lab, json!({"pattern": "1", "offset": 170, "limit": 1000})).await;
        assert!(
            last["matches_text"].as_str().unwrap().ends_with("491: 491"),
            "{last}"
        );
        assert_eq!(last.get("truncated"), None);
        lab.sh("python3 -c \"[print('\\\"' * 600) for _ in range(2000)]\" > wide")
            .await;
        let wide = search(lab, json!({"pattern": "\"", "path": "wide", "limit": 1000})).await;
        assert_eq!(wide["truncated"], true);
    });
}

#[test]
fn a_pattern_that_makes_no_sense_is_explained() {
    native(async |lab| {
        lab.sh("touch file; mkfifo pipe").await;
        for (arguments, word) in [
            (json!({"pattern": "("}), "unclosed group"),
            (json!({"pattern": "a\nb"}), "\\n"),
            (json!({"pattern": ""}), "1 to"),
            (json!({"pattern": "(a{1000}){1000}"}), "size limit"),
            (
                json!({"pattern": "a", "path": "nowhere"}),
                "Path not found: nowhere",
            ),
            (json!({"pattern": "a", "path": "pipe"}), "a pipe"),
            (json!({"pattern": "a", "path": "/dev/zero"}), "a device"),
            (json!({"pattern": "a", "path": "/proc/self"}), "terminal"),
            (
                json!({"pattern": "a", "target": "sky"}),
                "expected content or files",
            ),
            (json!({"pattern": "[", "target": "files"}), "glob"),
            (json!({}), "pattern is missing"),
        ] {
            let refused = search(lab, arguments).await;
            assert!(error(&refused).contains(word), "{word}: {refused}");
        }
    });
}

#[test]
fn a_hostile_tree_neither_hangs_nor_lies() {
    native(hostile_tree);
}

#[test]
fn a_hostile_tree_in_a_container_is_the_same() {
    on(BackendKind::Docker, hostile_tree);
}

#[test]
fn a_hostile_tree_on_a_remote_host_is_the_same() {
    on(BackendKind::Ssh, hostile_tree);
}

async fn hostile_tree(lab: &Lab) {
    lab.sh("mkdir -p ~/tree && cd ~/tree").await;
    let said = lab.call("terminal", json!({"command": "mkfifo pipe; ln -s . loop; ln -s / root; ln -s loop2 loop2; printf 'needle\\0' > binary; \
            head -c 40000000 /dev/zero | tr '\\0' a > oneline; printf 'needle\\n' > $'two\\nfake: needle'; \
            printf 'needle\\n' > $'\\377bad'; mkdir deep; (cd deep; \
            for i in $(seq 300); do mkdir d && cd d; done; echo needle > bottom)"})).await;
    assert_eq!(said["exit_code"], 0, "{said}");
    let found = search(lab, json!({"pattern": "needle"})).await;
    let paths: Vec<_> = rows(&found)
        .iter()
        .map(|row| row["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths.len(), 3, "{found}");
    assert!(paths[0].ends_with("/d/bottom"), "{paths:?}");
    assert!(paths.contains(&"two\\nfake: needle"), "{paths:?}");
    assert!(
        found["warning"]
            .as_str()
            .unwrap()
            .contains("could not be read"),
        "{found}"
    );
    // A bomb for an engine that goes back: ours does not.
    lab.sh("python3 -c \"print('a' * 100000)\" > bomb").await;
    let bomb = search(lab, json!({"pattern": "(a*)*(a*)*(a*)*b", "path": "bomb"})).await;
    assert_eq!(bomb["total_count"], 0, "{bomb}");
}

#[test]
fn secrets_are_not_found_by_looking_for_them() {
    native(async |lab| {
        lab.sh("echo token=correct-horse-batte''ry-staple > env; \
                printf -- '-----BEGIN RSA PRIVATE KEY-----\\n%s\\n%s\\n-----END RSA PRIVATE KEY-----\\n' \
                MIIEowIBAAKCAQEAx1y2z3a4b5c6d7e8f9g0h1i2j3k4l5m6n7o8p9q0r1s2t3u4 \
                v5w6x7y8z9a0b1c2d3e4f5g6h7i8j9k0l1m2n3o4p5q6r7s8t9u0v1w2x3y4z5a6 > id_rsa").await;
        let all = search(lab, json!({"pattern": "."})).await;
        assert!(!all.to_string().contains(SECRET), "{all}");
        assert!(!all.to_string().contains("v5w6x7y8"), "{all}");
    });
}

#[test]
fn an_interrupt_ends_a_search_and_nothing_of_it_is_left() {
    native(async |lab| {
        let arguments = json!({"pattern": "[a-z]{50}[0-9]{50}x", "path": "/usr"});
        let searching = search(lab, arguments);
        let interrupting = async {
            while lab.running().await == 0 {
                tokio::task::yield_now().await;
            }
            lab.stop.cancel();
        };
        let (ended, ()) = tokio::join!(searching, interrupting);
        assert!(error(&ended).contains("interrupted"), "{ended}");
        while lab.running().await > 0 {
            tokio::task::yield_now().await;
        }
    });
}
