//! Files of every kind, read, written and searched.

use serde_json::json;

use super::awkward::{Awkward, call, terminal};

pub(super) fn calls() -> Vec<Awkward> {
    vec![
        call(
            "write_file",
            json!({"path": "n/e/w", "content": "\u{0}\u{1}"}),
            &["bytes_written\":2"],
        ),
        call("read_file", json!({"path": "n/e/w"}), &["binary"]),
        call(
            "write_file",
            json!({"path": "wide", "content": "w".repeat(2_000_000)}),
            &["2000000"],
        ),
        call("read_file", json!({"path": "wide"}), &["[truncated]"]),
        call(
            "read_file",
            json!({"path": "wide", "offset": 99}),
            &["has 1 lines"],
        ),
        call("read_file", json!({"path": "/dev/zero"}), &["not a file"]),
        call(
            "read_file",
            json!({"path": "/proc/self/environ"}),
            &["/proc"],
        ),
        call("read_file", json!({"path": ""}), &["empty"]),
        call("read_file", json!({"path": "."}), &["is a folder"]),
        call("read_file", json!({}), &["path is missing"]),
        terminal(
            "ln -s loop loop; ln -s wide link; mkfifo pipe; truncate -s 3G huge",
            &["\"exit_code\":0"],
        ),
        call("read_file", json!({"path": "loop"}), &["symlinks"]),
        call("read_file", json!({"path": "link"}), &["unchanged"]),
        call("read_file", json!({"path": "pipe"}), &["not a file"]),
        call("read_file", json!({"path": "huge"}), &["binary"]),
        call(
            "write_file",
            json!({"path": "pipe", "content": "x"}),
            &["not a file"],
        ),
        call(
            "patch",
            json!({"path": "wide", "old_string": "v", "new_string": "x"}),
            &["Could not find"],
        ),
        call(
            "patch",
            json!({"mode": "patch", "patch": "nonsense"}),
            &["\"success\":false"],
        ),
        call("search_files", json!({"pattern": "("}), &["Search failed"]),
        call(
            "search_files",
            json!({"pattern": "(a+)+$", "path": "wide"}),
            &["\"total_count\":0"],
        ),
        call(
            "search_files",
            json!({"pattern": "w{1000}", "path": "."}),
            &["total_count"],
        ),
        call(
            "search_files",
            json!({"pattern": "\\p{Greek}", "path": "."}),
            &["\"total_count\":0"],
        ),
        call(
            "search_files",
            json!({"pattern": "[", "target": "files"}),
            &["error"],
        ),
        call(
            "search_files",
            json!({"pattern": "*", "target": "files", "limit": 1}),
            &["offset=1"],
        ),
        call(
            "search_files",
            json!({"pattern": "x", "path": "nowhere"}),
            &["Path not found"],
        ),
        terminal("rm -rf loop link pipe huge wide n", &["\"exit_code\":0"]),
    ]
}
