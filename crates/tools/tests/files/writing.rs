use serde_json::json;

use super::error;
use crate::lab::native;

#[test]
fn folders_are_made_and_modes_are_kept() {
    native(async |lab| {
        let made = lab
            .call(
                "write_file",
                json!({"path": "a/b/run.sh", "content": "#!/bin/sh\necho ok\n"}),
            )
            .await;
        assert_eq!(made["dirs_created"], true, "{made}");
        assert_eq!(made["bytes_written"], 18);
        assert_eq!(made["resolved_path"], "/workspace/a/b/run.sh");
        lab.sh("chmod 751 a/b/run.sh").await;
        let again = lab
            .call(
                "write_file",
                json!({"path": "a/b/run.sh", "content": "#!/bin/sh\necho two\n"}),
            )
            .await;
        assert_eq!(again["dirs_created"], false, "{again}");
        assert_eq!(
            lab.sh("stat -c %a a/b/run.sh; ./a/b/run.sh; ls -A a/b")
                .await,
            "751\ntwo\nrun.sh"
        );
    });
}

#[test]
fn any_text_arrives_as_it_was_sent() {
    native(async |lab| {
        let odd = "$(id) `id` 'q' \"q\" \\n ${HOME}\n\tEOF\r\nüñï🎉\u{0}nul";
        lab.call(
            "write_file",
            json!({"path": "odd $(id)\n.txt", "content": odd}),
        )
        .await;
        let hex = lab.sh("od -An -tx1 -v odd* | tr -d ' \\n'").await;
        let sent: String = odd.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, sent);
        let large = "0123456789abcdef".repeat(1 << 17);
        lab.call("write_file", json!({"path": "large", "content": large}))
            .await;
        assert_eq!(lab.sh("stat -c %s large").await, (2 << 20).to_string());
    });
}

#[test]
fn a_file_that_changed_meanwhile_is_written_with_a_warning() {
    native(async |lab| {
        lab.sh("echo one > shared").await;
        lab.call("read_file", json!({"path": "shared"})).await;
        lab.sh("echo two > shared").await;
        let stale = lab
            .call(
                "write_file",
                json!({"path": "shared", "content": "three\n"}),
            )
            .await;
        assert!(
            stale["_warning"]
                .as_str()
                .unwrap()
                .contains("changed since"),
            "{stale}"
        );
        let own = lab
            .call("write_file", json!({"path": "shared", "content": "four\n"}))
            .await;
        assert_eq!(own.get("_warning"), None, "{own}");
    });
}

#[test]
fn what_cannot_be_written_says_why_and_where_one_can() {
    native(async |lab| {
        for path in ["/usr/bin/ls", "/proc/sys/kernel/hostname", "/etc/new/file"] {
            let refused = lab
                .call("write_file", json!({"path": path, "content": "x"}))
                .await;
            assert!(error(&refused).starts_with(path), "{refused}");
        }
        for path in ["", "a\0b", "/workspace"] {
            let refused = lab
                .call("write_file", json!({"path": path, "content": "x"}))
                .await;
            assert!(refused.get("error").is_some(), "{refused}");
        }
        let none = lab.call("write_file", json!({"path": "x"})).await;
        assert!(error(&none).contains("content is missing"), "{none}");
        assert_eq!(lab.sh("ls -A /workspace").await, "");
    });
}

#[test]
fn what_cannot_be_read_as_what_it_is_called_says_so() {
    native(async |lab| {
        for (name, content, wrong) in [
            ("a.py", "def f(:\n", "line 1"),
            ("b.py", "x = 1\n", ""),
            ("c.json", "{\"a\": 1,}", "line 1"),
            ("d.json", "[1]", ""),
            ("e.toml", "a = \n", "line 1"),
        ] {
            let done = lab
                .call("write_file", json!({"path": name, "content": content}))
                .await;
            let status = if wrong.is_empty() { "ok" } else { "error" };
            assert_eq!(done["lint"]["status"], status, "{name}: {done}");
            let said = done["lint"]["output"].as_str().unwrap();
            assert!(said.contains(wrong), "{name}: {done}");
        }
        let text = lab
            .call("write_file", json!({"path": "f.txt", "content": "{"}))
            .await;
        assert_eq!(text.get("lint"), None, "{text}");
        // Nothing in the folder is taken for a part of Python.
        lab.sh("mkdir w; echo 'raise SystemExit(0)' > w/ast.py; cd w")
            .await;
        let done = lab
            .call("write_file", json!({"path": "g.py", "content": "1 +\n"}))
            .await;
        assert_eq!(done["lint"]["status"], "error", "{done}");
        let patch = "*** Begin Patch\n*** Update File: g.py\n-1 +\n+1\n*** Add File: h.json\n+{\n*** End Patch";
        let done = lab
            .call("patch", json!({"mode": "patch", "patch": patch}))
            .await;
        assert_eq!(done["lint"]["g.py"]["status"], "ok", "{done}");
        assert_eq!(done["lint"]["h.json"]["status"], "error", "{done}");
    });
}
