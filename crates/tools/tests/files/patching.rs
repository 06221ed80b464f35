use serde_json::{Value, json};

use super::error;
use crate::lab::{Lab, native};

async fn replace(lab: &Lab, path: &str, old: &str, new: &str) -> Value {
    lab.call(
        "patch",
        json!({"mode": "replace", "path": path, "old_string": old, "new_string": new}),
    )
    .await
}

#[test]
fn a_replacement_shows_its_difference_and_keeps_the_kind_of_file() {
    native(async |lab| {
        lab.sh("printf '\\357\\273\\277one\\r\\ntwo\\r\\n' > dos; chmod 600 dos")
            .await;
        let done = replace(lab, "dos", "one\ntwo", "one\n2").await;
        assert_eq!(done["success"], true, "{done}");
        assert!(
            done["diff"].as_str().unwrap().contains("-two\n+2"),
            "{done}"
        );
        assert_eq!(done["files_modified"], json!(["/workspace/dos"]));
        assert_eq!(
            lab.sh("stat -c %a dos; od -An -c dos | tr -d ' \\n'").await,
            "600\n357273277one\\r\\n2\\r\\n"
        );
    });
}

#[test]
fn a_replacement_that_fits_nowhere_or_twice_changes_nothing() {
    native(async |lab| {
        lab.sh("printf 'def f():\\n    return 1\\n\\ndef g():\\n    return 1\\n' > m.py")
            .await;
        let twice = replace(lab, "m.py", "    return 1", "x").await;
        assert!(error(&twice).contains("2 times (lines 2, 5)"), "{twice}");
        assert_eq!(twice["success"], false);
        let nearly = replace(lab, "m.py", "def g():\n  return 1", "x").await;
        assert!(
            error(&nearly).contains("4|def g():\n5|    return 1"),
            "{nearly}"
        );
        assert!(error(&nearly).contains("line 5 (indentation"), "{nearly}");
        let nowhere = replace(lab, "nothere.py", "a", "b").await;
        assert!(error(&nowhere).contains("not found"), "{nowhere}");
        let all = lab
            .call("patch", json!({"mode": "replace", "path": "m.py", "old_string": "return 1", "new_string": "return 2", "replace_all": true}))
            .await;
        assert_eq!(all["success"], true);
        assert_eq!(lab.sh("grep -c 'return 2' m.py").await, "2");
    });
}

#[test]
fn a_v4a_patch_is_applied_as_a_whole_or_not_at_all() {
    native(async |lab| {
        lab.sh("printf 'a\\nb\\nc\\n' > one; echo old > two; printf '#!/bin/sh\\n' > run; chmod 755 run").await;
        let patch = "*** Begin Patch\n*** Update File: one\n@@\n a\n-b\n+B\n*** Add File: new/three\n+3\n\
                     *** Delete File: two\n*** Move File: run -> bin/run\n*** End Patch";
        let bad = patch.replace("-b", "-x");
        let refused = lab
            .call("patch", json!({"mode": "patch", "patch": bad}))
            .await;
        assert!(error(&refused).contains("one: change 1"), "{refused}");
        assert_eq!(
            lab.sh("ls; cat one two").await,
            "one\nrun\ntwo\na\nb\nc\nold"
        );
        let done = lab
            .call("patch", json!({"mode": "patch", "patch": patch}))
            .await;
        assert_eq!(done["success"], true, "{done}");
        assert_eq!(
            done["files_deleted"],
            json!(["/workspace/two", "/workspace/run"])
        );
        assert_eq!(
            done["files_created"],
            json!(["/workspace/new/three", "/workspace/bin/run"])
        );
        assert_eq!(
            lab.sh("cat one new/three; stat -c %a bin/run; ls").await,
            "a\nB\nc\n3\n755\nbin\nnew\none"
        );
    });
}

#[test]
fn a_patch_that_makes_no_sense_is_explained() {
    native(async |lab| {
        for (arguments, word) in [
            (json!({"mode": "sing"}), "expected replace or patch"),
            (json!({"mode": "patch"}), "patch is missing"),
            (
                json!({"mode": "patch", "patch": "hello"}),
                "outside of any file",
            ),
            (
                json!({"mode": "patch", "patch": "*** Add File: ../../etc/x\n+a"}),
                "leads upwards",
            ),
            (
                json!({"mode": "replace", "path": "x"}),
                "old_string is missing",
            ),
            (
                json!({"mode": "patch", "patch": "*** Delete File: nothing"}),
                "not found",
            ),
        ] {
            let refused = lab.call("patch", arguments).await;
            assert!(error(&refused).contains(word), "{refused}");
        }
    });
}

#[test]
fn a_patch_whose_last_file_fails_changes_none() {
    native(async |lab| {
        lab.sh("printf 'a\\n' > one; printf 'two\\r\\n' > two; chmod 750 two; mkdir shut; echo x > shut/x").await;
        let patch = |last: &str| {
            json!({"mode": "patch", "patch": format!(
                "*** Begin Patch\n*** Update File: one\n-a\n+b\n*** Update File: two\n-two\n+three\n\
                 *** Add File: new/deep/file\n+x\n*** Move File: two -> moved\n{last}\n*** End Patch"
            )})
        };
        let state = "find . -type f -o -type d | sort; cat one; od -An -c two; stat -c '%a %n' two";
        let before = lab.sh(state).await;
        // One that cannot even be prepared, and one whose removal fails when the others are made.
        lab.sh("chmod 555 shut").await;
        for last in [
            "*** Add File: shut/y\n+y",
            "*** Add File: /proc/nope/y\n+y",
            "*** Delete File: shut/x",
        ] {
            let failed = lab.call("patch", patch(last)).await;
            assert!(error(&failed).contains("No file was changed."), "{failed}");
            assert_eq!(failed["success"], false);
            assert_eq!(failed.get("files_modified"), None, "{failed}");
            assert_eq!(lab.sh(state).await, before, "after {last}");
        }
        lab.sh("chmod 755 shut").await;
        let done = lab.call("patch", patch("*** Delete File: shut/x")).await;
        assert_eq!(done["success"], true, "{done}");
        assert_eq!(
            lab.sh("cat one moved; stat -c %a moved; ls shut").await,
            "b\nthree\n750"
        );
    });
}
